"""A check that capacities carry the demands in every state, and the rows that they miss where they do not.

Separation of metric rows: lengths of links under which the demands need more than the capacities.

The linear program that tells whether capacities carry all demands, and if not, which row they miss.

Minimizes the weighted overload of links. Its dual values are lengths: by linear programming duality
capacities carry the demands if and only if, for all lengths of links,

    sum over links (length x capacity)  >=  sum over demands (rate x distance under these lengths)

which is the metric inequality (Iri 1971, Onaga and Kakusho 1971).
"""

from __future__ import annotations

from collections.abc import Iterator

import highspy
import numpy as np
import scipy.sparse as sp

from planner.search.tolerances import FEASIBILITY
from planner_models.capacity.designs.network_design.cutsets import CutsetSeparator, round_row
from planner_models.capacity.designs.network_design.incumbent import Incumbent
from planner_models.capacity.designs.network_design.instance import Instance, Shortage
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Bools, Floats, Network
from planner_models.capacity.designs.network_design.states import States

OVERLOAD_TOLERANCE = FEASIBILITY
"""Overload of all links together, relative to all traffic, up to which capacities carry it."""

MAX_VIOLATED_STATES = 6
"""States that give metric rows to one candidate."""
MAX_DENOMINATOR = 24
LENGTH_TOLERANCE = FEASIBILITY


