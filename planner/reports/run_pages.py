"""Pages of results: a comparison, one run, an explanation, the windows of a series, a simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from planner import __version__
from planner.contract.drawing import NetworkMap
from planner.contract.notes import notes_of
from planner.contract.proof import OPTIMAL_GAP
from planner.formatting import amount_or_number, heading, number, percent, phrase, scale_of, sizes
from planner.reports.document import Column, Highlight, Kind, Page, Part, Table, Text, table_of
from planner.reports.metric_text import better, differ
from planner.runs.verdict import best_run, headline_values, windows_verdict
from planner.scenarios.commands import command_line, python_lines, value_text
from planner.scenarios.scenario import without_failures

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing
    from planner.contract.metrics import Metric
    from planner.contract.proof import Proof
    from planner.contract.system import System
    from planner.runs.files import Checked
    from planner.runs.rolling import Window
    from planner.runs.run import Comparison, Run
    from planner.runs.simulate import SimulatedDesigns
    from planner.runs.what_if import Explained
    from planner.scenarios.scenario import Scenario

ARROWS: Final = "↑ more is better, ↓ less is better"
MOST_HIGHLIGHTS: Final = 4
"""Designs whose headline figure stands out."""


def comparison_page(
    result: Comparison, scenario: Scenario | None = None, *, all_metrics: bool = False
) -> Page:
    """Return the verdict on a comparison, the designs side by side, and what each decides.

    scenario     shown whole in the page's details
    all_metrics  whether the first table has every metric, not only the most important ones
    """
    runs, system = result.runs, result.system
    title = f"{system.name}: {sizes(result.problem.size())}"
    figures, references = figures_of(result), references_of(result)
    chosen = system.metrics if all_metrics else system.table_metrics
    parts = [
        Part(
            title="Designs side by side",
            sentences=[Text(result.verdict, "strong")],
            tables=[
                metrics_table(figures, chosen, references=references, title=title),
                *breakdown_tables(runs),
            ],
            notes=[line for run in runs for line in trouble(run)],
            hint=_more_metrics(system, chosen),
            drawings=lambda: _comparison_drawings(result),
            figures=lambda: _comparison_figures(result),
        )
    ]
    if len(chosen) < len(system.metrics):
        table = metrics_table(figures, system.metrics, references=references)
        parts.append(Part(title="All metrics", tables=[table], detail=True, folded=True))
    whole = cache(lambda: draw_whole(scenario))
    parts += [plan_part(run, is_alone=len(runs) == 1, whole=whole) for run in runs]
    return Page(
        title=f"{system.name}: {scenario.name}" if scenario else system.name,
        about=f"{system.question} {sizes(result.problem.size())}.{_changes_in_words(scenario)}",
        parts=[*parts, *_data_parts(result.problem), *_scenario_parts(scenario)],
        picture=lambda: _picture(result, whole()),
        highlights=_highlights(result),
        assumptions=_assumptions(result, scenario),
    )


def run_page(run: Run, *, all_metrics: bool = False) -> Page:
    """Return the verdict on one run, its proof and its metrics."""
    system, proof = run.system, run.proof
    rows: list[list[Text | str]] = [
        [Text("Mechanism", "dim"), "", Text(str(run.entry.design.mechanism), "dim")],
        ["Search", "", search_status(run)],
        ["Constraints", "", constraints(run)],
    ]
    scope = f"for {proof.bound_scope}" if proof.bound_scope else ""
    for metric, objective, bound in _proven_values(run):
        rows.append(["Objective value", metric.label, amount_or_number(objective, metric.unit)])
        rows.append(["Bound", scope, amount_or_number(bound, metric.unit)])
    rows += [
        ["Gap", "", number(proof.gap)],
        ["Time", "s", number(proof.seconds)],
        *_compile_row([proof.compile_s]),
        ["Backend", "", proof.backend or "-"],
    ]
    for level in proof.levels:
        unit = system.metric(proof.metric).unit if proof.metric else ""
        most = amount_or_number(level.bound, unit)
        rows.append([f"Level {level.name}", f"of at most {most}", amount_or_number(level.objective, unit)])
    lines_after = frozenset({len(rows) - 1})
    chosen = system.metrics if all_metrics else system.table_metrics
    for metric in chosen:
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
    part = Part(
        sentences=[Text(run.verdict, "strong")],
        tables=[table, *breakdown_tables([run])],
        notes=trouble(run),
        hint=_more_metrics(system, chosen),
    )
    return Page(title=system.name, parts=[part])


def explained_page(result: Explained, scenario: Scenario | None = None) -> Page:
    """Return what limits a plan, and what would change it."""
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
                        section.frame, section.units, title=section.title, caption=section.note, most=None
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
    name = scenario.name if scenario else ""
    return Page(
        title=f"{run.system.name}: {name}, {run.label}",
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
    count = max((len(own) for own in designs.values()), default=0)
    columns = [Column(label="", wrap=False), Column(label="")]
    for design in designs:
        columns += [Column(label=design, numeric=True), Column(label=f"{design}, worst", numeric=True)]
    failed = [str(sum(window.exit_code > 0 for window in own)) for own in designs.values()]
    rows: list[list[Text | str]] = [
        ["Windows without a plan", "↓", *(cell for text in failed for cell in (text, ""))]
    ]
    values = {design: [one.row() for one in own if not one.exit_code] for design, own in designs.items()}
    figures: list[tuple[str, str, str, bool]] = [
        ("gap", "Gap", "", True),
        ("seconds", "Time", "s", True),
        ("violations", "Constraint violations", "", True),
        *((one.name, one.label, one.unit, one.better == "less") for one in system.metrics),
    ]
    for name, label, unit, is_worst_most in figures:
        known = [[row[name] for row in own if row.get(name) is not None] for own in values.values()]
        if any(known):
            worst = max if is_worst_most else min
            shown, text = scale_of(name, itertools.chain(*known), unit)
            row: list[Text | str] = [label, f"{'↓' if is_worst_most else '↑'} {shown}".strip()]
            for own in known:
                row.append(text(sum(own) / len(own)) if own else "-")
                row.append(Text(text(worst(own)) if own else "-", "dim"))
            rows.append(row)
    table = Table(
        title=f"{system.name}: {count} windows, mean and worst",
        columns=columns,
        rows=rows,
        caption=ARROWS,
        row_headers=2,
    )
    notes = [
        Text(f"{design}, {window.label}: {_why_no_plan(window)}", "bad")
        for design, own in designs.items()
        for window in own
        if window.exit_code
    ]
    verdict = windows_verdict(system, values)
    part = Part(
        sentences=[Text(verdict, "strong")] if verdict else [],
        tables=[table],
        notes=notes,
        drawings=lambda: _headline_over_windows(system, designs),
    )
    return Page(title=system.name, parts=[part])


def _headline_over_windows(system: System, designs: Mapping[str, Sequence[Window]]) -> list[Drawing]:
    """Return a curve of the headline metric over the windows, a line for each design."""
    import pandas as pd

    from planner.contract.drawing import Curve

    metric = system.headline
    columns = {
        design: pd.Series([one.run["metrics"].get(metric.name) for one in own], dtype=float)
        for design, own in designs.items()
    }
    count = max((len(own) for own in designs.values()), default=0)
    frame = pd.DataFrame({"window": range(1, count + 1), **columns})
    units = dict.fromkeys(designs, metric.unit)
    return [Curve(title=metric.label, frame=frame, units=units)] if count else []


def checked_page(result: Checked) -> Page:
    """Return the metrics of a plan made elsewhere, and the constraints that it violates."""
    system = result.system
    about = f"{system.question} {sizes(result.problem.size())}."
    if result.plan is None:
        return Page(title=system.name, about=about, parts=[Part(sentences=[Text(result.verdict, "strong")])])
    rows = []
    for one in system.metrics:
        value = result.metrics.get(one.name)
        unit, text = scale_of(one.name, [value], one.unit)
        rows.append([one.label, better(one, unit), text(value)])
    table = Table(
        title=system.name,
        columns=[Column(label="metric"), Column(label=""), Column(label="plan", numeric=True)],
        rows=rows,
    )
    notes = [Text(f"plan: {sentence}", "warning") for sentence in result.violations.sentences()]
    part = Part(
        sentences=[Text(result.verdict, "strong")],
        tables=[table],
        notes=notes,
        drawings=lambda: _drawings(system, result.problem, result.plan),
    )
    return Page(title=system.name, about=about, parts=[part])


def simulation_page(result: SimulatedDesigns, scenario: Scenario | None = None) -> Page:
    """Return the verdict on a simulation, its figures, and how its controllers fared.

    scenario  of the simulation; its failures are shown in the picture
    """
    runs = result.runs
    done = [run for run in runs if run.result is not None]
    rows: list[list[Text | str]] = [
        [Text("Mechanism", "dim"), "", *(Text(str(run.entry.design.mechanism), "dim") for run in runs)]
    ]
    for metric in result.metrics:
        values = [run.result.metrics.get(metric.name) if run.result else None for run in runs]
        if any(value is not None for value in values):
            unit, text = scale_of(metric.name, values, metric.unit)
            rows.append([metric.label, better(metric, unit), *_mark_best(metric, values, text)])
    outcomes = Counter(str(outcome) for run in done if run.result for outcome in run.result.rounds["outcome"])
    lines_after = frozenset({len(rows) - 1})
    for outcome in outcomes:
        counts = [
            str(int((run.result.rounds["outcome"] == outcome).sum())) if run.result else "-" for run in runs
        ]
        rows.append([f"Decisions {outcome}", "", *counts])
    table = Table(
        title=f"{result.system.name}: {sizes(result.problem.size())}, simulated in time",
        columns=_design_columns([run.label for run in runs]),
        rows=rows,
        caption=ARROWS,
        lines_after=lines_after,
        row_headers=2,
    )
    notes = [Text(f"{run.label}: {run.error}", "bad") for run in runs if run.error is not None]
    drawings = [drawing for run in done if run.result for drawing in run.result.drawings]
    verdict = result.verdict

    def figures() -> list[go.Figure]:
        from planner.reports import charts

        figures = {run.label: run.result.metrics for run in done if run.result}
        return [
            *charts.metrics_by_design(result.metrics, figures),
            *(charts.chart(drawing) for drawing in drawings),
        ]

    part = Part(
        sentences=[Text(verdict, "strong")] if verdict else [],
        tables=[table],
        notes=notes,
        drawings=lambda: [
            *bars_by_design(result.metrics, {run.label: run.result.metrics for run in done if run.result}),
            *drawings,
        ],
        figures=figures,
    )
    return Page(
        title=f"{result.system.name}, simulated in time",
        about=result.system.question,
        parts=[part],
        picture=lambda: _simulation_picture(result, draw_whole(scenario)),
    )


def _simulation_picture(result: SimulatedDesigns, whole: Drawing | None) -> tuple[str, Drawing] | None:
    """Return the frame with the worst headline metric of the best design, and what it shows."""
    simulation = result.system.studies.simulation
    drawn = {run.label: run.result for run in result.runs if run.result is not None and run.result.frames}
    if simulation is None or not drawn:
        return None
    metric = simulation.headline_metric
    sign = 1 if metric.better == "less" else -1  # the least is the best

    def rank(value: float | None) -> float:
        return math.inf if value is None else sign * value

    label = min(drawn, key=lambda one: rank(drawn[one].metrics.get(metric.name)))
    frames = drawn[label].frames
    # without the first quarter, in which a run fills up
    known = [frame for frame in frames[len(frames) // 4 :] if frame.value is not None]
    worst = max(known, key=lambda frame: rank(frame.value), default=frames[-1])
    return f"{label} at {worst.label}: {worst.drawing.title}", show_failures(worst.drawing, whole)


# --- parts that pages share ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DesignFigures:
    """The figures of one design, a column of the comparison.

    status      how its search ended
    constraints  whether its plan meets all constraints in truth
    gap_metric  label of the metric that the gap is of, where it is none that plans are ranked by
    may_be_best  whether its metrics compare to those of the others: it violates nothing, and loses no more
    shares      of the bound of each reference metric; None for unknown
    earlier     metrics of the plan before, where changes since then are shown
    """

    label: str
    mechanism: str
    status: Text
    constraints: Text
    gap: float | None
    gap_metric: str = ""
    seconds: float | None
    compile_s: float | None = None
    metrics: Mapping[str, float | None]
    may_be_best: bool = True
    shares: Sequence[float | None] = ()
    earlier: Mapping[str, float | None] = field(default_factory=dict)


def figures_of(result: Comparison) -> list[DesignFigures]:
    """Return the figures of each design of a comparison."""
    losses = [sum(run.constraints.lost.values()) for run in result.runs if run.plan is not None]
    least = min(losses, default=0.0)
    return [
        DesignFigures(
            label=run.label,
            mechanism=str(run.entry.design.mechanism),
            status=search_status(run),
            constraints=constraints(run),
            gap=run.proof.gap,
            gap_metric=_other_gap_metric(run),
            seconds=run.proof.seconds,
            compile_s=run.proof.compile_s,
            metrics=run.metrics,
            may_be_best=not run.constraints.violated
            and sum(run.constraints.lost.values()) <= least + 1e-6 * abs(least),
            shares=result.shares_of_bounds(run),
        )
        for run in result.runs
    ]


def _other_gap_metric(run: Run) -> str:
    """Return the label of the metric that a run's gap is of, where it is none that plans are ranked by."""
    name = run.proof.metric
    if run.proof.gap is None or not name or run.proof.ranks:
        return ""
    if name in {metric.name for metric in run.system.ranks}:
        return ""
    return run.system.metric(name).label


