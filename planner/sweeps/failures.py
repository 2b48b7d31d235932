"""Failures of elements (N-1) or of sets: what each costs once the network has restored what it can.

The design decides again after each failure, unless the system analyses failures itself (`FailureStudy`).
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.design import Decision, Design
from planner.contract.drawing import NetworkMap
from planner.contract.elements import Action, ElementKind
from planner.contract.failure_analysis import (
    FailureAnalysis,
    FailureOutcome,
    FailureStudy,
    PossibleFailure,
    PossibleFailures,
)
from planner.contract.metrics import Metric
from planner.contract.plan import Plan
from planner.contract.proof import Proof, Status
from planner.contract.studies import Section
from planner.contract.system import System
from planner.errors import InputError, did_you_mean
from planner.extras import needed_by
from planner.formatting import amount_or_number, number, percent, plural, sizes, split_names
from planner.options import Algorithm, Options, Restoration, Service
from planner.runs.files import read_plan
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
from planner.scenarios.scenario import Entry
from planner.sweeps.trial_pool import open_pool

INTERRUPTED_EXIT_CODE: Final = 130
FAILED: Final = "failed"
"""The state that needs no words beside the element."""
FAILURE: Final = "failure"
"""The kind of failures that have names of their own."""
SHOWN: Final = 8
"""Failures in the short text of a result."""
MOST_PER_PART: Final = 128
"""Failures that are analysed at a time, so that progress shows."""
PARTS_PER_THREAD: Final = 4


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure, and what the network makes of it.

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
        return sum(one.is_harmless for one in self.failures)

    @property
    def verdict(self) -> str:
        """Name the worst failure, and how many lose nothing, in plain sentences."""
        if self.run.plan is None:
            return f"{self.run.verdict} No failure was tried."
        if not self.failures:
            return "No failure was tried."
        tried = self._tried()
        more = "no more" if self.run.constraints.lost else "nothing"
        worst = self.failures[0]
        if self.harmless == len(self.failures):
            says = f"{self.run.label} loses {more} in each of the {tried}"
        else:
            count = f"{self.harmless:,} of {tried} lose{'s' * (self.harmless == 1)} {more}"
            if not self.harmless:
                count = f"each of the {tried} loses {'more' if self.run.constraints.lost else 'something'}"
            says = f"{self._words(worst)}; {count}"
        return f"{says}.{self._expectation()}{self._left_out()}"

    def _tried(self) -> str:
        """Return how many failures of what were tried, in words."""
        counts = Counter(plural(one.kind) for one in self.failures)
        single = {plural(kind.name) for kind in self.system.problem.elements}
        number_of = f"{len(self.failures):,} failures"
        if counts.keys() == {plural(FAILURE)}:
            return number_of
        what = next(iter(counts)) if len(counts) == 1 else f"elements ({sizes(counts)})"
        return f"{number_of} of {'single ' if counts.keys() <= single else ''}{what}"

    @property
    def probability_of_none(self) -> float | None:
        """Probability that nothing fails; None where failures have none, or were not all tried."""
        known = [one.probability for one in self.failures if one.probability is not None]
        if not known or len(known) < self.total:
            return None
        return max(0.0, 1.0 - math.fsum(known))

    @property
    def expected_loss(self) -> float | None:
        """Mean of what users lose, in the unit of `metric`; None without probabilities, or without plans."""
        none = self.probability_of_none
        if none is None or any(one.error for one in self.failures):
            return None
        losses = [
            (none, self.run.constraints.lost),
            *((one.probability or 0.0, one.losses) for one in self.failures),
        ]
        return math.fsum(probability * sum(lost.values()) for probability, lost in losses)

    @property
    def availability(self) -> float | None:
        """Probability that users lose no more than without a failure; None without probabilities."""
        none = self.probability_of_none
        if none is None:
            return None
        return min(1.0, none + math.fsum(one.probability or 0.0 for one in self.failures if one.is_harmless))

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
                **({} if one.probability is None else {"probability": one.probability}),
                **one.figures,
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
            **({"sections": [_plain_section(one) for one in self.sections]} if self.sections else {}),
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
    failures: str | Sequence[str] | None = None,
    restoration: Restoration | None = None,
    plan: str | Path | Plan | None = None,
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
    """Try each failure, of single elements such as links and nodes or of a set; return the worst first.

    failures      sets of failures, such as "links", "double_links" or "table", see `planner list SYSTEM`;
                  default: the problem's table of failures where it has one, else each element alone
    restoration   what happens after a failure: "none", "local" (traffic moves to the routes of its demand
                  that survive), "reconverge" (new shortest paths), "reroute" (a controller routes again what
                  the plan sends) or "reoptimize" (all demands); default: what the design is made for, such
                  as shortest paths, else it decides again
    plan          a plan, or a folder of plan tables, that is examined instead of a design's
    kinds         kinds of elements, such as "link" or ["link", "node"]; default: all that can fail
    limit         largest number of failures to try, the busiest elements first; default: all
    workers       processes on this machine; default: 1, this process. An analysis without runs of the design
                  takes all cores
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
    study = scenario.system.studies.failures
    asked = _asked_sets(study, scenario.system, failures, kinds)
    if study is None and (restoration or plan is not None):
        raise InputError(f"{scenario.system.name}: analyses no failures; each design decides again after one")
    if plan is not None and design is not None:
        raise InputError("plan and design: only one of them can be examined")
    chosen = kinds_of(scenario.system, "failure", kinds)
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1")
    begin = time.perf_counter()
    trials = Trials.of(scenario, only_label(design))
    run = _first_run(trials) if plan is None else _run_of(trials, plan)
    search = _Search(trials=trials, run=run, begin=begin, advance=advance, found=found)
    if run.plan is None:
        return search.result(total=0)
    if study is not None and (asked is not None or kinds is None):
        names = study.default(run.problem) if asked is None else asked
        possible = study.find(run.problem, names)
        of_design = trials.entry.design.name if plan is None else None
        analysis = None
        if possible.failures:
            parameters = trials.entry.parameters
            analysis = study.analyse(
                run.problem, run.plan, of_design, parameters, possible, restoration, trials.options
            )
        if analysis is not None:
            return search.analyse(analysis, possible, limit, workers=workers, cluster=cluster)
        is_single = {study.sets[name] for name in names} <= {kind.name for kind in chosen}
        if not (possible.failures and is_single):
            sets = [_Candidate.of(one) for one in possible.failures]
            return search.try_all(sets, limit, workers=workers, cluster=cluster)
        chosen = [kind for kind in chosen if kind.name in {study.sets[name] for name in names}]
    candidates = _busiest_first(run, trials.candidates("failure", chosen))
    of_elements = [
        _Candidate(kind.name, name, action.state, action.apply({}, name)) for kind, action, name in candidates
    ]
    return search.try_all(of_elements, limit, workers=workers, cluster=cluster)


