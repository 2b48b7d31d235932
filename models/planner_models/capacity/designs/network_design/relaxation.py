"""The linear relaxation of the master program, tightened by separated rows."""

from __future__ import annotations

from planner_models.capacity.designs.network_design.feasibility import Feasibility
from planner_models.capacity.designs.network_design.flow_rows import FlowRowSeparator
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Floats, Network
from planner_models.capacity.designs.network_design.partitions import PartitionSeparator

STALL_ROUNDS = 4
"""Rounds of cutset separation without a row after which the search for them ends."""

PARTITION_ROUNDS = 4
"""Rounds of partition rows at the linear relaxation, for modules of several sizes: with one size, branch and
bound finds most of these rows itself."""

METRIC_ROUNDS = 15
"""Rounds of metric rows at the linear relaxation."""

MAX_SPLIT_COLUMNS = 8000
"""Flow columns up to which the relaxation is solved with a flow for each demand."""

FLOW_ROUNDS = 30
"""Rounds of rows with flow at the linear relaxation."""

FLOW_STALL = 3
FLOW_GAIN = 1e-4
"""Relative gain of FLOW_STALL rounds with which the search for more goes on."""


class Relaxation:
    """Raises the bound by rows that the optimal point of the linear relaxation violates.

    is_compact  whether a program with flow is small enough to be searched, too
    """

    def __init__(self, feasibility: Feasibility, *, is_compact: bool) -> None:
        self.feasibility, self.is_compact = feasibility, is_compact
        self.master, self.instance = feasibility.master, feasibility.instance
        self.cutsets, self.incumbent = feasibility.cutsets, feasibility.incumbent
        self.rng, self.budget = feasibility.rng, feasibility.budget
        self.has_sizes = self.budget is None and len(self.cutsets.sizes) > 1
        self.partitions = PartitionSeparator(self.instance, self.master.network, self.master, self.cutsets)

    def tighten(self, rounds: int | None = None) -> Floats | None:
        """Return the optimal point of the linear relaxation with cutset and metric rows."""
        stalled, metric, partition, count = 0, 0, 0, 0
        point: Floats | None = None
        while True:
            solved = self.master.solve_relaxation(self.incumbent.left_s())
            if solved is None:
                return None if self.master.is_relaxation_infeasible() else point
            point = solved[0]
            self.incumbent.raise_bound(solved[1])
            count += 1
            if self.incumbent.left_s() <= 0.0 or (rounds is not None and count > rounds):
                return point
            added = self.cutsets.separate(point, self.rng)
            stalled = 0 if added else stalled + 1
            if stalled < STALL_ROUNDS and (stalled == 0 or rounds is None):
                continue
            tried = 0 if self.budget is not None else self.partitions.separate_trees(point, self.rng)
            if not tried and self.has_sizes and partition < PARTITION_ROUNDS:
                tried = self.partitions.separate(point, self.rng, self.incumbent.deadline)
                partition += 1
            if not tried and (metric >= METRIC_ROUNDS or not self.feasibility.separate(point)):
                return point
            metric += 0 if tried else 1
            stalled = STALL_ROUNDS - 1

    def tighten_split(self) -> None:
        """Raise the bound by the relaxation in which each demand has a flow of its own, where it is small.

        Its rows over single flows are stronger than those over capacities, but branch and bound on it has few
        nodes a second.
        """
        columns = len(self.instance.rate) * self.master.network.arcs
        if not self.is_compact or self.budget is not None or columns > MAX_SPLIT_COLUMNS:
            return
        if self.instance.tunnels is not None:
            return
        network = Network(self.instance, split=True)
        program = Master(self.instance, network, None, with_flow=True)
        program.share_pool(self.master)
        rows = FlowRowSeparator(self.instance, network, program)
        values: list[float] = []
        for _ in range(FLOW_ROUNDS):
            solved = program.solve_relaxation(self.incumbent.left_s())
            if solved is None or self.incumbent.is_done():
                return
            point, value = solved
            self.incumbent.raise_bound(value)
            values.append(value)
            is_stalled = len(values) > FLOW_STALL and value <= values[-1 - FLOW_STALL] * (1 + FLOW_GAIN)
            if is_stalled or not rows.separate(point) + self.cutsets.separate(point, self.rng):
                return
