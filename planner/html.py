"""Results as one self-contained page to send to a colleague: tables first, charts where scripts run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
import pandas as pd
from markupsafe import Markup
from plotly import graph_objects as go
from plotly.offline import get_plotlyjs

from planner import __version__, charts
from planner.catalogue import find_system
from planner.drawing import Curve, Drawing
from planner.errors import InputError
from planner.files import make_folder, slug
from planner.record import column_of
from planner.report import ARROWS, amount, number, percent, sizes, unit_of, which_best

if TYPE_CHECKING:
    from planner.coordination import Curves, Measured
    from planner.explain import Explained
    from planner.reproduce import Reproduction
    from planner.run import Comparison, Run
    from planner.scenario import Scenario
    from planner.sweeping import Sweep
    from planner.system import Metric

MOST_ROWS: Final = 12
"""Of a plan's table that a page shows."""
MOST_RUNS: Final = 500
"""Of a sweep."""
MOST_FIGURES: Final = 6
"""Metrics drawn along each axis of a sweep."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell's text, and what marks it."""

    text: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table as a page shows it. `numbers` are the places of columns to be set flush right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int]
    title: str = ""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a page; folded ones open on a click.

    key           colours by what they stand for in the charts
    pictures      what is saved in place of `figures`, where that is to be seen in another size
    side_by_side  charts stand beside each other where the page is wide enough
    """

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Sheet] = ()
    figures: Sequence[go.Figure] = ()
    texts: Sequence[str] = ()
    folded: bool = False
    open: bool = False
    key: Mapping[str, str] = field(default_factory=dict)
    pictures: Sequence[go.Figure] = ()
    side_by_side: bool = False


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page to be written."""

    title: str
    about: str
    parts: Sequence[Part]
    warnings: Sequence[str] = field(default_factory=tuple)


def comparison_page(result: Comparison, scenario: Scenario) -> Page:
    """Designs side by side, and what each one's plan looks like."""
    system = result.system
    runs = result.runs
    parts = [Part(title="Designs side by side", tables=[_metrics(result)], figures=charts.comparison(result))]
    parts += [_run_part(run, alone=len(runs) == 1) for run in runs]
    parts.append(_scenario_part(scenario))
    warnings = [f"{run.label}: {run.error}" for run in runs if run.error is not None]
    warnings += [
        f"{run.label}: {run.proof.status}: {'; '.join(run.proof.reasons)}"
        for run in runs
        if run.error is None and run.plan is None
    ]
    return Page(
        title=f"{system.name}: {scenario.name}",
        about=f"{system.question} {sizes(result.problem.size())}.",
        parts=parts,
        warnings=warnings,
    )


def explained_page(result: Explained, scenario: Scenario) -> Page:
    """What limits a plan."""
    run, explanation = result.run, result.explanation
    parts = []
    if explanation is not None:
        tables = [
            _sheet(section.frame, section.units, title=section.title, caption=section.note)
            for section in explanation.sections
        ]
        parts.append(Part(title="What limits the plan", sentences=explanation.sentences, tables=tables))
    parts += [_run_part(run, alone=True), _scenario_part(scenario)]
    return Page(
        title=f"{run.system.name}: {scenario.name}, {run.label}",
        about=f"{run.system.question} {sizes(run.problem.size())}.",
        parts=parts,
    )


def sweep_page(sweep: Sweep) -> Page:
    """What a sweep came to: how figures move along its axes, and every run."""
    runs, axes = sweep.runs, list(sweep.grid.axes)
    parts = []
    for system_name, rows in runs.groupby("system", sort=False) if len(runs) else ():
        system = find_system(str(system_name))
        told = [axis for axis in axes if len(rows[axis].unique()) > 1]
        moving = [
            metric
            for metric in system.metrics
            if column_of(metric.name) in rows and _moves(rows[column_of(metric.name)])
        ]
        drawn = [_along(rows, axis, metric) for axis in told for metric in moving[:MOST_FIGURES]]
        shown = [
            "scenario",
            "label",
            *told,
            "status",
            "gap",
            "seconds",
            *(column_of(metric.name) for metric in moving),
        ]
        units = {column_of(metric.name): metric.unit for metric in system.metrics}
        table = _sheet(rows[[name for name in shown if name in rows]], units, title="runs", most=MOST_RUNS)
        parts.append(Part(title=str(system_name), figures=_figures(drawn), tables=[table]))
    return Page(
        title=f"Sweep {sweep.out.name}",
        about=f"{len(runs):,} of {len(sweep.grid):,} points; axes: {', '.join(axes) or 'none'}.",
        parts=parts,
        warnings=sweep.failures[:MOST_ROWS],
    )


