"""Rules and groups of a switch for an evaluation, from the output of `ovs-ofctl`."""

from __future__ import annotations

import re
from typing import Final

from planner.contract.tables import shorten_faults
from planner.errors import InputError
from planner_models.flowtables.problem.actions import Goto
from planner_models.flowtables.problem.evaluation.bits import EVALUATED, LAYOUT, REGISTERS, read_whole
from planner_models.flowtables.problem.evaluation.classifier import Rule
from planner_models.flowtables.problem.evaluation.groups import GroupTable
from planner_models.flowtables.problem.evaluation.interpreter import Switch
from planner_models.flowtables.problem.evaluation.operations import (
    Clause,
    Clone,
    Group,
    Operation,
    Track,
    read_operations,
)
from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.openflow import (
    ANSWER,
    DEFAULT_PRIORITY,
    FLAGS,
    MOST_PRIORITY,
    MOST_TABLE,
    NOT_MATCHED,
)
from planner_models.flowtables.problem.openflow_fields import (
    FIELDS,
    OTHER_NAMES,
    PARTS,
    WIDE,
    translate_match,
)
from planner_models.flowtables.problem.values import BadMatch, Cube, describe_first, require_short_numbers

NEEDS_EVALUATION: Final = re.compile(
    r"\b(ct|group|learn|conjunction|clone)[(:]|\b(ct_clear|push_mpls|pop_mpls|set_mpls_\w+|dec_mpls_ttl)\b|"
    r"\b(conj_id|mpls|mplsm|mpls_\w+|recirc_id|dp_hash)\b"
)
"""What the translation of tables into rules leaves out."""
OWN_FIELDS: Final = re.compile(
    r"(?:(?<![,\s])[,\s]++)?(?:\b(conj_id|mpls_label|mpls_tc|mpls_bos|mpls_ttl|recirc_id|dp_hash)=([^,\s]++)|"
    r"(?<![=\w])(mplsm?)(?=[,\s]|$))"
)
KINDS: Final = {"mpls": "0x8847", "mplsm": "0x8848"}
WORDS: Final = re.compile(
    r"(?:cookie|duration|n_packets|n_bytes|idle_age|hard_age|idle_timeout|hard_timeout)=\S*?[,\s]+"
)


class RuleReader:
    """Reader of lines; many lines have the same actions, which are read once."""

    def __init__(self) -> None:
        self._operations: dict[str, tuple[tuple[Operation, ...], tuple[Clause, ...]]] = {}

    def read(self, content: str, row: int) -> list[tuple[int, Rule]]:
        """Return the table and rule of a line, more than one where a match has a range.

        raises  BadMatch where it is none, or not modelled
        """
        match, separator, actions = content.partition("actions=")
        if not separator:
            raise BadMatch("has no 'actions=', must be a line of ovs-ofctl dump-flows")
        require_short_numbers(content)
        numbers = {"table": 0, "priority": DEFAULT_PRIORITY}
        text, others = translate_own(WORDS.sub("", match))
        for name, value in others.items():
            if name in numbers:
                numbers[name] = read_whole(value, name, MOST_TABLE if name == "table" else MOST_PRIORITY)
            elif name not in NOT_MATCHED and name not in FLAGS:
                raise BadMatch(
                    f"there is no field '{name}' that is read",
                    near=(name, [*EVALUATED, *OTHER_NAMES, *PARTS, *WIDE]),
                )
        if actions not in self._operations:
            self._operations[actions] = read_operations(actions, LAYOUT)
        operations, clauses = self._operations[actions]
        return [
            (numbers["table"], Rule(numbers["priority"], value, mask, operations, clauses, row))
            for value, mask in _parse(text)
        ]


def translate_own(text: str) -> tuple[str, dict[str, str]]:
    """Return a match in the names of the layout, as `translate_match`, with labels and conjunctions."""
    extra = []
    if "conj_id" in text or "mpls" in text or "recirc_id" in text or "dp_hash" in text:
        for name, value, kind in OWN_FIELDS.findall(text):
            extra.append(f"{name}={value}" if name else f"eth_type={KINDS[kind]}")
        text = OWN_FIELDS.sub(",", text)
    translated, others = translate_match(text)
    return " ".join([translated, *extra]) if extra else translated, others


