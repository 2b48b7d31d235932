"""Commands that generate and check problems, and export models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from planner.cli import completion
from planner.cli.options import FormatOption, JsonOption, changes_of, on_scenario
from planner.cli.output import answer, say, show_work
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
    if "seed" in given and seed is None:
        seed = given.pop("seed")
    problem = files.generate(system, preset, seed=seed, out=out, table_format=table_format, **given)
    say(f"wrote {sizes(problem.size())} to {out}; solve with: planner compare {out / 'scenario.toml'}")


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

    with show_work(f"building the model of {scenario.name}"):
        model = files.export(scenario, out, design=design, format=format_)
    say(f"wrote the model of {model.design} to {out}: {model.rows:,} rows, {model.columns:,} columns")
    if model.objective is not None:
        say(f"objective: {model.objective.about}")
        if model.objective.formula:
            say(f"metric: {model.objective.formula}")


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

    with show_work(f"checking {scenario.name}"):
        result = files.check(scenario, plan)
    if plan is None and not as_json:
        say(f"{scenario.name}: valid; {sizes(result.problem.size())}")
        return
    answer(run_pages.checked_page(result), result.to_dict, as_json)
    if plan is not None and result.is_valid and not as_json:
        say("plan: no constraint violation")
    raise typer.Exit(result.exit_code)
