"""The formal model of system `analytics` in Pyomo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner_models.analytics.problem.problem import Analytics

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Analytics) -> pyo.ConcreteModel:
    """Return the levels of all intervals as a model; intervals k, sites s, queries q, levels l, answers z.

    maximize    sum_kq v_q sum_z u_qz a_kqz + sum_kqs v_qs sum_l u_ql x_ksql
    subject to  sum_l x_ksql = 1                                one level for each site with data of q
                sum_z a_kqz = 1                                 one answer, where sites share it
                x_ksql <= sum of a_kqz that level l can make    so answers are as coarse as the coarsest site
                sum_ql b_ksql x_ksql <= B_ks                    uplinks of sites
                sum_sql m_gql b_ksql x_ksql <= C_kg             uplinks of points of presence, after merging
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("analytics")
    intervals, sites = range(len(problem.interval_numbers)), range(len(problem.site_names))
    has, may, makes = problem.has_data, problem.may_send, problem.refines
    source = problem.source_of
    queries = [q for q in range(len(problem.query_names)) if has[:, q].any() and source[q] < 0]
    volume, asked = [problem.find_volume(k) for k in intervals], problem.is_asked
    shared = [q for q in queries if not problem.is_sum[q]]
    levels = {q: np.flatnonzero(problem.level_rows[q] >= 0).tolist() for q in queries}
    sizes = [problem.level_column(name) for name in ("bytes_per_record", "bytes_per_cell")]
    capacity, value, site_value = (
        problem.capacity_bytes,
        problem.level_value_usd,
        problem.site_level_value_usd,
    )

    def size(k: int, s: int, q: int, level: int) -> float:
        records, cells = volume[k]
        return float(records[s, q] * sizes[0][q, level] + cells[s, q] * sizes[1][q, level])

    m.X = pyo.Set(
        initialize=[
            (k, s, q, level)
            for k in intervals
            for q in queries
            for s in sites
            for level in levels[q]
            if asked[k, q] and has[s, q] and may[s, q, level] and problem.may_answer[q, level]
        ]
    )
    m.A = pyo.Set(
        initialize=[
            (k, q, z)
            for k in intervals
            for q in shared
            for z in levels[q]
            if asked[k, q] and problem.may_answer[q, z] and np.isfinite(value[q, z])
        ]
    )
    m.x, m.a = pyo.Var(m.X, domain=pyo.Binary), pyo.Var(m.A, domain=pyo.Binary)
    levels_of: dict[tuple[int, int, int], list[int]] = {
        (k, s, q): [] for k in intervals for s in sites for q in queries if has[s, q] and asked[k, q]
    }
    for k, s, q, level in m.X:
        levels_of[k, s, q].append(level)

    def one_level(m: pyo.ConcreteModel, k: int, s: int, q: int) -> Any:
        return sum(m.x[k, s, q, level] for level in levels_of[k, s, q]) == 1

    def one_answer(m: pyo.ConcreteModel, k: int, q: int) -> Any:
        return sum(m.a[k, q, z] for z in levels[q] if (k, q, z) in m.A) == 1

    def made(m: pyo.ConcreteModel, k: int, s: int, q: int, level: int) -> Any:
        if problem.is_sum[q]:
            return pyo.Constraint.Skip
        answers = [m.a[k, q, z] for z in levels[q] if makes[q, level, z] and (k, q, z) in m.A]
        return m.x[k, s, q, level] <= sum(answers)

    def link_capacity(m: pyo.ConcreteModel, k: int, link: int) -> Any:
        pop = link - len(sites)
        used = [
            m.x[k, s, q, level]
            * (size(k, s, q, level) * (problem.merged_share[pop, q, level] if pop >= 0 else 1.0))
            for s in (np.flatnonzero(problem.pop_of == pop).tolist() if pop >= 0 else [link])
            for q in queries
            if has[s, q] and asked[k, q]
            for level in levels_of[k, s, q]
            if size(k, s, q, level) > 0
        ]
        return sum(used) <= float(capacity[k, link]) if used else pyo.Constraint.Skip

    m.one_level = pyo.Constraint(list(levels_of), rule=one_level)
    answered = [(k, q) for k in intervals for q in shared if asked[k, q]]
    m.one_answer = pyo.Constraint(answered, rule=one_answer)
    m.made = pyo.Constraint(m.X, rule=made)
    m.capacity = pyo.Constraint(intervals, range(len(problem.link_names)), rule=link_capacity)
    together = sum(m.a[k, q, z] * float(value[q, z]) for k, q, z in m.A)
    apart = sum(
        m.x[k, s, q, level] * float(site_value[s, q, level]) for k, s, q, level in m.X if problem.is_sum[q]
    )
    m.value = pyo.Objective(expr=together + apart, sense=pyo.maximize)
    return m