class _Candidate(NamedTuple):
    """A failure to try: what fails, its state then, and the adjustments of the problem."""

    kind: str
    name: str
    state: str
    adjustments: Mapping[str, Any]
    probability: float | None = None

    @classmethod
    def of(cls, failure: PossibleFailure) -> _Candidate:
        return cls(failure.kind, failure.name, FAILED, failure.adjustments, failure.probability)


def _asked_sets(
    study: FailureStudy | None, system: System, failures: str | Sequence[str] | None, kinds: Kinds | None
) -> list[str] | None:
    """Return the sets of failures that are asked for; those of the kinds, where these are; None for neither.

    raises  InputError for unknown names, and for both sets and kinds
    """
    if failures is None:
        if kinds is None or study is None:
            return None
        named = {kind.name for kind in kinds_of(system, "failure", kinds)}
        found = [name for name, kind in study.sets.items() if kind in named]
        return found if len(found) == len(named) else None
    if kinds is not None:
        raise InputError("failures and kinds: only one of them can be given")
    if study is None:
        raise InputError(f"{system.name}: has no sets of failures; kinds names the elements that fail")
    names = split_names(failures) if isinstance(failures, str) else [str(name) for name in failures]
    faults = [
        f"failures: '{name}' is no set of {system.name}, which has {', '.join(study.sets)}"
        + did_you_mean(name, study.sets)
        for name in names
        if name not in study.sets
    ]
    if faults or not names:
        raise InputError(*(faults or ["failures: none is named"]))
    return list(dict.fromkeys(names))


