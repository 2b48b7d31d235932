"""Decisions of rules without a bound, with their proof.

The time limit of designs that plan one interval after another, with time reserved for those to come.
"""

from __future__ import annotations

from typing import Final

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import amount
from planner.options import Options
from planner.search.deadline import Deadline, Stopwatch
from planner.search.judged import feasible, infeasible, undecided
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.designs.shedding import explain_shortage
from planner_models.analytics.plan.answers import follow_sources
from planner_models.analytics.plan.metrics import measure_levels
from planner_models.analytics.plan.plan import Levels, make_plan
from planner_models.analytics.problem.denials import explain_denied
from planner_models.analytics.problem.problem import Analytics

RULES_ONLY: Final = frozenset({"rules", "retention"})
"""Guarantees of designs that overload uplinks: sites only send levels that they may send."""
BUT_ANSWERS: Final = frozenset({"capacity", "error", "storage", "rules", "retention"})
"""Guarantees of plans that leave out answers, as uplinks carry not even the coarsest levels of all."""
MOST_DENIED: Final = 5
"""Denied queries with a reason of their own."""
REPAIR: Final = 4.0  # times the seconds of building an interval's choices, which its shortest plan takes


def say_shortages(choices: Choices) -> tuple[str, ...]:
    """Return the reasons for omitted answers: a sentence for those that do not fit, and by denied query."""
    denied = say_denied(choices.problem)
    count = len(choices.shortages)
    if not count:
        return denied
    more = f" (and {count - 1} more intervals)" if count > 1 else ""
    return (f"answers are left out, as not all fit: {choices.shortages[0]}{more}", *denied)


def say_denied(problem: Analytics) -> tuple[str, ...]:
    """Return a sentence for each of the first queries with answers that rules of regions deny."""
    sentences = [
        f"query '{problem.query_names[query]}' is denied: {reason}"
        for query, reason in explain_denied(problem)
    ]
    more = len(sentences) - MOST_DENIED
    return (*sentences[:MOST_DENIED], *([f"{more} more queries are denied by rules"] if more > 0 else []))


def decide(
    problem: Analytics,
    chosen: Ints,
    options: Options,
    *,
    backend: str = "rule",
    guarantees: frozenset[str] | None = RULES_ONLY,
    price: Floats | None = None,
    choices: Choices | None = None,
    is_cut: bool = False,
) -> Decision[Levels]:
    """Return the decision for chosen levels (K, S, Q); its objective value has no bound.

    price    (S + G,) price of each uplink in the last interval, USD
    choices  that the levels are of, which may leave answers out
    is_cut   whether a time limit ended the search
    """
    reasons = say_denied(problem) if choices is None else say_shortages(choices)
    if choices is not None:
        chosen = choices.without_left_out(chosen)
        guarantees = BUT_ANSWERS if choices.shortages else guarantees
    chosen = follow_sources(problem, chosen)
    figures = measure_levels(problem, chosen)
    if options.service == "all" and (figures["no_data_loss"] or figures["late_loss"]):
        return Decision(plan=None, proof=_prove_short(problem, figures))
    proof = feasible(
        figures["value"],
        metric="value",
        backend=backend,
        reasons=reasons,
        is_cut=is_cut,
    )
    return Decision(plan=make_plan(problem, chosen, price), proof=proof, guarantees=guarantees)


def _prove_short(problem: Analytics, figures: dict[str, float | None]) -> Proof:
    choices = Choices(problem, must_answer=True)
    for k in range(len(problem.interval_numbers)):
        reason = explain_shortage(problem, choices.interval(k), k, must_answer=True)
        if reason is not None:
            return infeasible(reason, metric="value")
    lost = (figures["no_data_loss"] or 0.0) + (figures["late_loss"] or 0.0)
    reason = f"this plan loses {amount(lost, 'USD')} without data in time; another may answer all queries"
    return undecided(reason, metric="value")


class IntervalDeadline:
    """The seconds for searches of intervals, without those reserved for short plans of later ones."""

    def __init__(self, options: Options, intervals: int) -> None:
        self.deadline, self.building = Deadline.of(options), Stopwatch()
        self.remaining, self.build_s = intervals, 0.0

    def start_interval(self) -> None:
        """Note that the choices of the next interval are being built."""
        self.building = Stopwatch()
        self.remaining -= 1

    def end_build(self) -> None:
        """Note that the choices of the interval are built."""
        self.build_s = self.building.seconds

    def remaining_options(self, options: Options) -> Options:
        """Return the options with the time that is left, as they are without a limit."""
        return self.deadline.options(options)

    def search_s(self) -> float:
        """Return the seconds left for searches of this interval and later ones; 0 or less when late."""
        return self.deadline.left_s - REPAIR * self.build_s * self.remaining
