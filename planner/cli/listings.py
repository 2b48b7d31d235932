"""Pages of lists that commands show at once: made of plain data, without pandas and without any system."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from planner.formatting import plain, title_of
from planner.reports.document import Column, Page, Part, Table, Text

SECTIONS: Final = ("designs", "tables", "parameters", "metrics", "scenarios")
"""Parts of a system's description that can be shown alone."""

Description = Mapping[str, Any]
"""A system as `planner.scenarios.description.describe` gives it."""


def systems_page(descriptions: Sequence[Description]) -> Page:
    """Return the systems, a row each."""
    rows = [
        [
            description["system"],
            f"{description['title']}: {description['question']}",
            str(len(description["designs"])),
            description["source"],
        ]
        for description in descriptions
    ]
    columns = [
        Column(label="system", wrap=False),
        Column(label="question"),
        Column(label="designs", numeric=True),
        Column(label="source"),
    ]
    return Page(title="Systems", parts=[Part(tables=[Table(title="Systems", columns=columns, rows=rows)])])


def system_page(
    system: Description, scenarios: Mapping[str, str], sections: Sequence[str] = SECTIONS
) -> Page:
    """Return a system's description.

    scenarios  titles by name, of those of the system that ship with planner
    sections   those of SECTIONS to show
    """
    parts = [
        Part(
            sentences=[
                Text(f"{system['title']} ({system['system']}): {system['question']}", "strong"),
                Text(f"source: {system['source']}\n", "dim"),
            ]
        )
    ]
    for section in SECTIONS:
        if section not in sections:
            continue
        if section == "designs":
            parts.append(Part(tables=[_design_table(system["designs"])]))
        elif section == "tables":
            parts += _schema_parts("Tables of a problem", system["tables"])
            parts += _schema_parts("Tables of a plan", system["plan_tables"])
        elif section == "parameters":
            parts.append(Part(tables=_parameter_tables(system["parameters"])))
        elif section == "metrics":
            parts.append(Part(tables=[_metric_table(system["metrics"])]))
        else:
            heading = Text("Scenarios that ship with planner", "strong")
            lines = [f"  {name}: {title}" for name, title in scenarios.items()] or ["  none"]
            parts.append(Part(sentences=[heading, *lines]))
    return Page(title=system["title"], parts=parts)


def _with_title(title: str, name: str, about: str) -> str:
    """Return a description behind the title, where that says more than the name that is typed."""
    return about if title.lower() == title_of(name).lower() else f"{title}: {about}"


def _design_table(designs: Sequence[Mapping[str, Any]]) -> Table:
    default = next(design["design"] for design in designs if design["default"])
    return Table(
        title=f"Designs (default: {default})",
        columns=[
            Column(label="design", wrap=False),
            Column(label="mechanism", wrap=False),
            Column(label="what it does"),
            Column(label="source"),
        ],
        rows=[
            [
                design["design"],
                design["mechanism"],
                _with_title(design["title"], design["design"], design["about"]),
                design["source"],
            ]
            for design in designs
        ],
    )


def _metric_table(metrics: Sequence[Mapping[str, str]]) -> Table:
    return Table(
        title="Metrics",
        columns=[
            Column(label="metric", wrap=False),
            Column(label="unit"),
            Column(label="better", wrap=False),
            Column(label="what it says"),
        ],
        rows=[
            [
                metric["metric"],
                metric["unit"] or "-",
                metric["better"],
                _with_title(metric["title"], metric["metric"], metric["about"]),
            ]
            for metric in metrics
        ],
    )