def references_of(result: Comparison) -> list[Metric]:
    """Return the metrics that shares are taken of; none where no bound is proven."""
    return [metric for metric, _ in result.references]


def metrics_table(
    designs: Sequence[DesignFigures],
    metrics: Sequence[Metric],
    *,
    references: Sequence[Metric] = (),
    title: str = "",
) -> Table:
    """Return a row for each metric and a column for each design; the best value of a row is marked.

    A plan that violates constraints, or loses more than another one, is never marked: its other figures
    may be better because of what it loses.

    references  the metrics whose proven bounds shares are taken of
    """
    rows: list[list[Text | str]] = [
        [Text("Mechanism", "dim"), "", *(Text(one.mechanism, "dim") for one in designs)],
        ["Search", "", *(one.status for one in designs)],
        ["Constraints", "", *(one.constraints for one in designs)],
        *_gap_row([one.gap for one in designs]),
        ["Time", "s", *(number(one.seconds) for one in designs)],
        *_compile_row([one.compile_s for one in designs]),
    ]
    lines_after = {len(rows) - 1}
    for metric in metrics:
        values = [one.metrics.get(metric.name) for one in designs]
        if any(value is not None for value in values):
            unit, text = scale_of(metric.name, values, metric.unit)
            changes = [
                change(value, one.earlier.get(metric.name), text)
                for value, one in zip(values, designs, strict=True)
            ]
            cells = [
                Text(cell.text + since, cell.kind)
                for cell, since in zip(
                    _mark_best(metric, values, text, [one.may_be_best for one in designs]),
                    changes,
                    strict=True,
                )
            ]
            rows.append([metric.label, better(metric, unit), *cells])
    caption = ARROWS
    if references:
        lines_after.add(len(rows) - 1)
        extremes = []
        for place, metric in enumerate(references):
            label = metric.words
            name = "Share of bound" if len(references) == 1 else f"Share of bound, {label}"
            shares = [one.shares[place] if one.shares else None for one in designs]
            rows.append([name, "↑", *map(percent, shares)])
            extremes.append(
                f"{'most' if metric.better == 'more' else 'least'} that is proven possible in {label}"
            )
        caption += f"; share of bound: compared to the {' and the '.join(extremes)}"
    for one in designs:
        if one.gap_metric:
            caption += f"; the gap of {one.label} refers to '{one.gap_metric}'"
    if any(one.earlier for one in designs):
        caption += "; in brackets: the change since the plan before"
    return Table(
        title=title,
        columns=_design_columns([one.label for one in designs]),
        rows=rows,
        caption=caption,
        lines_after=frozenset(lines_after),
        row_headers=2,
    )


