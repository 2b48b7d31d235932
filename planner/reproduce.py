"""Tables and figures of papers, run again: each published value beside ours, with a verdict.

A published value may be a number, a bound or a statement in words; `planner.published` tells how a
target finds ours. The verdict never comes from the system: it is made here, from the value printed
and the value found.
"""

from __future__ import annotations

import csv
import enum
import io
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from planner import run
from planner.catalogue import find_system, system_names
from planner.drawing import Drawing
from planner.errors import InputError, PlannerError, did_you_mean
from planner.files import make_folder, slug
from planner.published import Found, Target
from planner.scenario import load
from planner.system import System
from planner.table_files import write_table


class Verdict(enum.Enum):
    """What came of a published value, the best first."""

    REPRODUCED = "reproduced"  # within the target's tolerance
    CALIBRATED = "calibrated"  # within it, after an open parameter was fitted to it
    ORDER_ONLY = "order only"  # not within it, but in the same order among its like
    NOT_REPRODUCED = "not reproduced"
    NOT_AVAILABLE = "not available"  # lost in the source

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A published value beside ours.

    published, ours  a number, or words and whether they hold
    ratio            ours over published, where both are numbers
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
        """Plain data."""
        return {**asdict(self), "verdict": str(self.verdict)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """A target that was run. `error` says why it could not be, and then nothing of it is judged."""

    system: System
    target: Target
    rows: tuple[Judged, ...] = ()
    curves: tuple[Drawing, ...] = ()
    seconds: float = 0.0
    error: PlannerError | None = None

    @property
    def name(self) -> str:
        return f"{self.system.name}/{self.target.name}"

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        found = Counter(str(row.verdict) for row in self.rows)
        return {str(verdict): found[str(verdict)] for verdict in Verdict}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `--json` prints it."""
        return {
            "target": self.name,
            "place": self.target.place,
            "about": self.target.about,
            "seconds": self.seconds,
            "verdicts": self.counts(),
            "rows": [row.to_dict() for row in self.rows],
            **({"error": str(self.error)} if self.error else {}),
        }


@dataclass(frozen=True, kw_only=True)
class _Study:
    """What a target may ask of the engine: `planner.published.Study`."""

    quick: bool

    def compare(
        self, scenario: str, *, designs: Sequence[str] | None = None, changes: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        result = run.compare(load(scenario, changes=changes), designs=designs)
        for one in result.runs:
            if one.error is not None:
                raise one.error
        return result.metrics


def find_targets(names: Sequence[str] | None = None) -> list[tuple[System, Target]]:
    """The targets of those names: "circuits/table_2_2", or "circuits" for all of a system; None: all.

    raises  InputError for each name that is none, with the nearest
    """
    if names is None:
        return _targets_of(system_names())
    # a system's targets are known without loading the others
    wanted = [name.partition("/")[0] for name in names]
    known_systems = system_names()
    known = {
        f"{system.name}/{target.name}": (system, target)
        for system, target in _targets_of([name for name in known_systems if name in wanted] or known_systems)
    }
    chosen: dict[str, tuple[System, Target]] = {}
    faults = []
    for name in names:
        if name in known:
            chosen[name] = known[name]
        elif name in known_systems:
            chosen |= {full: pair for full, pair in known.items() if full.split("/")[0] == name}
        else:
            near = did_you_mean(name, [*known, *known_systems])
            faults.append(f"{name}: no such target" + (near or "; planner reproduce lists them all"))
    if faults:
        raise InputError(*faults)
    return list(chosen.values())


def _targets_of(names: Iterable[str]) -> list[tuple[System, Target]]:
    return [(system, target) for system in map(find_system, names) for target in system.targets]


def reproduce(system: System, target: Target, *, quick: bool = False) -> Reproduction:
    """Run a target and judge every value that it finds; an error of its runs is recorded."""
    start = time.perf_counter()
    try:
        found = target.find(_Study(quick=quick))
    except PlannerError as error:
        return Reproduction(system=system, target=target, error=error)
    return Reproduction(
        system=system,
        target=target,
        rows=tuple(judge(system, target, found)),
        curves=found.curves,
        seconds=time.perf_counter() - start,
    )


def save(done: Sequence[Reproduction], out: Path) -> None:
    """`out/verdicts.csv`, and `out/<system>/<target>/<curve>.csv` for each curve drawn."""
    make_folder(out)
    rows = [row.to_dict() for one in done for row in one.rows]
    write_table(pd.DataFrame(rows, columns=[*Judged.__dataclass_fields__]), out / "verdicts.csv")
    for one in done:
        for curve in one.curves:
            folder = make_folder(out / one.name)
            write_table(curve.frame, folder / f"{slug(curve.title)}.csv")


# --- judging ------------------------------------------------------------------------------


@cache
def published(system: str) -> Mapping[str, Mapping[str, str]]:
    """The published values of a system's papers by id, as `data/published/<system>.csv` has them."""
    text = (files("planner_data") / "published" / f"{system}.csv").read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}


def judge(system: System, target: Target, found: Found) -> Iterator[Judged]:
    """Every row of a target with its verdict, then what the source has lost."""
    table = published(system.name) if target.rows else {}
    for name in target.rows:
        theirs, ours = _value(table[name]["value"]), found.values.get(name)
        yield Judged(
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
            verdict=_verdict(target, name, found.values, table),
            note=found.notes.get(name, ""),
        )
    for what in target.lost:
        yield Judged(
            system=system.name,
            target=target.name,
            id="",
            quantity=what,
            condition="",
            place=target.place,
            unit="",
            published=None,
            ours=None,
            ratio=None,
            verdict=Verdict.NOT_AVAILABLE,
        )


def _value(text: str) -> float | str:
    """A printed value: a number where it is one."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def _ratio(ours: float | bool | None, theirs: float | str) -> float | None:
    if ours is None or isinstance(ours, bool) or isinstance(theirs, str) or theirs == 0:
        return None
    return ours / theirs


def _verdict(
    target: Target, name: str, ours: Mapping[str, Any], table: Mapping[str, Mapping[str, str]]
) -> Verdict:
    value = ours.get(name)
    if value is None:
        return Verdict.NOT_REPRODUCED
    if _agrees(target, name, value, _value(table[name]["value"])):
        return Verdict.CALIBRATED if name in target.calibrated else Verdict.REPRODUCED
    groups = [group for group in target.orders if name in group]
    if groups and all(_in_order(name, group, ours, table) for group in groups):
        return Verdict.ORDER_ONLY
    return Verdict.NOT_REPRODUCED


def _agrees(target: Target, name: str, ours: float | bool, theirs: float | str) -> bool:
    if isinstance(ours, bool) or isinstance(theirs, str):
        if isinstance(ours, bool) and isinstance(theirs, str):
            return ours
        raise TypeError(f"{target.name}: {name} is '{theirs}', found as {ours!r}: words hold or not")
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
    """Whether ours lies on the same side of every other value of the group as the published one."""
    here, there = ours[name], _value(table[name]["value"])
    others = [other for other in group if other != name and ours.get(other) is not None]
    pairs = [(ours[other], _value(table[other]["value"])) for other in others]
    if isinstance(here, bool) or isinstance(there, str) or not pairs:
        return False
    # where the paper prints a tie any order will do
    return all(
        theirs == there or (mine > here if float(theirs) > there else mine < here) for mine, theirs in pairs
    )
