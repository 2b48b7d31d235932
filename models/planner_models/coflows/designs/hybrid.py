"""Circuits and the packet switch together: each coflow is divided between the two when it arrives."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.coflows.designs.decision import decide
from planner_models.coflows.designs.sebf import Interval, prioritize
from planner_models.coflows.designs.sunflow import run_windows
from planner_models.coflows.plan.flow_groups import FlowGroups, group_flows
from planner_models.coflows.plan.plan import Service, make_circuits, make_settings
from planner_models.coflows.problem.problem import CoflowsInTime, Floats

Thresholds = Annotated[
    int,
    Field(
        ge=1,
        le=64,
        description="sizes tried up to which a coflow's flows go by the packet switch alone; 1: none is",
    ),
]
HALVINGS: Final = 30
"""Halvings of the interval of the share that the packet switch carries."""


def schedule(
    problem: CoflowsInTime,
    *,
    thresholds: Thresholds = 8,
    interval_ms: Interval = 10.0,
    options: Options = Options(),
) -> Decision[Service]:
    """Divide each coflow between circuits, scheduled by Sunflow, and the packet switch, by SEBF.

    When a coflow arrives, its flows up to a size go by the packet switch alone, which needs no set-up; of the
    larger ones both carry a share. Size and share are those with which the busiest port of both has the least
    to do, set-up times included, as if the coflow were alone.

    source  ours; large flows by circuits and small ones by packets after Wang et al. 2010 (c-Through), the
            two parts after Huang et al. 2016 (Sunflow) and Chowdhury et al. 2014 (Varys)
    """
    share = divide(problem, thresholds)
    by_circuits, by_packets = (group_flows(problem, problem.bits * factor) for factor in (1.0 - share, share))
    index, start, end, switch = run_windows(problem, by_circuits, rank=None)
    plan = Service(
        circuits=make_circuits(problem, by_circuits.flow[index], start, end, switch),
        priorities=prioritize(problem, by_packets, interval_ms),
        settings=make_settings("proportional" if len(by_packets.flow) else "none", interval_ms),
    )
    return decide(problem, plan, "all", None, options)


def divide(problem: CoflowsInTime, thresholds: int) -> Floats:
    """Return (F,) the share of each flow that the packet switch carries, from 0 to 1."""
    groups = group_flows(problem)
    share = np.zeros(len(problem.bits))
    for first, last in zip(groups.first[:-1].tolist(), groups.first[1:].tolist(), strict=True):
        if last > first:
            coflow = _Coflow(problem, groups, slice(first, last))
            share[groups.flow[first:last]] = coflow.divide(thresholds)
    share[share <= ROUNDING] = 0.0
    share[share >= 1 - ROUNDING] = 1.0
    return share


class _Coflow:
    """One coflow by port: racks that send, then racks that receive, those alone that it uses.

    port          (2 F,) the port of each flow, sending and then receiving
    time          (F,) on a circuit, over the number of circuit switches, ms
    packet_rate   (ports,) bits/ms
    """

    def __init__(self, problem: CoflowsInTime, groups: FlowGroups, rows: slice) -> None:
        n = len(problem.racks)
        ends = np.concatenate([groups.source[rows], groups.target[rows] + n])
        ports, self.port = np.unique(ends, return_inverse=True)
        self.bits = groups.bits[rows]
        self.setup_ms = problem.setup_ms / problem.switches
        self.time = self.bits / problem.circuit_rate[groups.flow[rows]] / problem.switches
        self.packet_rate = problem.packet_rate[ports % n]

    def divide(self, thresholds: int) -> Floats:
        """Return (F,) the share of each flow that the packet switch carries."""
        none = np.zeros(len(self.bits))
        if not (self.packet_rate > 0).all():
            return none
        sizes = np.unique(np.quantile(self.bits, np.linspace(0.0, 1.0, thresholds)))[: thresholds - 1]
        tried = [none]
        for threshold in (0.0, *sizes.tolist()):
            is_small = self.bits <= threshold
            tried += [np.where(is_small, 1.0, 0.0), np.where(is_small, 1.0, self._balance(is_small))]
        return min([*tried, none + 1.0], key=lambda share: max(self._times(share)))

    def _balance(self, is_small: np.ndarray) -> float:
        """Return the share of larger flows with which both switches take the same time."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            circuits, packets = self._times(np.where(is_small, 1.0, middle))
            low, high = (middle, high) if packets < circuits else (low, middle)
        return low

    def _times(self, share: Floats) -> tuple[float, float]:
        """Return the time of the busiest port on circuits and on the packet switch, ms."""
        circuit_ms = np.where(share < 1, (1 - share) * self.time + self.setup_ms, 0.0)
        circuits = np.bincount(self.port, weights=np.tile(circuit_ms, 2))
        packets = np.bincount(self.port, weights=np.tile(share * self.bits, 2)) / self.packet_rate
        return float(circuits.max()), float(packets.max())
