"""The group of all commands: a wrong value of an option is answered in plain words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup


class Commands(TyperGroup):
    """A group of commands whose faults name the value and the rule, not the library that checks it."""

    def invoke(self, ctx: Any) -> Any:
        """Read the command's options and run it."""
        with _in_plain_words():
            return super().invoke(ctx)


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
