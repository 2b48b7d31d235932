"""The command line: parses, calls, prints. Answers go to standard output, all else to standard error."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from planner import __version__
from planner.errors import InputError, PlannerError

if TYPE_CHECKING:
    from planner.run import Comparison
    from planner.scenario import Scenario
    from planner.system import System

app = typer.Typer(
    help="Plan networked systems: bring a problem, solve it, and compare ways to coordinate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ScenarioArgument = Annotated[
    str, typer.Argument(help="A scenario file, or one that ships with planner, such as traffic/germany50.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the scenario, e.g. problem.scale=2. Repeatable."
    ),
]
BackendOption = Annotated[
    str | None,
    typer.Option("--backend", help="highs, ortools, ortools:SOLVER or pyomo:SOLVER."),
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option("--algorithm", help="auto, simplex, interior-point or pdlp."),
]
TimeOption = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop the solver after this.")
]
GapOption = Annotated[float | None, typer.Option("--gap", help="Relative gap that counts as optimal.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", help="The most threads that the solver may use.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="The solver's random seed.")]
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
MOST_LISTED = 50  # stored runs in a table, where nothing else is asked for
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """Run the command line; every failure is one clear line and the exit code that says its kind."""
    try:
        app(prog_name="planner")
    except PlannerError as error:
        _report(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except MemoryError:
        _say("out of memory: the problem is too large for this machine")
        sys.exit(6)
    except Exception as error:
        if os.environ.get("PLANNER_DEBUG"):
            raise
        text = f"internal error: {type(error).__name__}: " + " ".join(str(error).split())
        _say(text + "; set PLANNER_DEBUG=1 for the traceback, and please report it")
        sys.exit(70)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Plan networked systems: bring a problem, solve it, and compare ways to coordinate."""
    if version:
        typer.echo(f"planner {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise typer.Exit(2)


@app.command("list")
def list_(
    system: Annotated[str | None, typer.Argument(help="A system, to see it whole.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the systems, or a system's designs, parameters, metrics, presets and tables."""
    from planner import report
    from planner.catalogue import find_system, system_names

    if system is None:
        found = [find_system(name) for name in system_names()]
        if as_json:
            _print_json([_describe(one) for one in found])
        else:
            report.show_systems(found)
            _say("planner list SYSTEM shows one whole")
        return
    one = find_system(system)
    if as_json:
        _print_json(_describe(one))
    else:
        from planner.describe import parameters

        report.show_system(one, parameters(one))
        _show_scenarios(one)


@app.command()
def solve(
    scenario: ScenarioArgument,
    design: Annotated[str | None, typer.Option("--design", help="Which design; default: the first.")] = None,
    changes: SetOption = None,
    backend: BackendOption = None,
    algorithm: AlgorithmOption = None,
    time_limit: TimeOption = None,
    gap: GapOption = None,
    threads: ThreadsOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one design on a scenario's problem: the one named, or the scenario's first."""
    from planner import report, run

    loaded = _load(scenario, changes, _solver(backend, algorithm, time_limit, gap, threads, seed))
    result = run.solve(loaded, design=design)
    alone = run.Comparison(system=result.system, problem=result.problem, runs=(result,))
    if out is not None:
        _save(loaded, alone, out, table_format)
    _show(lambda html: html.comparison_page(alone, loaded), html, pictures)
    if as_json:
        _print_json(alone.to_dict())
    else:
        report.show_run(result)
    raise typer.Exit(result.exit_code)


@app.command()
def compare(
    scenario: ScenarioArgument,
    designs: Annotated[
        str | None,
        typer.Option("--designs", metavar="A,B,C", help="Which designs; default: all of the scenario's."),
    ] = None,
    changes: SetOption = None,
    backend: BackendOption = None,
    algorithm: AlgorithmOption = None,
    time_limit: TimeOption = None,
    gap: GapOption = None,
    threads: ThreadsOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run several designs on one problem and print their metrics side by side."""
    from planner import report, run

    loaded = _load(scenario, changes, _solver(backend, algorithm, time_limit, gap, threads, seed))
    result = run.compare(loaded, designs=_labels(designs))
    if out is not None:
        _save(loaded, result, out, table_format)
    _show(lambda html: html.comparison_page(result, loaded), html, pictures)
    if as_json:
        _print_json(result.to_dict())
    else:
        report.show_comparison(result)
    raise typer.Exit(result.exit_code)


@app.command()
def roll(
    scenario: ScenarioArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where each window goes when it is finished.")
    ],
    designs: Annotated[
        str | None,
        typer.Option("--designs", metavar="A,B,C", help="Which designs; default: all of the scenario's."),
    ] = None,
    changes: SetOption = None,
    backend: BackendOption = None,
    algorithm: AlgorithmOption = None,
    time_limit: TimeOption = None,
    gap: GapOption = None,
    threads: ThreadsOption = None,
    seed: SeedOption = None,
    table_format: FormatOption = "parquet",
    as_json: JsonOption = False,
) -> None:
    """Run designs on consecutive problems, such as the windows of a trace, each from the last plan.

    Stopped and started again, it goes on after the last window that was finished.
    """
    from planner import report, rolling

    loaded = _load(scenario, changes, _solver(backend, algorithm, time_limit, gap, threads, seed))
    roll = rolling.start(loaded, designs=_labels(designs), out=out, table_format=table_format)
    windows = []
    with report.progress("windows", len(roll)) as advance:
        for window in roll:
            windows.append(window)
            advance()
    kept = sum(window.kept for window in windows)
    _say(f"saved {len(windows)} windows in {out}" + (f", of which {kept} were there before" if kept else ""))
    if as_json:
        runs = [{"window": window.label, **window.run} for window in windows]
        _print_json({"system": loaded.system.name, "runs": runs})
    else:
        report.show_windows(loaded.system, windows)
    raise typer.Exit(next((window.exit_code for window in windows if window.exit_code), 0))


@app.command()
def sweep(
    scenarios: Annotated[
        list[str], typer.Argument(metavar="SCENARIO...", help="Scenario files, or names of shipped ones.")
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
    backend: BackendOption = None,
    algorithm: AlgorithmOption = None,
    time_limit: TimeOption = None,
    gap: GapOption = None,
    threads: ThreadsOption = None,
    seed: SeedOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run scenarios over a grid of values, on all cores or a cluster, and keep every run.

    Stopped in whatever way, the same command goes on: what is done is not done again.
    """
    from planner import sweep_report, sweeping

    grid = sweeping.grid_of(
        scenarios,
        axes=_axes(changes),
        designs=_labels(designs),
        zipped=zipped,
        options=_solver(backend, algorithm, time_limit, gap, threads, seed),
        plans=plans,
        warm=warm,
    )
    if dry_run:
        cost = sweeping.estimate(grid, out)
        if as_json:
            points = [{**point.values, "label": point.request.label} for point in grid.points]
            _print_json({**asdict(cost), "axes": list(grid.axes), "grid": points})
        else:
            number = None if cluster else sweeping.worker_count(grid, cost.left, workers)
            sweep_report.show_grid(grid, cost, number)
        return
    with sweep_report.progress() as advance:
        result = sweeping.run_grid(
            grid, out, workers=workers, memory=memory, cluster=cluster, advance=advance
        )
    if as_json:
        _print_json(result.to_dict())
    elif len(result.runs):
        sweep_report.show_sweep(result)
    _show(lambda html: html.sweep_page(result), html, None)
    for line in sweeping.told(result.failures):
        typer.secho(line, err=True, fg="red")
    _say(f"{len(result.runs):,} of {len(grid):,} points are in {out}, {result.made:,} runs made now")
    if result.interrupted:
        _say("stopped before the end; the same command goes on from here")
    raise typer.Exit(result.exit_code)


@app.command()
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
    from planner.store import Store, export

    exported = csv is not None or parquet is not None
    wanted = None if columns in (None, "all") else _labels(columns)
    most = limit if limit is not None else None if exported or as_json else MOST_LISTED
    with Store(store) as opened:
        frame = opened.runs(where, columns=wanted, sort=sort, limit=most)
        total = len(frame) if most is None else opened.count(where)
    for path, suffix in ((csv, ".csv"), (parquet, ".parquet")):
        if path is not None:
            export(frame, path, suffix)
            _say(f"wrote {len(frame):,} runs to {path}")
    if as_json:
        _print_json(frame.astype(object).where(frame.notna(), None).to_dict(orient="records"))
    elif not exported:
        sweep_report.show_runs(frame if columns else frame[sweep_report.usual_columns(frame)])
        _say(f"{len(frame):,} of {total:,} runs" + ("; --limit shows more" if len(frame) < total else ""))


@app.command()
def explain(
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
    backend: BackendOption = None,
    algorithm: AlgorithmOption = None,
    time_limit: TimeOption = None,
    gap: GapOption = None,
    threads: ThreadsOption = None,
    seed: SeedOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve, and tell what limits the plan: shadow prices, the best upgrade, the worst loss, all verified."""
    from planner import report
    from planner.explain import explain as ask

    loaded = _load(scenario, changes, _solver(backend, algorithm, time_limit, gap, threads, seed))
    result = ask(loaded, design=design, previous=previous, parameters=_changes(parameters, "--with"))
    _show(lambda html: html.explained_page(result, loaded), html, None)
    if as_json:
        _print_json(result.to_dict())
    else:
        report.show_explained(result)
    raise typer.Exit(result.exit_code)


@app.command()
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

    given = _changes(changes)
    if seed is not None:
        given["seed"] = seed
    size = files.generate(system, preset, given, out, table_format)
    _say(f"wrote {report.sizes(size)} to {out}; solve with: planner compare {out / 'scenario.toml'}")


@app.command()
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

    model = files.export(_load(scenario, changes, {}), design, out, format_)
    _say(f"wrote the model of {model.design} to {out}: {model.rows:,} rows, {model.columns:,} columns")


@app.command()
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

    loaded = _load(scenario, changes, {})
    problem = loaded.make_problem()
    if plan is None:
        if as_json:
            _print_json({"system": loaded.system.name, "problem": {"size": problem.size()}, "valid": True})
        else:
            _say(f"{scenario}: valid; {report.sizes(problem.size())}")
        return
    violations, metrics = files.check_plan(loaded.system, problem, plan)
    if as_json:
        rows = violations.frame.to_dict(orient="records")
        _print_json({"system": loaded.system.name, "violations": rows, "metrics": metrics})
    else:
        report.show_metrics(loaded.system, metrics)
        report.show_violations(violations, "plan")
        if not len(violations):
            _say("plan: keeps every limit")


@app.command()
def reproduce(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET]...", help="Such as multicast/figure_5a, or multicast for all its."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every target of every system.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller or shorter runs: seconds each.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Save verdicts.csv and each curve in this folder."),
    ] = None,
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a paper's table or figure again: each published value beside ours. Without a target, list them."""
    from planner import report
    from planner import reproduce as reproduction

    chosen = reproduction.find_targets(None if everything or not targets else targets)
    if not targets and not everything:
        if as_json:
            names = [
                {"target": f"{system.name}/{target.name}", "place": target.place, "about": target.about}
                for system, target in chosen
            ]
            _print_json(names)
        else:
            report.show_targets(chosen)
            _say("planner reproduce TARGET... runs some, --all runs all")
        return
    done = []
    with report.progress("targets", len(chosen)) as advance:
        for system, target in chosen:
            done.append(reproduction.reproduce(system, target, quick=quick))
            if not as_json:
                report.show_reproduction(done[-1])
            advance()
    if out is not None:
        reproduction.save(done, out)
        _say(f"saved verdicts and curves in {out}")
    _show(lambda html: html.reproduction_page(done), html, pictures)
    if as_json:
        _print_json([one.to_dict() for one in done])
    else:
        report.show_verdicts(done)
    raise typer.Exit(next((one.error.exit_code for one in done if one.error is not None), 0))


@app.command()
def recipes(
    resources: Annotated[
        str | None,
        typer.Option("--resources", help="Do they decide over the same devices? disjoint, partial or full."),
    ] = None,
    information: Annotated[
        str | None, typer.Option("--information", help="What can be told: none, incomplete or complete.")
    ] = None,
    separation: Annotated[
        str | None,
        typer.Option(
            "--separation",
            help="Why control is split: layering, companies, departments, timescale, granularity, line-rate.",
        ),
    ] = None,
    decide_s: Annotated[
        float | None, typer.Option("--decide-s", metavar="S", help="Seconds that a good decision takes.")
    ] = None,
    react_s: Annotated[
        float | None, typer.Option("--react-s", metavar="S", help="Seconds that events leave for an answer.")
    ] = None,
    measured: Annotated[
        bool, typer.Option("--measure", help="Measure what coordination is worth, in every system.")
    ] = False,
    systems: Annotated[
        list[str] | None, typer.Option("--system", help="With --measure: only this system. Repeatable.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="STORE", help="With --measure: keep the runs in this store."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="With --measure: processes; default: one a core.")
    ] = None,
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how control planes can coordinate, and which way suits yours: give what constrains them."""
    from planner import recipes as design_space
    from planner import report

    if measured:
        _measure(systems, out, workers, html, pictures, as_json)
        return
    given = (resources, information, separation, decide_s, react_s)
    if all(one is None for one in given):
        reviews = design_space.review()
        if as_json:
            _print_json([one.to_dict() for one in reviews])
        else:
            report.show_design_space(reviews)
            _say("planner recipes --resources ... --separation ... recommends one for your constraints")
        return
    if resources is None:
        raise InputError("--resources: is missing; one of disjoint, partial, full")
    advice = design_space.recommend(
        resources=resources,
        information=information,
        separation=separation,
        decide_s=decide_s,
        react_s=react_s,
    )
    if as_json:
        _print_json(advice.to_dict())
    else:
        report.show_advice(advice)


@app.command()
def dashboard(
    stores: Annotated[
        list[Path] | None,
        typer.Option(
            "--store", metavar="STORE", help="A sweep's folder that the page Sweeps opens. Repeatable."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; loopback unless told otherwise.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port to listen on.")] = 8501,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes that solve; default: one for each core, at most 4."),
    ] = None,
    memory: Annotated[
        int,
        typer.Option("--memory", metavar="MB", min=256, help="The most memory that each of them may use."),
    ] = 2048,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Open the what-if dashboard: change a problem, compare designs, look at sweeps."""
    from planner import dashboard as serving

    serving.serve(stores or [], host=host, port=port, workers=workers, memory_mb=memory, browser=browser)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Show which backends work here: their versions, and one tiny solve each."""
    from planner import backends, report

    found = backends.available()
    if as_json:
        _print_json([asdict(one) for one in found])
    else:
        report.show_found(found)
    if any(one.passed is False for one in found):
        raise typer.Exit(6)


# --- what the commands share --------------------------------------------------------------


def _load(scenario: str, changes: list[str] | None, solver: dict[str, Any]) -> Scenario:
    from planner.scenario import load

    return load(scenario, changes=_changes(changes), options=solver)


def _solver(
    backend: str | None,
    algorithm: str | None,
    time_limit: float | None,
    gap: float | None,
    threads: int | None,
    seed: int | None,
) -> dict[str, Any]:
    given = {
        "backend": backend,
        "algorithm": algorithm,
        "time_limit_s": time_limit,
        "gap": gap,
        "threads": threads,
        "seed": seed,
    }
    return {name: value for name, value in given.items() if value is not None}


def _measure(
    systems: list[str] | None,
    out: Path | None,
    workers: int | None,
    html: Path | None,
    pictures: Path | None,
    as_json: bool,
) -> None:
    from planner import coordination, report, sweep_report

    with sweep_report.progress() as advance:
        found = coordination.measure(systems, out=out, workers=workers, advance=advance)
    _show(lambda pages: pages.coordination_page(found), html, pictures)
    if as_json:
        _print_json([row for one in found for row in one.frame.to_dict(orient="records")])
    else:
        report.show_coordination(found)


def _labels(designs: str | None) -> list[str] | None:
    return None if designs is None else [label.strip() for label in designs.split(",") if label.strip()]


def _axes(given: list[str] | None) -> dict[str, list[Any]]:
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


def _changes(given: list[str] | None, option: str = "--set") -> dict[str, Any]:
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


def _value(text: str) -> Any:
    """A value as TOML has it; what is none is text, so that quotes may be left out."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _save(scenario: Scenario, comparison: Comparison, out: Path, table_format: str) -> None:
    from planner import files, report

    files.save(scenario, comparison.runs, out, table_format)
    report.save_text(out / "report.txt", comparison)
    _say(f"saved scenario, plans, metrics and report in {out}")


def _show(make: Callable[[Any], Any], path: Path | None, pictures: Path | None) -> None:
    """Write the page and the pictures that were asked for; `make` takes the module that lays pages out."""
    if path is None and pictures is None:
        return
    from planner import html

    page = make(html)
    if path is not None:
        html.write(page, path)
        _say(f"wrote the report to {path}")
    if pictures is not None:
        count = html.save_pictures(page, pictures)
        _say(f"saved {count} pictures in {pictures}")


def _describe(system: System) -> dict[str, Any]:
    from planner.describe import describe

    return describe(system)


def _show_scenarios(system: System) -> None:
    from planner.scenario import shipped

    names = [name for name in shipped() if name.startswith(system.name + "/")]
    _say(f"scenarios that ship with planner: {', '.join(names) or 'none'}")


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _report(error: PlannerError) -> None:
    for line in str(error).splitlines():
        typer.secho(line, err=True, fg="red")


if __name__ == "__main__":
    main()
