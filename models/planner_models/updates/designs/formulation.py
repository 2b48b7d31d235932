"""The formal models of system `updates` in Pyomo: batches, the order of one class, and shares of paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner_models.updates.designs.batch_search import find_needs
from planner_models.updates.problem.problem import Update

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_BATCHES: Final = 6


def formulation(problem: Update) -> pyo.ConcreteModel:
    """Return the fewest batches of whole classes within tables and links.

    minimize    sum_k used_k, with classes c, resources s and batches k
    subject to  sum_k x_ck = 1, x_ck <= used_k, used_k+1 <= used_k  x, used binary
                held_s(k-1) + sum_c during_sc x_ck <= size_s        during: what c takes while it moves
                held_sk = held_s(k-1) + sum_c after_sc x_ck         after: what it takes from then on
    """
    import pyomo.environ as pyo  # only needed for the formal model

    needs = find_needs(problem, links=True)
    during, after = needs.during.tocsr(), needs.after.tocsr()
    m = pyo.ConcreteModel("updates")
    m.C, m.S = pyo.RangeSet(0, len(needs.classes) - 1), pyo.RangeSet(0, len(needs.free) - 1)
    m.K = pyo.RangeSet(1, max(1, min(MOST_BATCHES, len(needs.classes))))
    m.x, m.used = pyo.Var(m.C, m.K, domain=pyo.Binary), pyo.Var(m.K, domain=pyo.Binary)
    m.moved = pyo.Constraint(m.C, rule=lambda m, c: sum(m.x[c, k] for k in m.K) == 1)
    m.opens = pyo.Constraint(m.C, m.K, rule=lambda m, c, k: m.x[c, k] <= m.used[k])
    m.in_turn = pyo.Constraint(
        m.K, rule=lambda m, k: m.used[k] <= m.used[k - 1] if k > 1 else pyo.Constraint.Skip
    )

    def space(m: pyo.ConcreteModel, s: int, k: int) -> Any:
        now, then = during[[s]].tocoo(), after[[s]].tocoo()
        taken = sum(float(value) * m.x[int(c), k] for c, value in zip(now.col, now.data, strict=True))
        held = sum(
            float(value) * m.x[int(c), j]
            for c, value in zip(then.col, then.data, strict=True)
            for j in range(1, k)
        )
        total = taken + held
        return (
            pyo.Constraint.Feasible
            if isinstance(total, int | float)
            else total <= float(needs.free[s]) + 1e-9
        )

    m.space = pyo.Constraint(m.S, m.K, rule=space)
    m.batches = pyo.Objective(expr=sum(m.used[k] for k in m.K), sense=pyo.minimize)
    return m


def order_formulation(problem: Update, class_id: int, rounds: int) -> pyo.ConcreteModel:
    """Return the loop-free order of class number `class_id`, which packets enter everywhere.

    u_vk: v is changed by the end of round k; p_vk: a potential that falls along every rule that may be in use
    minimize    sum_k open_k
    subject to  u_v(k-1) <= u_vk, u_vK = 1, u_vk - u_v(k-1) <= open_k
                p_vk >= p_old(v),k + 1 - M u_v(k-1),  p_vk >= p_new(v),k + 1 - M (1 - u_vk)
    where old and new next hops are those of `now` and `next`; a new next hop without a rule in `now` must
    have been changed before.
    """
    import pyomo.environ as pyo  # only needed for the formal model

    slots = problem.slots
    slot_range = range(int(slots.start[class_id]), int(slots.start[class_id + 1]))
    slot_of = {int(slots.switch[slot]): slot for slot in slot_range}
    egress = int(problem.egress[class_id])
    big = len(slot_of) + 1
    m = pyo.ConcreteModel("order")
    m.V, m.K = pyo.Set(initialize=list(slot_range)), pyo.RangeSet(1, rounds)
    m.u = pyo.Var(m.V, pyo.RangeSet(0, rounds), domain=pyo.Binary)
    m.p = pyo.Var(m.V, m.K, bounds=(0, len(slot_of)))
    m.open = pyo.Var(m.K, domain=pyo.Binary)
    m.rules = pyo.ConstraintList()
    for v in slot_range:
        m.u[v, 0].fix(0)
        m.rules.add(m.u[v, rounds] == 1)
        for k in range(1, rounds + 1):
            m.rules.add(m.u[v, k - 1] <= m.u[v, k])
            if not slots.same[v]:
                m.rules.add(m.u[v, k] - m.u[v, k - 1] <= m.open[k])
            _add_potentials(m, problem, v, k, slot_of, egress, big)
    m.rounds = pyo.Objective(expr=sum(m.open[k] for k in m.K), sense=pyo.minimize)
    return m


def _add_potentials(
    m: pyo.ConcreteModel, problem: Update, v: int, k: int, slot_of: dict[int, int], egress: int, big: int
) -> None:
    slots = problem.slots
    for is_new, configuration in ((False, slots.now), (True, slots.next)):
        unused = 1 - m.u[v, k] if is_new else m.u[v, k - 1]
        for entry in range(int(configuration.start[v]), int(configuration.start[v + 1])):
            hop = int(configuration.hop[entry])
            if hop == egress:
                continue
            h = slot_of[hop]
            m.rules.add(m.p[v, k] >= m.p[h, k] + 1 - big * unused)
            if not slots.now.has_rule()[h]:
                m.rules.add(m.u[v, k] <= m.u[h, k - 1])
            if not slots.next.has_rule()[h]:
                m.rules.add(m.u[h, k] <= m.u[v, k - 1])


def share_formulation(problem: Update, moves: int) -> pyo.ConcreteModel:
    """Return shares of the next paths in some moves, with the largest relative overload t.

    minimize    t
    subject to  base_e + sum_c z_cke <= limit_e (1 + t)     for every link e and move k
                z_cke >= load of class c on e before move k, and after it
    where a class's load is (1 - y_ck) old_ce + y_ck new_ce, y_c0 = 0, y_cK = 1.
    """
    import pyomo.environ as pyo  # only needed for the formal model

    classes = np.flatnonzero(problem.slots.changes & (problem.traffic_mbps > 0))
    before, after = (loads.toarray() for loads in problem.class_loads(classes))
    limit = problem.load_limit_mbps
    base = problem.link_loads[0] - before.sum(axis=1)
    m = pyo.ConcreteModel("shares")
    m.C, m.K = pyo.RangeSet(0, len(classes) - 1), pyo.RangeSet(0, moves)
    m.E = pyo.Set(initialize=np.flatnonzero(np.isfinite(limit)).tolist())
    m.y, m.t = pyo.Var(m.C, m.K, bounds=(0, 1)), pyo.Var(domain=pyo.NonNegativeReals)
    m.z = pyo.Var(m.C, m.K, m.E, domain=pyo.NonNegativeReals)
    m.first = pyo.Constraint(m.C, rule=lambda m, c: m.y[c, 0] == 0)
    m.last = pyo.Constraint(m.C, rule=lambda m, c: m.y[c, moves] == 1)

    def larger(m: pyo.ConcreteModel, c: int, k: int, e: int, late: int) -> Any:
        if k == 0:
            return pyo.Constraint.Skip
        share = m.y[c, k - 1 + late]
        return m.z[c, k, e] >= float(before[e, c]) * (1 - share) + float(after[e, c]) * share

    m.larger = pyo.Constraint(m.C, m.K, m.E, [0, 1], rule=larger)

    def carried(m: pyo.ConcreteModel, e: int, k: int) -> Any:
        if k == 0 or not len(classes):
            return pyo.Constraint.Skip
        return float(base[e]) + sum(m.z[c, k, e] for c in m.C) <= float(limit[e]) * (1 + m.t)

    m.carried = pyo.Constraint(m.E, m.K, rule=carried)
    m.excess = pyo.Objective(expr=m.t, sense=pyo.minimize)
    return m
