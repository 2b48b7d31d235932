"""Results of a run and of a comparison: plan, proof, metrics, constraints and verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from planner.contract.metrics import Better, Metric
from planner.contract.notes import doubts_of, notes_of
from planner.contract.proof import Status
from planner.contract.system import System
from planner.contract.tables import digest
from planner.errors import InputError, did_you_mean
from planner.formatting import number, sizes
from planner.runs.outcome import Outcome
from planner.runs.result import MOST_LINES, Result, aligned, metric_columns, wrapped
from planner.runs.verdict import comparison_verdict, run_verdict, tightest_bounds
from planner.scenarios.scenario import Scenario

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run(Outcome, Result):
    """One design on one problem.

    decision    the decision on the observed problem; None where the run failed
    plan        the plan as realized on the true problem; None where there is none
    violations  constraint violations of the plan on the true problem
    metrics     metrics of the plan on the true problem, by name
    options     solver options of the decision
    omniscient  whether the design observed the true problem, so that its bound is valid in truth
    error       the reason why there is no decision
    """

    @property
    def verdict(self) -> str:
        """Describe the run by its headline metric, in plain sentences."""
        return run_verdict(self)

    def titled(self) -> Run:
        """Return the run with the title of its design as its label, for sentences that people read."""
        return replace(self, entry=self.entry.titled())

    def alone(self) -> Comparison:
        """Return the comparison that has this run only."""
        return Comparison(system=self.system, problem=self.problem, runs=(self,))

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return a table of the plan by its name, or its first one; `plan.to_tables()` returns all.

        raises  InputError where there is no plan, or no such table
        """
        self._require_plan()
        tables = self.plan.to_tables()
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise InputError(f"{name}: no such table of this plan" + did_you_mean(name, tables))
        frame: pd.DataFrame = tables[name]
        return frame

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the network with the plan's amounts on each link, as attributes of its edges.

        raises  InputError where there is no plan, or the system has no network
        """
        self._require_plan()
        if self.system.plan.to_networkx is None:
            raise InputError(f"{self.system.name}: this system has no network; to_frame() returns its plan")
        return self.system.plan.to_networkx(self.problem, self.plan)

    def _require_plan(self) -> None:
        if self.plan is None:
            raise InputError(f"{self.label}: has no plan ({self.status})")

    def summary(self) -> list[str]:
        """Return the verdict, the end of the search, and the most important metrics."""
        proof = self.proof
        state = [self.status, f"gap {number(proof.gap)}", f"{number(proof.seconds)} s"]
        head = f"{self.system.name}, {self.label}: {sizes(self.problem.size())}; {', '.join(state)}"
        if self.error is not None:
            return [head, str(self.error)]
        rows = [
            (metric.label, number(self.metrics.get(metric.name)), metric.unit)
            for metric in self.system.table_metrics
            if self.metrics.get(metric.name) is not None
        ]
        return [head, self.verdict, *doubts_of(self.problem), *aligned(rows)]

    @property
    def exit_code(self) -> int:
        """0 with a plan, or with a bound by a design for bounds; 3 infeasible, 4 undecided, or an error's."""
        if self.error is not None:
            return self.error.exit_code
        if self.plan is not None or (self.entry.design.is_bound and self.proof.bound is not None):
            return 0
        return 3 if self.proof.status in (Status.INFEASIBLE, Status.UNBOUNDED) else 4

    def to_dict(self) -> dict[str, Any]:
        """Return plain data of the run, as `--json` prints it."""
        proof = self.proof
        return {
            "design": self.label,
            "mechanism": str(self.entry.design.mechanism),
            "status": self.status,
            "constraints": self.constraints.to_dict() if self.plan is not None else None,
            "verdict": self.verdict,
            "objective": proof.objective,
            "objective_metric": proof.metric,
            "bound": proof.bound,
            "gap": proof.gap,
            **({"ranks": [rank._asdict() for rank in proof.ranks]} if proof.ranks else {}),
            **({"levels": [level._asdict() for level in proof.levels]} if proof.levels else {}),
            **({"bound_scope": proof.bound_scope} if proof.bound_scope else {}),
            "seconds": proof.seconds,
            "compile_s": proof.compile_s,
            "backend": proof.backend,
            "violations": self.violations.frame.to_dict(orient="records"),
            "metrics": dict(self.metrics),
            **({"breakdown": self.breakdown.to_dict()} if self.breakdown else {}),
            **({"reasons": list(proof.reasons)} if proof.reasons else {}),
            **({"notes": list(proof.notes)} if proof.notes else {}),
            **({"error": str(self.error)} if self.error else {}),
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(Result):
    """Several designs on one problem; `comparison["ecmp"]` is the run of one of them.

    scenario  what was run; None where it is unknown
    """

    system: System
    problem: Any
    runs: tuple[Run, ...]
    scenario: Scenario | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the scenario, which makes its problem by functions that cannot be sent to a process."""
        return {**vars(self), "scenario": None}

    def titled(self) -> Comparison:
        """Return the comparison with titles of designs as labels, for sentences that people read."""
        return replace(self, runs=tuple(run.titled() for run in self.runs))

    @cached_property
    def reference(self) -> tuple[str, float] | None:
        """The metric with a bound valid in truth, and the tightest such bound."""
        # a bound that covers some plans only, or an observed problem, is not valid in truth
        proofs = [run.proof for run in self.runs if run.omniscient and run.proof.bound_scope is None]
        proven = [(proof.metric, proof.bound) for proof in proofs if proof.metric and proof.bound is not None]
        if not proven:
            return None
        metric = proven[0][0]
        tightest = min if self.system.metric(metric).better == "more" else max
        return metric, tightest(bound for name, bound in proven if name == metric)

    def share_of_bound(self, run: Run) -> float | None:
        """Return the fraction of the tightest bound that the run's plan reaches; None where unknown."""
        if self.reference is None or run.plan is None:
            return None
        metric, bound = self.reference
        value = run.metrics.get(metric)
        return None if value is None else fraction_of_bound(value, bound, self.system.metric(metric).better)

    @cached_property
    def references(self) -> tuple[tuple[Metric, float], ...]:
        """The metrics with a bound valid in truth, and their tightest bounds: one, or one for each rank."""
        ranks, bounds = self.system.ranks, tightest_bounds(self.runs)
        if len(ranks) == len(bounds) > 1:
            return tuple(zip(ranks, bounds, strict=True))
        return () if self.reference is None else ((self.system.metric(self.reference[0]), self.reference[1]),)

    def shares_of_bounds(self, run: Run) -> tuple[float | None, ...]:
        """Return the fractions of the bounds of `references` that the run's plan reaches; None for unknown.

        The bound of a second rank holds for plans that reach the first one.
        """
        if len(self.references) < 2:
            return tuple(self.share_of_bound(run) for _ in self.references)
        shares: list[float | None] = []
        for metric, bound in self.references:
            value = None if run.plan is None else run.metrics.get(metric.name)
            if value is None or any(share != 1.0 for share in shares):
                shares.append(None)
            else:
                shares.append(fraction_of_bound(value, bound, metric.better))
        return tuple(shares)

    @property
    def verdict(self) -> str:
        """Compare the designs by the headline metric, in plain sentences."""
        return comparison_verdict(self.runs)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row for each design: mechanism, status, gap, times, every metric, share_of_bound."""
        rows = [
            {
                "design": run.label,
                "mechanism": str(run.entry.design.mechanism),
                "status": run.status,
                "gap": run.proof.gap,
                "seconds": run.proof.seconds,
                "compile_s": run.proof.compile_s,
                "violations": len(run.violations) if run.plan is not None else None,
            }
            for run in self.runs
        ]
        rows = [
            {
                **row,
                **metric_columns(self.system.metrics, run.metrics, row),
                "share_of_bound": self.share_of_bound(run),
            }
            for row, run in zip(rows, self.runs, strict=True)
        ]
        return pd.DataFrame(rows).set_index("design")

    def __getitem__(self, label: str) -> Run:
        """Return the run of a design; raise InputError that names the nearest."""
        for run in self.runs:
            if run.label == label:
                return run
        labels = [run.label for run in self.runs]
        raise InputError(f"{label}: no such design in this comparison" + did_you_mean(str(label), labels))

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def to_frame(self) -> pd.DataFrame:
        """Return `metrics`, one row for each design."""
        return self.metrics

    def summary(self) -> list[str]:
        """Return the verdict, and the headline metrics of each design."""
        ranks = self.system.ranks
        labels = [f"{metric.label}, {metric.unit}" if metric.unit else metric.label for metric in ranks]
        rows = [["design", *labels, "search"]]
        rows += [
            [run.label, *(number(run.metrics.get(metric.name)) for metric in ranks), run.status]
            for run in self.runs
        ]
        head = [f"{self.system.name}: {sizes(self.problem.size())}", self.verdict]
        head += doubts_of(self.problem)
        limit = max(2, MOST_LINES - len(wrapped(head)))
        if len(rows) > limit:
            more = f"and {len(rows) - limit + 1} more in .metrics"
            rows[limit - 1 :] = [[more, *("" for _ in ranks), ""]]
        return [*head, *aligned(rows)]

    @property
    def exit_code(self) -> int:
        """0 when every design has a plan, otherwise that of the first that has none."""
        return next((run.exit_code for run in self.runs if run.exit_code), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data of all runs, as `--json` prints it."""
        runs = [run.to_dict() for run in self.runs]
        for plain, run in zip(runs, self.runs, strict=True):
            if self.reference is not None:
                plain["metrics"]["share_of_bound"] = self.share_of_bound(run)
        tables = self.problem.to_tables()
        notes = notes_of(self.problem)
        problem = {
            "digest": digest(tables),
            "size": self.problem.size(),
            **({"notes": notes} if notes else {}),
        }
        return {
            "system": self.system.name,
            "verdict": self.verdict,
            "headline": headline_of(self.system),
            "problem": problem,
            "runs": runs,
        }


def headline_of(system: System) -> dict[str, Any]:
    """Return the headline metric, and that of its second rank, as plain data, as `--json` prints them."""
    first, *second = (
        {"metric": rank.name, "unit": rank.unit, "better": rank.better} for rank in system.ranks
    )
    return {**first, **({"then": second[0]} if second else {})}


def fraction_of_bound(value: float, bound: float, better: Better) -> float | None:
    """Return the fraction of a bound that a value reaches; None where it has no meaning."""
    if bound <= 0 or value < 0 or better == "neither":
        return None
    if better == "more":
        return value / bound
    return bound / value if value > 0 else None
