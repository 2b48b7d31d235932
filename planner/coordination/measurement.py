"""Value of coordination: the performance of every system's designs on the same true problem.

Each system names a scenario with designs from no coordination to all information. Performance is stated as
a share of the possible gain: 0 for the first design, without coordination, and 1 for the proven bound with
all information. It is compared with cost: money, response time, messages and bytes. Curves show how
performance falls with the age, noise and granularity of information. One problem proves little: draws repeat
the comparison on other instances, each with several seeds, and give every share a range.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.degradation import Degradation
from planner.contract.metrics import Metric
from planner.contract.parameters import parameters_of
from planner.contract.studies import Coordination
from planner.contract.system import System
from planner.errors import InputError, PlannerError, did_you_mean
from planner.formatting import amount
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Scenario, load
from planner.store.record import column_of
from planner.sweeps.grid import Grid, lay_out
from planner.sweeps.sweep import run_grid

COLUMNS: Final = (
    "system", "design", "mechanism", "performance", "share", "share_low", "share_high", "draws",
    "cost", "answers_in_s", "messages", "bytes", "bound",
)  # fmt: skip
CURVE_COLUMNS: Final = (
    "system", "design", "mechanism", "kind", "parameter", "has_parameter", "value", "unit",
    "performance", "least", "most", "seeds", "share", "share_low", "share_high", "draws",
)  # fmt: skip
TOLERANCE: Final = 1e-6  # relative difference below which two designs perform equally


class Stopped(PlannerError):
    """Measuring was interrupted before its end."""

    exit_code = 130


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Measured designs of one system, in the order of the information they have.

    frame   system, design, mechanism, performance, share (of the possible gain: 0 no coordination, 1 the
            proven bound, negative worse than no coordination), cost, answers_in_s (response time, without
            compiling), messages, bytes, bound; None for unknown. With draws the share is their median, with
            share_low and share_high their range; all other columns are of the scenario itself
    bound   proven bound on performance, None where none is proven
    failed  designs without a result, with the reason
    """

    system: System
    frame: pd.DataFrame
    bound: float | None
    failed: Mapping[str, str]

    @property
    def name(self) -> str:
        """The system as the frame names it."""
        return _named_system(self.system, self.frame)

    def titled(self) -> Measurement:
        """Return the measurement with titles of its system and designs, for people to read."""
        title = load(_coordination(self.system).scenario).design_title
        failed = {title(design): reason for design, reason in self.failed.items()}
        return replace(self, frame=_in_titles(self.system, self.frame), failed=failed)

    def sentences(self) -> list[str]:
        """Return sentences about the best design, and about designs that are worse than no coordination."""
        metric = self.system.metric(_coordination(self.system).performance)
        if not len(self.frame):
            return [f"{self.name}: no design has a plan"]
        rows = self.frame.to_dict(orient="records")
        name, first, sentences = self.name, rows[0], []
        what = metric.words
        if self.bound is not None and first["share"] is not None:
            best = max(rows, key=lambda row: row["share"])
            sentences.append(
                f"{name}: {best['design']} ({best['mechanism']}) achieves {best['share']:.1%}"
                f"{describe_range(best)} of the possible gain in {what} over {first['design']}"
            )
        elif self.bound is None:
            sentences.append(f"{name}: no bound on {what} is proven, so shares of a gain are unknown")
        sentences += [
            f"{name}: {row['design']} ({row['mechanism']}) is worse than no coordination"
            + _describe_loss(row, first, metric)
            for row in rows
            if row["share"] is not None and row["share"] < -1e-6
        ]
        sentences += [f"{name}: {design} has no result: {reason}" for design, reason in self.failed.items()]
        return sentences


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """Performance of one system's designs with degraded information.

    frame     system, design, mechanism, kind (age, noise or granularity), parameter (of `information`),
              has_parameter (whether the design has it; if not, its performance is constant), value, unit,
              performance (median over seeds), least, most (over seeds), seeds (number of seeds with a
              plan), share (as in `measured`: of the median; with draws their median), share_low,
              share_high, draws (range of the share over so many seeds or draws); None for unknown
    measured  the designs with the information of their scenario
    failed    further runs without a result, with the reason
    """

    system: System
    frame: pd.DataFrame
    measured: Measurement
    failed: Mapping[str, str]

    @property
    def name(self) -> str:
        """The system as the frame names it."""
        return _named_system(self.system, self.frame)

    def titled(self) -> Curves:
        """Return the curves with titles of their system and designs, for people to read."""
        return replace(self, frame=_in_titles(self.system, self.frame), measured=self.measured.titled())

    def sentences(self, kind: str | None = None) -> list[str]:
        """Return sentences about each design with degraded information.

        kind  of degradation; default: all, and the runs without a result
        """
        study = _coordination(self.system)
        better = self.system.metric(study.performance).better
        sentences = []
        for degradation in study.degradations:
            rows = self.frame[self.frame["parameter"] == degradation.parameter]
            if len(rows) and kind in (None, degradation.kind):
                sentences += _describe_curves(self.name, degradation, rows, better)
        return sentences if kind else sentences + self.failures()

    def failures(self) -> list[str]:
        """Return a sentence for each run without a result."""
        return [f"{self.name}: {run} has no result: {reason}" for run, reason in self.failed.items()]