class Feasibility:
    """Checks points of the master program in all states, those first that were violated lately.

    unit  capacity of one unit of the reduced instance
    """

    def __init__(
        self,
        master: Master,
        states: States,
        cutsets: CutsetSeparator,
        incumbent: Incumbent,
        rng: np.random.Generator,
        unit: float,
    ) -> None:
        self.master, self.states, self.cutsets, self.incumbent = master, states, cutsets, incumbent
        self.rng, self.unit = rng, unit
        self.instance, self.network, self.budget = master.instance, master.network, master.budget
        self.oracle = OverloadProgram(self.network, np.ones(self.instance.edges))
        self.recent = np.zeros(len(states))

    def capacity(self, point: Floats) -> Floats:
        return self.instance.capacity(point[: self.instance.modules])

    def unreached(self, capacity: Floats, rates: Floats) -> Iterator[tuple[int, int, Bools]]:
        """Yield demands without a path in a state: state, demand, and the links of which it needs one (E,).

        Solvers take demands that are tiny beside the others for none.
        """
        network, states = self.network, self.states
        for state in range(len(states)):
            for demand, links in network.unreached(capacity > 0, states.up[state]):
                if states.required[state, demand] > 0 and rates[demand] > 0:
                    yield state, demand, links

    def separate_unreached(self, point: Floats) -> bool:
        """Add a row for each demand without a path, which needs one of some links; return whether it did."""
        if self.budget is not None:
            return False
        is_separated = False
        for _, _, links in self.unreached(self.capacity(point), self.instance.rate):
            is_separated = True
            row = np.zeros(self.master.pooled)
            row[: self.master.modules] = links[self.instance.module_edge]
            self.master.add_row(row, 1.0)
        return is_separated

    def violated_states(self, point: Floats, limit: int) -> list[tuple[int, Floats]] | None:
        """Return states that a point cannot carry, with lengths that prove it; None where time runs out."""
        rates, capacity = self.cutsets.rates(point), self.capacity(point)
        tolerance = OVERLOAD_TOLERANCE * max(float(self.instance.rate.sum()), 1e-9)
        violated: list[tuple[int, Floats]] = []
        for state in np.argsort(-self.recent, kind="stable").tolist():
            solved = self.oracle.solve(
                capacity * self.states.up[state], rates * self.states.required[state], self.incumbent.left_s()
            )
            if solved is None:
                return None
            if solved[0] > tolerance:
                violated.append((state, solved[2]))
                self.recent[state] += 1.0
                if len(violated) >= limit:
                    break
        self.recent *= 0.95
        return violated

    def separate(self, point: Floats) -> bool | None:
        """Add rows that a point violates; return whether there were any, None where time runs out."""
        if self.separate_unreached(point):
            return True
        violated = self.violated_states(point, MAX_VIOLATED_STATES)
        if violated is None:
            return None
        for state, lengths in violated:
            add_metric_row(
                self.instance,
                self.network,
                self.states,
                self.master,
                state=state,
                lengths=lengths,
                point=point,
            )
        if violated:
            self.cutsets.separate(point, self.rng)
        return bool(violated)

    def is_cut_off(self, point: Floats) -> bool:
        """Add rows of node sets that a point violates; return whether it does. Quick beside `separate`."""
        return bool(self.cutsets.separate(point, self.rng)) and self.master.is_cut_off(point)

    def find_shortage(self) -> tuple[Shortage | None] | None:
        """Return a proof that even all modules do not carry the demands; None where they do."""
        if self.budget is not None:
            return None
        point = np.zeros(self.master.columns)
        point[: self.instance.modules] = self.most_counts()
        violated = self.violated_states(point, 1)
        if not violated:
            return None
        return (self._cut_of(point, violated[0][0]),)

    def most_counts(self) -> Floats:
        """Return the modules that give each link its largest capacity, shape (M,)."""
        instance = self.instance
        if not instance.explicit:
            return instance.module_limit
        counts = np.zeros(instance.modules)
        for edge in range(instance.edges):
            kinds = np.flatnonzero(instance.module_edge == edge)
            if len(kinds):
                counts[kinds[instance.module_size[kinds].argmax()]] = 1.0
        return counts

    def _cut_of(self, point: Floats, state: int) -> Shortage | None:
        """Return a cut with more demand than capacity in a state, if local search finds one."""
        instance, network, states = self.instance, self.network, self.states
        sets = [np.eye(network.nodes, dtype=bool), ~np.eye(network.nodes, dtype=bool)]
        lengths = np.where(self.capacity(point) > 0, 1.0, 1e6)[network.capacity_edge]
        near = network.distances(lengths, states.up[state])
        sets += [near < 1e6, (near < 1e6).T]
        for _ in range(5):
            found_sets = self.cutsets.find_sets(point, self.rng)
            if len(found_sets):
                sets.append(found_sets)
        nodes = np.vstack(sets)
        up, required = states.up[state], states.required[state]
        demand = (network.demand_crosses(nodes) * instance.rate) @ required
        have = (network.crosses(nodes) * self.capacity(point)) @ up.astype(float)
        worst = int((demand - have).argmax())
        if demand[worst] <= have[worst] * (1 + 1e-9):
            return None
        failure = int(states.failure[state])
        unit = self.unit
        return Shortage(
            nodes=tuple(np.flatnonzero(nodes[worst]).tolist()),
            failure=None if failure < 0 else failure,
            capacity=float(have[worst]) * unit,
            demand=float(demand[worst]) * unit,
        )


def add_metric_row(
    instance: Instance,
    network: Network,
    states: States,
    master: Master,
    *,
    state: int,
    lengths: Floats,
    point: Floats,
) -> bool:
    """Add the rounded metric row of lengths (R,) in a state; return whether it is new.

    point  where the rounded row should be violated most
    """
    lengths = to_fractions(lengths)
    up, required = states.up[state], states.required[state]
    distance = network.demand_distances(lengths, up)
    distance = np.where((required > 0) & (instance.rate > 0), distance, 0.0)
    if not np.isfinite(distance).all():
        return False
    distance = distance * required
    on_edge = np.bincount(network.capacity_edge, weights=lengths, minlength=instance.edges) * up
    coefficients = (on_edge[instance.module_edge]) * instance.module_size
    have = float(on_edge @ instance.installed)
    row = np.zeros(master.pooled)
    if master.budget is not None:
        unit = max(float(coefficients.max(initial=0.0)), 1e-9)
        row[: master.modules] = coefficients / unit
        row[master.delivered] = -distance / unit
        return master.add_row(row, -have / unit)
    limit = float(distance @ instance.rate) - have
    if limit <= 1e-9 or not coefficients.any():
        return False
    row[: master.modules], rounded = round_row(coefficients, limit, point[: master.modules])
    return master.add_row(row, rounded)


