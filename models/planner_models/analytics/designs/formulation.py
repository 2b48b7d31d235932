"""Formal models of system `analytics`: in Pyomo, and as a program open to constraints of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.analytics.designs import optimum
from planner_models.analytics.designs.choices import Choices, Interval
from planner_models.analytics.designs.decision import BUT_ANSWERS
from planner_models.analytics.designs.program import IntervalProgram, build_interval
from planner_models.analytics.designs.shedding import SCOPE, fit_interval
from planner_models.analytics.plan.plan import Levels, make_plan, read_levels
from planner_models.analytics.problem.problem import Analytics, name_rows
from planner_models.analytics.problem.tables import BYTES_PER_MBIT, find_rows

if TYPE_CHECKING:
    import pyomo.environ as pyo


LevelsOfQueries = dict[int, list[int]]
"""LevelsOfQueries of each query that is planned."""
TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none."""
GAP: Final = 1e-6
"""Gap where the user names none."""
ANSWER: Final = "answer"


def formulation(problem: Analytics) -> pyo.ConcreteModel:
    """Return the levels of all intervals as a model; intervals k, sites s, queries q, levels l, answers z.

    maximize    sum_kq v_q sum_z u_qz a_kqz + sum_kqs v_qs sum_l u_ql x_ksql
    subject to  sum_l x_ksql = 1                                one level for each site with data of q
                sum_z a_kqz = 1                                 one answer, where sites share it
                x_ksql <= sum of a_kqz that level l can make    so answers are as coarse as the coarsest site
                sum_ql b_ksql x_ksql <= B_ks                    uplinks of sites
                sum_sql m_gql b_ksql x_ksql <= C_kg             uplinks of points of presence, after merging

    Levels that rules of regions do not let leave a site are no variables; nor are answers that they deny.
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


def _list_choices(problem: Analytics, levels: LevelsOfQueries) -> list[tuple[int, int, int, int]]:
    """Return the variables x: interval, site, query and level, of asked queries at sites with data."""
    asked, has, may = problem.is_asked, problem.has_data & ~problem.is_denied, problem.may_send
    return [
        (k, s, q, level)
        for k in range(len(problem.interval_numbers))
        for q in levels
        for s in range(len(problem.site_names))
        for level in levels[q]
        if asked[k, q] and has[s, q] and may[s, q, level] and problem.may_answer[q, level]
    ]


def _list_answers(problem: Analytics, levels: LevelsOfQueries) -> list[tuple[int, int, int]]:
    """Return the variables a: interval, query and level of the answers that sites share."""
    return [
        (k, q, z)
        for k in range(len(problem.interval_numbers))
        for q in levels
        if not problem.is_sum[q] and problem.is_asked[k, q] and not problem.is_denied[:, q].any()
        for z in levels[q]
        if problem.may_answer[q, z] and np.isfinite(problem.level_value_usd[q, z])
    ]


def _choose_levels(problem: Analytics, m: pyo.ConcreteModel, levels: LevelsOfQueries) -> None:
    """Add to a model that each site with data of a query has one level."""
    import pyomo.environ as pyo

    intervals, sites = range(len(problem.interval_numbers)), range(len(problem.site_names))
    asked, has = problem.is_asked, problem.has_data & ~problem.is_denied
    levels_of: dict[tuple[int, int, int], list[int]] = {
        (k, s, q): [] for k in intervals for s in sites for q in levels if has[s, q] and asked[k, q]
    }
    for k, s, q, level in m.X:
        levels_of[k, s, q].append(level)

    def one_level(m: pyo.ConcreteModel, k: int, s: int, q: int) -> Any:
        return sum(m.x[k, s, q, level] for level in levels_of[k, s, q]) == 1

    m.one_level = pyo.Constraint(list(levels_of), rule=one_level)


def _answer_queries(problem: Analytics, m: pyo.ConcreteModel, levels: LevelsOfQueries) -> None:
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

    is_shared = ~problem.is_sum & ~problem.is_denied.any(axis=0)
    answered = [(k, q) for k in intervals for q in levels if is_shared[q] and asked[k, q]]
    m.one_answer = pyo.Constraint(answered, rule=one_answer)
    m.made = pyo.Constraint(m.X, rule=made)


def _limit_uplinks(problem: Analytics, m: pyo.ConcreteModel, levels: LevelsOfQueries) -> None:
    """Add to a model the capacity of the uplinks of sites, and of points of presence after merging."""
    import pyomo.environ as pyo

    intervals, sites = range(len(problem.interval_numbers)), range(len(problem.site_names))
    volume = [problem.find_volume(k) for k in intervals]
    per_record, per_cell = problem.sent_per_record, problem.sent_per_cell

    def size(k: int, s: int, q: int, level: int) -> float:
        records, cells = volume[k]
        return float(records[s, q] * per_record[s, q, level] + cells[s, q] * per_cell[s, q, level])

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


class BuiltInterval(NamedTuple):
    """An interval with its choices and program, and the columns of its variables in the program of all.

    number  row of the interval in the problem
    """

    number: int
    interval: Interval
    built: IntervalProgram
    answers: slice
    levels: slice


def open_model(problem: Analytics, *, service: Service = "best") -> OpenModel[Levels]:
    """Return the integer program of all intervals, open to changes.

    Variables, with the columns of their members:

    answer  1 where a query of one answer for all sites has it (interval, query, level, value_usd)
    level   1 where a site sends a level of a query whose values add up (interval, site, query, level,
            value_usd)

    Constraints: capacity, a row for each interval and uplink in shares of its bytes, and one_level. The
    matrices `answer_mbps` and `level_mbps` (intervals times uplinks, variables) have the rate on each uplink.
    Each site sends the level of fewest bytes that makes the answer. Answers that do not fit even at the
    coarsest levels are left out before. The search starts from the plan of the design `optimum`, and ends at
    a gap of 1e-6 or after 10 s: practical for up to some thousands of variables.

    raises  InputError where no levels fit an interval, or no query has a choice
    """
    choices = Choices(problem, must_answer=service == "all")
    programs: dict[str, IntervalProgram] = {}
    intervals: list[Interval] = []
    for k, number in enumerate(problem.interval_numbers.tolist()):
        interval, reason = fit_interval(choices, k)
        if reason is not None:
            raise InputError(reason)
        programs[f"interval {number:g}"] = build_interval(interval)
        intervals.append(interval)
    merged = LinearProgram.merge(
        {name: built.program for name, built in programs.items()}, name="analytics", first=ANSWER
    ).describe("the value of answers, of all intervals", metric="value", unit="USD")
    if not merged.shape[1]:
        raise InputError("queries: none has a choice of levels, so that there is nothing to model")
    parts = _place(intervals, list(programs.values()))

    def read(x: Floats) -> Levels:
        levels = []
        for part in parts:
            answers, added = part.built.read(np.concatenate([x[part.answers], x[part.levels]]))
            levels.append(choices.to_levels(part.interval, answers, added))
        return make_plan(problem, choices.without_left_out(np.array(levels)))

    @cache
    def start(options: Options) -> Floats | None:
        plan = optimum.plan(problem, options=options).plan
        return None if plan is None else _find_point(problem, choices, parts, merged.shape[1], plan)

    is_short = bool(choices.shortages)
    return OpenModel(
        program=merged,
        read=read,
        members=_list_members(problem, parts),
        matrices=_list_rates(problem, parts),
        goals=_make_goals(problem, parts),
        scope=SCOPE if is_short else None,
        start=start,
        options={"gap": GAP, "time_limit_s": TIME_LIMIT_S},
        guarantees=BUT_ANSWERS if is_short else None,
    )


def _place(intervals: Sequence[Interval], programs: Sequence[IntervalProgram]) -> list[BuiltInterval]:
    """Return the intervals with the columns of their variables: answers of all first, then levels of all."""
    first = np.cumsum([0, *(int(built.shared.sum()) for built in programs)])
    second = first[-1] + np.cumsum([0, *(int(built.separate.sum()) for built in programs)])
    return [
        BuiltInterval(k, interval, built, slice(first[k], first[k + 1]), slice(second[k], second[k + 1]))
        for k, (interval, built) in enumerate(zip(intervals, programs, strict=True))
    ]


def _find_point(
    problem: Analytics, choices: Choices, parts: Sequence[BuiltInterval], width: int, plan: Levels
) -> Floats | None:
    """Return a plan as values of the variables (width,); None where a choice of it has no variable."""
    actions = read_levels(problem, plan)
    frame = plan.answers
    query = find_rows(problem.query_names, frame["query"])
    level = problem.find_level_names(query, frame["level"])
    answers = {
        (number, int(q)): int(z)
        for number, q, z in zip(frame["interval"].tolist(), query.tolist(), level.tolist(), strict=True)
    }
    x = np.zeros(width)
    for part in parts:
        number = problem.interval_numbers[part.number]
        chosen = np.zeros(part.built.shared.shape, dtype=bool)
        for row, q in enumerate(choices.shared.tolist()):
            chosen[row, max(answers.get((number, q), 0), 0)] = True
        added = np.zeros(part.built.separate.shape, dtype=bool)
        for row, q in enumerate(choices.separate.tolist()):
            sent = np.maximum(actions[part.number][:, q], 0)
            added[np.arange(len(sent)), row, sent] = True
        if (chosen & ~part.built.shared).any() or (added & ~part.built.separate).any():
            return None
        x[part.answers] = chosen[part.built.shared]
        x[part.levels] = added[part.built.separate]
    return x


def _list_members(
    problem: Analytics, parts: Sequence[BuiltInterval]
) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""

    def describe(
        part: BuiltInterval, query: Ints, level: Ints, value: Floats, **more: object
    ) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "interval": problem.interval_numbers[part.number],
                **more,
                "query": name_rows(problem.query_names, query),
                "level": [
                    problem.level_names[q][z] for q, z in zip(query.tolist(), level.tolist(), strict=True)
                ],
                "value_usd": value,
            }
        )

    def list_answers() -> pd.DataFrame:
        frames = []
        for part in parts:
            row, level = np.nonzero(part.built.shared)
            shared = part.interval.shared
            frames.append(describe(part, shared.query[row], level, shared.value[part.built.shared]))
        return pd.concat(frames, ignore_index=True)

    def list_levels() -> pd.DataFrame:
        frames = []
        for part in parts:
            site, row, level = np.nonzero(part.built.separate)
            separate = part.interval.separate
            sites = name_rows(problem.site_names, site)
            value = separate.value[part.built.separate]
            frames.append(describe(part, separate.query[row], level, value, site=sites))
        return pd.concat(frames, ignore_index=True)

    return {ANSWER: list_answers, "level": list_levels}


def _list_rates(problem: Analytics, parts: Sequence[BuiltInterval]) -> dict[str, sp.csr_array]:
    """Return the rate of each variable on the uplinks of its interval, Mbit/s, by name of the matrix."""
    answers, levels = [], []
    for part in parts:
        mbps = problem.capacity_bytes[part.number] / problem.length_s[part.number] / BYTES_PER_MBIT
        answers.append(sp.csr_array((part.interval.shared.use[part.built.shared] * mbps).T))
        site, _, _ = np.nonzero(part.built.separate)
        separate, sites, count = part.interval.separate, len(problem.site_names), len(site)
        pops = sites + part.interval.pop_of[site]
        rows, columns = np.concatenate([site, pops]), np.tile(np.arange(count), 2)
        use = np.concatenate([separate.use[part.built.separate], separate.pop_use[part.built.separate]])
        levels.append(sp.csr_array((use * mbps[rows], (rows, columns)), shape=(part.interval.links, count)))
    return {
        "answer_mbps": sp.csr_array(sp.block_diag(answers, format="csr")),
        "level_mbps": sp.csr_array(sp.block_diag(levels, format="csr")),
    }


def _make_goals(problem: Analytics, parts: Sequence[BuiltInterval]) -> dict[str, Goal]:
    """Return the aims by which plans near the most value may differ."""
    names, sites = list(problem.link_names), len(problem.site_names)

    def add_up(m: ProgramBuilder, links: Sequence[int]) -> Expression:
        """Return the mean rate on some uplinks, all intervals together."""
        rows = np.add.outer(np.arange(len(parts)) * len(names), np.asarray(links)).ravel()
        matrices = _list_rates(problem, parts)
        total: Expression = (
            matrices["answer_mbps"][rows] @ m[ANSWER] + matrices["level_mbps"][rows] @ m["level"]
        )
        return total.sum() * (1 / len(parts))

    def send_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return add_up(m, range(sites))

    def load_least(m: ProgramBuilder, link: str, _optimum: Floats) -> Expression:
        if link not in names:
            raise InputError(f"least_on: '{link}' is no uplink{did_you_mean(link, names)}")
        return add_up(m, [names.index(link)])

    return {
        "least_traffic": Goal(about="traffic that sites send, mean", unit="Mbit/s", build=send_least),
        "least_on": Goal(about="traffic on an uplink, mean", unit="Mbit/s", build=load_least, value="uplink"),
    }
