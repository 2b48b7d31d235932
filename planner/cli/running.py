"""Commands that run designs on a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.options import (
    AllMetricsOption,
    AtOption,
    DesignOption,
    DesignsOption,
    FormatOption,
    JsonOption,
    OutOption,
    PicturesOption,
    PlansOption,
    PreviousOption,
    Reports,
    changes_of,
    events_of,
    on_scenario,
    plans_of,
    with_reports,
)
from planner.cli.output import (
    answer,
    name_default_design,
    name_other_designs,
    save,
    say,
    show_work,
    write_files,
)
from planner.formatting import counted

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario


@on_scenario()
@with_reports
def solve(
    *,
    scenario: Scenario,
    design: DesignOption = None,
    previous: PreviousOption = None,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    reports: Reports,
    pictures: PicturesOption = None,
    all_metrics: AllMetricsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run one design on a problem, and print its plan and metrics."""
    from planner.reports import run_pages
    from planner.runs import evaluation

    name_default_design(scenario, design)
    with show_work(f"solving {scenario.name}"):
        result = evaluation.solve(scenario, design=design, previous=previous)
    alone = result.alone()
    if out is not None:
        save(scenario, alone, out, table_format)
    write_files(lambda: run_pages.document_page(alone, scenario), reports, pictures)
    answer(run_pages.run_page(result, all_metrics=all_metrics), alone.to_dict, as_json)
    raise typer.Exit(result.exit_code)


@on_scenario()
@with_reports
def compare(
    *,
    scenario: Scenario,
    designs: DesignsOption = None,
    plans: PlansOption = None,
    previous: PreviousOption = None,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    reports: Reports,
    pictures: PicturesOption = None,
    all_metrics: AllMetricsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run several designs on a problem, and compare their metrics."""
    from planner.reports import run_pages
    from planner.runs import evaluation
    from planner.scenarios.scenario import Additions, with_additions

    scenario = with_additions(scenario, Additions(plans=plans_of(plans)))

    if designs is None and not scenario.designs:
        name_other_designs(scenario.system, "compares")
    with show_work(f"comparing designs on {scenario.name}"):
        result = evaluation.compare(scenario, designs=designs, previous=previous)
    page = run_pages.comparison_page(result, scenario, all_metrics=all_metrics)
    if out is not None:
        save(scenario, result, out, table_format)
    write_files(lambda: run_pages.document_page(result, scenario), reports, pictures)
    answer(page, result.to_dict, as_json)
    raise typer.Exit(result.exit_code)


@on_scenario()
@with_reports
def diff(
    *,
    scenario: Scenario,
    before: Annotated[
        str,
        typer.Argument(metavar="BEFORE", help="The plan in place: a folder or file of tables, or a design."),
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The plan to change to, in the same forms.")],
    steps: Annotated[
        bool, typer.Option("--steps/--no-steps", help="Order the change in steps, where the system has them.")
    ] = True,
    reports: Reports,
    as_json: JsonOption = False,
) -> None:
    """Show the changes from one plan to another, in steps."""
    from planner.reports import run_pages
    from planner.runs import diff as diffs

    with show_work(f"comparing plans of {scenario.name}"):
        result = diffs.diff(scenario, before, after, steps=steps)
    page = run_pages.plan_change_page(result)
    write_files(lambda: page, reports)
    answer(page, result.to_dict, as_json)


@on_scenario()
def roll(
    *,
    scenario: Scenario,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the finished windows.")],
    designs: DesignsOption = None,
    at: AtOption = None,
    windows: Annotated[
        int | None,
        typer.Option("--windows", metavar="N", min=1, help="Repeat a source of one problem N times."),
    ] = None,
    table_format: FormatOption = "parquet",
    as_json: JsonOption = False,
) -> None:
    """Run designs on problems in turn, each from the last plan.

    Such problems are the windows of a trace, or a series of demand matrices.

    With --at, a link fails or another adjustment changes from a window on.

    For each design the folder has windows.csv with metrics, and windows/N with plan and proof.

    After an interruption, the same command continues with the first unfinished window.
    """
    from planner.reports import run_pages, terminal
    from planner.runs import rolling

    if designs is None and not scenario.designs:
        name_other_designs(scenario.system, "runs")
    with terminal.progress("windows") as advance:
        result = rolling.roll(
            scenario,
            designs=designs,
            out=out,
            table_format=table_format,
            events=events_of(at),
            windows=windows,
            advance=advance,
        )
    before = sum(window.kept for window in result)
    say(
        f"saved {counted(len(result), 'windows')} in {out}"
        + (f", of which {before} existed before" if before else "")
    )
    page = run_pages.windows_page(scenario.system, result.windows)
    answer(page, result.to_dict, as_json)
    raise typer.Exit(result.exit_code)


@on_scenario()
@with_reports
def simulate(
    *,
    scenario: Scenario,
    designs: DesignsOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Save the records of each simulation in this folder."),
    ] = None,
    table_format: FormatOption = "parquet",
    reports: Reports,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a system in time, with designs as its controllers.

    The scenario's [simulation] section, or --set simulation.KEY=VALUE, sets duration and conditions.
    """
    from planner.reports import run_pages
    from planner.runs import simulate as simulations

    with show_work(f"simulating {scenario.name}"):
        result = simulations.simulate(scenario, designs=designs, frames=bool(reports))
    page = run_pages.simulation_page(result, scenario)
    if out is not None:
        simulations.save(result, scenario, out, table_format)
        say(f"saved the scenario and the records of each simulation in {out}")
    write_files(lambda: page, reports, pictures)
    answer(page, result.to_dict, as_json)
    raise typer.Exit(result.exit_code)


@on_scenario()
@with_reports
def explain(
    *,
    scenario: Scenario,
    design: DesignOption = None,
    previous: PreviousOption = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="KEY=VALUE",
            help="Parameter of the explanation, e.g. candidates=20 for traffic. Repeatable.",
        ),
    ] = None,
    reports: Reports,
    as_json: JsonOption = False,
) -> None:
    """Solve, and explain what limits the plan and what would help.

    Shadow prices, the best upgrade and the worst loss; each is verified by solving again.
    """
    from planner.reports import run_pages
    from planner.runs import what_if

    settings = changes_of(parameters, "--with")
    name_default_design(scenario, design)
    with show_work(f"explaining {scenario.name}"):
        result = what_if.explain(scenario, design=design, previous=previous, **settings)
    page = run_pages.explained_page(result, scenario)
    write_files(lambda: page, reports)
    answer(page, result.to_dict, as_json)
    raise typer.Exit(result.exit_code)
