"""Groups of a switch in the output of `ovs-ofctl dump-groups`, and the bucket that a hash selects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from planner.contract.tables import shorten_faults
from planner.errors import InputError
from planner_models.flowtables.problem.actions import Decrement, Set, Show
from planner_models.flowtables.problem.evaluation.bits import LAYOUT, FieldBits, read_bits, read_whole
from planner_models.flowtables.problem.evaluation.operations import (
    Clone,
    DecrementLabel,
    Operation,
    PopLabel,
    PushLabel,
    read_operations,
)
from planner_models.flowtables.problem.openflow_actions import split_actions
from planner_models.flowtables.problem.openflow_fields import read_port
from planner_models.flowtables.problem.values import BadMatch, describe_first

TYPES: Final = ("all", "select", "indirect", "ff", "fast_failover")
LEAST_HASHES: Final = 16
MOST_HASHES: Final = 64
FINAL: Final = re.compile(
    r"(output|group|resubmit|ct|controller|\d+$|IN_PORT|LOCAL|NORMAL|FLOOD|ALL)", re.IGNORECASE
)


class Bucket(NamedTuple):
    """Actions of a bucket; `watch_port` is that of which it needs the link, -1 for none."""

    operations: tuple[Operation, ...]
    weight: int
    watch_port: int


@dataclass(frozen=True, kw_only=True)
class GroupTable:
    """A group: its type, buckets, and the fields that its hash has; none: a hash of the datapath."""

    kind: str
    buckets: tuple[Bucket, ...]
    fields: tuple[FieldBits, ...]

    @cached_property
    def hashes(self) -> list[int]:
        """The bucket of each value of the hash, by Webster's method, as Open vSwitch shares them out.

        Empty where weights need more than 64 values, so that the switch hashes the packet itself.
        """
        weights = [bucket.weight for bucket in self.buckets]
        if not any(weights):
            return []
        slots = -(-sum(weights) // min(weight for weight in weights if weight))
        count = max(LEAST_HASHES, 1 << (slots - 1).bit_length())
        if count > MOST_HASHES:
            return []
        values, divisors = [float(weight) for weight in weights], [1] * len(weights)
        result = []
        for _ in range(count):
            winner = max(range(len(values)), key=lambda index: values[index])
            result.append(winner)
            divisors[winner] += 2
            values[winner] = weights[winner] / divisors[winner]
        return result


def read_groups(text: str, where: str) -> dict[int, GroupTable]:
    """Return the groups in the output of `ovs-ofctl dump-groups`, or in a file for `add-groups`, by number.

    raises  InputError with a line for each row that is no group
    """
    groups: dict[int, GroupTable] = {}
    faults: list[str] = []
    for row, line in enumerate(text.splitlines()):
        if not line.strip() or line.strip().startswith("#") or "reply" in line:
            continue
        try:
            number, group = _read_group(line.strip())
            if number in groups:
                raise BadMatch(f"group {number} is there twice")
            groups[number] = group
        except BadMatch as error:
            describe_first(faults, f"{where} row {row + 1}: ", error)
    if faults:
        raise InputError(*shorten_faults(faults, where, "that cannot be read"))
    return groups


def _read_group(line: str) -> tuple[int, GroupTable]:
    """Return number and content of a line of `dump-groups`."""
    head, *texts = re.split(r",?\s*bucket=", line)
    options = dict(item.partition("=")[::2] for item in re.findall(r"(?:fields\([^)]*\)|[^,\s]+)", head))
    if "group_id" not in options:
        raise BadMatch("has no group_id, must be a line of ovs-ofctl dump-groups")
    kind = options.get("type", "")
    if kind not in TYPES:
        raise BadMatch(f"type is '{kind}', must be one of {', '.join(TYPES)}", near=(kind, TYPES))
    fields = next((name for name in options if name.startswith("fields(")), "")
    names = [name for name in re.split(r"[(),\s]+", fields)[1:] if name]
    if kind == "select" and options.get("selection_method") == "hash" and not names:
        raise BadMatch("selects by a hash without fields, must have fields(...)")
    buckets = tuple(_read_bucket(text) for text in texts)
    made = GroupTable(
        kind="ff" if kind == "fast_failover" else kind,
        buckets=buckets,
        fields=tuple(read_bits(name.partition("=")[0]) for name in names),
    )
    return read_whole(options["group_id"], "group_id", 0xFFFFFFFF), made


def _read_bucket(text: str) -> Bucket:
    """Return a bucket; its actions run in the order of an action set."""
    weight, port = 1, -1
    options, _, actions = text.partition("actions=") if "actions=" in text else ("", "", "")
    if "actions=" not in text:
        pieces = split_actions(text)
        option_pieces = [
            piece for piece in pieces if re.match(r"(bucket_id|weight|watch_port|watch_group)[:=]", piece)
        ]
        options = ",".join(option_pieces)
        actions = ",".join(piece for piece in pieces if piece not in option_pieces)
    for option in filter(None, options.strip(",").split(",")):
        name, _, value = option.replace(":", "=", 1).partition("=")
        if name == "watch_group" and value not in ("", "any", "ANY"):
            raise BadMatch("watches a group, which is not modelled: name its port by watch_port")
        if name == "weight":
            weight = read_whole(value, "weight", 0xFFFF)
        elif name == "watch_port" and value.lower() != "any":
            port = read_port(value, "watch_port is")
    finals = [action for action in split_actions(actions) if FINAL.match(action)]
    if len({action.partition(":")[0].partition("(")[0] for action in finals}) > 1 or len(finals) > 1:
        raise BadMatch(
            f"bucket '{actions}' has {len(finals)} actions that forward a packet; a bucket is an action set, "
            "which has one of them"
        )
    operations, clauses = read_operations(actions, LAYOUT)
    if clauses:
        raise BadMatch("a bucket has a conjunction, must have none")
    return Bucket(tuple(sorted(operations, key=_rank)), weight, port)


def _rank(operation: Operation) -> int:
    """Return the place of an action in an action set."""
    if isinstance(operation, PopLabel):
        return 0
    if isinstance(operation, PushLabel):
        return 1
    if isinstance(operation, Decrement | DecrementLabel):
        return 2
    if isinstance(operation, Set) or (isinstance(operation, Show) and operation.text.startswith("set:")):
        return 3
    return 4 if not isinstance(operation, Clone) else 5
