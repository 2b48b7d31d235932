"""What commands leave behind: answers on standard output, words on standard error, files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from planner.errors import PlannerError
    from planner.run import Comparison
    from planner.scenario import Scenario


def print_json(value: Any) -> None:
    """The one JSON object of `--json`, whatever the encoding of standard output."""
    in_full = (sys.stdout.encoding or "utf-8").lower() in ("utf-8", "utf8")
    typer.echo(json.dumps(value, indent=2, ensure_ascii=not in_full, allow_nan=False, default=str))


def say(text: str) -> None:
    """A line that is no answer."""
    typer.echo(text, err=True)


def report_error(error: PlannerError) -> None:
    """Each fault on a line."""
    for line in str(error).splitlines():
        typer.secho(line, err=True, fg="red")


def save(scenario: Scenario, comparison: Comparison, out: Path, table_format: str) -> None:
    """The scenario, plans, metrics and the report as text, in a folder."""
    from planner import files, report

    files.save(scenario, comparison.runs, out, table_format)
    report.save_text(out / "report.txt", comparison)
    say(f"saved scenario, plans, metrics and report in {out}")


def write_pages(make: Callable[[Any], Any], path: Path | None, pictures: Path | None) -> None:
    """Write the page and the pictures that were asked for; `make` takes the module that lays pages out."""
    if path is None and pictures is None:
        return
    from planner import html

    page = make(html)
    if path is not None:
        html.write(page, path)
        say(f"wrote the report to {path}")
    if pictures is not None:
        count = html.save_pictures(page, pictures)
        say(f"saved {count} pictures in {pictures}")
