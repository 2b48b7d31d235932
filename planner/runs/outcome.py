"""Outcome of one design on one problem: its decision, its plan in truth, constraints and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from planner.contract.design import Decision
from planner.contract.plan import Breakdown, Violations
from planner.contract.proof import OPTIMAL_GAP, Proof, Status
from planner.contract.system import System
from planner.errors import PlannerError
from planner.formatting import sizes
from planner.options import Options
from planner.scenarios.scenario import Entry


@dataclass(frozen=True)
class Violated:
    """A violated constraint.

    limit   its name in `check`
    places  the number of places that violate it, and `words` for them: 3 "overloaded links"
    worst   the largest amount beyond what is allowed, in `unit`
    """

    limit: str
    places: int
    words: str
    worst: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Verdict on a plan's constraints: met in truth or not, and the users' losses.

    met       false where a constraint is violated, or where all demand must be served and is not
    violated  the violated constraints
    lost      value of each metric of losses above 0
    """

    met: bool
    violated: tuple[Violated, ...] = ()
    lost: Mapping[str, float] = field(default_factory=dict)

    @property
    def places(self) -> str:
        """The violated places in words: `3 overloaded links`."""
        return sizes({violation.words: violation.places for violation in self.violated})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        violated = {
            violation.limit: {"places": violation.places, "worst": violation.worst, "unit": violation.unit}
            for violation in self.violated
        }
        return {"met": self.met, "violated": violated, "lost": dict(self.lost)}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Outcome:
    """What one design has decided on one problem, and what its plan is in truth, see `Run`."""

    system: System
    problem: Any
    entry: Entry
    decision: Decision[Any] | None = None
    plan: Any = None
    violations: Violations = field(default_factory=Violations)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    omniscient: bool = False
    error: PlannerError | None = None

    @property
    def label(self) -> str:
        return self.entry.label

    @property
    def proof(self) -> Proof:
        return self.decision.proof if self.decision else Proof(status=Status.UNDECIDED)

    @property
    def status(self) -> str:
        """Return the end of the search, as `optimal`, `time limit` or `heuristic`, without constraints."""
        proof = self.proof
        if self.error is not None:
            return "failed"
        if not self.entry.design.is_search:
            return "no search"
        if proof.status is Status.OPTIMAL and proof.gap is not None and proof.gap > OPTIMAL_GAP:
            return "within gap"
        if proof.status is Status.UNDECIDED:
            return "no plan found" if proof.bound is None else "bound only"
        return self._end_with_plan() if proof.status is Status.FEASIBLE else str(proof.status)

    def _end_with_plan(self) -> str:
        """Return the end of a search that found a plan and claims no optimum."""
        proof = self.proof
        if proof.gap is not None and proof.gap <= OPTIMAL_GAP:
            return str(Status.OPTIMAL)
        limit_s = self.options.time_limit_s if self.entry.design.takes_options else None
        if proof.is_cut or (limit_s is not None and (proof.seconds or 0.0) >= 0.95 * limit_s):
            return "time limit"
        return "heuristic" if proof.bound is None else str(proof.status)

    @property
    def reason(self) -> str:
        """Return why the run failed, without its label; "" where it did not."""
        return "" if self.error is None else str(self.error).removeprefix(f"{self.label}: ")

    @cached_property
    def constraints(self) -> Constraints:
        """Return the verdict on all constraints in truth, and the users' losses."""
        words, lost = self.system.plan.limits, self.system.losses(self.metrics)
        violated = []
        for limit, rows in self.violations.frame.groupby("limit", sort=False):
            worst = float((rows["amount"] - rows["allowed"]).abs().max())
            noun = words.get(str(limit), f"places that violate {limit}")
            violated.append(Violated(str(limit), len(rows), noun, worst, str(rows["unit"].iloc[0])))
        is_met = not violated and not (lost and self.options.service == "all")
        return Constraints(met=is_met, violated=tuple(violated), lost=lost)

    @cached_property
    def breakdown(self) -> Breakdown | None:
        """Metrics of the plan for each group that it serves; None without groups or a plan."""
        by_group = self.system.plan.breakdown
        if by_group is None or self.plan is None or self.problem is None:
            return None
        return by_group(self.problem, self.plan)