def _parse(text: str) -> list[Cube]:
    """Return the cubes of a match on all fields."""
    return LAYOUT.parse(text)


def read_switch(text: str, where: str, groups: dict[int, GroupTable], groups_where: str) -> Switch:
    """Return a switch with the rules of a dump, with numbers for tables and ports.

    where         name of the file in errors
    groups_where  name of the file of groups, "" for none
    raises        InputError with a line for each row that is no rule, or is not modelled
    """
    switch = Switch(groups=groups)
    reader = RuleReader()
    faults: list[str] = []
    for row, content in enumerate(text.splitlines()):
        if ANSWER.match(content):
            continue
        try:
            for table, rule in reader.read(content, row + 1):
                _require_groups(rule.operations, groups, groups_where)
                _add(switch, table, rule)
        except BadMatch as error:
            describe_first(faults, f"{where} row {row + 1}: ", error)
    if not switch.tables and not faults:
        faults.append(f"{where}: has no rules, must be output of ovs-ofctl dump-flows")
    for number, group in groups.items():
        for bucket in group.buckets:
            try:
                _require_groups(bucket.operations, groups, groups_where)
            except BadMatch as error:
                describe_first(faults, f"{groups_where}: group {number}: ", error)
    if faults:
        raise InputError(*shorten_faults(faults, where, "that cannot be read"))
    return switch


def _add(switch: Switch, table: int, rule: Rule) -> None:
    """Add a rule; clauses of a rule with the same match and priority, in several lines, are joined.

    raises  BadMatch for a rule that has the match and priority of another one
    """
    classifier = switch.tables.get(table)
    subtable = classifier.subtables.get(rule.mask) if classifier else None
    for other in subtable.by_value.get(rule.value, ()) if subtable else ():
        if other.priority == rule.priority:
            if not (other.clauses and rule.clauses):
                raise BadMatch(f"has the match and priority of row {other.row}, must be of one rule")
            rule = rule._replace(clauses=tuple(dict.fromkeys((*other.clauses, *rule.clauses))))
    switch.add(table, rule)


def _require_groups(operations: tuple[Operation, ...], groups: dict[int, GroupTable], where: str) -> None:
    """Raise BadMatch where a group is not there."""
    for operation in operations:
        if isinstance(operation, Group) and operation.number not in groups:
            raise BadMatch(
                f"group {operation.number} is not in {where}"
                if where
                else f"action group:{operation.number} needs groups: give the output of ovs-ofctl "
                "dump-groups (groups = ...)",
                near=(str(operation.number), map(str, groups)) if groups else None,
            )
        if isinstance(operation, Clone):
            _require_groups(operation.operations, groups, where)


def list_targets(switch: Switch) -> set[int]:
    """Return the tables that operations go to."""
    waiting = [rule.operations for classifier in switch.tables.values() for rule in classifier.rules()]
    waiting += [bucket.operations for group in switch.groups.values() for bucket in group.buckets]
    targets: set[int] = set()
    for operations in set(waiting):
        for operation in operations:
            if isinstance(operation, Goto | Track) and operation.table is not None:
                targets.add(operation.table)
    return targets


def read_header(text: str, layout: Layout = LAYOUT) -> int:
    """Return the header of a packet as it arrives, with the later results of tracking and hashing.

    raises  BadMatch for what is no field of a packet
    """
    require_short_numbers(text)
    translated, others = translate_own(text)
    for name in others:
        raise BadMatch(f"there is no field '{name}' that is read", near=(name, [*FIELDS, *OTHER_NAMES]))
    cubes = layout.parse(translated)
    if len(cubes) > 1:
        raise BadMatch("a header has one value for each field, not a range")
    value, mask = cubes[0]
    if mask & REGISTERS:
        raise BadMatch("a packet has no registers: they are 0 when it arrives")
    if mask & layout.full_mask(("recirc_id",)):
        raise BadMatch("a packet that arrives has no recirc_id")
    return value
