"""Measured examples: designs of the released measurements in words, with the command that runs each again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from planner.contract.metrics import Metric
from planner.formatting import UNIT_SCALES, amount, percent, short_number
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import Scenario, load


@lru_cache(maxsize=64)
def _load_measured(scenario: str) -> Scenario:
    """Load a scenario that was measured; thousands of points have the same."""
    return load(scenario)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A measured design, with exact information or with one degradation.

    share        of the possible gain; None where no bound is proven
    low, high    smallest and largest share of all draws; None where only one is measured
    draws        number of draws, of which the share is the median
    drawn        what they are: draws of the problem, or seeds of its observation
    performance  in the metric of the system's study, in its scenario
    parameter    of the observation; "" for exact information
    value        of the parameter, in `unit`
    """

    system: str
    design: str
    mechanism: str
    share: float | None
    performance: float | None
    low: float | None = None
    high: float | None = None
    draws: int = 1
    drawn: str = "draws"
    parameter: str = ""
    kind: str = ""
    value: float = 0.0
    unit: str = ""

    @property
    def scenario(self) -> str:
        """The scenario that was measured."""
        study = find_system(self.system).studies.coordination
        assert study is not None
        return study.scenario

    @property
    def designs(self) -> tuple[str, ...]:
        """The design without coordination of the scenario, its first, and this one."""
        return tuple(dict.fromkeys([_load_measured(self.scenario).designs[0].label, self.design]))

    @property
    def change(self) -> tuple[str, float] | None:
        """The key of the degraded information and its value; None for exact information."""
        if not (self.parameter and self.value):
            return None
        return f"designs.{self.design}.information.{self.parameter}", self.value

    @property
    def names(self) -> tuple[str, str]:
        """The titles of its system and design."""
        return find_system(self.system).label, _load_measured(self.scenario).design_title(self.design)

    @property
    def metric(self) -> Metric:
        """The metric of the performance."""
        system = find_system(self.system)
        assert system.studies.coordination is not None
        return system.metric(system.studies.coordination.performance)

    def quality(self) -> str:
        """Return the age, noise or granularity of its information, such as `age 15 min`."""
        return f"{self.kind} {amount(self.value, self.unit) if self.value else 0}"

    def title(self) -> str:
        """Return a short name: system, design, and the age, noise or granularity of its information."""
        says = ", ".join(self.names)
        return f"{says}, {self.quality()}" if self.kind else says

    def place(self) -> tuple[str, str, str, float]:
        """Return the data of an example at a point of a chart that has titles."""
        return (*self.names, "", self.value)

    def words(self) -> str:
        """Return the example in one sentence."""
        metric = self.metric
        says = f"{', '.join(self.names)} ({self.mechanism})"
        if self.parameter and self.value:
            says += f" with {self.quality()}"
        if self.share is not None:
            says += f": {percent(self.share)} of the possible gain{self._spread()}"
        if self.performance is not None:
            says += "; in the scenario itself: " if self.draws > 1 else "; "
            says += f"{metric.label} {short_number(self.performance, 4)} {metric.unit}".rstrip()
        return f"{says}."

    def _spread(self) -> str:
        """Return the number of draws and the range of their shares; "" for one draw."""
        if self.low is None or self.high is None or self.draws < 2:
            return ""
        return f" in the median of {self.draws} {self.drawn} ({percent(self.low)} to {percent(self.high)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "system": self.system,
            "design": self.design,
            "share": self.share,
            "share_low": self.low,
            "share_high": self.high,
            "draws": self.draws,
            "kind": self.kind or None,
            "value": self.value if self.kind else None,
            "unit": self.unit,
            "command": self.command(),
        }

    def command(self) -> str:
        """Return the command that compares the design with the one without coordination."""
        text = f"planner compare {self.scenario} --designs {','.join(self.designs)}"
        return text if self.change is None else f"{text} --set {self.change[0]}={self.change[1]:.10g}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A measured example of a mechanism, beside all designs of its system with information of that quality.

    rivals   all designs of the system, the example among them, in the order of the information they have
    exact    the example's design with exact information; None where that is the example itself
    bound    performance that no plan beats, with all information; None where none is proven
    """

    example: Example
    rivals: tuple[Example, ...]
    exact: Example | None
    bound: float | None

    def sentences(self) -> list[str]:
        """Return the gain of the mechanism in the example, and the command that runs it again."""
        example = self.example
        sentences = [f"measured: {example.words()}", *self._references()]
        if self.exact is not None and self.exact.share is not None:
            sentences.append(
                f"with exact information: {percent(self.exact.share)} of the gain{self.exact._spread()}"
            )
        if example.low is not None and example.low < 0:
            sentences.append(
                "in some draws it is worse than no coordination: measure it with your tables before you rely "
                "on it"
            )
        return [*sentences, f"run it: {example.command()}"]

    def _references(self) -> list[str]:
        """Return the performance without coordination, and the proven bound, in the example's scenario."""
        metric, first = self.example.metric, self.rivals[0]
        if self.bound is None or first.performance is None:
            return []
        start, end = metric.text(first.performance), metric.text(self.bound)
        return [f"the possible gain there: from {start} without coordination to the proven bound of {end}"]

    def to_dict(self) -> dict[str, Any]:
        """Return the example as plain data, with its rivals."""
        return {
            **self.example.to_dict(),
            "bound": self.bound,
            "share_with_exact_information": None if self.exact is None else self.exact.share,
            "compared": [
                {
                    "design": rival.design,
                    "mechanism": rival.mechanism,
                    "share": rival.share,
                    "share_low": rival.low,
                    "share_high": rival.high,
                    "performance": rival.performance,
                }
                for rival in self.rivals
            ],
        }


