"""What-if analysis: solve a problem again with each candidate change, and rank the changes.

A system says which changes to try (`Change`); solving, measuring, ranking, the table and the sentence are
the same for all systems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import pandas as pd

from planner.contract.design import ProblemT
from planner.contract.metrics import Metric
from planner.contract.studies import Decided, Section
from planner.errors import PlannerError
from planner.formatting import amount_or_number, counted, percent, plural
from planner.options import Options

Figures = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Change(Generic[ProblemT]):
    """One change to try.

    name        in words, such as "links A->B with 10 Gbit/s more"
    problem     the changed problem; None where nothing can be served after the change
    parameters  of the design, over those that it decided with
    facts       further cells of its row, such as the added capacity or the gain by dual prices
    """

    name: str
    problem: ProblemT | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial(Generic[ProblemT]):
    """A change with its solution.

    metrics  of the plan on the changed problem; None where there is no plan
    gain     improvement of the ranking metric; negative where worse, None for unknown
    """

    change: Change[ProblemT]
    metrics: Figures | None
    gain: float | None


class Reoptimization(Generic[ProblemT]):
    """Solver of changed problems with the explained design.

    metric     ranks the changes
    value      of the metric on the unchanged problem
    resolution gap of the explained plan, in the metric's unit: a smaller gain may come from the search,
               not from the change
    """

    def __init__(
        self,
        decided: Decided,
        *,
        metric: Metric,
        measure: Callable[[Any, Any, Any], Mapping[str, float | None]],
        options: Options,
        warm: bool = False,
    ) -> None:
        self.metric = metric
        self.value = decided.metrics[metric.name]
        self.resolution = abs(self.value or 0.0) * (decided.decision.proof.gap or 0.0)
        self.label = metric.words
        self._decided, self._measure, self._options, self._warm = decided, measure, options, warm

    def solve(self, change: Change[ProblemT]) -> Trial[ProblemT]:
        """Return the trial of one change; raises PlannerError where the change is not possible."""
        if change.problem is None:
            return Trial(change=change, metrics=None, gain=None)
        decision = self._decided.design.run(
            change.problem,
            options=self._options,
            previous=self._decided.decision if self._warm else self._decided.previous,
            parameters={**self._decided.parameters, **change.parameters},
        )
        if decision.plan is None:
            return Trial(change=change, metrics=None, gain=None)
        metrics = self._measure(change.problem, decision.plan, None)
        return Trial(change=change, metrics=metrics, gain=self.gain(metrics[self.metric.name]))

    def gain(self, value: float | None) -> float | None:
        """Return the improvement of a value of the metric over the present one; None where unknown."""
        if value is None or self.value is None:
            return None
        return value - self.value if self.metric.better == "more" else self.value - value

    def solve_all(
        self, changes: Iterable[Change[ProblemT]], limit: int | None = None
    ) -> list[Trial[ProblemT]]:
        """Return the trials of the changes, the largest gain first; impossible changes are left out.

        limit  number of changes to try; default: all
        """
        trials: list[Trial[ProblemT]] = []
        for change in changes:
            if limit is not None and len(trials) >= limit:
                break
            try:
                trials.append(self.solve(change))
            except PlannerError:  # a change that the problem cannot have
                continue
        return sorted(trials, key=lambda trial: -(trial.gain if trial.gain is not None else -1e300))

    def is_clear(self, trial: Trial[ProblemT]) -> bool:
        """Return whether the gain is larger than the gap of the explained plan."""
        return trial.gain is not None and abs(trial.gain) > self.resolution

    def section(
        self,
        trials: Sequence[Trial[ProblemT]],
        *,
        title: str,
        others: Sequence[Metric] = (),
        units: Mapping[str, str] | None = None,
        note: str = "",
    ) -> Section:
        """Return the table of trials: change, facts, the metric after, its gain and share, other metrics.

        others  further metrics to show
        units   of the facts
        """
        name, unit = self.metric.name, self.metric.unit
        rows = [
            {
                "change": trial.change.name,
                **trial.change.facts,
                name: trial.metrics[name] if trial.metrics else None,
                "gain": trial.gain,
                "gain_share": trial.gain / abs(self.value) if trial.gain is not None and self.value else None,
                **{metric.name: trial.metrics[metric.name] if trial.metrics else None for metric in others},
            }
            for trial in trials
        ]
        base_units = {
            name: unit,
            "gain": unit,
            "gain_share": "",
            **{metric.name: metric.unit for metric in others},
        }
        words = note or f"{self._decided.design.name} solved each changed problem again"
        return Section(
            title=title, frame=pd.DataFrame(rows), units={**base_units, **(units or {})}, note=words
        )

    def sentence(self, trials: Sequence[Trial[ProblemT]], *, what: str = "change") -> str:
        """Return a sentence about the trial with the largest gain."""
        tried = [trial for trial in trials if trial.gain is not None]
        if not tried:
            return f"No {what} could be tried."
        best = max(tried, key=lambda trial: trial.gain or 0.0)
        gain = best.gain or 0.0
        if gain <= 0:
            return f"No {what} of the {len(tried)} tried improves {self.label}."
        share = f" ({percent(gain / abs(self.value), 2)})" if self.value else ""
        doubt = "" if self.is_clear(best) else ", which is less than the gap of the plan"
        amount = amount_or_number(gain, self.metric.unit)
        return (
            f"Of {counted(len(tried), plural(what))} tried, {best.change.name} gains most: "
            f"{amount}{share} in {self.label}{doubt}."
        )
