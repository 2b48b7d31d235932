"""Searches that worker processes run; partial results are written to a file beside the job."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.contract.drawing import NetworkMap
from planner.formatting import UNIT_SCALES, amount_or_number, counted
from planner_dashboard.fields import field_label
from planner_dashboard.question import Question

if TYPE_CHECKING:
    from planner.contract.metrics import Metric
    from planner.contract.studies import Section
    from planner.runs.what_if import Explained
    from planner.sweeps.failure_list import Failure, Failures
    from planner.sweeps.upgrade_list import Upgrades

MOST_ROWS = 2_000
"""Failures that a page has."""
SAME_SHARE = 1e-4
"""Relative difference up to which values and bounds are the same in words."""


@dataclass(frozen=True, kw_only=True)
class BoughtStep:
    """One upgrade of the list, in words.

    reached  the metric after it, with its unit
    share    of demand that fits after it, above 1 where demand can grow; None for unknown
    part     place between the first and the best value that it reaches, 0 to 1, where there is no share
    """

    kind: str
    element: str
    adds: str
    cost: str
    reached: str
    gain: str
    share: float | None
    part: float
    is_proven: bool


@dataclass(frozen=True, kw_only=True)
class BudgetPoint:
    """A set of upgrades of the Pareto curve; `reached` and `cost_words` are in words.

    value  in the unit of the curve's metric, as `bound`
    bound  on the value of all sets that cost as much; None for unknown
    """

    cost: float
    value: float
    cost_words: str
    reached: str
    share: float | None
    elements: tuple[str, ...]
    adjustments: Mapping[str, Any]
    bound: float | None = None


@dataclass(frozen=True, kw_only=True)
class FoundUpgrades:
    """The list of upgrades so far.

    before       share of demand that fits without any; None for unknown
    adjustments  of the problem with all steps
    metric       label of what the curve shows, with its unit
    cost         of all steps; of as many upgrades, where the tables have no costs
    serves_all   whether the plan with all steps leaves nothing unserved
    loses        whether the plan without any leaves something unserved
    """

    verdict: str
    caveat: str
    ending: str
    steps: Sequence[BoughtStep]
    before: float | None
    total_cost: str
    has_costs: bool
    cost_unit: str
    metric: str
    points: Sequence[BudgetPoint]
    dropped: Sequence[str]
    without_cost: int
    adjustments: Mapping[str, Any]
    seconds: float
    cost: float = 0.0
    serves_all: bool = False
    loses: bool = True


@dataclass(frozen=True, kw_only=True)
class FoundCheapest:
    """The cheapest set of upgrades that serves all; `elements` is empty where there is none.

    sentences  the set and its proof, or why there is none
    least_cost of the set, for a comparison; None where it does not serve all
    """

    sentences: Sequence[str]
    elements: Sequence[str]
    least_cost: float | None
    has_costs: bool
    cost_unit: str
    adjustments: Mapping[str, Any]

    def compare(self, upgrades: FoundUpgrades) -> str:
        """Return the additional cost of a list of upgrades, as a sentence; "" for none."""
        from planner.sweeps.upgrade_list import compare_with_cheapest

        if self.least_cost is None or not upgrades.steps:
            return ""
        return compare_with_cheapest(upgrades.cost, upgrades.serves_all, self.least_cost, self._amount)

    def _amount(self, cost: float) -> str:
        return amount_or_number(cost, self.cost_unit) if self.has_costs else counted(round(cost), "upgrades")


@dataclass(frozen=True, kw_only=True)
class FoundFailure:
    """One failure in words.

    name   what has happened to which element
    share  what it costs, as a share of the demand; None for unknown
    size   of what it costs beside that of others
    """

    kind: str
    element: str
    name: str
    words: str
    cost: str
    share: float | None
    size: float
    is_harmless: bool
    adjustments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FoundFailures:
    """The failures that were tried so far, the worst first; `total` is the number of all."""

    verdict: str
    failures: Sequence[FoundFailure]
    tried: int
    total: int
    harmless: int
    map: NetworkMap | None
    seconds: float


def find_upgrades(
    question: Question, tables: Path, label: str, budget: float | None, steps: int, files: Path
) -> FoundUpgrades:
    """Find upgrades to buy with one design.

    tables  folder of the uploaded tables
    files   file without its ending; `.steps` has the list so far, `.progress` the candidates of a step
    """
    from planner.sweeps import upgrades

    count = 1

    def show(ladder: Upgrades) -> None:
        nonlocal count
        count = len(ladder.steps) + 1
        _write(files.with_suffix(".steps"), _found_upgrades(ladder))

    def advance(completed: int, failed: int, total: int) -> None:  # noqa: ARG001
        _write_text(files.with_suffix(".progress"), f"{completed}/{total}")
        _write_text(files.with_suffix(".activity"), f"step {count}: {completed} of {total} candidates")

    try:
        result = upgrades.upgrades(
            question.load(tables), design=label, budget=budget, steps=steps, advance=advance, found=show
        )
    finally:
        _remove(files)
    return _found_upgrades(result)


def find_cheapest(question: Question, tables: Path, label: str, files: Path) -> FoundCheapest:
    """Find the cheapest set of upgrades that serves all; arguments as those of `find_upgrades`."""
    from planner.sweeps import upgrades

    _write_text(files.with_suffix(".activity"), "proving the cheapest set")
    try:
        result = upgrades.upgrades(question.load(tables), design=label, steps=0, exact=True)
    finally:
        _remove(files)
    cheapest, titled = result.cheapest, replace(result, run=result.run.titled())
    has_set = cheapest is not None and bool(cheapest.elements)
    return FoundCheapest(
        sentences=titled.cheapest_words,
        elements=cheapest.elements if cheapest is not None else (),
        least_cost=cheapest.cost if cheapest is not None and has_set and cheapest.serves_all else None,
        has_costs=result.has_costs,
        cost_unit=result.cost_unit,
        adjustments=cheapest.adjustments if cheapest is not None else {},
    )


def find_failures(question: Question, tables: Path, label: str, files: Path) -> FoundFailures:
    """Fail each element alone under one design; arguments as those of `find_upgrades`."""
    from planner.sweeps import failures

    def advance(completed: int, failed: int, total: int) -> None:  # noqa: ARG001
        _write_text(files.with_suffix(".progress"), f"{completed}/{total}")
        _write_text(files.with_suffix(".activity"), f"{completed} of {total} failures")

    def show(failure_list: Failures) -> None:
        _write(files.with_suffix(".steps"), _found_failures(failure_list))

    try:
        result = failures.failures(question.load(tables), design=label, advance=advance, found=show)
    finally:
        _remove(files)
    return _found_failures(result)


@dataclass(frozen=True, kw_only=True)
class FoundPurchases:
    """The purchases of a plan, each with its gain, and the values of smaller budgets.

    sentences  of the explanation
    first      value without any purchase as a part of the last, 0 to 1
    points     one for each budget that was tried; their `adjustments` ask for that budget
    """

    sentences: Sequence[str]
    steps: Sequence[BoughtStep]
    first: float
    note: str
    metric: str
    points: Sequence[BudgetPoint]
    budget_note: str
    budget_unit: str


def find_purchases(question: Question, tables: Path, label: str, budgets: int, files: Path) -> FoundPurchases:
    """Explain the purchases of one design's plan; arguments as those of `find_upgrades`.

    budgets  smaller ones that are tried, where the explanation has that parameter
    """
    from planner.contract.parameters import parameters_of
    from planner.runs import what_if
    from planner_dashboard.worker import load_scenario

    _write_text(files.with_suffix(".activity"), "explaining the purchases, and trying smaller budgets")
    try:
        scenario = load_scenario(question, tables)
        study = scenario.system.studies.what_if
        assert study is not None
        arguments: dict[str, Any] = {"budgets": budgets} if "budgets" in parameters_of(study) else {}
        explained = what_if.explain(scenario, design=label, **arguments)
    finally:
        _remove(files)
    return _found_purchases(explained)


def _found_purchases(explained: Explained) -> FoundPurchases:
    system, explanation = explained.run.system, explained.explanation
    assert explanation is not None
    metric = system.ranks[0]
    sections = {section.role: section for section in explanation.sections}
    ladder, budgets = sections.get("purchases"), sections.get("budgets")
    steps = [] if ladder is None else _ladder_steps(ladder, metric)
    first = 0.0
    if ladder is not None and ladder.frame[metric.name].iloc[-1]:
        first = float(ladder.frame[metric.name].iloc[0] / ladder.frame[metric.name].iloc[-1])
    return FoundPurchases(
        sentences=explanation.sentences,
        steps=steps,
        first=first,
        note="" if ladder is None else ladder.note,
        metric=_curve_label(metric, [] if budgets is None else budgets.frame[metric.name]),
        points=[] if budgets is None else _budget_points(budgets, metric, system.studies.budget or ""),
        budget_note="" if budgets is None else budgets.note,
        budget_unit="" if budgets is None else budgets.units.get("budget", ""),
    )


def _ladder_steps(section: Section, metric: Metric) -> list[BoughtStep]:
    """Return a step for each row after the first one; further columns are said beside its cost."""
    frame = section.frame
    named_columns = {frame.columns[0], "cost", "step_cost", metric.name}
    others = [name for name in frame.columns if name not in named_columns]
    values = frame[metric.name].to_numpy(float)
    last = float(values[-1]) or 1.0
    steps = []
    for index, row in enumerate(frame.to_dict("records")[1:], start=1):
        gain = values[index] - values[index - 1]
        element, _, adds = str(row[frame.columns[0]]).partition(": ")
        more = [f"{field_label(name).lower()} {amount_or_number(row[name], section.units.get(name, ''))}"
                for name in others]  # fmt: skip
        steps.append(
            BoughtStep(
                kind="",
                element=element,
                adds=" · ".join([adds, *more]),
                cost=f"costs {amount_or_number(row['step_cost'], section.units.get('cost', ''))}",
                reached=amount_or_number(values[index], metric.unit),
                gain=f"+{amount_or_number(gain, metric.unit)}" if gain > SAME_SHARE * last else "",
                share=None,
                part=float(values[index]) / last,
                is_proven=True,
            )
        )
    return steps


def _budget_points(section: Section, metric: Metric, parameter: str) -> list[BudgetPoint]:
    frame = section.frame
    limit = next((name for name in frame.columns if str(name).startswith("at_most")), None)
    unit = section.units.get("budget", "")
    _, factor = _curve_unit(metric, frame[metric.name])
    points = []
    for row in frame.to_dict("records"):
        bound = None if limit is None else row[limit]
        words = amount_or_number(row[metric.name], metric.unit)
        if bound is not None and bound == bound:  # known
            is_proven = bound - row[metric.name] <= SAME_SHARE * abs(bound)
            limit_text = amount_or_number(bound, metric.unit)
            words += ", proven to be the most" if is_proven else f"; at most {limit_text} is possible"
        points.append(
            BudgetPoint(
                cost=row["budget"],
                value=row[metric.name] * factor,
                cost_words=amount_or_number(row["budget"], unit),
                reached=f"{words}, for {amount_or_number(row['spent'], unit)}",
                share=None,
                elements=(),
                adjustments={parameter: float(f"{row['budget']:.6g}")},
                bound=None if bound is None or bound != bound else bound * factor,
            )
        )
    return points


def _curve_unit(metric: Metric, values: Iterable[float]) -> tuple[str, float]:
    """Return the unit of a metric's curve, and the factor to it: Gbit/s for 240,700 Mbit/s."""
    scale = next((scale for scale in UNIT_SCALES if metric.unit in scale), {metric.unit: 1.0})
    size = max(map(abs, values), default=0.0) * scale[metric.unit]
    shown = next((unit for unit in reversed(scale) if scale[unit] <= size), metric.unit)
    return shown, scale[metric.unit] / scale[shown]


