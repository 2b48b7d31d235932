"""The group of all commands: a wrong value of an option is answered in plain words."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from planner.cli.interruption import INTERRUPTED


class Commands(TyperGroup):
    """A group of commands whose faults name the value and the rule, not the library that checks it."""

    def invoke(self, ctx: Any) -> Any:
        """Read the command's options and run it."""
        with _saying_interrupted(), _in_plain_words():
            return super().invoke(ctx)

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Read the words of the command line."""
        with _saying_interrupted():
            return super().make_context(*given, **more)


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
    """Change what a fault of an option says: `'x', must be a number`."""
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
