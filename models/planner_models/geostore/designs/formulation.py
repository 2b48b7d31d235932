"""The formal model of system `geostore` in Pyomo: eventual and causal groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.search.deadline import NEVER
from planner_models.geostore.designs.component import Component, joint, single
from planner_models.geostore.designs.placer import Placer
from planner_models.geostore.problem.problem import Geostore

if TYPE_CHECKING:
    import pyomo.environ as pyo

Near = Mapping[int, Sequence[int]]
"""Regions to which each user may attach."""
Pairs = Sequence[tuple[int, int]]
"""Groups, and users who use them."""


def formulation(problem: Geostore) -> pyo.ConcreteModel:
    """Return the least cost of all eventual and causal groups, USD a month, as an integer program.

    minimize    sum s_gj y_gj + sum c_ia x_ia + sum w_gi e_aj u_giaj
    subject to  sum_a x_ia = 1,  x_ia <= y_ga where i uses g          one datacenter for a component's groups
                sum_a u_giaj = y_gj,  u_giaj <= x_ia                  writes of i are copied to each replica
                y_Bj <= y_Aj                                          closure, for B that depends on A
                sum of y_gj over each cover >= its need, sum_j y_gj >= failures + 1
                load of y and x in j - r_j <= capacity_j              r_j is refused, at a penalty

    raises  InputError for a problem with strongly consistent groups
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("geo-replicated store")
    for group in np.flatnonzero(problem.is_strong)[:1].tolist():
        raise InputError(
            f"groups: '{problem.group_index[group]}' is strongly consistent; the model is of "
            "eventual and causal groups"
        )
    components = _components(problem, Placer(problem=problem, gap=0.0, deadline=NEVER))
    m.components = pyo.Block(range(len(components)))
    for row, component in enumerate(components):
        _add_component(m.components[row], component)
    m.R = np.flatnonzero(problem.is_limited).tolist()
    m.refused = pyo.Var(m.R, domain=pyo.NonNegativeReals)
    if m.R:
        _limit_load(m, problem, components)
    penalty = problem.refused_usd * sum(m.refused[j] for j in m.R)
    m.goal = pyo.Objective(
        expr=sum(m.components[row].cost for row in m.components) + penalty, sense=pyo.minimize
    )
    return m


def _components(problem: Geostore, placer: Placer) -> list[Component]:
    """Return all components at the prices of a placer."""
    return [
        single(problem, int(members[0]), placer.costs(int(members[0])), placer.allowed)
        if len(members) == 1
        else joint(problem, members, placer.causal, placer.allowed)
        for members in problem.components
    ]


def _limit_load(m: Any, problem: Geostore, components: Sequence[Component]) -> None:
    """Add that the load of each limited region is at most its capacity, or refused.

    The load of replicas and attachments is what they cost more at a price of 1.
    """
    import pyomo.environ as pyo

    placer = Placer(problem=problem, gap=0.0, deadline=NEVER, load_usd=np.ones(len(problem.regions)))
    pairs = list(zip(components, _components(problem, placer), strict=True))

    def load(j: int) -> Any:
        return sum(
            float(priced.opening[g, j] - free.opening[g, j]) * m.components[row].y[g, j]
            for row, (free, priced) in enumerate(pairs)
            for g in m.components[row].G
        ) + sum(
            float(priced.attachment[i, a] - free.attachment[i, a]) * m.components[row].x[i, a]
            for row, (free, priced) in enumerate(pairs)
            for i, a in m.components[row].X
            if a == j
        )

    m.capacity = pyo.Constraint(m.R, rule=lambda m, j: load(j) - m.refused[j] <= float(problem.capacity[j]))


def _add_component(m: Any, data: Component) -> None:
    """Add variables, constraints and the cost of one component to a block."""
    import pyomo.environ as pyo

    groups, regions = data.opening.shape
    m.G, m.J, m.I = range(groups), range(regions), range(len(data.attachment))
    near = {i: np.flatnonzero(np.isfinite(data.attachment[i])).tolist() for i in m.I}
    used = [(g, i) for g, i in np.argwhere(data.uses).tolist()]
    _add_variables(m, data, near, used)
    _add_attachments(m, near, used)
    _add_copies(m, data, near, used)
    _add_rules(m, data)
    m.cost = pyo.Expression(
        expr=sum(float(data.opening[g, j]) * m.y[g, j] for g in m.G for j in m.J)
        + sum(float(data.attachment[i, a]) * m.x[i, a] for i, a in m.X)
        + sum(float(data.volume[g, i] * data.price[g, a, j]) * m.u[g, i, a, j] for g, i, a, j in m.U)
    )


def _add_variables(m: Any, data: Component, near: Near, used: Pairs) -> None:
    """Add replicas y, attachments x and copies u; replicas that are set or excluded are fixed."""
    import pyomo.environ as pyo

    m.X = pyo.Set(initialize=[(i, a) for i in m.I for a in near[i]], dimen=2)
    writing = [(g, i) for g, i in used if data.volume[g, i] > 0]
    copies = [
        (g, i, a, j)
        for g, i in writing
        for a in near[i]
        for j in np.flatnonzero(np.isfinite(data.price[g, a])).tolist()
    ]
    m.U = pyo.Set(initialize=copies, dimen=4)
    m.y = pyo.Var(m.G, m.J, domain=pyo.Binary)
    m.x = pyo.Var(m.X, domain=pyo.NonNegativeReals, bounds=(0, 1))
    m.u = pyo.Var(m.U, domain=pyo.NonNegativeReals, bounds=(0, 1))
    for g, j in np.argwhere(data.state >= 0).tolist():
        m.y[g, j].fix(int(data.state[g, j]))


def _add_attachments(m: Any, near: Near, used: Pairs) -> None:
    """Add that each user is attached to one datacenter, which holds the groups that it uses."""
    import pyomo.environ as pyo

    m.attached = pyo.Constraint(m.I, rule=lambda m, i: sum(m.x[i, a] for a in near[i]) == 1)
    m.held = pyo.Constraint(
        [(g, i, a) for g, i in used for a in near[i]], rule=lambda m, g, i, a: m.x[i, a] <= m.y[g, a]
    )


def _add_copies(m: Any, data: Component, near: Near, used: Pairs) -> None:
    """Add that the writes of each user are copied to each replica from where the user is attached."""
    import pyomo.environ as pyo

    writing = [(g, i, j) for g, i in used if data.volume[g, i] > 0 for j in m.J]
    m.copied = pyo.Constraint(
        writing,
        rule=lambda m, g, i, j: sum(m.u[g, i, a, j] for a in near[i] if (g, i, a, j) in m.U) == m.y[g, j],
    )
    m.sent = pyo.Constraint(m.U, rule=lambda m, g, i, a, j: m.u[g, i, a, j] <= m.x[i, a])


def _add_rules(m: Any, data: Component) -> None:
    """Add closure, covers, and the number of replicas."""
    import pyomo.environ as pyo

    m.closure = pyo.Constraint(
        [(e, j) for e in range(len(data.child)) for j in m.J],
        rule=lambda m, e, j: m.y[int(data.child[e]), j] <= m.y[int(data.parent[e]), j],
    )
    m.cover = pyo.Constraint(
        range(len(data.need)),
        rule=lambda m, k: (
            sum(m.y[int(data.cover_group[k]), j] for j in m.J if data.cover[k, j]) >= int(data.need[k])
        ),
    )
    m.number = pyo.Constraint(m.G, rule=lambda m, g: sum(m.y[g, j] for j in m.J) >= int(data.least[g]))