def _curve_label(metric: Metric, values: Iterable[float]) -> str:
    """Return the label of a curve of a metric: `Delivered, Gbit/s`."""
    return ", ".join(filter(None, [metric.label, _curve_unit(metric, values)[0]]))


def read_partial(files: Path) -> Any:
    """Return the partial result of a search; None if there is none yet."""
    try:
        return pickle.loads(files.with_suffix(".steps").read_bytes())  # written by a worker of this server
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _found_upgrades(ladder: Upgrades) -> FoundUpgrades:
    result = replace(ladder, run=ladder.run.titled())
    reached = [point.value for point in result.points]
    _, factor = _curve_unit(result.metric, reached)
    points = [
        BudgetPoint(
            cost=point.cost,
            value=point.value * factor,
            cost_words=amount_or_number(point.cost, result.cost_unit),
            reached=amount_or_number(point.value, result.metric.unit),
            share=point.share,
            elements=point.elements,
            adjustments=dict(point.adjustments),
        )
        for point in result.points
    ]
    return FoundUpgrades(
        verdict=result.verdict,
        caveat=result.caveat,
        ending=result.ending,
        steps=_bought_steps(result),
        before=result.shares()[0],
        total_cost=amount_or_number(result.cost, result.cost_unit) if result.has_costs else "",
        has_costs=result.has_costs,
        cost_unit=result.cost_unit,
        metric=_curve_label(result.metric, reached),
        points=points,
        dropped=result.dropped,
        without_cost=result.without_cost,
        adjustments=dict(result.adjustments),
        seconds=result.seconds,
        cost=result.cost,
        serves_all=not result.system.losses(result.metrics),
        loses=bool(result.system.losses(result.first)),
    )


