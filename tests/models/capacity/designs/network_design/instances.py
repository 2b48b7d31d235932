"""Small instances of network design, and independent answers to them."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.backends.dispatch import solve as solve_program
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.solution import Solution as ProgramSolution
from planner.options import Options
from planner_models.capacity.designs.network_design.instance import Instance


@st.composite
def instances(
    draw: st.DrawFn, *, max_nodes: int = 5, failures: bool = True, routing: bool = True
) -> Instance:
    """Small random networks with every kind of cost, limit and direction."""
    nodes = draw(st.integers(3, max_nodes))
    pairs = list(itertools.combinations(range(nodes), 2))
    drawings = draw(st.lists(st.sampled_from(pairs), min_size=nodes - 1, max_size=7, unique=True))
    direction = draw(st.sampled_from(["undirected", "bidirected", "directed"]))
    if direction == "directed":
        drawings = [*drawings, *[(b, a) for a, b in drawings]]
    edges = len(drawings)
    full = st.integers(0, 9)
    explicit = draw(st.booleans())
    module_edge, size, cost, limit = [], [], [], []
    for edge in range(edges):
        for kind in range(draw(st.integers(1, 2))):
            module_edge.append(edge)
            size.append(draw(st.sampled_from([3.0, 10.0])) * (kind + 1))
            cost.append(float(draw(st.integers(1, 20))))
            limit.append(draw(st.sampled_from([1.0, 2.0, np.inf, np.inf])))
    demands = draw(
        st.lists(
            st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1), st.integers(0, 7)),
            min_size=1,
            max_size=5,
        )
    )
    down = np.zeros((0, edges), dtype=bool)
    if failures and draw(st.booleans()):
        down = np.eye(edges, dtype=bool)[: draw(st.integers(1, edges))]
    has_setup, has_routing = draw(st.booleans()), routing and draw(st.booleans())
    return Instance(
        nodes=nodes,
        tail=np.array([a for a, _ in drawings]),
        head=np.array([b for _, b in drawings]),
        direction=direction,
        installed=np.array([draw(full) * 1.0 if draw(st.booleans()) else 0.0 for _ in range(edges)]),
        setup_cost=np.array([float(draw(full)) * has_setup for _ in range(edges)]),
        routing_cost=np.array([float(draw(full)) * has_routing for _ in range(edges)]),
        module_edge=np.array(module_edge),
        module_size=np.array(size),
        module_cost=np.array(cost),
        module_limit=np.array(limit),
        explicit=explicit,
        source=np.array([a for a, _, _ in demands]),
        target=np.array([b for _, b, _ in demands]),
        rate=np.array([float(rate) for _, _, rate in demands]),
        failures=down,
    )


class _Rows:
    """Rows of a program in the order in which they come, as dense vectors."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.matrix: list[np.ndarray] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def add(self, index: np.ndarray, value: float | np.ndarray, low: float, high: float) -> np.ndarray:
        """Add the row with `value` at columns `index`; return it, to be changed."""
        row = np.zeros(self.count)
        row[index] = value
        self.matrix.append(row)
        self.low.append(low)
        self.high.append(high)
        return row


