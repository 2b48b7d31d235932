"""Simulation of a cache in time: packets, idle entries, changes of rules, and masks planned again.

Simulation of a design: a cache in time, with idle entries, microflows and rules that change.

Compiled forwarding of packets: microflows first, then megaflows mask by mask, then userspace.

The cache of a switch in simulated time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import kernel
from planner.contract import control_loop
from planner.contract.control_loop import ROUND_COLUMNS
from planner.contract.design import Decision, Design
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less, more
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.errors import InputError
from planner.options import Options
from planner_models.flowtables.designs.reactive import MASKS_OF_MISSES
from planner_models.flowtables.plan.bit_index import BLOCK, make_bit_index, weigh_bits
from planner_models.flowtables.plan.classification import classify, find_right
from planner_models.flowtables.plan.lookup import (
    add_mask,
    count_hit,
    find_entry,
    find_reusable,
    insert,
    insert_all,
    make_table,
)
from planner_models.flowtables.plan.plan import Cache, parse_mask
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

MOST_PACKETS: Final = 20_000_000
POOL: Final = "pool"

METRICS: Final = (
    less(
        "cpu_per_connection_us",
        "us",
        "CPU time for each connection: lookups of its packets, misses, packets to the controller, and its "
        "share of checks of entries",
    ),
    less("misses", "misses", "packets that go to userspace"),
    less("to_controller", "packets", "packets that go to the controller: each is an upcall"),
    more("hit_rate", "%", "packets that find an entry, in percent of all"),
    less("probes_per_packet", "lookups", "lookups of a packet, that in the microflows included; mean"),
    more("microflow_hit_rate", "%", "packets that need no search of masks, in percent of all"),
    less("most_megaflows", "entries", "most entries at one time"),
    less("revalidation_share", "%", "part of a core that checks entries again"),
    less("wrong_packets", "packets", "packets that a stale entry gives another action than the rules"),
    less("stale_s", "s", "longest time from a change of rules to the removal of an entry that it made wrong"),
    less("uncached", "packets", "misses without an entry, as the cache is full"),
)
PACKETS, MICROFLOW_HITS, PROBES, MISSES, UNCACHED, WRONG = range(6)
COUNTS = 6
"""Counts of packets in an array: all, found as microflows, masks searched, misses, misses without an entry,
and packets with another action than that of the rules."""
HEAVY: Final = 1e6  # of a bit of a mask that is not planned, so that it is taken last
MasksOfMisses = Callable[[FlowTables], Callable[[Words], Words]]


@dataclass(frozen=True, kw_only=True)
class Times:
    """Times of packets and of plans."""

    connections_per_s: Annotated[
        float, Field(gt=0, le=1e9, description="rate of connections where flows have no start_s")
    ] = 1_000.0
    packet_gap_s: Annotated[
        float, Field(ge=0, le=1e6, description="time between packets of a connection, s")
    ] = 0.1
    period_s: Annotated[
        float, Field(gt=0, le=1e9, description="time between two plans of a design that plans masks, s")
    ] = 10.0
    window_s: Annotated[
        float, Field(gt=0, le=1e9, description="connections of this time are known to a plan, s")
    ] = 60.0


@spread(times=Times())
def simulate(
    problem: FlowTables,
    *,
    design: Design[FlowTables, Cache],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    times: Times,
) -> SimulationResult:
    """Simulate a cache in time: microflows, idle entries, and the table `changes` of rules.

    Designs that act at each miss install their own mask. `merged` and `replanned` plan masks again each
    period, from the connections of the last window; a miss takes the planned mask that keeps its action.
    A run ends two revalidations after the last connection or change starts; later packets are left out.

    raises  InputError for more than 20,000,000 packets
    """
    start_s = _read_starts(problem, times.connections_per_s)
    headers, number = np.unique(problem.headers, axis=0, return_inverse=True)
    packets = make_packets(problem, start_s, number.reshape(-1), times.packet_gap_s)
    execution = CacheExecution(
        problem,
        start_s,
        packets,
        np.ascontiguousarray(headers),
        masks_of_misses=MASKS_OF_MISSES.get(design.name),
        is_pool=design.name == POOL,
        window_s=times.window_s,
    )
    last_s = max(float(start_s.max()), float(problem.change_times.max(initial=0.0)))
    until_s = last_s + 2 * problem.cost("revalidate_s")
    if design.name in MASKS_OF_MISSES:
        execution.advance(until_s)
        tables = execution.record()
        rounds = pd.DataFrame([], columns=list(ROUND_COLUMNS)).astype({"effect_s": float})
    else:
        controller = control_loop.Controller.of_design(
            design,
            period_s=times.period_s,
            first_s=times.period_s,
            parameters=decision_parameters,
            information=information,
            options=options,
        )
        outcome = control_loop.run(execution, [controller], until_s=until_s)
        tables, rounds = outcome.tables, outcome.rounds
    return SimulationResult(
        metrics=_measure(problem, execution, until_s),
        tables=tables,
        rounds=rounds,
        drawings=(_draw(tables["revalidations"]),),
    )


def _read_starts(problem: FlowTables, connections_per_s: float) -> Floats:
    """Return the (F,) time of the first packet of each connection, s."""
    if "start_s" in problem.flows and problem.flows["start_s"].notna().all():
        return problem.flows["start_s"].to_numpy(float)
    return np.arange(len(problem.flows)) / connections_per_s


def make_packets(problem: FlowTables, start_s: Floats, header: np.ndarray, packet_gap_s: float) -> Packets:
    """Return all packets in the order of time; those of a connection come one gap after another."""
    count = problem.packets
    total = int(count.sum())
    if total > MOST_PACKETS:
        raise InputError(f"flows: have {total:,} packets, must have up to {MOST_PACKETS:,} for a simulation")
    first = np.repeat(np.cumsum(count) - count, count)
    time_s = np.repeat(start_s, count) + (np.arange(total) - first) * packet_gap_s
    order = np.argsort(time_s, kind="stable")
    return Packets(np.ascontiguousarray(time_s[order]), np.repeat(header, count)[order].astype(np.int64))


def _measure(problem: FlowTables, execution: CacheExecution, until_s: float) -> dict[str, float | None]:
    """Return the figures of a run."""
    counts = execution.counts
    packets, misses = float(counts[PACKETS]), float(counts[MISSES])
    lookups_us = problem.probe_us * float(counts[PROBES])
    punts = float(execution.punts)  # each packet is an upcall, with an entry or without
    upcalls_us = (misses + punts) * problem.cost("upcall_us")
    total_us = lookups_us + upcalls_us + 1e6 * execution.revalidate_s
    return {
        "cpu_per_connection_us": total_us / len(problem.flows),
        "misses": misses,
        "to_controller": punts,
        "hit_rate": 100 * (1 - misses / packets),
        "probes_per_packet": float(counts[PROBES]) / packets,
        "microflow_hit_rate": 100 * float(counts[MICROFLOW_HITS]) / packets,
        "most_megaflows": float(execution.most_entries),
        "revalidation_share": 100 * execution.revalidate_s / until_s,
        "wrong_packets": float(counts[WRONG]),
        "stale_s": execution.stale_s,
        "uncached": float(counts[UNCACHED]),
    }


def _draw(frame: pd.DataFrame) -> Curve:
    """Return entries, masks and stale entries over time."""
    return Curve(
        title="Entries of the cache in time",
        frame=frame[["time_s", "megaflows", "masks", "stale"]].astype(float),
        units={"time_s": "s"},
    )


SIMULATION: Final = Simulation(
    run=simulate,
    metrics=METRICS,
    headline=Headline(metric="cpu_per_connection_us", verb="takes {} of CPU time for a connection"),
)


class Microflows(NamedTuple):
    """A cache of headers before the search of masks, one header in each place.

    header  (m,) number of the header, -1 for none
    entry   (m,) its megaflow
    """

    header: Ints
    entry: Ints


class Held(NamedTuple):
    """State of the entries of a table, each (n,): action, time of the last packet, and of installation, s."""

    action: Ints32
    last_s: Floats
    since_s: Floats


@kernel
def forward(
    packet: Any, time_s: Any, headers: Any, action: Any, requested: Any, rules: Any, index: Any, table: Any,
    held: Any, micro: Any, bit_weight: Any, reuse: Any, most_entries: Any, counts: Any,
) -> Any:  # fmt: skip
    """Forward packets in the order of time.

    packet, time_s  (n,) header of each packet, and its time
    headers         (H, words)
    action          (H,) by the rules as they are
    requested          (H, words) mask of a new entry
    reuse           whether a mask in use that keeps the action is taken before, the lightest first
    counts          (6,) is increased
    """
    buffer = np.zeros(BLOCK, np.uint64)
    for i in range(len(packet)):
        h = packet[i]
        counts[PACKETS] += 1
        slot = np.int64(-1)
        if len(micro.header):
            counts[PROBES] += 1
            slot = np.int64((np.uint64(h) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) % len(
                micro.header
            )
            if micro.header[slot] == h:
                e = micro.entry[slot]
                counts[MICROFLOW_HITS] += 1
                counts[WRONG] += held.action[e] != action[h]
                held.last_s[e] = time_s[i]
                continue
        entry, searched = find_entry(table, headers[h])
        position = searched - 1
        counts[PROBES] += searched
        if entry < 0:
            counts[MISSES] += 1
            if table.counts[0] >= most_entries:
                counts[UNCACHED] += 1
                continue
            position = find_reusable(table, headers[h], rules, index, buffer) if reuse else -1
            if position < 0:
                position = add_mask(table, requested[h], bit_weight)
            entry = insert(table, headers[h], table.order[position])
            held.action[entry] = action[h]
            held.since_s[entry] = time_s[i]
        counts[WRONG] += held.action[entry] != action[h]
        held.last_s[entry] = time_s[i]
        if slot >= 0:
            micro.header[slot] = h
            micro.entry[slot] = entry
        count_hit(table, position)


class Packets(NamedTuple):
    """Packets in the order of time, each (n,): time, s, and number of the header."""

    time_s: Floats
    header: Ints


class CacheExecution:
    """Entries of a cache in time: packets install and use them, revalidators remove them.

    Revalidation comes each `revalidate_s`, or later where it takes longer: entries without a packet for
    `idle_s` are removed, and those that the rules give another action now, which are stale until then.

    masks_of_misses  what a design that acts at each miss installs; None: planned masks, the lightest valid
                     one first, and without one all bits that rules match
    is_pool          whether masks in use are taken before those of misses, of the least entropy first
    window_s         connections of this time are observed
    """

    def __init__(
        self,
        problem: FlowTables,
        start_s: Floats,
        packets: Packets,
        headers: Words,
        *,
        masks_of_misses: MasksOfMisses | None,
        is_pool: bool,
        window_s: float,
    ) -> None:
        self.problem, self._start_s, self._packets, self._headers = problem, start_s, packets, headers
        self._masks_of_misses, self._window_s = masks_of_misses, window_s
        self._reuse = is_pool or masks_of_misses is None
        words = headers.shape[1]
        self.counts = np.zeros(COUNTS, dtype=np.int64)
        self.stale_s, self.revalidate_s, self.most_entries = 0.0, 0.0, 0
        self.punts = 0
        self._done, self._now_s = 0, 0.0
        self._table = make_table(words, len(headers) + 1, len(headers) + 1)
        size = len(self._table.mask_of)
        self._held = Held(np.zeros(size, np.int32), np.zeros(size), np.zeros(size))
        count = int(problem.cost("microflow_entries"))
        self._micro = Microflows(np.full(count, -1, np.int64), np.zeros(count, np.int64))
        self._planned: Words = np.zeros((0, words), dtype=np.uint64)
        self._planned_weight: Floats = np.zeros(0)
        self._bit_weight = weigh_bits(problem, by_entropy=True) if is_pool else np.full(64 * words, HEAVY)
        self._number: dict[str, int] = {}
        self._changes = problem.change_times.tolist()
        self._changed_s = 0.0
        self._next_check_s = problem.cost("revalidate_s")
        self._rows: list[tuple[float, ...]] = []
        self._use_rules(0.0)

    def advance(self, until_s: float) -> None:
        """Let time pass: packets, changes of rules and revalidation, in their order."""
        while True:
            change_s = self._changes[0] if self._changes else np.inf
            next_s = min(change_s, self._next_check_s)
            if next_s > until_s:
                break
            self._forward(next_s)
            if change_s <= self._next_check_s:
                self._changes.pop(0)
                self._use_rules(next_s)
                self._changed_s = next_s
            else:
                self._revalidate(next_s)
        self._forward(until_s)
        self._now_s = until_s

    def apply(self, decision: Decision[Cache]) -> None:
        """Take planned masks for new entries from now on; entries stay."""
        plan = decision.plan
        assert plan is not None
        masks = plan.masks.sort_values("position", kind="stable")
        parsed = [parse_mask(self.problem, text) for text in masks["mask"].fillna("").astype(str)]
        self._planned = self.problem.layout.to_words(parsed)
        self._planned_weight = np.asarray(
            masks["megaflows"].to_numpy(float) / np.maximum(masks["connections"].to_numpy(float), 0.5)
        )
        self._rebuild(np.arange(int(self._table.counts[0])))

    def observe(self) -> FlowTables:
        """Return the rules of now, with the connections of the last window; at least the last one."""
        started = np.flatnonzero(
            (self._start_s <= self._now_s) & (self._start_s > self._now_s - self._window_s)
        )
        if not len(started):
            started = np.array([max(0, int(np.searchsorted(np.sort(self._start_s), self._now_s)) - 1)])
        flows = self.problem.flows.iloc[started].reset_index(drop=True)
        return self._rules.with_flows(flows)

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return a row for each revalidation."""
        columns = ["time_s", "megaflows", "masks", "misses", "wrong_packets", "idle", "stale"]
        return {"revalidations": pd.DataFrame(self._rows, columns=columns)}

    def _forward(self, until_s: float) -> None:
        last = int(np.searchsorted(self._packets.time_s, until_s, side="left"))
        chunk = slice(self._done, last)
        if last > self._done:
            self._make_space()
            forward(
                self._packets.header[chunk], self._packets.time_s[chunk], self._headers, self._action,
                self._wanted, self._rules.entries, self._index, self._table, self._held, self._micro,
                self._bit_weight, self._reuse, self.problem.most_entries, self.counts,
            )  # fmt: skip
            self.punts += int(self._is_punt[self._packets.header[chunk]].sum())
        self._done = last
        self.most_entries = max(self.most_entries, int(self._table.counts[0]))

    def _use_rules(self, time_s: float) -> None:
        """Take the rules after all changes up to a time."""
        self._rules = self.problem.rules_after(time_s if self.problem.changes is not None else 0.0)
        self._index = make_bit_index(self._rules)
        names = self._rules.actions
        renamed = np.array(
            [self._number.setdefault(name, len(self._number)) for name in names], dtype=np.int32
        )
        self._renamed: Ints32 = renamed
        numbers = classify(self._headers, self._rules.entries)
        self._action, self._is_punt = renamed[numbers], self._rules.is_punt[numbers]
        if self._masks_of_misses is None:
            self._wanted = np.broadcast_to(self._rules.used_mask, self._headers.shape).copy()
        else:
            self._wanted = self._masks_of_misses(self._rules)(self._headers)

    def _revalidate(self, time_s: float) -> None:
        """Remove entries that are idle, or that the rules give another action."""
        entries = int(self._table.counts[0])
        value, mask_of = self._table.value[:entries], self._table.mask_of[:entries]
        now = self._renamed[classify(value, self._rules.entries)]
        is_right = find_right(
            value, mask_of, self._table.masks, self._held.action[:entries], now, self._rules.entries
        )
        is_idle = self._held.last_s[:entries] <= time_s - self.problem.cost("idle_s")
        if not is_right.all():
            self.stale_s = max(self.stale_s, time_s - self._changed_s)
        self._rows.append(
            (
                time_s,
                entries,
                len(np.unique(mask_of)),
                int(self.counts[MISSES]),
                int(self.counts[WRONG]),
                int((is_idle & is_right).sum()),
                int((~is_right).sum()),
            )
        )
        if is_idle.any() or not is_right.all():
            self._rebuild(np.flatnonzero(is_right & ~is_idle))
        takes_s = entries * self.problem.cost("revalidate_us") / 1e6
        self.revalidate_s += takes_s
        self._next_check_s = time_s + max(self.problem.cost("revalidate_s"), takes_s)

    def _make_space(self) -> None:
        """Make the table longer where the headers could fill it."""
        needed = len(self._headers) + 1
        if (
            len(self._table.mask_of) < self._table.counts[0] + needed
            or len(self._table.masks) < self._table.counts[1] + needed
        ):
            self._rebuild(np.arange(int(self._table.counts[0])))

    def _rebuild(self, retained: Ints) -> None:
        """Make the table anew with some entries, the planned masks, and space for each header."""
        old, held = self._table, self._held
        used = np.unique(old.mask_of[retained])
        masks = [tuple(mask) for mask in self._planned.tolist()]
        index_of: dict[tuple[int, ...], int] = {}
        for row, mask in enumerate(masks):
            index_of.setdefault(mask, row)
        by_hits = used[np.argsort(-old.hits[used], kind="stable")]
        for mask in map(tuple, old.masks[by_hits].tolist()):
            if mask not in index_of:
                index_of[mask] = len(masks)
                masks.append(mask)
        new_place = np.array(
            [index_of[tuple(mask)] for mask in old.masks[old.mask_of[retained]].tolist()], dtype=np.int32
        )
        size = len(self._headers) + 1
        table = make_table(self._headers.shape[1], len(retained) + 2 * size, len(masks) + 2 * size)
        if masks:
            table.masks[: len(masks)] = np.array(masks, dtype=np.uint64)
        table.counts[1] = len(masks)
        table.weight[: len(masks)] = self._weigh(table.masks[: len(masks)])
        table.weight[: len(self._planned)] = self._planned_weight
        for mask in by_hits.tolist():
            table.hits[index_of[tuple(old.masks[mask].tolist())]] += old.hits[mask]
        table.order[: len(masks)] = np.argsort(-table.hits[: len(masks)], kind="stable")
        insert_all(table, np.ascontiguousarray(old.value[retained]), new_place)
        length = len(table.mask_of)
        self._held = Held(np.zeros(length, np.int32), np.zeros(length), np.zeros(length))
        for name in Held._fields:
            getattr(self._held, name)[: len(retained)] = getattr(held, name)[retained]
        number = np.full(max(int(old.counts[0]), 1), -1, dtype=np.int64)
        number[retained] = np.arange(len(retained))
        if len(self._micro.header):
            entries = np.where(self._micro.header >= 0, number[self._micro.entry], -1)
            self._micro.header[entries < 0] = -1
            self._micro.entry[:] = np.maximum(entries, 0)
        self._table = table

    def _weigh(self, masks: Words) -> Floats:
        """Return the weight of the bits of masks (m, words)."""
        ones = np.unpackbits(masks.astype(">u8").view(np.uint8), axis=1)
        return np.asarray(ones @ self._bit_weight)
