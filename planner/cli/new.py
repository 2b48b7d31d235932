"""Commands that write a scenario over files, a template of tables, or the package of a system or design."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from planner.cli import completion
from planner.cli.examples import examples_of
from planner.cli.options import changes_of
from planner.cli.output import report_notes, say
from planner.contract.columns import shorten_name
from planner.entry_points import find_entry_points
from planner.errors import InputError
from planner.formatting import counted, sizes

if TYPE_CHECKING:
    from planner.contract.questions import OpenQuestion
    from planner.scenarios.from_files import NewScenario

READ_NOTES: Final = (": read columns ", ": ignored columns ")
"""What notes say that the table of columns shows too."""
DecimalMark = Literal[".", ","]

new = typer.Typer(
    help="Write a scenario, a template, or a new system or design.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


RecognizedSystem = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="NAME",
        help="Its system; default: recognized by the columns.",
        autocompletion=completion.complete_system,
    ),
]
FilesOfTables = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="TABLE=FILE", help="The file or sheet of a table, where columns do not tell."
    ),
]
NamesOfColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="TABLE.COLUMN=NAME", help="The name of a column in the file. Repeatable."
    ),
]
UnitsOfTables = Annotated[
    list[str] | None,
    typer.Option(
        "--unit", metavar="TABLE=UNIT", help="The unit of a matrix or columns that name none: Gbit/s."
    ),
]


@new.command("scenario", epilog=examples_of("new scenario"))
def scenario(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Tables, workbooks, a folder of them, or a graph."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The scenario; default: scenario.toml beside the files."),
    ] = None,
    system: RecognizedSystem = None,
    tables: FilesOfTables = None,
    columns: NamesOfColumns = None,
    units: UnitsOfTables = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A key of [problem] to write, e.g. problem.both_directions=true. Repeatable.",
        ),
    ] = None,
    save_columns: Annotated[
        bool,
        typer.Option("--save-columns", help="Write into the scenario how each column is read."),
    ] = False,
    decimal: Annotated[
        DecimalMark | None,
        typer.Option("--decimal", help="The decimal mark of text files, where both are possible."),
    ] = None,
) -> None:
    """Write a scenario over your tables: recognize what each file is.

    The files stay as they are. A table says how each column is read, with its unit. What the tables leave
    open, such as whether a row is a line both ways, is asked at a terminal, and else assumed and said.
    """
    from planner.scenarios.from_files import write_scenario

    mappings = _mappings_of(columns)
    with report_notes(but=READ_NOTES):
        written = write_scenario(
            files,
            out,
            system=system,
            tables=dict(_split("--table", text, "TABLE=FILE") for text in tables or []),
            columns=mappings,
            units=dict(_split("--unit", text, "TABLE=UNIT") for text in units or []),
            decimal=decimal,
            settings=_problem_keys(changes),
            save_columns=save_columns,
            ask=ask if sys.stdin.isatty() and sys.stderr.isatty() else None,
        )
    _show_columns(written)
    _say_next_step(written)


def _mappings_of(columns: list[str] | None) -> dict[str, dict[str, str]]:
    """Return the names of columns in the files, by table and our name; InputError for another form."""
    mappings: dict[str, dict[str, str]] = {}
    for text in columns or []:
        reference, name = _split("--column", text, "TABLE.COLUMN=NAME")
        table, dot, column = reference.partition(".")
        if not dot:
            raise InputError(f"--column {text}: must be TABLE.COLUMN=NAME, such as links.tail=From")
        mappings.setdefault(table, {})[column] = name
    return mappings


def _say_next_step(written: NewScenario) -> None:
    """Name the files that were written, and the command that uses them."""
    if written.windows is None:
        over_time, then = "", f"solve with: planner compare {written.path}"
    else:
        over_time = f"{counted(written.windows, 'windows')}, the first with "
        then = f"run them with: planner roll {written.path} --out {written.path.with_suffix('')}"
    say(f"wrote {written.path}: {written.system.name}, {over_time}{sizes(written.problem.size())}; {then}")


def _problem_keys(changes: list[str] | None) -> dict[str, Any]:
    """Return the keys of [problem] that the user sets; raise InputError for keys of other sections."""
    keys = changes_of(changes)
    faults = [f"--set {key}: must be a key of [problem], such as problem.scale" for key in keys
              if not re.fullmatch(r"problem\.\w+", key)]  # fmt: skip
    if faults:
        raise InputError(*faults)
    return {key.removeprefix("problem."): value for key, value in keys.items()}


def ask(question: OpenQuestion) -> Any:
    """Return the user's answer at the terminal; an empty line takes the assumed one."""
    answers = list(question.answers)
    say(f"{question.text[:1].upper()}{question.text[1:]}?")
    for number, value in enumerate(answers, start=1):
        reason = f" (likely: {question.reason})" if value == question.assumed else ""
        say(f"  {number}  {question.answers[value]}{reason}")
    default = None if question.assumed is None else answers.index(question.assumed) + 1

    def value_of(text: Any) -> Any:
        if str(text).strip() not in map(str, range(1, len(answers) + 1)):
            raise typer.BadParameter(f"{shorten_name(str(text))} must be a number from 1 to {len(answers)}")
        return answers[int(text) - 1]

    return typer.prompt("Answer", default=default, value_proc=value_of, err=True)


