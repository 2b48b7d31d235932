"""The linear program that tells whether capacities carry all demands, and if not, which row they miss.

Minimizes the weighted overload of links. Its dual values are lengths: by linear programming duality
capacities carry the demands if and only if, for all lengths of links,

    sum over links (length x capacity)  >=  sum over demands (rate x distance under these lengths)

which is the metric inequality (Iri 1971, Onaga and Kakusho 1971).
"""

from __future__ import annotations

import highspy
import numpy as np
import scipy.sparse as sp

from planner_models.capacity.designs.network_design.network import Floats, Network


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
