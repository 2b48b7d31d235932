"""Runs the command line in this process, as a shell would."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

from planner import cli


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
            cli.run()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return Done(code=code, out=out.getvalue(), err=err.getvalue())
