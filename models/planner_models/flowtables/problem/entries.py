"""Rules as entries in words: of all flow tables of a switch, or of all lookups where rules change headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Ints, Ints32
from planner.contract.tables import row_name
from planner_models.flowtables.problem.actions import DROP, Goto, Set, Show, Step
from planner_models.flowtables.problem.fields import STAGES, WORD, Layout, Words
from planner_models.flowtables.problem.translation import (
    Pipeline,
    State,
    Translated,
    find_looked,
    find_sources,
    translate,
)
from planner_models.flowtables.problem.values import REGISTER, Cube

GOTO: Final = "goto:"
LAST: Final = -1  # in place of a next table: the action is final
HIDDEN_BITS: Final = WORD // len(STAGES)
MOST_SEARCHED: Final = 1_000_000


class Rules(NamedTuple):
    """Entries of all lookups, by lookup and falling priority; ranges are several entries of one rule.

    A lookup is one of a flow table; where rules write registers or change headers before others look at them,
    one of a flow table with what is known then, see `planner_models.flowtables.problem.translation`.

    value       (N, words) value, 0 outside of the mask
    mask        (N, words)
    action      (N,) number of the action; 0 is `drop`, which also packets without a match get
    next        (N,) the lookup that follows; -1 where the action is final
    rule        (N,) row of the table `rules`; -1 for packets that no rule of a lookup matches
    priority    (N,)
    start       (T + 1,) first entry of each lookup; a packet's first lookup is the first
    needs       (A, words) bits that an entry of the cache with each action must match
    kind_value, kind_mask, always
                (K, words) types of packets, and the bits that every entry of the cache for them must match
    """

    value: Words
    mask: Words
    action: Ints32
    next: Ints32
    rule: Ints32
    priority: Ints
    start: Ints
    needs: Words
    kind_value: Words
    kind_mask: Words
    always: Words


class Searched(NamedTuple):
    """Entries as a search of the switch meets them, with those that registers rule out.

    value, mask  (N, words): one word more than a header where registers rule entries out, 0 in a header
    early        (N, words) bits that registers are copies of, which are looked at with the registers
    direct       (N, words) bits that the rule itself matches in the packet
    priority, next, start  as in `Rules`
    """

    value: Words
    mask: Words
    early: Words
    direct: Words
    priority: Ints
    next: Ints32
    start: Ints


class Compiled(NamedTuple):
    """Entries of a problem, and the names of their actions; `translated` is None without registers."""

    rules: Rules
    actions: list[str]
    pipeline: Pipeline
    translated: Translated | None


def make_pipeline(
    rules: pd.DataFrame, layout: Layout, steps: Sequence[list[Step]], numbers: Sequence[int]
) -> Pipeline:
    """Return the cubes of rules, by table and falling priority, and their steps."""
    priority = rules["priority"].to_numpy(float).astype(np.int64)
    tables = np.searchsorted(numbers, rules["table"].to_numpy(float))
    order = np.lexsort((np.arange(len(priority)), -priority, tables))
    texts = [text if isinstance(text, str) else "" for text in rules["match"]]
    cubes = [layout.parse(text) for text in texts]
    rule = [row for row in order.tolist() for _ in cubes[row]]
    flat = [cube for row in order.tolist() for cube in cubes[row]]
    of_table = tables[np.array(rule, dtype=np.int64)]
    return Pipeline(
        value=layout.to_words([cube[0] for cube in flat]),
        mask=layout.to_words([cube[1] for cube in flat]),
        cube=flat,
        rule=rule,
        priority=priority[np.array(rule, dtype=np.int64)].tolist(),
        start=np.searchsorted(of_table, np.arange(len(numbers) + 1)).tolist(),
        places={number: index for index, number in enumerate(numbers)},
        steps=steps,
        where=_Where(rules),
    )


class _Where(Sequence[str]):
    """Names of rules in errors."""

    def __init__(self, rules: pd.DataFrame) -> None:
        self._rules = rules

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return row_name(self._rules, "rules", row)


def is_plain(layout: Layout, tables: Sequence[int], steps: Sequence[list[Step]]) -> bool:
    """Return whether each rule ends a packet's way, or sends it on to a later table and does nothing else."""
    if any(field.role == REGISTER for field in layout.fields):
        return False
    for table, table_steps in zip(tables, steps, strict=True):
        if len(table_steps) == 1 and isinstance(table_steps[0], Goto):
            if table_steps[0].port is not None or table_steps[0].table <= table:
                return False
        elif not all(isinstance(step, Show | Set) for step in table_steps):
            return False
    return True


