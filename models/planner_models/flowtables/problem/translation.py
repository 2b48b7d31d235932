"""Rules with registers, changed headers and several lookups, translated into tables of plain entries.

A packet is followed through the flow tables with a symbolic header: some bits are constants that actions
wrote (registers are 0 at the start), some are copies of bits of the packet as it came, all others are these
bits themselves. Each lookup in a flow table, with what is known of the header then, with the steps that
follow and with what was done so far, is a table of its own: its entries are cubes of the packet as it came,
so that the last one that a packet meets has its final action. Equal lookups are one table.

source  Pfaff et al. 2015, 3.2 and 5; `xlate_actions` of Open vSwitch for what is matched with each action
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import reduce
from itertools import chain, pairwise
from operator import or_
from typing import Final, NamedTuple

import numpy as np

from planner.errors import InputError
from planner_models.flowtables.problem.actions import (
    CONTROLLER,
    DROP,
    RESERVED,
    Bits,
    Copy,
    Decrement,
    Exit,
    Goto,
    Output,
    Set,
    Show,
    Step,
)
from planner_models.flowtables.problem.fields import Layout, Words
from planner_models.flowtables.problem.values import Cube, split_range

MOST_ENTRIES: Final = 300_000
MOST_LOOKUPS: Final = 64  # of a packet, as in Open vSwitch
TTL_BITS: Final = 8


class State(NamedTuple):
    """Known bits of a header and its registers.

    mask, value  bits that are constants, of whole headers
    copies       lowest bit, number of bits, and lowest bit of the packet that they are copies of
    lowered      how often the time to live was lowered
    """

    mask: int
    value: int
    copies: tuple[tuple[int, int, int], ...] = ()
    lowered: int = 0

    def write(self, value: int, mask: int) -> State:
        """Return the state after constants are written."""
        return self._replace(
            mask=self.mask | mask, value=(self.value & ~mask) | value, copies=_cut(self.copies, mask)
        )

    def copied_mask(self) -> int:
        """Return the mask of the bits that are copies."""
        return sum(((1 << count) - 1) << low for low, count, _ in self.copies)


class Waiting(NamedTuple):
    """Steps of a rule that follow after a lookup: the rule, and the number of its next step."""

    rule: int
    step: int


class Lookup(NamedTuple):
    """A lookup: its flow table, the known bits, the waiting steps, and the steps so far that are shown.

    port   of input in this lookup; -1 for the packet's own
    ttl    where the time to live is looked up before a rule goes on, instead of a flow table
    """

    table: int
    state: State
    waiting: tuple[Waiting, ...]
    shown: tuple[str, ...]
    reads: int
    port: int = -1
    ttl: bool = False


class Translated(NamedTuple):
    """Entries of all lookups, one after another by matching order; the first lookup is a packet's first.

    cube    value and mask of each entry on the packet as it came
    action  number of the action; next: lookup that follows, -1 for none
    row     place of the rule's cube in the pipeline, -1 for none
    start   first entry of each lookup, and their number
    names, needs  name of each action, and mask of the bits that its entries must match
    lookup  of each table of entries
    """

    cube: list[Cube]
    action: list[int]
    next: list[int]
    row: list[int]
    start: list[int]
    names: list[str]
    needs: list[int]
    lookup: list[Lookup]


class Pipeline(NamedTuple):
    """Flow tables: the cubes of all rules by table and matching order, and the steps of each rule.

    value, mask  (N, words) on whole headers
    cube         the same as integers
    rule         (N,) row of `rules`; priority (N,)
    start        first cube of each table, by its place; numbers: place of each table by its number
    steps        of each rule
    where        how errors name each rule
    """

    value: Words
    mask: Words
    cube: list[Cube]
    rule: list[int]
    priority: list[int]
    start: list[int]
    places: dict[int, int]
    steps: Sequence[list[Step]]
    where: Sequence[str]


def translate(pipeline: Pipeline, layout: Layout, registers: int) -> Translated:
    """Return the entries of all lookups of packets from table 0 on.

    layout     of whole headers, registers after the fields of packets
    registers  mask of the registers
    raises     InputError where packets loop, where too many entries are needed, or where a rule matches what
               is not known any more
    """
    return _Translation(pipeline, layout, registers).run()


class _Translation:
    """Lookups so far and those that wait for their entries."""

    def __init__(self, pipeline: Pipeline, layout: Layout, registers: int) -> None:
        self.pipeline, self.layout, self.registers = pipeline, layout, registers
        self.number: dict[Lookup, int] = {}
        self.depth: list[int] = []
        self.queue: deque[Lookup] = deque()
        self.action_of: dict[str, int] = {DROP: 0}
        self.names, self.needs = [DROP], [0]
        self.ttl = layout.shift.get("nw_ttl", -1)
        self.ttl_mask = layout.full_mask(["nw_ttl"]) if self.ttl >= 0 else 0

        self.read_by_rule, self.read_by_table = find_read(pipeline)

    def _forget(self, lookup: Lookup) -> Lookup:
        """Return a lookup without the values of bits that neither it nor later steps read.

        Lookups that differ in such bits alone are one.
        """
        read = self.read_by_table[lookup.table]
        for waiting in lookup.waiting:
            read |= self.read_by_rule[waiting.rule]
        state = lookup.state
        unread = state.copied_mask() & self.registers & ~read
        if unread:
            state = state.write(0, unread)
        return lookup._replace(state=state._replace(value=state.value & read))

    def run(self) -> Translated:
        """Return the entries of all lookups."""
        first = self._forget(Lookup(0, State(self.registers, 0), (), (), 0))
        self._visit(first, 0)
        made = Translated([], [], [], [], [], self.names, self.needs, [])
        while self.queue:
            lookup = self.queue.popleft()
            made.start.append(len(made.cube))
            made.lookup.append(lookup)
            depth = self.depth[self.number[lookup]]
            for cube, row, action, following in self._list_entries(lookup, depth):
                made.cube.append(cube)
                made.row.append(row)
                made.action.append(action)
                made.next.append(following)
                if not cube[1]:
                    break  # what follows is met by no packet
            if len(made.cube) > MOST_ENTRIES:
                raise InputError(
                    f"rules: need more than {MOST_ENTRIES:,} entries where registers have their values; "
                    "leave out tables, or ports of input"
                )
        made.start.append(len(made.cube))
        self._require_no_loop(made)
        return made

    def _visit(self, lookup: Lookup, depth: int, rule: int = -1) -> int:
        """Return the number of a lookup; a new one waits for its entries."""
        if depth > MOST_LOOKUPS:
            raise InputError(
                f"{self.pipeline.where[rule]}: packets are looked up more than {MOST_LOOKUPS} times, as deep "
                "as Open vSwitch goes; does a resubmit loop?"
            )
        lookup = self._forget(lookup)
        if lookup not in self.number:
            self.number[lookup] = len(self.number)
            self.depth.append(depth)
            self.queue.append(lookup)
        return self.number[lookup]

    def _list_entries(self, lookup: Lookup, depth: int) -> list[tuple[Cube, int, int, int]]:
        """Return cube, place in the pipeline, action and following lookup of a lookup's entries, in order."""
        if lookup.ttl:
            return self._split_by_ttl(lookup, depth)
        entries = []
        state, looked = lookup.state, find_looked(lookup, self.layout)
        for row in self._list_candidates(lookup.table, looked):
            rule = self.pipeline.rule[row]
            cube = self._restore(self.pipeline.cube[row], looked, rule)
            if cube is None:
                continue
            ends = self._go_on(rule, 0, lookup, state, depth)
            entries.append((cube, row, *ends))
            if not cube[1]:
                return entries
        # packets that no rule matches go back to what waits
        if lookup.waiting or lookup.shown or lookup.reads:
            entries.append(((0, 0), -1, *self._return(lookup, state, lookup.shown, lookup.reads, depth)))
        return entries

    def _list_candidates(self, table: int, state: State) -> list[int]:
        """Return the cubes of a flow table that the constants of a header do not rule out."""
        start, end = self.pipeline.start[table : table + 2]
        value, mask = self.layout.to_words([state.value, state.mask])
        differs = (self.pipeline.value[start:end] ^ value) & self.pipeline.mask[start:end] & mask
        return (np.flatnonzero(~differs.any(axis=1)) + start).tolist()

    def _restore(self, cube: Cube, state: State, rule: int) -> Cube | None:
        """Return a cube of the header as it is, on the packet as it came; None where no packet is in it."""
        value, mask = cube
        if (value ^ state.value) & mask & state.mask:
            return None
        mask &= ~state.mask
        value &= mask
        parts: list[Cube] = []
        for low, count, source in state.copies:
            bits = (mask >> low) & ((1 << count) - 1)
            parts.append((((value >> low) & bits) << source, bits << source))
            mask &= ~(bits << low)
            value &= mask
        if state.lowered and mask & self.ttl_mask:
            if mask & self.ttl_mask != self.ttl_mask:
                raise InputError(
                    f"{self.pipeline.where[rule]}: matches some bits of nw_ttl after dec_ttl, must match all"
                )
            number = ((value & self.ttl_mask) >> self.ttl) + state.lowered
            if number >= 1 << TTL_BITS:
                return None
            value = (value & ~self.ttl_mask) | number << self.ttl
        for own_value, own_mask in parts:
            if (own_value ^ value) & own_mask & mask:
                return None
            value, mask = value | own_value, mask | own_mask
        return value, mask

    def _find_needs(self, state: State, reads: int) -> int:
        """Return the bits of the packet as it came that an entry must match with bits of the header."""
        return reads & ~state.mask & ~state.copied_mask() & ~self.registers

    def _go_on(self, rule: int, step: int, lookup: Lookup, state: State, depth: int) -> tuple[int, int]:
        """Return the action and the following lookup of packets that reach a step of a rule."""
        shown, reads = lookup.shown, lookup.reads
        steps = self.pipeline.steps[rule]
        for index in range(step, len(steps)):
            current = steps[index]
            if isinstance(current, Goto):
                return self._look_up(current, rule, index + 1, lookup, state, shown, reads, depth)
            if isinstance(current, Exit):
                return self._finish(shown, reads), -1
            if isinstance(current, Decrement):
                following = lookup._replace(
                    state=state, shown=shown, reads=reads | self._find_needs(state, current.reads),
                    ttl=True, port=-1, waiting=(*lookup.waiting, Waiting(rule, index)),
                )  # fmt: skip
                number = self._visit(following, depth + 1, rule)
                return self._number_goto(number), number
            if isinstance(current, Show):
                shown, reads = (*shown, current.text), reads | self._find_needs(state, current.reads)
            elif isinstance(current, Output):
                shown, reads = self._output(current, state, shown, reads)
            elif isinstance(current, Set):
                reads |= self._find_needs(state, current.reads)
                state = state.write(current.value, current.mask)
                if current.mask & ~self.registers:
                    shown = (*shown, current.text)
                if current.mask & self.ttl_mask:
                    state = state._replace(lowered=0)
            else:
                state, shown, reads = self._copy(current, state, shown, reads, rule)
        return self._return(lookup, state, shown, reads, depth)

    def _look_up(
        self, goto: Goto, rule: int, step: int, lookup: Lookup, state: State, shown: tuple[str, ...],
        reads: int, depth: int,
    ) -> tuple[int, int]:  # fmt: skip
        """Return the action and the lookup where a rule goes to a table."""
        if goto.table not in self.pipeline.places:
            raise InputError(f"{self.pipeline.where[rule]}: goes to table {goto.table}, which has no rules")
        waiting = lookup.waiting
        if step < len(self.pipeline.steps[rule]):
            waiting = (*waiting, Waiting(rule, step))
        table_index = self.pipeline.places[goto.table]
        port = -1 if goto.port is None else goto.port
        number = self._visit(Lookup(table_index, state, waiting, shown, reads, port), depth + 1, rule)
        return self._number_goto(number), number

    def _return(
        self, lookup: Lookup, state: State, shown: tuple[str, ...], reads: int, depth: int
    ) -> tuple[int, int]:
        """Return the action and the following lookup of packets at the end of a rule's steps."""
        if not lookup.waiting:
            return self._finish(shown, reads), -1
        back = lookup.waiting[-1]
        popped = lookup._replace(waiting=lookup.waiting[:-1], shown=shown, reads=reads, ttl=False, port=-1)
        return self._go_on(back.rule, back.step, popped, state, depth)

    def _finish(self, shown: tuple[str, ...], reads: int) -> int:
        """Return the number of a final action."""
        is_output = any(not text.startswith(("set:", "copy:", "queue:")) for text in shown)
        if not is_output:
            shown = (*(shown if reads else ()), DROP)
        name = " ".join(shown)
        number = self.action_of.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
            self.needs.append(0)
        self.needs[number] |= reads
        return number

    def _number_goto(self, lookup: int) -> int:
        """Return the number of the action to go to a lookup."""
        name = f"goto:{lookup}"
        if name not in self.action_of:
            self.action_of[name] = len(self.names)
            self.names.append(name)
            self.needs.append(0)
        return self.action_of[name]

    def _output(
        self, step: Output, state: State, shown: tuple[str, ...], reads: int
    ) -> tuple[tuple[str, ...], int]:
        """Return the shown and the read bits after an output to the port in a field."""
        mask = step.port.mask
        if step.port.size and state.mask & mask == mask:
            number = (state.value & mask) >> step.port.shift
            if number == 0xFFFF:
                return shown, reads
            return (*shown, RESERVED.get(number, f"out:{number}")), reads
        text = self._show_source(step.port, state)
        return (*shown, f"out:{text}"), reads | self._find_needs(state, mask)

    def _copy(
        self, step: Copy, state: State, shown: tuple[str, ...], reads: int, rule: int
    ) -> tuple[State, tuple[str, ...], int]:
        """Return the known, shown and read bits after bits are copied."""
        source, target = step.source, step.target
        if not source.size or not target.size:
            return state, (*shown, f"copy:{source.text}->{target.text}"), reads
        if state.lowered and source.mask & self.ttl_mask:
            raise InputError(
                f"{self.pipeline.where[rule]}: copies nw_ttl after dec_ttl, which is not modelled"
            )
        is_constant = state.mask & source.mask == source.mask
        is_header = bool(target.mask & ~self.registers)
        if is_constant:
            value = ((state.value & source.mask) >> source.shift) << target.shift
            if is_header:
                shown = (*shown, f"set:{target.text}={(state.value & source.mask) >> source.shift:#x}")
                reads |= self._find_needs(state, target.mask)
            return state.write(value, target.mask), shown, reads
        # bits of the packet: entries match them, whatever they are
        shown = (*shown, f"copy:{self._show_source(source, state)}->{target.text}")
        reads |= self._find_needs(state, source.mask)
        if is_header:
            reads |= self._find_needs(state, target.mask)
        pieces = _list_pieces(source, target, state)
        after = state.write(0, target.mask)
        constant = sum(((1 << count) - 1) << low for low, count, _ in pieces)
        value = 0
        for offset in range(target.size):
            bit = 1 << (source.shift + offset)
            if state.mask & bit and state.value & bit:
                value |= 1 << (target.shift + offset)
        after = after._replace(
            mask=after.mask & ~constant, value=(after.value | value) & ~constant,
            copies=tuple(sorted((*after.copies, *pieces))),
        )  # fmt: skip
        return after, shown, reads

    def _show_source(self, bits: Bits, state: State) -> str:
        """Return the bits of the packet as it came that some bits of the header are, as text."""
        names = []
        for low, count, source in _list_pieces(bits, bits, state):
            field = next(
                field_
                for field_ in self.layout.fields
                if self.layout.shift[field_.name] <= source < self.layout.shift[field_.name] + field_.bits
            )
            first = source - self.layout.shift[field.name]
            names.append(f"{field.name}[{first}..{first + count - 1}]")
            del low
        return "+".join(names) or bits.text

    def _split_by_ttl(self, lookup: Lookup, depth: int) -> list[tuple[Cube, int, int, int]]:
        """Return the entries where the time to live is lowered: too small ones go to the controller."""
        back, state = lookup.waiting[-1], lookup.state
        popped = lookup._replace(waiting=lookup.waiting[:-1], ttl=False)
        shown = (*lookup.shown, "set:dec_ttl")
        expired = self._finish((*lookup.shown, CONTROLLER), lookup.reads)
        entries: list[tuple[Cube, int, int, int]] = []
        if state.mask & self.ttl_mask == self.ttl_mask:
            number = (state.value & self.ttl_mask) >> self.ttl
            if number <= 1:
                return [((0, 0), -1, expired, -1)]
            lowered = state.write((number - 1) << self.ttl, self.ttl_mask)
        else:
            if state.mask & self.ttl_mask or state.copied_mask() & self.ttl_mask:
                raise InputError(
                    f"{self.pipeline.where[back.rule]}: lowers nw_ttl after some bits of it were written, "
                    "which is not modelled"
                )
            for value, mask in split_range(0, 1 + state.lowered, TTL_BITS):
                entries.append(((value << self.ttl, mask << self.ttl), -1, expired, -1))
            lowered = state._replace(lowered=state.lowered + 1)
        following = popped._replace(shown=shown)
        entries.append(((0, 0), -1, *self._go_on(back.rule, back.step + 1, following, lowered, depth)))
        return entries

    def _require_no_loop(self, made: Translated) -> None:
        """Raise InputError where a lookup is reached from itself."""
        after = [
            {target for target in made.next[begin:end] if target >= 0} for begin, end in pairwise(made.start)
        ]
        looping = _find_in_loop(after)
        if looping is not None:
            numbers = {table_index: number for number, table_index in self.pipeline.places.items()}
            raise InputError(
                f"rules: packets loop through table {numbers[made.lookup[looping].table]}, must come to an "
                "end"
            )


