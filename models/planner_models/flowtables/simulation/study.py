"""Simulation of a design: a cache in time, with idle entries, microflows and rules that change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract import control_loop
from planner.contract.control_loop import ROUND_COLUMNS
from planner.contract.design import Design
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less, more
from planner.contract.simulation import Simulation, SimulationResult
from planner.errors import InputError
from planner.options import Options
from planner_models.flowtables.designs.reactive import MASKS_OF_MISSES
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.simulation.execution import CacheExecution, Packets
from planner_models.flowtables.simulation.forwarding import (
    MICROFLOW_HITS,
    MISSES,
    PACKETS,
    PROBES,
    UNCACHED,
    WRONG,
)

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


def simulate(
    problem: FlowTables,
    *,
    design: Design[FlowTables, Cache],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    connections_per_s: Annotated[
        float, Field(gt=0, le=1e9, description="rate of connections where flows have no start_s")
    ] = 1_000.0,
    packet_gap_s: Annotated[
        float, Field(ge=0, le=1e6, description="time between packets of a connection, s")
    ] = 0.1,
    period_s: Annotated[
        float, Field(gt=0, le=1e9, description="time between two plans of a design that plans masks, s")
    ] = 10.0,
    window_s: Annotated[
        float, Field(gt=0, le=1e9, description="connections of this time are known to a plan, s")
    ] = 60.0,
) -> SimulationResult:
    """Simulate a cache in time: microflows, idle entries, and the table `changes` of rules.

    Designs that act at each miss install their own mask. `merged` and `replanned` plan masks again each
    period, from the connections of the last window; a miss takes the planned mask that keeps its action.
    A run ends two revalidations after the last connection or change starts; later packets are left out.

    raises  InputError for more than 20,000,000 packets
    """
    start_s = _read_starts(problem, connections_per_s)
    headers, number = np.unique(problem.headers, axis=0, return_inverse=True)
    packets = make_packets(problem, start_s, number.reshape(-1), packet_gap_s)
    execution = CacheExecution(
        problem,
        start_s,
        packets,
        np.ascontiguousarray(headers),
        masks_of_misses=MASKS_OF_MISSES.get(design.name),
        is_pool=design.name == POOL,
        window_s=window_s,
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
            period_s=period_s,
            first_s=period_s,
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
