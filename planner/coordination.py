"""What coordination is worth: every system's designs on the same true problem, by what they tell each other.

Each system names a scenario whose designs go from no coordination to all information. Their
performance is told as the share of the way from no coordination (0) to the best that is proven
possible with all information (1), beside what it costs: money, time to answer, messages and bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.catalogue import find_system, system_names
from planner.errors import InputError, did_you_mean
from planner.scenario import load
from planner.store import column_of
from planner.sweeping import sweep
from planner.system import System

COLUMNS: Final = (
    "system", "design", "mechanism", "performance", "share", "cost", "answers_in_s", "messages", "bytes",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The designs of one system, in the order of what they know.

    frame   system, design, mechanism, performance, share (0 no coordination, 1 the proven bound; less
            than 0 is worse than none), cost, answers_in_s, messages, bytes; None for unknown
    bound   the best performance that is proven possible, None where none is
    failed  designs without a plan, and why
    """

    system: System
    frame: pd.DataFrame
    bound: float | None
    failed: Mapping[str, str]

    def sentences(self) -> list[str]:
        """What the figures say, also where a mechanism loses."""
        assert self.system.coordination is not None
        metric = self.system.metric(self.system.coordination.performance)
        if not len(self.frame):
            return [f"{self.system.name}: no design has a plan"]
        rows = self.frame.to_dict(orient="records")
        name, first, found = self.system.name, rows[0], []
        if self.bound is not None:
            best = max(rows, key=lambda row: row["share"])
            found.append(
                f"{name}: {best['design']} ({best['mechanism']}) goes {best['share']:.0%} of the way from "
                f"{first['design']} to the best {metric.name} that is possible"
            )
        found += [
            f"{name}: {row['design']} ({row['mechanism']}) is worse than no coordination: {metric.name} "
            f"{row['performance']:.4g} against {first['performance']:.4g}"
            for row in rows
            if row["share"] is not None and row["share"] < -1e-6
        ]
        found += [f"{name}: {design} has no plan: {why}" for design, why in self.failed.items()]
        return found


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
    raises   InputError for a system that is none, or cannot be measured
    """
    chosen = list(names or measurable())
    if faults := [name for name in chosen if name not in measurable()]:
        raise InputError(
            *(f"{name}: cannot be measured" + did_you_mean(name, measurable()) for name in faults)
        )
    systems = [find_system(name) for name in chosen]
    scenarios = [
        load(system.coordination.scenario, changes=(changes or {}).get(system.name))
        for system in systems
        if system.coordination is not None
    ]
    with tempfile.TemporaryDirectory() as spare:
        done = sweep(scenarios, out or Path(spare) / "store", workers=workers, plans=False, advance=advance)
        runs = done.runs
    return [_ordered(system, runs[runs["system"] == system.name]) for system in systems]


def _ordered(system: System, runs: pd.DataFrame) -> Measured:
    """The runs of a system as shares of the way to its bound."""
    asked = system.coordination
    assert asked is not None
    metric = system.metric(asked.performance)
    worth = column_of(metric.name)
    good = runs[(runs["exit_code"] == 0) & runs[worth].notna()]
    lost = runs[runs["exit_code"] != 0]
    bound = _bound(runs, metric.name, metric.better)
    start = float(good[worth].iloc[0]) if len(good) else None
    rows = []
    for _, run in good.iterrows():
        value = float(run[worth])
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
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(object)
    frame = frame.where(frame.notna(), None)
    failed = {str(run["label"]): str(run["message"] or run["status"]) for _, run in lost.iterrows()}
    return Measured(system=system, frame=frame, bound=bound, failed=failed)


def _bound(runs: pd.DataFrame, name: str, better: str) -> float | None:
    """The tightest bound that a design with all information proves for all plans."""
    if "bound" not in runs or "objective_metric" not in runs:
        return None
    whole = runs["omniscient"].astype(bool) & (runs["objective_metric"] == name)
    if "bound_within" in runs:
        whole &= runs["bound_within"].isna()
    bounds = runs.loc[whole, "bound"].dropna().astype(float)
    if not len(bounds):
        return None
    return float(bounds.min() if better == "more" else bounds.max())


def _share(value: float, start: float | None, bound: float | None) -> float | None:
    if start is None or bound is None or abs(bound - start) <= 1e-9 * max(abs(bound), abs(start)):
        return None
    return (value - start) / (bound - start)


def _known(run: Any, name: str) -> float | None:
    value = run.get(name)
    return None if value is None or pd.isna(value) else float(value)