def _mask_read(step: Step) -> int:
    """Return the mask of the bits that a step reads, beside those that the entry must match for it."""
    if isinstance(step, Output):
        return step.port.mask
    if isinstance(step, Copy):
        return step.source.mask
    return step.ttl.mask if isinstance(step, Decrement) else 0


def find_read(pipeline: Pipeline) -> tuple[list[int], list[int]]:
    """Return the masks of the bits that each rule reads, also in later steps, and each table."""
    table_of = {}
    matched = [0] * (len(pipeline.start) - 1)
    for table in range(len(matched)):
        for row in range(*pipeline.start[table : table + 2]):
            matched[table] |= pipeline.cube[row][1]
            table_of[pipeline.rule[row]] = table
    reads, targets = [], []
    for steps in pipeline.steps:
        reads.append(reduce(or_, map(_mask_read, steps), 0))
        targets.append(
            {
                pipeline.places[step.table]
                for step in steps
                if isinstance(step, Goto) and step.table in pipeline.places
            }
        )
    by_table = list(matched)
    is_changed = True
    while is_changed:
        is_changed = False
        for rule, table in table_of.items():
            read = by_table[table] | reads[rule]
            for target in targets[rule]:
                read |= by_table[target]
            is_changed |= read != by_table[table]
            by_table[table] = read
    by_rule = []
    for rule, read in enumerate(reads):
        for target in targets[rule]:
            read |= by_table[target]
        by_rule.append(read)
    return by_rule, by_table


