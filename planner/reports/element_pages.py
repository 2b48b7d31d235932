"""Pages about the elements of a problem: failures by their cost, and upgrades to buy."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from planner.formatting import amount_or_number, counted, few, number, percent, scale_of, sizes
from planner.io.toml import format_value
from planner.reports.document import Column, Page, Part, Table, Text, table_of
from planner.reports.run_pages import closing_parts
from planner.reports.run_text import trouble
from planner.scenarios.arguments import plain_value
from planner.scenarios.scenario import changes_between, load
from planner.scenarios.user_designs import reference_of

if TYPE_CHECKING:
    from planner.scenarios.scenario import Scenario
    from planner.sweeps.failure_list import Failure, Failures
    from planner.sweeps.upgrade_list import Upgrades

MOST_FAILURES: Final = 15
"""Failures that a terminal shows."""


def failures_page(result: Failures, scenario: Scenario | None = None) -> Page:
    """Return the failures, the worst first, and the picture with the cost of each."""
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
            title=section.title,
            tables=[table_of(section.frame, section.units, title="", caption=section.note, upper=None)],
        )
        for section in result.sections
    ]
    name = scenario.label if scenario else run.entry.title
    return Page(
        title=f"{system.label}: {name}, failures",
        about=about,
        parts=[*parts, *closing_parts(run.problem, scenario)],
    )


def _failures_table(result: Failures, limit: int | None) -> Table:
    """Return a row for each failure; of the first `limit` the most important figures, of all of them more."""
    shown = result.failures if limit is None else result.failures[:limit]
    metric = result.metric
    unit, text = scale_of(metric.name, [failure.cost for failure in result.failures], metric.unit)
    columns = [
        Column(label="failure"),
        Column(label="costs", unit=unit, numeric=True),
        Column(label="share", numeric=True),
    ]
    rows: list[list[Text | str]] = [
        [
            failure.name,
            Text("no plan", "bad")
            if failure.error
            else Text(text(failure.cost), "" if failure.is_harmless else "bad"),
            percent(failure.share),
        ]
        for failure in shown
    ]
    if any(failure.probability is not None for failure in shown):
        columns.insert(1, Column(label="probability", numeric=True))
        for row, failure in zip(rows, shown, strict=True):
            row.insert(1, number(failure.probability))
    _add_busiest(shown, columns, rows)
    if limit is None:
        _add_figures(result, shown, columns, rows)
    title = f"{result.run.label} decides again after each failure"
    if result.restoration:
        title = f"{result.run.label}; after a failure, {result.restoration}"
    return Table(
        title=title,
        columns=columns,
        rows=rows,
        caption=_failures_caption(result, len(shown)),
        row_headers=1,
    )


def _failures_caption(result: Failures, shown: int) -> str:
    """Return the caption of failures: the meaning of their figures, and the number of those not shown."""
    caption = f"costs: by how much {result.metric.words} is worse than without a failure"
    total = result.system.plan.headline.total
    if total:
        caption += f"; share: of what is {result.system.metric(total).words}"
    if len(result.failures) > shown:
        caption += f"; the first {shown} of {len(result.failures):,}, the worst first"
    return caption


def _add_busiest(shown: Sequence[Failure], columns: list[Column], rows: list[list[Text | str]]) -> None:
    """Add the busiest link in each failure, if the system has such links."""
    links = [failure.busiest for failure in shown if failure.busiest is not None]
    if links:
        what = f"busiest link then, {links[0].what}"
        columns.append(Column(label=what, unit=links[0].unit, numeric=True))
        for row, failure in zip(rows, shown, strict=True):
            link = failure.busiest
            row.append("-" if link is None else f"{link.name}  {number(link.value)}")


def _add_figures(
    result: Failures, shown: Sequence[Failure], columns: list[Column], rows: list[list[Text | str]]
) -> None:
    """Add the users' losses, the possible growth of demand, and the further metrics of an analysis."""
    for name, (label, own_unit) in _figures_of(result, shown).items():
        values = [failure.metrics.get(name, failure.figures.get(name)) for failure in shown]
        unit, write = scale_of(name, values, own_unit)
        columns.append(Column(label=label, unit=unit, numeric=True))
        for row, value in zip(rows, values, strict=True):
            row.append(write(value))


def _figures_of(result: Failures, shown: Sequence[Failure]) -> dict[str, tuple[str, str]]:
    """Return label and unit of the figures that some shown failure has, by name."""
    system, study = result.system, result.system.studies.failures
    headline = system.plan.headline
    figures = {
        name: (system.metric(name).label, system.metric(name).unit)
        for name in (*headline.losses, headline.growth)
        if name and any(failure.metrics.get(name) for failure in shown)
    }
    if study is not None and result.restoration:
        names_shown = {name for failure in shown for name in failure.figures}
        figures |= {name: about for name, about in study.figures.items() if name in names_shown}
    return figures