def _run_of(trials: Trials, plan: str | Path | Plan) -> Run:
    """Return the run of a plan made elsewhere; raise PlanRejected where it is none."""
    system, problem = trials.system, trials.make_problem(trials.adjustments)
    read = read_plan(system, problem, Path(plan)) if isinstance(plan, str | Path) else plan
    made = Design(name="plan", decide=_decide_nothing, source="")
    return Run(
        system=system,
        problem=problem,
        entry=Entry(label="the plan", design=made),
        decision=Decision(plan=read, proof=Proof(status=Status.FEASIBLE)),
        plan=read,
        violations=system.plan.check(problem, read),
        metrics=system.plan.measure(problem, read, None),
        options=trials.options,
    )


def _decide_nothing(problem: Any) -> Decision[Any]:  # noqa: ARG001 - the signature of a design
    """Raise an error: the plan was made elsewhere."""
    raise InputError("the plan was made elsewhere: no design decides")


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
    restoration: str = ""

    def try_all(
        self,
        candidates: Sequence[_Candidate],
        limit: int | None,
        *,
        workers: int,
        cluster: str | None,
    ) -> Failures:
        """Try the candidates, as many as the limit allows; return what was found, also when interrupted."""
        tried = candidates[:limit]
        own = self.trials.adjustments
        asked = [_join(own, one.adjustments) for one in tried]
        is_interrupted = False
        self._report(len(tried))
        try:
            with open_pool(self.trials, workers=workers, cluster=cluster, find_busiest=True) as pool:
                for place, outcome in pool.make(asked, start_of(self.run)):
                    self.failures.append(self._failure(tried[place], outcome))
                    self._report(len(tried))
                    self._show(len(candidates))
        except KeyboardInterrupt:
            is_interrupted = True
        return self.result(len(candidates), is_interrupted=is_interrupted)

    def analyse(
        self,
        analysis: FailureAnalysis,
        possible: PossibleFailures,
        limit: int | None,
        *,
        workers: int,
        cluster: str | None,
    ) -> Failures:
        """Analyse failures, as many as the limit allows; return what was found, also when interrupted."""
        total = len(possible.failures)
        rows = np.arange(total) if limit is None else analysis.busiest_first()[:limit]
        self.restoration = analysis.about
        parts = []
        is_interrupted = False
        self._report(len(rows))
        try:
            for part, outcomes, more in _evaluate(analysis, rows, workers=workers, cluster=cluster):
                parts.append(more)
                for row, outcome in zip(part.tolist(), outcomes, strict=True):
                    candidate = _Candidate.of(possible.failures[row])
                    self.failures.append(self._failure(candidate, self._outcome(outcome), outcome.figures))
                self._report(len(rows))
                self._show(total)
        except KeyboardInterrupt:
            is_interrupted = True
        sections = () if is_interrupted or len(rows) < total else tuple(analysis.conclude(parts))
        return replace(self.result(total, is_interrupted=is_interrupted), sections=sections)

    def _outcome(self, found: FailureOutcome) -> Outcome:
        busiest = None
        if found.busiest is not None:
            name, value = found.busiest
            busiest = BusiestLink(name=name, what="utilization", value=value, unit="%")
        losses = self.trials.system.losses(found.metrics)
        return Outcome(adjustments={}, metrics=found.metrics, losses=losses, busiest=busiest)

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
            restoration=self.restoration,
        )

    def _failure(
        self, candidate: _Candidate, outcome: Outcome, figures: Mapping[str, float] | None = None
    ) -> Failure:
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
            kind=candidate.kind,
            element=candidate.name,
            state=candidate.state,
            adjustments=candidate.adjustments,
            metrics=outcome.metrics,
            losses=outcome.losses,
            cost=cost,
            share=share,
            is_harmless=outcome.has_plan and not any(more),
            busiest=outcome.busiest,
            status=outcome.status,
            seconds=outcome.seconds,
            error=outcome.error,
            probability=candidate.probability,
            figures=figures or {},
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

    def _rank(self, one: Failure) -> tuple[Any, ...]:
        """Return a key that sorts failures, the worst first: without a plan, by cost, by the other metrics.

        Among failures of the same cost, the one that leaves least growth of demand is worse; equal ones are
        in the order of their names, since workers finish in any order.
        """
        system = self.trials.system
        growth = system.plan.headline.growth
        others = [system.metric(name) for name in (growth, *(rank.name for rank in system.ranks[1:])) if name]
        values = [
            (-1 if metric.better == "less" else 1) * (one.metrics.get(metric.name) or 0.0)
            for metric in others
        ]
        cost = math.inf if one.cost is None else float(f"{one.cost:.9g}")
        return (-cost, *(float(f"{value:.9g}") for value in values), one.name)


