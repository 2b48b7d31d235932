"""Formal model of the places of stored data in Pyomo, for small problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner_models.analytics.problem.archives import read_archives, read_stores
from planner_models.analytics.problem.problem import Analytics

if TYPE_CHECKING:
    import pyomo.environ as pyo


def archive_formulation(problem: Analytics) -> pyo.ConcreteModel:
    r"""Formulate the place of each pair of a site and a query, x, or its loss, d, at least cost in a month.

    .. math:: \min \sum_{ip} c_{ip} x_{ip} + \sum_i v_i d_i \quad\text{s.t.}\quad \sum_p x_{ip} + d_i = 1,
       \quad \sum_{i} g_i x_{ip} \le K_p, \quad \sum_{ip} r_{ipl} x_{ip} \le R_l

    for data i, places p and uplinks l, with gigabytes g, rates r, capacities K and R, and x = 0 where rules
    of regions do not allow a place.

    source  Rabkin et al. 2013, sections 1 and 5
    """
    import pyomo.environ as pyo

    archived, stores = read_archives(problem), read_stores(problem)
    m = pyo.ConcreteModel("archives")
    data, kinds = range(len(archived.site)), range(3)
    m.x = pyo.Var(data, kinds, domain=pyo.Binary)
    m.d = pyo.Var(data, domain=pyo.Binary)
    m.cost = pyo.Objective(
        expr=sum(float(archived.usd[i, p]) * m.x[i, p] for i in data for p in kinds)
        + sum(float(archived.value_usd[i]) * m.d[i] for i in data)
    )
    m.one_place = pyo.Constraint(data, rule=lambda m, i: sum(m.x[i, p] for p in kinds) + m.d[i] == 1)
    for i in data:
        for p in kinds:
            if not archived.is_allowed[i, p]:
                m.x[i, p].fix(0)

    def capacity(m: pyo.ConcreteModel, store: int) -> Any:
        terms = [
            float(archived.gb[i]) * m.x[i, p] for i in data for p in kinds if archived.store[i, p] == store
        ]
        limit = float(stores.capacity_gb[store])
        return sum(terms) <= limit if terms and limit < float("inf") else pyo.Constraint.Skip

    def uplink(m: pyo.ConcreteModel, link: int) -> Any:
        terms = [
            float(archived.link_mbps[i, p, end]) * m.x[i, p]
            for i in data
            for p in kinds
            for end in (0, 1)
            if archived.store[i, end] == link
        ]
        limit = float(stores.link_mbps[link])
        return sum(terms) <= limit if terms and limit < float("inf") else pyo.Constraint.Skip

    m.capacity = pyo.Constraint(range(len(stores.capacity_gb)), rule=capacity)
    m.uplink = pyo.Constraint(range(len(stores.link_mbps)), rule=uplink)
    return m
