"""The verb `recipes`: the design space, a recommendation, or the measured value of coordination."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from planner.coordination import design_space, measurement
from planner.coordination.design_space import DesignSpace, Recommendation
from planner.coordination.measurement import Curves, Measurement
from planner.errors import InputError
from planner.runs.result import Result
from planner.scenarios.arguments import verb


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Measured(Result):
    """Measured value of coordination: designs of systems with their information, and curves with less."""

    systems: tuple[Measurement, ...]
    curves: tuple[Curves, ...] = ()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each design, see `Measurement.frame`."""
        return pd.concat([system.frame for system in self.systems], ignore_index=True)

    def sentences(self) -> list[str]:
        """Return the results, system by system."""
        sentences = [sentence for system in self.systems for sentence in system.sentences()]
        return sentences + [sentence for curve in self.curves for sentence in curve.sentences()]

    def summary(self) -> list[str]:
        """Return the results, system by system."""
        return self.sentences()

    def to_dict(self) -> Any:
        """Return plain data, as `--json` prints it."""
        designs = [row for system in self.systems for row in system.frame.to_dict(orient="records")]
        if not self.curves:
            return designs
        rows = [row for curve in self.curves for row in curve.frame.to_dict(orient="records")]
        return {"designs": designs, "curves": rows, "sentences": self.sentences()}


@overload
def recipes() -> DesignSpace: ...


@overload
def recipes(
    *,
    resources: str,
    information: str | None = None,
    separation: str | None = None,
    flow: str | None = None,
    decide_s: float | None = None,
    react_s: float | None = None,
    age_s: float | None = None,
) -> Recommendation: ...


@overload
def recipes(
    *,
    measure: Literal[True],
    curves: bool = False,
    systems: str | Sequence[str] | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    draws: int = 0,
    out: str | Path | None = None,
    workers: int | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> Measured: ...


@verb
def recipes(
    *,
    resources: str | None = None,
    information: str | None = None,
    separation: str | None = None,
    flow: str | None = None,
    decide_s: float | None = None,
    react_s: float | None = None,
    age_s: float | None = None,
    measure: bool = False,
    curves: bool = False,
    systems: str | Sequence[str] | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    draws: int = 0,
    out: str | Path | None = None,
    workers: int | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> DesignSpace | Recommendation | Measured:
    """Recommend a coordination mechanism, or measure its value; without arguments, show the design space.

    Parameters
    ----------
    resources
        Overlap of the controlled devices: "disjoint", "partial" or "full".
    information
        Information that can be shared: "none", "incomplete" or "complete"; default: what `separation`
        allows.
    separation
        Reason for the split: "layering", "companies", "departments", "timescale", "granularity" or
        "line-rate"; default: unknown.
    flow
        Ways in which information can flow: "none", "one-way" or "two-way"; default: unknown.
    decide_s
        Time to compute a good decision, s; default: unknown.
    react_s
        Time within which events need a response, s; default: unknown.
    age_s
        Age of the information when it is used, s, for the measured example; default: `decide_s`.
    measure
        Measure the value of coordination in every system, in half a minute; default: false.
    curves
        Measure it also with older, noisier and coarser information; default: false.
    systems
        Names of the systems to measure; default: all.
    changes
        Of each system's scenario: {system: {dotted key: value}}; default: none.
    draws
        Seeds of each instance of a system's study, whose range is measured too; default: 0, its scenario
        alone.
    out
        Store of the measured runs, which are not repeated; default: a temporary one.
    workers
        Processes on this machine; default: as many as its cores allow.

    Returns
    -------
    DesignSpace, Recommendation or Measured
        All systems with the mechanisms that suit them; the mechanism for some constraints, with reasons; or
        the measured value of coordination.

    Raises
    ------
    InputError
        For an unknown word, or if no argument determines the information.
    """
    if measure or curves:
        names = [systems] if isinstance(systems, str) else systems
        store = None if out is None else Path(out)
        if curves:
            curves_found = measurement.curves(
                names, out=store, changes=changes, draws=draws, workers=workers, advance=advance
            )
            return Measured(
                systems=tuple(curve.measured for curve in curves_found), curves=tuple(curves_found)
            )
        measured = measurement.measure(
            names, out=store, changes=changes, draws=draws, workers=workers, advance=advance
        )
        return Measured(systems=tuple(measured))
    answers = (resources, information, separation, flow, decide_s, react_s, age_s)
    if all(answer is None for answer in answers):
        return design_space.review()
    if resources is None:
        raise InputError("resources: is missing; one of disjoint, partial, full")
    return design_space.recommend(
        resources=resources,
        information=information,
        separation=separation,
        flow=flow,
        decide_s=decide_s,
        react_s=react_s,
        age_s=age_s,
    )
