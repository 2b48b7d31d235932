"""Commands that run many scenarios, and list stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import completion
from planner.cli.options import JsonOption, Reports, Solver, axes_of, designs_of, with_reports, with_solver
from planner.cli.output import (
    answer,
    name_other_designs,
    print_json,
    report_notes,
    say,
    say_line,
    write_files,
)
from planner.formatting import counted, counted_of, split_names

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED = 50  # stored runs in a table by default


@with_solver
@with_reports
def sweep(
    *,
    scenarios: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario files, or names of shipped ones.",
            autocompletion=completion.complete_scenario,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="STORE", help="The folder that stores every run; stored runs are not repeated."
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=V1,V2,...", help="Values of a key, e.g. problem.scale=1,2. Repeatable."
        ),
    ] = None,
    designs: Annotated[
        str | None,
        typer.Option("--designs", metavar="A,B,C", help="Designs to run; default: all of each scenario's."),
    ] = None,
    zipped: Annotated[
        bool,
        typer.Option(
            "--zip",
            help="Combine first values with first, second with second, not all with all.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the grid and its estimated time; run nothing.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes; default: one for each core."),
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Maximum memory of each worker, e.g. 4GB.")
    ] = "auto",
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
    ] = None,
    plans: Annotated[bool, typer.Option("--plans/--no-plans", help="Store the plans too.")] = True,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Let runs start from a neighbour's decision; stored separately."),
    ] = False,
    solver: Solver,
    reports: Reports,
    as_json: JsonOption = False,
) -> None:
    """Run scenarios over a grid of values, and store every run.

    On all cores of this machine, or on a Dask cluster.

    After an interruption, the same command continues; finished runs are not repeated.
    """
    from planner.reports import catalogue_pages, terminal
    from planner.sweeps import sweep as sweeping

    grid = sweeping.load_grid(
        scenarios,
        axes=axes_of(changes),
        designs=designs_of(designs),
        zipped=zipped,
        options=solver,
        plans=plans,
        warm=warm,
    )
    for system in grid.of_usual_designs:
        name_other_designs(system, "runs")
    if dry_run:
        cost = sweeping.estimate(grid, out)
        points = [{**point.values, "label": point.request.label} for point in grid.points]
        number = None if cluster else sweeping.worker_count(grid, cost.remaining, workers)
        plain = {**asdict(cost), "axes": list(grid.axes), "grid": points}
        answer(catalogue_pages.grid_page(grid, cost, number), lambda: plain, as_json)
        return
    with report_notes(), terminal.progress("runs") as advance:
        result = sweeping.run_grid(
            grid, out, workers=workers, memory=memory, cluster=cluster, advance=advance
        )
    page = catalogue_pages.sweep_page(result)
    answer(page, result.to_dict, as_json)
    write_files(lambda: page, reports)
    for line in sweeping.summarize_failures(result.failures):
        say_line(line, "red")
    say(
        f"{counted_of(len(result.runs), len(grid), 'points', 'are')} in {out}, "
        f"{counted(result.made, 'runs')} made now"
    )
    if result.interrupted:
        say("interrupted before the end; the same command continues from here")
    raise typer.Exit(result.exit_code)


def runs(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="The folder in which a sweep stores its runs.")
    ],
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="FILTER", help="e.g. 'system = traffic and problem.scale >= 2'."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B,C", help="Columns to list, or 'all'.")
    ] = None,
    sort: Annotated[
        str | None, typer.Option("--sort", metavar="COLUMN", help="Order; -COLUMN for the largest first.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=0, help="Maximum number of runs; default: 50 in a table, else all."
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write them as CSV.")] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write them as Parquet.")
    ] = None,
    salvage: Annotated[
        bool,
        typer.Option("--salvage", help="Save what can be read of a damaged store; the old file is kept."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List, filter and export stored runs, also during a sweep."""
    from planner.store.store import Store

    if salvage:
        _salvage(store)

    exported = csv is not None or parquet is not None
    names = None if columns in (None, "all") else split_names(columns)
    limit_ = limit if limit is not None else None if exported or as_json else MAX_LISTED
    with Store(store) as opened:
        if exported:
            _export(opened.runs(where, columns=names, sort=sort, limit=limit_), csv, parquet)
            if not as_json:
                return
        values = opened.values(where, columns=names, sort=sort, limit=limit_)
        total = opened.count(where)
    if as_json:
        print_json([dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)])
        return
    _show_runs(values, None if columns is None else list(values), total)


def _show_runs(values: Mapping[str, list[Any]], columns: Sequence[str] | None, total: int) -> None:
    """Print stored runs by column, and their number beside that of all."""
    from planner.cli.listings import runs_page
    from planner.reports import terminal

    count = len(next(iter(values.values())))
    terminal.show(runs_page(values, columns, terminal.console.width, _headlines(values)))
    say(f"{count:,} of {total:,} runs" + ("; --limit shows more" if count < total else ""))


def _headlines(values: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the columns of the headline metrics of all systems among stored runs."""
    systems = set(values.get("system", ()))
    if not systems:
        return []
    from planner.scenarios.description_cache import describe_all
    from planner.store.record import column_of

    names = [
        name
        for description in describe_all()
        if description["system"] in systems
        for name in description["headline"]
    ]
    return list(dict.fromkeys(column_of(name) for name in names))


def _salvage(store: Path) -> None:
    """Save what can be read of a damaged store, and say how much."""
    from planner.store.salvage import salvage

    saved = salvage(store)
    say(f"salvaged {saved.runs:,} runs of {store}; the damaged file is kept as {saved.kept}")
    if saved.damaged_plans:
        say(f"{saved.damaged_plans:,} of their plans are lost or damaged; the same sweep makes them again")


def _export(frame: pd.DataFrame, csv: Path | None, parquet: Path | None) -> None:
    from planner.io.table_files import export_table

    for path, suffix in ((csv, ".csv"), (parquet, ".parquet")):
        if path is not None:
            export_table(frame, path, suffix)
            say(f"wrote {counted(len(frame), 'runs')} to {path}")
