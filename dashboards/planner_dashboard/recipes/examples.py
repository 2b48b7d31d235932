"""Measured designs as examples: their words, and the address that opens them on the first page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from planner.formatting import UNIT_SCALES, amount, percent, short_number
from planner.scenarios.catalogue import find_system
from planner_dashboard.question import Question, form_fields, unchanged_scenario
from planner_dashboard.session import escape_markdown
from planner_dashboard.share.panel import address_of


@dataclass(frozen=True, kw_only=True)
class Example:
    """A measured design, with exact information or with one degradation.

    share        of the possible gain; None where no bound is proven
    performance  in the metric of the system's study
    parameter    of the observation; "" for exact information
    value        of the parameter, in `unit`
    """

    system: str
    design: str
    mechanism: str
    share: float | None
    performance: float | None
    parameter: str = ""
    kind: str = ""
    value: float = 0.0
    unit: str = ""

    def question(self) -> Question:
        """Return the question that compares the design with the baseline of its system."""
        study = find_system(self.system).studies.coordination
        assert study is not None
        changes: dict[str, Any] = {}
        if self.parameter and self.value:
            key = f"designs.{self.design}.information.{self.parameter}"
            changes[key] = int(self.value) if _is_whole(self) else self.value
        designs = dict.fromkeys([_baseline(self.system), self.design])
        return Question(scenario=study.scenario, changes=changes, designs=tuple(designs))

    def title(self) -> str:
        """Return a short name: system, design, and the age, noise or granularity of its information."""
        says = f"{self.system}, {self.design}"
        return (
            f"{says}, {self.kind} {amount(self.value, self.unit) if self.value else 0}" if self.kind else says
        )

    def place(self) -> tuple[str, str, str, float]:
        """Return the data of an example at a point of a chart."""
        return (self.system, self.design, "", self.value)

    def words(self) -> str:
        """Return the example in one sentence."""
        system = find_system(self.system)
        study = system.studies.coordination
        assert study is not None
        metric = system.metric(study.performance)
        says = f"{self.system}, {self.design} ({self.mechanism})"
        if self.parameter and self.value:
            says += f" with {self.kind} {amount(self.value, self.unit)}"
        if self.share is not None:
            says += f": {percent(self.share)} of the possible gain"
        if self.performance is not None:
            says += f"; {metric.label} {short_number(self.performance, 4)} {metric.unit}".rstrip()
        return f"{says}."


def _baseline(system: str) -> str:
    """Return the design of a system without coordination: the first of its study's scenario."""
    study = find_system(system).studies.coordination
    assert study is not None
    return unchanged_scenario(study.scenario).designs[0].label


def _is_whole(example: Example) -> bool:
    """Return whether the parameter of an observation takes whole numbers only."""
    study = find_system(example.system).studies.coordination
    assert study is not None
    fields = form_fields(unchanged_scenario(study.scenario))
    field = fields.get(f"designs.{example.design}.information.{example.parameter}")
    return field is not None and field.schema.get("type") == "integer"


def show_link(example: Example, key: str) -> None:
    """Show an example in words, with the link that opens it on the first page."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=key):
        st.markdown(escape_markdown(example.words()))
        st.link_button("Open in What if", address_of(example.question().to_query()))


def of_designs(designs: pd.DataFrame) -> list[Example]:
    """Return an example for each measured design."""
    return [
        Example(**{name: row[name] for name in ("system", "design", "mechanism", "share", "performance")})
        for row in designs.to_dict(orient="records")
    ]


def of_curves(curves: pd.DataFrame) -> list[Example]:
    """Return an example for each point of the curves."""
    names = ("system", "design", "mechanism", "share", "performance", "kind", "value", "unit")
    return [
        Example(
            **{name: row[name] for name in names}, parameter=row["parameter"] if row["has_parameter"] else ""
        )
        for row in curves.to_dict(orient="records")
    ]


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
