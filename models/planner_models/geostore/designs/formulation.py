"""The formal model of system `geostore` in Pyomo: eventual and causal groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.search.deadline import NEVER
from planner_models.geostore.designs.component import Component, allowed_attachments, joint, single
from planner_models.geostore.designs.optimum import Placer
from planner_models.geostore.problem.problem import Geostore

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Geostore) -> pyo.ConcreteModel:
    """Return the least cost of all eventual and causal groups, USD a month, as an integer program.

    minimize    sum s_gj y_gj + sum c_ia x_ia + sum w_gi e_aj u_giaj
    subject to  sum_a x_ia = 1,  x_ia <= y_ga where i uses g          one datacenter for a component's groups
                sum_a u_giaj = y_gj,  u_giaj <= x_ia                  writes of i are copied to each replica
                y_Bj <= y_Aj                                          closure, for B that depends on A
                sum of y_gj over each cover >= its need, sum_j y_gj >= failures + 1

    raises  InputError for a problem with strongly consistent groups
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("geo-replicated store")
    placer = Placer(problem=problem, gap=0.0, deadline=NEVER)
    allowed = allowed_attachments(problem)
    components = []
    for group in np.flatnonzero(problem.is_strong)[:1].tolist():
        raise InputError(
            f"groups: '{problem.group_index[group]}' is strongly consistent; the model is of "
            "eventual and causal groups"
        )
    for members in problem.components:
        if len(members) == 1:
            group = int(members[0])
            components.append(single(problem, group, placer.costs(group), allowed))
        else:
            components.append(joint(problem, members, placer.causal, allowed))
    m.components = pyo.Block(range(len(components)))
    for row, component in enumerate(components):
        _add_component(m.components[row], component)
    m.goal = pyo.Objective(expr=sum(m.components[row].cost for row in m.components), sense=pyo.minimize)
    return m


def _add_component(m: Any, data: Component) -> None:
    """Add variables, constraints and the cost of one component to a block."""
    import pyomo.environ as pyo

    groups, regions = data.opening.shape
    users = len(data.attachment)
    m.G, m.J, m.I = range(groups), range(regions), range(users)
    may = [(i, a) for i, a in np.argwhere(np.isfinite(data.attachment)).tolist()]
    used = [(g, i) for g, i in np.argwhere(data.uses).tolist()]
    m.X = pyo.Set(initialize=may, dimen=2)
    m.y = pyo.Var(m.G, m.J, domain=pyo.Binary)
    m.x = pyo.Var(m.X, domain=pyo.NonNegativeReals, bounds=(0, 1))
    copies = [
        (g, i, a, j)
        for g, i in used
        if data.volume[g, i] > 0
        for k, a in may
        if k == i
        for j in m.J
        if np.isfinite(data.price[g, a, j])
    ]
    m.U = pyo.Set(initialize=copies, dimen=4)
    m.u = pyo.Var(m.U, domain=pyo.NonNegativeReals, bounds=(0, 1))
    near = {i: [a for k, a in may if k == i] for i in m.I}
    m.attached = pyo.Constraint(m.I, rule=lambda m, i: sum(m.x[i, a] for a in near[i]) == 1)
    m.held = pyo.Constraint(
        [(g, i, a) for g, i in used for a in near[i]], rule=lambda m, g, i, a: m.x[i, a] <= m.y[g, a]
    )
    writing = [(g, i, j) for g, i in used if data.volume[g, i] > 0 for j in m.J]
    m.copied = pyo.Constraint(
        writing,
        rule=lambda m, g, i, j: sum(m.u[g, i, a, j] for a in near[i] if (g, i, a, j) in m.U) == m.y[g, j],
    )
    m.sent = pyo.Constraint(copies, rule=lambda m, g, i, a, j: m.u[g, i, a, j] <= m.x[i, a])
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
    for g, j in np.argwhere(data.state >= 0).tolist():
        m.y[g, j].fix(int(data.state[g, j]))
    m.cost = pyo.Expression(
        expr=sum(float(data.opening[g, j]) * m.y[g, j] for g in m.G for j in m.J)
        + sum(float(data.attachment[i, a]) * m.x[i, a] for i, a in may)
        + sum(float(data.volume[g, i] * data.price[g, a, j]) * m.u[g, i, a, j] for g, i, a, j in copies)
    )
