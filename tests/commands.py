"""Runs the command line in this process, as a shell would, or only parses it."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from planner.cli import application


@dataclass(frozen=True)
class Done:
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


def planner(*arguments: object) -> Done:
    """`planner ARGUMENTS`: its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    words: Sequence[str] = ["planner", *(str(argument) for argument in arguments)]
    code = 0
    with (
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            application.run()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return Done(code=code, out=out.getvalue(), err=err.getvalue())


def parse(words: list[str]) -> Any:
    """Parse a command line as the shell's planner would, without running it; raise for a wrong one.

    Returns the context, whose `params` are the values of the command's arguments and options.
    """
    assert words[0] == "planner", f"not a command of planner: {shlex.join(words)}"
    command: Any = application.commands()
    remainder = words[1:]
    while hasattr(command, "commands"):
        assert remainder[0] in command.commands, f"no such command: {shlex.join(words)}"
        command = command.commands[remainder.pop(0)]
    return command.make_context(words[0], list(remainder))
