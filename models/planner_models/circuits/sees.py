"""What a scheduler believes of the demand, and how its schedule plays out in truth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner_models.circuits import packet
from planner_models.circuits.check import carried
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Schedule, packet_table

UNIT_BYTES: Final = 1e6
CONNECTIONS: Final = 16
MEMORY_US: Final = 15_000.0
"""A big flow of the mean size, 49.5 MB, at a third of a circuit's 80 Gbit/s (Mukerjee 2018, 2.5.3)."""

Age = Annotated[float, Field(ge=0, description="what is told is of the demand so long ago, us")]
Memory = Annotated[
    float,
    Field(
        gt=0,
        description="how long a demand lasts in the mean, us; what was there before it was between other "
        "racks (of use with age_us)",
    ),
]
Noise = Annotated[float, Field(ge=0, description="standard deviation of the logarithm of each told amount")]
Grain = Annotated[
    float, Field(ge=0, description="amounts are told in whole steps of this, rounded up, bytes; 0: exactly")
]
Seed = Annotated[int, Field(ge=0, description="seed of what has changed, and of the noise")]


def told(
    problem: Circuits,
    *,
    age_us: Age = 0.0,
    memory_us: Memory = MEMORY_US,
    noise: Noise = 0.0,
    grain_bytes: Grain = 0.0,
    seed: Seed = 0,
) -> Circuits:
    """All of the demand, as old, as noisy and as coarse as it is told; the problem itself where it is not."""
    return reported(earlier(problem, age_us, memory_us, seed), noise, grain_bytes, seed)


def queues(
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
    age_us: Age = 0.0,
    memory_us: Memory = MEMORY_US,
    noise: Noise = 0.0,
    grain_bytes: Grain = 0.0,
    seed: Seed = 0,
) -> Circuits:
    """What virtual output queues hold: of each demand no more than fits its queue.

    Full queues tell which pairs have demand, and not how much. With `fill_share` the week is shared
    out by their lengths.

    source  Mukerjee 2018, 2.5.1; `fill_share` after its published emulator (github.com/mukerjee/etalon),
            which scales lengths up to half of the week and then makes the days as long as all of it
    """
    then = earlier(problem, age_us, memory_us, seed)
    depth = depth_packets * packet_bytes * 8
    held = then.with_bits(np.minimum(then.demands["bits"].to_numpy(float), depth))
    return _filled(reported(held, noise, grain_bytes, seed), fill_share)


def data_units(
    problem: Circuits,
    *,
    unit_bytes: Annotated[
        float, Field(gt=0, description="what an application hands over at a time, bytes")
    ] = UNIT_BYTES,
    connections: Annotated[
        int, Field(gt=0, description="connections of a pair of racks, each with a unit at hand")
    ] = CONNECTIONS,
    age_us: Age = 0.0,
    memory_us: Memory = MEMORY_US,
    noise: Noise = 0.0,
    grain_bytes: Grain = 0.0,
    seed: Seed = 0,
) -> Circuits:
    """What applications have told: of each demand the data units that they have handed over so far.

    An application that hands over its next unit only when the last one is on its way tells a unit at a
    time; one that writes a whole file at once tells all of it. The scheduler learns sizes, and makes no
    use of where units end.

    source  Mukerjee 2018, 2.5.2
    """
    then = earlier(problem, age_us, memory_us, seed)
    handed_over = connections * unit_bytes * 8
    bits = then.demands["bits"].to_numpy(float)
    if (bits > handed_over).any():
        then = then.with_bits(np.minimum(bits, handed_over))
    return reported(then, noise, grain_bytes, seed)


# --- how reports are worse than the truth -------------------------------------------------


def earlier(problem: Circuits, age_us: float, memory_us: float, seed: int) -> Circuits:
    """The demand as it was `age_us` ago: what has come since is not there, what has gone since still is.

    A demand lasts `memory_us` in the mean, however old it is already, so that a share
    exp(-age_us / memory_us) was there then. Racks send and receive as much as ever, but of two
    demands of much the same size that were not there yet each had the other's target. All amounts
    are kept, and what each rack sends; what it receives, but for their difference in size.
    """
    if age_us == 0:
        return problem
    rng = np.random.default_rng([seed, 0])
    source, target = (
        problem.places.get_indexer(pd.Index(problem.demands[end])) for end in ("source_rack", "target_rack")
    )
    amount = problem.demands["bits"].to_numpy(float)
    came = np.flatnonzero(rng.random(len(amount)) < -math.expm1(-age_us / memory_us))
    order = came[np.lexsort((rng.random(len(came)), amount[came]))]
    bits = np.zeros_like(problem.bits)
    np.add.at(bits, (source, _exchanged(source, target, order)), amount)
    row, column = np.nonzero(bits)
    demands = pd.DataFrame(
        {
            "source_rack": problem.names[row],
            "target_rack": problem.names[column],
            "bits": bits[row, column],
        }
    )
    return replace(problem, demands=demands, coflows=None)


def _exchanged(
    source: NDArray[np.int64], target: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(m,) targets, where each demand of `order` has that of the next one with which it can change.

    It cannot where they share a rack: one would be from a rack to itself, or nothing would change. A
    demand that finds no other keeps its own.
    """
    exchanged = target.copy()
    waiting: list[int] = []
    for one in order.tolist():
        for place, other in enumerate(waiting):
            if not {source[one], target[one]} & {source[other], target[other]}:
                exchanged[one], exchanged[other] = target[other], target[one]
                del waiting[place]
                break
        else:
            waiting.append(one)
    return exchanged


def reported(problem: Circuits, noise: float, grain_bytes: float, seed: int) -> Circuits:
    """Every amount times a lognormal factor of median 1, then in whole steps, of which any part counts.

    Steps are what switches count their memory in, and hosts what applications hand over.
    """
    bits = problem.demands["bits"].to_numpy(float)
    if noise > 0:
        bits = bits * np.random.default_rng([seed, 1]).lognormal(0.0, noise, size=len(bits))
    if grain_bytes > 0:
        step = 8 * grain_bytes
        bits = np.ceil(bits / step - 1e-9) * step
    return problem if noise == 0 and grain_bytes == 0 else problem.with_bits(bits)


def _filled(problem: Circuits, share: float) -> Circuits:
    window = problem.window_us
    time = problem.bits / problem.circuit_mbps
    busiest = float(max(time.sum(axis=1).max(), time.sum(axis=0).max()))
    if window is None or not 0 < busiest < share * window:
        return problem
    return problem.scaled(share * window / busiest)


def enact(truth: Circuits, believed: Circuits, plan: Schedule) -> Schedule:  # noqa: ARG001
    """Circuits as planned; the packet switch carries the most it can of what is truly left."""
    circuits = Schedule(configurations=plan.configurations, packet=plan.packet.iloc[:0])
    left = truth.bits - carried(truth, circuits).circuit_bits
    window = truth.window_us
    extra = left if window is None else packet.fill(left, truth.packet_mbps * window)
    return Schedule(configurations=plan.configurations, packet=packet_table(truth, extra), ports=plan.ports)
