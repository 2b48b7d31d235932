"""The commands: parse, call, print. Answers go to standard output, all else to standard error."""

from __future__ import annotations

import functools
import io
import logging
import os
import sys
from typing import Annotated, Any

import typer

from planner.cli import elements, findings, problems, running, service, sweeps
from planner.cli.command_group import Commands
from planner.cli.examples import examples_of
from planner.cli.new import new
from planner.cli.output import report_error, say
from planner.errors import PlannerError
from planner.version import __version__

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
    running.roll,
    running.simulate,
    sweeps.sweep,
    sweeps.runs,
    running.explain,
    elements.failures,
    elements.upgrades,
    problems.generate,
    problems.export,
    problems.check,
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
