"""Commands that make, check and hand over problems and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from planner.cli.options import (
    FormatOption,
    JsonOption,
    ScenarioArgument,
    SetOption,
    changes_of,
    load_scenario,
)
from planner.cli.output import print_json, say


def generate(
    system: Annotated[str, typer.Argument(help="Whose problem to make.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where tables and scenario.toml go.")],
    preset: Annotated[
        str | None, typer.Option("--preset", help="Which problem; default: the system's first.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Where the problem is drawn.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the preset, e.g. k=8. Repeatable."),
    ] = None,
    table_format: FormatOption = "csv",
) -> None:
    """Make a problem's tables, and a scenario.toml that solves them."""
    from planner import files, report

    given = changes_of(changes)
    if seed is not None:
        given["seed"] = seed
    size = files.generate(system, preset, given, out, table_format)
    say(f"wrote {report.sizes(size)} to {out}; solve with: planner compare {out / 'scenario.toml'}")


def export(
    scenario: ScenarioArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the model goes.")],
    format_: Annotated[
        Literal["lp", "mps"] | None,
        typer.Option("--format", help="The file's format; default: by its ending."),
    ] = None,
    design: Annotated[
        str | None, typer.Option("--design", help="Whose model; default: the first design that has one.")
    ] = None,
    changes: SetOption = None,
) -> None:
    """Write the formal model that a design solves, for any solver to read."""
    from planner import files

    model = files.export(load_scenario(scenario, changes, {}), design, out, format_)
    say(f"wrote the model of {model.design} to {out}: {model.rows:,} rows, {model.columns:,} columns")


def check(
    scenario: ScenarioArgument,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="DIR", help="A folder of plan tables, made here or elsewhere."),
    ] = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Validate a scenario and its problem, or check and measure a plan made elsewhere."""
    from planner import files, report

    loaded = load_scenario(scenario, changes, {})
    problem = loaded.make_problem()
    if plan is None:
        if as_json:
            print_json({"system": loaded.system.name, "problem": {"size": problem.size()}, "valid": True})
        else:
            say(f"{scenario}: valid; {report.sizes(problem.size())}")
        return
    violations, metrics = files.check_plan(loaded.system, problem, plan)
    if as_json:
        rows = violations.frame.to_dict(orient="records")
        print_json({"system": loaded.system.name, "violations": rows, "metrics": metrics})
    else:
        report.show_metrics(loaded.system, metrics)
        report.show_violations(violations, "plan")
        if not len(violations):
            say("plan: keeps every limit")
