"""Our values of all targets as they were measured last: README, tests, documentation and dashboard use them.

`data/reproduction/values.csv` has a row for each published value: ours, its note, whether it is of a quick or
a full run, and the version and the date of the measurement. The verdict follows from the two values whenever
it is asked for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from planner.contract.targets import TargetValues
from planner.io.file_replacement import replace_text
from planner.runs.reproduction import Reproduction, find_targets, judge
from planner.version import __version__

COLUMNS: Final = ("target", "id", "ours", "note", "seconds", "run", "version", "measured")


@dataclass(frozen=True, kw_only=True)
class ShippedReproduction:
    """A target with our values as they were measured.

    run       "quick", or "full" where a quick run is too short
    measured  date, such as 2026-11-22
    """

    reproduction: Reproduction
    run: str
    version: str
    measured: str


@cache
def load_shipped() -> dict[str, ShippedReproduction]:
    """Return the shipped values of every target by its name; targets without any are absent."""
    rows = read_rows(Path(str(files("planner_data") / "reproduction" / "values.csv")))
    shipped = {}
    for system, target in find_targets():
        target_rows = rows.get(f"{system.name}/{target.name}")
        if target_rows is not None:
            values = {row["id"]: _parse(row["ours"]) for row in target_rows if row["id"]}
            notes = {row["id"]: row["note"] for row in target_rows if row["id"] and row["note"]}
            judged = judge(system, target, TargetValues(values=values, notes=notes))
            shipped[target_rows[0]["target"]] = ShippedReproduction(
                reproduction=Reproduction(
                    system=system, target=target, rows=tuple(judged), seconds=float(target_rows[0]["seconds"])
                ),
                run=target_rows[0]["run"],
                version=target_rows[0]["version"],
                measured=target_rows[0]["measured"],
            )
    return shipped


def rows_of(reproduction: Reproduction, run: str = "quick") -> list[dict[str, str]]:
    """Return our values of a target as rows that ship; a target without values has one row."""
    head = {"target": reproduction.name, "seconds": f"{reproduction.seconds:.2g}", "run": run}
    rows = [
        {**head, "id": row.id, "ours": _text(row.ours), "note": row.note}
        for row in reproduction.rows
        if row.id
    ]
    return rows or [{**head, "id": "", "ours": "", "note": ""}]


def write_shipped(rows: Iterable[Mapping[str, str]], measured: str, path: Path) -> None:
    """Write our values of targets, with the date of the measurement and this version.

    Rows that have a version keep it, and their date.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"version": __version__, "measured": measured, **row} for row in rows)
    replace_text(path, text.getvalue())


def read_rows(path: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of a file that `write_shipped` wrote, by target."""
    rows: dict[str, list[dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["target"], []).append(row)
    return rows


def _parse(text: str) -> float | bool | None:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if text else None


def _text(value: float | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else repr(float(value))
