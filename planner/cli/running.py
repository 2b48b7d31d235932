"""Commands that run designs on a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import (
    DesignsOption,
    FormatOption,
    HtmlOption,
    JsonOption,
    OutOption,
    PicturesOption,
    ScenarioArgument,
    SetOption,
    Solver,
    changes_of,
    labels_of,
    load_scenario,
    solving,
)
from planner.cli.output import print_json, save, say, write_pages


@solving
def solve(
    *,
    scenario: ScenarioArgument,
    design: Annotated[str | None, typer.Option("--design", help="Which design; default: the first.")] = None,
    changes: SetOption = None,
    solver: Solver,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one design on a scenario's problem: the one named, or the scenario's first."""
    from planner import report, run

    loaded = load_scenario(scenario, changes, solver)
    result = run.solve(loaded, design=design)
    alone = run.Comparison(system=result.system, problem=result.problem, runs=(result,))
    if out is not None:
        save(loaded, alone, out, table_format)
    write_pages(lambda html: html.comparison_page(alone, loaded), html, pictures)
    if as_json:
        print_json(alone.to_dict())
    else:
        report.show_run(result)
    raise typer.Exit(result.exit_code)


@solving
def compare(
    *,
    scenario: ScenarioArgument,
    designs: DesignsOption = None,
    changes: SetOption = None,
    solver: Solver,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run several designs on one problem and print their metrics side by side."""
    from planner import report, run

    loaded = load_scenario(scenario, changes, solver)
    result = run.compare(loaded, designs=labels_of(designs))
    if out is not None:
        save(loaded, result, out, table_format)
    write_pages(lambda html: html.comparison_page(result, loaded), html, pictures)
    if as_json:
        print_json(result.to_dict())
    else:
        report.show_comparison(result)
    raise typer.Exit(result.exit_code)


@solving
def roll(
    *,
    scenario: ScenarioArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where each window goes when it is finished.")
    ],
    designs: DesignsOption = None,
    changes: SetOption = None,
    solver: Solver,
    table_format: FormatOption = "parquet",
    as_json: JsonOption = False,
) -> None:
    """Run designs on consecutive problems, such as the windows of a trace, each from the last plan.

    Stopped and started again, it goes on after the last window that was finished.
    """
    from planner import report, rolling

    loaded = load_scenario(scenario, changes, solver)
    roll = rolling.start(loaded, designs=labels_of(designs), out=out, table_format=table_format)
    windows = []
    with report.progress("windows", len(roll)) as advance:
        for window in roll:
            windows.append(window)
            advance()
    kept = sum(window.kept for window in windows)
    say(f"saved {len(windows)} windows in {out}" + (f", of which {kept} were there before" if kept else ""))
    if as_json:
        runs = [{"window": window.label, **window.run} for window in windows]
        print_json({"system": loaded.system.name, "runs": runs})
    else:
        report.show_windows(loaded.system, windows)
    raise typer.Exit(next((window.exit_code for window in windows if window.exit_code), 0))


@solving
def explain(
    *,
    scenario: ScenarioArgument,
    design: Annotated[
        str | None, typer.Option("--design", help="Whose plan; default: the scenario's first design.")
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(
            "--previous",
            metavar="DIR|DESIGN",
            help="What the plan is compared to: a folder of plan tables, or a design.",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="KEY=VALUE", help="How to explain, e.g. candidates=20 for traffic. Repeatable."
        ),
    ] = None,
    changes: SetOption = None,
    solver: Solver,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve, and tell what limits the plan: shadow prices, the best upgrade, the worst loss, all verified."""
    from planner import report
    from planner.explain import explain as ask

    loaded = load_scenario(scenario, changes, solver)
    result = ask(loaded, design=design, previous=previous, parameters=changes_of(parameters, "--with"))
    write_pages(lambda html: html.explained_page(result, loaded), html, None)
    if as_json:
        print_json(result.to_dict())
    else:
        report.show_explained(result)
    raise typer.Exit(result.exit_code)
