"""Pages of results: a comparison, one run, an explanation, the windows of a series, a simulation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.notes import notes_of
from planner.formatting import amount_or_number, counted, number, percent, phrase, scale_of, sizes
from planner.reports.document import Column, Highlight, Page, Part, Table, Text, table_of
from planner.reports.metric_text import DIRECTION_SIGNS, better
from planner.reports.run_drawings import (
    bars_by_design,
    comparison_drawings,
    comparison_figures,
    comparison_picture,
    draw_whole,
    plan_drawings,
    simulation_picture,
)
from planner.reports.run_tables import (
    ARROWS,
    breakdown_tables,
    compile_row,
    design_columns,
    figures_of,
    mark_best,
    metrics_table,
    references_of,
)
from planner.reports.run_text import (
    SERVICE,
    changes_in_words,
    changes_of,
    constraints,
    constraints_in_words,
    proven_values,
    search_status,
    trouble,
    what_is_proven,
    why_no_plan,
)
from planner.runs.verdict import headline_values, windows_verdict
from planner.scenarios.commands import command_line, python_lines
from planner.scenarios.user_designs import reference_of
from planner.version import __version__

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing
    from planner.contract.metrics import Metric
    from planner.contract.system import System
    from planner.runs.alternatives import Alternatives
    from planner.runs.diff import PlanChange
    from planner.runs.files import Checked
    from planner.runs.rolling import Window
    from planner.runs.run import Comparison, Run
    from planner.runs.simulate import SimulatedDesigns
    from planner.runs.what_if import Explained
    from planner.scenarios.scenario import Scenario

MOST_HIGHLIGHTS: Final = 4
"""Designs whose headline figure stands out."""


def comparison_page(
    result: Comparison,
    scenario: Scenario | None = None,
    *,
    all_metrics: bool = False,
    is_document: bool = False,
) -> Page:
    """Return the verdict on a comparison, the designs side by side, and the decisions of each.

    scenario     shown whole in the page's details
    all_metrics  whether the first table has every metric, not only the most important ones
    is_document  whether readers may not know the names that are typed: titles stand in their place, and
                 beside them in the assumptions
    """
    typed = result
    if is_document:
        result = result.titled()
    runs, system = result.runs, result.system
    title = f"{system.label if is_document else system.name}: {sizes(result.problem.size())}"
    figures, references = figures_of(result), references_of(result)
    metrics = system.metrics if all_metrics else system.table_metrics
    parts = [
        Part(
            title="Designs side by side",
            sentences=[Text(result.verdict, "strong")],
            tables=[
                metrics_table(figures, metrics, references=references, title=title),
                *breakdown_tables(runs),
            ],
            notes=[line for run in runs for line in trouble(run)],
            hint=_more_metrics(system, metrics),
            drawings=lambda: comparison_drawings(result),
            figures=lambda: comparison_figures(result),
        )
    ]
    if len(metrics) < len(system.metrics):
        table = metrics_table(figures, system.metrics, references=references)
        parts.append(Part(title="All metrics", tables=[table], detail=True, folded=True))
    full_drawing = cache(lambda: draw_whole(scenario))
    parts += [plan_part(run, is_alone=len(runs) == 1, full_drawing=full_drawing) for run in runs]
    return Page(
        title=_page_title(system, scenario),
        about=f"{system.question} {sizes(result.problem.size())}.{changes_in_words(scenario)}",
        parts=[*parts, *_data_parts(result.problem), *_scenario_parts(scenario)],
        picture=lambda: comparison_picture(result, full_drawing()),
        highlights=_highlights(result),
        assumptions=_assumptions(typed, scenario),
    )


def document_page(result: Comparison, scenario: Scenario | None = None) -> Page:
    """Return the page of a comparison for a report: in titles, for readers who type nothing."""
    return comparison_page(result, scenario, is_document=True)


def _page_title(system: System, scenario: Scenario | None, *others: str) -> str:
    """Return the title of a page: `Traffic routing: Germany, 50 cities`."""
    return ", ".join([f"{system.label}: {scenario.label}" if scenario else system.label, *others])


def run_page(run: Run, *, all_metrics: bool = False) -> Page:
    """Return the verdict on one run, its proof and its metrics."""
    system, proof = run.system, run.proof
    rows: list[list[Text | str]] = [
        [Text("Mechanism", "dim"), "", Text(str(run.entry.design.mechanism), "dim")],
        ["Search", "", search_status(run)],
        ["Constraints", "", constraints(run)],
    ]
    scope = f"for {proof.bound_scope}" if proof.bound_scope else ""
    for metric, objective, bound in proven_values(run):
        rows.append(["Objective value", metric.label, amount_or_number(objective, metric.unit)])
        rows.append(["Bound", scope, amount_or_number(bound, metric.unit)])
    rows += [
        ["Gap", "", number(proof.gap)],
        ["Time", "s", number(proof.seconds)],
        *compile_row([proof.compile_s]),
        ["Backend", "", proof.backend or "-"],
    ]
    for level in proof.levels:
        unit = system.metric(proof.metric).unit if proof.metric else ""
        limit_text = amount_or_number(level.bound, unit)
        rows.append(
            [f"Level {level.name}", f"of at most {limit_text}", amount_or_number(level.objective, unit)]
        )
    lines_after = frozenset({len(rows) - 1})
    metrics = system.metrics if all_metrics else system.table_metrics
    for metric in metrics:
        value = run.metrics.get(metric.name)
        if value is not None:
            unit, text = scale_of(metric.name, [value], metric.unit)
            rows.append([metric.label, better(metric, unit), text(value)])
    table = Table(
        title=f"{system.name}: {sizes(run.problem.size())}",
        columns=[Column(label="", wrap=False), Column(label=""), Column(label=run.label, numeric=True)],
        rows=rows,
        caption=ARROWS,
        lines_after=lines_after,
        row_headers=2,
    )
    section = Part(
        sentences=[Text(run.verdict, "strong")],
        tables=[table, *breakdown_tables([run])],
        notes=trouble(run),
        hint=_more_metrics(system, metrics),
    )
    return Page(title=system.label, parts=[section])


def explained_page(result: Explained, scenario: Scenario | None = None) -> Page:
    """Return the limits of a plan, and the changes that would improve it."""
    run, explanation = result.run, result.explanation
    parts = []
    if explanation is None:
        parts.append(Part(notes=trouble(run)))
    else:
        tables, empty = [], []
        for section in explanation.sections:
            if len(section.frame):
                tables.append(
                    table_of(
                        section.frame, section.units, title=section.title, caption=section.note, upper=None
                    )
                )
            else:
                empty.append(Text(f"{section.title}: none. {section.note}".rstrip(" ."), "dim"))
        head = Text(f"{run.system.name}, {run.label}: {sizes(run.problem.size())}", "strong")
        sentences: list[Text | str] = [head, *(f"- {sentence}" for sentence in explanation.sentences)]
        parts.append(
            Part(
                title="What limits the plan",
                sentences=sentences,
                tables=tables,
                notes=[*empty, *trouble(run)],
            )
        )
    return Page(
        title=_page_title(run.system, scenario, run.entry.title),
        about=f"{run.system.question} {sizes(run.problem.size())}.",
        parts=[
            *parts,
            plan_part(run, is_alone=True),
            *_data_parts(run.problem),
            *_scenario_parts(scenario),
        ],
    )


def windows_page(system: System, windows: Sequence[Window]) -> Page:
    """Return the verdict on a series, and the mean and the worst of each metric over its windows."""
    designs: dict[str, list[Window]] = {}
    for window in windows:
        designs.setdefault(window.design, []).append(window)
    values = {
        design: [window.row() for window in own_windows if not window.exit_code]
        for design, own_windows in designs.items()
    }
    notes = [
        Text(f"{design}, {window.label}: {why_no_plan(window)}", "bad")
        for design, own_windows in designs.items()
        for window in own_windows
        if window.exit_code
    ]
    verdict = windows_verdict(system, values)
    section = Part(
        sentences=[Text(verdict, "strong")] if verdict else [],
        tables=[_windows_table(system, designs, values)],
        notes=notes,
        drawings=lambda: _headline_over_windows(system, designs),
    )
    return Page(title=system.label, parts=[section])


def _windows_table(
    system: System, designs: Mapping[str, Sequence[Window]], values: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Table:
    """Return the mean and the worst of each metric over the windows of each design.

    values  rows of the windows with a plan, by design
    """
    columns = [Column(label="", wrap=False), Column(label="")]
    for design in designs:
        columns += [Column(label=design, numeric=True), Column(label=f"{design}, worst", numeric=True)]
    failed = [str(sum(window.exit_code > 0 for window in own_windows)) for own_windows in designs.values()]
    rows: list[list[Text | str]] = [
        ["Windows without a plan", "↓", *(cell for text in failed for cell in (text, ""))]
    ]
    figures: list[tuple[str, str, str, str]] = [
        ("gap", "Gap", "", "less"),
        ("seconds", "Time", "s", "less"),
        ("violations", "Constraint violations", "", "less"),
        *((metric.name, metric.label, metric.unit, metric.better) for metric in system.metrics),
    ]
    for name, label, unit, direction in figures:
        values_of = [
            [row[name] for row in rows_of if row.get(name) is not None] for rows_of in values.values()
        ]
        if any(values_of):
            worst = min if direction == "more" else max
            shown, text = scale_of(name, itertools.chain(*values_of), unit)
            row: list[Text | str] = [label, f"{DIRECTION_SIGNS[direction]} {shown}".strip()]
            for numbers in values_of:
                row.append(text(sum(numbers) / len(numbers)) if numbers else "-")
                is_shown = bool(numbers) and direction != "neither"
                row.append(Text(text(worst(numbers)) if is_shown else "-", "dim"))
            rows.append(row)
    count = max((len(own_windows) for own_windows in designs.values()), default=0)
    return Table(
        title=f"{system.name}: {counted(count, 'windows')}, mean and worst",
        columns=columns,
        rows=rows,
        caption=ARROWS,
        row_headers=2,
    )


def _headline_over_windows(system: System, designs: Mapping[str, Sequence[Window]]) -> list[Drawing]:
    """Return a curve of the headline metric over the windows, a line for each design."""
    import pandas as pd

    from planner.contract.drawing import Curve

    metric = system.headline
    columns = {
        design: pd.Series([window.run["metrics"].get(metric.name) for window in windows], dtype=float)
        for design, windows in designs.items()
    }
    count = max((len(windows) for windows in designs.values()), default=0)
    frame = pd.DataFrame({"window": range(1, count + 1), **columns})
    units = dict.fromkeys(designs, metric.unit)
    return [Curve(title=metric.label, frame=frame, units=units)] if count else []


def alternatives_page(result: Alternatives, scenario: Scenario | None = None) -> Page:
    """Return plans near the optimum: the aim of each beside the optimum, then all metrics side by side."""
    rows = []
    for item in result.alternatives:
        unit, text = scale_of("", [item.amount, item.at_optimum, item.bound], item.goal.unit)
        loss = "-" if item.loss is None else percent(item.loss)
        rows.append(
            [
                item.name,
                item.goal.about,
                unit,
                text(item.at_optimum),
                text(item.amount),
                text(item.bound),
                loss,
            ]
        )
    labels = ["In the optimum", "Here", "Bound", "Loss"]
    table = Table(
        title="Alternatives",
        columns=[
            Column(label="Plan"),
            Column(label="Aim"),
            Column(label=""),
            *(Column(label=label, numeric=True) for label in labels),
        ],
        rows=rows,
        caption="Bound: no plan within the loss is better in the aim. Loss: of the optimum's objective.",
        row_headers=1,
    )
    first = Part(
        title="Plans near the optimum",
        sentences=[Text(result.verdict, "strong"), Text(result.optimum.verdict)],
        tables=[table] if rows else [],
        notes=trouble(result.optimum),
    )
    page = comparison_page(result.comparison(), scenario)
    return replace(page, parts=[first, *(replace(part, detail=True) for part in page.parts)])


def checked_page(result: Checked) -> Page:
    """Return the metrics of a plan made elsewhere, and the constraints that it violates."""
    system = result.system
    about = f"{system.question} {sizes(result.problem.size())}."
    if result.plan is None:
        return Page(title=system.label, about=about, parts=[Part(sentences=[Text(result.verdict, "strong")])])
    rows = []
    for metric in system.metrics:
        value = result.metrics.get(metric.name)
        if value is not None:
            unit, text = scale_of(metric.name, [value], metric.unit)
            rows.append([metric.label, better(metric, unit), text(value)])
    table = Table(
        title=system.name,
        columns=[Column(label="metric"), Column(label=""), Column(label="plan", numeric=True)],
        rows=rows,
    )
    notes = [Text(f"plan: {sentence}", "warning") for sentence in result.violations.sentences()]
    section = Part(
        sentences=[Text(result.verdict, "strong")],
        tables=[table],
        notes=notes,
        drawings=lambda: plan_drawings(system, result.problem, result.plan),
    )
    return Page(title=system.label, about=about, parts=[section])


def plan_change_page(change: PlanChange) -> Page:
    """Return the page of a change from one plan to another: metrics, steps, and rows that differ."""
    rows: list[list[Text | str]] = []
    for metric in change.system.metrics:
        values = [run.metrics.get(metric.name) for run in (change.before, change.after)]
        if any(value is not None for value in values):
            unit, text = scale_of(metric.name, values, metric.unit)
            rows.append([metric.label, better(metric, unit), *(text(value) for value in values)])
    metrics = Table(
        title=f"{change.system.name}: {sizes(change.after.problem.size())}",
        columns=design_columns([change.before.label, change.after.label]),
        rows=rows,
        caption=ARROWS,
        row_headers=2,
    )
    frames = {f"Changes in {name}": frame for name, frame in change.tables.items() if len(frame)}
    if change.steps is not None:
        frames = {"Steps": change.steps, **frames}
    return Page(
        title="Change of the plan",
        parts=[
            Part(
                sentences=[Text(sentence, "strong") for sentence in change.sentences],
                tables=[metrics, *(table_of(frame, title=name) for name, frame in frames.items())],
            ),
        ],
    )


def simulation_page(result: SimulatedDesigns, scenario: Scenario | None = None) -> Page:
    """Return the verdict on a simulation, its metrics, and the results of its controllers.

    scenario  of the simulation; its failures are shown in the picture
    """
    metrics_of = {run.label: run.result.metrics for run in result.runs if run.result is not None}
    drawings = _titled_drawings(result)

    def figures() -> list[go.Figure]:
        from planner.reports import charts

        return [
            *charts.metrics_by_design(result.metrics, metrics_of),
            *(charts.chart(drawing) for drawing in drawings),
        ]

    verdict = result.verdict
    section = Part(
        sentences=[Text(verdict, "strong")] if verdict else [],
        tables=[_simulation_table(result)],
        notes=[Text(f"{run.label}: {run.error}", "bad") for run in result.runs if run.error is not None],
        drawings=lambda: [*bars_by_design(result.metrics, metrics_of), *drawings],
        figures=figures,
    )
    return Page(
        title=_page_title(result.system, scenario, "simulated in time"),
        about=result.system.question,
        parts=[section],
        picture=lambda: simulation_picture(result, draw_whole(scenario)),
    )


def _simulation_table(result: SimulatedDesigns) -> Table:
    """Return the metrics of each design, and the number of its controllers' decisions by outcome."""
    runs = result.runs
    rows: list[list[Text | str]] = [
        [Text("Mechanism", "dim"), "", *(Text(str(run.entry.design.mechanism), "dim") for run in runs)]
    ]
    for metric in result.metrics:
        values = [run.result.metrics.get(metric.name) if run.result else None for run in runs]
        if any(value is not None for value in values):
            unit, text = scale_of(metric.name, values, metric.unit)
            rows.append([metric.label, better(metric, unit), *mark_best(metric, values, text)])
    lines_after = frozenset({len(rows) - 1})
    rows += _outcome_rows(result)
    return Table(
        title=f"{result.system.name}: {sizes(result.problem.size())}, simulated in time",
        columns=design_columns([run.label for run in runs]),
        rows=rows,
        caption=ARROWS,
        lines_after=lines_after,
        row_headers=2,
    )