def breakdown_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the table of figures by group of several designs' plans; none without groups."""
    parts = [(run, run.breakdown) for run in runs if run.breakdown is not None]
    if not parts:
        return []
    first = parts[0][1]
    names = list(first.frame.columns[1:])
    metrics = [parts[0][0].system.metric(name) for name in names]
    scales = []
    for metric in metrics:
        values = [value for _, one in parts for value in one.frame[metric.name].tolist()]
        scales.append(scale_of(metric.name, values, metric.unit))
    several = len(runs) > 1
    units = sorted({unit for unit, _ in scales if unit})
    columns = [
        *([Column(label="Design", wrap=False)] if several else []),
        Column(label=first.group.capitalize(), wrap=False),
        *(
            Column(label=metric.label if len(units) < 2 else f"{metric.label} ({unit})", numeric=True)
            for metric, (unit, _) in zip(metrics, scales, strict=True)
        ),
    ]
    rows: list[list[Text | str]] = []
    ends = []
    for run, one in parts:
        for group, *figures in one.frame.itertuples(index=False, name=None):
            cells = [text(value) for value, (_, text) in zip(figures, scales, strict=True)]
            rows.append([*([run.label] if several else []), str(group), *cells])
        ends.append(len(rows) - 1)
    return [
        Table(
            title=first.title,
            columns=columns,
            rows=rows,
            caption=f"amounts in {units[0]}" if len(units) == 1 else "",
            lines_after=frozenset(ends[:-1]),
            row_headers=2 if several else 1,
        )
    ]


