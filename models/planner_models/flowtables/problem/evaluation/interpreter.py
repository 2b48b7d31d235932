"""Evaluation of a switch's tables for one packet: its entries in the cache of the datapath, with their masks.

A packet comes back to the datapath after connection tracking, for the hash of a group, or where the header
behind a removed label must be read (`recirc`): each time it is looked up in the cache again, and has another
entry. An entry matches the bits that decided: those that the classifier consulted in each table, and those
that actions read. Registers and metadata belong to the packet's way, not to the entry.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from planner.errors import InputError
from planner_models.flowtables.problem.actions import (
    CONTROLLER,
    DROP,
    RESERVED,
    Copy,
    Decrement,
    Exit,
    Goto,
    Output,
    Set,
    Show,
)
from planner_models.flowtables.problem.evaluation.bits import (
    LAYOUT,
    REGISTERS,
    TRACKED,
    field_mask,
    get_bits,
    get_field,
    mask_of,
    put_bits,
    put_field,
)
from planner_models.flowtables.problem.evaluation.classifier import Classifier, Rule, Segments, make_segments
from planner_models.flowtables.problem.evaluation.groups import Bucket, GroupTable
from planner_models.flowtables.problem.evaluation.operations import (
    MPLS,
    ClearTrack,
    Clone,
    DecrementLabel,
    Group,
    Learn,
    Operation,
    Pop,
    PopLabel,
    Push,
    PushLabel,
    SetLabel,
    Track,
)
from planner_models.flowtables.problem.values import IPV4, IPV6

NEW_AND_TRACKED: Final = 0x21
MOST_LOOKUPS: Final = 4_096
MOST_DEPTH: Final = 64
MOST_PASSES: Final = 32
Frame = tuple[tuple[Operation, ...], int]
"""Operations and the index of the next one."""
IP_AND_PORTS: Final = tuple(item.name for item in LAYOUT.fields if item.stage >= 2)
LAYERS_ABOVE: Final = LAYOUT.full_mask(IP_AND_PORTS)


class Frozen(NamedTuple):
    """The way that a packet goes on after it comes back: lookup in a table, or operations that remain.

    registers  their values, with the port of input that rules match
    """

    table: int
    frames: tuple[Frame, ...]
    registers: int
    port: int
    stack: tuple[int, ...]


class Following(NamedTuple):
    """A packet that comes back: identifier of its way, and the changes of its header.

    target  value and mask of addresses to which a new connection is translated
    """

    recirc_id: int
    value: int
    mask: int
    kind: str
    target: tuple[int, int] = (0, 0)


class Entry(NamedTuple):
    """An entry of the cache: the cube of headers, the action of the datapath, and packets that come back.

    consulted  tables in the order of lookups, with the bits that each was the first to consult
    """

    value: int
    mask: int
    action: str
    following: tuple[Following, ...]
    consulted: tuple[tuple[int, int], ...]


class Visit(NamedTuple):
    """One lookup of a packet in the cache: its header then, and its entry."""

    header: int
    entry: Entry


@dataclass
class Switch:
    """Tables and groups of a switch.

    down     ports whose links are down
    learned  rules that packets have added, in order
    """

    tables: dict[int, Classifier] = field(default_factory=dict)
    groups: dict[int, GroupTable] = field(default_factory=dict)
    down: frozenset[int] = frozenset()
    learned: list[tuple[int, Rule]] = field(default_factory=list)
    segments: Segments = field(default_factory=lambda: make_segments(LAYOUT))
    frozen: dict[Frozen, int] = field(default_factory=dict)
    ways: list[Frozen] = field(default_factory=list)

    def add(self, table: int, rule: Rule) -> None:
        """Add a rule to a table."""
        if table not in self.tables:
            self.tables[table] = Classifier(self.segments)
        self.tables[table].add(rule)

    def number(self, way: Frozen) -> int:
        """Return the identifier of packets that go on in some way; 0 is that of packets that arrive."""
        if way not in self.frozen:
            self.ways.append(way)
            self.frozen[way] = len(self.ways)
        return self.frozen[way]


class Evaluation:
    """Evaluation of packets, with the entries that they have made so far.

    with_learning  whether packets add rules; then no entry is taken again
    """

    def __init__(self, switch: Switch, *, with_learning: bool = False) -> None:
        self.switch = switch
        self.with_learning = with_learning
        self.entries: dict[int, dict[int, Entry]] = {}

    def follow(self, header: int) -> list[Visit]:
        """Return the lookups of a packet in the cache, in order.

        header  as it arrives; `ct_state`, `ct_mark`, `ct_label` and `dp_hash` are what tracking and hashing
                of the datapath will say of it
        raises  InputError where it comes back more than 32 times
        """
        visits: list[Visit] = []
        arriving = header & ~TRACKED & ~field_mask("dp_hash")
        if get_field(header, "eth_type") in MPLS:
            arriving &= ~LAYERS_ABOVE
        waiting = deque([arriving])
        while waiting:
            current = waiting.popleft()
            entry = self._find(current)
            visits.append(Visit(current, entry))
            if len(visits) > MOST_PASSES:
                raise InputError(
                    f"rules: a packet comes back more than {MOST_PASSES} times, must come to an end"
                )
            for following in entry.following:
                waiting.append(_come_back(current, header, following))
        return visits

    def _find(self, header: int) -> Entry:
        """Return the entry of a header, made where there is none."""
        if not self.with_learning:
            for mask, by_value in self.entries.items():
                entry = by_value.get(header & mask)
                if entry is not None:
                    return entry
        entry = Run(self.switch, header, with_learning=self.with_learning).evaluate()
        self.entries.setdefault(entry.mask, {})[entry.value] = entry
        return entry


def _come_back(current: int, original: int, following: Following) -> int:
    """Return the header of a packet that comes back to the datapath."""
    header = current & ~following.mask | following.value
    header = put_field(header, "recirc_id", following.recirc_id)
    if following.kind == "ct" and not get_field(header, "ct_state"):
        header = put_field(header, "ct_state", get_field(original, "ct_state") or NEW_AND_TRACKED)
    if following.kind == "ct":
        marks = field_mask("ct_mark") | field_mask("ct_label")
        header = header & ~marks | original & marks
        if get_field(header, "ct_state") == NEW_AND_TRACKED:
            header = header & ~following.target[1] | following.target[0]
    if following.kind == "hash":
        header = put_field(header, "dp_hash", get_field(original, "dp_hash") or _hash(original))
    if following.kind == "label" and get_field(header, "eth_type") not in MPLS:
        header = header & ~LAYERS_ABOVE | original & LAYERS_ABOVE
    return header


def _hash(header: int) -> int:
    """Return a hash of addresses, protocol and ports, not 0: the datapath's own is not known."""
    return zlib.crc32((header & LAYERS_ABOVE).to_bytes(8 * LAYOUT.words, "big")) or 1


