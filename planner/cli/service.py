"""Commands about planner itself: the systems, the backends, and the dashboard."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from planner.cli import completion
from planner.cli.listings import SECTIONS, Description, system_page, systems_page
from planner.cli.options import JsonOption
from planner.cli.output import answer, report_compiling, say
from planner.errors import InputError, did_you_mean
from planner.extras import needed_by
from planner.scenarios.shipped import FOLDERS, scenario_names, scenario_title

MAX_UPLOAD_MB: Final = 50


def list_(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="SYSTEM", help="A system, for its details.", autocompletion=completion.complete_system
        ),
    ] = None,
    sections: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            metavar="SECTION",
            help=f"Only this part of the details: {', '.join(SECTIONS)}. Repeatable.",
            autocompletion=completion.complete_section,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List systems, or the designs, tables and parameters of one."""
    from planner.scenarios.description_cache import describe_all

    _require_sections(sections or ())
    descriptions = {item["system"]: item for item in describe_all()}
    if system is None:
        if sections:
            raise InputError("--section: needs a system, as in: planner list traffic --section designs")
        every = list(descriptions.values())
        answer(systems_page(every), lambda: every, as_json)
        if not as_json:
            say("planner list SYSTEM shows the details of one")
        return
    if system not in descriptions:
        raise InputError(f"{system}: no such system" + did_you_mean(system, descriptions))
    titles = {name: scenario_title(name) for name in scenario_names() if name.startswith(f"{system}/")}
    description = descriptions[system]
    answer(
        system_page(description, titles, sections or SECTIONS),
        lambda: _plain(description, list(titles), sections),
        as_json,
    )


def _plain(one: Description, scenarios: list[str], sections: list[str] | None) -> Description:
    """Return the description that `--json` prints: whole, or with the sections asked for only."""
    if sections is None:
        return {**one, "scenarios": scenarios}
    keys = {"scenarios": ("scenarios",), "tables": ("tables", "plan_tables")}
    keys_shown = [
        "system",
        *(key for name in SECTIONS if name in sections for key in keys.get(name, (name,))),
    ]
    return {key: value for key, value in {**one, "scenarios": scenarios}.items() if key in keys_shown}


THEME: Final = {
    "light.primaryColor": "#1f6fb5",
    "light.backgroundColor": "#ffffff",
    "light.secondaryBackgroundColor": "#f4f6f8",
    "light.textColor": "#1b2733",
    "dark.primaryColor": "#79b4e6",
    "dark.backgroundColor": "#10161d",
    "dark.secondaryBackgroundColor": "#1a232d",
    "dark.textColor": "#e6ebf0",
}
"""Colours of the dashboard, light and dark, by streamlit's options."""


def dashboard(
    stores: Annotated[
        list[Path] | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Folder of a sweep's runs and of kept answers, or an empty one. Repeatable.",
        ),
    ] = None,
    scenarios: Annotated[
        Path | None,
        typer.Option(
            "--scenarios",
            metavar="FOLDER",
            help="A folder of own scenarios, SYSTEM/NAME.toml; visitors see them and may add to them.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="The address to listen on; default: only this machine."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1, max=65535, help="The port to listen on.")
    ] = 8501,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Another name that browsers reach it by, such as that of a proxy before it. Repeatable.",
        ),
    ] = None,
    designs: Annotated[
        list[str] | None,
        typer.Option(
            "--design",
            metavar="SYSTEM=FILE.py:FUNCTION",
            help="A design of your own, which all visitors may run. Repeatable.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="Processes that solve; default: one for each core, at most 4.",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            metavar="MB",
            min=256,
            help="Maximum memory of each process; default: an equal part of the machine's.",
        ),
    ] = None,
    answers: Annotated[
        int,
        typer.Option(
            "--answers",
            metavar="MB",
            min=0,
            help="Size of the answers that are stored for reloads and links; 0 stores none.",
        ),
    ] = 500,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    warm: Annotated[
        bool, typer.Option("--warm/--no-warm", help="Compile kernels while no visitor needs a process.")
    ] = True,
) -> None:
    """Open the what-if dashboard in a browser."""
    with needed_by("the dashboard"):
        import pebble  # noqa: F401
        import streamlit  # noqa: F401
    spec = importlib.util.find_spec("planner_dashboard")
    if spec is None or spec.origin is None:
        raise InputError("the dashboard is not installed: the package planner_dashboard is missing")
    for path in stores or ():
        _require_store(path)
    references = [_require_design(text) for text in designs or ()]
    settings = {
        FOLDERS: _join_folders(scenarios),
        "PLANNER_DASHBOARD_STORES": os.pathsep.join(str(path.resolve()) for path in stores or ()),
        "PLANNER_DASHBOARD_NAMES": " ".join([host, *(names or ())]),
        "PLANNER_DASHBOARD_DESIGNS": "\n".join(references),
        "PLANNER_DASHBOARD_WORKERS": _text_of(workers),
        "PLANNER_DASHBOARD_WARM": "1" if warm else "",
        "PLANNER_DASHBOARD_ANSWERS_MB": str(answers),
        "PLANNER_DASHBOARD_MEMORY_MB": _text_of(memory),
    }
    command = _server_command(Path(spec.origin).with_name("app.py"), host, port, browser=browser)
    os.execve(sys.executable, command, {**os.environ, **settings})


