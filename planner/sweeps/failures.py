"""Failures of single elements (N-1): what each costs once the design has decided again."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.drawing import NetworkMap
from planner.contract.elements import Action, ElementKind
from planner.contract.metrics import Metric
from planner.contract.proof import Proof
from planner.contract.system import System
from planner.errors import InputError
from planner.formatting import number, percent, plural, sizes
from planner.options import Algorithm, Options, Service
from planner.runs.result import Result, aligned
from planner.runs.run import Run
from planner.runs.trials import (
    BusiestLink,
    Kinds,
    Outcome,
    Trials,
    kinds_of,
    picture_of,
)
from planner.runs.verdict import headline_words, loss_words
from planner.runs.warm_start import start_of
from planner.scenarios.arguments import Source, as_scenario, only_label, solver_options, verb
from planner.sweeps.trial_pool import open_pool

INTERRUPTED_EXIT_CODE: Final = 130
FAILED: Final = "failed"
"""The state that needs no words beside the element."""
SHOWN: Final = 8
"""Failures in the short text of a result."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One element that fails alone, and what the design makes of it.

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

    @property
    def name(self) -> str:
        """Return the failed elements in words: `link a<->b`, `rack r1, packet link failed`."""
        return f"{self.kind} {self.element}" + ("" if self.state == FAILED else f", {self.state}")

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
    """

    run: Run
    failures: tuple[Failure, ...]
    total: int
    seconds: float = 0.0
    is_interrupted: bool = False

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
        return sum(one.is_harmless for one in self.failures)

    @property
    def verdict(self) -> str:
        """Name the worst failure, and how many lose nothing, in plain sentences."""
        if self.run.plan is None:
            return f"{self.run.verdict} No failure was tried."
        if not self.failures:
            return "No failure was tried."
        counts = Counter(plural(one.kind) for one in self.failures)
        what = next(iter(counts)) if len(counts) == 1 else f"elements ({sizes(counts)})"
        tried = f"{len(self.failures):,} failures of single {what}"
        more = "no more" if self.run.constraints.lost else "nothing"
        worst = self.failures[0]
        if self.harmless == len(self.failures):
            says = f"{self.run.label} loses {more} in each of the {tried}"
        else:
            count = f"{self.harmless:,} of {tried} lose{'s' * (self.harmless == 1)} {more}"
            if not self.harmless:
                count = f"each of the {tried} loses {'more' if self.run.constraints.lost else 'something'}"
            says = f"{self._words(worst)}; {count}"
        return f"{says}.{self._left_out()}"

    def _words(self, worst: Failure) -> str:
        """Return the worst failure in words."""
        head = f"The failure of {worst.name} hurts most: {self.run.label}"
        if worst.error:
            return f"{head} has no plan then ({worst.error})"
        lost = loss_words(self.system, worst.metrics)
        return " and ".join([f"{head} then {headline_words(self.system, worst.metrics)}", *lost])

    def _left_out(self) -> str:
        left = self.total - len(self.failures)
        if not left:
            return ""
        why = "Interrupted" if self.is_interrupted else "The limit is reached"
        return f" {why}: {left:,} of {self.total:,} failures were not tried."

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each failure, the worst first: kind, element, cost, share, losses, metrics."""
        rows = [
            {
                "kind": one.kind,
                "element": one.element,
                "state": one.state,
                "cost": one.cost,
                "share": one.share,
                "is_harmless": one.is_harmless,
                "busiest": one.busiest.name if one.busiest else None,
                "busiest_value": one.busiest.value if one.busiest else None,
                "status": one.status,
                "seconds": one.seconds,
                "error": one.error or None,
                **{metric.name: one.metrics.get(metric.name) for metric in self.system.metrics},
            }
            for one in self.failures
        ]
        columns = ["kind", "element", "state", "cost", "share", "is_harmless"]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)

    def summary(self) -> list[str]:
        """Return the verdict, and the worst failures."""
        metric = self.metric
        rows = [("failure", "costs", "share", "lost")]
        for one in self.failures[:SHOWN]:
            lost = sum(one.losses.values())
            rows.append((one.name, number(one.cost), percent(one.share), number(lost)))
        head = f"{self.system.name}, {self.run.label}: {sizes(self.run.problem.size())}"
        unit = f"costs in {metric.label[0].lower()}{metric.label[1:]}" + f", {metric.unit}" * bool(
            metric.unit
        )
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
            "failures": [one.to_dict() for one in self.failures],
        }

    @cached_property
    def map(self) -> NetworkMap | None:
        """The picture of the problem, each link and node with what its failure costs, in percent.

        None where the system draws no network, or names no elements in it.
        """
        return heat_map(self.system, self.run, self.failures)


