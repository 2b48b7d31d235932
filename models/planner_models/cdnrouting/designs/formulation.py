"""The formal model of system `cdnrouting` in Pyomo: clusters and routes, with tangents of the delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner_models.cdnrouting.plan.flow_problem import Kinds, delay_cost
from planner_models.cdnrouting.problem.problem import Delivery

if TYPE_CHECKING:
    import pyomo.environ as pyo

LAST_UTILIZATION = 3.0


def formulation(problem: Delivery, *, tangents: int = 200) -> pyo.ConcreteModel:
    """Return the least delay of all traffic, Mbit/s times ms, as a linear program.

    minimize    sum_e z_e
    subject to  sum_s x_ks = d_k, sum_k x_ks <= K_s                        for kinds of clients, and clusters
                out - in = B_vt + sum_ks (share at v)(share at t) x_ks     for each target t and node v but t
                l_e = sum_t f_et,  z_e >= each tangent of l_e (t_e + q(l_e / c_e))

    tangents  of each link, from utilization 0 to 3, most of them up to 1; their largest is below the delay
    """
    import pyomo.environ as pyo  # only needed for the formal model

    kinds, network = Kinds.of(problem), problem.network
    m = pyo.ConcreteModel("clusters and routes")
    m.E = pyo.RangeSet(0, len(network.tail) - 1)
    m.T = pyo.RangeSet(0, len(network.targets) - 1)
    pairs = [(int(k), int(s)) for k, s in np.argwhere(kinds.allowed)]
    m.P = pyo.Set(initialize=pairs)
    m.K, m.S = pyo.RangeSet(0, len(kinds.amount) - 1), pyo.RangeSet(0, len(problem.clusters) - 1)
    m.x = pyo.Var(m.P, domain=pyo.NonNegativeReals)
    m.f = pyo.Var(m.E, m.T, domain=pyo.NonNegativeReals)
    m.l, m.z = pyo.Var(m.E), pyo.Var(m.E)
    m.served = pyo.Constraint(
        m.K, rule=lambda m, k: sum(m.x[i, s] for i, s in pairs if i == k) == float(kinds.amount[k])
    )
    m.capacity = pyo.Constraint(
        m.S,
        rule=lambda m, s: (
            pyo.Constraint.Skip
            if not any(j == s for _, j in pairs)
            else sum(m.x[k, j] for k, j in pairs if j == s) <= float(problem.capacity_mbps[s])
        ),
    )
    _add_routes(m, kinds, pairs)
    _add_delay(m, problem, tangents)
    m.goal = pyo.Objective(expr=sum(m.z[e] for e in m.E), sense=pyo.minimize)
    return m


def _add_routes(m: pyo.ConcreteModel, kinds: Kinds, pairs: list[tuple[int, int]]) -> None:
    """Add the conservation of traffic to each target at each node."""
    import pyomo.environ as pyo

    problem = kinds.problem
    network = problem.network
    starts, ends = problem.source_share.toarray(), kinds.target_share.toarray()
    leaving: dict[int, list[int]] = {}
    entering: dict[int, list[int]] = {}
    for e, (tail, head) in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True)):
        leaving.setdefault(tail, []).append(e)
        entering.setdefault(head, []).append(e)

    def conserves(m: pyo.ConcreteModel, t: int, v: int) -> Any:
        if v == int(network.targets[t]):
            return pyo.Constraint.Skip
        supply = float(problem.background[t, v]) + sum(
            float(starts[s, v] * ends[k, t]) * m.x[k, s] for k, s in pairs if starts[s, v] * ends[k, t] > 0
        )
        out = sum(m.f[e, t] for e in leaving.get(v, []))
        into = sum(m.f[e, t] for e in entering.get(v, []))
        if not leaving.get(v) and not entering.get(v):
            return pyo.Constraint.Skip  # nothing comes by: its supply has no path
        return out - into == supply

    m.conserves = pyo.Constraint(m.T, pyo.RangeSet(0, len(network.nodes) - 1), rule=conserves)
    m.loads = pyo.Constraint(m.E, rule=lambda m, e: m.l[e] == sum(m.f[e, t] for t in m.T))


def _add_delay(m: pyo.ConcreteModel, problem: Delivery, tangents: int) -> None:
    """Add the tangents of each link's delay."""
    import pyomo.environ as pyo

    cost = delay_cost(problem)
    dense = np.linspace(0.0, 1.0, 3 * tangents // 4)
    points = np.concatenate([dense, np.linspace(1.0, LAST_UTILIZATION, tangents - len(dense) + 1)[1:]])
    value = np.array([cost.value(point * cost.capacity) for point in points])
    slope = np.array([cost.slope(point * cost.capacity) for point in points])

    def is_above(m: pyo.ConcreteModel, e: int, i: int) -> Any:
        touched = float(points[i] * cost.capacity[e])
        return m.z[e] >= float(value[i, e]) + float(slope[i, e]) * (m.l[e] - touched)

    m.delay = pyo.Constraint(m.E, pyo.RangeSet(0, tangents - 1), rule=is_above)
