"""Failures of elements (N-1) or of sets: the cost of each after the network has restored traffic.

The design decides again after each failure, unless the system analyses failures itself (`FailureStudy`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from planner.arrays import Ints
from planner.contract.design import Decision, Design
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
from planner.contract.system import System
from planner.errors import InputError, did_you_mean
from planner.formatting import split_names
from planner.options import Algorithm, Options, Restoration, Service
from planner.runs.run import Run
from planner.runs.trials import BusiestLink, Kinds, Outcome, Trials, kinds_of, picture_of
from planner.runs.warm_start import start_of
from planner.scenarios.arguments import OneDesign, Source, as_scenario, only_label, solver_options, verb
from planner.scenarios.existing_plans import take_plan
from planner.scenarios.scenario import Entry
from planner.sweeps.failure_list import FAILED, Failure, Failures, cost_metric, elements_of
from planner.sweeps.open_workers import open_workers
from planner.sweeps.trial_pool import open_pool
from planner.sweeps.workers import map_shares

MOST_PER_PART: Final = 128
"""Failures that are analysed at a time, so that progress shows."""
PARTS_PER_THREAD: Final = 4
LEAST_SHARE_LOST: Final = 1e-6
"""Of the demand; a smaller share that is lost is rounding."""


@verb
def failures(
    problem: Source,
    *,
    design: OneDesign | None = None,
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

    Ctrl-C stops the search: the result has the failures that were tried until then.

    Parameters
    ----------
    failures
        Sets of failures, such as "links", "double_links" or "table", see `planner list SYSTEM`; default:
        the problem's table of failures where it has one, else each element alone.
    restoration
        What happens after a failure: "none", "local" (traffic moves to the routes of its demand that
        survive), "reconverge" (new shortest paths), "reroute" (a controller routes again what the plan
        sends) or "reoptimize" (all demands); default: what the design is made for, such as shortest
        paths, else it decides again.
    plan
        A plan, or a folder of plan tables, that is examined instead of a design's.
    kinds
        Kinds of elements, such as "link" or ["link", "node"]; default: all that can fail.
    limit
        Largest number of failures to try, the busiest elements first; default: all.
    workers
        Processes on this machine; default: 1, this process. An analysis without runs of the design takes
        all cores.
    cluster
        Address of a Dask scheduler instead, such as "tcp://host:8786"; default: none.
    found
        Called with the result so far, at most once in a second; default: none.

    Returns
    -------
    Failures
        Each failure that was tried, with the loss and the metrics after it, the worst first.

    Raises
    ------
    InputError
        Also where the system declares no elements that can fail.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    scenario = as_scenario(problem, changes=changes, designs=design, options=settings)
    study = scenario.system.studies.failures
    asked = _asked_sets(study, scenario.system, failures, kinds)
    _refuse_combinations(scenario.system, restoration, plan, design)
    selected = kinds_of(scenario.system, "failure", kinds)
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1")
    begin = time.perf_counter()
    trials = Trials.of(scenario, only_label(design))
    run = _first_run(trials) if plan is None else _run_of(trials, plan)
    search = _Search(
        trials=trials, run=run, begin=begin, limit=limit, workers=workers, cluster=cluster, advance=advance,
        found=found,
    )  # fmt: skip
    if run.plan is None:
        return search.result(total=0)
    if study is None or (asked is None and kinds is not None):
        return search.try_all(_elements_to_fail(run, trials, selected))
    names = study.default(run.problem) if asked is None else asked
    possible = study.find(run.problem, names)
    analysis = _analysis_of(study, search, possible, restoration, is_of_design=plan is None)
    if analysis is not None:
        return search.analyse(analysis, possible)
    kinds_of_sets = {study.sets[name] for name in names}
    return search.try_all(_failures_of_sets(run, trials, possible, kinds_of_sets, selected))


def _failures_of_sets(
    run: Run,
    trials: Trials,
    possible: PossibleFailures,
    kinds_of_sets: Collection[str],
    selected: Sequence[ElementKind],
) -> list[_Candidate]:
    """Return the failures of sets; as single elements, the busiest first, where the sets are of such."""
    of_sets = [kind for kind in selected if kind.name in kinds_of_sets]
    if possible.failures and len(of_sets) == len(kinds_of_sets):
        return _elements_to_fail(run, trials, of_sets)
    return [_Candidate.of(failure) for failure in possible.failures]


def _refuse_combinations(
    system: System, restoration: Restoration | None, plan: object, design: OneDesign | None
) -> None:
    """Raise InputError for arguments that exclude each other, or need an analysis that the system lacks."""
    if system.studies.failures is None and (restoration or plan is not None):
        raise InputError(f"{system.name}: analyses no failures; each design decides again after one")
    if plan is not None and design is not None:
        raise InputError("plan and design: only one of them can be examined")


def _elements_to_fail(run: Run, trials: Trials, kinds: Sequence[ElementKind]) -> list[_Candidate]:
    """Return the failures of single elements of the kinds, the busiest elements first."""
    return [
        _Candidate(kind.name, name, action.state, action.apply({}, name))
        for kind, action, name in _busiest_first(run, trials.candidates("failure", kinds))
    ]


def _analysis_of(
    study: FailureStudy,
    search: _Search,
    possible: PossibleFailures,
    restoration: Restoration | None,
    *,
    is_of_design: bool,
) -> FailureAnalysis | None:
    """Return the system's own analysis of a plan in all failures; None where each needs a run of its own.

    is_of_design  whether the design made the plan, whose restoration is then the default
    """
    if not possible.failures:
        return None
    run, entry, options = search.run, search.trials.entry, search.trials.options
    of_design = entry.design.name if is_of_design else None
    return study.analyse(run.problem, run.plan, of_design, entry.parameters, possible, restoration, options)


class _Candidate(NamedTuple):
    """A failure to try: its elements, their state then, and the adjustments of the problem."""

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
        return None if kinds is None or study is None else _sets_of_kinds(study, system, kinds)
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
    if not names:
        faults = ["failures: none is named"]
    if faults:
        raise InputError(*faults)
    return list(dict.fromkeys(names))


def _sets_of_kinds(study: FailureStudy, system: System, kinds: Kinds) -> list[str] | None:
    """Return the set of each kind of elements; None where a kind has none."""
    named = {kind.name for kind in kinds_of(system, "failure", kinds)}
    sets = [name for name, kind in study.sets.items() if kind in named]
    return sets if len(sets) == len(named) else None


def _run_of(trials: Trials, plan: str | Path | Plan) -> Run:
    """Return the run of a plan made elsewhere; raise PlanRejected where it is none."""
    system, problem = trials.system, trials.make_problem(trials.adjustments)
    read = plan if hasattr(plan, "to_tables") else take_plan(system, problem, plan, "plan")
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
            for name, value in zip(elements_of(drawing.nodes), drawing.nodes["value"], strict=True):
                values[drawing.node_kind, str(name)] = float(value)
    shown = [values.get((kind.name, name), 0.0) for kind, _, name in candidates]
    order = np.argsort(-np.nan_to_num(np.array(shown, dtype=float)), kind="stable")
    return [candidates[index] for index in order]


@dataclass(eq=False)
class _Search:
    """State of the search while failures are tried."""

    trials: Trials
    run: Run
    begin: float
    limit: int | None
    workers: int
    cluster: str | None
    advance: Callable[[int, int, int], None] | None
    found: Callable[[Failures], None] | None
    failures: list[Failure] = field(default_factory=list)
    said: float = 0.0
    restoration: str = ""

    def try_all(self, candidates: Sequence[_Candidate]) -> Failures:
        """Try the candidates, as many as the limit allows; return the results, also when interrupted."""
        tried = candidates[: self.limit]
        adjustments = self.trials.adjustments
        asked = [_join(adjustments, candidate.adjustments) for candidate in tried]
        is_interrupted = False
        self._report(len(tried))
        try:
            with open_pool(
                self.trials, workers=self.workers, cluster=self.cluster, find_busiest=True
            ) as pool:
                for index, outcome in pool.make(asked, start_of(self.run)):
                    self.failures.append(self._failure(tried[index], outcome))
                    self._report(len(tried))
                    self._show(len(candidates))
        except KeyboardInterrupt:
            is_interrupted = True
        return self.result(len(candidates), is_interrupted=is_interrupted)

    def analyse(self, analysis: FailureAnalysis, possible: PossibleFailures) -> Failures:
        """Analyse failures, as many as the limit allows; return the results, also when interrupted."""
        total = len(possible.failures)
        rows = np.arange(total) if self.limit is None else analysis.busiest_first()[: self.limit]
        self.restoration = analysis.about
        parts = []
        is_interrupted = False
        self._report(len(rows))
        try:
            results = _evaluate(analysis, rows, workers=self.workers, cluster=self.cluster)
            for chunk, outcomes, more in results:
                parts.append(more)
                for row, outcome in zip(chunk.tolist(), outcomes, strict=True):
                    candidate = _Candidate.of(possible.failures[row])
                    self.failures.append(self._failure(candidate, self._outcome(outcome), outcome.figures))
                self._report(len(rows))
                self._show(total)
        except KeyboardInterrupt:
            is_interrupted = True
        sections = () if is_interrupted or len(rows) < total else tuple(analysis.conclude(parts))
        return replace(self.result(total, is_interrupted=is_interrupted), sections=sections)

    def _outcome(self, outcome_found: FailureOutcome) -> Outcome:
        busiest = None
        if outcome_found.busiest is not None:
            name, value = outcome_found.busiest
            busiest = BusiestLink(name=name, what="utilization", value=value, unit="%")
        losses = self.trials.system.losses(outcome_found.metrics)
        return Outcome(adjustments={}, metrics=outcome_found.metrics, losses=losses, busiest=busiest)

    def _report(self, total: int) -> None:
        if self.advance is not None:
            self.advance(len(self.failures), sum(bool(failure.error) for failure in self.failures), total)

    def _show(self, total: int) -> None:
        now = time.perf_counter()
        if self.found is not None and now - self.said >= 1.0:
            self.said = now
            self.found(self.result(total))

    def result(self, total: int, *, is_interrupted: bool = False) -> Failures:
        """Return the results so far, the worst first."""
        return Failures(
            run=self.run,
            failures=tuple(sorted(self.failures, key=self._rank)),
            total=total,
            seconds=time.perf_counter() - self.begin,
            is_interrupted=is_interrupted,
            restoration=self.restoration,
        )

    def _loses_more(self, outcome: Outcome, cost: float | None) -> bool:
        """Return whether more is lost after a failure than before, or less is carried."""
        system, before = self.trials.system, self.run.metrics
        threshold = 1e-6 * (before.get(system.plan.headline.total) or 0.0) + 1e-9
        losses = self.run.constraints.lost
        if any(value - losses.get(loss, 0.0) > threshold for loss, value in outcome.losses.items()):
            return True
        if system.plan.headline.cost and (cost or 0.0) > threshold:
            return True
        return _carries_less(system, before, outcome.metrics)

    def _failure(
        self, candidate: _Candidate, outcome: Outcome, figures: Mapping[str, float] | None = None
    ) -> Failure:
        system, before = self.trials.system, self.run.metrics
        headline, total = system.headline, before.get(system.plan.headline.total)
        cost = share = None
        if outcome.has_plan:
            cost = self._cost(outcome)
        if cost is not None:
            metric = cost_metric(system)
            asked = abs(before.get(metric.name if system.plan.headline.cost else headline.name) or 0.0)
            asked = total or asked
            is_share = bool(asked) and (metric.unit == headline.unit or bool(system.plan.headline.cost))
            is_share &= bool(total) or metric.name not in system.plan.headline.losses
            share = cost / asked if is_share else None
        return Failure(
            kind=candidate.kind,
            element=candidate.name,
            state=candidate.state,
            adjustments=candidate.adjustments,
            metrics=outcome.metrics,
            losses=outcome.losses,
            cost=cost,
            share=share,
            is_harmless=outcome.has_plan and not self._loses_more(outcome, cost),
            busiest=outcome.busiest,
            status=outcome.status,
            seconds=outcome.seconds,
            error=outcome.error,
            probability=candidate.probability,
            figures=figures or {},
        )

    def _cost(self, outcome: Outcome) -> float | None:
        """Return the worsening of the metric of costs by the failure."""
        system = self.trials.system
        metric = cost_metric(system)
        if metric is not system.headline and not system.plan.headline.cost:
            losses = system.plan.headline.losses
            old, new = (
                sum(metrics.get(name) or 0.0 for name in losses)
                for metrics in (self.run.metrics, outcome.metrics)
            )
            return 0.0 if abs(new - old) <= 1e-9 * max(abs(old), abs(new)) else new - old
        return _worse_by(metric, self.run.metrics, outcome.metrics)

    def _rank(self, failure: Failure) -> tuple[Any, ...]:
        """Return a key that sorts failures, the worst first: without a plan, by cost, by the other metrics.

        Among failures of the same cost, the one that leaves least growth of demand is worse; equal ones are
        in the order of their names, since workers finish in any order.
        """
        system = self.trials.system
        growth = system.plan.headline.growth
        others = [system.metric(name) for name in (growth, *(rank.name for rank in system.ranks[1:])) if name]
        values = [
            (-1 if metric.better == "less" else 1) * (failure.metrics.get(metric.name) or 0.0)
            for metric in others
        ]
        cost = math.inf if failure.cost is None else float(f"{failure.cost:.9g}")
        return (-cost, *(float(f"{value:.9g}") for value in values), failure.name)


def _join(adjustments: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return adjustments with those of a failure: lists of names are joined, and mappings."""
    joined = dict(adjustments)
    for name, value in added.items():
        present = adjustments.get(name)
        if isinstance(value, Mapping):
            joined[name] = {**(present or {}), **value}
        else:
            joined[name] = tuple(dict.fromkeys([*(present or ()), *value]))
    return joined


