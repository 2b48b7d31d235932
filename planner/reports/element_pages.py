"""Pages about the elements of a problem: which failures hurt, and what to buy."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner.formatting import amount_or_number, few, number, percent, scale_of, sizes
from planner.io.toml import format_value
from planner.reports.document import Column, Page, Part, Table, Text, table_of
from planner.reports.run_pages import closing_parts
from planner.reports.run_text import trouble
from planner.scenarios.arguments import plain_value
from planner.scenarios.scenario import changes_between, load

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario
    from planner.sweeps.failure_list import Failure, Failures
    from planner.sweeps.upgrade_list import Upgrades

MOST_FAILURES: Final = 15
"""Failures that a terminal shows."""


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
    if len(result.failures) > MOST_FAILURES or (result.restoration and result.failures):
        parts.append(
            Part(title="All failures", tables=[_failures_table(result, None)], detail=True, folded=True)
        )
    parts += [
        Part(
            title=one.title,
            tables=[table_of(one.frame, one.units, title="", caption=one.note, most=None)],
        )
        for one in result.sections
    ]
    name = scenario.name if scenario else run.label
    return Page(
        title=f"{system.name}: {name}, failures",
        about=about,
        parts=[*parts, *closing_parts(run.problem, scenario)],
    )


def _failures_table(result: Failures, most: int | None) -> Table:
    """Return a row for each failure; of the first `most` the most important figures, of all of them more."""
    shown = result.failures if most is None else result.failures[:most]
    system, metric = result.system, result.metric
    unit, text = scale_of(metric.name, [one.cost for one in result.failures], metric.unit)
    columns = [
        Column(label="failure"),
        Column(label="costs", unit=unit, numeric=True),
        Column(label="share", numeric=True),
    ]
    rows: list[list[Text | str]] = [
        [
            one.name,
            Text("no plan", "bad") if one.error else Text(text(one.cost), "" if one.is_harmless else "bad"),
            percent(one.share),
        ]
        for one in shown
    ]
    if any(one.probability is not None for one in shown):
        columns.insert(1, Column(label="probability", numeric=True))
        for row, one in zip(rows, shown, strict=True):
            row.insert(1, number(one.probability))
    links = [one.busiest for one in shown if one.busiest is not None]
    if links:
        what = f"busiest link then, {links[0].what}"
        columns.append(Column(label=what, unit=links[0].unit, numeric=True))
        for row, one in zip(rows, shown, strict=True):
            row.append("-" if one.busiest is None else f"{one.busiest.name}  {number(one.busiest.value)}")
    headline = system.plan.headline
    if most is None:
        _add_figures(result, shown, columns, rows)
    caption = f"costs: by how much {metric.words} is worse than without a failure"
    if headline.total:
        caption += f"; share: of what is {system.metric(headline.total).words}"
    if most is not None and len(result.failures) > most:
        caption += f"; the first {most} of {len(result.failures):,}, the worst first"
    title = f"{result.run.label} decides again after each failure"
    if result.restoration:
        title = f"{result.run.label}; after a failure, {result.restoration}"
    return Table(
        title=title,
        columns=columns,
        rows=rows,
        caption=caption,
        row_headers=1,
    )


def _add_figures(
    result: Failures, shown: Sequence[Failure], columns: list[Column], rows: list[list[Text | str]]
) -> None:
    """Add what users lose, how far demand can grow, and the further figures of an analysis."""
    system, study = result.system, result.system.studies.failures
    headline = system.plan.headline
    figures = {
        name: (system.metric(name).label, system.metric(name).unit)
        for name in (*headline.losses, headline.growth)
        if name and any(one.metrics.get(name) for one in shown)
    }
    if study is not None and result.restoration:
        known = {name for one in shown for name in one.figures}
        figures |= {name: about for name, about in study.figures.items() if name in known}
    for name, (label, own_unit) in figures.items():
        values = [one.metrics.get(name, one.figures.get(name)) for one in shown]
        unit, write = scale_of(name, values, own_unit)
        columns.append(Column(label=label, unit=unit, numeric=True))
        for row, value in zip(rows, values, strict=True):
            row.append(write(value))


def _failure_notes(result: Failures) -> list[Text | str]:
    errors = [one for one in result.failures if one.error]
    return [Text(f"{one.name}: {one.error}", "bad") for one in errors[:MOST_FAILURES]]


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
    if result.steps and scenario is not None and scenario.problem is None:
        what = "write" if result.findings else "apply"
        notes += ["", f"To {what} the list:", _command(result, scenario)]
    part = Part(
        title="What to buy",
        sentences=sentences,
        tables=[_ladder_table(result)] if result.steps else [],
        notes=[*notes, *trouble(run)],
        drawings=lambda: [] if result.drawing is None else [result.drawing],
    )
    parts = [part]
    if len(result.points) > 1:
        is_detail = not result.findings
        parts.append(Part(title="What a budget reaches", tables=[_curve_table(result)], detail=is_detail))
    name = scenario.name if scenario else run.label
    return Page(
        title=f"{system.name}: {name}, what to buy",
        about=f"{system.question} {sizes(run.problem.size())}.",
        parts=[*parts, *closing_parts(run.problem, scenario)],
    )


def _command(result: Upgrades, scenario: Scenario) -> str:
    """Return the command that solves the scenario with all upgrades."""
    document = {**scenario.raw, "problem": {**scenario.raw["problem"], **plain_value(result.adjustments)}}
    changes = changes_between(load(scenario.name).raw, document)
    words = ["planner", "solve", scenario.name, "--design", result.run.label]
    for key, value in changes.items():
        words += ["--set", f"{key}={format_value(value)}"]
    return shlex.join([*words, "--out", "plan"] if result.findings else words)


def _ladder_table(result: Upgrades) -> Table:
    """Return a row for each step, after one for the plan before the first."""
    steps, metric = result.steps, result.metric
    plans = [result.first, *(step.metrics for step in steps)]
    values = [metrics.get(metric.name) for metrics in plans]
    unit, text = scale_of(metric.name, values, metric.unit)
    is_alone = len({step.kind for step in steps}) == 1
    names = [step.element if is_alone else f"{step.kind} {step.element}" for step in steps]
    columns: list[tuple[Column, Sequence[Text | str]]] = [
        (Column(label="", numeric=True), ["", *map(str, range(1, len(steps) + 1))]),
        (Column(label="upgrade"), ["before", *names]),
        (Column(label="adds"), ["", *(step.adds for step in steps)]),
    ]
    if result.has_costs:
        cost = Column(label="cost", unit=result.cost_unit, numeric=True)
        columns.append((cost, ["", *(number(step.cost) for step in steps)]))
    columns.append((Column(label=metric.label, unit=unit, numeric=True), list(map(text, values))))
    other = next((step.metric for step in steps if step.metric != metric.name), None)
    if other is not None:  # steps that improve the second rank only
        second = result.system.metric(other)
        figures = [number(metrics.get(other)) for metrics in plans]
        columns.append((Column(label=second.label, unit=second.unit, numeric=True), figures))
    shares = _fitting_shares(result)
    if shares:
        columns.append((Column(label="fits", numeric=True), shares))
    return Table(
        columns=[column for column, _ in columns],
        rows=list(zip(*(cells for _, cells in columns), strict=True)),
        caption="; ".join(_ladder_captions(result, has_shares=bool(shares))),
        lines_after=frozenset({0}),
        row_headers=2,
    )


def _fitting_shares(result: Upgrades) -> list[Text]:
    """Return the share that fits before and after each step; nothing where it is unknown."""
    shares = result.shares()
    if all(share is None for share in shares):
        return []
    is_lost_before = bool(result.run.constraints.lost) if result.before is None else shares[0] != 1.0
    lost = [is_lost_before, *(bool(step.losses) for step in result.steps)]
    pairs = zip(shares, lost, strict=True)
    return [Text(percent(share), "bad" if is_lost else "good") for share, is_lost in pairs]


def _ladder_captions(result: Upgrades, *, has_shares: bool) -> list[str]:
    captions = []
    if has_shares:
        captions.append("fits: share of what is asked for that is served; over 100%: how far it can grow")
    if result.has_costs:
        caption = f"in all {amount_or_number(result.cost, result.cost_unit)}"
        if result.budget is not None:
            caption += f" of a budget of {amount_or_number(result.budget, result.cost_unit)}"
        captions.append(caption)
    return captions


def _curve_table(result: Upgrades) -> Table:
    metric = result.metric
    unit, text = scale_of(metric.name, [one.value for one in result.points], metric.unit)
    if result.findings:
        return Table(
            columns=[
                Column(label="budget", unit=result.cost_unit, numeric=True),
                Column(label=metric.label, unit=unit, numeric=True),
                Column(label="at most", unit=unit, numeric=True),
            ],
            rows=[
                [number(one.cost), text(one.value), "-" if one.bound is None else text(one.bound)]
                for one in result.points
            ],
            caption=f"{result.run.label} decided again for each; at most: no plan within it reaches more",
            row_headers=1,
        )
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