def compile_rules(
    rules: pd.DataFrame,
    packet: Layout,
    full_layout: Layout,
    steps: Sequence[list[Step]],
    numbers: Sequence[int],
) -> Compiled:
    """Return the entries of rules.

    packet, whole  layouts of headers without and with registers
    steps          of each rule; numbers: of the tables, the first one is 0
    raises         InputError where packets loop, or too many entries are needed
    """
    pipeline = make_pipeline(rules, full_layout, steps, numbers)
    if is_plain(full_layout, rules["table"].astype(int).tolist(), steps):
        return _compile_plain(rules, packet, pipeline)
    registers = full_layout.full_mask(field.name for field in full_layout.fields if field.role == REGISTER)
    made = translate(pipeline, full_layout, registers)
    shift = WORD * (full_layout.words - packet.words)
    row = np.array(made.row, dtype=np.int64)
    rule = np.array([*pipeline.rule, -1], dtype=np.int32)[row]
    priority = np.array([*pipeline.priority, -1], dtype=np.int64)[row]
    return Compiled(
        Rules(
            value=packet.to_words([value >> shift for value, _ in made.cube]),
            mask=packet.to_words([mask >> shift for _, mask in made.cube]),
            action=np.array(made.action, dtype=np.int32),
            next=np.array(made.next, dtype=np.int32),
            rule=rule,
            priority=priority,
            start=np.array(made.start, dtype=np.int64),
            needs=packet.to_words([mask >> shift for mask in made.needs]),
            **_find_kinds(packet),
        ),
        made.names,
        pipeline,
        made,
    )


def _compile_plain(rules: pd.DataFrame, layout: Layout, pipeline: Pipeline) -> Compiled:
    """Return the entries of rules that each end a packet's way, or send it on."""
    named = rules["action"].astype(str).tolist()
    names = [DROP, *(name for name in dict.fromkeys(named) if name != DROP)]
    number = {name: index for index, name in enumerate(names)}
    needs = [0] * len(names)
    for name, steps in zip(named, pipeline.steps, strict=True):
        for step in steps:
            if isinstance(step, Show | Set):
                needs[number[name]] |= step.reads
    action = np.array([number[name] for name in named], dtype=np.int32)
    following = np.array(
        [
            pipeline.places[steps[0].table] if steps and isinstance(steps[0], Goto) else LAST
            for steps in pipeline.steps
        ],
        dtype=np.int32,
    )
    rule = np.array(pipeline.rule, dtype=np.int32)
    return Compiled(
        Rules(
            value=pipeline.value,
            mask=pipeline.mask,
            action=action[rule],
            next=following[rule],
            rule=rule,
            priority=np.array(pipeline.priority, dtype=np.int64),
            start=np.array(pipeline.start, dtype=np.int64),
            needs=layout.to_words(needs),
            **_find_kinds(layout),
        ),
        names,
        pipeline,
        None,
    )


def _find_kinds(layout: Layout) -> dict[str, Words]:
    """Return the types of packets, and the bits that every entry for them must match."""
    kinds = layout.kinds
    return {
        "kind_value": layout.to_words([kind.value for kind in kinds]),
        "kind_mask": layout.to_words([kind.mask for kind in kinds]),
        "always": layout.to_words([kind.always for kind in kinds]),
    }


class _Hidden:
    """Numbers of the bits of registers and changed fields that tuples match, stage by stage in one word."""

    def __init__(self, full_layout: Layout) -> None:
        self._stages = [
            full_layout.full_mask(field.name for field in full_layout.fields if field.stage == stage)
            for stage in range(len(STAGES))
        ]
        self._codes: list[dict[int, int]] = [{0: 0} for _ in STAGES]

    def find_mask(self, bits: int) -> int:
        """Return the mask for some bits of whole headers: another one for other bits of a stage."""
        hidden = 0
        for stage, (stage_mask, codes) in enumerate(zip(self._stages, self._codes, strict=True)):
            number = min(codes.setdefault(bits & stage_mask, len(codes)), (1 << HIDDEN_BITS) - 1)
            hidden |= number << HIDDEN_BITS * stage
        return hidden

    def find_value(self, mask: int, differs: int) -> int:
        """Return a value under a mask that is not 0 in the stages in which a header differs from a rule."""
        value_bits = 0
        for stage, stage_mask in enumerate(self._stages):
            stage_bits = mask & ((1 << HIDDEN_BITS) - 1) << HIDDEN_BITS * stage
            value_bits |= stage_bits & -stage_bits if differs & stage_mask else 0
        return value_bits