def change(value: float | None, earlier: float | None, text: Callable[[float | None], str] = number) -> str:
    """Return the change since an earlier value in brackets, as `text` writes it; nothing without a change."""
    if value is None or earlier is None or math.isclose(value, earlier, rel_tol=1e-9, abs_tol=1e-12):
        return ""
    return f" ({'+' if value > earlier else '−'}{text(abs(value - earlier))})"


def _design_columns(labels: Sequence[str]) -> list[Column]:
    return [
        Column(label="", wrap=False),
        Column(label="", wrap=False),
        *(Column(label=label, numeric=True) for label in labels),
    ]


def trouble(run: Run) -> list[Text]:
    """Return why a run has no plan, or which constraints its plan violates in truth."""
    if run.error is not None:
        return [Text(f"{run.label}: {run.error}", "bad")]
    if run.plan is None:
        why = "; ".join(run.proof.reasons) or _missing_plan_reason(run.proof)
        if not run.exit_code:  # a design for bounds has done its work
            return []
        return [Text(f"{run.label}: {run.status}: {why}", "bad")]
    return [Text(f"{run.label}: {sentence}", "warning") for sentence in run.violations.sentences()]


def _missing_plan_reason(proof: Proof) -> str:
    if str(proof.status) != "undecided":
        return "no reason known"
    if proof.bound is not None:
        return "no plan, only a bound"
    return "neither a plan nor a bound within the limits given"


