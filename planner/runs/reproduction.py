"""Reproduction of tables and figures of papers: each published value beside ours, with a verdict.

A published value may be a number, a bound or a statement in words; a target (`planner.contract.targets`)
computes ours. The verdict never comes from the system: it follows here from the two values.
"""

from __future__ import annotations

import csv
import enum
import io
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, overload

import pandas as pd

from planner.contract.drawing import Drawing
from planner.contract.system import System
from planner.contract.targets import Target, TargetValues
from planner.errors import InputError, PlannerError, did_you_mean
from planner.formatting import counted, counted_of, plain
from planner.io.table_files import write_table
from planner.runs import evaluation
from planner.runs.files import make_folder, slug
from planner.runs.result import Result
from planner.scenarios.arguments import verb
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import load

ALL: Final = "all"
"""Name that stands for every target of every system."""


class Verdict(enum.Enum):
    """Verdict on a published value, the best first."""

    REPRODUCED = "reproduced"  # within the target's tolerance
    CALIBRATED = "calibrated"  # within the tolerance, after an open parameter was fitted to it
    ORDER_ONLY = "order only"  # outside the tolerance, but in the published order within its group
    NOT_REPRODUCED = "not reproduced"
    NOT_COVERED = "not covered"  # by any model here; a note says why
    NOT_AVAILABLE = "not available"  # lost in the source
    NO_NUMBER = "no number to compare"  # a setting of the paper, or a claim without a figure
    SHORTENED = "shortened"  # by a quick run, which is too short for it

    def __str__(self) -> str:
        return self.value


SETTING: Final = "a setting of the paper"
UNJUDGED: Final = frozenset({Verdict.NOT_COVERED, Verdict.NOT_AVAILABLE, Verdict.NO_NUMBER})
"""Verdicts on values that are not compared with ours."""


@dataclass(frozen=True, kw_only=True)
class JudgedValue:
    """A published value beside ours, with the verdict.

    published, ours  two numbers, or a statement in words and whether it is true
    ratio            ours / published, where both are numbers
    """

    system: str
    target: str
    id: str
    quantity: str
    condition: str
    place: str
    unit: str
    published: float | str | None
    ours: float | bool | None
    ratio: float | None
    verdict: Verdict
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "verdict": str(self.verdict)}