class Run:
    """One pass of a packet through the tables of a switch.

    current   header and registers as rules see them
    base      header as the datapath has it, with the changes sent so far
    mask      bits that have decided
    words     actions of the datapath
    frames    operations that remain where the packet must come back first, the innermost first
    """

    def __init__(self, switch: Switch, header: int, *, with_learning: bool) -> None:
        self.switch = switch
        self.original = header
        self.current = self.base = header
        self.with_learning = with_learning
        self.mask = LAYOUT.always_of(header)
        self.words: list[str] = []
        self.consulted: list[tuple[int, int]] = []
        self.following: list[Following] = []
        self.stack: list[int] = []
        self.lookups = self.depth = 0
        self.is_over = self.is_returning = self.is_unlabelled = False
        self.reason = ""
        self.frames: list[Frame] = []
        self.written = 0

    def evaluate(self) -> Entry:
        """Return the entry of the packet."""
        number = get_field(self.original, "recirc_id")
        if not number:
            self._look_up(0)
        else:
            self._go_on(self.switch.ways[number - 1])
        if self.reason:
            self._freeze()
        mask = self.mask & ~REGISTERS & LAYOUT.find_present(self.original)
        if get_field(self.original, "eth_type") not in MPLS:
            mask &= ~LAYOUT.full_mask(name for name in LAYOUT.by_name if name.startswith("mpls_"))
        action = " ".join(self.words) or DROP
        consulted = tuple((table, bits & mask) for table, bits in self.consulted if bits & mask)
        return Entry(self.original & mask, mask, action, tuple(self.following), consulted)

    def _go_on(self, way: Frozen) -> None:
        """Run the remaining operations of a packet that has come back."""
        self.current = self.current & ~REGISTERS | way.registers
        self.current = put_field(self.current, "in_port", way.port)
        self.stack = list(way.stack)
        if way.table >= 0:
            self._look_up(way.table)
        for index, (operations, start) in enumerate(way.frames):
            self._execute(operations, start)
            if self.reason:
                self.frames += way.frames[index + 1 :]
            if self.is_over:
                return

    def _look_up(self, table: int) -> None:
        """Look the packet up in a table, and run the rule."""
        self.lookups += 1
        if self.lookups > MOST_LOOKUPS or self.depth >= MOST_DEPTH:
            raise InputError(f"rules: packets loop through table {table}, must come to an end")
        classifier = self.switch.tables.get(table)
        if classifier is None:
            return
        rule, mask = classifier.look_up(self.current, self.mask)
        self.consulted.append((table, mask & ~self.mask))
        self.mask = mask
        if rule is not None:
            self.depth += 1
            self._execute(rule.operations, 0)
            self.depth -= 1

    def _execute(self, operations: tuple[Operation, ...], start: int) -> None:
        """Run operations until one ends them; those that remain are noted where the packet must come back."""
        for index in range(start, len(operations)):
            operation = operations[index]
            if self.is_unlabelled and _needs_header(operation):
                self.reason, self.is_over = "label", True
            else:
                HANDLERS[type(operation)](self, operation)
            if self.is_over:
                if self.reason:
                    self.frames.append((operations, index if not self.frames else index + 1))
                return
            if self.is_returning:  # an expired packet ends the actions of its rule only
                self.is_returning = False
                return

    # --- operations -----------------------------------------------------------------------

    def _show(self, step: Show) -> None:
        self.mask |= step.reads & ~REGISTERS
        if step.text.startswith("out:"):
            self._send(step.text)
        elif not step.text.startswith(("set:", "count:")):
            self._commit()
            self.words.append(step.text)

    def _output(self, step: Output) -> None:
        self.mask |= step.port.mask & ~REGISTERS
        number = self.current >> step.port.shift & ((1 << step.port.size) - 1)
        self._send(RESERVED.get(number, f"out:{number}") if number != 0xFFFF else "")

    def _send(self, word: str) -> None:
        """Send the packet to a port; not to that of input."""
        if word and word != f"out:{get_field(self.current, 'in_port')}":
            self._commit()
            self.words.append(word)

    def _set(self, step: Set) -> None:
        self.mask |= step.reads & ~REGISTERS
        self._write(self.current & ~step.mask | step.value, step.mask)

    def _write(self, header: int, mask: int) -> None:
        self.current = header
        self.written |= mask

    def _copy(self, step: Copy) -> None:
        source, target = step.source, step.target
        self.mask |= (source.mask | target.mask) & ~REGISTERS
        number = (self.current & source.mask) >> source.shift << target.shift
        self._write(self.current & ~target.mask | number, target.mask)

    def _decrement(self, step: Decrement) -> None:
        self.mask |= step.reads & ~REGISTERS
        ttl = get_field(self.current, "nw_ttl")
        if ttl > 1:
            self._write(put_field(self.current, "nw_ttl", ttl - 1), step.ttl.mask)
        else:
            self._commit()
            self.words.append(CONTROLLER)
            self.is_returning = True

    def _goto(self, step: Goto) -> None:
        port = get_field(self.current, "in_port")
        if step.port is not None:
            self.current = put_field(self.current, "in_port", step.port)
        self._look_up(step.table)
        if step.port is not None and not self.reason:
            self.current = put_field(self.current, "in_port", port)

    def _exit(self, step: Exit) -> None:
        del step
        self.is_over = True

    def _track(self, step: Track) -> None:
        self._commit()
        if isinstance(step.zone, int):
            zone = step.zone
        else:
            zone = get_bits(self.current, step.zone)
            if not get_field(self.original, "recirc_id"):
                self.mask |= mask_of(step.zone) & ~REGISTERS
        self.words.append(f"{step.text}{',' if step.text[-1] != ':' else ''}zone={zone}")
        if step.table is not None:
            value = mask = 0
            for name, number in step.target if step.commit else ():
                value |= number << LAYOUT.shift[name]
                mask |= field_mask(name)
            way = Frozen(step.table, (), *self._remember())
            self._come_back(way, "ct", (zone << LAYOUT.shift["ct_zone"], TRACKED), (value, mask))
        self.current &= ~TRACKED

    def _remember(self) -> tuple[int, int, tuple[int, ...]]:
        """Return the registers, port of input and stack of a packet that comes back."""
        return self.current & REGISTERS, get_field(self.current, "in_port"), tuple(self.stack)

    def _come_back(
        self, way: Frozen, kind: str, written: tuple[int, int] = (0, 0), target: tuple[int, int] = (0, 0)
    ) -> None:
        """Send the packet back to the datapath, which then goes on in some way.

        written  value and mask of what the datapath writes itself; target: see `Following`
        """
        number = self.switch.number(way)
        self.words.append(f"recirc:{number}")
        value, mask = written
        changed = (self.written | mask) & ~REGISTERS & ~field_mask("in_port")
        self.following.append(Following(number, self.base & changed & ~mask | value, changed, kind, target))

    def _freeze(self) -> None:
        """Send the packet back to the datapath with the operations that remain."""
        self._commit()
        if self.reason == "hash":
            self.words.append("hash:l4")
        self._come_back(Frozen(-1, tuple(self.frames), *self._remember()), self.reason)
        self.frames, self.reason, self.is_over = [], "", False

    def _clear_track(self, step: ClearTrack) -> None:
        del step
        if self.current & TRACKED:
            self.words.append("ct:clear")
        self.current &= ~TRACKED

    def _group(self, step: Group) -> None:
        group = self.switch.groups[step.number]
        if group.kind == "all":
            for bucket in group.buckets:
                self._run_copy(bucket.operations)
            return
        if group.kind in ("indirect", "ff"):
            live = [bucket for bucket in group.buckets if self._is_live(bucket)]
            selected = (live if group.kind == "ff" else list(group.buckets))[:1]
        else:
            selected = self._select(group)
        for bucket in selected:
            self._run_copy(bucket.operations)

    def _select(self, group: GroupTable) -> list[Bucket]:
        """Return the bucket of a packet's hash; none where it must come back with one, or none is live."""
        if self.is_unlabelled:
            self.reason, self.is_over = "label", True
            return []
        number = get_field(self.current, "dp_hash")
        hashes = group.hashes
        if group.fields or not hashes:
            read = sum(mask_of(bits) for bits in group.fields) or LAYOUT.full_mask(
                ("ip_src", "ip_dst", "ip_proto", "tp_src", "tp_dst")
            )
            self.mask |= read
            number = zlib.crc32((self.current & read).to_bytes(8 * LAYOUT.words, "big"))
            live = [bucket for bucket in group.buckets if self._is_live(bucket) and bucket.weight]
            position = number % max(sum(bucket.weight for bucket in live), 1)
            for bucket in live:
                position -= bucket.weight
                if position < 0:
                    return [bucket]
            return []
        if not number:
            self.reason, self.is_over = "hash", True
            return []
        self.mask |= (len(hashes) - 1) << LAYOUT.shift["dp_hash"]
        for offset in range(len(hashes)):
            bucket = group.buckets[hashes[(number + offset) % len(hashes)]]
            if self._is_live(bucket):
                return [bucket]
        return []

    def _is_live(self, bucket: Bucket) -> bool:
        return bucket.watch_port not in self.switch.down

    def _clone(self, step: Clone) -> None:
        self._run_copy(step.operations)

    def _run_copy(self, operations: tuple[Operation, ...]) -> None:
        """Run operations on a copy of the packet."""
        before, unlabelled, frames = self.current, self.is_unlabelled, self.frames
        self.frames = []
        self._execute(operations, 0)
        if self.reason:
            self._freeze()
        self.current, self.is_unlabelled, self.frames = before, unlabelled, frames
        self.is_over = False

    def _push(self, step: Push) -> None:
        self.mask |= mask_of(step.source) & ~REGISTERS
        self.stack.append(get_bits(self.current, step.source))

    def _pop(self, step: Pop) -> None:
        self.mask |= mask_of(step.target) & ~REGISTERS
        if self.stack:
            self._write(put_bits(self.current, step.target, self.stack.pop()), mask_of(step.target))

    def _push_label(self, step: PushLabel) -> None:
        self._commit()
        header, kind = self.current, get_field(self.current, "eth_type")
        if kind in MPLS:
            self.mask |= LAYOUT.full_mask(("mpls_label", "mpls_tc", "mpls_bos", "mpls_ttl"))
            first = get_bits(header, LABEL)
            header = put_field(header, "mpls_third", get_field(header, "mpls_second"))
            header = put_field(put_field(header, "mpls_second", first), "mpls_bos", 0)
        else:
            traffic_class, ttl = 0, 64
            if kind in (IPV4, IPV6):
                self.mask |= 0xFC << LAYOUT.shift["nw_tos"] | field_mask("nw_ttl")
                traffic_class = get_field(header, "nw_tos") >> 2 & 7
                ttl = get_field(header, "nw_ttl") or 64
            label = 2 if kind == IPV6 else 0
            header = put_bits(header, LABEL, label << 12 | traffic_class << 9 | 1 << 8 | ttl) & ~LAYERS_ABOVE
        header = put_field(header, "eth_type", step.kind)
        self._write(header, LABELS_AND_KIND)
        self.base = header & ~REGISTERS | self.base & REGISTERS
        self.words.append(f"mpls:push={get_bits(header, LABEL):#x}")
        self.is_unlabelled = False

    def _pop_label(self, step: PopLabel) -> None:
        if get_field(self.current, "eth_type") not in MPLS:
            return
        self._commit()
        self.mask |= field_mask("mpls_bos")
        header = self.current
        is_last = get_field(header, "mpls_bos")
        if not is_last:
            header = put_bits(header, LABEL, get_field(header, "mpls_second"))
            header = put_field(header, "mpls_second", get_field(header, "mpls_third"))
            self.mask |= field_mask("mpls_bos")
        header = put_field(header, "eth_type", step.kind)
        self._write(header, LABELS_AND_KIND)
        self.base = header & ~REGISTERS | self.base & REGISTERS
        self.words.append(f"mpls:pop={step.kind:#x}")
        self.is_unlabelled = step.kind not in MPLS

    def _set_label(self, step: SetLabel) -> None:
        self.mask |= field_mask(step.name)
        if get_field(self.current, "eth_type") in MPLS:
            self._write(put_field(self.current, step.name, step.value), field_mask(step.name))

    def _decrement_label(self, step: DecrementLabel) -> None:
        del step
        if get_field(self.current, "eth_type") not in MPLS:
            return
        self.mask |= field_mask("mpls_ttl")
        ttl = get_field(self.current, "mpls_ttl")
        if ttl > 1:
            self._write(put_field(self.current, "mpls_ttl", ttl - 1), field_mask("mpls_ttl"))
        else:
            self.words.append(CONTROLLER)
            self.is_returning = True

    def _learn(self, step: Learn) -> None:
        operations: list[Operation] = []
        value = mask = 0
        for item in step.parts:
            source = item.source
            if isinstance(source, int):
                number = source
            else:
                self.mask |= mask_of(source) & ~REGISTERS
                number = get_bits(self.current, source)
            if item.kind == "match":
                value, mask = put_bits(value, item.target, number), mask | mask_of(item.target)
            elif item.kind == "output":
                operations.append(Show(f"out:{number}"))
            else:
                bits = mask_of(item.target)
                operations.append(Set("", put_bits(0, item.target, number), bits, bits & ~REGISTERS))
        if self.with_learning:
            rule = Rule(step.priority, value, mask, tuple(operations), (), 0)
            self.switch.learned.append((step.table, rule))
            self.switch.add(step.table, rule)

    def _commit(self) -> None:
        """Send the changes of the header to the datapath before the packet leaves."""
        difference = (self.current ^ self.base) & ~REGISTERS & ~field_mask("in_port") & ~TRACKED
        if not difference:
            return
        for item in LAYOUT.fields:
            bits = field_mask(item.name)
            if difference & bits:
                kind = "mpls:" if item.name.startswith("mpls_") else "change:"
                self.words.append(kind + LAYOUT.format_match(self.current & bits, bits))
        self.base = self.current & ~REGISTERS | self.base & REGISTERS


