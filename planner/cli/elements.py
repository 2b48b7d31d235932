"""Commands about the elements of a problem: which failures hurt, and what to buy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from planner.cli.options import (
    DesignOption,
    FormatOption,
    JsonOption,
    OutOption,
    PreviousOption,
    Reports,
    changes_of,
    on_scenario,
    with_reports,
)
from planner.cli.output import answer, name_default_design, say, write_files
from planner.errors import InputError
from planner.options import Restoration

if TYPE_CHECKING:
    from planner.reports.document import Page
    from planner.scenarios.scenario import Scenario
    from planner.sweeps.failure_list import Failures
    from planner.sweeps.upgrade_list import Upgrades

WorkersOption = Annotated[
    int,
    typer.Option("--workers", metavar="N", min=1, help="Processes on this machine; default: 1, this one."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
]


FailureSets = Annotated[
    str | None,
    typer.Option(
        "--failures",
        metavar="A,B",
        help="Sets of failures: table, links, nodes, double_links; default: the table of failures where "
        "there is one, else each element alone.",
    ),
]
RestorationOption = Annotated[
    Restoration | None,
    typer.Option(
        "--restoration",
        help="After a failure: none, local (to routes that survive), reconverge (new shortest paths), "
        "reroute (what the plan sends), reoptimize (all demands); default: what the design is made for, "
        "else it decides again.",
    ),
]


@on_scenario()
@with_reports
def failures(
    *,
    scenario: Scenario,
    design: DesignOption = None,
    sets: FailureSets = None,
    restoration: RestorationOption = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="DIR", help="Examine the plan in this folder, not a design's."),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option("--kinds", metavar="A,B", help="Kinds of elements, e.g. link,node; default: all."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="Most failures to try, the busiest elements first."),
    ] = None,
    workers: WorkersOption = 1,
    cluster: ClusterOption = None,
    reports: Reports,
    as_json: JsonOption = False,
) -> None:
    """Try each failure, and list the worst.

    Each element fails alone, or the failures of a set occur one at a time. Elements are links, nodes and
    what else the system declares; `planner list SYSTEM` names them.
    Ctrl-C stops, and prints what was found until then.
    """
    from planner.reports import element_pages, terminal
    from planner.sweeps import failures as search

    if plan is None:
        name_default_design(scenario, design)
    with terminal.progress("failures") as advance:
        result = search.failures(
            scenario,
            design=design,
            failures=sets,
            restoration=restoration,
            plan=plan,
            kinds=kinds,
            limit=limit,
            workers=workers,
            cluster=cluster,
            advance=advance,
        )
    _answer(result, element_pages.failures_page(result, scenario), reports, as_json)


@on_scenario()
@with_reports
def upgrades(
    *,
    scenario: Scenario,
    design: DesignOption = None,
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=0, help="Most upgrades to buy; default: 10.")
    ] = 10,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="AMOUNT", help="Most to spend; upgrades count 1 without costs."),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option("--kinds", metavar="A,B", help="Kinds of elements, e.g. link; default: all."),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option("--candidates", metavar="N", min=1, help="Most upgrades to solve for each step."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Find also the cheapest set that serves all, with a proof.")
    ] = False,
    workers: WorkersOption = 1,
    cluster: ClusterOption = None,
    reports: Reports,
    as_json: JsonOption = False,
) -> None:
    """List upgrades to buy within a budget.

    Each step is the upgrade that gains most after those before it, per cost where the tables have costs.
    Where nothing is lost, upgrades are ranked by how far demand can grow. Ctrl-C stops, and prints the
    steps found until then.
    """
    from planner.reports import element_pages, terminal
    from planner.sweeps import upgrades as search

    name_default_design(scenario, design)
    with terminal.progress("candidates of the next step") as advance:
        result = search.upgrades(
            scenario,
            design=design,
            steps=steps,
            budget=budget,
            kinds=kinds,
            candidates=candidates,
            exact=exact,
            workers=workers,
            cluster=cluster,
            advance=advance,
        )
    _answer(result, element_pages.upgrades_page(result, scenario), reports, as_json)


@on_scenario()
@with_reports
def alternatives(
    *,
    scenario: Scenario,
    within: Annotated[
        str, typer.Option("--within", metavar="SHARE", help="Most that a plan may lose, such as 1% or 0.01.")
    ] = "1%",
    goals: Annotated[
        list[str] | None,
        typer.Option(
            "--goal",
            metavar="AIM[=NAME]",
            help="Aim of a plan, such as fewest_links or least_through=Koeln; default: all without a name. "
            "Repeatable.",
        ),
    ] = None,
    design: DesignOption = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="NAME=VALUE", help="Parameter of the model, such as paths=4. Repeatable."
        ),
    ] = None,
    previous: PreviousOption = None,
    out: OutOption = None,
    table_format: FormatOption = "parquet",
    reports: Reports,
    as_json: JsonOption = False,
) -> None:
    """Find other plans that are nearly as good as the optimum.

    Each plan loses at most a share of the optimum's objective, and is as good as possible in an aim of its
    own: fewest links, least traffic through a node, or as different from the optimum as possible.
    """
    from planner.reports import run_pages, terminal
    from planner.runs import alternatives as search
    from planner.runs import files

    with terminal.progress("plans") as advance:
        result = search.alternatives(
            scenario,
            within=_share_of(within),
            goals=goals,
            design=design,
            previous=previous,
            advance=advance,
            **changes_of(parameters, "--with"),
        )
    if out is not None:
        files.save_runs(scenario, result.named_runs, out, table_format)
        say(f"saved scenario, plans and metrics in {out}")
    page = run_pages.alternatives_page(result, scenario)
    write_files(lambda: page, reports)
    answer(page, result.to_dict, as_json)
    raise typer.Exit(result.exit_code)


def _share_of(text: str) -> float:
    """Return a share that is written as a number or in percent; InputError for another text."""
    plain = text.strip()
    try:
        return float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        raise InputError(f"--within {text}: must be a share, such as 1% or 0.01") from None


def _answer(result: Failures | Upgrades, page: Page, reports: Reports, as_json: bool) -> NoReturn:
    """Print and write the result of a search, and end with its exit code."""
    write_files(lambda: page, reports)
    answer(page, result.to_dict, as_json)
    if result.is_interrupted:
        say("interrupted before the end")
    raise typer.Exit(result.exit_code)
