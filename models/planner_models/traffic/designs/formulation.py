"""The formal model of system `traffic` in Pyomo: the multi-commodity flow problem as in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from planner.errors import InputError
from planner_models.flows.link_flow_program import Objective, link_cost
from planner_models.traffic.problem.problem import Traffic

if TYPE_CHECKING:
    import pyomo.environ as pyo

Commodity = Literal["target", "pair"]


def formulation(
    problem: Traffic,
    *,
    objective: Objective = "delivered",
    commodity: Commodity = "target",
    least_mbps: float | None = None,
) -> pyo.ConcreteModel:
    """Return equation (1) of Sen et al. 2013 (LocalFlow) as a model.

    maximize    sum_i U_i(x_i)
    subject to  flow conservation at every node v for every commodity
                flow out of s towards d equals the send rates of the flows from s to d
                f summed over commodities at most c_uv on every link (u, v)

    With `commodity="pair"` a commodity is a pair (s, d) as in the paper; with "target" it is a target
    d, after the substitution f^d = sum over s of f^{s,d} (section 4.2). Links are numbered, so that
    parallel ones differ. The objective determines the send rates x and the utilities U:

    delivered    0 <= x <= demand, maximize sum x - min(c) U / 2: most traffic, then least utilization U <= 1,
                 since one Mbit/s less never lowers U by more than 1 / min(c)
    concurrent   x = lambda * demand, maximize lambda
    utilization  x = demand, minimize the largest link utilization (section 4: equivalent to (1) on
                 a symmetric network with given rates); U is relative to the capacities
    total        0 <= x <= demand, maximize sum x, that is U_i(x_i) = x_i
    cost         x = demand, minimize the price of the traffic on all links; with `least_mbps` instead
                 0 <= x <= demand and sum x at least that

    Demands without a path have no x: they are shed.

    raises  InputError for latency limits and rules of routes, which it does not know
    """
    if problem.parsed_rules or np.isfinite(problem.max_latency_ms).any():
        raise InputError("problem: has latency limits or rules, which the formal model does not know")
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("multi-commodity flow")
    problem = problem.routable
    tail, head, c = problem.tail.tolist(), problem.head.tolist(), problem.capacity_mbps.tolist()
    demands = np.flatnonzero(problem.rate_mbps > 0).tolist()
    pairs = {(int(problem.source[k]), int(problem.target[k])): float(problem.rate_mbps[k]) for k in demands}

    m.V = pyo.Set(initialize=range(len(problem.nodes)))
    m.E = pyo.Set(initialize=range(len(problem.links)))
    m.SD = pyo.Set(initialize=list(pairs), dimen=2)
    destination: dict[Any, int] = (
        {pair: pair[1] for pair in pairs} if commodity == "pair" else {d: d for _, d in pairs}
    )
    m.I = pyo.Set(initialize=list(destination))  # commodities
    out_of = {v: [e for e in m.E if tail[e] == v] for v in m.V}
    into = {v: [e for e in m.E if head[e] == v] for v in m.V}

    m.f = pyo.Var(m.I, m.E, domain=pyo.NonNegativeReals)  # Mbit/s of a commodity on a link
    m.x = pyo.Var(m.SD, domain=pyo.NonNegativeReals)  # send rates, Mbit/s

    def send_rate(m: pyo.ConcreteModel, i: Any, v: int) -> Any:
        if commodity == "pair":
            return m.x[i] if i[0] == v else 0
        return m.x[v, i] if (v, i) in pairs else 0

    def conserves(m: pyo.ConcreteModel, *index: int) -> Any:
        *i, v = index
        name: Any = tuple(i) if commodity == "pair" else i[0]
        if v == destination[name]:  # no flow leaves its target
            return sum(m.f[name, e] for e in out_of[v]) == 0 if out_of[v] else pyo.Constraint.Skip
        leaves, enters = sum(m.f[name, e] for e in out_of[v]), sum(m.f[name, e] for e in into[v])
        supply = send_rate(m, name, v)
        if not out_of[v] and not into[v]:
            return pyo.Constraint.Skip if isinstance(supply, int) else supply == 0
        return leaves - enters == supply

    m.conserves = pyo.Constraint(m.I, m.V, rule=conserves)
    load = {e: sum(m.f[i, e] for i in m.I) for e in m.E}

    m.factor = pyo.Var(domain=pyo.NonNegativeReals)
    is_limited = objective in ("delivered", "utilization")  # by the factor U, else by capacities alone
    m.capacity = pyo.Constraint(m.E, rule=lambda m, e: load[e] <= (m.factor * c[e] if is_limited else c[e]))
    _limit_rates(
        m, objective, pairs, is_partial=objective in ("delivered", "total") or least_mbps is not None
    )
    delivered = sum(m.x[pair] for pair in m.SD)
    if objective == "cost" and least_mbps is not None:
        m.total = pyo.Constraint(expr=delivered >= least_mbps)
    _set_goal(problem, m, objective, load, delivered)
    return m


def _limit_rates(
    m: pyo.ConcreteModel, objective: Objective, pairs: dict[tuple[int, int], float], *, is_partial: bool
) -> None:
    """Add the rows of the send rates x: at most the demand, the same share of it, or all of it."""
    import pyomo.environ as pyo

    if is_partial:
        m.sends = pyo.Constraint(m.SD, rule=lambda m, s, d: m.x[s, d] <= pairs[s, d])
    elif objective == "concurrent":
        m.sends = pyo.Constraint(m.SD, rule=lambda m, s, d: m.x[s, d] == m.factor * pairs[s, d])
    else:
        m.sends = pyo.Constraint(m.SD, rule=lambda m, s, d: m.x[s, d] == pairs[s, d])


def _set_goal(
    problem: Traffic, m: pyo.ConcreteModel, objective: Objective, load: dict[int, Any], delivered: Any
) -> None:
    """Add the objective, of the loads of links and of all that is delivered."""
    import pyomo.environ as pyo

    if objective == "delivered":
        m.factor.setub(1.0)
        m.proof_objective = pyo.Expression(expr=delivered)
        smallest = min(problem.capacity_mbps.tolist())
        m.goal = pyo.Objective(expr=delivered - 0.5 * smallest * m.factor, sense=pyo.maximize)
    elif objective == "total":
        m.goal = pyo.Objective(expr=delivered, sense=pyo.maximize)
    elif objective == "cost":
        price = link_cost(problem).tolist()
        m.goal = pyo.Objective(expr=sum(price[e] * load[e] for e in m.E), sense=pyo.minimize)
    else:
        m.goal = pyo.Objective(
            expr=m.factor, sense=pyo.maximize if objective == "concurrent" else pyo.minimize
        )


def flow_mbps(problem: Traffic, m: pyo.ConcreteModel) -> sp.coo_array:
    """Return flows (D, E), Mbit/s, of a solved model with targets as commodities."""
    row_of = {int(target): row for row, target in enumerate(problem.targets)}
    entries = [(row_of[i], e, value) for (i, e), value in m.f.extract_values().items() if value]
    row, link, value = zip(*entries, strict=True) if entries else ((), (), ())
    shape = (len(problem.targets), len(problem.links))
    return sp.coo_array((np.array(value, dtype=float), (row, link)), shape=shape)


def rates_mbps(problem: Traffic, m: pyo.ConcreteModel) -> np.ndarray:
    """Return the send rates in a solved model, shape (K,), Mbit/s."""
    values = m.x.extract_values()
    pairs = zip(problem.source.tolist(), problem.target.tolist(), strict=True)
    return np.array([values.get(pair) or 0.0 for pair in pairs])
