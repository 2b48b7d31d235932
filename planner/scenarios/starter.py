"""The first scenario over a folder of tables: short, with comments on possible changes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import tomli_w

from planner.contract.parameters import parameters_of

if TYPE_CHECKING:
    from planner.contract.parameters import Parameter
    from planner.contract.system import System

MOST_DESIGNS: Final = 3
"""Designs that the scenario compares, the default and first ones, where the system names no usual ones."""
MOST_PARAMETERS: Final = 4
"""Parameters of the problem, and of a design, that it shows as comments."""
WIDTH: Final = 110
"""Letters of a line."""


def starter_text(
    system: System,
    *,
    origin: str,
    problem: Mapping[str, Any],
    reasons: Mapping[str, str] | None = None,
    source: str = "tables",
) -> str:
    """Return the text of a scenario that compares a system's usual designs, or some of them, on tables.

    origin   where the tables come from, a line for the reader
    problem  where the tables are, and how they are read: keys of [problem], and its sections
    reasons  what is assumed by keys of [problem], and why, for comments
    source   what reads them
    """
    reasons = reasons or {}
    plain = {key: value for key, value in problem.items() if not isinstance(value, Mapping)}
    sections = {key: value for key, value in problem.items() if isinstance(value, Mapping)}
    in_order = dict.fromkeys([system.default_design, *system.designs])
    selected = system.usual_designs if system.usual else tuple(in_order)[:MOST_DESIGNS]
    lines = [
        f"# {system.question}",
        f"# {origin}",
        "# Change what you like, then: planner compare scenario.toml",
        f"# All that can stand here: planner list {system.name} --section parameters",
        _entry("system", system.name),
        "",
        "[problem]",
        _entry("source", source),
        *_problem_lines(system, plain, reasons),
    ]
    if sections:
        lines += ["", tomli_w.dumps({"problem": sections}).removeprefix("[problem]\n").strip()]
    for design in selected:
        lines += ["", f"# {design.about}", f"[designs.{design.name}]", *_comments(design.parameters)]
    others = [design.name for design in system.designs if design not in selected]
    if others:
        names = f"# Other designs: {', '.join(others)}"
        lines += ["", *textwrap.wrap(names, WIDTH, subsequent_indent="#   ")]
    lines += ["", "[solver]", "# time_limit_s = 60    # a plan found within the limit comes with its bound"]
    return "\n".join(lines) + "\n"


def _problem_lines(system: System, settings: Mapping[str, Any], reasons: Mapping[str, str]) -> list[str]:
    """Return the keys of [problem] with the reasons for them, then the other adjustments as comments."""
    others = {
        name: parameter
        for name, parameter in parameters_of(system.problem.adjust).items()
        if name not in settings
    }
    entries = [(*_reason(reasons.get(key)), _entry(key, value)) for key, value in settings.items()]
    return [*chain.from_iterable(entries), *_comments(others)]


def _entry(name: str, value: Any) -> str:
    return tomli_w.dumps({name: value}).rstrip("\n")


def _comments(parameters: Mapping[str, Parameter]) -> list[str]:
    """Return the first parameters with a plain default, each a line that takes effect without its `#`."""
    shown = [
        (name, rule)
        for name, rule in parameters.items()
        if isinstance(rule.default, bool | int | float | str) and not rule.is_required
    ]
    lines = []
    for name, rule in shown[:MOST_PARAMETERS]:
        lines.append(_shorten(f"# {_entry(name, rule.default)}    # {rule.about}"))
    return lines


def _reason(text: str | None) -> list[str]:
    """Return the comment above a key that says why its value is assumed."""
    return textwrap.wrap(f"# assumed: {text}", WIDTH, subsequent_indent="# ") if text else []


def _shorten(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4].rsplit(' ', 1)[0]} ..."