def _moves(values: pd.Series) -> bool:
    known = pd.to_numeric(values, errors="coerce").dropna()
    return len(known) > 1 and float(known.max() - known.min()) > 1e-9 * float(known.abs().max())


def _along(rows: pd.DataFrame, axis: str, metric: Metric) -> Curve:
    """A metric by the values of an axis, a line for each design; the mean where runs fall together."""
    lines = rows.pivot_table(
        index=axis, columns="label", values=column_of(metric.name), aggfunc="mean", sort=False
    )
    numbers = pd.api.types.is_numeric_dtype(lines.index)
    frame = (lines.sort_index() if numbers else lines).rename_axis(columns=None).reset_index()
    units = dict.fromkeys((str(label) for label in lines), metric.unit)
    title = f"{metric.name} by {axis}" + (f" ({metric.unit})" if metric.unit else "")
    return Curve(title=title, frame=frame, units=units, bars=not numbers)


def coordination_page(measured: Sequence[Measured], curves: Sequence[Curves] = ()) -> Page:
    """What coordination is worth, across systems, and what is left of it where what is told is worse."""
    frame = pd.concat([one.frame for one in measured], ignore_index=True)
    sentences = [sentence for one in measured for sentence in one.sentences()]
    tables = [_worth(frame)]
    parts = [
        Part(title="All systems", sentences=sentences, tables=tables, figures=[charts.coordination(frame)])
    ]
    if curves:
        whole = pd.concat([one.frame for one in curves], ignore_index=True)
        for kind in dict.fromkeys(whole["kind"]):
            rows = whole[whole["kind"] == kind]
            panels = [
                charts.curves(its, str(kind), legend=False) for _, its in rows.groupby("system", sort=False)
            ]
            present = set(rows["mechanism"])
            parts.append(
                Part(
                    title=f"How good must shared information be: {kind}",
                    sentences=[sentence for one in curves for sentence in one.sentences(str(kind))],
                    figures=panels,
                    key={name: colour for name, colour in charts.MECHANISMS.items() if name in present},
                    pictures=[charts.curves(rows, str(kind))],
                    side_by_side=True,
                    tables=[_left(its) for _, its in rows.groupby("system", sort=False)],
                )
            )
    return Page(
        title="What coordination is worth",
        about="Performance as the share of the way from no coordination to the best that is proven possible.",
        parts=parts,
        warnings=[line for one in curves for line in one.trouble()],
    )


def _worth(frame: pd.DataFrame) -> Sheet:
    """Designs by what they know."""
    figures = ["performance", "cost", "answers_in_s", "messages", "bytes"]
    figures = [name for name in figures if frame[name].notna().any()]
    rows = [
        [
            *(Cell(text=str(row[name])) for name in ("system", "design", "mechanism")),
            Cell(text=percent(row["share"]), kind="bad" if (row["share"] or 0.0) < 0 else ""),
            *(Cell(text=number(row[name])) for name in figures),
        ]
        for row in frame.to_dict(orient="records")
    ]
    heads = ["system", "design", "mechanism", "share", *(name.replace("_", " ") for name in figures)]
    return Sheet(heads=heads, rows=rows, numbers=frozenset(range(3, len(heads))))


def _left(rows: pd.DataFrame) -> Sheet:
    """What is left of each design of one system, by what it is told."""
    system, what, unit = (str(rows[name].iloc[0]) for name in ("system", "kind", "unit"))
    shares = rows["share"].notna().any()
    heads = [f"by {what}", *(amount(value, unit) for value in dict.fromkeys(rows["value"]))]
    lines = []
    for design, its in rows.groupby("design", sort=False):
        cells = [
            Cell(text=percent(share), kind="bad" if (share or 0.0) < 0 else "") for share in its["share"]
        ]
        if not shares:
            cells = [Cell(text=number(worth)) for worth in its["performance"]]
        lines.append([Cell(text=str(design)), *cells])
    title = f"{system}: {'share of the way' if shares else 'performance'}"
    return Sheet(heads=heads, rows=lines, numbers=frozenset(range(1, len(heads))), title=title)


