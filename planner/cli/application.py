"""The commands: parse, call, print. Answers go to standard output, all else to standard error.

The group of all commands: a wrong value of an option is answered in plain words.

Commands that generate and check problems, and export models.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from planner.cli import completion, elements, findings, running, service, sweeps
from planner.cli.examples import examples_of
from planner.cli.interruption import INTERRUPTED
from planner.cli.new import new
from planner.cli.options import FormatOption, JsonOption, changes_of, on_scenario
from planner.cli.output import answer, report_error, say, show_work
from planner.errors import InputError, PlannerError
from planner.formatting import counted, sizes
from planner.version import __version__

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario


def generate(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM", help="The problem's system.", autocompletion=completion.complete_system
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where tables and scenario.toml go.")],
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Which problem; default: the system's first.",
            autocompletion=completion.complete_preset,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of a problem that is drawn.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the preset, e.g. k=8. Repeatable."),
    ] = None,
    table_format: FormatOption = "csv",
) -> None:
    """Generate a problem: its tables and a scenario file."""
    from planner.runs import files

    values = changes_of(changes)
    if "seed" in values and seed is None:
        seed = values.pop("seed")
    problem = files.generate(system, preset, seed=seed, out=out, table_format=table_format, **values)
    say(f"wrote {sizes(problem.size())} to {out}; solve with: planner compare {out / 'scenario.toml'}")


@on_scenario(only=("service",))
def export(
    *,
    scenario: Scenario,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where the model goes; of openflow: a folder.")
    ],
    format_: Annotated[
        Literal["lp", "mps", "openflow"] | None,
        typer.Option(
            "--format",
            help="lp or mps: the formal model; default: by the file's ending. openflow: the rules of a plan "
            "for ovs-ofctl, a file for each switch.",
        ),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            "--design",
            metavar="NAME",
            help="Design of the model, default: the first that has one; of openflow: that makes the plan.",
            autocompletion=completion.complete_design,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PLAN", help="Of openflow: a folder or file of plan tables."),
    ] = None,
) -> None:
    """Write a formal model as LP or MPS, or a plan as OpenFlow."""
    from planner.runs import device_rules, files

    if format_ == "openflow":
        with show_work(f"writing rules of {scenario.name}"):
            rules = device_rules.write_rules(scenario, out, design=design, plan=plan)
        say(f"wrote the rules of {rules.plan} to {out}: {counted(len(rules.files), 'files')}")
        return
    if plan is not None:
        raise InputError("--plan: is of --format openflow only; a model is that of a design")
    with show_work(f"building the model of {scenario.name}"):
        model = files.export(scenario, out, design=design, format=format_)
    say(f"wrote the model of {model.design} to {out}: {model.rows:,} rows, {model.columns:,} columns")
    if model.objective is not None:
        say(f"objective: {model.objective.about}")
        if model.objective.formula:
            say(f"metric: {model.objective.formula}")


@on_scenario(only=())
def check(
    *,
    scenario: Scenario,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PLAN", help="A folder or file of plan tables, made elsewhere."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Validate a scenario, or check a plan made elsewhere.

    A plan that violates a constraint ends with exit code 5, as one that is none.
    """
    from planner.reports import run_pages
    from planner.runs import files

    with show_work(f"checking {scenario.name}"):
        result = files.check(scenario, plan)
    if plan is None and not as_json:
        say(f"{scenario.name}: valid; {sizes(result.problem.size())}")
        for doubt in result.doubts:
            say(doubt)
        return
    answer(run_pages.checked_page(result), result.to_dict, as_json)
    if plan is not None and result.is_valid and not as_json:
        say("plan: no constraint violation")
    raise typer.Exit(result.exit_code)


class Commands(TyperGroup):
    """A group of commands; its errors name the value and the rule, not the library that checks it."""

    def invoke(self, ctx: Any) -> Any:
        """Read the command's options and run it."""
        with _saying_interrupted(), _in_plain_words():
            return super().invoke(ctx)

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """Read the words of the command line."""
        with _saying_interrupted():
            return super().make_context(*arguments, **more)


@contextlib.contextmanager
def _saying_interrupted() -> Iterator[None]:
    """Say that Ctrl-C ends the command, which typer would turn into an exit code without a word."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        raise


@contextlib.contextmanager
def _in_plain_words() -> Iterator[None]:
    """Rewrite the error of an option in plain words: `'x', must be a number`."""
    try:
        yield
    except Exception as error:
        # loaded with a fault only: pydantic takes a while, and the type of the fault is private to typer
        from pydantic import ValidationError

        from planner.contract.value_rules import rule_of

        cause = error.__cause__
        if isinstance(cause, ValidationError) and hasattr(error, "message"):
            first = cause.errors()[0]
            error.message = f"{first['input']!r}, {rule_of(first)}"
        raise


app = typer.Typer(
    help="Plan networked systems: bring a problem, solve it, and compare ways to coordinate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=Commands,
)
for command in (
    service.list_,
    running.solve,
    running.compare,
    running.diff,
    running.roll,
    running.simulate,
    sweeps.sweep,
    sweeps.runs,
    running.explain,
    elements.failures,
    elements.upgrades,
    elements.alternatives,
    generate,
    export,
    check,
    findings.reproduce,
    findings.recipes,
    service.dashboard,
    service.doctor,
):
    name = command.__name__.removesuffix("_")
    app.command(name, epilog=examples_of(name))(command)

app.add_typer(new, name="new")


@functools.cache
def commands() -> Any:
    """Return the group of all commands, which takes a while to make from their functions."""
    return typer.main.get_command(app)


def run() -> None:
    """Run the command line in this process; each failure ends with one line and the exit code of its kind."""
    _prepare_output()
    try:
        commands()(prog_name="planner")
    except PlannerError as error:
        report_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:  # of a path that no check of ours foresaw: too long, a full disk
        name = " ".join(str(error.filename)[:200].split()) if error.filename is not None else "a file"
        report_error(PlannerError(f"{name}: {error.strerror or error}"))
        sys.exit(1)
    except MemoryError:
        say("out of memory: the problem is too large for this machine")
        sys.exit(6)
    except Exception as error:
        if os.environ.get("PLANNER_DEBUG"):
            raise
        text = f"internal error: {type(error).__name__}: " + " ".join(str(error).split())
        say(text + "; set PLANNER_DEBUG=1 for the traceback, and please report it")
        sys.exit(70)


def _prepare_output() -> None:
    """Let an encoding print every letter, and keep warnings of libraries from users."""
    if not os.environ.get("PLANNER_DEBUG") and not sys.warnoptions:
        logging.captureWarnings(True)  # such as an overflow in NumPy
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an arrow that its encoding lacks is a question mark
            stream.reconfigure(errors="replace")


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