def to_fractions(lengths: Floats) -> Floats:
    """Return lengths as fractions of a small common denominator where they are, scaled to at most 1."""
    lengths = lengths / max(float(lengths.max(initial=0.0)), 1e-12)
    for denominator in range(1, MAX_DENOMINATOR + 1):
        scaled = lengths * denominator
        rounded = np.round(scaled)
        if np.abs(scaled - rounded).max(initial=0.0) <= LENGTH_TOLERANCE * denominator:
            fractions: Floats = rounded / denominator
            return fractions
    cleaned: Floats = np.where(lengths < LENGTH_TOLERANCE, 0.0, lengths)
    return cleaned


class OverloadProgram:
    """Least overload of a network for changing capacities and rates, warm from solve to solve.

    weights  (E,) cost of one unit of overload on each link
    work     simplex iterations times rows of all solves
    """

    def __init__(self, network: Network, weights: Floats) -> None:
        self.network = network
        self.weights_by_link = weights
        self.weights = weights[network.capacity_edge]
        flows, capacities = network.flow_columns, network.capacities
        self.work = 0.0
        self._flow_rows = network.conservation.shape[0]
        matrix = sp.csr_array(
            sp.block_array([[network.conservation, None], [network.load, -sp.eye_array(capacities)]])
        )
        rows, columns = matrix.shape
        self._highs = highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        self._rates: Floats | None = None
        highs.passModel(
            columns,
            rows,
            matrix.nnz,
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            np.r_[np.zeros(flows), self.weights],
            np.zeros(columns),
            np.full(columns, np.inf),
            np.r_[np.zeros(self._flow_rows), np.full(capacities, -np.inf)],
            np.zeros(rows),
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
            np.zeros(columns, dtype=np.int32),
        )

    def solve(
        self, capacity: Floats, rates: Floats, time_limit_s: float, upper: Floats | None = None
    ) -> tuple[float, Floats, Floats] | None:
        """Return the least overload, of each link (E,), and the lengths (R,); None where time runs out.

        capacity  (E,), 0 for links that are down
        rates     (D,)
        upper      (E,) overload that a link can have, None for any
        """
        network, highs = self.network, self._highs
        if self._rates is None or not np.array_equal(rates, self._rates):
            supply = network.supply @ rates
            highs.changeRowsBounds(len(supply), np.arange(len(supply), dtype=np.int32), supply, supply)
            self._rates = rates.copy()
        rows = np.arange(self._flow_rows, self._flow_rows + network.capacities, dtype=np.int32)
        limits = capacity[network.capacity_edge]
        highs.changeRowsBounds(len(rows), rows, np.full(len(rows), -np.inf), limits)
        if upper is not None:
            columns = np.arange(network.capacities, dtype=np.int32) + network.flow_columns
            limits = upper[network.capacity_edge]
            highs.changeColsBounds(len(columns), columns, np.zeros(len(columns)), limits)
        highs.setOptionValue("time_limit", max(0.0, time_limit_s) + highs.getRunTime())
        highs.run()
        self.work += float(highs.getInfo().simplex_iteration_count) * highs.getNumRow()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        values = highs.getSolution()
        overload = np.array(values.col_value)[-network.capacities :]
        lengths = np.maximum(0.0, -np.array(values.row_dual)[-network.capacities :])
        on_edge = np.zeros(network.instance.edges)
        np.maximum.at(on_edge, network.capacity_edge, overload)
        return float(highs.getInfo().objective_function_value), on_edge, lengths

    def flows(self) -> Floats:
        """Return the flow of each commodity on each arc in the last solution, shape (K, A)."""
        values = np.array(self._highs.getSolution().col_value)[: len(self.network.roots) * self.network.arcs]
        return values.reshape(len(self.network.roots), self.network.arcs)