class _SearchedEntry(NamedTuple):
    """An entry as a search meets it.

    cube           value and mask on the packet as it came
    extra          value and mask of the word that is 0 in every header
    early, direct  masks, see `Searched`
    following      the lookup that follows
    """

    cube: Cube
    extra: Cube
    early: int
    direct: int
    following: int
    priority: int


def list_searched(compiled: Compiled, packet: Layout, full_layout: Layout) -> Searched:
    """Return the entries as a search of the switch meets them.

    Rules that registers or changed fields rule out have no entry in a lookup, but they are in the tuples that
    it searches, and in its tries. A word that is 0 in every header tells them from the others: its mask names
    the bits of registers and changed fields that a tuple matches, 16 bits of it for each stage.
    """
    rules, made = compiled.rules, compiled.translated
    if made is None:
        none = np.zeros_like(rules.mask)
        return Searched(rules.value, rules.mask, none, rules.mask, rules.priority, rules.next, rules.start)
    hidden = _Hidden(full_layout)
    entries: list[_SearchedEntry] = []
    start = [0]
    for index, lookup in enumerate(made.lookup):
        looked = find_looked(lookup, full_layout)
        entries += _list_entries(compiled, made, index, looked, hidden)
        if not lookup.ttl and len(entries) < MOST_SEARCHED:
            entries += _list_ruled_out(compiled.pipeline, made, index, looked, hidden)
        start.append(len(entries))
    order = np.concatenate(
        [
            begin + np.argsort([-entry.priority for entry in entries[begin:end]], kind="stable")
            for begin, end in pairwise(start)
        ]
    ).astype(np.int64)
    shift = WORD * (full_layout.words - packet.words)
    nothing = [0] * len(entries)
    values, masks, early_words, direct = (
        np.ascontiguousarray(
            np.column_stack(
                [packet.to_words([bits >> shift for bits in seen]), np.array(extra, dtype=np.uint64)]
            )[order]
        )
        for seen, extra in (
            ([entry.cube[0] for entry in entries], [entry.extra[0] for entry in entries]),
            ([entry.cube[1] for entry in entries], [entry.extra[1] for entry in entries]),
            ([entry.early for entry in entries], nothing),
            ([entry.direct for entry in entries], nothing),
        )
    )
    return Searched(
        value=values,
        mask=masks,
        early=early_words,
        direct=direct,
        priority=np.array([entry.priority for entry in entries], dtype=np.int64)[order],
        next=np.array([entry.following for entry in entries], dtype=np.int32)[order],
        start=np.array(start, dtype=np.int64),
    )


def _list_entries(
    compiled: Compiled, made: Translated, index: int, looked: State, hidden: _Hidden
) -> Iterator[_SearchedEntry]:
    """Yield the entries of a lookup."""
    rules, pipeline, lookup = compiled.rules, compiled.pipeline, made.lookup[index]
    rows = range(made.start[index], made.start[index + 1])
    fixed = looked.mask | looked.copied_mask()
    for row in rows:
        cube_row = made.row[row]
        rule_mask = pipeline.cube[cube_row][1] if cube_row >= 0 else 0
        yield _SearchedEntry(
            cube=made.cube[row],
            extra=(0, hidden.find_mask(rule_mask & fixed)),
            early=find_sources(rule_mask, looked),
            direct=rule_mask & ~fixed if cube_row >= 0 else made.cube[row][1],
            following=made.next[row],
            # entries that tell times to live apart have no priority of a rule: they are in order
            priority=rows.stop - row if lookup.ttl else int(rules.priority[row]),
        )


def _list_ruled_out(
    pipeline: Pipeline, made: Translated, index: int, looked: State, hidden: _Hidden
) -> Iterator[_SearchedEntry]:
    """Yield the rules that a lookup has no entries for.

    They are ruled out by registers, or behind a rule for all packets: then they go on as that one does.
    """
    rows = range(made.start[index], made.start[index + 1])
    fixed = looked.mask | looked.copied_mask()
    table, last = made.lookup[index].table, max((made.row[row] for row in rows), default=-1)
    for cube_row in range(*pipeline.start[table : table + 2]):
        value, mask = pipeline.cube[cube_row]
        differs = (value ^ looked.value) & mask & looked.mask
        if not differs and cube_row <= last:
            continue  # an entry of the lookup
        early, bits = find_sources(mask, looked), hidden.find_mask(mask & fixed)
        yield _SearchedEntry(
            cube=(value & ~fixed | find_sources(value, looked), mask & ~fixed | early),
            extra=(hidden.find_value(bits, differs), bits),
            early=early,
            direct=mask & ~fixed,
            following=LAST if differs else made.next[rows.stop - 1],
            priority=pipeline.priority[cube_row],
        )