def _outcome_rows(result: SimulatedDesigns) -> list[list[Text | str]]:
    """Return a row for each outcome of decisions, with its number for each design."""
    counts_of = [
        None if run.result is None else Counter(map(str, run.result.rounds["outcome"])) for run in result.runs
    ]
    outcomes = dict.fromkeys(outcome for counts in counts_of if counts for outcome in counts)
    rows: list[list[Text | str]] = []
    for outcome in outcomes:
        cells = ["-" if counts is None else str(counts[outcome]) for counts in counts_of]
        rows.append([f"Decisions {outcome}", "", *cells])
    return rows


def _titled_drawings(result: SimulatedDesigns) -> list[Drawing]:
    """Return the drawings of all designs, with the design in the title where there are several."""
    finished = [(run.label, run.result) for run in result.runs if run.result is not None]
    return [
        replace(drawing, title=f"{label}: {drawing.title}") if len(finished) > 1 else drawing
        for label, simulation in finished
        for drawing in simulation.drawings
    ]


def _more_metrics(system: System, shown: Sequence[Metric]) -> str:
    hidden = len(system.metrics) - len(shown)
    return f"{hidden} more metrics with --all-metrics" if hidden > 0 else ""


def _highlights(result: Comparison) -> list[Highlight]:
    """Return the headline metric of the designs, and the losses of each."""
    metric, highlights = result.system.headline, []
    for run in result.runs[:MOST_HIGHLIGHTS]:
        values = headline_values(run)
        if values:
            lost = [
                phrase(verb, amount_or_number(run.constraints.lost[name], run.system.metric(name).unit))
                for name, verb in run.system.plan.headline.losses.items()
                if name in run.constraints.lost
            ]
            note = Text(lost[0], "bad") if lost else constraints_in_words(run)
            shown = amount_or_number(values[0], metric.unit)
            highlights.append(Highlight(f"{metric.label}, {run.label}", shown, note))
    return highlights