def of_designs(designs: pd.DataFrame) -> list[Example]:
    """Return an example for each measured design."""
    return [Example(**_figures(row), **_range(row)) for row in designs.to_dict(orient="records")]


def of_curves(curves: pd.DataFrame) -> list[Example]:
    """Return an example for each point of the curves."""
    return [
        Example(
            **_figures(row),
            **_range(row),
            **{name: row[name] for name in ("kind", "value", "unit")},
            parameter=row["parameter"] if row["has_parameter"] else "",
        )
        for row in curves.to_dict(orient="records")
    ]


def _figures(row: Any) -> dict[str, Any]:
    return {name: row[name] for name in ("system", "design", "mechanism", "share", "performance")}


def _range(row: Any) -> dict[str, Any]:
    """Return the range of shares over the draws, or over the seeds of a curve that has no draws."""
    if row["draws"] is None or pd.isna(row["draws"]) or row["draws"] < 2:
        return {}
    return {
        "low": row["share_low"],
        "high": row["share_high"],
        "draws": int(row["draws"]),
        "drawn": "seeds" if row.get("seeds") == row["draws"] else "draws",
    }


def nearest(
    mechanisms: Sequence[str], designs: pd.DataFrame, curves: pd.DataFrame, age_s: float | None
) -> Example | None:
    """Return the measured example of mechanisms that is nearest to an age of information.

    Without an age, the one that reaches the largest share of its system's possible gain.

    age_s  seconds that information is old when it is used; None: unknown
    """
    if age_s:
        aged = [
            curve
            for curve in of_curves(curves[(curves["kind"] == "age") & (curves["value"].astype(float) > 0)])
            if curve.mechanism in mechanisms and curve.parameter and curve.share is not None
        ]
        if aged:
            return min(
                aged,
                key=lambda example: (
                    abs(math.log(_seconds(example) / age_s)),
                    -(example.share or 0.0),
                ),
            )
    designs_with_share = [
        example
        for example in of_designs(designs)
        if example.mechanism in mechanisms and example.share is not None
    ]
    return max(designs_with_share, key=lambda example: example.share or 0.0, default=None)


def collect_evidence(
    mechanisms: Sequence[str], designs: pd.DataFrame, curves: pd.DataFrame, age_s: float | None
) -> Evidence | None:
    """Return the nearest example of mechanisms beside all designs of its system; None without an example.

    age_s  seconds that information is old when it is used; None: unknown
    """
    example = nearest(mechanisms, designs, curves, age_s)
    if example is None:
        return None
    rows = designs[designs["system"] == example.system]
    exact = of_designs(rows)
    rivals = exact
    if example.kind:
        degraded = curves[(curves["system"] == example.system) & (curves["kind"] == example.kind)]
        rivals = of_curves(degraded[degraded["value"].astype(float) == example.value])
    bounds = rows["bound"].dropna()
    return Evidence(
        example=example,
        rivals=tuple(rivals),
        exact=next(item for item in exact if item.design == example.design) if example.kind else None,
        bound=float(bounds.iloc[0]) if len(bounds) else None,
    )


def _seconds(example: Example) -> float:
    return example.value * UNIT_SCALES[0][example.unit]
