"""Output of commands: answers on standard output, messages on standard error, files."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from planner.errors import InputError
from planner.formatting import HIDDEN, counted, printable

if TYPE_CHECKING:
    from planner.contract.system import System
    from planner.errors import PlannerError
    from planner.reports.document import Page
    from planner.runs.run import Comparison
    from planner.scenarios.scenario import Scenario

MAX_FAULTS: Final = 50
"""Lines of an error that are printed; a file may have a fault in every row."""
MAX_LINE: Final = 600
"""Letters of a line of an error."""
MAX_NOTES: Final = 30
"""Lines of notes on data that are printed; each window of a series may have its own."""
MOST_OTHERS: Final = 6
"""Designs that a line names which could run instead."""
COMPILING_LINE_S: Final = 5.0
"""Least time between two lines about the progress of compiling."""


def answer(page: Page, plain: Callable[[], Any], as_json: bool) -> None:
    """Print an answer: the page on the terminal, or its plain data as the one JSON object of `--json`."""
    if as_json:
        print_json(_with_notes(plain()))
        return
    from planner.reports import terminal

    terminal.show(page)


_said: list[str] = []
"""Notes on data that this command has said."""


def _with_notes(value: Any) -> Any:
    """Return an answer with the notes on data of this command, where it has none of its own."""
    if not _said or not isinstance(value, dict) or "notes" in value:
        return value
    problem = value.get("problem")
    return value if isinstance(problem, dict) and "notes" in problem else {**value, "notes": list(_said)}


def print_json(value: Any) -> None:
    """Print one JSON value, whatever the encoding of standard output."""
    in_full = (sys.stdout.encoding or "utf-8").lower() in ("utf-8", "utf8")
    text = json.dumps(value, indent=2, ensure_ascii=not in_full, allow_nan=False, default=str)
    # JSON escapes half of the control characters itself
    typer.echo(HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def say(text: str) -> None:
    """Print a message that is not part of the answer."""
    typer.echo(printable(text), err=True)


def name_other_designs(system: System, verb: str) -> None:
    """Name the designs of a system that do not run unless a scenario or the user names them.

    verb  what the command does with the usual ones, such as "compares"
    """
    usual = system.usual_designs
    others = [design.name for design in system.designs if design not in usual]
    if others:
        names = ", ".join(design.name for design in usual)
        say(f"designs: {verb} {names}; --designs names others of {system.name}: {', '.join(others)}")


def name_default_design(scenario: Scenario, design: str | None) -> None:
    """Name the design that runs if the user names none, and those of the scenario that could run instead."""
    from planner.formatting import few
    from planner.runs.evaluation import select_entry

    if design is not None or len(scenario.designs) == 1:
        return
    label = select_entry(scenario).label
    labels = [entry.label for entry in scenario.designs] or [item.name for item in scenario.system.designs]
    others = [other for other in labels if other != label]
    if others:
        say(f"design: {label}; --design names another: {few(others, MOST_OTHERS)}")


def say_line(text: str, colour: str, *, err: bool = True) -> None:
    """Print a line of a warning or an error, shortened, in a colour."""
    shown = printable(text)
    shown = shown if len(shown) <= MAX_LINE else f"{shown[: MAX_LINE - 3]}..."
    typer.secho(shown, err=err, fg=colour or None)


@contextlib.contextmanager
def show_work(what: str) -> Iterator[None]:
    """Show the current activity and its duration on a terminal until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    from planner.reports import terminal

    with terminal.show_work(what):
        yield


@contextlib.contextmanager
def report_compiling() -> Iterator[None]:
    """Report on standard error the kernel compiled in this block, and every few seconds their number."""
    from planner.compile_events import observe_compiling

    count, started, said = 0, 0.0, 0.0

    def observe(kernel: str) -> None:
        nonlocal count, started, said
        count, now = count + 1, time.perf_counter()
        if count == 1:
            started = said = now
            say(f"compiling (once): {kernel} is the first kernel")
        elif now - said >= COMPILING_LINE_S:
            said = now
            say(f"compiling (once): {counted(count, 'kernels')} in {now - started:.0f} s, now {kernel}")

    with observe_compiling(observe):
        yield


@contextlib.contextmanager
def report_notes(but: Sequence[str] = ()) -> Iterator[None]:
    """Say each note on data in this block on standard error, once; a doubt in yellow.

    but  parts of notes that are not said
    """
    from planner.contract.notes import observe_notes

    said: set[str] = set()
    _said.clear()

    def observe(note: str) -> None:
        if note in said or any(text in note for text in but):
            return
        said.add(note)
        if len(said) <= MAX_NOTES:
            _said.append(note)
            say_line(note, "yellow" if note.startswith("warning:") else "")
        elif len(said) == MAX_NOTES + 1:
            say("further notes on data are not shown")

    with observe_notes(observe):
        yield


def report_error(error: PlannerError) -> None:
    """Print each fault on a line, and the number of those that are not shown.

    The end of a line within a fault is of a name in it.
    """
    faults = error.faults if isinstance(error, InputError) else str(error).split("\n")
    for line in faults[:MAX_FAULTS]:
        say_line(line[: MAX_LINE + 1].replace("\n", "\\n"), "red")
    if len(faults) > MAX_FAULTS:
        say_line(f"and {len(faults) - MAX_FAULTS:,} more faults", "red")


def save(scenario: Scenario, comparison: Comparison, out: Path, table_format: str) -> None:
    """Write the scenario, plans, metrics and the report as text into a folder."""
    from planner.reports import run_pages, terminal
    from planner.runs import files

    files.save_runs(scenario, comparison.runs, out, table_format)
    terminal.save_text(run_pages.comparison_page(comparison), out / "report.txt", len(comparison.runs))
    say(f"saved scenario, plans, metrics and report in {out}")


def write_files(page: Callable[[], Page], reports: Mapping[str, Path], pictures: Path | None = None) -> None:
    """Write reports of the page, by format, and its charts as pictures, where requested."""
    if not reports and pictures is None:
        return
    from planner.reports import html, report_files

    made = page()
    for path in reports.values():
        report_files.write(made, path)
        say(f"wrote the report to {path}")
    if pictures is not None:
        count = html.save_pictures(made, pictures)
        say(f"saved {counted(count, 'pictures')} in {pictures}")