def _assumptions(result: Comparison, scenario: Scenario | None) -> Part:
    """Return the assumptions of a comparison: scenario, changes, designs, proofs, data and versions."""
    from datetime import UTC, datetime

    rows: list[list[Text | str]] = []
    texts: list[str] = []
    if scenario is not None:
        rows.append([Text("Scenario", "strong"), _with_typed_name(scenario.label, scenario.name)])
        rows.append([Text("Changes", "strong"), "; ".join(changes_of(scenario)) or "none"])
        rows.append([Text("Service", "strong"), SERVICE[scenario.options.service]])
        if scenario.problem is None:  # a problem in memory has no file to name
            texts = _commands(result, scenario)
    rows.append([Text("Size", "strong"), sizes(result.problem.size())])
    for run in result.runs:
        name = _with_typed_name(run.entry.title, run.label)
        rows.append([Text(f"Design {name}", "strong"), run.entry.design.about])
        rows.append([Text("What is proven", "dim"), what_is_proven(run)])
    rows += [[Text("Note on the data", "strong"), note] for note in notes_of(result.problem)]
    made = f"planner {__version__}, {datetime.now(UTC).astimezone():%-d %B %Y}"
    rows.append([Text("Made with", "strong"), made])
    table = Table(columns=[Column(label="", wrap=False), Column(label="")], rows=rows, row_headers=1)
    return Part(title="Assumptions", tables=[table], texts=texts, detail=True, folded=True)


