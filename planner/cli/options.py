"""Options that several commands have, and the parsing of their values."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planner.backends.registry import solver_names
from planner.cli import completion
from planner.cli.output import report_compiling, report_notes
from planner.errors import InputError
from planner.io.layout import TableFormat
from planner.io.names import require_report_name
from planner.io.toml import parse_value

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or one that ships with planner, such as traffic/germany50.",
        autocompletion=completion.complete_scenario,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the scenario, e.g. problem.scale=2. Repeatable.",
        autocompletion=completion.complete_change,
    ),
]
AtOption = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="'WINDOW KEY=VALUE'",
        help="Change the problem from a window on, e.g. '9:00 problem.fail_links=[\"a<->b\"]'. Repeatable.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Save the scenario, plans and metrics in this folder."),
]
FormatOption = Annotated[TableFormat, typer.Option("--table-format", help="File format of tables.")]
Reports = Mapping[str, Path]
"""Files of reports that the command line names, by format: html, pdf, pptx."""


def _require_report(file_format: str) -> Callable[[Path | None], Path | None]:
    """Return the check of a report's name, and that the packages of its format are installed."""

    def check(path: Path | None) -> Path | None:
        if path is not None:
            from planner.reports.report_files import require_packages

            require_report_name(path, file_format)
            require_packages(file_format)
        return path

    return check


def report_options(
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a report: one page with tables and charts.",
            callback=_require_report("html"),
        ),
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option(
            "--pdf",
            metavar="FILE",
            help="Write a report in A4: verdict, picture, table, assumptions.",
            callback=_require_report("pdf"),
        ),
    ] = None,
    pptx: Annotated[
        Path | None,
        typer.Option(
            "--pptx",
            metavar="FILE",
            help="Write the report as PowerPoint slides.",
            callback=_require_report("pptx"),
        ),
    ] = None,
) -> None:
    """Define the options of every command that writes reports."""


PicturesOption = Annotated[
    Path | None,
    typer.Option("--pictures", metavar="DIR", help="Save each chart as a picture (SVG) in this folder."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
AllMetricsOption = Annotated[
    bool, typer.Option("--all-metrics", help="Show every metric, not only the most important ones.")
]
DesignOption = Annotated[
    str | None,
    typer.Option(
        "--design",
        metavar="NAME",
        help="Design to run, or your own as FILE.py:FUNCTION; default: the best of the scenario, by the "
        "order that its system declares.",
        autocompletion=completion.complete_design,
    ),
]
PreviousOption = Annotated[
    str | None,
    typer.Option(
        "--previous",
        metavar="PLAN|DESIGN",
        help="Plan in place, which designs start from or keep to: a folder or file of tables, or a design.",
    ),
]
PlansOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plan",
        metavar="NAME=PLAN",
        help="A plan to check beside the designs, as in today=FOLDER: a folder or file of plan tables. "
        "Repeatable.",
    ),
]
DesignsOption = Annotated[
    str | None,
    typer.Option(
        "--designs",
        metavar="A,B,C",
        help="Designs to run, also your own as FILE.py:FUNCTION; default: all of the scenario's.",
        autocompletion=completion.complete_designs,
    ),
]

Solver = Mapping[str, Any]
"""Solver options from the command line, by their names in a scenario's [solver]."""


def solver_options(
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help=f"One of: {', '.join(solver_names())}.",
            autocompletion=completion.complete_backend,
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", metavar="NAME", help="auto, simplex, interior-point or pdlp."),
    ] = None,
    time_limit_s: Annotated[
        float | None, typer.Option("--time-limit", metavar="SECONDS", help="Time limit of the solver.")
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option("--gap", metavar="SHARE", help="Relative gap at which the solver stops as optimal."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", help="Maximum number of solver threads.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="The solver's random seed.")] = None,
    service: Annotated[
        str | None,
        typer.Option(
            "--service",
            metavar="best|all",
            help="Where capacity is scarce: best (default) sheds what cannot be served, at least loss; "
            "all serves all demand, or proves that this is infeasible.",
        ),
    ] = None,
) -> None:
    """Define the options of every command that solves."""


def _given_options(command: Callable[..., None], extra: Mapping[str, list[inspect.Parameter]]) -> Any:
    """Return the signature of a command in which some arguments are replaced by options."""
    parameters = []
    # a command's scenario is loaded before it is called: loading its type would load pandas
    namespace = {"Scenario": Any}
    for name, parameter in inspect.signature(command, locals=namespace, eval_str=True).parameters.items():
        replacements = extra.get(name, [parameter])
        parameters += [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in replacements]
    return parameters


