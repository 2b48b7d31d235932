"""Measured examples: designs of the released measurements in words, with the command that runs each again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from planner.formatting import UNIT_SCALES, amount, percent, short_number
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import load


@dataclass(frozen=True, kw_only=True)
class Example:
    """A measured design, with exact information or with one degradation.

    share        of the possible gain; None where no bound is proven
    low, high    smallest and largest share of all draws; None where only one is measured
    draws        number of draws
    performance  in the metric of the system's study
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
        return tuple(dict.fromkeys([load(self.scenario).designs[0].label, self.design]))

    @property
    def change(self) -> tuple[str, float] | None:
        """The key of the degraded information and its value; None for exact information."""
        if not (self.parameter and self.value):
            return None
        return f"designs.{self.design}.information.{self.parameter}", self.value

    @property
    def names(self) -> tuple[str, str]:
        """The titles of its system and design."""
        return find_system(self.system).label, load(self.scenario).design_title(self.design)

    def title(self) -> str:
        """Return a short name: system, design, and the age, noise or granularity of its information."""
        says = ", ".join(self.names)
        return (
            f"{says}, {self.kind} {amount(self.value, self.unit) if self.value else 0}" if self.kind else says
        )

    def place(self) -> tuple[str, str, str, float]:
        """Return the data of an example at a point of a chart that has titles."""
        return (*self.names, "", self.value)

    def words(self) -> str:
        """Return the example in one sentence."""
        system = find_system(self.system)
        study = system.studies.coordination
        assert study is not None
        metric = system.metric(study.performance)
        says = f"{', '.join(self.names)} ({self.mechanism})"
        if self.parameter and self.value:
            says += f" with {self.kind} {amount(self.value, self.unit)}"
        if self.share is not None:
            says += f": {percent(self.share)} of the possible gain"
        if self.low is not None and self.high is not None and self.draws > 1:
            says += f" ({percent(self.low)} to {percent(self.high)} in {self.draws} draws)"
        if self.performance is not None:
            says += f"; {metric.label} {short_number(self.performance, 4)} {metric.unit}".rstrip()
        return f"{says}."

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
    """Return the range of shares over the draws."""
    if row["draws"] is None or pd.isna(row["draws"]) or row["draws"] < 2:
        return {}
    return {"low": row["share_low"], "high": row["share_high"], "draws": int(row["draws"])}


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


def _seconds(example: Example) -> float:
    return example.value * UNIT_SCALES[0][example.unit]