def find_looked(lookup: Lookup, layout: Layout) -> State:
    """Return the known bits of the header of a lookup, with its own port of input if it has one."""
    if lookup.port < 0 or "in_port" not in layout.by_name:
        return lookup.state
    mask = layout.full_mask(["in_port"])
    return lookup.state.write(lookup.port << layout.shift["in_port"], mask)


def find_sources(mask: int, state: State) -> int:
    """Return the bits of the packet as it came that some bits of a header are copies of."""
    sources = 0
    for low, count, source in state.copies:
        sources |= ((mask >> low) & ((1 << count) - 1)) << source
    return sources


def _cut(copies: tuple[tuple[int, int, int], ...], mask: int) -> tuple[tuple[int, int, int], ...]:
    """Return copied bits without those of a mask."""
    pieces = []
    for low, count, source in copies:
        if not ((mask >> low) & ((1 << count) - 1)):
            pieces.append((low, count, source))
            continue
        pieces += _join([(low + i, source + i) for i in range(count) if not mask >> (low + i) & 1])
    return tuple(sorted(pieces))


def _join(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return runs of bits that are copied together, of pairs of target and source."""
    runs: list[tuple[int, int, int]] = []
    for target, source in pairs:
        if runs and runs[-1][0] + runs[-1][1] == target and runs[-1][2] + runs[-1][1] == source:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, runs[-1][2])
        else:
            runs.append((target, 1, source))
    return runs


def _find_in_loop(successors: Sequence[set[int]]) -> int | None:
    """Return the first node that lies on a loop or behind one, None where there is none (Kahn 1962)."""
    incoming = [0] * len(successors)
    for target in chain.from_iterable(successors):
        incoming[target] += 1
    ready = [node for node, count in enumerate(incoming) if not count]
    while ready:
        for target in successors[ready.pop()]:
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return next((node for node, count in enumerate(incoming) if count), None)


def _list_pieces(source: Bits, target: Bits, state: State) -> list[tuple[int, int, int]]:
    """Return the bits of a target that become bits of the packet as it came, where a source is copied."""
    pairs = []
    for offset in range(source.size):
        bit = source.shift + offset
        if state.mask >> bit & 1:
            continue
        origin = bit
        for low, count, first in state.copies:
            if low <= bit < low + count:
                origin = first + bit - low
        pairs.append((target.shift + offset, origin))
    return _join(pairs)
