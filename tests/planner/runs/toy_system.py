"""A system small enough to know every answer: a link of given capacity, and one demand on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from planner.contract.design import Decision, Design
from planner.contract.metrics import Headline, Metric
from planner.contract.plan import Violations
from planner.contract.proof import Proof, Status
from planner.contract.system import PlanType, ProblemType, System
from planner.scenarios.scenario import Entry


@dataclass(frozen=True)
class Link:
    offered_mbps: float
    capacity_mbps: float

    def to_tables(self) -> dict[str, pd.DataFrame]:
        return {"links": pd.DataFrame([vars(self)])}

    def size(self) -> dict[str, int]:
        return {"links": 1}


@dataclass(frozen=True)
class Admitted:
    """Traffic that is sent on the link; what is more than its capacity is dropped."""

    sent_mbps: float

    def to_tables(self) -> dict[str, pd.DataFrame]:
        return {"sent": pd.DataFrame([vars(self)])}


def check(problem: Link, plan: Admitted) -> Violations:
    if plan.sent_mbps <= problem.capacity_mbps * (1 + 1e-9):
        return Violations()
    return Violations.of(
        "capacity", where=["the link"], amount=plan.sent_mbps, allowed=problem.capacity_mbps, unit="Mbit/s"
    )


def measure(problem: Link, plan: Admitted, previous: Admitted | None) -> dict[str, float | None]:
    delivered = min(plan.sent_mbps, problem.capacity_mbps)
    return {
        "delivered_mbps": delivered,
        "offered_mbps": problem.offered_mbps,
        "lost_mbps": plan.sent_mbps - delivered,
        "shed_mbps": problem.offered_mbps - plan.sent_mbps,
        "sent_mbps": plan.sent_mbps,
    }


def admit(problem: Link) -> Decision[Admitted]:
    """Send as much as the link carries."""
    sent = min(problem.offered_mbps, problem.capacity_mbps)
    proof = Proof(status=Status.OPTIMAL, objective=sent, bound=sent, metric="delivered_mbps")
    return Decision(plan=Admitted(sent), proof=proof)


def flood(problem: Link) -> Decision[Admitted]:
    """Send everything."""
    plan = Admitted(problem.offered_mbps)
    return Decision(plan=plan, proof=Proof(status=Status.FEASIBLE), guarantees=frozenset())


def bound(problem: Link) -> Decision[Admitted]:
    """Compute the most that the link carries."""
    upper = min(problem.offered_mbps, problem.capacity_mbps)
    return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, bound=upper, metric="delivered_mbps"))


def half(problem: Link) -> Decision[Admitted]:
    """Send half of what is offered, up to half of the capacity, and prove a bound that is too high."""
    sent = min(problem.offered_mbps, problem.capacity_mbps) / 2
    proof = Proof(status=Status.FEASIBLE, objective=sent, bound=problem.offered_mbps, metric="delivered_mbps")
    return Decision(plan=Admitted(sent), proof=proof)


def _metric(name: str, better: Any) -> Metric:
    return Metric(name=name, unit="Mbit/s", better=better, about="a figure of the toy")


DESIGNS: Mapping[str, Callable[..., Decision[Admitted]]] = {
    "admit": admit,
    "flood": flood,
    "bound": bound,
    "half": half,
}


def toy(
    sample: Callable[[], Link] | None = None,
    decide: Callable[..., Decision[Admitted]] | None = None,
    then: str = "",
) -> System[Link, Admitted]:
    """Return the system; `decide` joins it as design "own", and `then` ranks plans that deliver the same."""
    selected = {**DESIGNS, **({"own": decide} if decide else {})}
    return System(
        name="toy",
        question="How much does the link carry?",
        source="tests",
        problem=ProblemType(type=Link, tables=(), from_tables=lambda _: Link(1.0, 1.0), sample=sample),
        plan=PlanType(
            tables=(),
            from_tables=lambda *_: Admitted(0.0),
            check=check,
            metrics=(
                _metric("delivered_mbps", "more"),
                _metric("offered_mbps", "more"),
                _metric("lost_mbps", "less"),
                _metric("shed_mbps", "less"),
                _metric("sent_mbps", "more"),
            ),
            headline=Headline(
                metric="delivered_mbps",
                verb="delivers",
                total="offered_mbps",
                then=then,
                then_words="with" if then else "",
                losses={"lost_mbps": "loses", "shed_mbps": "sheds"},
                table=("delivered_mbps", "lost_mbps", "sent_mbps"),
            ),
            limits={"capacity": "overloaded links"},
            measure=measure,
        ),
        designs=tuple(
            Design(name=name, decide=function, source="tests", is_bound=name == "bound")
            for name, function in selected.items()
        ),
    )


def entry(system: System, name: str) -> Entry:
    """Return a design of the system with its defaults."""
    return Entry(label=name, design=system.design(name))