def _describe_loss(row: Mapping[Any, Any], first: Mapping[Any, Any], metric: Metric) -> str:
    """Return the loss of a design against the first design: in the draws, else in the scenario."""
    if row["draws"] > 1:
        return (
            f" in the median of {row['draws']} draws: {row['share']:.0%} of the possible gain in "
            f"{metric.words} ({row['share_low']:.0%} to {row['share_high']:.0%})"
        )
    return f": {metric.words} {metric.text(row['performance'])} against {metric.text(first['performance'])}"


def _named_system(system: System, frame: pd.DataFrame) -> str:
    return str(frame["system"].iloc[0]) if len(frame) else system.name


def _in_titles(system: System, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the titles of its system and designs in place of their names."""
    title = load(_coordination(system).scenario).design_title
    return frame.assign(system=system.label, design=[title(str(name)) for name in frame["design"]])


def measurable_systems() -> list[str]:
    """Return the names of the systems that can be measured."""
    return [name for name in system_names() if find_system(name).studies.coordination is not None]


def measure(
    names: Sequence[str] | None = None,
    *,
    out: Path | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    draws: int = 0,
    workers: int | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> list[Measurement]:
    """Run the coordination scenarios of systems, and return the performance of their designs.

    names    of systems; default: all that can be measured
    out      store of the runs, which are not repeated; default: a temporary one
    changes  of each system's scenario: dotted keys and values, such as a smaller problem
    draws    seeds of each instance of a system's study; 0: the scenario alone
    advance  called with the numbers of finished, failed and all runs
    raises   InputError for a system that is unknown or cannot be measured; Stopped
    """
    asked = _load_scenarios(names, changes)
    grids = [grid for system, scenario in asked for grid in _plain_grids(system, scenario, draws)]
    runs = _run(grids, out, workers, advance)
    return [
        _measure_designs(system, runs[runs["system"] == system.name], _draw_keys(system, draws))
        for system, _ in asked
    ]


def curves(
    names: Sequence[str] | None = None,
    *,
    out: Path | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    draws: int = 0,
    workers: int | None = None,
    advance: Callable[[int, int, int], None] | None = None,
) -> list[Curves]:
    """Measure systems with exact information, and with every age, noise and granularity that they declare.

    One kind of degradation is applied at a time. Arguments are those of `measure`; both can share a store.
    """
    asked = _load_scenarios(names, changes)
    grids = [grid for system, scenario in asked for grid in _grids(system, scenario, draws)]
    runs = _run(grids, out, workers, advance)
    return [
        _measure_curves(system, runs[runs["system"] == system.name], _draw_keys(system, draws))
        for system, _ in asked
    ]


def load_release() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the released measurements: designs (as `Measurement.frame`) and curves (as `Curves.frame`).

    Both have a column `version`, the version of planner that measured; None for unknown.
    """
    folder = files("planner_data") / "coordination"
    frames = []
    for name in ("designs", "curves"):
        with (folder / f"{name}.csv").open(encoding="utf-8") as file:
            # a mechanism may be "none"; only empty cells are unknown
            frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
        frames.append(
            _replace_missing(frame.assign(unit=frame["unit"].fillna("")) if "unit" in frame else frame)
        )
    return frames[0], frames[1]


# --- runs ---------------------------------------------------------------------------------


def _coordination(system: System) -> Coordination:
    assert system.studies.coordination is not None
    return system.studies.coordination


def _load_scenarios(
    names: Sequence[str] | None, changes: Mapping[str, Mapping[str, Any]] | None
) -> list[tuple[System, Scenario]]:
    """Return the systems with their scenarios; raise InputError with every fault."""
    systems, faults = [], []
    for name in dict.fromkeys(names or measurable_systems()):
        if name in system_names() and (system := find_system(name)).studies.coordination is not None:
            systems.append(system)
        else:
            faults.append(f"{name}: cannot be measured" + did_you_mean(name, measurable_systems()))
    if faults:
        raise InputError(*faults)
    return [
        (system, load(_coordination(system).scenario, changes=(changes or {}).get(system.name)))
        for system in systems
    ]


def _draw_keys(system: System, draws: int) -> tuple[str, ...]:
    """Return the keys that differ between the draws of a system; none without draws."""
    keys = [key for axes in _draw_axes(system, draws) for key in axes]
    return tuple(dict.fromkeys(keys))


def _draw_axes(system: System, draws: int) -> Iterator[dict[str, list[Any]]]:
    """Yield the axes of each instance of a system's study: its changes, and the seeds of the problem."""
    study = _coordination(system)
    for instance in ({}, *study.instances) if draws else ():
        seeds: list[Any] = list(range(1, draws + 1))
        yield {**{key: [value] for key, value in instance.items()}, study.seed_key: seeds}


def _plain_grids(system: System, scenario: Scenario, draws: int) -> Iterator[Grid]:
    """Yield the scenario itself, then its draws, with the information of the scenario."""
    yield lay_out([scenario], plans=False)
    for axes in _draw_axes(system, draws):
        yield lay_out([scenario], axes=axes, plans=False)


def _grids(system: System, scenario: Scenario, draws: int = 0) -> Iterator[Grid]:
    """Yield the plain grids, then each design with each value of each information parameter.

    The information of a draw has the seed of its problem.
    """
    yield from _plain_grids(system, scenario, draws)
    for degradation in _coordination(system).degradations:
        for entry in scenario.designs:
            if degradation.parameter in parameters_of(entry.design.observe):
                for axes, zipped in _information_axes(system, degradation, entry.label, draws):
                    yield lay_out([scenario], axes=axes, designs=[entry.label], zipped=zipped, plans=False)


def _information_axes(
    system: System, degradation: Degradation, label: str, draws: int
) -> Iterator[tuple[dict[str, list[Any]], bool]]:
    """Yield the axes of exact, of degraded and of drawn information; and whether they go in parallel."""
    exact, *degraded = (int(value) if float(value).is_integer() else value for value in degradation.values)
    key = f"designs.{label}.information.{degradation.parameter}"
    information_seed = f"designs.{label}.information.seed"
    yield {key: [exact]}, False
    axes: dict[str, list[Any]] = {key: degraded}
    if degradation.seeds > 1:
        axes[information_seed] = list(range(degradation.seeds))
    yield axes, False
    for drawn in _draw_axes(system, draws):
        seed_key = _coordination(system).seed_key
        pairs = list(itertools.product(degraded, drawn[seed_key]))
        axes = {**drawn, seed_key: [seed for _, seed in pairs], key: [value for value, _ in pairs]}
        if degradation.seeds > 1:
            axes[information_seed] = axes[seed_key]
        yield axes, True


def _run(
    grids: Sequence[Grid],
    out: Path | None,
    workers: int | None,
    advance: Callable[[int, int, int], None] | None,
) -> pd.DataFrame:
    """Run all grids in one sweep, stored in `out` or a temporary folder; return the runs."""
    axes = dict.fromkeys(axis for grid in grids for axis in grid.axes)
    merged = Grid(axes=tuple(axes), points=tuple(point for grid in grids for point in grid.points))
    with contextlib.ExitStack() as stack:
        store = out or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "store"
        sweep_result = run_grid(merged, store, workers=workers, advance=advance)
        if sweep_result.interrupted:
            hint = f"; finished runs are in {out}, the same command goes on" if out else ""
            raise Stopped(f"interrupted before the end{hint}")
        return sweep_result.runs


# --- shares -------------------------------------------------------------------------------


def _measure_designs(system: System, runs: pd.DataFrame, draw_keys: Sequence[str] = ()) -> Measurement:
    """Return the performance of a system's runs, with shares of the possible gain and their range.

    draw_keys  columns that are unknown in runs of the scenario itself, and known in those of draws
    """
    study = _coordination(system)
    metric = system.metric(study.performance)
    performance = column_of(metric.name)
    runs, drawn = _split_draws(runs, draw_keys)
    shares = _shares_of_draws(drawn, _scales_of_draws(drawn, metric, study.bound_scope), metric)
    bound = _find_bound(runs, metric, study.bound_scope)
    start = _read_figure(runs.iloc[0], performance) if len(runs) else None
    rows, failed = [], {}
    for _, run in runs.iterrows():
        value = _read_figure(run, performance)
        if run["status"] == "bound only" and run["exit_code"] == 0:  # all that its design does
            continue
        if run["exit_code"] != 0 or value is None:
            failed[str(run["label"])] = _failure_reason(run, metric)
            continue
        of_draws = shares[shares["label"] == run["label"]]["share"].dropna()
        rows.append(
            {
                "system": system.name,
                "design": run["label"],
                "mechanism": run["mechanism"],
                "performance": value,
                **_share_range(of_draws, _share(value, start, bound)),
                "cost": _read_figure(run, column_of(study.cost)) if study.cost else None,
                "answers_in_s": _response_s(system, run),
                "messages": _read_figure(run, "messages"),
                "bytes": _read_figure(run, "signalling_bytes"),
                "bound": bound,
            }
        )
    failed |= _failures_of_draws(drawn, metric)
    frame = _replace_missing(pd.DataFrame(rows, columns=list(COLUMNS)))
    return Measurement(system=system, frame=frame, bound=bound, failed=failed)


def _share_range(of_draws: pd.Series, share: float | None) -> dict[str, float | None]:
    """Return the median and the range of the share over draws; without any, the share of the scenario."""
    if not len(of_draws):
        return {"share": share, "share_low": None, "share_high": None, "draws": 1}
    return {
        "share": float(of_draws.median()),
        "share_low": float(of_draws.min()),
        "share_high": float(of_draws.max()),
        "draws": len(of_draws),
    }


def _response_s(system: System, run: Any) -> float | None:
    """Return the time in which a run's design responds, s: the metric of the study, or its solution time."""
    responsiveness = _coordination(system).responsiveness
    if responsiveness is None:
        return _read_figure(run, "seconds")
    response = _read_figure(run, column_of(responsiveness))
    is_ms = system.metric(responsiveness).unit == "ms"
    return response / 1000 if is_ms and response is not None else response


def _split_draws(runs: pd.DataFrame, keys: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs of the scenario itself, and those of draws with a column `draw` that names each."""
    if not keys:
        return runs, runs.iloc[:0].assign(draw="")
    drawn = runs[runs[list(keys)].notna().any(axis=1)]
    columns = {key.removeprefix("problem."): drawn[key] for key in keys}
    names = [
        ", ".join(f"{name} {row[name]}" for name in columns if pd.notna(row[name]))
        for row in pd.DataFrame(columns).to_dict(orient="records")
    ]
    own, drawn = runs.drop(index=drawn.index), drawn.assign(draw=pd.array(names, dtype=object))
    if "digest" in drawn:  # a problem that the seed does not change is one draw
        drawn = drawn.drop_duplicates("digest")
    return own, drawn


def _scales_of_draws(
    drawn: pd.DataFrame, metric: Metric, bound_scope: str | None
) -> dict[str, tuple[float | None, float | None]]:
    """Return the performance of the first design and the bound of each draw."""
    performance = column_of(metric.name)
    return {
        str(name): (_read_figure(runs.iloc[0], performance), _find_bound(runs, metric, bound_scope))
        for name, runs in drawn.groupby("draw", sort=False)
    }


def _shares_of_draws(
    drawn: pd.DataFrame, scales: Mapping[str, tuple[float | None, float | None]], metric: Metric
) -> pd.DataFrame:
    """Return the runs of draws with a column `share`, on the scale of the draw; None without a plan."""
    values = [
        None if run["exit_code"] != 0 else _read_figure(run, column_of(metric.name))
        for _, run in drawn.iterrows()
    ]
    shares = [
        None if value is None else _share(value, *scales[str(name)])
        for value, name in zip(values, drawn["draw"], strict=True)
    ]
    return drawn.assign(share=pd.array(shares, dtype="Float64"))


def _failures_of_draws(drawn: pd.DataFrame, metric: Metric) -> dict[str, str]:
    """Return the designs that have no result in some draws, with the last reason."""
    return {
        f"{run['label']} ({run['draw']})": _failure_reason(run, metric)
        for _, run in drawn.iterrows()
        if (run["exit_code"] != 0 or _read_figure(run, column_of(metric.name)) is None)
        and not (run["status"] == "bound only" and run["exit_code"] == 0)
    }


def describe_range(row: Mapping[Any, Any]) -> str:
    """Return the range of a share over draws, such as ` (40% to 60% in 30 draws)`; "" for one draw."""
    if row["draws"] < 2 or row["share_low"] is None:
        return ""
    return f" ({row['share_low']:.0%} to {row['share_high']:.0%} in {row['draws']} draws)"


def _failure_reason(run: Any, metric: Metric) -> str:
    """Return the reason why a run has no performance."""
    if run["exit_code"] == 0:
        return f"its plan has no {metric.words}"
    return str(run["message"] or run["status"])


def _find_bound(runs: pd.DataFrame, metric: Metric, bound_scope: str | None) -> float | None:
    """Return the tightest bound that a design with all information proves.

    bound_scope  the plans that a bound may be limited to; None: only bounds for all plans count
    """
    if "bound" not in runs or "objective_metric" not in runs:
        return None
    # a store has truth values as text
    valid = runs["omniscient"].isin([True, "true"]) & (runs["objective_metric"] == metric.name)
    if "bound_scope" in runs:
        valid &= runs["bound_scope"].isna() | (runs["bound_scope"] == bound_scope)
    bounds = runs.loc[valid, "bound"].dropna().astype(float)
    if not len(bounds):
        return None
    return float(bounds.min() if metric.better == "more" else bounds.max())


def _share(value: float, start: float | None, bound: float | None) -> float | None:
    if start is None or bound is None or abs(bound - start) <= 1e-9 * max(abs(bound), abs(start)):
        return None
    return (value - start) / (bound - start) + 0.0  # no -0


def _read_figure(run: Any, name: str) -> float | None:
    value = run.get(name)
    return None if value is None or pd.isna(value) else float(value)


def _replace_missing(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with None for unknown, in columns of any type."""
    frame = frame.astype(object)
    return frame.where(frame.notna(), None)


# --- curves -------------------------------------------------------------------------------


def _measure_curves(system: System, runs: pd.DataFrame, draw_keys: Sequence[str] = ()) -> Curves:
    """Return the curves of a system from its runs over the axes of `_grids`."""
    axes = [str(name) for name in runs if str(name).startswith("designs.")]
    plain = runs[runs[axes].isna().all(axis=1)]
    measured = _measure_designs(system, plain, draw_keys)
    study = _coordination(system)
    metric = system.metric(study.performance)
    plain, drawn_plain = _split_draws(plain, draw_keys)
    scales = _scales_of_draws(drawn_plain, metric, study.bound_scope)
    runs, drawn = _split_draws(runs, draw_keys)
    shares = _shares_of_draws(drawn, scales, metric)
    bound = _find_bound(runs, metric, study.bound_scope)
    exact = {row["design"]: row for row in measured.frame.to_dict(orient="records")}
    start = exact.get(plain["label"].iloc[0], {}).get("performance") if len(plain) else None
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    labels = dict.fromkeys(plain["label"])
    for degradation, label in itertools.product(study.degradations, labels):
        key = f"designs.{label}.information.{degradation.parameter}"
        mechanism = plain.loc[plain["label"] == label, "mechanism"].iloc[0]
        of_design = runs[runs["label"] == label]
        for value in degradation.values:
            if key in axes:
                degraded = of_design[np.isclose(of_design[key].astype(float), value)]
                values, reason = _read_values(degraded, metric)
                if reason is not None and label not in measured.failed:
                    failed[f"{label} at {_name_value(degradation, value)}"] = reason
            else:
                values = [exact[label]["performance"]] if label in exact else []
            of_draws = _shares_at(shares[shares["label"] == label], key, float(value), axes)
            rows.append(
                {
                    "system": system.name,
                    "design": label,
                    "mechanism": mechanism,
                    "kind": degradation.kind,
                    "parameter": degradation.parameter,
                    "has_parameter": key in axes,
                    "value": float(value),
                    "unit": degradation.unit,
                    **_summarize_values(values, start, bound, of_draws),
                }
            )
    frame = _replace_missing(pd.DataFrame(rows, columns=list(CURVE_COLUMNS)))
    return Curves(system=system, frame=frame, measured=measured, failed=failed)


def _summarize_values(
    values: Sequence[float], start: float | None, bound: float | None, of_draws: Sequence[float]
) -> dict[str, float | int | None]:
    """Return the median performance of runs, its range and share, and their numbers, by column.

    of_draws  shares of draws, which replace those of the runs; empty without draws
    """
    median = float(np.median(values)) if values else None
    ends = [_share(end, start, bound) for end in (min(values), max(values))] if values else []
    shares = of_draws or [end for end in ends if end is not None]
    share = None if median is None else _share(median, start, bound)
    return {
        "performance": median,
        "least": min(values, default=None),
        "most": max(values, default=None),
        "seeds": len(values),
        "share": float(np.median(of_draws)) if of_draws else share,
        "share_low": min(shares, default=None),
        "share_high": max(shares, default=None),
        "draws": len(of_draws) or len(values),
    }


def _shares_at(shares: pd.DataFrame, key: str, value: float, axes: Sequence[str]) -> list[float]:
    """Return the shares of a design's draws at a value of its information, the plain ones without the key."""
    if key not in axes or value == 0:
        shares = shares[shares[list(axes)].isna().all(axis=1)]
    else:
        shares = shares[np.isclose(shares[key].astype(float), value)]
    return shares["share"].dropna().astype(float).tolist()


def _read_values(runs: pd.DataFrame, metric: Metric) -> tuple[list[float], str | None]:
    """Return the performance of each run that has one, and the last reason of those that have none."""
    values: list[float] = []
    reason = None
    for _, run in runs.iterrows():
        figure = _read_figure(run, column_of(metric.name))
        if run["exit_code"] == 0 and figure is not None:
            values.append(figure)
        else:
            reason = _failure_reason(run, metric)
    return values, reason


def _name_value(degradation: Degradation, value: float) -> str:
    """Return a value with its kind, such as `noise 0.5` or `age 5 min`."""
    return f"{degradation.kind} {amount(value, degradation.unit)}"


def _describe_curves(name: str, degradation: Degradation, rows: pd.DataFrame, better: str) -> list[str]:
    """Return, for each design, up to which value it is better than designs with less information."""
    designs = list(dict.fromkeys(rows["design"]))
    mechanism = dict(zip(rows["design"], rows["mechanism"], strict=True))
    constant = set(rows.loc[~rows["has_parameter"].astype(bool), "design"])
    performance = _tabulate_performance(rows, designs, degradation, better)
    # designs without this parameter compete too, except those with all information
    everywhere = [design for design in designs if design in constant and mechanism[design] != "transparency"]
    sentences = []
    for index, design in enumerate(designs[1:], start=1):
        if design not in constant:
            rivals = [*designs[:index], *(other for other in designs[index + 1 :] if other in everywhere)]
            lead = _compare_with_rivals(performance, design, rivals, degradation)
            spread = _describe_last(rows[rows["design"] == design], degradation)
            sentences.append(f"{name}: {design} ({mechanism[design]}) is {lead}{spread}")
    unaffected = [design for design in designs[1:] if design in constant]
    if unaffected:
        sentences.append(f"{name}: {degradation.kind} has no effect on {', '.join(unaffected)}")
    return sentences


def _tabulate_performance(
    rows: pd.DataFrame, designs: Sequence[str], degradation: Degradation, better: str
) -> pd.DataFrame:
    """Return the share, or else the performance, by design and value of the parameter; larger is better."""
    column = "share" if rows["share"].notna().any() else "performance"
    sign = 1.0 if column == "share" or better == "more" else -1.0
    return pd.DataFrame(
        [sign * rows.loc[rows["design"] == design, column].astype(float).to_numpy() for design in designs],
        index=list(designs),
        columns=list(degradation.values),
    )


def _describe_last(rows: pd.DataFrame, degradation: Degradation) -> str:
    """Return the share at the last value with a result, with its range; "" for a single draw."""
    known = rows[rows["share"].notna()].to_dict(orient="records")
    if not known or not describe_range(known[-1]):
        return ""
    last = known[-1]
    when = _name_value(degradation, last["value"])
    return f"; at {when} it achieves {last['share']:.0%}{describe_range(last)} of the possible gain"


def _compare_with_rivals(
    performance: pd.DataFrame, design: str, rivals: Sequence[str], degradation: Degradation
) -> str:
    """Return the range in which a design is better than its first rival, and than all if that differs."""
    first, overall = (_find_lead(performance, design, some, degradation) for some in (rivals[:1], rivals))
    if len(rivals) > 1 and overall.loss == first.loss:
        return _describe_lead(overall, f"{rivals[0]} and all others with less information", degradation)
    text = _describe_lead(first, rivals[0], degradation)
    if overall.loss == first.loss:
        return text
    return f"{text}; {_describe_lead(overall, 'all others with less information', degradation)}"


@dataclass(frozen=True, kw_only=True)
class _Lead:
    """Range of values over which a design is better than the best of its rivals.

    values  values at which both performances are known
    loss    position of the first value at which the design is not better; None: better at all values
    winner  the rival that is as good or better there
    """

    values: Sequence[float]
    loss: int | None
    winner: str


def _find_lead(
    performance: pd.DataFrame, design: str, rivals: Sequence[str], degradation: Degradation
) -> _Lead:
    both = performance.loc[design].notna() & performance.loc[list(rivals)].notna().any()
    values = [value for value in degradation.values if both[value]]
    others = performance.loc[list(rivals)]
    for index, value in enumerate(values):
        best = float(others[value].max())
        if float(performance[value][design]) - best <= TOLERANCE * abs(best):
            return _Lead(values=values, loss=index, winner=str(others[value].idxmax()))
    return _Lead(values=values, loss=None, winner="")


def _describe_lead(lead: _Lead, rivals: str, degradation: Degradation) -> str:
    if not lead.values:
        return f"not comparable with {rivals} at any {degradation.kind}"
    if lead.loss is None:
        last = amount(lead.values[-1], degradation.unit)
        return f"better than {rivals} at every {degradation.kind} tried, up to {last}"
    value_name = _name_value(degradation, lead.values[lead.loss])
    if lead.loss == 0:
        return f"no better than {lead.winner} " + (
            f"at {value_name}" if lead.values[0] else "with exact information"
        )
    before = lead.values[lead.loss - 1]
    limit = f"up to {_name_value(degradation, before)}" if before else "only with exact information"
    return f"better than {rivals} {limit}; at {value_name}, {lead.winner} is as good or better"