def _why_no_plan(window: Window) -> Any:
    return window.run.get("error") or "; ".join(window.run.get("reasons", [])) or "no plan"


def _proven_values(run: Run) -> list[tuple[Metric, float | None, float | None]]:
    """Return metric, objective value and bound of each rank that the run's proof speaks of."""
    proof = run.proof
    if proof.ranks:
        return [(run.system.metric(rank.metric), rank.objective, rank.bound) for rank in proof.ranks]
    return [(run.system.metric(proof.metric), proof.objective, proof.bound)] if proof.metric else []


def search_status(run: Run) -> Text:
    """Return how the search of a run ended, apart from whether its plan meets the constraints."""
    if run.error is not None:
        return Text(type(run.error).__name__, "bad")
    kind: Kind = "good" if run.status == "optimal" else "" if run.plan is not None else "bad"
    return Text(run.status, "dim" if run.status in ("heuristic", "bound only") else kind)


def constraints(run: Run) -> Text:
    """Return whether a run's plan meets all constraints in truth."""
    if run.plan is None:
        return Text("-")
    if run.constraints.met:
        return Text("met", "good")
    return Text("violated", "bad")


def _gap_row(gaps: Sequence[float | None]) -> list[list[Text | str]]:
    return [] if all(gap is None for gap in gaps) else [["Gap", "", *map(number, gaps)]]


