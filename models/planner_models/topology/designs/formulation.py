"""The formal model of system `topology` in Pyomo: links and routing by one transit block, together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner_models.topology.problem.problem import Fabric, pairs_of

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Fabric) -> pyo.ConcreteModel:
    """Return the planning of links and routing together as a model.

    maximize    t
    subject to  x_ij + sum_k x_ikj = t D_ij                                for every demand from i to j
                x_ij + sum_k (x_ijk + x_kij) <= r_ij n_ij                  for every direction
                sum_j n_ij <= ports of i                                   n whole, the same both ways
                sum_ij m_ij <= move limit, n_ij - m_ij <= links of today   where moves are limited
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("topology engineering")
    _add_variables(m, problem)
    _add_routing(m, problem)
    m.ports = pyo.Constraint(
        m.B, rule=lambda m, i: sum(_links(m, i, j) for j in m.B if j != i) <= int(problem.ports[i])
    )
    present, limit = problem.present, problem.move_limit
    if present is not None and limit is not None:
        m.m = pyo.Var(m.P, domain=pyo.NonNegativeReals)
        m.made = pyo.Constraint(m.P, rule=lambda m, i, j: m.n[i, j] - m.m[i, j] <= int(present[i, j]))
        m.moves = pyo.Constraint(expr=sum(m.m[i, j] for i, j in m.P) <= limit)
    m.goal = pyo.Objective(expr=m.t, sense=pyo.maximize)
    return m


def _add_variables(m: pyo.ConcreteModel, problem: Fabric) -> None:
    """Add the sets, and the variables of links and of traffic, direct or by a transit block."""
    import pyomo.environ as pyo

    count, demand = len(problem.blocks), problem.demand_mbps
    first, other = (ends.tolist() for ends in pairs_of(problem))
    m.B = pyo.RangeSet(0, count - 1)
    m.P = pyo.Set(initialize=list(zip(first, other, strict=True)))
    m.A = pyo.Set(initialize=[(i, j) for i in range(count) for j in range(count) if i != j])
    m.D = pyo.Set(initialize=[(i, j) for i, j in m.A if demand[i, j] > 0])
    m.T = pyo.Set(initialize=[(i, k, j) for i, j in m.D for k in range(count) if k not in (i, j)])
    m.t = pyo.Var(domain=pyo.NonNegativeReals)
    m.n = pyo.Var(m.P, domain=pyo.NonNegativeIntegers)
    m.x = pyo.Var(m.D, domain=pyo.NonNegativeReals)
    m.y = pyo.Var(m.T, domain=pyo.NonNegativeReals)


def _add_routing(m: pyo.ConcreteModel, problem: Fabric) -> None:
    """Add the routes of all demands, and the capacity of each direction."""
    import pyomo.environ as pyo

    demand, rate = problem.demand_mbps, problem.link_mbps

    def routes(m: pyo.ConcreteModel, i: int, j: int) -> Any:
        by_transit = sum(m.y[i, k, j] for k in m.B if k not in (i, j))
        return m.x[i, j] + by_transit == float(demand[i, j]) * m.t

    def carries(m: pyo.ConcreteModel, i: int, j: int) -> Any:
        load = m.x[i, j] if (i, j) in m.D else 0
        load += sum(m.y[i, j, b] for b in m.B if (i, j, b) in m.T)
        load += sum(m.y[b, i, j] for b in m.B if (b, i, j) in m.T)
        return load <= float(rate[i, j]) * _links(m, i, j)

    m.routes = pyo.Constraint(m.D, rule=routes)
    m.carries = pyo.Constraint(m.A, rule=carries)


def _links(m: pyo.ConcreteModel, i: int, j: int) -> Any:
    """Return the links between two blocks."""
    return m.n[min(i, j), max(i, j)]