def _require_store(path: Path) -> None:
    """Raise InputError where a folder is no store; an empty one becomes a store."""
    from planner.store.store import Store

    is_empty = path.is_dir() and not any(path.iterdir())
    try:
        with Store(path, write=is_empty):
            pass
    except InputError as error:
        hint = "" if path.exists() or "did you mean" in str(error) else "; an empty folder becomes one"
        raise InputError(f"{error}{hint}") from None


def _join_folders(scenarios: Path | None) -> str:
    """Return the paths of all folders of scenarios; one that does not exist is made."""
    variable = os.environ.get(FOLDERS, "")
    if scenarios is None:
        return variable
    from planner.runs.files import make_folder

    make_folder(scenarios)
    return os.pathsep.join([str(scenarios.resolve()), *([variable] if variable else [])])


def _text_of(number: int | None) -> str:
    return "" if number is None else str(number)


def _server_command(app: Path, host: str, port: int, *, browser: bool) -> list[str]:
    """Return the command that serves the dashboard's app."""
    return [
        *(sys.executable, "-m", "planner_dashboard.server", "run"),
        str(app),
        *("--server.address", host, "--server.port", str(port)),
        *("--server.headless", "false" if browser else "true"),
        *("--server.maxUploadSize", str(MAX_UPLOAD_MB)),
        *("--browser.gatherUsageStats", "false"),
        *("--client.toolbarMode", "minimal"),
        *("--client.showErrorDetails", "none"),
        *("--logger.level", "error"),
        *("--server.fileWatcherType", "none"),
        *("--runner.postScriptGC", "false"),  # the server collects garbage by itself
        *(word for name, value in THEME.items() for word in (f"--theme.{name}", value)),
    ]


def _require_design(text: str) -> str:
    """Return SYSTEM=REFERENCE with a whole path; raise InputError where the design cannot be loaded."""
    from planner.scenarios.catalogue import add_design
    from planner.scenarios.user_designs import load_reference

    system, equals, reference = text.partition("=")
    if not (system and equals and ":" in reference):
        raise InputError(f"--design {text}: must be SYSTEM=FILE.py:FUNCTION, such as traffic=mine.py:route")
    add_design(system, load_reference(reference)[1])
    name, _, attribute = reference.rpartition(":")
    path = str(Path(name).resolve()) if name.endswith(".py") else name
    return f"{system}={path}:{attribute}"


def doctor(
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Compile the kernels of all systems now, not during their first runs."),
    ] = False,
    pack: Annotated[
        bool,
        typer.Option("--pack", help="Compile them, and keep them in a pack that a wheel of planner carries."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which solver backends work here, and test each."""
    if warm or pack:
        _warm(as_json, pack)
        return
    from planner.backends.doctor import diagnose
    from planner.reports import catalogue_pages

    diagnoses = diagnose()
    answer(
        catalogue_pages.backends_page(diagnoses),
        lambda: [asdict(diagnosis) for diagnosis in diagnoses],
        as_json,
    )
    if any(diagnosis.passed is False for diagnosis in diagnoses):
        raise typer.Exit(6)


def _warm(as_json: bool, is_packing: bool) -> None:
    """Compile the kernels of every system, and show their number and time."""
    from planner import kernel_packs

    if is_packing:
        kernel_packs.compile_for_packs()
    from planner.reports import terminal
    from planner.reports.document import Page, Part
    from planner.runs.warming import warm
    from planner.scenarios.catalogue import find_system, system_names

    systems = [find_system(name) for name in system_names()]
    count = sum(len(system.designs) for system in systems)
    with report_compiling(), terminal.progress("designs", count) as advance:
        warmed = [warm(system, advance) for system in systems]
    sentences = [
        f"{result.system}: {result.kernels} kernels of {result.designs} designs compiled in "
        f"{result.seconds:.1f} s"
        if result.designs
        else f"{result.system}: nothing to compile"
        for result in warmed
    ]
    if is_packing:
        from planner.compiler import list_kernels_for_packs

        count, size_bytes = kernel_packs.write_pack(dict(list_kernels_for_packs()))
        sentences.append(f"{kernel_packs.PACK}: {count} compiled functions, {size_bytes / 1e6:.1f} MB")
    page = Page(title="Compiled kernels", parts=[Part(sentences=sentences)])
    answer(page, lambda: [asdict(result) for result in warmed], as_json)


def _require_sections(sections: Sequence[str]) -> None:
    """Raise InputError for each section that does not exist, with the nearest."""
    faults = [
        f"--section {section}: no such section" + did_you_mean(section, SECTIONS)
        for section in sections
        if section not in SECTIONS
    ]
    if faults:
        raise InputError(*faults)
