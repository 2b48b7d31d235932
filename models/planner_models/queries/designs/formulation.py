"""The formal model of system `queries` in Pyomo: a variable for each combination of methods of a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final

from planner.errors import InputError
from planner_models.queries.designs.answering import list_uses
from planner_models.queries.plan.metrics import value_answers
from planner_models.queries.plan.usage import SwitchUse
from planner_models.queries.problem.problem import Monitoring

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_COMBINATIONS: Final = 20_000
"""Combinations of methods of one switch."""


def formulation(problem: Monitoring) -> pyo.ConcreteModel:
    """Return the model over all combinations c of methods that a switch s holds.

    maximize    sum_qp w_q e_q/p z_qp                  e_q / p = 1 for packets
    subject to  sum_p z_qp <= 1                        for each query q, over its periods p
                sum_c y_sc = 1                         for each switch s
                sum_p x_qsmp = sum_{c: q by m} y_sc    for each method m of q on s
                sum_m x_qsmp = z_qp
                sum_qmp n_qsm/p x_qsmp <= P_s          counters n that are read, and polls of the switch

    raises  InputError for more than 20,000 combinations of a switch
    """
    import pyomo.environ as pyo  # only needed for the formal model

    uses = list_uses(problem)
    combinations = {use.switch: _list_combinations(problem, use) for use in uses}
    m = pyo.ConcreteModel("queries")
    _add_variables(m, problem, uses, combinations)
    m.period = pyo.Constraint(
        range(len(problem.asked)), rule=lambda m, q: sum(m.z[q, p] for p in problem.asked[q].periods_s) <= 1
    )
    m.combination = pyo.Constraint(m.S, rule=lambda m, s: sum(m.y[c] for c in m.C if c[0] == s) == 1)
    m.method = pyo.Constraint(
        m.M,
        rule=lambda m, q, s, n: (
            sum(m.x[x] for x in m.X if x[:3] == (q, s, n))
            == sum(m.y[s, c] for c, combination in enumerate(combinations[s]) if combination.get(q) == n)
        ),
    )
    m.linked = pyo.Constraint(
        [(q, use.switch, p) for use in uses for q in use.seen for p in problem.asked[q].periods_s],
        rule=lambda m, q, s, p: sum(m.x[x] for x in m.X if (x[0], x[1], x[3]) == (q, s, p)) == m.z[q, p],
    )
    m.polls = pyo.Constraint(m.S, rule=lambda m, s: _count_polls(m, uses[s]) <= uses[s].most_polls)
    m.goal = pyo.Objective(
        expr=sum(value_answers(problem, {q: p}) * m.z[q, p] for q, p in m.Z), sense=pyo.maximize
    )
    return m


def _add_variables(
    m: pyo.ConcreteModel,
    problem: Monitoring,
    uses: Sequence[SwitchUse],
    combinations: Mapping[int, Sequence[Mapping[int, str]]],
) -> None:
    """Add the sets, and the variables of periods, combinations and methods."""
    import pyomo.environ as pyo

    m.Z = pyo.Set(initialize=[(q, p) for q, asked in enumerate(problem.asked) for p in asked.periods_s])
    m.S = pyo.RangeSet(0, len(uses) - 1)
    m.C = pyo.Set(initialize=[(s, c) for s, listed in combinations.items() for c in range(len(listed))])
    m.M = pyo.Set(
        initialize=[(q, use.switch, n) for use in uses for q, seen in use.seen.items() for n in seen.methods]
    )
    m.X = pyo.Set(initialize=[(q, s, n, p) for q, s, n in m.M for p in problem.asked[q].periods_s])
    m.z = pyo.Var(m.Z, domain=pyo.Binary)
    m.y = pyo.Var(m.C, domain=pyo.Binary)
    m.x = pyo.Var(m.X, domain=pyo.NonNegativeReals, bounds=(0, 1))


def _count_polls(m: pyo.ConcreteModel, use: SwitchUse) -> pyo.Expression:
    """Return the counters read of a switch, a second."""
    return 0.0 * m.y[use.switch, 0] + sum(
        use.seen[q].counters(n) / p * m.x[q, s, n, p] for q, s, n, p in m.X if s == use.switch and p
    )


def _list_combinations(problem: Monitoring, use: SwitchUse) -> list[dict[int, str]]:
    """Return the methods of queries, some of which have none, that a switch holds together."""
    count = 1
    for seen in use.seen.values():
        count *= len(seen.methods) + 1
    if count > MOST_COMBINATIONS:
        name = problem.switch_names[use.switch]
        raise InputError(
            f"formulation: switch {name} has {count:,} combinations of methods, must have up to "
            f"{MOST_COMBINATIONS:,}"
        )
    combinations = []
    for methods in product(*((None, *seen.methods) for seen in use.seen.values())):
        combination = {
            row: method for row, method in zip(use.seen, methods, strict=True) if method is not None
        }
        if use.is_within_space(combination):
            combinations.append(combination)
    return combinations