def with_reports(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reports to a command, which receives them as its argument `reports`."""
    return _with_options(command, "reports", report_options)


def with_solver(command: Callable[..., None]) -> Callable[..., None]:
    """Add the solver's options to a command, which receives them as its argument `solver`."""
    return _with_options(command, "solver", solver_options)


def _with_options(
    command: Callable[..., None], argument: str, definition: Callable[..., None]
) -> Callable[..., None]:
    """Replace an argument of a command by options; it receives those that are given, by their names."""
    options = inspect.signature(definition, eval_str=True).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        values = {name: given.pop(name) for name in options}
        command(**given, **{argument: {name: value for name, value in values.items() if value is not None}})

    return _with_signature(run, _given_options(command, {argument: list(options.values())}))


def on_scenario(
    *, only: Collection[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a scenario's name, `--set` and the solver's options to a command.

    The command receives the loaded scenario as its argument `scenario`.

    only  the solver's options that the command has; default: all of them
    """
    options_of_solver = inspect.signature(solver_options, eval_str=True).parameters
    solver = {name: option for name, option in options_of_solver.items() if only is None or name in only}
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter("scenario", keyword, annotation=ScenarioArgument),
        inspect.Parameter("changes", keyword, annotation=SetOption, default=None),
        *solver.values(),
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            from planner.scenarios.scenario import load

            values = {name: given.pop(name) for name in solver}
            selected = {name: value for name, value in values.items() if value is not None}
            loaded = load(given.pop("scenario"), changes=changes_of(given.pop("changes")), options=selected)
            for name in given.keys() & {"design", "designs"}:
                loaded, given[name] = add_user_designs(loaded, given[name])
            with report_compiling(), report_notes():
                command(scenario=loaded, **given)

        return _with_signature(run, _given_options(command, {"scenario": options}))

    return decorate


def _with_signature(
    function: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return function


def add_user_designs(scenario: Scenario, text: str | None) -> tuple[Scenario, str | None]:
    """Return a scenario with the designs that a user names by a file or a module, and the names of all.

    text  names between commas, among them references such as `mine.py:route`

    raises  InputError where the code cannot be loaded, or is no design
    """
    if text is None or ":" not in text:
        return scenario, text
    from planner.scenarios.arguments import as_scenario, labels_of

    designs = designs_of(text)
    return as_scenario(scenario, designs=designs), ",".join(labels_of(designs) or [])


def designs_of(text: str | None) -> Any:
    """Return the designs that a text names between commas; one with a colon is code of the user's own."""
    if text is None or ":" not in text:
        return text
    from planner.formatting import split_names
    from planner.scenarios.user_designs import load_reference

    return [load_reference(name)[1] if ":" in name else name for name in split_names(text)]


def plans_of(options: list[str] | None) -> dict[str, Path]:
    """Return the paths of existing plans by name; raise InputError for each text that is not NAME=PLAN."""
    plans, faults = {}, []
    for text in options or []:
        name, equals, path = text.partition("=")
        if not (name.strip() and equals and path.strip()):
            faults.append(f"--plan {text}: must be NAME=PLAN, such as today=FOLDER")
        elif name.strip() in plans:
            faults.append(f"--plan {text}: a plan of this name is given already")
        plans[name.strip()] = Path(path.strip())
    if faults:
        raise InputError(*faults)
    return plans


def changes_of(options: list[str] | None, option: str = "--set") -> dict[str, Any]:
    """Return keys and their values; raise InputError for every text that is not KEY=VALUE."""
    changes, faults = {}, []
    for text in options or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            faults.append(f"{option} {text}: must be KEY=VALUE")
            continue
        if key.strip() in changes:
            faults.append(f"{option} {text}: {key.strip()} has a value already")
        changes[key.strip()] = _value(value.strip())
    if faults:
        raise InputError(*faults)
    return changes


EVENT: Final = re.compile(r"\s*(?P<window>\S.*?)(?<!\s)\s+(?P<change>\w+(?:\.\w+)+\s*=.*)", re.DOTALL)


def events_of(options: list[str] | None) -> dict[str, dict[str, Any]]:
    """Return keys and their values by window; raise InputError for each text that is no WINDOW KEY=VALUE."""
    events: dict[str, dict[str, Any]] = {}
    faults = []
    for text in options or []:
        match = EVENT.fullmatch(text)
        if match is None:
            faults.append(f"--at {text}: must be WINDOW KEY=VALUE, such as '9:00 problem.scale=2'")
        else:
            events.setdefault(match["window"], {}).update(changes_of([match["change"]], "--at"))
    if faults:
        raise InputError(*faults)
    return events


def axes_of(options: list[str] | None) -> dict[str, list[Any]]:
    """Return the values of each key; commas within brackets, braces and quotes do not separate."""
    axes: dict[str, list[Any]] = {}
    faults = []
    for text in options or []:
        key, equals, values = text.partition("=")
        if not equals or not key.strip():
            faults.append(f"--set {text}: must be KEY=VALUE or KEY=V1,V2,...")
            continue
        if key.strip() in axes:
            faults.append(f"--set {text}: {key.strip()} has values already: write {key.strip()}=V1,V2,...")
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
    return [piece.strip() for piece in parts]


def _value(text: str) -> Any:
    """Return a value read as TOML; other text is a string, so that quotes may be left out."""
    try:
        return parse_value(text)
    except InputError:
        return text