def _compile_row(seconds: Sequence[float | None]) -> list[list[Text | str]]:
    if not any(one is not None and one > 0.05 for one in seconds):
        return []
    return [["Compiling (once)", "s", *(number(one) for one in seconds)]]


def _more_metrics(system: System, chosen: Sequence[Metric]) -> str:
    hidden = len(system.metrics) - len(chosen)
    return f"{hidden} more metrics with --all-metrics" if hidden > 0 else ""


def _mark_best(
    metric: Metric,
    values: Sequence[float | None],
    text: Callable[[float | None], str],
    may_be_best: Sequence[bool] | None = None,
) -> list[Text]:
    """Return the values as cells; the best of those that may be is marked, none where all agree."""
    allowed = [True] * len(values) if may_be_best is None else may_be_best
    known = [value for value, may in zip(values, allowed, strict=True) if may and value is not None]
    best = (max(known) if metric.better == "more" else min(known)) if differ(known) else math.nan
    return [
        Text(
            text(value),
            "best"
            if may and value is not None and math.isclose(value, best, rel_tol=1e-9, abs_tol=1e-12)
            else "",
        )
        for value, may in zip(values, allowed, strict=True)
    ]


def _comparison_figures(result: Comparison) -> list[go.Figure]:
    """Return a chart of the metrics in which designs differ, and one of the system's trade-off."""
    from planner.reports import charts

    planned = {run.label: run.metrics for run in result.runs if run.plan is not None}
    return [
        *charts.metrics_by_design(result.system.table_metrics, planned),
        *(charts.chart(drawing) for drawing in trade_off(result)),
    ]


def _comparison_drawings(result: Comparison) -> list[Drawing]:
    """Return bars of each metric in which designs differ, and the trade-off of the system."""
    planned = {run.label: run.metrics for run in result.runs if run.plan is not None}
    return [*bars_by_design(result.system.table_metrics, planned), *trade_off(result)]


def bars_by_design(
    metrics: Sequence[Metric], designs: Mapping[str, Mapping[str, float | None]]
) -> list[Drawing]:
    """Return bars of each metric in which designs differ.

    designs  values of the metrics by name, by the design's label
    """
    import pandas as pd

    from planner.contract.drawing import Curve

    drawings: list[Drawing] = []
    for metric in metrics:
        values = [figures.get(metric.name) for figures in designs.values()]
        if differ(values):
            is_share = not metric.unit and metric.name.endswith("share")
            heights = pd.Series(values, dtype=float) * (100.0 if is_share else 1.0)
            frame = pd.DataFrame({"design": list(designs), metric.label: heights})
            title = f"{metric.label}, {metric.better} is better"
            units = {metric.label: "%" if is_share else metric.unit}
            drawings.append(Curve(title=title, frame=frame, units=units, bars=True))
    return drawings


