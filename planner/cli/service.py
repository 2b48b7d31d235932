"""Commands about planner itself: what there is, what works here, and the dashboard."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.options import JsonOption
from planner.cli.output import print_json, say


def list_(
    system: Annotated[str | None, typer.Argument(help="A system, to see it whole.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the systems, or a system's designs, parameters, metrics, presets and tables."""
    from planner import report
    from planner.catalogue import find_system, system_names
    from planner.describe import describe, parameters

    if system is None:
        found = [find_system(name) for name in system_names()]
        if as_json:
            print_json([describe(one) for one in found])
        else:
            report.show_systems(found)
            say("planner list SYSTEM shows one whole")
        return
    one = find_system(system)
    if as_json:
        print_json(describe(one))
    else:
        report.show_system(one, parameters(one))
        _show_scenarios(one.name)


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


def doctor(as_json: JsonOption = False) -> None:
    """Show which backends work here: their versions, and one tiny solve each."""
    from planner import backends, report

    found = backends.available()
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        report.show_found(found)
    if any(one.passed is False for one in found):
        raise typer.Exit(6)


def _show_scenarios(system: str) -> None:
    from planner.scenario import shipped

    names = [name for name in shipped() if name.startswith(f"{system}/")]
    say(f"scenarios that ship with planner: {', '.join(names) or 'none'}")