def _failure_notes(result: Failures) -> list[Text | str]:
    errors = [failure for failure in result.failures if failure.error]
    return [Text(f"{failure.name}: {failure.error}", "bad") for failure in errors[:MOST_FAILURES]]


def _notes_on_upgrades(result: Upgrades) -> list[Text | str]:
    """Return notes on the limits of a ladder of upgrades, and on the search for it."""
    notes: list[Text | str] = []
    if result.steps:
        notes.append(result.caveat)
        notes.append(f"It ends because {result.ending}." if result.ending else "")
    if result.dropped:
        notes.append(f"Left out, as later steps made it needless: {few(result.dropped)}.")
    if result.without_cost:
        notes.append(f"{result.without_cost:,} upgrades have no cost in the tables, and are no candidates.")
    notes.append(Text(f"{counted(result.solved, 'problems')} solved in {number(result.seconds)} s", "dim"))
    return notes


def upgrades_page(result: Upgrades, scenario: Scenario | None = None) -> Page:
    """Return the ladder of upgrades, the commands to apply it, and the Pareto curve."""
    system, run = result.system, result.run
    sentences: list[Text | str] = [Text(result.verdict, "strong")]
    notes = _notes_on_upgrades(result)
    command = _command(result, scenario) if result.steps and scenario is not None else None
    if command is not None:
        what = "write" if result.findings else "apply"
        notes += ["", f"To {what} the list:", command]
    section = Part(
        title="What to buy",
        sentences=sentences,
        tables=[_ladder_table(result)] if result.steps else [],
        notes=[*notes, *trouble(run)],
        drawings=lambda: [] if result.drawing is None else [result.drawing],
    )
    parts = [section]
    if result.cheapest_words:
        parts.append(_cheapest_part(result))
    if len(result.points) > 1:
        is_detail = not result.findings
        parts.append(Part(title="What a budget reaches", tables=[_curve_table(result)], detail=is_detail))
    name = scenario.label if scenario else run.entry.title
    return Page(
        title=f"{system.label}: {name}, what to buy",
        about=f"{system.question} {sizes(run.problem.size())}.",
        parts=[*parts, *closing_parts(run.problem, scenario)],
    )


def _cheapest_part(result: Upgrades) -> Part:
    """Return the cheapest set that serves all beside the list: its proof, and its upgrades."""
    table = None
    if result.cheapest is not None and result.cheapest.elements:
        in_list = {step.element for step in result.steps}
        elements = result.cheapest.elements
        table = Table(
            columns=(Column(label="upgrade"), Column(label="in the list")),
            rows=[(name, "yes" if name in in_list else "") for name in elements],
            row_headers=1,
        )
    return Part(
        title="The cheapest set",
        sentences=list(result.cheapest_words),
        tables=[] if table is None else [table],
    )


def _command(result: Upgrades, scenario: Scenario) -> str | None:
    """Return the command that solves the scenario with all upgrades; None if something is only in memory."""
    design = reference_of(result.run.label, result.run.entry.design)
    if scenario.problem is not None or design is None:
        return None
    document = {**scenario.raw, "problem": {**scenario.raw["problem"], **plain_value(result.adjustments)}}
    changes = changes_between(load(scenario.name).raw, document)
    words = ["planner", "solve", scenario.name, "--design", design]
    for key, value in changes.items():
        words += ["--set", f"{key}={format_value(value)}"]
    return shlex.join([*words, "--out", "plan"] if result.findings else words)


def _ladder_table(result: Upgrades) -> Table:
    """Return a row for each step, after one for the plan before the first."""
    steps = result.steps
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
    columns += _improved_columns(result)
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


def _improved_columns(result: Upgrades) -> Iterator[tuple[Column, Sequence[Text | str]]]:
    """Yield the metric before and after each step; of steps that improve the second rank only, that too."""
    metric = result.metric
    plans = [result.first, *(step.metrics for step in result.steps)]
    values = [metrics.get(metric.name) for metrics in plans]
    unit, text = scale_of(metric.name, values, metric.unit)
    yield Column(label=metric.label, unit=unit, numeric=True), list(map(text, values))
    other = next((step.metric for step in result.steps if step.metric != metric.name), None)
    if other is not None:
        second = result.system.metric(other)
        figures = [number(metrics.get(other)) for metrics in plans]
        yield Column(label=second.label, unit=second.unit, numeric=True), figures


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
    unit, text = scale_of(metric.name, [point.value for point in result.points], metric.unit)
    if result.findings:
        return Table(
            columns=[
                Column(label="budget", unit=result.cost_unit, numeric=True),
                Column(label=metric.label, unit=unit, numeric=True),
                Column(label="at most", unit=unit, numeric=True),
            ],
            rows=[
                [number(point.cost), text(point.value), "-" if point.bound is None else text(point.bound)]
                for point in result.points
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
        rows=[
            [number(point.cost), text(point.value), few(point.elements) or "none"] for point in result.points
        ],
        caption="of all sets of upgrades that were solved; another set may reach more",
        row_headers=1,
    )
