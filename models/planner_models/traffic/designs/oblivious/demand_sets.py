"""Sets of demand matrices, and the matrix of a set that loads a link the most under given shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.program_builder import ProgramBuilder
from planner.compiled import njit, run_small_in_python
from planner.contract.proof import Status
from planner.contract.table import Table, label, number
from planner.contract.tables import report_unknown_names
from planner.errors import InputError, SolverFailure
from planner.io.table_files import read_table
from planner.search.tolerances import FEASIBILITY, SUM_ROUNDING
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.shortest_path_trees import allocate, dijkstra
from planner_models.traffic.problem import series
from planner_models.traffic.problem.problem import Traffic

MAX_ENTRIES: Final = 200_000_000  # rates of all matrices together
FILL_PASSES: Final = 3
SMALLEST_SHARE: Final = SUM_ROUNDING  # of a demand on a link

HOSE: Final = Table(
    name="hose",
    about="the most traffic of all demands that start, or end, at a node",
    columns={
        "node": label("the node"),
        "egress_mbps": number("most traffic that it sends, Mbit/s", at_least=0),
        "ingress_mbps": number("most traffic that it receives, Mbit/s", at_least=0),
    },
    key=("node",),
)
FULL_TOLERANCE: Final = FEASIBILITY  # relative; links within it of the busiest one show their worst matrix


class DemandSet(Protocol):
    """Demand matrices, rates (K,) Mbit/s each, that shares are to serve.

    largest  (K,) the largest rate of each demand in any of them
    words    what they are
    """

    @property
    def largest(self) -> Floats: ...

    @property
    def words(self) -> str: ...

    def find_worst(self, share: sp.csr_array) -> tuple[Floats, Floats, list[str]]:
        """Return the largest load of each link under shares (K, E), and a matrix that makes it.

        returns  (E,) Mbit/s; (E, K) matrices; their names
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedMatrices:
    """Matrices one by one, (M, K) Mbit/s, with their names."""

    rate_mbps: Floats
    names: tuple[str, ...]
    words: str
    largest: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", self.rate_mbps.max(axis=0, initial=0.0))

    def find_worst(self, share: sp.csr_array) -> tuple[Floats, Floats, list[str]]:
        load = np.asarray((share.T @ self.rate_mbps.T).T)
        worst = load.argmax(axis=0)
        return load.max(axis=0), self.rate_mbps[worst], [self.names[row] for row in worst.tolist()]


class HoseLimits:
    """All matrices within limits of each node's sent and received traffic, (N,) Mbit/s each.

    The worst of them for a link is a transportation problem: the most traffic from nodes that send to nodes
    that receive, each pair with the share of its demand on the link as value. One solver session solves it
    for one link after the other, from the last basis.

    source  Duffield et al. 1999 (hose model)
    """

    def __init__(self, problem: Traffic, egress_mbps: Floats, ingress_mbps: Floats) -> None:
        self.words = "all demand within the limits of nodes (hose model)"
        self.largest = np.minimum(egress_mbps[problem.source], ingress_mbps[problem.target])
        count, nodes = len(problem.demands), len(problem.nodes)
        self.source, self.target = problem.source, problem.target
        self.egress_mbps, self.ingress_mbps = egress_mbps, ingress_mbps
        self.labels = problem.link_labels
        m = ProgramBuilder(name="hose")
        demand = m.variables("demand", count)
        m.constrain("sends", demand.sum_by(problem.source, nodes), upper=egress_mbps)
        m.constrain("receives", demand.sum_by(problem.target, nodes), upper=ingress_mbps)
        self._program = m.build()
        self._session: Any = None

    def find_worst(self, share: sp.csr_array) -> tuple[Floats, Floats, list[str]]:
        from planner.backends import highs  # imports the solver, so only where it is needed

        if self._session is None:
            self._session = highs.load(self._program)
            self._session.setOptionValue("solver", "simplex")
        by_link, count = share.tocsc(), share.shape[0]
        load, matrices = np.zeros(share.shape[1]), np.zeros((share.shape[1], count))
        columns = np.arange(count, dtype=np.int32)
        for link in range(share.shape[1]):
            value = np.zeros(count)
            span = slice(by_link.indptr[link], by_link.indptr[link + 1])
            value[by_link.indices[span]] = by_link.data[span]
            if not (value > SMALLEST_SHARE).any():
                continue
            self._session.changeColsCost(count, columns, -value)
            if highs.run(self._session, highs.NAME) is not Status.OPTIMAL:
                raise SolverFailure(f"hose: {highs.NAME} finds no worst demand of {self.labels[link]}")
            rate = np.clip(np.array(self._session.getSolution().col_value), 0.0, self.largest)
            load[link] = float(value @ rate)
            matrices[link] = np.where(value > SMALLEST_SHARE, rate, 0.0)
        return load, matrices, [f"worst for {name}" for name in self.labels]

    def fill(self, rate: Floats) -> Floats:
        """Return a matrix, (K,), with the remaining traffic of nodes spread over its demands."""
        for ends, limit in ((self.source, self.egress_mbps), (self.target, self.ingress_mbps)):
            sent = sum_by_index(ends, rate, len(limit))
            factor = np.divide(limit, sent, out=np.ones(len(limit)), where=sent > limit)
            rate = rate * factor[ends]
        for _ in range(FILL_PASSES):
            egress = np.maximum(
                self.egress_mbps - sum_by_index(self.source, rate, len(self.egress_mbps)), 0.0
            )
            ingress = np.maximum(
                self.ingress_mbps - sum_by_index(self.target, rate, len(self.ingress_mbps)), 0.0
            )
            extra = egress[self.source] * ingress[self.target]
            sent = sum_by_index(self.source, extra, len(egress))[self.source]
            received = sum_by_index(self.target, extra, len(ingress))[self.target]
            # what each pair may take of both, in proportion
            by_source = np.divide(egress[self.source] * extra, sent, out=np.zeros(len(rate)), where=sent > 0)
            by_target = np.divide(
                ingress[self.target] * extra, received, out=np.zeros(len(rate)), where=received > 0
            )
            rate = rate + np.minimum(by_source, by_target)
        return rate


