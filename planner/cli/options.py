"""Options that commands share, and what their texts mean."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from planner.errors import InputError

if TYPE_CHECKING:
    from planner.scenario import Scenario

ScenarioArgument = Annotated[
    str, typer.Argument(help="A scenario file, or one that ships with planner, such as traffic/germany50.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the scenario, e.g. problem.scale=2. Repeatable."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Save the scenario, plans and metrics in this folder."),
]
FormatOption = Annotated[
    Literal["parquet", "csv"], typer.Option("--table-format", help="How plan tables are saved.")
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a report: one page with tables and charts."),
]
PicturesOption = Annotated[
    Path | None,
    typer.Option("--pictures", metavar="DIR", help="Save each chart as a picture (SVG) in this folder."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DesignsOption = Annotated[
    str | None,
    typer.Option("--designs", metavar="A,B,C", help="Which designs; default: all of the scenario's."),
]

Solver = Mapping[str, Any]
"""The solver's options that were given, by the names that a scenario's [solver] has."""


def solver_options(
    backend: Annotated[
        str | None,
        typer.Option("--backend", help="highs, ortools, ortools:SOLVER or pyomo:SOLVER."),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", help="auto, simplex, interior-point or pdlp."),
    ] = None,
    time_limit_s: Annotated[
        float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop the solver after this.")
    ] = None,
    gap: Annotated[float | None, typer.Option("--gap", help="Relative gap that counts as optimal.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="The most threads that the solver may use.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The solver's random seed.")] = None,
) -> None:
    """Options of every command that solves."""


def solving(command: Callable[..., None]) -> Callable[..., None]:
    """Lets a command take the solver's options: it gets those that are given as its argument `solver`."""
    options = inspect.signature(solver_options, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        known = {name: given.pop(name) for name in options}
        command(**given, solver={name: value for name, value in known.items() if value is not None})

    parameters = []
    for name, parameter in own.items():
        wanted = options.values() if name == "solver" else [parameter]
        parameters += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in wanted]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def load_scenario(scenario: str, changes: list[str] | None, solver: Solver) -> Scenario:
    """The scenario with what `--set` and the solver's options change."""
    from planner.scenario import load

    return load(scenario, changes=changes_of(changes), options=solver)


def labels_of(designs: str | None) -> list[str] | None:
    """Names between commas."""
    return None if designs is None else [label.strip() for label in designs.split(",") if label.strip()]


def changes_of(given: list[str] | None, option: str = "--set") -> dict[str, Any]:
    """Keys and their values; InputError with every text that is no KEY=VALUE."""
    changes, faults = {}, []
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            faults.append(f"{option} {text}: must be KEY=VALUE")
            continue
        changes[key.strip()] = _value(value.strip())
    if faults:
        raise InputError(*faults)
    return changes


def axes_of(given: list[str] | None) -> dict[str, list[Any]]:
    """The values of each key; commas within brackets, braces and quotes part none."""
    axes: dict[str, list[Any]] = {}
    faults = []
    for text in given or []:
        key, equals, values = text.partition("=")
        if not equals or not key.strip():
            faults.append(f"--set {text}: must be KEY=VALUE or KEY=V1,V2,...")
            continue
        axes[key.strip()] = [_value(value) for value in _parts(values)]
    if faults:
        raise InputError(*faults)
    return axes


def _parts(text: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += letter
    return [part.strip() for part in parts]


def _value(text: str) -> Any:
    """A value as TOML has it; what is none is text, so that quotes may be left out."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
