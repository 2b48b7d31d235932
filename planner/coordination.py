"""What coordination is worth: every system's designs on the same true problem, by what they tell each other.

Each system names a scenario whose designs go from no coordination to all information. Their
performance is told as the share of the way from no coordination (0) to the best that is proven
possible with all information (1), beside what it costs: money, time to answer, messages and bytes.
Curves say how that falls as what is told gets older, noisier or coarser.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.catalogue import find_system, system_names
from planner.errors import InputError, PlannerError, did_you_mean
from planner.grid import Grid, lay_out
from planner.parameters import parameters_of
from planner.record import column_of
from planner.report import amount, number
from planner.scenario import Scenario, load
from planner.sweeping import run_grid
from planner.system import Blur, Coordination, Metric, System

COLUMNS: Final = (
    "system", "design", "mechanism", "performance", "share", "cost", "answers_in_s", "messages", "bytes",
)  # fmt: skip
CURVE_COLUMNS: Final = (
    "system", "design", "mechanism", "kind", "parameter", "told", "value", "unit", "performance", "least",
    "most", "share", "seeds",
)  # fmt: skip
TOLERANCE: Final = 1e-6  # relative difference below which two designs are worth the same


class Stopped(PlannerError):
    """Measuring was interrupted before its end."""

    exit_code = 130


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The designs of one system, in the order of what they know.

    frame   system, design, mechanism, performance, share (0 no coordination, 1 the proven bound; less
            than 0 is worse than none), cost, answers_in_s, messages, bytes; None for unknown
    bound   the best performance that is proven possible, None where none is
    failed  designs of which nothing is known, and why
    """

    system: System
    frame: pd.DataFrame
    bound: float | None
    failed: Mapping[str, str]

    def sentences(self) -> list[str]:
        """What the figures say, also where a mechanism loses."""
        metric = self.system.metric(_coordination(self.system).performance)
        if not len(self.frame):
            return [f"{self.system.name}: no design has a plan"]
        rows = self.frame.to_dict(orient="records")
        name, first, found = self.system.name, rows[0], []
        if self.bound is not None and first["share"] is not None:
            best = max(rows, key=lambda row: row["share"])
            found.append(
                f"{name}: {best['design']} ({best['mechanism']}) goes {best['share']:.1%} of the way from "
                f"{first['design']} to the best {metric.name} that is possible"
            )
        found += [
            f"{name}: {row['design']} ({row['mechanism']}) is worse than no coordination: {metric.name} "
            f"{number(row['performance'])} against {number(first['performance'])}"
            for row in rows
            if row["share"] is not None and row["share"] < -1e-6
        ]
        found += [f"{name}: {design} is not known: {why}" for design, why in self.failed.items()]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """What the designs of one system are worth as what they are told gets worse.

    frame     system, design, mechanism, kind (age, noise or grain), parameter (of `sees`), told (whether
              the design has that parameter; where not, all values are alike), value, unit, performance
              (the median over seeds), least, most (over seeds), share (of the median, on the way from the
              first design to the bound that `measured` has), seeds (how many have a plan); None for unknown
    measured  the designs as they are with what their scenario lets them know
    failed    further runs of which nothing is known, and why
    """

    system: System
    frame: pd.DataFrame
    measured: Measured
    failed: Mapping[str, str]

    def sentences(self, kind: str | None = None) -> list[str]:
        """How good what is told must be, design by design; of one kind, or of all with what is missing."""
        asked = _coordination(self.system)
        better = self.system.metric(asked.performance).better
        found = []
        for blur in asked.blurs:
            rows = self.frame[self.frame["parameter"] == blur.parameter]
            if len(rows) and kind in (None, blur.kind):
                found += _said(self.system.name, blur, rows, better)
        return found if kind else found + self.trouble()

    def trouble(self) -> list[str]:
        """Runs of which nothing is known, and why."""
        return [f"{self.system.name}: {run} is not known: {why}" for run, why in self.failed.items()]


def measurable() -> list[str]:
    """The systems that can be measured."""
    return [name for name in system_names() if find_system(name).coordination is not None]


