"""The formal model of system `analytics` in Pyomo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner_models.analytics.problem.problem import Analytics

if TYPE_CHECKING:
    import pyomo.environ as pyo

Levels = dict[int, list[int]]
"""Levels of each query that is planned."""


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
    has, source = problem.has_data, problem.source_of
    queries = [q for q in range(len(problem.query_names)) if has[:, q].any() and source[q] < 0]
    levels = {q: np.flatnonzero(problem.level_rows[q] >= 0).tolist() for q in queries}
    m.X = pyo.Set(initialize=_list_choices(problem, levels))
    m.A = pyo.Set(initialize=_list_answers(problem, levels))
    m.x, m.a = pyo.Var(m.X, domain=pyo.Binary), pyo.Var(m.A, domain=pyo.Binary)
    _choose_levels(problem, m, levels)
    _answer_queries(problem, m, levels)
    _limit_uplinks(problem, m, levels)
    value, site_value = problem.level_value_usd, problem.site_level_value_usd
    together = sum(m.a[k, q, z] * float(value[q, z]) for k, q, z in m.A)
    apart = sum(
        m.x[k, s, q, level] * float(site_value[s, q, level]) for k, s, q, level in m.X if problem.is_sum[q]
    )
    m.value = pyo.Objective(expr=together + apart, sense=pyo.maximize)
    return m


def _list_choices(problem: Analytics, levels: Levels) -> list[tuple[int, int, int, int]]:
    """Return the variables x: interval, site, query and level, of asked queries at sites with data."""
    asked, has, may = problem.is_asked, problem.has_data, problem.may_send
    return [
        (k, s, q, level)
        for k in range(len(problem.interval_numbers))
        for q in levels
        for s in range(len(problem.site_names))
        for level in levels[q]
        if asked[k, q] and has[s, q] and may[s, q, level] and problem.may_answer[q, level]
    ]


def _list_answers(problem: Analytics, levels: Levels) -> list[tuple[int, int, int]]:
    """Return the variables a: interval, query and level of the answers that sites share."""
    return [
        (k, q, z)
        for k in range(len(problem.interval_numbers))
        for q in levels
        if not problem.is_sum[q] and problem.is_asked[k, q]
        for z in levels[q]
        if problem.may_answer[q, z] and np.isfinite(problem.level_value_usd[q, z])
    ]


def _choose_levels(problem: Analytics, m: pyo.ConcreteModel, levels: Levels) -> None:
    """Add to a model that each site with data of a query has one level."""
    import pyomo.environ as pyo

    intervals, sites = range(len(problem.interval_numbers)), range(len(problem.site_names))
    asked, has = problem.is_asked, problem.has_data
    levels_of: dict[tuple[int, int, int], list[int]] = {
        (k, s, q): [] for k in intervals for s in sites for q in levels if has[s, q] and asked[k, q]
    }
    for k, s, q, level in m.X:
        levels_of[k, s, q].append(level)

    def one_level(m: pyo.ConcreteModel, k: int, s: int, q: int) -> Any:
        return sum(m.x[k, s, q, level] for level in levels_of[k, s, q]) == 1

    m.one_level = pyo.Constraint(list(levels_of), rule=one_level)


def _answer_queries(problem: Analytics, m: pyo.ConcreteModel, levels: Levels) -> None:
    """Add to a model one answer for each query that sites share, and which levels can make it."""
    import pyomo.environ as pyo

    intervals, asked, makes = range(len(problem.interval_numbers)), problem.is_asked, problem.refines

    def one_answer(m: pyo.ConcreteModel, k: int, q: int) -> Any:
        return sum(m.a[k, q, z] for z in levels[q] if (k, q, z) in m.A) == 1

    def made(m: pyo.ConcreteModel, k: int, s: int, q: int, level: int) -> Any:
        if problem.is_sum[q]:
            return pyo.Constraint.Skip
        answers = [m.a[k, q, z] for z in levels[q] if makes[q, level, z] and (k, q, z) in m.A]
        return m.x[k, s, q, level] <= sum(answers)

    answered = [(k, q) for k in intervals for q in levels if not problem.is_sum[q] and asked[k, q]]
    m.one_answer = pyo.Constraint(answered, rule=one_answer)
    m.made = pyo.Constraint(m.X, rule=made)


def _limit_uplinks(problem: Analytics, m: pyo.ConcreteModel, levels: Levels) -> None:
    """Add to a model the capacity of the uplinks of sites, and of points of presence after merging."""
    import pyomo.environ as pyo

    intervals, sites = range(len(problem.interval_numbers)), range(len(problem.site_names))
    volume = [problem.find_volume(k) for k in intervals]
    per_record, per_cell = (problem.level_column(name) for name in ("bytes_per_record", "bytes_per_cell"))

    def size(k: int, s: int, q: int, level: int) -> float:
        records, cells = volume[k]
        return float(records[s, q] * per_record[q, level] + cells[s, q] * per_cell[q, level])

    def link_capacity(m: pyo.ConcreteModel, k: int, link: int) -> Any:
        pop = link - len(sites)
        used = [
            m.x[k, s, q, level]
            * (size(k, s, q, level) * (problem.merged_share[pop, q, level] if pop >= 0 else 1.0))
            for s in (np.flatnonzero(problem.pop_of == pop).tolist() if pop >= 0 else [link])
            for q in levels
            for level in levels[q]
            if (k, s, q, level) in m.X and size(k, s, q, level) > 0
        ]
        return sum(used) <= float(problem.capacity_bytes[k, link]) if used else pyo.Constraint.Skip

    m.capacity = pyo.Constraint(intervals, range(len(problem.link_names)), rule=link_capacity)
