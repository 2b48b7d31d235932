"""Answers while they are decided: methods and periods of queries within the limits of all switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.options import Options
from planner.search.judged import feasible, undecided
from planner_models.queries.plan.metrics import value_answers
from planner_models.queries.plan.plan import Answers, make_plan
from planner_models.queries.plan.usage import SwitchUse
from planner_models.queries.problem.problem import Monitoring

TOLERANCE: Final = 1e-9
ROUNDED: Final = 9  # decimals of rates that are compared


def list_uses(problem: Monitoring) -> list[SwitchUse]:
    """Return the use of each switch by methods."""
    return [SwitchUse(problem, switch) for switch in range(len(problem.switches))]


@dataclass
class Answering:
    """Methods and periods of the queries that have answers so far.

    methods    of each switch, by the row of a query
    periods_s  by the row of a query
    """

    problem: Monitoring
    uses: Sequence[SwitchUse]
    methods: list[dict[int, str]] = field(default_factory=list)
    periods_s: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.methods = self.methods or [{} for _ in self.uses]

    @property
    def value(self) -> float:
        """The weight of the answers."""
        return value_answers(self.problem, self.periods_s)

    def count_polls(self, switch: int) -> float:
        """Return the counters read of a switch, a second."""
        return sum(
            self.uses[switch].seen[row].counters(method) / self.periods_s[row]
            for row, method in self.methods[switch].items()
            if self.periods_s[row]
        )

    def fits(self, switch: int) -> bool:
        """Return whether a switch keeps all its limits."""
        use = self.uses[switch]
        return self.count_polls(switch) <= use.most_polls * (1 + TOLERANCE) and use.is_within_space(
            self.methods[switch]
        )

    def load(self, switch: int) -> tuple[int, float]:
        """Return the packets of a switch to the controller, and its polls a second."""
        packets = int(self.uses[switch].use(self.methods[switch]).diverted.sum())
        return packets, round(self.count_polls(switch), ROUNDED)

    def total_load(self) -> tuple[int, float]:
        """Return the packets of all switches to the controller, and their polls a second."""
        loads = [self.load(use.switch) for use in self.uses]
        return sum(packets for packets, _ in loads), sum(polls for _, polls in loads)

    def remove(self, row: int) -> None:
        """Take the answers of a query away."""
        self.periods_s.pop(row, None)
        for methods in self.methods:
            methods.pop(row, None)

    def add(self, row: int, preferences: Sequence[Sequence[str]]) -> bool:
        """Answer a query by the first preferred method of each switch that fits, at the shortest period.

        preferences  methods of each switch that the query is about, in the order of `find_switches`
        returns      whether it has answers; without, all is as before
        """
        for period_s in self.problem.asked[row].periods_s:
            self.periods_s[row] = period_s
            if all(
                self._set_first(row, switch, methods)
                for switch, methods in zip(self.find_switches(row), preferences, strict=True)
            ):
                return True
            self.remove(row)
        return False

    def find_switches(self, row: int) -> list[int]:
        """Return the switches that a query is about."""
        return [use.switch for use in self.uses if row in use.seen]

    def _set_first(self, row: int, switch: int, methods: Sequence[str]) -> bool:
        for method in methods:
            self.methods[switch][row] = method
            if self.fits(switch):
                return True
        self.methods[switch].pop(row, None)
        return False

    def make_plan(self) -> Answers:
        """Return the plan."""
        method_of = {
            (row, switch): method
            for switch, methods in enumerate(self.methods)
            for row, method in methods.items()
        }
        return make_plan(self.problem, method_of, self.periods_s)


def order_queries(problem: Monitoring) -> list[int]:
    """Return the rows of queries by falling weight, then by content, for tables in any order."""

    def key(row: int) -> tuple[object, ...]:
        query = problem.asked[row]
        asked = (query.select, query.entries, query.group, query.split, query.limit or 0)
        return (-query.weight, *asked, query.every_s, query.longest_s)

    return sorted(range(len(problem.asked)), key=key)


def decide_feasible(answering: Answering, options: Options) -> Decision[Answers]:
    """Return the decision of a rule, which proves nothing."""
    short = len(answering.problem.queries) - len(answering.periods_s)
    if options.service == "all" and short:
        proof: Proof = undecided(f"{short} of {len(answering.problem.queries)} queries have no answers")
        return Decision(plan=None, proof=proof)
    return Decision(plan=answering.make_plan(), proof=feasible(answering.value, metric="answered"))