def reproduction_page(done: Sequence[Reproduction]) -> Page:
    """Published values beside ours."""
    verdicts = list(done[0].counts()) if done else []
    rows = [
        [Cell(text=one.name), *(Cell(text=str(count or "")) for count in one.counts().values())]
        for one in done
    ]
    totals = [sum(one.counts()[verdict] for one in done) for verdict in verdicts]
    rows.append([Cell(text="all", kind="best"), *(Cell(text=str(total), kind="best") for total in totals)])
    summary = Sheet(heads=["target", *verdicts], rows=rows, numbers=frozenset(range(1, 1 + len(verdicts))))
    parts = [Part(title="Verdicts", tables=[summary])]
    for one in done:
        table = Sheet(
            heads=["value", "published", "ours", "ratio", "unit", "verdict", "note"],
            rows=[
                [
                    Cell(text=row.quantity + (f" ({row.condition})" if row.condition else "")),
                    Cell(text=row.published if isinstance(row.published, str) else number(row.published)),
                    Cell(
                        text=("holds" if row.ours else "does not hold")
                        if isinstance(row.ours, bool)
                        else number(row.ours)
                    ),
                    Cell(text=number(row.ratio)),
                    Cell(text=row.unit),
                    Cell(
                        text=str(row.verdict),
                        kind={"reproduced": "good", "not reproduced": "bad"}.get(str(row.verdict), ""),
                    ),
                    Cell(text=row.note),
                ]
                for row in one.rows
            ],
            numbers=frozenset({1, 2, 3}),
        )
        parts.append(
            Part(
                title=f"{one.name}, {one.target.place}: {one.target.about}",
                tables=[table],
                figures=_figures(one.curves),
                folded=len(done) > 1,
            )
        )
    return Page(
        title="Published values beside ours" if len(done) != 1 else done[0].name,
        about="Tables and figures of the papers, run again.",
        parts=parts,
        warnings=[f"{one.name}: {one.error}" for one in done if one.error is not None],
    )


def write(page: Page, path: Path) -> None:
    """Write a page that needs nothing but itself.

    raises  InputError where the file cannot be written
    """
    figures: dict[str, Any] = {}
    parts = []
    for part in page.parts:
        names = []
        for figure in part.figures:
            names.append(f"chart{len(figures)}")
            figures[names[-1]] = json.loads(figure.to_json())
        parts.append({**vars(part), "charts": names})
    text = _template().render(
        title=page.title,
        about=page.about,
        warnings=page.warnings,
        parts=parts,
        version=__version__,
        machine=f"{os.cpu_count()} cores",
        # what stands in a script element ends at its first "</"
        figures=Markup(json.dumps(figures).replace("</", "<\\/")) if figures else "",
        plotly=Markup(get_plotlyjs()) if figures else "",
    )
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    make_folder(path.parent)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def save_pictures(page: Page, folder: Path) -> int:
    """Each of the page's charts as `folder/<title>.svg`; returns how many.

    raises  NoBrowser where there is no browser to draw them with
    """
    make_folder(folder)
    count = 0
    for part in page.parts:
        for figure in part.pictures or part.figures:
            count += 1
            title = re.sub(r"<[^>]*>", "", f"{part.title} {figure.layout.title.text}")
            charts.save_picture(figure, folder / f"{count:02}_{slug(title)}.svg")
    return count


@cache
def _template() -> jinja2.Template:
    source = (files("planner") / "templates" / "report.html.j2").read_text(encoding="utf-8")
    return jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    ).from_string(source)


# --- parts --------------------------------------------------------------------------------