def cost_metric(system: System) -> Metric:
    """Return the metric that costs of failures are in: the headline metric, if more of it is better.

    A headline metric of which less is better may even fall where users are cut off: then it is what users
    lose.
    """
    losses = list(system.plan.headline.losses)
    return system.metric(losses[0]) if system.headline.better == "less" and losses else system.headline


def heat_map(system: System, run: Run, failures: Sequence[Failure]) -> NetworkMap | None:
    """Return the picture of a problem in which elements have what their failure costs, in percent."""
    drawing = picture_of(run)
    if system.problem.draw is not None and run.problem is not None:
        own = [one for one in system.problem.draw(run.problem)[:1] if isinstance(one, NetworkMap)]
        drawing = own[0] if own else drawing
    if drawing is None or not (drawing.link_kind or drawing.node_kind):
        return None
    by_kind: dict[str, dict[str, Failure]] = {}
    for one in failures:  # the worst first, of several failures of an element
        by_kind.setdefault(one.kind, {}).setdefault(one.element, one)
    links = drawing.links.drop(columns=["lost", "note"], errors="ignore")
    nodes = drawing.nodes.drop(columns=["lost", "note", "value"], errors="ignore")
    names = links["element"] if "element" in links else pd.Series("", index=links.index)
    of_links, of_nodes = by_kind.get(drawing.link_kind, {}), by_kind.get(drawing.node_kind, {})
    links = links.assign(value=_percents(of_links, names), note=_notes(system, of_links, names))
    if of_nodes:
        of = _elements_of(nodes)
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


def _elements_of(nodes: pd.DataFrame) -> pd.Series:
    """Return the name of the element that each node of a picture is; "" for none."""
    return nodes["element"] if "element" in nodes else nodes["node"]


def _percents(failures: Mapping[str, Failure], names: pd.Series) -> list[float]:
    """Return the cost of each element's failure, percent; 100 without a plan, NaN where it was not tried."""
    found = {name: 100.0 if one.error else 100 * max(0.0, one.share or 0.0) for name, one in failures.items()}
    return [found.get(str(name), math.nan) for name in names]


def _notes(system: System, failures: Mapping[str, Failure], names: pd.Series) -> list[str]:
    notes = {
        name: f"if it fails: no plan ({one.error})"
        if one.error
        else " and ".join(
            [f"if it fails: {headline_words(system, one.metrics)}", *loss_words(system, one.metrics)]
        )
        for name, one in failures.items()
    }
    return [notes.get(str(name), "") for name in names]


@verb
def failures(
    problem: Source,
    *,
    design: str | Mapping[str, Mapping[str, Any]] | None = None,
    kinds: Kinds | None = None,
    limit: int | None = None,
    changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
    workers: int = 1,
    cluster: str | None = None,
    advance: Callable[[int, int, int], None] | None = None,
    found: Callable[[Failures], None] | None = None,
) -> Failures:
    """Fail each element alone, such as each link and node, decide again, and return the worst failures first.

    kinds         kinds of elements, such as "link" or ["link", "node"]; default: all that can fail
    limit         largest number of failures to try, the busiest elements first; default: all
    workers       processes on this machine; default: 1, this process
    cluster       address of a Dask scheduler instead, such as "tcp://host:8786"; default: none
    found         called with the result so far, at most once in a second; default: none

    Ctrl-C stops the search: the result has the failures that were tried until then.

    raises  InputError, also where the system declares no elements that can fail
    """
    given = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    scenario = as_scenario(problem, changes=changes, designs=design, options=given)
    chosen = kinds_of(scenario.system, "failure", kinds)
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1")
    begin = time.perf_counter()
    trials = Trials.of(scenario, only_label(design))
    run = _first_run(trials)
    search = _Search(trials=trials, run=run, begin=begin, advance=advance, found=found)
    if run.plan is None:
        return search.result(total=0)
    candidates = _busiest_first(run, trials.candidates("failure", chosen))
    return search.try_all(candidates, limit, workers=workers, cluster=cluster)


def _first_run(trials: Trials) -> Run:
    """Return the run without a failure; raise its error."""
    run = trials.run(trials.adjustments)
    if run.error is not None:
        raise run.error
    return run


def _busiest_first(
    run: Run, candidates: Sequence[tuple[ElementKind, Action, str]]
) -> list[tuple[ElementKind, Action, str]]:
    """Return the candidates, those with the largest values in the picture of the plan first."""
    drawing = picture_of(run)
    values: dict[tuple[str, str], float] = {}
    if drawing is not None:
        if drawing.link_kind and "element" in drawing.links:
            for name, value in drawing.links.groupby("element")["value"].max().items():
                values[drawing.link_kind, str(name)] = float(value)
        if drawing.node_kind and "value" in drawing.nodes:
            for name, value in zip(_elements_of(drawing.nodes), drawing.nodes["value"], strict=True):
                values[drawing.node_kind, str(name)] = float(value)
    shown = [values.get((kind.name, name), 0.0) for kind, _, name in candidates]
    order = np.argsort(-np.nan_to_num(np.array(shown, dtype=float)), kind="stable")
    return [candidates[place] for place in order]


