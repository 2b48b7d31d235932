"""Signalling between hosts, racks and switches for the circuits of one week.

The packet switch gets no plan of its own: it serves the racks' queues. A schedule that is set once needs
no messages week by week.

Observations of the demand: all of it, queue lengths, or data units; old, with noise, or coarse.

Realization of a schedule that was made on an observation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.degradation import Noise, Seed, add_noise, round_up
from planner.contract.parameters import spread
from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner.search.tolerances import ROUNDING
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.multicast_plan import cut_transmissions
from planner_models.circuits.plan.plan import Schedule, fill_packet_switch, packet_table, unserved_table
from planner_models.circuits.problem.problem import Circuits

UNIT_BYTES: Final = 1e6
CONNECTIONS: Final = 16
MEMORY_US: Final = 15_000.0
"""A big flow of the mean size, 49.5 MB, at a third of a circuit's 80 Gbit/s (Mukerjee 2018, 2.5.3)."""
Age = Annotated[float, Field(ge=0, description="age of the information that is decided on, us")]
Granularity = Annotated[
    float,
    Field(ge=0, description="amounts are reported in whole steps of this, rounded up, bytes; 0: exactly"),
]


def count_queue_reports(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling of racks that report their queues: the lengths of those that are not empty.

    Both switches get the schedule.

    source  Mukerjee 2018, 2.2.2 (the loop of scheduling)
    """
    return _count_reports(problem) + _count_schedule(problem, plan)


def count_data_units(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling of hosts that report each data unit, its flow and size, when it is handed over.

    Racks report what they have seen of each pair, and both switches get the schedule.

    Units are as large, and connections as many, as the defaults of `observe_data_units`.

    source  Mukerjee 2018, 2.5.2: libADU reports units; racks' queues count bytes, so that the scheduler
            knows what has left the rack
    """
    unit = 8 * UNIT_BYTES
    units = np.ceil(np.minimum(problem.pair_bits, CONNECTIONS * unit) / unit)
    return _count_units(problem, plan, int(units.sum()))


def count_transfers(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling where applications hand over all of a pair, or of a coflow's part, at once."""
    units = problem.coflows if problem.coflows is not None else problem.pair_bits
    return _count_units(problem, plan, len(units))


def count_multicasts(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling where applications hand over all of a pair, and a multicast once."""
    multicasts = problem.multicast_demands
    alone = problem.bits - multicasts.copy_bits > ROUNDING * problem.bits
    return _count_units(problem, plan, int(alone.sum()) + len(multicasts))


def _count_units(problem: Circuits, plan: Schedule, units: int) -> Signalling:
    """Return the signalling of so many data units, of racks' reports and of the schedule."""
    unit_reports = Signalling(messages=units, bytes=units * (2 * NAME + FIGURE))
    return unit_reports + _count_reports(problem) + _count_schedule(problem, plan)


def _count_reports(problem: Circuits) -> Signalling:
    """Return one message of each rack, with the target and a figure for each pair that has demand."""
    return Signalling(messages=len(problem.racks), bytes=len(problem.pair_bits) * (NAME + FIGURE))


def _count_schedule(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the schedule's messages: to each circuit switch its own circuits, to the packet switch all.

    What a circuit to several racks is to send goes with them.
    """
    frame = plan.configurations
    if not len(frame):
        return NONE
    size = frame["day"].nunique() * FIGURE + len(frame) * 2 * NAME
    if plan.transmissions is not None:
        size += len(plan.transmissions) * (NAME + 2 * FIGURE)
    switches_used = frame["switch"].nunique() if problem.switches > 1 else 1
    return Signalling(messages=switches_used + 1, bytes=2 * size)


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Age and accuracy of the reports of demand."""

    age_us: Age = 0.0
    memory_us: Annotated[
        float,
        Field(
            gt=0,
            description="how long a demand lasts in the mean, us; earlier demand was between other racks (of "
            "use with age_us)",
        ),
    ] = MEMORY_US
    noise: Noise = 0.0
    granularity_bytes: Granularity = 0.0
    seed: Seed = 0

    def age(self, problem: Circuits) -> Circuits:
        """Return the demand as it was when it was reported."""
        return demand_at_age(problem, self.age_us, self.memory_us, self.seed)

    def degrade(self, problem: Circuits) -> Circuits:
        """Return the problem with every amount as measured, with noise, then in whole steps.

        Steps are the units in which switches count their memory, and hosts what applications hand over.
        """
        if self.noise == 0 and self.granularity_bytes == 0:
            return problem
        rng = np.random.default_rng([self.seed, 1])
        bits = add_noise(problem.demands["bits"].to_numpy(float), self.noise, rng)
        degraded = problem.with_bits(round_up(bits, 8 * self.granularity_bytes))
        if problem.multicasts is None:
            return degraded
        number_of, names = pd.factorize(problem.multicasts["multicast"])
        first = np.unique(number_of, return_index=True)[1]
        bits = add_noise(problem.multicasts["bits"].to_numpy(float)[first], self.noise, rng)
        assert len(names) == len(first)
        return degraded.with_multicast_bits(round_up(bits, 8 * self.granularity_bytes)[number_of])


@spread(reports=Reports())
def observe_demand(
    problem: Circuits,
    *,
    reports: Reports,
) -> Circuits:
    """Return all of the demand, as old, as noisy and as coarse as it is reported.

    Each copy of a multicast is a demand of its own, as hosts report it that send copies one by one.
    """
    return reports.degrade(reports.age(problem.as_unicast()))


@spread(reports=Reports())
def observe_multicasts(
    problem: Circuits,
    *,
    reports: Reports,
) -> Circuits:
    """Return all of the demand with multicasts as such, as noisy and as coarse as it is reported.

    Age is of the other demands: applications announce the targets of a multicast.
    """
    return reports.degrade(reports.age(problem))


@spread(reports=Reports())
def observe_queues(
    problem: Circuits,
    *,
    depth_packets: Annotated[
        int, Field(gt=0, description="packets that the queue of a pair of racks holds")
    ] = 16,
    packet_bytes: Annotated[float, Field(gt=0, description="size of a packet, bytes")] = 9_000.0,
    fill_share: Annotated[
        float,
        Field(
            ge=0,
            description="share of the week that the busiest rack's circuit must be busy: lengths that fill "
            "less are all scaled up to it, so that shallow queues are scheduled at all; 0: as they are",
        ),
    ] = 0.0,
    reports: Reports,
) -> Circuits:
    """Return the lengths of virtual output queues: of each demand no more than fits its queue.

    Full queues show which pairs have demand, and not how much. With `fill_share` the week is divided
    by their lengths.

    source  Mukerjee 2018, 2.5.1; `fill_share` after its published emulator (github.com/mukerjee/etalon),
            which scales lengths up to half of the week and then makes the days as long as all of it
    """
    then = reports.age(problem.as_unicast())
    depth = depth_packets * packet_bytes * 8
    held = then.with_bits(np.minimum(then.demands["bits"].to_numpy(float), depth))
    return _fill_week(reports.degrade(held), fill_share)


@spread(reports=Reports())
def observe_data_units(
    problem: Circuits,
    *,
    unit_bytes: Annotated[
        float, Field(gt=0, description="size of what an application hands over at a time, bytes")
    ] = UNIT_BYTES,
    connections: Annotated[
        int, Field(gt=0, description="connections of a pair of racks, each with a unit handed over")
    ] = CONNECTIONS,
    reports: Reports,
) -> Circuits:
    """Return the data units that applications have handed over so far, of each demand.

    An application that hands over its next unit only when the last one is on its way reports a unit at a
    time; one that writes a whole file at once reports all of it. The scheduler learns sizes, and makes no
    use of where units end.

    source  Mukerjee 2018, 2.5.2
    """
    then = reports.age(problem.as_unicast())
    handed_over = connections * unit_bytes * 8
    bits = then.demands["bits"].to_numpy(float)
    if (bits > handed_over).any():
        then = then.with_bits(np.minimum(bits, handed_over))
    return reports.degrade(then)


def demand_at_age(problem: Circuits, age_us: float, memory_us: float, seed: int) -> Circuits:
    """Return the demand as it was `age_us` ago.

    A demand lasts `memory_us` in the mean, however old it is already, so that a share
    exp(-age_us / memory_us) existed then. Of the others, two of nearly the same size have each other's
    target. All amounts stay, and what each rack sends; what it receives, but for their difference in size.
    """
    if age_us == 0:
        return problem
    rng = np.random.default_rng([seed, 0])
    source, target = problem.rows_of(problem.demands)
    amount = problem.demands["bits"].to_numpy(float)
    changed = np.flatnonzero(rng.random(len(amount)) < -math.expm1(-age_us / memory_us))
    order = changed[np.lexsort((rng.random(len(changed)), amount[changed]))]
    bits = np.zeros_like(problem.bits)
    np.add.at(bits, (source, _swap_targets(source, target, order)), amount)
    row, column = np.nonzero(bits)
    demands = pd.DataFrame({**problem.name_pairs(row, column), "bits": bits[row, column]})
    return replace(problem, demands=demands, coflows=None)


def _swap_targets(
    source: NDArray[np.int64], target: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (m,) targets, where each demand of `order` swaps with the next one with which it can.

    It cannot where they share a rack: one would be from a rack to itself, or nothing would change. A
    demand that finds no other keeps its own.
    """
    swapped = target.copy()
    waiting: list[int] = []
    for current in order.tolist():
        for index, other in enumerate(waiting):
            if not {source[current], target[current]} & {source[other], target[other]}:
                swapped[current], swapped[other] = target[other], target[current]
                del waiting[index]
                break
        else:
            waiting.append(current)
    return swapped


def _fill_week(problem: Circuits, share: float) -> Circuits:
    """Return demand scaled up until the busiest circuit is busy for a share of the week."""
    window = problem.window_us
    time = problem.bits / problem.circuit_mbps
    busiest = float(max(time.sum(axis=1).max(), time.sum(axis=0).max()))
    if window is None or not 0 < busiest < share * window:
        return problem
    return problem.scale(share * window / busiest)


def realize(truth: Circuits, observed: Circuits, plan: Schedule) -> Schedule:  # noqa: ARG001
    """Return the planned circuits with the most true remaining demand that the packet switch can carry.

    What a circuit to several racks would send beyond the end of a multicast is left out.
    """
    plan = replace(plan, transmissions=cut_transmissions(truth, plan.transmissions))
    circuits = replace(plan, packet=plan.packet.iloc[:0], ports=None, unserved=None)
    remaining = (truth.bits - derive_carried(truth, circuits).circuit_bits)[truth.pairs]
    remaining[remaining <= ROUNDING * truth.pair_bits] = 0.0
    extra = fill_packet_switch(truth, remaining)
    return replace(plan, packet=packet_table(truth, extra), unserved=unserved_table(truth, remaining - extra))