def _join(own: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return adjustments with those of a failure: lists of names are joined, and mappings."""
    joined = dict(own)
    for name, value in added.items():
        present = own.get(name)
        if isinstance(value, Mapping):
            joined[name] = {**(present or {}), **value}
        else:
            joined[name] = tuple(dict.fromkeys([*(present or ()), *value]))
    return joined


def _evaluate(
    analysis: FailureAnalysis, rows: Ints, *, workers: int, cluster: str | None
) -> Iterator[tuple[Ints, list[FailureOutcome], Any]]:
    """Yield failures by row, their outcomes, and what `conclude` needs, as parts of them are finished.

    workers  threads, but at least one on each core; without effect where a cluster is given
    """
    if cluster is not None:
        yield from _evaluate_on_cluster(analysis, rows, cluster)
        return
    threads = max(
        workers, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    pool = ThreadPoolExecutor(threads)
    try:
        asked = {pool.submit(analysis.evaluate, part): part for part in _parts(rows, threads)}
        for future in as_completed(asked):
            yield (asked[future], *future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _evaluate_on_cluster(
    analysis: FailureAnalysis, rows: Ints, cluster: str
) -> Iterator[tuple[Ints, list[FailureOutcome], Any]]:
    with needed_by("a search on several processes"):
        from planner.sweeps import dask_pool

    with dask_pool.connect_to_cluster(cluster) as client:
        client.wait_for_workers(1, timeout=dask_pool.NO_WORKER_LIMIT_S)
        parts = _parts(rows, len(client.scheduler_info(n_workers=-1)["workers"]))
        for place, found in dask_pool.map_parts(client, evaluate_part, analysis, parts):
            yield (parts[place], *found)


def evaluate_part(analysis: FailureAnalysis, rows: Ints) -> tuple[list[FailureOutcome], Any]:
    """Return the outcomes of some failures, by row, in a worker."""
    return analysis.evaluate(rows)


def _parts(rows: Ints, width: int) -> list[Ints]:
    """Return the rows in parts, several for each of `width` workers."""
    count = max(math.ceil(len(rows) / MOST_PER_PART), min(len(rows), width * PARTS_PER_THREAD))
    return [part for part in np.array_split(rows, max(count, 1)) if len(part)]


def _worse_by(
    metric: Metric, before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> float | None:
    """Return by how much a metric is worse after than before; 0 within rounding, None where unknown."""
    old, new = before.get(metric.name), after.get(metric.name)
    if old is None or new is None:
        return None
    worse = old - new if metric.better == "more" else new - old
    return 0.0 if abs(worse) <= 1e-9 * max(abs(old), abs(new)) else worse


def _plain_section(section: Section) -> dict[str, Any]:
    frame = section.frame.astype(object)
    return {"title": section.title, "rows": frame.where(frame.notna(), None).to_dict(orient="records")}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)