def trade_off(result: Comparison) -> list[Drawing]:
    """Return the points of the designs in the two metrics of the system's trade-off, where it names them."""
    import pandas as pd

    from planner.contract.drawing import Points

    system = result.system
    if system.studies.trade_off is None:
        return []
    across, up = (system.metric(name) for name in system.studies.trade_off)
    frame = pd.DataFrame(
        [
            (run.label, run.metrics.get(across.name), run.metrics.get(up.name))
            for run in result.runs
            if run.plan is not None
        ],
        columns=["design", across.label, up.label],
    ).dropna()
    title = f"{up.label} against {across.words}"
    units = {across.label: across.unit, up.label: up.unit}
    return [Points(title=title, frame=frame, units=units)] if len(frame) > 1 else []


def _picture(result: Comparison, whole: Drawing | None) -> tuple[str, Drawing] | None:
    """Return the picture of the best design's plan, and what it shows."""
    best = best_run(result)
    drawings = [] if best is None else _drawings(best.system, best.problem, best.plan, whole)
    return (f"{best.label}: {drawings[0].title}", drawings[0]) if best is not None and drawings else None


def _highlights(result: Comparison) -> list[Highlight]:
    """Return the headline figure of the designs, and what each loses."""
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


def constraints_in_words(run: Run) -> Text:
    """Return a statement that a plan meets all constraints in truth, or violates some."""
    is_met = run.constraints.met
    return Text("meets all constraints", "good") if is_met else Text("violates constraints", "bad")


def _assumptions(result: Comparison, scenario: Scenario | None) -> Part:
    """Return what a comparison rests on: the scenario and its changes, designs, proofs, data and versions."""
    from datetime import UTC, datetime

    rows: list[list[Text | str]] = []
    texts: list[str] = []
    if scenario is not None:
        labels = [run.label for run in result.runs]
        rows.append([Text("Scenario", "strong"), scenario.name])
        rows.append([Text("Changes", "strong"), "; ".join(changes_of(scenario)) or "none"])
        rows.append([Text("Service", "strong"), SERVICE[scenario.options.service]])
        if scenario.problem is None:  # a problem in memory has no file to name
            texts = [
                command_line(scenario.name, scenario.changes, labels),
                python_lines(scenario.name, scenario.changes, labels),
            ]
    rows.append([Text("Size", "strong"), sizes(result.problem.size())])
    for run in result.runs:
        rows.append([Text(f"Design {run.label}", "strong"), run.entry.design.about])
        rows.append([Text("What is proven", "dim"), what_is_proven(run)])
    rows += [[Text("Note on the data", "strong"), note] for note in notes_of(result.problem)]
    made = f"planner {__version__}, {datetime.now(UTC).astimezone():%-d %B %Y}"
    rows.append([Text("Made with", "strong"), made])
    table = Table(columns=[Column(label="", wrap=False), Column(label="")], rows=rows, row_headers=1)
    return Part(title="Assumptions", tables=[table], texts=texts, detail=True, folded=True)


SERVICE: Final = {
    "best": "capacity may be short: a plan leaves out what cannot be served, at least loss",
    "all": "all demand must be served",
}
"""The demands that a plan may leave out, by the solver's option `service`."""


def changes_of(scenario: Scenario) -> list[str]:
    """Return what was changed of a scenario in words, such as `fail links: Koblenz<->Koeln`."""
    changes = []
    for key, value in scenario.changes.items():
        section, *owner, name = key.split(".")
        words = f"{owner[0]}, {heading(name)}" if section == "designs" and owner else heading(name)
        is_list = isinstance(value, list | tuple)
        changes.append(f"{words}: {', '.join(map(str, value)) if is_list else value_text(value)}")
    return changes


def _changes_in_words(scenario: Scenario | None) -> str:
    changes = [] if scenario is None else changes_of(scenario)
    return f" Changed: {'; '.join(changes)}." if changes else ""


