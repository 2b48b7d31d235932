"""Tables of runs side by side: metrics of designs, with shares of bounds, and figures by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.formatting import number, percent, scale_of
from planner.reports.document import Column, Table, Text
from planner.reports.metric_text import better, differ
from planner.reports.run_text import constraints, search_status

if TYPE_CHECKING:
    import pandas as pd

    from planner.contract.metrics import Metric
    from planner.runs.run import Comparison, Run

ROUNDING_GAP: Final = 1e-9
"""Gap up to which objective value and bound differ by rounding alone."""
ARROWS: Final = "↑ more is better, ↓ less is better"


@dataclass(frozen=True, kw_only=True)
class DesignFigures:
    """The figures of one design, a column of the comparison.

    status      how its search ended
    constraints  whether its plan meets all constraints in truth
    gap_metric  label of the metric that the gap is of, where it is none that plans are ranked by
    gap_scope   the plans that search and gap cover, where not all (`Proof.bound_scope`)
    may_be_best  whether its metrics compare to those of the others: it violates nothing, and loses no more
    broken      metrics of constraints that no plan may violate at any gain, where this one does: shown as bad
    shares      of the bound of each reference metric; None for unknown
    earlier     metrics of the plan before, where changes since then are shown
    """

    label: str
    mechanism: str
    status: Text
    constraints: Text
    gap: float | None
    gap_metric: str = ""
    gap_scope: str = ""
    seconds: float | None
    compile_s: float | None = None
    metrics: Mapping[str, float | None]
    may_be_best: bool = True
    broken: frozenset[str] = frozenset()
    shares: Sequence[float | None] = ()
    earlier: Mapping[str, float | None] = field(default_factory=dict)


def figures_of(result: Comparison) -> list[DesignFigures]:
    """Return the figures of each design of a comparison."""
    losses = [sum(run.constraints.lost.values()) for run in result.runs if run.plan is not None]
    smallest = min(losses, default=0.0)
    return [
        DesignFigures(
            label=run.label,
            mechanism=str(run.entry.design.mechanism),
            status=search_status(run),
            constraints=constraints(run),
            gap=run.proof.gap,
            gap_metric=_other_gap_metric(run),
            gap_scope=(run.proof.bound_scope or "") if run.proof.gap is not None else "",
            seconds=run.proof.seconds,
            compile_s=run.proof.compile_s,
            metrics=run.metrics,
            may_be_best=not run.constraints.violated
            and sum(run.constraints.lost.values()) <= smallest + 1e-6 * abs(smallest),
            broken=broken_metrics(run),
            shares=result.shares_of_bounds(run),
        )
        for run in result.runs
    ]


def broken_metrics(run: Run) -> frozenset[str]:
    """Return the metrics of constraints that no plan may violate at any gain, and this plan violates."""
    required = run.system.plan.headline.required
    return frozenset(
        required[violation.limit] for violation in run.constraints.violated if violation.limit in required
    )


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
        [Text("Mechanism", "dim"), "", *(Text(design.mechanism, "dim") for design in designs)],
        ["Search", "", *(design.status for design in designs)],
        ["Constraints", "", *(design.constraints for design in designs)],
        *_gap_row([design.gap for design in designs]),
        ["Time", "s", *(number(design.seconds) for design in designs)],
        *compile_row([design.compile_s for design in designs]),
    ]
    lines_after = {len(rows) - 1}
    measured = [
        metric for metric in metrics if any(design.metrics.get(metric.name) is not None for design in designs)
    ]
    rows += [_metric_row(metric, designs) for metric in measured]
    caption = ARROWS
    if references:
        lines_after.add(len(rows) - 1)
        rows += _bound_rows(references, designs)
        extremes = [
            f"{'most' if metric.better == 'more' else 'least'} that is proven possible in {metric.words}"
            for metric in references
        ]
        caption += f"; share of bound: compared to the {' and the '.join(extremes)}"
    caption += _gap_words(designs)
    if any(design.earlier for design in designs):
        caption += "; in brackets: the change since the plan before"
    return Table(
        title=title,
        columns=design_columns([design.label for design in designs]),
        rows=rows,
        caption=caption,
        lines_after=frozenset(lines_after),
        row_headers=2,
    )


def _metric_row(metric: Metric, designs: Sequence[DesignFigures]) -> list[Text | str]:
    """Return the value of a metric for each design, with its change since the plan before."""
    values = [design.metrics.get(metric.name) for design in designs]
    unit, text = scale_of(metric.name, values, metric.unit)
    marked = mark_best(metric, values, text, [design.may_be_best for design in designs])
    cells = [
        Text(
            cell.text + change(value, design.earlier.get(metric.name), text),
            "bad" if metric.name in design.broken else cell.kind,
        )
        for cell, value, design in zip(marked, values, designs, strict=True)
    ]
    return [metric.label, better(metric, unit), *cells]


def _bound_rows(references: Sequence[Metric], designs: Sequence[DesignFigures]) -> list[list[Text | str]]:
    """Return the share of its proven bound that each design attains, a row for each metric."""
    rows: list[list[Text | str]] = []
    for index, metric in enumerate(references):
        name = "Share of bound" if len(references) == 1 else f"Share of bound, {metric.words}"
        shares = [design.shares[index] if design.shares else None for design in designs]
        rows.append([name, "↑", *map(percent, shares)])
    return rows


def _gap_words(designs: Sequence[DesignFigures]) -> str:
    """Return the plans and the metric that gaps refer to, if not all plans or not the first metric."""
    scopes: dict[str, list[str]] = {}
    for design in designs:
        if design.gap_scope:
            scopes.setdefault(design.gap_scope, []).append(design.label)
    words = [f"; search and gap of {', '.join(labels)} are for {scope}" for scope, labels in scopes.items()]
    others = [
        f"; the gap of {design.label} refers to '{design.gap_metric}'"
        for design in designs
        if design.gap_metric
    ]
    return "".join([*words, *others])


def breakdown_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the table of figures by group of several designs' plans; none without groups."""
    parts = [(run, run.breakdown) for run in runs if run.breakdown is not None]
    if not parts:
        return []
    first = parts[0][1]
    metrics = [parts[0][0].system.metric(name) for name in first.frame.columns[1:]]
    scales = []
    for metric in metrics:
        values = [value for _, breakdown in parts for value in breakdown.frame[metric.name].tolist()]
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
    for run, breakdown in parts:
        labels = [run.label] if several else []
        rows += [[*labels, *cells] for cells in _group_rows(breakdown.frame, [text for _, text in scales])]
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


