"""Problem of a switch with tables that are evaluated for its packets: their entries, as rules.

The entries that Open vSwitch makes for the packets of the table `flows` become the rules of one table, and
each lookup of a packet in the cache a row of `flows`. A header that no packet has is dropped there, so that
designs may join entries only where all headers are known to have the same action.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from planner.contract.notes import add_note
from planner.contract.tables import file_name, row_name, shorten_faults
from planner.errors import InputError
from planner_models.flowtables.problem.actions import NORMAL, Decrement, Show
from planner_models.flowtables.problem.evaluation.bits import (
    EVALUATED,
    LAYOUT,
    REGISTERS,
    field_mask,
    put_field,
)
from planner_models.flowtables.problem.evaluation.interpreter import Entry, Evaluation, Switch, Visit
from planner_models.flowtables.problem.evaluation.operations import Learn, Operation
from planner_models.flowtables.problem.evaluation.reading import list_targets, read_header
from planner_models.flowtables.problem.schema import EVALUATED as FROM_TABLES
from planner_models.flowtables.problem.values import ALWAYS, BadMatch, describe_first

LEARNING_ROUNDS = 2
TTL = 64


class Evaluated(NamedTuple):
    """The tables of a problem with evaluated entries as rules."""

    rules: pd.DataFrame
    fields: pd.DataFrame
    flows: pd.DataFrame
    installed: pd.DataFrame


def evaluate(switch: Switch, flows: pd.DataFrame, where: str) -> Evaluated:
    """Return the entries that packets make, and each of their lookups in the cache.

    where   name of the file of rules in notes
    raises  InputError with a line for each row without a header, and for packets without an end
    """
    headers = _read_headers(flows)
    headers = _assume(switch, headers, file_name(flows, "flows"))
    _note_tables(switch, where)
    _learn(switch, headers, where)
    evaluation = Evaluation(switch)
    visits_of: dict[int, list[Visit]] = {}
    for header in headers:
        if header not in visits_of:
            visits_of[header] = evaluation.follow(header)
    entries = list(dict.fromkeys(visit.entry for visits in visits_of.values() for visit in visits))
    names, bits = _list_fields(entries)
    rows: list[dict[str, object]] = []
    columns = [name for name in flows.columns if name != "header"]
    texts: dict[int, list[str]] = {
        header: [_format(visit.header & bits, bits) for visit in visits]
        for header, visits in visits_of.items()
    }
    for row, header in enumerate(headers):
        record = {name: flows[name].iloc[row] for name in columns}
        rows += [{"header": text, **record} for text in texts[header]]
    made = pd.DataFrame(rows, columns=["header", *columns])
    if len(made) > len(flows):
        add_note(
            f"{len(flows):,} connections are looked up {len(made):,} times in the cache: packets come back "
            "after connection tracking, for the hash of a group, or behind a label"
        )
    matches = [LAYOUT.format_match(entry.value, entry.mask) for entry in entries]
    rules = pd.DataFrame(
        {"priority": 1.0, "match": matches, "action": [entry.action for entry in entries], "table": 0.0}
    ).astype({"match": object, "action": object})
    fields = pd.DataFrame(
        [(name, EVALUATED[name][0], EVALUATED[name][1], 0.0, EVALUATED[name][2]) for name in names],
        columns=["field", "bits", "stage", "prefix", "role"],
    )
    consulted = [_format_consulted(entry) for entry in entries]
    installed = pd.DataFrame({"match": matches, "origin": FROM_TABLES, "consulted": consulted})
    installed = installed.astype({"match": object, "consulted": object})
    return Evaluated(rules, fields, made, installed)


def _read_headers(flows: pd.DataFrame) -> list[int]:
    """Return the header of each connection as it arrives."""
    header_of: dict[str, int] = {}
    faults: list[str] = []
    for row, text in enumerate(flows["header"].astype(str)):
        if text not in header_of:
            try:
                header_of[text] = read_header(text)
            except BadMatch as error:
                header_of[text] = 0
                describe_first(faults, f"{row_name(flows, 'flows', row)}: header '{text}': ", error)
    if faults:
        raise InputError(*shorten_faults(faults, file_name(flows, "flows"), "with a bad header"))
    return [header_of[text] for text in flows["header"].astype(str)]


def _list_operations(switch: Switch) -> set[Operation]:
    """Return the different operations of all rules and buckets."""
    lists = {rule.operations for classifier in switch.tables.values() for rule in classifier.rules()}
    lists |= {bucket.operations for group in switch.groups.values() for bucket in group.buckets}
    return {operation for operations in lists for operation in operations}


def _assume(switch: Switch, headers: list[int], where: str) -> list[int]:
    """Return headers with a time to live, and addresses of Ethernet for NORMAL, where none has them."""
    operations = _list_operations(switch)
    is_lowered = any(isinstance(operation, Decrement) for operation in operations)
    if is_lowered and not any(header & field_mask("nw_ttl") for header in headers):
        add_note(f"assumed: no header of {where} has nw_ttl, which dec_ttl reads; all have {TTL}")
        headers = [put_field(header, "nw_ttl", TTL) for header in headers]
    is_normal = any(isinstance(operation, Show) and operation.text == NORMAL for operation in operations)
    addresses = LAYOUT.full_mask(("eth_src", "eth_dst"))
    if is_normal and not any(header & addresses for header in headers):
        add_note(
            f"assumed: no header of {where} has eth_src and eth_dst, which NORMAL matches exactly; each "
            "connection has another one"
        )
        headers = [put_field(header, "eth_src", row + 1) for row, header in enumerate(headers)]
    if not any(header & field_mask("in_port") for header in headers):
        add_note(f"assumed: no header of {where} has in_port, which every entry matches; all have 0")
    return headers


def _note_tables(switch: Switch, where: str) -> None:
    """Note tables without rules, and a missing table 0."""
    empty = sorted(list_targets(switch) - switch.tables.keys())
    if empty:
        add_note(
            f"assumed: tables {', '.join(map(str, empty))} have no rules in {where}, so that their packets "
            "are dropped there"
        )
    if 0 not in switch.tables:
        add_note(f"warning: {where} has no rule of table 0, where packets start: all of them are dropped")


def _learn(switch: Switch, headers: list[int], where: str) -> None:
    """Add the rules that packets add, so that entries are those of packets after all rules are learned."""
    if not any(isinstance(operation, Learn) for operation in _list_operations(switch)):
        return
    evaluation = Evaluation(switch, with_learning=True)
    for _ in range(LEARNING_ROUNDS):
        for header in dict.fromkeys(headers):
            evaluation.follow(header)
    learned = {(table, rule.priority, rule.value, rule.mask) for table, rule in switch.learned}
    add_note(
        f"assumed: packets have added {len(learned):,} rules to tables of {where} (learn) before their "
        "entries are counted; none has expired"
    )


def _list_fields(entries: list[Entry]) -> tuple[list[str], int]:
    """Return the fields that entries match, and those that all of them must, and their bits."""
    used = 0
    for entry in entries:
        used |= entry.mask
    names = [
        name
        for name, (_, _, role) in EVALUATED.items()
        if not field_mask(name) & REGISTERS and (role == ALWAYS or used & field_mask(name))
    ]
    return names, LAYOUT.full_mask(names)


def _format_consulted(entry: Entry) -> str:
    """Return the tables that consulted bits of an entry first, with these bits, as `table: mask; ...`."""
    return "; ".join(f"{table}: {LAYOUT.format_mask(bits)}" for table, bits in entry.consulted)


def _format(header: int, bits: int) -> str:
    """Return a header as text, without fields of value 0."""
    mask = sum(field_mask(name) for name in EVALUATED if header & field_mask(name))
    return LAYOUT.format_match(header, mask & bits) or "eth_type=0"