def extended_program(instance: Instance, budget: float | None = None) -> LinearProgram:
    """The plain program: a flow for each demand in each state, and capacities bought once."""
    edges, modules, demands = instance.edges, instance.modules, len(instance.rate)
    tail, head, edge = instance.tail, instance.head, np.arange(edges)
    if instance.direction != "directed":
        tail, head, edge = np.r_[tail, head], np.r_[head, tail], np.r_[edge, edge]
    states = [np.ones(edges, dtype=bool), *[~row for row in instance.failures]]
    flow_start = modules + edges + demands
    count = flow_start + len(states) * demands * len(tail)
    rows = _Rows(count)
    many = np.minimum(instance.module_limit, np.ceil(instance.rate.sum() / instance.module_size) + 1)
    lower, upper = np.zeros(count), np.full(count, np.inf)
    upper[:modules], upper[modules : modules + edges] = many, 1.0
    upper[modules + edges : flow_start] = instance.rate
    if budget is None:
        lower[modules + edges : flow_start] = instance.rate
    spent = np.zeros(count)
    spent[:modules], spent[modules : modules + edges] = instance.module_cost, instance.setup_cost
    for m in range(modules):
        rows.add(np.array([m, modules + instance.module_edge[m]]), np.array([1.0, -many[m]]), -np.inf, 0.0)
    for e in range(edges if instance.explicit else 0):
        rows.add(np.flatnonzero(instance.module_edge == e), 1.0, -np.inf, 1.0)
    for s, up in enumerate(states):
        first = flow_start + s * demands * len(tail)
        flow = first + np.arange(demands * len(tail)).reshape(demands, len(tail))
        upper[flow[:, ~up[edge]]] = 0.0
        if s == 0:
            spent[flow] = instance.routing_cost[edge]
        _add_flow_rows(rows, instance, flow, (tail, head, edge))
    cost = spent
    if budget is not None:
        rows.add(np.arange(count), spent, -np.inf, budget)
        cost = np.zeros(count)
        cost[modules + edges : flow_start] = -1.0
    block = Rows(
        "all", sp.csr_array(np.array(rows.matrix)), lower=np.array(rows.low), upper=np.array(rows.high)
    )
    full = np.arange(count) < modules + edges
    return LinearProgram.build(cost=cost, rows=[block], lower=lower, upper=upper, integer=full)


def _add_flow_rows(
    rows: _Rows, instance: Instance, flow: np.ndarray, arcs: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Add conservation and capacities of one state, whose flow columns are (demands, arcs)."""
    (tail, head, edge), edges = arcs, instance.edges
    delivered = instance.modules + edges
    for d in range(len(flow)):
        for v in range(instance.nodes):
            net = float(instance.source[d] == v) - float(instance.target[d] == v)
            row = rows.add(np.array([delivered + d]), -net, 0.0, 0.0)
            row[flow[d, tail == v]] += 1.0
            row[flow[d, head == v]] -= 1.0
    for e in range(edges):
        groups = [edge == e]
        if instance.direction == "bidirected":
            along = np.arange(len(edge)) < edges
            groups = [(edge == e) & along, (edge == e) & ~along]
        kinds = np.flatnonzero(instance.module_edge == e)
        for group in groups:
            row = rows.add(kinds, -instance.module_size[kinds], -np.inf, instance.installed[e])
            row[flow[:, group]] = 1.0


def solve_extended(instance: Instance, budget: float | None = None) -> ProgramSolution:
    """Solve the plain program with SCIP, which the design does not use."""
    return solve_program(extended_program(instance, budget), Options(backend="ortools:scip"))


def can_route(instance: Instance, counts: np.ndarray, rates: np.ndarray) -> bool:
    """Whether the bought capacities route all rates in each state, one linear program a state."""
    bought = np.zeros(instance.edges)
    for m, number in enumerate(counts):
        bought[instance.module_edge[m]] += number * instance.module_size[m]
    capacity = instance.installed + bought
    for down in [np.zeros(instance.edges, dtype=bool), *instance.failures]:
        if not _fits(instance, np.where(down, 0.0, capacity), rates):
            return False
    return True


def _fits(instance: Instance, capacity: np.ndarray, rates: np.ndarray) -> bool:
    edges, demands, nodes = instance.edges, len(rates), instance.nodes
    ways = 1 if instance.direction == "directed" else 2
    count = demands * edges * ways  # flow[d, way, e]
    column = np.arange(count).reshape(demands, ways, edges)
    balance = np.zeros((demands * nodes, count))
    net = np.zeros(demands * nodes)
    for d in range(demands):
        for way in range(ways):
            begin, end = (instance.tail, instance.head) if way == 0 else (instance.head, instance.tail)
            for e in range(edges):
                balance[d * nodes + begin[e], column[d, way, e]] += 1.0
                balance[d * nodes + end[e], column[d, way, e]] -= 1.0
        net[d * nodes + instance.source[d]] += rates[d]
        net[d * nodes + instance.target[d]] -= rates[d]
    loads, limits = [], []
    for e in range(edges):
        for group in [[0], [1]] if instance.direction == "bidirected" else [list(range(ways))]:
            row = np.zeros(count)
            row[column[:, group, e]] = 1.0
            loads.append(row)
            limits.append(capacity[e] + 1e-5)
    answer = linprog(np.zeros(count), np.array(loads), np.array(limits), balance, net, method="highs-ipm")
    return bool(answer.status == 0)