def _explain_differing(differing: Sequence[JudgedValue]) -> str:
    """Return the first note on values that differ, else the value that differs most."""
    noted = next((row.note for row in differing if row.note), "")
    if noted:
        return f": {noted}"
    apart = [row for row in differing if row.ratio is not None and row.ratio > 0]
    if not apart:
        return "."
    worst = max(apart, key=lambda row: abs(math.log(row.ratio or 1.0)))
    return f"; most: {worst.quantity}, {plain(worst.ours)} against {plain(worst.published)}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reproduction(Result):
    """Result of a target; where its run failed, `error` and no rows."""

    system: System
    target: Target
    rows: tuple[JudgedValue, ...] = ()
    curves: tuple[Drawing, ...] = ()
    seconds: float = 0.0
    error: PlannerError | None = None

    @property
    def name(self) -> str:
        return f"{self.system.name}/{self.target.name}"

    @property
    def label(self) -> str:
        """The system's title, and the target's place in its paper."""
        return f"{self.system.label}, {self.target.place}"

    @property
    def verdict(self) -> str:
        """Count the target's values by verdict, in one sentence."""
        counts = [f"{count} {verdict}" for verdict, count in self.counts().items() if count]
        return f"{self.name}: {', '.join(counts) or self.error or 'no values'}"

    @property
    def reason(self) -> str:
        """The reason of the verdict, in one line."""
        if self.error is not None:
            return str(self.error)
        differing = [row for row in self.rows if row.verdict in (Verdict.ORDER_ONLY, Verdict.NOT_REPRODUCED)]
        judged = [row for row in self.rows if row.verdict not in UNJUDGED]
        shortened = sum(row.verdict is Verdict.SHORTENED for row in judged)
        if shortened:
            return f"A quick run is too short for {counted_of(shortened, len(judged), 'values')}."
        if not judged:
            return self._explain_unjudged()
        if not differing:
            fitted = self.counts()[str(Verdict.CALIBRATED)]
            after = f", {fitted} after an open parameter was fitted" if fitted else ""
            return f"All {counted(len(judged), 'values', 'agree')}{after}.{self._explain_not_covered()}"
        differ = counted_of(len(differing), len(judged), "values", "differ") + _explain_differing(differing)
        return f"{differ.removesuffix('.')}.{self._explain_not_covered()}"

    def _explain_not_covered(self) -> str:
        """Return a sentence on values that are not covered, with the first reason; empty for none."""
        reasons = [row.note for row in self.rows if row.verdict is Verdict.NOT_COVERED]
        return f" Not covered: {counted(len(reasons), 'values')} ({reasons[0]})." if reasons else ""

    def _explain_unjudged(self) -> str:
        """Return the reason of a target without a value that is judged."""
        if self.counts()[str(Verdict.NOT_COVERED)]:
            return self._explain_not_covered().strip()
        settings = sum(row.note.startswith(SETTING) for row in self.rows)
        if settings:
            claims = self.counts()[str(Verdict.NO_NUMBER)] - settings
            claims_note = f"; claims without a number: {claims}" if claims else ""
            return f"Settings of the paper, with which our values are found: {settings}{claims_note}."
        if self.target.numberless:
            return "The source gives no number to compare."
        return "The source does not give the values any more."

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each published value: ours beside it, their ratio, the verdict."""
        rows = [row.to_dict() for row in self.rows]
        return pd.DataFrame(rows, columns=[*JudgedValue.__dataclass_fields__])

    def summary(self) -> list[str]:
        """Return the verdict."""
        return [self.verdict]

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each verdict."""
        counter = Counter(str(row.verdict) for row in self.rows)
        return {str(verdict): counter[str(verdict)] for verdict in Verdict}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {
            "target": self.name,
            "place": self.target.place,
            "about": self.target.about,
            "seconds": self.seconds,
            "verdicts": self.counts(),
            "rows": [row.to_dict() for row in self.rows],
            **({"error": str(self.error)} if self.error else {}),
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reproductions(Result):
    """Results of several targets."""

    targets: tuple[Reproduction, ...]

    def __iter__(self) -> Iterator[Reproduction]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def verdict(self) -> str:
        """Count the values of all targets by verdict, in one sentence."""
        counts = Counter(str(row.verdict) for target in self.targets for row in target.rows)
        return ", ".join(f"{counts[str(verdict)]} {verdict}" for verdict in Verdict if counts[str(verdict)])

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each published value: ours beside it, their ratio, the verdict."""
        frames = [target.to_frame() for target in self.targets]
        return pd.concat(frames, ignore_index=True)

    def summary(self) -> list[str]:
        """Return the verdict on each target."""
        return [target.verdict for target in self.targets]

    @property
    def exit_code(self) -> int:
        """0 when every target ran, otherwise that of the first that failed."""
        return next((target.error.exit_code for target in self.targets if target.error is not None), 0)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain data, as `--json` prints it."""
        return [target.to_dict() for target in self.targets]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Targets(Result):
    """Tables and figures of papers that can be reproduced."""

    targets: tuple[tuple[System, Target], ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each target: its name, its place in a paper, and its content."""
        return pd.DataFrame(self.to_dict())

    def summary(self) -> list[str]:
        """Return the number of targets of each system."""
        counts = Counter(system.name for system, _ in self.targets)
        lines = [f"{name}: {counted(count, 'targets')}" for name, count in counts.items()]
        return [*lines, 'planner.reproduce("SYSTEM/TARGET") runs one of them']

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain data, as `--json` prints it."""
        return [
            {"target": f"{system.name}/{target.name}", "place": target.place, "about": target.about}
            for system, target in self.targets
        ]


@dataclass(frozen=True, kw_only=True)
class _EngineStudy:
    """Services of the engine for targets: `planner.contract.targets.Study`."""

    quick: bool

    def compare(
        self, scenario: str, *, designs: Sequence[str] | None = None, changes: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        result = evaluation.compare(load(scenario, changes=changes), designs=designs)
        for run in result.runs:
            if run.error is not None:
                raise run.error
        return result.metrics


def _targets_by_name(names: Sequence[str], all_systems: Sequence[str]) -> dict[str, tuple[System, Target]]:
    """Return the targets of the systems that are named, or of all where none of them exists."""
    asked_systems = [name.partition("/")[0] for name in names]
    loaded = [name for name in all_systems if name in asked_systems] or all_systems
    return {f"{system.name}/{target.name}": (system, target) for system, target in _targets_of(loaded)}


def find_targets(names: str | Sequence[str] = ALL) -> list[tuple[System, Target]]:
    """Return the targets of names: "circuitflows/table_2_2", or "circuitflows" for a whole system; or all.

    raises  InputError for each unknown name, with the nearest
    """
    names = [names] if isinstance(names, str) else names
    if list(names) == [ALL]:
        return _targets_of(system_names())
    all_systems = system_names()
    by_name = _targets_by_name(names, all_systems)
    selected: dict[str, tuple[System, Target]] = {}
    faults = []
    for name in names:
        if name in by_name:
            selected[name] = by_name[name]
        elif name in all_systems:
            selected |= {full: pair for full, pair in by_name.items() if full.split("/")[0] == name}
        else:
            near = did_you_mean(name, [*by_name, *all_systems])
            faults.append(f"{name}: no such target" + (near or "; planner reproduce lists them all"))
    if faults:
        raise InputError(*faults)
    return list(selected.values())


def _targets_of(names: Iterable[str]) -> list[tuple[System, Target]]:
    return [(system, target) for system in map(find_system, names) for target in system.studies.targets]


@overload
def reproduce() -> Targets: ...


@overload
def reproduce(
    targets: str | Sequence[str],
    *,
    quick: bool = False,
    out: str | Path | None = None,
    advance: Callable[[Reproduction], None] | None = None,
) -> Reproductions: ...


@verb
def reproduce(
    targets: str | Sequence[str] | None = None,
    *,
    quick: bool = False,
    out: str | Path | None = None,
    advance: Callable[[Reproduction], None] | None = None,
) -> Reproductions | Targets:
    """Reproduce tables and figures of papers, each published value beside ours; without names, list them.

    Parameters
    ----------
    targets
        Names such as "multicast/figure_5a", or "multicast" for all of its targets; "all" for every target
        of every system.
    quick
        Smaller or shorter runs, seconds each; default: false.
    out
        Folder for verdicts.csv and the curves; default: none is written.
    advance
        Called with each target's result when it is finished.

    Returns
    -------
    Reproductions or Targets
        Measured beside published values, each with a verdict; the list of all targets where none is named.

    Raises
    ------
    InputError
        For each unknown name, with the nearest.
    """
    if targets is None:
        return Targets(targets=tuple(find_targets()))
    results: list[Reproduction] = []
    for system, target in find_targets(targets):
        results.append(run_target(system, target, quick=quick))
        if advance is not None:
            advance(results[-1])
    if out is not None:
        save(results, Path(out))
    return Reproductions(targets=tuple(results))


def run_target(system: System, target: Target, *, quick: bool = False) -> Reproduction:
    """Run a target and judge its values; record an error of its runs."""
    start = time.perf_counter()
    try:
        target_values = target.find(_EngineStudy(quick=quick))
    except PlannerError as error:
        return Reproduction(system=system, target=target, error=error)
    return Reproduction(
        system=system,
        target=target,
        rows=tuple(judge(system, target, target_values)),
        curves=target_values.curves,
        seconds=time.perf_counter() - start,
    )


def save(reproductions: Sequence[Reproduction], out: Path) -> None:
    """Write `out/verdicts.csv`, and `out/<system>/<target>/<curve>.csv` for each curve."""
    make_folder(out)
    rows = [row.to_dict() for reproduction in reproductions for row in reproduction.rows]
    write_table(pd.DataFrame(rows, columns=[*JudgedValue.__dataclass_fields__]), out / "verdicts.csv")
    for reproduction in reproductions:
        for curve in reproduction.curves:
            folder = make_folder(out / reproduction.name)
            write_table(curve.frame, folder / f"{slug(curve.title)}.csv")


# --- judging ------------------------------------------------------------------------------


@cache
def read_published(system: str) -> Mapping[str, Mapping[str, str]]:
    """Read the published values of a system's papers from `data/published/<system>.csv`, by id."""
    text = (files("planner_data") / "published" / f"{system}.csv").read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}


def judge(system: System, target: Target, target_values: TargetValues) -> Iterator[JudgedValue]:
    """Yield every row of a target with its verdict, then the parts that the source no longer contains."""
    _require_reasons(system, target, target_values)
    table = read_published(system.name) if target.rows else {}
    for name in target.rows:
        theirs, ours = _parse_value(table[name]["value"]), target_values.values.get(name)
        yield JudgedValue(
            system=system.name,
            target=target.name,
            id=name,
            quantity=table[name]["quantity"],
            condition=table[name]["condition"],
            place=table[name]["place"],
            unit=table[name]["unit"],
            published=theirs,
            ours=ours,
            ratio=_ratio(ours, theirs),
            verdict=Verdict.SHORTENED
            if name in target_values.shortened
            else _verdict(target, name, target_values.values, table),
            note=_note(target, name, table[name].get("role", ""), target_values.notes.get(name, "")),
        )
    for quantity in target.lost:
        yield JudgedValue(
            system=system.name,
            target=target.name,
            id="",
            quantity=quantity,
            condition="",
            place=target.place,
            unit="",
            published=None,
            ours=None,
            ratio=None,
            verdict=Verdict.NOT_AVAILABLE,
        )


def _require_reasons(system: System, target: Target, target_values: TargetValues) -> None:
    """Raise ValueError where a row that is not covered has a value, has no reason, or is no row."""
    for name in sorted(target.not_covered):
        reason = target_values.notes.get(name, "").strip()
        if name not in target.rows or target_values.values.get(name) is not None or not reason:
            raise ValueError(
                f"{system.name}/{target.name}: {name} is not covered: it must be a row without a value, "
                "with a note that says why"
            )


def _note(target: Target, name: str, role: str, note: str) -> str:
    """Return the note of a row; that of a setting says so."""
    if name not in target.numberless or role != "setup":
        return note
    return f"{SETTING}; {note}" if note else SETTING


def _parse_value(text: str) -> float | str:
    """Return a printed value as a number, or as text if it is none; "5/7" is a number too."""
    numerator, _, denominator = text.replace(",", "").partition("/")
    try:
        return float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError):
        return text


def _ratio(ours: float | bool | None, theirs: float | str) -> float | None:
    if ours is None or isinstance(ours, bool) or isinstance(theirs, str) or theirs == 0:
        return None
    return ours / theirs


def _verdict(
    target: Target, name: str, ours: Mapping[str, Any], table: Mapping[str, Mapping[str, str]]
) -> Verdict:
    if name in target.numberless:
        return Verdict.NO_NUMBER
    if name in target.not_covered:
        return Verdict.NOT_COVERED
    value = ours.get(name)
    if value is None:
        return Verdict.NOT_REPRODUCED
    if _agrees(target, name, value, _parse_value(table[name]["value"])):
        return Verdict.CALIBRATED if name in target.calibrated else Verdict.REPRODUCED
    groups = [group for group in target.orders if name in group]
    if groups and all(_in_order(name, group, ours, table) for group in groups):
        return Verdict.ORDER_ONLY
    return Verdict.NOT_REPRODUCED


def _agrees(target: Target, name: str, ours: float | bool, theirs: float | str) -> bool:
    if isinstance(ours, bool) or isinstance(theirs, str):
        if isinstance(ours, bool) and isinstance(theirs, str):
            return ours
        raise TypeError(
            f"{target.name}: {name} is '{theirs}', found as {ours!r}: a statement is true or false"
        )
    tolerance = target.tolerances.get(name, target.tolerance)
    slack = tolerance * abs(theirs) if theirs else tolerance
    bound = target.bounds.get(name)
    if bound == "at least":
        return ours >= theirs - 1e-9 * abs(theirs)
    if bound == "at most":
        return ours <= theirs + 1e-9 * abs(theirs)
    return abs(ours - theirs) <= slack * (1 + 1e-9)


def _in_order(
    name: str, group: Sequence[str], ours: Mapping[str, Any], table: Mapping[str, Mapping[str, str]]
) -> bool:
    """Return whether our value and the published one are in the same order with every other of the group."""
    our_value, published = ours[name], _parse_value(table[name]["value"])
    others = [other for other in group if other != name and ours.get(other) is not None]
    pairs = [(ours[other], _parse_value(table[other]["value"])) for other in others]
    if isinstance(our_value, bool) or isinstance(published, str) or not pairs:
        return False
    # where the paper prints equal values, any order is right
    return all(
        theirs == published or (own_ours > our_value if float(theirs) > published else own_ours < our_value)
        for own_ours, theirs in pairs
    )