def _schema_parts(title: str, schemas: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return a heading, and a table for each table: its columns, those that may be absent marked."""
    parts = [Part(sentences=[Text(title, "strong")])]
    for schema in schemas:
        optional = " (optional)" if schema["optional"] else ""
        rows = [
            [name, "" if column["required"] else "optional", column["about"] or ""]
            for name, column in schema["columns"].items()
        ]
        table = Table(
            title=f"{schema['table']}{optional}: {schema['about']}" if schema["about"] else schema["table"],
            columns=[
                Column(label="column", wrap=False),
                Column(label="", wrap=False),
                Column(label="what it holds"),
            ],
            rows=rows,
        )
        parts.append(Part(tables=[table]))
    return parts


def _parameter_tables(parameters: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Table]:
    """Return a table for each section of a scenario; parameters of several owners stand once."""
    tables = []
    shared: dict[tuple[str, str, str], list[str]] = {}
    for owner, rules in parameters.items():
        kind = re.split(r"[ .]", owner)[0]  # source, preset, [designs
        for name, rule in rules.items():
            shared.setdefault((kind, name, json.dumps(rule, default=str)), []).append(owner)
    by_owners: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for (_, name, text), takers in shared.items():
        by_owners.setdefault(tuple(takers), {})[name] = json.loads(text)
    for owners, taken in by_owners.items():
        rows = [
            [
                name,
                rule["values"],
                "required" if rule["required"] else _plain_default(rule["default"]),
                rule["about"],
            ]
            for name, rule in taken.items()
        ]
        columns = [
            Column(label="parameter", wrap=False),
            Column(label="values", share=2),
            Column(label="default", share=1),
            Column(label="what it does", share=3),
        ]
        tables.append(Table(title="Parameters of " + ", ".join(owners), columns=columns, rows=rows))
    return tables


def _plain_default(value: Any) -> str:
    """Return a parameter's default as it is written in a scenario; none for no value."""
    if value is None or value in ((), [], {}):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def runs_page(
    runs: Mapping[str, Sequence[Any]],
    columns: Sequence[str] | None,
    width: int,
    headlines: Sequence[str] = (),
) -> Page:
    """Return stored runs, a row each, with the names that filters and columns are written with.

    runs       values by column
    columns    those to show; default: those in which runs differ, and their outcome, as far as `width`
               letters allow
    headlines  columns of the metrics that the systems are about, shown by default
    """
    selected = columns or _usual_columns(runs, width, headlines)
    texts = {name: [plain(value) for value in runs[name]] for name in selected}
    shown = [
        Column(
            label=name,
            numeric=all(isinstance(value, int | float | None) for value in runs[name]),
            wrap=name not in ("label", "status", "constraints"),
        )
        for name in texts
    ]
    rows = [list(row) for row in zip(*texts.values(), strict=True)]
    return Page(title="Runs", parts=[Part(tables=[Table(columns=shown, rows=rows)])])


def _usual_columns(runs: Mapping[str, Sequence[Any]], width: int, headlines: Sequence[str]) -> list[str]:
    """Return the default columns that fit the width.

    Details are left out first, the digest before all, then settings that vary, from the last on.
    """
    varying = [name for name in runs if _is_setting(name) and _is_distinct(runs[name])]
    first = ["scenario", "label"] if _is_distinct(runs["scenario"]) else ["label"]
    outcome = [name for name in headlines if name in runs] or ["objective"]
    last = ["status", "constraints", *outcome]
    optional = [*varying, "gap", "violations", "seconds", "digest"]
    letters = {name: _column_letters(name, runs[name]) for name in (*first, *last, *optional)}
    while optional and sum(letters[name] for name in (*first, *last, *optional)) > width:
        optional.pop()
    return [*first, *optional[: len(varying)], *last, *optional[len(varying) :]]


def _is_setting(name: str) -> bool:
    return "." in name and not name.startswith("metric.")


def _column_letters(name: str, values: Sequence[Any]) -> int:
    """Return the width of a column in letters, the space beside it included."""
    return 3 + max(len(name), max((len(plain(value)) for value in values), default=0))


def _is_distinct(values: Sequence[Any]) -> bool:
    return len({plain(value) for value in values if value is not None}) > 1
