"""What a scheduler believes of the demand, and how its schedule plays out in truth."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner_models.circuits import packet
from planner_models.circuits.check import carried
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Schedule, packet_table


def queues(
    problem: Circuits,
    *,
    depth_packets: Annotated[
        int, Field(gt=0, description="packets that the queue of a pair of racks holds")
    ] = 16,
    packet_bytes: Annotated[float, Field(gt=0, description="size of a packet, bytes")] = 9_000.0,
) -> Circuits:
    """What virtual output queues hold: of each demand no more than fits its queue.

    source  Mukerjee 2018, 2.5.1
    """
    depth = depth_packets * packet_bytes * 8
    return problem.with_bits(np.minimum(problem.demands["bits"].to_numpy(float), depth))


def data_units(
    problem: Circuits,
    *,
    unit_bytes: Annotated[
        float, Field(gt=0, description="what an application hands over at a time, bytes")
    ] = 1e6,
    connections: Annotated[
        int, Field(gt=0, description="connections of a pair of racks, each with a unit at hand")
    ] = 16,
) -> Circuits:
    """What applications have told: of each demand the data units that they have handed over so far.

    An application that hands over its next unit only when the last one is on its way tells a unit at a
    time; one that writes a whole file at once tells all of it. The scheduler learns sizes, and makes no
    use of where units end.

    source  Mukerjee 2018, 2.5.2
    """
    told = connections * unit_bytes * 8
    bits = problem.demands["bits"].to_numpy(float)
    return problem if (bits <= told).all() else problem.with_bits(np.minimum(bits, told))


def enact(truth: Circuits, believed: Circuits, plan: Schedule) -> Schedule:  # noqa: ARG001
    """Circuits as planned; the packet switch carries the most it can of what is truly left."""
    circuits = Schedule(configurations=plan.configurations, packet=plan.packet.iloc[:0])
    left = truth.bits - carried(truth, circuits).circuit_bits
    window = truth.window_us
    extra = left if window is None else packet.fill(left, truth.packet_mbps * window)
    return Schedule(configurations=plan.configurations, packet=packet_table(truth, extra), ports=plan.ports)