LABEL: Final = (("mpls_label", 0, 20), ("mpls_tc", 0, 3), ("mpls_bos", 0, 1), ("mpls_ttl", 0, 8))
LABELS_AND_KIND: Final = LAYERS_ABOVE | LAYOUT.full_mask(
    ("eth_type", *(name for name in LAYOUT.by_name if name.startswith("mpls_")))
)
HANDLERS: Final[Mapping[type, Callable[[Run, Any], None]]] = {
    Show: Run._show,
    Output: Run._output,
    Set: Run._set,
    Copy: Run._copy,
    Decrement: Run._decrement,
    Goto: Run._goto,
    Exit: Run._exit,
    Track: Run._track,
    ClearTrack: Run._clear_track,
    Group: Run._group,
    Clone: Run._clone,
    Push: Run._push,
    Pop: Run._pop,
    PushLabel: Run._push_label,
    PopLabel: Run._pop_label,
    SetLabel: Run._set_label,
    DecrementLabel: Run._decrement_label,
    Learn: Run._learn,
}


def _needs_header(operation: Operation) -> bool:
    """Return whether an operation on a packet without its label needs the header behind it."""
    if isinstance(operation, Show | Output | Group | SetLabel):
        return False
    if isinstance(operation, Set):
        return bool(operation.mask & LAYERS_ABOVE)
    return True
