"""Commands that run many scenarios and look at what was kept."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import HtmlOption, JsonOption, Solver, axes_of, labels_of, solving
from planner.cli.output import print_json, say, write_pages

MOST_LISTED = 50  # stored runs in a table, where nothing else is asked for


@solving
def sweep(
    *,
    scenarios: Annotated[
        list[str], typer.Argument(metavar="SCENARIO", help="Scenario files, or names of shipped ones.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="STORE", help="The folder that keeps every run; it goes on from there."
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
        typer.Option("--designs", metavar="A,B,C", help="Which designs; default: all of each scenario's."),
    ] = None,
    zipped: Annotated[
        bool, typer.Option("--zip", help="Take values of all keys side by side, not in every combination.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the grid and its estimated time; run nothing.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: one for each core.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="The most that each worker may use, e.g. 4GB.")
    ] = "auto",
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
    ] = None,
    plans: Annotated[bool, typer.Option("--plans/--no-plans", help="Keep the plans too.")] = True,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Let runs start from a neighbour's decision; kept apart from others."),
    ] = False,
    solver: Solver,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run scenarios over a grid of values, on all cores or a cluster, and keep every run.

    Stopped in whatever way, the same command goes on: what is done is not done again.
    """
    from planner import sweep_report, sweeping

    grid = sweeping.grid_of(
        scenarios,
        axes=axes_of(changes),
        designs=labels_of(designs),
        zipped=zipped,
        options=solver,
        plans=plans,
        warm=warm,
    )
    if dry_run:
        cost = sweeping.estimate(grid, out)
        if as_json:
            points = [{**point.values, "label": point.request.label} for point in grid.points]
            print_json({**asdict(cost), "axes": list(grid.axes), "grid": points})
        else:
            number = None if cluster else sweeping.worker_count(grid, cost.left, workers)
            sweep_report.show_grid(grid, cost, number)
        return
    with sweep_report.progress() as advance:
        result = sweeping.run_grid(
            grid, out, workers=workers, memory=memory, cluster=cluster, advance=advance
        )
    if as_json:
        print_json(result.to_dict())
    elif len(result.runs):
        sweep_report.show_sweep(result)
    write_pages(lambda html: html.sweep_page(result), html, None)
    for line in sweeping.told(result.failures):
        typer.secho(line, err=True, fg="red")
    say(f"{len(result.runs):,} of {len(grid):,} points are in {out}, {result.made:,} runs made now")
    if result.interrupted:
        say("stopped before the end; the same command goes on from here")
    raise typer.Exit(result.exit_code)


def runs(
    store: Annotated[Path, typer.Argument(help="The folder that a sweep keeps its runs in.")],
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="FILTER", help="e.g. 'system = traffic and problem.scale >= 2'."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B,C", help="Which columns; 'all' for every one.")
    ] = None,
    sort: Annotated[
        str | None, typer.Option("--sort", metavar="COLUMN", help="Order; -COLUMN for the largest first.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=0, help="The most runs; default: 50 in a table, else all.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write them as CSV.")] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write them as Parquet.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List, filter and export stored runs; a sweep may be writing meanwhile."""
    from planner import sweep_report
    from planner.store import Store

    exported = csv is not None or parquet is not None
    wanted = None if columns in (None, "all") else labels_of(columns)
    most = limit if limit is not None else None if exported or as_json else MOST_LISTED
    with Store(store) as opened:
        frame = opened.runs(where, columns=wanted, sort=sort, limit=most)
        total = len(frame) if most is None else opened.count(where)
    for path, suffix in ((csv, ".csv"), (parquet, ".parquet")):
        if path is not None:
            from planner.table_files import export  # imports pandera, which takes long

            export(frame, path, suffix)
            say(f"wrote {len(frame):,} runs to {path}")
    if as_json:
        print_json(frame.astype(object).where(frame.notna(), None).to_dict(orient="records"))
    elif not exported:
        sweep_report.show_runs(frame if columns else frame[sweep_report.usual_columns(frame)])
        say(f"{len(frame):,} of {total:,} runs" + ("; --limit shows more" if len(frame) < total else ""))