def what_is_proven(run: Run) -> str:
    """Return what is proven of a plan, and what is not, in one sentence."""
    proof, scope = run.proof, run.proof.bound_scope
    if run.error is not None:
        return f"no plan: {run.error}"
    if not _proven_values(run) or proof.bound is None:
        return f"nothing ({run.status}): a better plan may exist"
    metric, objective, _ = _proven_values(run)[0]
    extreme = "most" if metric.better == "more" else "least"
    scoped = f" for {scope}" if scope else ""
    if objective is not None and (proof.gap or 0.0) <= OPTIMAL_GAP:
        shown = amount_or_number(objective, metric.unit)
        says = f"optimal: {metric.label} of {shown} is the {extreme} that is possible{scoped}"
        says += "; nothing is proven of other plans" if scope else ""
    else:
        shown = amount_or_number(proof.bound, metric.unit)
        says = f"{metric.label} of at {extreme} {shown} is possible{scoped}"
        if objective is not None:
            says += f"; the plan is within {percent(proof.gap)} of it"
    return says if run.omniscient else f"{says}, by the information that it has"


def plan_part(run: Run, *, is_alone: bool, whole: Callable[[], Drawing | None] = lambda: None) -> Part:
    """Return what one design decided: drawings, violations and the plan's tables.

    whole  makes the picture of the problem without its failures; None where nothing has failed
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
        for metric, objective, bound in _proven_values(run)
        if objective is not None
    ]
    says = ": ".join([f"Search: {run.status}", *("; ".join(proven) for _ in proven[:1])])

    return Part(
        title="The plan" if is_alone else f"{run.label}: what it decides",
        sentences=[run.verdict, run.entry.design.about, says, *run.violations.sentences()],
        tables=tables,
        drawings=lambda: _drawings(run.system, run.problem, run.plan, whole()),
        detail=True,
        folded=not is_alone,
    )


def _drawings(system: System, problem: Any, plan: Any, whole: Drawing | None = None) -> list[Drawing]:
    """Return the drawings of a plan; none where there is no plan or the system draws none.

    whole  the picture of the problem without its failures, against which the first drawing shows them
    """
    if plan is None or system.plan.draw is None:
        return []
    drawings = list(system.plan.draw(problem, plan))
    return [*(show_failures(one, whole) for one in drawings[:1]), *drawings[1:]]


def show_failures(drawing: Drawing, whole: Drawing | None) -> Drawing:
    """Return the picture of a plan with what has failed, where it is a network.

    whole  the picture of the problem without its failures; None where nothing has failed
    """
    if isinstance(drawing, NetworkMap) and isinstance(whole, NetworkMap):
        return replace(drawing, whole=whole)
    return drawing


def draw_problem(system: System, problem: Any) -> Drawing | None:
    """Return the picture of a problem without a plan; None where the system draws none."""
    return next(iter(system.problem.draw(problem)), None) if system.problem.draw else None


def draw_whole(scenario: Scenario | None) -> Drawing | None:
    """Return the picture of a scenario's problem without its failures; None where nothing has failed."""
    whole = None if scenario is None else without_failures(scenario)
    return None if whole is None else draw_problem(whole.system, whole.make_problem())


def _data_parts(problem: Any) -> list[Part]:
    """Return what was converted or ignored of the data; a terminal has it on standard error already."""
    notes = notes_of(problem)
    return [Part(title="Notes on the data", notes=notes, detail=True)] if notes else []


def _scenario_parts(scenario: Scenario | None) -> list[Part]:
    if scenario is None:
        return []
    return [Part(title="The scenario", texts=[scenario.to_toml(scenario.folder)], detail=True, folded=True)]


def closing_parts(problem: Any, scenario: Scenario | None) -> list[Part]:
    """Return the last parts of a page: what was said of the data, and the scenario."""
    return [*_data_parts(problem), *_scenario_parts(scenario)]