def _with_typed_name(title: str, name: str) -> str:
    """Return a title with the name that is typed behind it: `Equal-cost multipath (ecmp)`."""
    return title if title == name else f"{title} ({name})"


def _commands(result: Comparison, scenario: Scenario) -> list[str]:
    """Return the command and the Python that compare the same; none where a design or plan is in memory."""
    own = scenario.additions.plans
    plans = {name: path for name, path in own.items() if isinstance(path, Path)}
    listed = [run for run in result.runs if run.label not in own]
    words = [reference_of(run.label, run.entry.design) for run in listed]
    named = [word for word in words if word is not None]
    if len(named) < len(words) or len(plans) < len(own):
        return []
    arguments = (scenario.name, scenario.changes, named, plans)
    return [command_line(*arguments), python_lines(*arguments)]


def plan_part(run: Run, *, is_alone: bool, full_drawing: Callable[[], Drawing | None] = lambda: None) -> Part:
    """Return the decisions of one design: drawings, violations and the plan's tables.

    full_drawing  makes the picture of the problem without its failures; None where nothing has failed
    """
    tables: list[Table] = []
    if len(run.violations):
        tables.append(table_of(run.violations.frame, title="Constraint violations"))
    if run.plan is not None:
        tables += breakdown_tables([run])
        tables += [table_of(frame, title=f"plan: {name}") for name, frame in run.plan.to_tables().items()]
    proven = [
        f"{metric.label} {amount_or_number(objective, metric.unit)}, "
        f"bound {amount_or_number(bound, metric.unit)}"
        for metric, objective, bound in proven_values(run)
        if objective is not None
    ]
    says = ": ".join([f"Search: {run.status}", *("; ".join(proven) for _ in proven[:1])])

    return Part(
        title="The plan" if is_alone else f"{run.label}: what it decides",
        sentences=[run.verdict, run.entry.design.about, says, *run.violations.sentences()],
        tables=tables,
        drawings=lambda: plan_drawings(run.system, run.problem, run.plan, full_drawing()),
        detail=True,
        folded=not is_alone,
    )


def _data_parts(problem: Any) -> list[Part]:
    """Return the conversions and ignored columns of the data; terminals have them on standard error."""
    notes = notes_of(problem)
    return [Part(title="Notes on the data", notes=notes, detail=True)] if notes else []


def _scenario_parts(scenario: Scenario | None) -> list[Part]:
    if scenario is None:
        return []
    return [Part(title="The scenario", texts=[scenario.to_toml(scenario.folder)], detail=True, folded=True)]


def closing_parts(problem: Any, scenario: Scenario | None) -> list[Part]:
    """Return the last parts of a page: the notes on the data, and the scenario."""
    return [*_data_parts(problem), *_scenario_parts(scenario)]