def _evaluate(
    analysis: FailureAnalysis, rows: Ints, *, workers: int, cluster: str | None
) -> Iterator[tuple[Ints, list[FailureOutcome], Any]]:
    """Yield failures by row, their outcomes, and the data for `conclude`, as parts of them are finished.

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
        asked = {pool.submit(analysis.evaluate, chunk): chunk for chunk in _parts(rows, threads)}
        for future in as_completed(asked):
            yield (asked[future], *future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _evaluate_on_cluster(
    analysis: FailureAnalysis, rows: Ints, cluster: str
) -> Iterator[tuple[Ints, list[FailureOutcome], Any]]:
    with open_workers(1, cluster=cluster) as workers:
        parts = _parts(rows, len(workers.names()))
        for index, outcomes in map_shares(workers, evaluate_part, analysis, parts):
            yield (parts[index], *outcomes)


def evaluate_part(analysis: FailureAnalysis, rows: Ints) -> tuple[list[FailureOutcome], Any]:
    """Return the outcomes of some failures, by row, in a worker."""
    return analysis.evaluate(rows)


def _parts(rows: Ints, width: int) -> list[Ints]:
    """Return the rows in parts, several for each of `width` workers."""
    count = max(math.ceil(len(rows) / MOST_PER_PART), min(len(rows), width * PARTS_PER_THREAD))
    return [chunk for chunk in np.array_split(rows, max(count, 1)) if len(chunk)]


def _carries_less(
    system: System, before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> bool:
    """Return whether a smaller share of the demand is carried than before, where the headline is that share.

    An amount that is lost says less: a failure may take demand away with the element.
    """
    headline = system.plan.headline
    if headline.metric != headline.growth:
        return False
    old, new = (min(1.0, figures.get(headline.metric) or 0.0) for figures in (before, after))
    return old - new > LEAST_SHARE_LOST


def _worse_by(
    metric: Metric, before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> float | None:
    """Return the worsening of a metric from before to after; 0 within rounding, None where unknown."""
    old, new = before.get(metric.name), after.get(metric.name)
    if old is None or new is None:
        return None
    worse = old - new if metric.better == "more" else new - old
    return 0.0 if abs(worse) <= 1e-9 * max(abs(old), abs(new)) else worse
