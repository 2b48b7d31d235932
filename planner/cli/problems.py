"""Commands that generate and check problems, and export models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from planner.cli import completion
from planner.cli.options import FormatOption, JsonOption, changes_of, on_scenario
from planner.cli.output import answer, print_json, say
from planner.errors import PlanRejected
from planner.formatting import sizes

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario


def generate(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM", help="The problem's system.", autocompletion=completion.complete_system
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where tables and scenario.toml go.")],
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Which problem; default: the system's first.",
            autocompletion=completion.complete_preset,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of a problem that is drawn.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the preset, e.g. k=8. Repeatable."),
    ] = None,
    table_format: FormatOption = "csv",
) -> None:
    """Generate a problem: its tables and a scenario file."""
    from planner.runs import files

    given = changes_of(changes)
    if seed is not None:
        given["seed"] = seed
    size = files.generate(system, preset, given, out, table_format)
    say(f"wrote {sizes(size)} to {out}; solve with: planner compare {out / 'scenario.toml'}")


@on_scenario(only=("service",))
def export(
    *,
    scenario: Scenario,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the model goes.")],
    format_: Annotated[
        Literal["lp", "mps"] | None,
        typer.Option("--format", help="The file's format; default: by its ending."),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            "--design",
            metavar="NAME",
            help="Design of the model; default: the first that has one.",
            autocompletion=completion.complete_design,
        ),
    ] = None,
) -> None:
    """Write the formal model of a design as LP or MPS."""
    from planner.runs import files

    model = files.export(scenario, design, out, format_)
    say(f"wrote the model of {model.design} to {out}: {model.rows:,} rows, {model.columns:,} columns")


@on_scenario(only=())
def check(
    *,
    scenario: Scenario,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="DIR", help="A folder of plan tables, made here or elsewhere."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Validate a scenario, or check a plan made elsewhere.

    A plan that violates a constraint ends with exit code 5, as one that is none.
    """
    from planner.reports import run_pages
    from planner.runs import files

    problem = scenario.make_problem()
    if plan is None:
        if as_json:
            size = {"size": problem.size()}
            print_json({"system": scenario.system.name, "problem": size, "valid": True})
        else:
            say(f"{scenario.name}: valid; {sizes(problem.size())}")
        return
    violations, metrics = files.check_plan(scenario.system, problem, plan)
    rows = violations.frame.to_dict(orient="records")
    plain = {"system": scenario.system.name, "violations": rows, "metrics": metrics}
    answer(run_pages.plan_page(scenario.system, metrics, violations), lambda: plain, as_json)
    if len(violations):
        raise typer.Exit(PlanRejected.exit_code)
    if not as_json:
        say("plan: no constraint violation")