def measure(
    names: Sequence[str] | None = None,
    *,
    out: Path | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    workers: int | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> list[Measured]:
    """Run the scenarios of systems, and order what they are worth.

    names    of systems; default: all that can be measured
    out      a store that keeps the runs, and has some already; default: none is kept
    changes  of a system's scenario: dotted keys and values, such as a smaller problem
    advance  called with the numbers of runs done, of these failed, and in all, as they change
    raises   InputError for a system that is none, or cannot be measured; Stopped
    """
    asked = _asked(names, changes)
    runs = _run([lay_out([scenario], plans=False) for _, scenario in asked], out, workers, advance)
    return [_ordered(system, runs[runs["system"] == system.name]) for system, _ in asked]


def curves(
    names: Sequence[str] | None = None,
    *,
    out: Path | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    workers: int | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> list[Curves]:
    """Measure systems, and again with what is told at every age, noise and grain that they name.

    One thing gets worse at a time. Arguments are those of `measure`, and a store's runs serve both.
    """
    asked = _asked(names, changes)
    runs = _run([part for one in asked for part in _grids(*one)], out, workers, advance)
    return [_curved(system, runs[runs["system"] == system.name]) for system, _ in asked]


def shipped() -> tuple[pd.DataFrame, pd.DataFrame]:
    """What was measured for this release: designs (as `Measured.frame`) and curves (as `Curves.frame`).

    Both have a column `version`, of the planner that measured; None for unknown.
    """
    folder = files("planner_data") / "coordination"
    frames = []
    for name in ("designs", "curves"):
        with (folder / f"{name}.csv").open(encoding="utf-8") as file:
            # a mechanism may be "none"; only what is left empty is unknown
            frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
        frames.append(_plain(frame.assign(unit=frame["unit"].fillna("")) if "unit" in frame else frame))
    return frames[0], frames[1]


# --- runs ---------------------------------------------------------------------------------


def _coordination(system: System) -> Coordination:
    assert system.coordination is not None
    return system.coordination


def _asked(
    names: Sequence[str] | None, changes: Mapping[str, Mapping[str, Any]] | None
) -> list[tuple[System, Scenario]]:
    """The systems and their scenarios; InputError with every fault."""
    systems, faults = [], []
    for name in dict.fromkeys(names or measurable()):
        if name in system_names() and (system := find_system(name)).coordination is not None:
            systems.append(system)
        else:
            faults.append(f"{name}: cannot be measured" + did_you_mean(name, measurable()))
    if faults:
        raise InputError(*faults)
    return [
        (system, load(_coordination(system).scenario, changes=(changes or {}).get(system.name)))
        for system in systems
    ]


def _grids(system: System, scenario: Scenario) -> Iterator[Grid]:
    """The scenario as it is; then each design that is told something, with that one thing worse."""
    yield lay_out([scenario], plans=False)
    for blur in _coordination(system).blurs:
        truth, *worse = (int(value) if float(value).is_integer() else value for value in blur.values)
        for entry in scenario.designs:
            if blur.parameter in parameters_of(entry.design.sees):
                key = f"designs.{entry.label}.sees.{blur.parameter}"
                yield lay_out([scenario], axes={key: [truth]}, designs=[entry.label], plans=False)
                axes: dict[str, list[Any]] = {key: worse}
                if blur.seeds > 1:
                    axes[f"designs.{entry.label}.sees.seed"] = list(range(blur.seeds))
                yield lay_out([scenario], axes=axes, designs=[entry.label], plans=False)


def _run(
    grids: Sequence[Grid],
    out: Path | None,
    workers: int | None,
    advance: Callable[[int, int, int], None] | None,
) -> pd.DataFrame:
    """The runs of all grids in one sweep, kept in `out` or nowhere."""
    axes = dict.fromkeys(axis for grid in grids for axis in grid.axes)
    whole = Grid(axes=tuple(axes), points=tuple(point for grid in grids for point in grid.points))
    with contextlib.ExitStack() as stack:
        store = out or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "store"
        done = run_grid(whole, store, workers=workers, advance=advance)
        if done.interrupted:
            kept = f"; what is done is in {out}, the same command goes on" if out else ""
            raise Stopped(f"stopped before the end{kept}")
        return done.runs


# --- shares -------------------------------------------------------------------------------


def _ordered(system: System, runs: pd.DataFrame) -> Measured:
    """The runs of a system as shares of the way to its bound."""
    asked = _coordination(system)
    metric = system.metric(asked.performance)
    worth = column_of(metric.name)
    bound = _bound(runs, metric.name, metric.better)
    start = _known(runs.iloc[0], worth) if len(runs) else None
    rows, failed = [], {}
    for _, run in runs.iterrows():
        value = _known(run, worth)
        if run["exit_code"] != 0 or value is None:
            failed[str(run["label"])] = _why(run, metric)
            continue
        answers = _known(run, column_of(asked.responsiveness) if asked.responsiveness else "seconds")
        if asked.responsiveness is not None and system.metric(asked.responsiveness).unit == "ms":
            answers = None if answers is None else answers / 1000
        rows.append(
            {
                "system": system.name,
                "design": run["label"],
                "mechanism": run["mechanism"],
                "performance": value,
                "share": _share(value, start, bound),
                "cost": _known(run, column_of(asked.cost)) if asked.cost else None,
                "answers_in_s": answers,
                "messages": _known(run, "messages"),
                "bytes": _known(run, "exchanged_bytes"),
            }
        )
    frame = _plain(pd.DataFrame(rows, columns=list(COLUMNS)))
    return Measured(system=system, frame=frame, bound=bound, failed=failed)


def _why(run: Any, metric: Metric) -> str:
    """Why a run tells no performance."""
    if run["exit_code"] == 0:
        return f"its plan has no {metric.name}"
    return str(run["message"] or run["status"])


def _bound(runs: pd.DataFrame, name: str, better: str) -> float | None:
    """The tightest bound that a design with all information proves for all plans."""
    if "bound" not in runs or "objective_metric" not in runs:
        return None
    # a store tells truth in words
    whole = runs["omniscient"].isin([True, "true"]) & (runs["objective_metric"] == name)
    if "bound_within" in runs:
        whole &= runs["bound_within"].isna()
    bounds = runs.loc[whole, "bound"].dropna().astype(float)
    if not len(bounds):
        return None
    return float(bounds.min() if better == "more" else bounds.max())


def _share(value: float, start: float | None, bound: float | None) -> float | None:
    if start is None or bound is None or abs(bound - start) <= 1e-9 * max(abs(bound), abs(start)):
        return None
    return (value - start) / (bound - start) + 0.0  # no -0


def _known(run: Any, name: str) -> float | None:
    value = run.get(name)
    return None if value is None or pd.isna(value) else float(value)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """None for unknown, in columns of any type."""
    frame = frame.astype(object)
    return frame.where(frame.notna(), None)


# --- curves -------------------------------------------------------------------------------


def _curved(system: System, runs: pd.DataFrame) -> Curves:
    """The runs of a system, with the axes of `_grids`, as curves."""
    axes = [str(name) for name in runs if str(name).startswith("designs.")]
    plain = runs[runs[axes].isna().all(axis=1)]
    measured = _ordered(system, plain)
    metric = system.metric(_coordination(system).performance)
    bound = _bound(runs, metric.name, metric.better)
    sharp = {row["design"]: row for row in measured.frame.to_dict(orient="records")}
    start = sharp.get(plain["label"].iloc[0], {}).get("performance") if len(plain) else None
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    for blur in _coordination(system).blurs:
        for label in dict.fromkeys(plain["label"]):
            key = f"designs.{label}.sees.{blur.parameter}"
            mechanism = plain.loc[plain["label"] == label, "mechanism"].iloc[0]
            its = runs[runs["label"] == label]
            for value in blur.values:
                here = its[np.isclose(its[key].astype(float), value)] if key in axes else its[:0]
                values = [sharp[label]["performance"]] if key not in axes and label in sharp else []
                for _, run in here.iterrows():
                    found = _known(run, column_of(metric.name))
                    if run["exit_code"] == 0 and found is not None:
                        values.append(found)
                    elif label not in measured.failed:
                        failed[f"{label} at {_named(blur, value)}"] = _why(run, metric)
                middle = float(np.median(values)) if values else None
                rows.append(
                    {
                        "system": system.name,
                        "design": label,
                        "mechanism": mechanism,
                        "kind": blur.kind,
                        "parameter": blur.parameter,
                        "told": key in axes,
                        "value": float(value),
                        "unit": blur.unit,
                        "performance": middle,
                        "least": min(values, default=None),
                        "most": max(values, default=None),
                        "share": None if middle is None else _share(middle, start, bound),
                        "seeds": len(values),
                    }
                )
    frame = _plain(pd.DataFrame(rows, columns=list(CURVE_COLUMNS)))
    return Curves(system=system, frame=frame, measured=measured, failed=failed)


def _named(blur: Blur, value: float) -> str:
    """`noise 0.5`, `age 5 min`."""
    return f"{blur.kind} {amount(value, blur.unit)}"


def _said(name: str, blur: Blur, rows: pd.DataFrame, better: str) -> list[str]:
    """To which value each design keeps its lead, over the first and over those that know less."""
    sign = 1.0 if better == "more" else -1.0
    designs = list(dict.fromkeys(rows["design"]))
    mechanism = dict(zip(rows["design"], rows["mechanism"], strict=True))
    flat = set(rows.loc[~rows["told"].astype(bool), "design"])
    worth = pd.DataFrame(
        [
            sign * rows.loc[rows["design"] == design, "performance"].astype(float).to_numpy()
            for design in designs
        ],
        index=designs,
        columns=list(blur.values),
    )
    found = []
    for place, design in enumerate(designs[1:], start=1):
        if design in flat:
            continue
        # who knows less, and who is not told this at all; but not those who would know all
        rivals = [
            other
            for at, other in enumerate(designs)
            if at < place or (at > place and other in flat and mechanism[other] != "transparency")
        ]
        first, all_ = (_lead(worth, design, some, blur) for some in (rivals[:1], rivals))
        text = f"{name}: {design} ({mechanism[design]}) is "
        if len(rivals) > 1 and all_.lost == first.lost:
            text += _told(all_, f"{rivals[0]} and all others that know less", blur)
        else:
            text += _told(first, rivals[0], blur)
            if all_.lost != first.lost:
                text += f"; {_told(all_, 'all others that know less', blur)}"
        found.append(text)
    unmoved = [design for design in designs[1:] if design in flat]
    if unmoved:
        found.append(f"{name}: {blur.kind} changes nothing for {', '.join(unmoved)}")
    return found


@dataclass(frozen=True, kw_only=True)
class _Lead:
    """How long a design is better than the best of others, from the truth on.

    values  at which both are known
    lost    place of the first at which it is not better; None: at all it is
    to      who is no worse there
    """

    values: Sequence[float]
    lost: int | None
    to: str


def _lead(worth: pd.DataFrame, design: str, rivals: Sequence[str], blur: Blur) -> _Lead:
    known = worth.loc[:, worth.loc[design].notna() & worth.loc[list(rivals)].notna().any()]
    values = [value for value in blur.values if value in known]
    others = known.loc[list(rivals)]
    for place, value in enumerate(values):
        here, best = float(known[value][design]), float(others[value].max())
        if here - best <= TOLERANCE * abs(best):
            return _Lead(values=values, lost=place, to=str(others[value].idxmax()))
    return _Lead(values=values, lost=None, to="")


def _told(lead: _Lead, whom: str, blur: Blur) -> str:
    if not lead.values:
        return f"not known beside {whom} at any {blur.kind}"
    if lead.lost is None:
        return f"better than {whom} at every {blur.kind} tried, to {amount(lead.values[-1], blur.unit)}"
    at = amount(lead.values[lead.lost], blur.unit)
    if lead.lost == 0:
        return f"no better than {lead.to} at {blur.kind} {at}"
    if lead.lost == 1:
        return f"better than {whom} when told the truth, but at {blur.kind} {at} {lead.to} is no worse"
    return (
        f"better than {whom} to {_named(blur, lead.values[lead.lost - 1])}, but at {at} {lead.to} is no worse"
    )