@dataclass(eq=False)
class _Search:
    """State of the search while failures are tried."""

    trials: Trials
    run: Run
    begin: float
    advance: Callable[[int, int, int], None] | None
    found: Callable[[Failures], None] | None
    failures: list[Failure] = field(default_factory=list)
    said: float = 0.0

    def try_all(
        self,
        candidates: Sequence[tuple[ElementKind, Action, str]],
        limit: int | None,
        *,
        workers: int,
        cluster: str | None,
    ) -> Failures:
        """Try the candidates, as many as the limit allows; return what was found, also when interrupted."""
        tried = candidates[:limit]
        own = self.trials.adjustments
        asked = [action.apply(own, name) for _, action, name in tried]
        is_interrupted = False
        self._report(len(tried))
        try:
            with open_pool(self.trials, workers=workers, cluster=cluster, find_busiest=True) as pool:
                for place, outcome in pool.make(asked, start_of(self.run)):
                    self.failures.append(self._failure(*tried[place], outcome))
                    self._report(len(tried))
                    self._show(len(candidates))
        except KeyboardInterrupt:
            is_interrupted = True
        return self.result(len(candidates), is_interrupted=is_interrupted)

    def _report(self, total: int) -> None:
        if self.advance is not None:
            self.advance(len(self.failures), sum(bool(one.error) for one in self.failures), total)

    def _show(self, total: int) -> None:
        now = time.perf_counter()
        if self.found is not None and now - self.said >= 1.0:
            self.said = now
            self.found(self.result(total))

    def result(self, total: int, *, is_interrupted: bool = False) -> Failures:
        """Return what was found so far, the worst first."""
        return Failures(
            run=self.run,
            failures=tuple(sorted(self.failures, key=self._rank)),
            total=total,
            seconds=time.perf_counter() - self.begin,
            is_interrupted=is_interrupted,
        )

    def _failure(self, kind: ElementKind, action: Action, name: str, outcome: Outcome) -> Failure:
        system, before = self.trials.system, self.run.metrics
        headline, total = system.headline, before.get(system.plan.headline.total)
        cost = share = None
        if outcome.has_plan:
            cost = self._cost(outcome)
        if cost is not None:
            asked = total or abs(before.get(headline.name) or 0.0)
            is_share = bool(asked) and cost_metric(system).unit == headline.unit
            share = cost / asked if is_share else None
        least = 1e-6 * (total or 0.0) + 1e-9
        losses = self.run.constraints.lost
        more = [value - losses.get(loss, 0.0) > least for loss, value in outcome.losses.items()]
        return Failure(
            kind=kind.name,
            element=name,
            state=action.state,
            adjustments=action.apply({}, name),
            metrics=outcome.metrics,
            losses=outcome.losses,
            cost=cost,
            share=share,
            is_harmless=outcome.has_plan and not any(more),
            busiest=outcome.busiest,
            status=outcome.status,
            seconds=outcome.seconds,
            error=outcome.error,
        )

    def _cost(self, outcome: Outcome) -> float | None:
        """Return by how much the metric of costs is worse than without the failure."""
        system = self.trials.system
        metric = cost_metric(system)
        if metric is not system.headline:
            losses = system.plan.headline.losses
            old, new = (
                sum(one.get(name) or 0.0 for name in losses) for one in (self.run.metrics, outcome.metrics)
            )
            return 0.0 if abs(new - old) <= 1e-9 * max(abs(old), abs(new)) else new - old
        return _worse_by(metric, self.run.metrics, outcome.metrics)

    def _rank(self, one: Failure) -> tuple[float, ...]:
        """Return a key that sorts failures, the worst first: without a plan, by cost, by the other metrics.

        Among failures of the same cost, the one that leaves least growth of demand is worse.
        """
        system = self.trials.system
        growth = system.plan.headline.growth
        others = [system.metric(name) for name in (growth, *(rank.name for rank in system.ranks[1:])) if name]
        values = [
            (-1 if metric.better == "less" else 1) * (one.metrics.get(metric.name) or 0.0)
            for metric in others
        ]
        cost = math.inf if one.cost is None else float(f"{one.cost:.9g}")
        return (-cost, *(float(f"{value:.9g}") for value in values))


def _worse_by(
    metric: Metric, before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> float | None:
    """Return by how much a metric is worse after than before; 0 within rounding, None where unknown."""
    old, new = before.get(metric.name), after.get(metric.name)
    if old is None or new is None:
        return None
    worse = old - new if metric.better == "more" else new - old
    return 0.0 if abs(worse) <= 1e-9 * max(abs(old), abs(new)) else worse


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)
