"""Commands and lines of Python that run a scenario with changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import tomli_w

PLAIN_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def command_line(
    scenario: str,
    changes: Mapping[str, Any],
    designs: Sequence[str] = (),
    plans: Mapping[str, Path] | None = None,
) -> str:
    """Return the command that compares designs of a scenario with changes by dotted key.

    designs  names, or references of a user's own such as `mine.py:route`
    plans    paths of existing plans by name
    """
    words = ["planner", "compare", scenario]
    if designs:
        words += ["--designs", ",".join(designs)]
    for name, path in (plans or {}).items():
        words += ["--plan", f"{name}={path}"]
    for key, value in changes.items():
        words += ["--set", f"{key}={value_text(value)}"]
    return shlex.join(words)


def python_lines(
    scenario: str,
    changes: Mapping[str, Any],
    designs: Sequence[str] = (),
    plans: Mapping[str, Path] | None = None,
) -> str:
    """Return the lines of Python that compare designs of a scenario with changes by dotted key.

    designs, plans  as in `command_line`; the functions of references are imported
    """
    imports = ["import planner"]
    shown = []
    for design in designs:
        module, colon, attribute = design.rpartition(":")
        if not colon:
            shown.append(repr(design))
            continue
        path, name = Path(module), attribute.partition(".")[0]
        if module.endswith(".py") and path.parent != Path():
            imports = ["import sys", "", *imports, f"sys.path.append({str(path.parent)!r})"]
        imports.append(f"from {path.stem if module.endswith('.py') else module} import {name}")
        shown.append(attribute)
    changed = f", changes={dict(changes)!r}" if changes else ""
    designs_text = f", designs=[{', '.join(shown)}]" if designs else ""
    existing = {name: str(path) for name, path in (plans or {}).items()}
    plans_text = f", plans={existing!r}" if existing else ""
    lines = "\n".join(imports)
    return (
        f"{lines}\n\n"
        f"scenario = planner.load({scenario!r}{changed})\n"
        f"result = planner.compare(scenario{designs_text}{plans_text})\n"
        "print(result.metrics)"
    )


def value_text(value: Any) -> str:
    """Return a value in the syntax of TOML; a plain word has no quotes."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(name))} = {_toml(item)}" for name, item in value.items()) + "}"
    is_word = (
        isinstance(value, str)
        and PLAIN_WORD.fullmatch(value)
        and value not in ("true", "false", "inf", "nan")
    )
    return str(value) if is_word else _toml(value)


def _toml(value: Any) -> str:
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")
