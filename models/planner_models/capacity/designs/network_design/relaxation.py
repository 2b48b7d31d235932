"""The linear relaxation of the master program, tightened by separated rows.

Separation of rows of one link over its modules and flows, by mixed-integer rounding.

For a set Q of commodities, a link has capacity for all their traffic R(Q), or some of it takes other links:

    installed + sum over modules (size x count)  +  sum over Q (rate - flow)  >=  R(Q)

Rounding the counts gives the arc residual capacity inequalities, and for one commodity the strong inequality
`flow <= rate x count`. They are stronger than any row over capacities alone.

Reference: Magnanti, Mirchandani and Vachani, "The convex hull of two core capacitated network design
problems", Mathematical Programming 60, 1993; Marchand and Wolsey, "Aggregation and mixed integer rounding to
solve MIPs", Operations Research 49, 2001.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner_models.capacity.designs.network_design.cutsets import TOLERANCE, round_down
from planner_models.capacity.designs.network_design.feasibility import Feasibility
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Floats, Ints, Network
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
MIN_VIOLATION = 1e-3
"""Violation of a row with a right-hand side of whole modules from which it is added."""


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


class FlowRowSeparator:
    """Finds violated rows of single links and adds them to a master program with flow."""

    def __init__(self, instance: Instance, network: Network, master: Master) -> None:
        self.instance, self.network, self.master = instance, network, master
        commodities = len(network.roots)
        self.rate: Floats = np.zeros(commodities)
        free = network.commodity >= 0
        np.add.at(self.rate, network.commodity[free], instance.rate[free])
        arcs = np.arange(network.arcs)
        self._on_row = sp.csr_array(
            (np.ones(network.arcs), (network.arc_capacity, arcs)), shape=(network.capacities, network.arcs)
        )
        self._kinds = [np.flatnonzero(instance.module_edge == edge) for edge in range(instance.edges)]

    def separate(self, point: Floats) -> int:
        """Add rows that a point of the master program violates; return their number."""
        network, master = self.network, self.master
        shape = len(network.roots), network.arcs
        flow = point[master.pooled : master.pooled + shape[0] * shape[1]].reshape(shape)
        on_row = (self._on_row @ flow.T).T
        return sum(self._separate_row(row, on_row[:, row], point) for row in range(network.capacities))

    def _separate_row(self, row: int, flow: Floats, point: Floats) -> int:
        """Add the rows of one capacity row with flow (K,) of each commodity; return their number."""
        instance, edge = self.instance, int(self.network.capacity_edge[row])
        kinds = self._kinds[edge]
        used = np.flatnonzero(flow > TOLERANCE * self.rate)
        if not len(kinds) or not len(used):
            return 0
        order = used[np.argsort(-flow[used] / self.rate[used], kind="stable")]
        counts, size = point[kinds], instance.module_size[kinds]
        total = np.cumsum(self.rate[order]) - instance.installed[edge]
        remainder = np.cumsum(self.rate[order] - flow[order])
        added = 0
        for divisor in np.unique(size):
            # sets of the commodities that send most of their traffic here, and single ones
            added += self._add_most_violated(
                row, kinds, counts, divisor, order, (total, remainder), is_set=True
            )
            single = self.rate[order] - instance.installed[edge]
            alone = self.rate[order] - flow[order]
            added += self._add_most_violated(
                row, kinds, counts, divisor, order, (single, alone), is_set=False
            )
        return added

    def _add_most_violated(
        self,
        row: int,
        kinds: Ints,
        counts: Floats,
        divisor: float,
        order: Ints,
        traffic: tuple[Floats, Floats],
        *,
        is_set: bool,
    ) -> int:
        """Add the most violated row of sets of commodities, or all violated rows of single ones.

        traffic  (Q,) of a set beyond what is installed, and (Q,) what of it takes other links
        """
        total, remainder = traffic
        needed = total / divisor
        rounded_up = np.ceil(needed - TOLERANCE * np.maximum(1.0, np.abs(needed)))
        fraction = needed - (rounded_up - 1.0)
        usable = (total > 1e-9) & (fraction < 1.0 - TOLERANCE)
        safe = np.where(usable, fraction, 1.0)
        size = self.instance.module_size[kinds] / divisor
        full = np.floor(size + TOLERANCE)
        remaining = np.maximum(0.0, size - full)
        coefficient = full + np.minimum(1.0, remaining / safe[:, None])
        coefficient = np.minimum(coefficient, np.maximum(rounded_up, 1.0)[:, None])
        violation = np.where(
            usable, rounded_up - coefficient @ counts - remainder / (divisor * safe), -np.inf
        )
        rows = np.flatnonzero(violation > MIN_VIOLATION)
        if is_set and len(rows):
            rows = rows[[violation[rows].argmax()]]
        for position in rows.tolist():
            members = order[: position + 1] if is_set else order[[position]]
            self._add(row, kinds, members, divisor, float(total[position]))
        return len(rows)

    def _add(self, row: int, kinds: Ints, members: Ints, divisor: float, total: float) -> None:
        """Add the row of a set of commodities, rounded by a divisor."""
        network, master = self.network, self.master
        needed = total / divisor
        rounded_up = float(np.ceil(needed - TOLERANCE * max(1.0, needed)))
        fraction = needed - (rounded_up - 1.0)
        size = np.minimum(
            round_down(self.instance.module_size[kinds] / divisor, fraction), max(rounded_up, 1.0)
        )
        arcs = np.flatnonzero(network.arc_capacity == row)
        flows = (master.pooled + members[:, None] * network.arcs + arcs).ravel()
        per_unit = 1.0 / (divisor * fraction)
        master.add_flow_row(
            np.r_[kinds, flows],
            np.r_[size, np.full(len(flows), -per_unit)],
            rounded_up - float(self.rate[members].sum()) * per_unit,
        )
