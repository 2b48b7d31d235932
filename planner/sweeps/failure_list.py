"""Failures that were tried, worst first: the cost of each, the expected loss, and a map of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from planner.contract.drawing import NetworkMap
from planner.contract.metrics import Metric
from planner.contract.proof import Proof
from planner.contract.studies import Section
from planner.contract.system import System
from planner.formatting import agree, amount_or_number, counted, number, percent, plural, sizes, tell_apart
from planner.runs.result import Result, aligned, metric_columns
from planner.runs.run import Run
from planner.runs.trials import BusiestLink, picture_of
from planner.runs.verdict import headline_words, loss_words

INTERRUPTED_EXIT_CODE: Final = 130
FAILED: Final = "failed"
"""The state that needs no words beside the element."""
FAILURE: Final = "failure"
"""The kind of failures that have names of their own."""
SHOWN: Final = 8
"""Failures in the short text of a result."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure, and its consequences in the network.

    kind, element  what fails
    state          the element then, in words: "failed", "packet link failed"
    adjustments    the change of the problem: {"fail_links": ("a<->b",)}
    metrics        of the plan after it; empty where there is none
    losses         those of them that say what users lose, where above 0
    cost           by how much `Failures.metric` is worse than without it; negative where it is better, None
                   without a plan
    share          the cost as a share of what was asked for, or of the headline metric without the failure;
                   None where it is no share of either
    is_harmless    whether users lose no more than without it
    busiest        the link with the largest value in the picture of the plan
    error          why there is no plan
    probability    of the failure; None where it is unknown
    figures        further figures of an analysis, by the names in `FailureStudy.figures`
    """

    kind: str
    element: str
    state: str
    adjustments: Mapping[str, Any]
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    cost: float | None = None
    share: float | None = None
    is_harmless: bool = False
    busiest: BusiestLink | None = None
    status: str = ""
    seconds: float = 0.0
    error: str = ""
    probability: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the failed elements in words: `link a<->b`, `rack r1, packet link failed`."""
        name = self.element if self.kind == FAILURE else f"{self.kind} {self.element}"
        return name + ("" if self.state == FAILED else f", {self.state}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {
            "kind": self.kind,
            "element": self.element,
            "state": self.state,
            "adjustments": {name: _plain(value) for name, value in self.adjustments.items()},
            "cost": self.cost,
            "share": self.share,
            "is_harmless": self.is_harmless,
            "losses": dict(self.losses),
            "busiest": None if self.busiest is None else vars(self.busiest),
            "status": self.status,
            "seconds": self.seconds,
            "metrics": dict(self.metrics),
            **({"figures": dict(self.figures)} if self.figures else {}),
            **({"probability": self.probability} if self.probability is not None else {}),
            **({"error": self.error} if self.error else {}),
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Failures(Result):
    """Every failure that was tried, the worst first.

    run             without a failure
    failures        the worst first
    total           number of elements that can fail; more than `failures` where only some were tried
    seconds         wall time of all
    is_interrupted  stopped before its end; what was found until then is here
    restoration     what happens after a failure, in a sentence; "" where the design decides again
    sections        tables over all failures, such as availabilities
    """

    run: Run
    failures: tuple[Failure, ...]
    total: int
    seconds: float = 0.0
    is_interrupted: bool = False
    restoration: str = ""
    sections: tuple[Section, ...] = ()

    @property
    def system(self) -> System:
        return self.run.system

    @property
    def proof(self) -> Proof:
        """Status, objective value and bound of the plan without a failure."""
        return self.run.proof

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Metrics of the plan without a failure, by name."""
        return self.run.metrics

    @property
    def metric(self) -> Metric:
        """The metric that costs of failures are in."""
        return cost_metric(self.system)

    @property
    def harmless(self) -> int:
        """Number of failures by which users lose no more than without them."""
        return sum(failure.is_harmless for failure in self.failures)

    @property
    def verdict(self) -> str:
        """Name the worst failure, and the number of harmless ones, in plain sentences."""
        if self.run.plan is None:
            return f"{self.run.verdict} No failure was tried."
        if not self.failures:
            return "No failure was tried."
        more = "no more" if self.run.constraints.lost else "nothing"
        worst = self.failures[0]
        if self.harmless == len(self.failures):
            says = f"{self.run.label} loses {more} in {self._each()}"
        else:
            count = f"{self.harmless:,} of {self._tried()} {agree(self.harmless, 'lose')} {more}"
            if not self.harmless:
                count = f"{self._each()} loses {'more' if self.run.constraints.lost else 'something'}"
            says = f"{self._words(worst)}; {count}"
        return f"{says}.{self._expectation()}{self._left_out()}"

    def _each(self) -> str:
        """Return a phrase for each failure that was tried: `each of the 7 failures of single links`."""
        return f"each of the {self._tried()}" if len(self.failures) > 1 else "the only failure that was tried"

    def _tried(self) -> str:
        """Return the number of failures that were tried, as text."""
        counts = Counter(plural(failure.kind) for failure in self.failures)
        single = {plural(kind.name) for kind in self.system.problem.elements}
        number_of = counted(len(self.failures), "failures")
        if counts.keys() == {plural(FAILURE)}:
            return number_of
        what = next(iter(counts)) if len(counts) == 1 else f"elements ({sizes(counts)})"
        return f"{number_of} of {'single ' if counts.keys() <= single else ''}{what}"

    @property
    def probability_of_none(self) -> float | None:
        """Probability that nothing fails; None where failures have none, or were not all tried."""
        probabilities = [failure.probability for failure in self.failures if failure.probability is not None]
        if not probabilities or len(probabilities) < self.total:
            return None
        return max(0.0, 1.0 - math.fsum(probabilities))

    @property
    def expected_loss(self) -> float | None:
        """Mean of the users' losses, in the unit of `metric`; None without probabilities or plans."""
        none = self.probability_of_none
        if none is None or any(failure.error for failure in self.failures):
            return None
        losses = [
            (none, self.run.constraints.lost),
            *((failure.probability or 0.0, failure.losses) for failure in self.failures),
        ]
        return math.fsum(probability * sum(lost.values()) for probability, lost in losses)

    @property
    def availability(self) -> float | None:
        """Probability that users lose no more than without a failure; None without probabilities."""
        none = self.probability_of_none
        if none is None:
            return None
        return min(
            1.0,
            none + math.fsum(failure.probability or 0.0 for failure in self.failures if failure.is_harmless),
        )

    def _expectation(self) -> str:
        if self.availability is None:
            return ""
        more = "no more than without a failure" if self.run.constraints.lost else "nothing"
        says = f" With probability {self.availability:.6g} users lose {more}"
        if self.expected_loss is not None:
            says += f"; the expected loss is {amount_or_number(self.expected_loss, self.metric.unit)}"
        return f"{says}."

    def _words(self, worst: Failure) -> str:
        """Return the worst failure in words."""
        head = f"The failure of {worst.name} hurts most: {self.run.label}"
        if worst.error:
            return f"{head} has no plan then ({worst.error})"
        lost = loss_words(self.system, worst.metrics)
        says = " and ".join([f"{head} then {headline_words(self.system, worst.metrics)}", *lost])
        if self.system.plan.headline.cost in ("", *self.system.plan.headline.losses):
            return says
        text = partial(amount_or_number, unit=self.metric.unit)
        after, before = (figures.get(self.metric.name) for figures in (worst.metrics, self.run.metrics))
        difference = tell_apart(before, after, text)
        return f"{says}, with a {self.metric.words} of {text(after)} in place of {text(before)}{difference}"

    def _left_out(self) -> str:
        remaining = self.total - len(self.failures)
        if not remaining:
            return ""
        why = "Interrupted" if self.is_interrupted else "The limit is reached"
        return f" {why}: {remaining:,} of {self.total:,} failures were not tried."

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each failure, the worst first: kind, element, cost, share, and metrics.

        A metric that has the name of another column, such as `cost`, is in `metric.cost`.
        """
        own_rows = [
            {
                "kind": failure.kind,
                "element": failure.element,
                "state": failure.state,
                "cost": failure.cost,
                "share": failure.share,
                "is_harmless": failure.is_harmless,
                "busiest": failure.busiest.name if failure.busiest else None,
                "busiest_value": failure.busiest.value if failure.busiest else None,
                "status": failure.status,
                "seconds": failure.seconds,
                "error": failure.error or None,
                **({} if failure.probability is None else {"probability": failure.probability}),
                **failure.figures,
            }
            for failure in self.failures
        ]
        taken = {name for row in own_rows for name in row}
        rows = [
            {**row, **metric_columns(self.system.metrics, failure.metrics, taken)}
            for row, failure in zip(own_rows, self.failures, strict=True)
        ]
        columns = ["kind", "element", "state", "cost", "share", "is_harmless"]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)

    def summary(self) -> list[str]:
        """Return the verdict, and the worst failures."""
        metric = self.metric
        rows = [("failure", "costs", "share", "lost")]
        for failure in self.failures[:SHOWN]:
            lost = sum(failure.losses.values())
            rows.append((failure.name, number(failure.cost), percent(failure.share), number(lost)))
        head = f"{self.system.name}, {self.run.label}: {sizes(self.run.problem.size())}"
        unit = f"costs in {metric.words}" + f", {metric.unit}" * bool(metric.unit)
        return [head, self.verdict, unit, *aligned(rows)]

    @property
    def exit_code(self) -> int:
        """0 where all were tried, that of the plan without a failure where there is none, 130 interrupted."""
        return INTERRUPTED_EXIT_CODE if self.is_interrupted else self.run.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        return {
            **self.run.alone().to_dict(),
            "verdict": self.verdict,
            "cost_metric": self.metric.name,
            "total": self.total,
            "harmless": self.harmless,
            "interrupted": self.is_interrupted,
            "seconds": self.seconds,
            **({"restoration": self.restoration} if self.restoration else {}),
            **({"availability": self.availability} if self.availability is not None else {}),
            **({"expected_loss": self.expected_loss} if self.expected_loss is not None else {}),
            **({"sections": [_plain_section(section) for section in self.sections]} if self.sections else {}),
            "failures": [failure.to_dict() for failure in self.failures],
        }

    @cached_property
    def map(self) -> NetworkMap | None:
        """The picture of the problem, each link and node with the cost of its failure, in percent.

        None where the system draws no network, or names no elements in it.
        """
        return heat_map(self.system, self.run, self.failures)


def cost_metric(system: System) -> Metric:
    """Return the metric that costs of failures are in: the headline metric, if more of it is better.

    A headline metric of which less is better may even fall where users are cut off: then it is what users
    lose. A system may name another metric.
    """
    if system.plan.headline.cost:
        return system.metric(system.plan.headline.cost)
    losses = list(system.plan.headline.losses)
    return system.metric(losses[0]) if system.headline.better == "less" and losses else system.headline


def _map_of(system: System, run: Run) -> NetworkMap | None:
    """Return the map of a run's problem, or that of its plan."""
    if system.problem.draw is not None and run.problem is not None:
        for drawing in system.problem.draw(run.problem)[:1]:
            if isinstance(drawing, NetworkMap):
                return drawing
    return picture_of(run)


def heat_map(system: System, run: Run, failures: Sequence[Failure]) -> NetworkMap | None:
    """Return the picture of a problem with the cost of each element's failure, in percent."""
    drawing = _map_of(system, run)
    if drawing is None or not (drawing.link_kind or drawing.node_kind):
        return None
    by_kind: dict[str, dict[str, Failure]] = {}
    for failure in failures:  # the worst first, of several failures of an element
        by_kind.setdefault(failure.kind, {}).setdefault(failure.element, failure)
    links = drawing.links.drop(columns=["lost", "note"], errors="ignore")
    nodes = drawing.nodes.drop(columns=["lost", "note", "value"], errors="ignore")
    names = links["element"] if "element" in links else pd.Series("", index=links.index)
    of_links, of_nodes = by_kind.get(drawing.link_kind, {}), by_kind.get(drawing.node_kind, {})
    links = links.assign(value=_percents(of_links, names), note=_notes(system, of_links, names))
    if of_nodes:
        of = elements_of(nodes)
        nodes = nodes.assign(value=_percents(of_nodes, of), note=_notes(system, of_nodes, of))
    what = "of the demand" if run.metrics.get(system.plan.headline.total) else "of the headline figure"
    return replace(
        drawing,
        title="What each failure costs",
        links=links,
        nodes=nodes,
        value=f"cost of its failure, {what}",
        unit="%",
        limit=None,
        lost_unit="",
        one_scale=True,
    )


def elements_of(nodes: pd.DataFrame) -> pd.Series:
    """Return the name of the element that each node of a picture is; "" for none."""
    return nodes["element"] if "element" in nodes else nodes["node"]


def _percents(failures: Mapping[str, Failure], names: pd.Series) -> list[float]:
    """Return the cost of each element's failure, percent; 100 without a plan, NaN where it was not tried."""
    percents = {
        name: 100.0 if failure.error else 100 * max(0.0, failure.share or 0.0)
        for name, failure in failures.items()
    }
    return [percents.get(str(name), math.nan) for name in names]


def _notes(system: System, failures: Mapping[str, Failure], names: pd.Series) -> list[str]:
    notes = {
        name: f"if it fails: no plan ({failure.error})"
        if failure.error
        else " and ".join(
            [f"if it fails: {headline_words(system, failure.metrics)}", *loss_words(system, failure.metrics)]
        )
        for name, failure in failures.items()
    }
    return [notes.get(str(name), "") for name in names]


def _plain_section(section: Section) -> dict[str, Any]:
    frame = section.frame.astype(object)
    return {"title": section.title, "rows": frame.where(frame.notna(), None).to_dict(orient="records")}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)