def read_matrices(problem: Traffic, path: Path) -> ListedMatrices:
    """Read a table of matrices or a folder of SNDlib files, see `series.read`.

    raises  InputError for demands that the problem does not have, and for matrices that need too much memory
    """
    tables = problem.to_tables()
    matrices = series.read(path, network={name: tables[name] for name in ("nodes", "links")})
    if len(matrices) * len(problem.demands) > MAX_ENTRIES:
        raise InputError(
            f"{path.name}: {len(matrices):,} matrices of {len(problem.demands):,} demands need too much "
            "memory"
        )
    demand = problem.find_demands(matrices.busiest.demands)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        name = matrices.busiest.demand_labels[unknown[0]]
        raise InputError(f"{path.name}: {name} is no demand of the problem")
    labels, rows = [], []
    for step, matrix in matrices:
        labels.append(step)
        rows.append(sum_by_index(demand, matrix.rate_mbps, len(problem.demands)))
    return ListedMatrices(
        rate_mbps=np.array(rows), names=tuple(labels), words=f"each of {len(labels):,} demand matrices"
    )


def read_hose(problem: Traffic, path: Path | None) -> HoseLimits:
    """Read the table `hose`; without one, the limits are the present traffic of each node.

    A node that the table does not list sends and receives nothing.
    """
    nodes = len(problem.nodes)
    if path is None:
        egress = sum_by_index(problem.source, problem.rate_mbps, nodes)
        return HoseLimits(problem, egress, sum_by_index(problem.target, problem.rate_mbps, nodes))
    table = read_table(HOSE, path)
    faults = report_unknown_names(
        table, "hose", "node", problem.nodes["node"].tolist(), "no node of the network"
    )
    if faults:
        raise InputError(*faults)
    node: Ints = problem.find_nodes(table["node"])
    egress, ingress = (
        sum_by_index(node, table[name].to_numpy(float), nodes) for name in ("egress_mbps", "ingress_mbps")
    )
    return HoseLimits(problem, egress, ingress)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Shares (K, E) of each demand on each link, and their proof.

    utilization  of the busiest link under the worst matrix; bound: no shares have a smaller one
    matrices     (R, K) matrices that load links the most, with their names
    """

    share: sp.csr_array
    utilization: float
    bound: float
    matrices: Floats
    names: list[str]


def better_shares(
    best: Shares | None, share: sp.csr_array, utilization: Floats, matrices: Floats, names: list[str]
) -> Shares:
    """Return the better one of the best shares so far and others with their worst matrices of each link."""
    worst = float(utilization.max(initial=0.0))
    if best is not None and worst >= best.utilization:
        return best
    is_full = utilization >= worst * (1 - FULL_TOLERANCE)
    return Shares(
        share=share,
        utilization=worst,
        bound=0.0,
        matrices=matrices[is_full],
        names=[name for name, full in zip(names, is_full.tolist(), strict=True) if full],
    )


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def shortest_paths(graph, length, requested, source, target):  # type: ignore[no-untyped-def]
    """Return the shortest path of each demand under lengths of its own: length, start, links."""
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    value, start = np.empty(len(requested)), np.zeros(len(requested) + 1, np.int64)
    link = np.empty(len(requested) * graph.nodes, np.int64)
    for i in range(len(requested)):
        k = requested[i]
        dijkstra(graph, length[k], target[k], work, parent)
        value[i] = work.distance[source[k]]
        position, v = start[i], source[k]
        while v != target[k]:
            link[position] = parent[v]
            v = graph.head[parent[v]]
            position += 1
        start[i + 1] = position
    return value, start, link[: start[len(requested)]]