def _metrics(result: Comparison) -> Sheet:
    """A row for each metric, a column for each design."""
    runs, system = result.runs, result.system
    rows = [
        [
            Cell(text="mechanism"),
            Cell(text=""),
            *(Cell(text=str(run.entry.design.mechanism), kind="dim") for run in runs),
        ],
        [Cell(text="status"), Cell(text=""), *(_status(run) for run in runs)],
        [Cell(text="gap"), Cell(text=""), *(Cell(text=number(run.proof.gap)) for run in runs)],
        [Cell(text="seconds"), Cell(text=""), *(Cell(text=number(run.proof.seconds)) for run in runs)],
        [
            Cell(text="limits broken"),
            Cell(text="↓"),
            *(
                Cell(text=number(len(run.violations)), kind="bad" if len(run.violations) else "")
                for run in runs
            ),
        ],
    ]
    for metric in system.metrics:
        values = [run.metrics.get(metric.name) for run in runs]
        if all(value is None for value in values):
            continue
        best = which_best(metric, values, values)
        cells = [
            Cell(text=number(value), kind="best" if is_best else "")
            for value, is_best in zip(values, best, strict=True)
        ]
        rows.append([Cell(text=metric.name), Cell(text=unit_of(metric), kind="dim"), *cells])
    caption = ARROWS
    if result.reference is not None:
        shares = [result.share_of_bound(run) for run in runs]
        texts = ["-" if share is None else f"{share:.1%}" for share in shares]
        rows.append(
            [Cell(text="share_of_bound"), Cell(text="↑", kind="dim"), *(Cell(text=text) for text in texts)]
        )
        caption += f"; share_of_bound: of the best {result.reference[0]} that is possible"
    return Sheet(
        heads=["", "", *(run.label for run in runs)],
        rows=rows,
        numbers=frozenset(range(2, 2 + len(runs))),
        caption=caption,
    )


def _run_part(run: Run, *, alone: bool) -> Part:
    """What one design decided."""
    drawings: Sequence[Drawing] = ()
    tables: list[Sheet] = []
    if run.plan is not None:
        if run.system.draw is not None:
            drawings = run.system.draw(run.problem, run.plan)
        for name, frame in run.plan.to_tables().items():
            tables.append(_sheet(frame, {}, title=f"plan: {name}"))
    if len(run.violations):
        tables.insert(0, _sheet(run.violations.frame, {}, title="limits broken"))
    proof = run.proof
    says = f"{proof.status}"
    if proof.objective is not None and proof.metric:
        says += f": {proof.metric} {number(proof.objective)}, bound {number(proof.bound)}"
    return Part(
        title=f"{run.label}: what it decides" if not alone else "The plan",
        sentences=[run.entry.design.about, says, *run.violations.sentences()],
        figures=_figures(drawings),
        tables=tables,
        folded=not alone,
    )


def _scenario_part(scenario: Scenario) -> Part:
    return Part(title="The scenario", texts=[scenario.to_toml(scenario.folder)], folded=True)


def _figures(drawings: Iterable[Drawing]) -> list[go.Figure]:
    return [charts.chart(drawing) for drawing in drawings]


def _status(run: Run) -> Cell:
    if run.error is not None:
        return Cell(text=type(run.error).__name__, kind="bad")
    return Cell(text=str(run.proof.status), kind="good" if run.plan is not None else "bad")


def _sheet(frame: pd.DataFrame, units: Any, *, title: str, caption: str = "", most: int = MOST_ROWS) -> Sheet:
    """A table of data; long ones are cut, and say so."""
    shown = frame.head(most)
    if len(frame) > len(shown):
        cut = f"the first {len(shown)} of {len(frame):,} rows"
        caption = f"{caption}; {cut}" if caption else cut
    numbers = {
        place
        for place, column in enumerate(frame)
        if pd.api.types.is_numeric_dtype(frame[column]) and not pd.api.types.is_bool_dtype(frame[column])
    }
    heads = [str(column) + (f" ({units[column]})" if units.get(column) else "") for column in frame]
    rows = [
        [
            Cell(text=number(value) if place in numbers else "" if value is None else str(value))
            for place, value in enumerate(row)
        ]
        for row in shown.itertuples(index=False)
    ]
    return Sheet(heads=heads, rows=rows, numbers=frozenset(numbers), title=title, caption=caption)
