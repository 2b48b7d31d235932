"""A list of upgrades to buy: the result of `planner.upgrades`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import pandas as pd

from planner.contract.drawing import Curve
from planner.contract.metrics import Metric
from planner.contract.proof import OPTIMAL_GAP, Proof
from planner.contract.system import System
from planner.formatting import amount_or_number, counted, few, number, percent, sizes
from planner.runs.result import Result, aligned, metric_columns
from planner.runs.run import Run
from planner.runs.trials import Adjustments
from planner.runs.verdict import headline_words, loss_words
from planner.scenarios.arguments import plain_value

INTERRUPTED_EXIT_CODE: Final = 130
GAIN_TOLERANCE: Final = 3e-6
"""Relative; smaller gains are none: designs stop at gaps of 1e-6."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One upgrade of the ladder.

    kind, element  what is upgraded
    action         name of the action: "Double the capacity"
    adds           what it adds, in words
    cost           of this upgrade; 1 where the tables have no costs
    adjustments    the change of the problem for this upgrade alone
    metrics        of the plan with it and all steps before it
    losses         those of them that say what users lose, where above 0
    gain           improvement of `metric` over the step before
    metric         name of the metric that the step improves
    tried          candidates that were solved, and `candidates`, those that could be bought
    is_proven      no other single upgrade improves `metric` more, per cost where there are costs
    """

    kind: str
    element: str
    action: str
    adds: str
    cost: float
    adjustments: Adjustments
    metrics: Mapping[str, float | None]
    losses: Mapping[str, float]
    gain: float
    metric: str
    tried: int
    candidates: int
    is_proven: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        plain = {name: value for name, value in vars(self).items() if name not in ("metrics", "losses")}
        return {
            **plain,
            "adjustments": plain_value(self.adjustments),
            "losses": dict(self.losses),
            "metrics": dict(self.metrics),
        }


@dataclass(frozen=True, kw_only=True)
class Point:
    """One set of upgrades that was solved: its cost, and its metric.

    share        of what was asked for that is served, or how far it can grow; None where that is unknown
    adjustments  of the problem with these upgrades
    bound        no set of upgrades of this cost reaches more; None where that is unknown
    """

    cost: float
    value: float
    elements: tuple[str, ...]
    share: float | None = None
    adjustments: Adjustments = field(default_factory=dict)
    bound: float | None = None


@dataclass(frozen=True, kw_only=True)
class CheapestSet:
    """The set of upgrades of the least cost that serves all, over all ways to serve it.

    elements     what is upgraded
    cost         sum of the costs; of as many upgrades, where the tables have no costs
    bound        no set that serves all costs less; None for unknown
    serves_all   False: all upgrades together do not serve all; then the set serves the most
    adjustments  of the problem with the set
    metrics      of the design's plan with it; empty where there is none
    lost         what users lose by that plan, where above 0, by metric
    """

    elements: tuple[str, ...]
    cost: float
    bound: float | None
    serves_all: bool
    adjustments: Adjustments
    metrics: Mapping[str, float | None]
    lost: Mapping[str, float]
    seconds: float

    @property
    def is_proven(self) -> bool:
        """Whether no set that serves as much costs less."""
        return self.bound is not None and exact_cost(self.bound) >= exact_cost(self.cost)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {**vars(self), "adjustments": plain_value(self.adjustments), "is_proven": self.is_proven}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Upgrades(Result):
    """A ladder of upgrades.

    run             before the first upgrade; of a plan that says itself what to buy, that plan
    steps           what to buy, in this order
    metric          what the curve shows: the headline metric, or how far demand can grow
    points          Pareto curve: sets of upgrades of which none costs less and reaches as much, by cost
    has_costs       whether costs are of the tables; otherwise each upgrade counts 1
    cost_unit       of the costs
    budget          largest sum of costs; None: unlimited
    dropped         upgrades that an earlier step bought and later ones made needless
    without_cost    elements that are no candidates, because the tables have no cost for them
    ending          why the ladder ends, in words
    adjustments     of the problem with all steps
    solved          number of problems that were solved
    is_interrupted  stopped before its end; the steps found until then are here
    before          metrics before the first upgrade; None: those of `run`
    findings        what is proven and found of a plan that says itself what to buy, in sentences
    cheapest        the cheapest set that serves all; None where it is not asked for, or not found
    no_cheapest     why there is no cheapest set, in words
    """

    run: Run
    steps: tuple[Step, ...]
    metric: Metric
    points: tuple[Point, ...] = ()
    has_costs: bool = False
    cost_unit: str = ""
    budget: float | None = None
    dropped: tuple[str, ...] = ()
    without_cost: int = 0
    ending: str = ""
    adjustments: Adjustments = field(default_factory=dict)
    solved: int = 0
    seconds: float = 0.0
    is_interrupted: bool = False
    before: Mapping[str, float | None] | None = None
    findings: tuple[str, ...] = ()
    cheapest: CheapestSet | None = None
    no_cheapest: str = ""

    @property
    def first(self) -> Mapping[str, float | None]:
        """Metrics before the first upgrade, by name."""
        return self.run.metrics if self.before is None else self.before

    @property
    def system(self) -> System:
        return self.run.system

    @property
    def proof(self) -> Proof:
        """Status, objective value and bound of the plan before the first upgrade."""
        return self.run.proof

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Metrics of the plan with all upgrades, by name."""
        return self.steps[-1].metrics if self.steps else self.run.metrics

    @property
    def cost(self) -> float:
        """Sum of the costs."""
        return float(sum((exact_cost(step.cost) for step in self.steps), Decimal(0)))

    @property
    def verdict(self) -> str:
        """Report the value and cost of the upgrades, in plain sentences."""
        if self.run.plan is None:
            return f"{self.run.verdict} No upgrade was tried."
        if not self.steps:
            before = f"{self.run.label} {headline_words(self.system, self.first)}"
            return f"{before}; no upgrade is bought: {self.ending}."
        bought = f"With {sizes({'upgrades': len(self.steps)})}{self._cost_words()}"
        lost = loss_words(self.system, self.metrics)
        says = f"{bought}, {self.run.label} {headline_words(self.system, self.metrics)}"
        growth = self.system.plan.headline.growth
        if growth and not lost and (factor := self.metrics.get(growth)) is not None:
            says += f", and all demand can grow to {factor:.4g} times"
        return " and ".join([says, *lost]) + "."

    @property
    def caveat(self) -> str:
        """Report the proof of the list."""
        if not self.steps or self.findings:
            return " ".join(self.findings)
        unproven = [index for index, step in enumerate(self.steps, start=1) if not step.is_proven]
        per = " per cost" if self.has_costs else ""
        if not unproven:
            says = f"Each step is proven to be the single upgrade that gains most{per} after those before it"
        elif len(unproven) == len(self.steps):
            says = f"Each step is the upgrade that gains most{per} of those tried"
        else:
            names = few([str(index) for index in unproven], 6)
            says = f"Each step but {names} is proven to be the single upgrade that gains most{per}"
        says += f", with {self.run.label}; the list is greedy, not proven to be the cheapest."
        gap = self.run.proof.gap or 0.0
        if gap > OPTIMAL_GAP and self.run.status in ("within gap", "time limit"):
            says += f" The search ended at a gap of {gap:.2%}: smaller gains may come from the search."
        return says

    @property
    def cheapest_words(self) -> tuple[str, ...]:
        """Report the cheapest set, its proof, and the additional cost of the list, in sentences."""
        cheapest = self.cheapest
        if cheapest is None:
            return (f"No cheapest set: {self.no_cheapest}.",) if self.no_cheapest else ()
        if cheapest.serves_all and not cheapest.elements:
            return ("No upgrade is needed: other routes serve all.",)
        does = "serves all" if cheapest.serves_all else "serves the most that upgrades can"
        head = f"The cheapest set that {does} has {sizes({'upgrades': len(cheapest.elements)})}"
        head += f" for {self._amount(cheapest.cost)}" if self.has_costs else ""
        if cheapest.is_proven:
            head += ", proven"
        elif cheapest.bound is not None:
            head += f"; no set costs less than {self._amount(cheapest.bound)}"
        sentences = [f"{head}.", *filter(None, [self._compared_with_cheapest(cheapest)])]
        if lost := loss_words(self.system, cheapest.metrics):
            sentences.append(f"With it, {self.run.label} {' and '.join(lost)}.")
        return tuple(sentences)

    def _compared_with_cheapest(self, cheapest: CheapestSet) -> str:
        """Return the additional cost of the list over the cheapest set, as a sentence; "" for none."""
        if not cheapest.serves_all or not self.steps:
            return ""
        serves_all = not self.system.losses(self.metrics)
        return compare_with_cheapest(self.cost, serves_all, cheapest.cost, self._amount)

    def _amount(self, cost: float) -> str:
        """Return a cost in words; without costs, a number of upgrades."""
        return amount_or_number(cost, self.cost_unit) if self.has_costs else counted(round(cost), "upgrades")

    def _cost_words(self) -> str:
        return f" for {amount_or_number(self.cost, self.cost_unit)}" if self.has_costs else ""

    def shares(self) -> list[float | None]:
        """Return the share of demand that fits before the first step and after each; above 1: it can grow."""
        plans = [self.first, *(step.metrics for step in self.steps)]
        return [fitting_share(self.system, metrics) for metrics in plans]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each step: its purchase, cost and gain, and the metrics after it.

        A metric that has the name of another column, such as `cost`, is in `metric.cost`.
        """
        names = ("kind", "element", "action", "adds", "cost", "gain", "tried", "candidates", "is_proven")
        rows = [
            {
                **{name: getattr(step, name) for name in names},
                **metric_columns(self.system.metrics, step.metrics, names),
            }
            for step in self.steps
        ]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(names))

    @property
    def curve(self) -> pd.DataFrame:
        """The Pareto curve: cost, the metric that it reaches, and the upgrades, a row for each point."""
        paid = "cost" if self.has_costs else "upgrades"
        (reached,) = metric_columns([self.metric], {}, (paid, "elements"))
        return pd.DataFrame(
            [(point.cost, point.value, ", ".join(point.elements)) for point in self.points],
            columns=[paid, reached, "elements"],
        )

    @cached_property
    def drawing(self) -> Curve | None:
        """The Pareto curve as a drawing; None with a single point."""
        if len(self.points) < 2:
            return None
        across = "cost" if self.has_costs else "upgrades"
        frame = self.curve.iloc[:, :2].set_axis([across, self.metric.label], axis=1)
        units = {across: self.cost_unit, self.metric.label: self.metric.unit}
        return Curve(title="What a budget reaches", frame=frame, units=units)

    def within(self, budget: float) -> Point | None:
        """Return the best point that costs at most the budget; None where all cost more."""
        allowed = [point for point in self.points if exact_cost(point.cost) <= exact_cost(budget)]
        return allowed[-1] if allowed else None

    def summary(self) -> list[str]:
        """Return the verdict, the steps, and the proof."""
        rows = [("upgrade", "cost" if self.has_costs else "", "fits", self.metric.label)]
        for step, share in zip(self.steps, self.shares()[1:], strict=True):
            cost = number(step.cost) if self.has_costs else ""
            value = number(step.metrics.get(self.metric.name))
            rows.append((f"{step.kind} {step.element}".strip(), cost, percent(share), value))
        head = f"{self.system.name}, {self.run.label}: {sizes(self.run.problem.size())}"
        notes = [*filter(None, [self.caveat]), *self.cheapest_words]
        return [head, self.verdict, *aligned(rows if self.steps else []), *notes]

    @property
    def exit_code(self) -> int:
        """0 with a plan before the first upgrade, else that of its failure; 130 where interrupted."""
        return INTERRUPTED_EXIT_CODE if self.is_interrupted else self.run.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {
            **self.run.alone().to_dict(),
            "verdict": self.verdict,
            "caveat": self.caveat,
            "ending": self.ending,
            "cost": self.cost,
            "cost_unit": self.cost_unit,
            "has_costs": self.has_costs,
            "budget": self.budget,
            "dropped": list(self.dropped),
            "without_cost": self.without_cost,
            "solved": self.solved,
            "interrupted": self.is_interrupted,
            "seconds": self.seconds,
            "adjustments": plain_value(self.adjustments),
            "shares": self.shares(),
            "steps": [step.to_dict() for step in self.steps],
            "cheapest": None if self.cheapest is None else self.cheapest.to_dict(),
            "no_cheapest": self.no_cheapest,
            "curve": {
                "metric": self.metric.name,
                "points": [
                    {
                        "cost": point.cost,
                        "value": point.value,
                        "share": point.share,
                        "elements": list(point.elements),
                        "bound": point.bound,
                    }
                    for point in self.points
                ],
            },
        }


def compare_with_cheapest(
    cost: float, serves_all: bool, least_cost: float, say: Callable[[float], str]
) -> str:
    """Return the additional cost of a list over the cheapest set that serves all, as a sentence.

    say  an amount of the costs in words
    """
    if not serves_all:
        return "The list ends before it serves all."
    more = float(exact_cost(cost) - exact_cost(least_cost))
    if more <= 0:
        return "The list is as cheap."
    return f"The list costs {say(more)} more ({percent(more / least_cost)})."


def fitting_share(system: System, metrics: Mapping[str, float | None]) -> float | None:
    """Return the served share of the request; if nothing is lost, the factor by which demand can grow.

    None where the system has no metric of what was asked for.
    """
    headline = system.plan.headline
    value, total = metrics.get(headline.metric), metrics.get(headline.total)
    if value is None or not total:
        return None
    growth = metrics.get(headline.growth)
    if growth is not None and not system.losses(metrics):
        return max(1.0, growth)
    return value / total


def pareto_points(points: Sequence[Point], metric: Metric) -> tuple[Point, ...]:
    """Return the points of which no other costs less, or as much, and reaches as much, by cost."""
    sign = 1 if metric.better == "more" else -1
    best: list[Point] = []
    for point in sorted(points, key=lambda point_: (point_.cost, -sign * point_.value)):
        if not best or sign * (point.value - best[-1].value) > GAIN_TOLERANCE * abs(best[-1].value):
            best.append(point)
    return tuple(best)


def exact_cost(cost: float) -> Decimal:
    """Return a cost as people write it: sums of cents are exact."""
    return Decimal(repr(float(cost)))