def _bought_steps(result: Upgrades) -> list[BoughtStep]:
    """Return the steps of a ladder, each with the value that it reaches and its part of the whole way."""
    metric = result.metric
    values = [result.run.metrics.get(metric.name), *(step.metrics.get(metric.name) for step in result.steps)]
    numbers = [value for value in values if value is not None]
    span = (numbers[-1] - numbers[0]) if numbers else 0.0
    steps = []
    for step, value, share in zip(result.steps, values[1:], result.shares()[1:], strict=True):
        step_metric = result.system.metric(step.metric)
        sign = "+" if step_metric.better == "more" else "−"
        steps.append(
            BoughtStep(
                kind=step.kind,
                element=step.element,
                adds=step.adds,
                cost=amount_or_number(step.cost, result.cost_unit) if result.has_costs else "",
                reached=amount_or_number(value, metric.unit),
                gain=f"{sign}{amount_or_number(step.gain, step_metric.unit)}",
                share=share,
                part=(value - numbers[0]) / span if value is not None and span else 0.0,
                is_proven=step.is_proven,
            )
        )
    return steps


def _found_failures(failure_list: Failures) -> FoundFailures:
    from planner.runs.verdict import headline_words, loss_words

    result = replace(failure_list, run=failure_list.run.titled())
    system, unit = result.system, result.metric.unit
    rows = []
    for failure in result.failures[:MOST_ROWS]:
        words = [headline_words(system, failure.metrics), *loss_words(system, failure.metrics)]
        rows.append(
            FoundFailure(
                kind=failure.kind,
                element=failure.element,
                name=failure.name,
                words=f"no plan: {failure.error}" if failure.error else " and ".join(words),
                cost="no plan" if failure.error else amount_or_number(failure.cost, unit),
                share=1.0 if failure.error else None if failure.share is None else max(0.0, failure.share),
                size=_size(failure),
                is_harmless=failure.is_harmless,
                adjustments=dict(failure.adjustments),
            )
        )
    return FoundFailures(
        verdict=result.verdict,
        failures=rows,
        tried=len(result.failures),
        total=result.total,
        harmless=result.harmless,
        map=result.map,
        seconds=result.seconds,
    )


def _size(failure: Failure) -> float:
    if failure.error:
        return 1.0
    return max(0.0, (failure.cost if failure.share is None else failure.share) or 0.0)


def _write(path: Path, value: Any) -> None:
    partial = path.with_suffix(".partial")
    partial.write_bytes(pickle.dumps(value))
    partial.replace(path)


def _write_text(path: Path, text: str) -> None:
    partial = path.with_suffix(f"{path.suffix}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _remove(files: Path) -> None:
    for ending in (".progress", ".activity"):
        files.with_suffix(ending).unlink(missing_ok=True)