def _group_rows(frame: pd.DataFrame, texts: Sequence[Callable[[float | None], str]]) -> Iterator[list[str]]:
    """Yield the name of each group with its figures as texts."""
    for group, *figures in frame.itertuples(index=False, name=None):
        yield [str(group), *(text(value) for value, text in zip(figures, texts, strict=True))]


def change(value: float | None, earlier: float | None, text: Callable[[float | None], str] = number) -> str:
    """Return the change since an earlier value in brackets, as `text` writes it; nothing without a change.

    The change of a percentage is in percentage points: `93% (−7 points)`.
    """
    if value is None or earlier is None or math.isclose(value, earlier, rel_tol=1e-9, abs_tol=1e-12):
        return ""
    amount = text(abs(value - earlier))
    if amount.endswith("%"):
        amount = f"{amount.removesuffix('%')} points"
    return f" ({'+' if value > earlier else '−'}{amount})"


def design_columns(labels: Sequence[str]) -> list[Column]:
    """Return two columns for names and units, and one for each design."""
    return [
        Column(label="", wrap=False),
        Column(label="", wrap=False),
        *(Column(label=label, numeric=True) for label in labels),
    ]


def _gap_row(gaps: Sequence[float | None]) -> list[list[Text | str]]:
    return [] if all(gap is None for gap in gaps) else [["Gap", "", *map(_gap, gaps)]]


def _gap(gap: float | None) -> str:
    return "0" if gap is not None and gap < ROUNDING_GAP else number(gap)


def compile_row(seconds: Sequence[float | None]) -> list[list[Text | str]]:
    """Return the row of seconds that compiling took; none where it took hardly any."""
    if not any(value is not None and value > 0.05 for value in seconds):
        return []
    return [["Compiling (once)", "s", *(number(value) for value in seconds)]]


def mark_best(
    metric: Metric,
    values: Sequence[float | None],
    text: Callable[[float | None], str],
    may_be_best: Sequence[bool] | None = None,
) -> list[Text]:
    """Return the values as cells; the best of those that may be is marked, none where all agree."""
    allowed = [True] * len(values) if may_be_best is None else may_be_best
    numbers = [value for value, may in zip(values, allowed, strict=True) if may and value is not None]
    is_judged = metric.better != "neither" and differ(numbers)
    best = (max(numbers) if metric.better == "more" else min(numbers)) if is_judged else math.nan
    return [
        Text(
            text(value),
            "best"
            if may and value is not None and math.isclose(value, best, rel_tol=1e-9, abs_tol=1e-12)
            else "",
        )
        for value, may in zip(values, allowed, strict=True)
    ]
