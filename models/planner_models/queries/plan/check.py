"""Check of a plan: emulation of its switches, and comparison of answers with interpreted queries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from planner.arrays import Floats
from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds
from planner.errors import PlanRejected
from planner_models.queries.plan.emulation import Emulation, Observed
from planner_models.queries.plan.interpreter import Amounts, Selected, count_amounts, select_packets
from planner_models.queries.plan.methods import AHEAD, CONTROLLER
from planner_models.queries.plan.plan import COUNT, Answers, read_methods, read_periods
from planner_models.queries.problem.problem import Monitoring, Query


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """A plan, emulated.

    observed  of each switch
    methods   by the rows of query and switch
    period_s  of each query with answers, by its row; 0 for packets
    polls     (S,) counters read of each switch, a second
    """

    problem: Monitoring
    observed: list[Observed]
    methods: dict[tuple[int, int], str]
    period_s: dict[int, float]
    polls: Floats

    @cached_property
    def wrong(self) -> list[int]:
        """Rows of the queries with other answers than the query interpreted on the packets has."""
        return [row for row, period_s in self.period_s.items() if not self._is_right(row, period_s)]

    def _is_right(self, row: int, period_s: float) -> bool:
        query = self.problem.asked[row]
        if query.returns_packets:
            selected: Selected = [packet for switch in self.observed for packet in switch.selected[row]]
            return selected == select_packets(self.problem, query)
        amounts: Amounts = Counter()
        for switch in self.observed:
            amounts.update(switch.amounts[row])
        return amounts == count_amounts(self.problem, query, period_s)

    def use_of_limits(self) -> dict[str, Floats]:
        """Return the use of each limit of switches by its column, (S,) percent; 0 where none is allowed."""
        used = {
            "rules": [switch.rules for switch in self.observed],
            "exact_rules": [switch.exact_rules for switch in self.observed],
            "packets_per_s": self.count_packets(),
            "polls_per_s": self.polls,
        }
        shares = {}
        for limit, amount in used.items():
            allowed = self.problem.limit(limit)
            shares[limit] = np.divide(
                100 * np.asarray(amount, float), allowed, out=np.zeros(len(allowed)), where=allowed > 0
            )
        return shares

    def count_packets(self) -> Floats:
        """Return the packets to the controller of each switch, a second in the mean, shape (S,)."""
        to_controller = np.array([switch.to_controller for switch in self.observed], dtype=float)
        return to_controller / self.problem.duration_s

    def find_staleness(self, row: int) -> float:
        """Return the longest time from a packet until it is in an answer of a query, s."""
        way_s = self.problem.round_trip_s / 2
        if self.problem.asked[row].returns_packets:
            return way_s
        is_polled = any(query == row and method != CONTROLLER for (query, _), method in self.methods.items())
        return self.period_s[row] + way_s * (2 if is_polled else 1)


_EVALUATIONS: Final[WeakKeyDictionary[Answers, Evaluation]] = WeakKeyDictionary()


def evaluate(problem: Monitoring, plan: Answers) -> Evaluation:
    """Return a plan as emulated, of the last problem that it was emulated on; raises PlanRejected."""
    evaluation = _EVALUATIONS.get(plan)
    if evaluation is None or evaluation.problem is not problem:
        evaluation = _evaluate(problem, plan)
        _EVALUATIONS[plan] = evaluation
    return evaluation


def _evaluate(problem: Monitoring, plan: Answers) -> Evaluation:
    methods, periods_s = read_methods(problem, plan.methods), read_periods(problem, plan.answers)
    _require_consistent(problem, plan, methods, periods_s)
    observed = [Emulation(problem, plan, switch).run() for switch in range(len(problem.switches))]
    polls = np.zeros(len(problem.switches))
    for (row, switch), method in methods.items():
        if periods_s[row]:
            polls[switch] += _count_counters(problem, row, switch, method) / periods_s[row]
    return Evaluation(problem=problem, observed=observed, methods=methods, period_s=periods_s, polls=polls)


def _count_counters(problem: Monitoring, row: int, switch: int, method: str) -> int:
    """Return the groups that the controller reads of a switch in each period."""
    query = problem.asked[row]
    if method == CONTROLLER:
        return 0
    if method == AHEAD:
        values = {0}
        free = [1 << bit for bit in range(query.group.bit_length()) if query.group >> bit & 1]
        for bit in free:
            values |= {value | bit for value in values}
        # a group is there where some cube of the predicate holds one of its headers
        cubes = [(value & query.group, mask & query.group) for value, mask, holds in query.entries if holds]
        return sum(any((value ^ fixed) & mask == 0 for fixed, mask in cubes) for value in values)
    headers = problem.headers[0]
    seen = {headers[row_] for row_ in np.unique(problem.packets[switch].header).tolist()}
    return len({header & query.group for header in seen if query.predicate.holds(header)})


def _require_consistent(
    problem: Monitoring, plan: Answers, methods: dict[tuple[int, int], str], periods_s: dict[int, float]
) -> None:
    """Raise PlanRejected where tables do not belong together, or periods do not fit."""
    for row, query in enumerate(problem.asked):
        needed = {switch for switch in range(len(problem.switches)) if problem.is_about(query, switch)}
        having = {switch for query_row, switch in methods if query_row == row}
        if row in periods_s and needed != having:
            name = problem.switch_names[next(iter(needed ^ having))]
            raise PlanRejected(
                f"methods: {query.name} has answers, must have a method on each switch: {name}"
            )
        if row not in periods_s and having:
            raise PlanRejected(f"methods: {query.name} has a method, but no row in answers")
        if row in periods_s:
            _require_period(query, periods_s[row])
    for query_name, switch, use in (
        plan.uses[["query", "switch", "use"]].drop_duplicates().itertuples(index=False)
    ):
        method = methods.get((problem.query_names.index(query_name), problem.switch_names.index(switch)))
        if method is None or (use == COUNT) != (method == AHEAD):
            raise PlanRejected(f"uses: {query_name} on {switch} has use {use}, which is none of its method")


def _require_period(query: Query, period_s: float) -> None:
    if query.returns_packets != (period_s == 0):
        state = "blank" if query.returns_packets else "given"
        raise PlanRejected(f"answers: period_s of {query.name} must be {state}")
    if period_s:
        doublings = np.log2(period_s / query.every_s)
        if abs(doublings - round(doublings)) > 1e-9 or doublings < -0.5:
            rule = "must be every_s, or that doubled once or several times"
            raise PlanRejected(f"answers: period_s of {query.name} is {period_s:g}, {rule}")


def check(problem: Monitoring, plan: Answers) -> Violations:
    """Return the limits of switches that the plan exceeds, and the queries with wrong answers."""
    evaluation = evaluate(problem, plan)
    violations = Violations()
    used = {
        "rules": (np.array([switch.rules for switch in evaluation.observed], dtype=float), "rules"),
        "exact_rules": (
            np.array([switch.exact_rules for switch in evaluation.observed], dtype=float),
            "rules",
        ),
        "packets_per_s": (evaluation.count_packets(), "packets/s"),
        "polls_per_s": (evaluation.polls, "polls/s"),
    }
    for limit, (amount, unit) in used.items():
        allowed = problem.limit(limit)
        over = np.flatnonzero(exceeds(amount, allowed))
        where = [problem.switch_names[row] for row in over.tolist()]
        violations += Violations.of(limit, where=where, amount=amount[over], allowed=allowed[over], unit=unit)
    late = [
        row
        for row, period_s in evaluation.period_s.items()
        if exceeds(period_s, problem.asked[row].longest_s)
    ]
    violations += Violations.of(
        "longest_s",
        where=[problem.query_names[row] for row in late],
        amount=[evaluation.period_s[row] for row in late],
        allowed=[problem.asked[row].longest_s for row in late],
        unit="s",
    )
    wrong = [problem.query_names[row] for row in evaluation.wrong]
    violations += Violations.of("answers", where=wrong, amount=1.0, allowed=0.0, unit="")
    other = [name for name, switch in zip(problem.switch_names, evaluation.observed, strict=True)
             if switch.other_actions]  # fmt: skip
    return violations + Violations.of("program", where=other, amount=1.0, allowed=0.0, unit="")