def _show_columns(written: NewScenario) -> None:
    """Print each column of the files beside ours, with its unit; nothing for files that are no tables."""
    if not written.columns:
        return
    header: tuple[str, ...] = ("your file", "your column", "read as", "unit", "assumed")
    rows: list[tuple[str, ...]] = []
    last = ""
    for column in written.columns:
        where = column.sheet if column.sheet != last else ""
        rows.append(
            (where, shorten_name(column.given), column.ours or "not read", column.unit, column.assumption)
        )
        last = column.sheet
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    widths = [max(len(row[index]) for row in (header, *rows)) for index in range(len(header))]
    for row in (header, *rows):
        say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _split(option: str, text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"{option} {text}: must be {form}")
    return name.strip(), value.strip()


@new.command("workbook", epilog=examples_of("new workbook"))
def workbook(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM",
            help="The system whose tables it is for.",
            autocompletion=completion.complete_system,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The workbook to write; default: ./SYSTEM.xlsx."),
    ] = None,
) -> None:
    """Write a workbook to fill in: a sheet for each table, and one that explains the columns."""
    from planner.scenarios.catalogue import find_system
    from planner.scenarios.template_workbook import write_template

    path = out or Path(f"{system}.xlsx")
    write_template(find_system(system), path)
    say(f"wrote {path}; fill it in, then: planner new scenario {path} --system {system}")


@new.command("system")
def system(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name: lower-case letters, digits and underscores.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The folder to write; default: ./NAME.")
    ] = None,
) -> None:
    """Write a package with a working system, a scenario and conformance tests."""
    from planner.scenarios.catalogue import system_names

    _require_name(name)
    if name in system_names():
        raise InputError(f"{name}: a system of this name is installed")
    _require_new_module(name)
    folder = out or Path(name)
    words = {"name": name, "Name": "".join(word.capitalize() for word in name.split("_"))}
    _write_package("system", folder, words)
    say(f"wrote system {name} to {folder}; next: pip install -e {folder}, then see {folder / 'README.md'}")


@new.command("design", epilog=examples_of("new design"))
def design(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name: lower-case letters, digits and underscores.")
    ],
    of: Annotated[
        str,
        typer.Option(
            "--system",
            metavar="SYSTEM",
            help="The system that it decides for.",
            autocompletion=completion.complete_system,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The folder to write; default: ./NAME.")
    ] = None,
) -> None:
    """Write a package with a working design of a system and its tests, to be made your own."""
    import inspect

    from planner.scenarios.catalogue import find_system
    from planner.scenarios.installed_systems import GROUP

    _require_name(name)
    system_found = find_system(of)
    if any(design_.name == name for design_ in system_found.designs):
        raise InputError(f"{name}: {of} has a design of this name")
    _require_new_module(name)
    folder = out or Path(name)
    plan = inspect.signature(system_found.plan.check, eval_str=True).parameters
    types = [parameter.annotation for parameter in plan.values()][:2]
    words = {
        "name": name,
        "system": of,
        "default": system_found.default_design.name,
        "package": find_entry_points(GROUP)[of].module,
        "problem_module": system_found.problem.type.__module__,
        "plan_module": types[1].__module__,
        "Problem": system_found.problem.type.__name__,
        "Plan": types[1].__name__,
    }
    _write_package("design", folder, words)
    say(f"wrote design {name} to {folder}; next: pip install -e {folder}, then see {folder / 'README.md'}")


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or keyword.iskeyword(name):
        raise InputError(
            f"{name}: is no name: up to 40 lower-case letters, digits and underscores, a letter first"
        )


def _require_new_module(name: str) -> None:
    if importlib.util.find_spec(name) is not None:
        raise InputError(f"{name}: a Python module of this name is installed; choose another name")


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not an empty folder")


def _write_package(kind: str, folder: Path, words: dict[str, str]) -> None:
    """Write the templates of a kind of package; the folder `package` among them has the package's name."""
    _require_empty(folder)
    for entry in (files("planner.cli") / "templates" / kind).iterdir():
        _write(entry, folder, words)


def _write(template: Traversable, folder: Path, words: dict[str, str]) -> None:
    """Write a template, or every template of a folder."""
    if template.is_dir():
        name = words["name"] if template.name == "package" else template.name
        for entry in template.iterdir():
            _write(entry, folder / name, words)
        return
    if not template.name.endswith(".j2"):
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / template.name.removesuffix(".j2")).write_text(_render(template, words), encoding="utf-8")


def _render(template: Traversable, words: dict[str, str]) -> str:
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(template.read_text(encoding="utf-8")).render(words)
