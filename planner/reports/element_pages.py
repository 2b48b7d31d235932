"""Pages about the elements of a problem: which failures hurt, and what to buy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from planner.formatting import amount_or_number, few, number, percent, scale_of, sizes
from planner.reports.document import Column, Page, Part, Table, Text
from planner.reports.run_pages import closing_parts, trouble

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario
    from planner.sweeps.failures import Failures
    from planner.sweeps.upgrade_list import Upgrades

MOST_FAILURES: Final = 15
"""Failures that a terminal shows."""
MOST_LEAST: Final = 3
"""Elements without consequences that a sentence names."""


def failures_page(result: Failures, scenario: Scenario | None = None) -> Page:
    """Return the failures, the worst first, and the picture with what each costs."""
    system, run = result.system, result.run
    about = f"{system.question} {sizes(run.problem.size())}."
    parts = [
        Part(
            title="Which failures hurt",
            sentences=[Text(result.verdict, "strong")],
            tables=[_failures_table(result, MOST_FAILURES)] if result.failures else [],
            notes=[*_failure_notes(result), *trouble(run)],
            drawings=lambda: [] if result.map is None else [result.map],
        )
    ]
    if len(result.failures) > MOST_FAILURES:
        parts.append(
            Part(title="All failures", tables=[_failures_table(result, None)], detail=True, folded=True)
        )
    name = scenario.name if scenario else run.label
    return Page(
        title=f"{system.name}: {name}, failures",
        about=about,
        parts=[*parts, *closing_parts(run.problem, scenario)],
    )


def _failures_table(result: Failures, most: int | None) -> Table:
    """Return a row for each failure; of the first `most` the most important figures, of all of them more."""
    shown = result.failures if most is None else result.failures[:most]
    system, metric = result.system, result.system.headline
    unit, text = scale_of(metric.name, [one.cost for one in result.failures], metric.unit)
    columns = [
        Column(label="failure"),
        Column(label="costs", unit=unit, numeric=True),
        Column(label="share", numeric=True),
    ]
    rows: list[list[Text | str]] = [
        [
            f"{one.kind} {one.element}",
            Text("no plan", "bad") if one.error else Text(text(one.cost), "" if one.is_harmless else "bad"),
            percent(one.share),
        ]
        for one in shown
    ]
    links = [one.busiest for one in shown if one.busiest is not None]
    if links:
        columns.append(Column(label="busiest link then", wrap=False))
        columns.append(Column(label=links[0].what, unit=links[0].unit, numeric=True))
        for row, one in zip(rows, shown, strict=True):
            row += ["-", "-"] if one.busiest is None else [one.busiest.name, number(one.busiest.value)]
    headline = system.plan.headline
    for name in [*headline.losses, headline.growth] if most is None else []:
        values = [one.metrics.get(name) for one in shown]
        if name and any(values):
            more = system.metric(name)
            unit, write = scale_of(name, values, more.unit)
            columns.append(Column(label=more.label, unit=unit, numeric=True))
            for row, value in zip(rows, values, strict=True):
                row.append(write(value))
    caption = (
        f"costs: by how much {metric.label[0].lower()}{metric.label[1:]} is worse than without a failure"
    )
    if headline.total:
        caption += f"; share: of what is {system.metric(headline.total).label.lower()}"
    if most is not None and len(result.failures) > most:
        caption += f"; the first {most} of {len(result.failures):,}, the worst first"
    return Table(
        title=f"{result.run.label} decides again after each failure",
        columns=columns,
        rows=rows,
        caption=caption,
        row_headers=1,
    )


def _failure_notes(result: Failures) -> list[Text | str]:
    errors = [one for one in result.failures if one.error]
    return [Text(f"{one.kind} {one.element}: {one.error}", "bad") for one in errors[:MOST_FAILURES]]


def upgrades_page(result: Upgrades, scenario: Scenario | None = None) -> Page:
    """Return the ladder of upgrades, how to apply it, and the Pareto curve."""
    system, run = result.system, result.run
    sentences: list[Text | str] = [Text(result.verdict, "strong")]
    notes: list[Text | str] = []
    if result.steps:
        notes.append(result.caveat)
        notes.append(f"It ends because {result.ending}." if result.ending else "")
    if result.dropped:
        notes.append(f"Left out, as later steps made it needless: {few(result.dropped)}.")
    if result.without_cost:
        notes.append(f"{result.without_cost:,} upgrades have no cost in the tables, and are no candidates.")
    notes.append(Text(f"{result.solved:,} problems solved in {number(result.seconds)} s", "dim"))
    texts = []
    if result.steps and scenario is not None:
        texts = [f"planner solve {scenario.name} --design {run.label} {result.command()}"]
        notes += ["", "To apply the list:", texts[0]]
    part = Part(
        title="What to buy",
        sentences=sentences,
        tables=[_ladder_table(result)] if result.steps else [],
        notes=[*(note for note in notes), *trouble(run)],
        drawings=lambda: [] if result.drawing is None else [result.drawing],
    )
    parts = [part]
    if len(result.points) > 1:
        parts.append(Part(title="What a budget reaches", tables=[_curve_table(result)], detail=True))
    name = scenario.name if scenario else run.label
    return Page(
        title=f"{system.name}: {name}, what to buy",
        about=f"{system.question} {sizes(run.problem.size())}.",
        parts=[*parts, *closing_parts(run.problem, scenario)],
    )


def _ladder_table(result: Upgrades) -> Table:
    """Return a row for each step, after one for the plan before the first."""
    metric, shares = result.metric, result.shares()
    values = [result.run.metrics.get(metric.name), *(step.metrics.get(metric.name) for step in result.steps)]
    unit, text = scale_of(metric.name, values, metric.unit)
    bought: list[list[str]] = [["", "before", "", "", ""]]
    for count, step in enumerate(result.steps, start=1):
        own = step.metric == metric.name
        gain = text(step.gain) if own else amount_or_number(step.gain, result.system.metric(step.metric).unit)
        better = result.system.metric(step.metric).better
        sign = "+" if better == "more" else "-"
        bought.append(
            [str(count), f"{step.kind} {step.element}", step.adds, number(step.cost), f"{sign}{gain}"]
        )
    columns = [Column(label="", numeric=True), Column(label="upgrade"), Column(label="adds")]
    rows: list[list[Text | str]] = [list(one[:3]) for one in bought]
    if result.has_costs:
        columns.append(Column(label="cost", unit=result.cost_unit, numeric=True))
        for row, one in zip(rows, bought, strict=True):
            row.append(one[3])
    columns.append(Column(label=metric.label, unit=unit, numeric=True))
    columns.append(Column(label="gain", unit=unit, numeric=True))
    for row, one, value in zip(rows, bought, values, strict=True):
        row += [text(value), one[4]]
    if any(share is not None for share in shares):
        columns.append(Column(label="demand that fits", numeric=True))
        lost = [bool(result.run.constraints.lost), *(bool(step.losses) for step in result.steps)]
        for row, share, is_lost in zip(rows, shares, lost, strict=True):
            row.append(Text(percent(share), "bad" if is_lost else "good"))
    caption = ""
    if result.has_costs:
        caption = f"in all {amount_or_number(result.cost, result.cost_unit)}"
        if result.budget is not None:
            caption += f" of a budget of {amount_or_number(result.budget, result.cost_unit)}"
    return Table(columns=columns, rows=rows, caption=caption, lines_after=frozenset({0}), row_headers=2)


def _curve_table(result: Upgrades) -> Table:
    metric = result.metric
    unit, text = scale_of(metric.name, [one.value for one in result.points], metric.unit)
    across = "cost" if result.has_costs else "upgrades"
    return Table(
        columns=[
            Column(label=across, unit=result.cost_unit, numeric=True),
            Column(label=metric.label, unit=unit, numeric=True),
            Column(label="upgrades"),
        ],
        rows=[[number(one.cost), text(one.value), few(one.elements) or "none"] for one in result.points],
        caption="of all sets of upgrades that were solved; another set may reach more",
        row_headers=1,
    )
