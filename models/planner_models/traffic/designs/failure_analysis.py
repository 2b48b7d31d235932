"""Analysis of many failures: the choice by design or plan, and the outcome of each failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.failure_analysis import (
    FailureAnalysis,
    FailureOutcome,
    FailureStudy,
    PossibleFailure,
    PossibleFailures,
)
from planner.contract.studies import Section
from planner.options import Options, Restoration
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.reoptimized_failures import Reoptimization
from planner_models.traffic.plan.availability import availability_tables, outcome_of
from planner_models.traffic.plan.failure_outcomes import (
    Aftermath,
    PlanInFailures,
    find_restoration,
    weights_of,
)
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.reconvergence.drops import admit_flows
from planner_models.traffic.plan.reconvergence.evaluation import ShortestPathRouting
from planner_models.traffic.plan.reconvergence.shortest_paths import admission_order
from planner_models.traffic.plan.verified_flow import TOLERANCE
from planner_models.traffic.problem.failure_sets import (
    FailureSet,
    FailureSource,
    build_failure_set,
    join_sets,
)
from planner_models.traffic.problem.problem import Traffic

SETS: Final = {"table": "failure", "links": "link", "nodes": "node", "double_links": "link pair"}
"""Kind of the failures of each set."""
RECONVERGING: Final = {"ecmp": False, "packet_scatter": False, "shortest_path": True}
"""Designs on shortest paths by link weights, and whether they take a single one."""
MOST_TREE_ENTRIES: Final = 60_000_000  # targets times links; larger trees do not fit the memory
ABOUT: Final[Mapping[Restoration, str]] = {
    "none": "what would ride a failed link is lost",
    "local": "traffic of a lost route moves to those of its demand that survive, in proportion",
    "reroute": "a controller routes again what the plan sends",
}
"""Restoration of a fixed plan, in one sentence."""


def default_sets(problem: Traffic) -> tuple[str, ...]:
    """Return the sets that are analysed where none is named: the table, else single links and nodes."""
    return ("links", "nodes") if problem.failures is None else ("table",)


def find_failures(problem: Traffic, names: Sequence[str]) -> PossibleFailures:
    """Return the failures of some sets, see `build_failure_set`.

    raises  InputError for the set "table" where the problem has no table of failures
    """
    sources: list[FailureSource] = [
        name for name in ("table", "links", "nodes", "double_links") if name in names
    ]
    sets = [build_failure_set(problem, source) for source in sources]
    failures: list[PossibleFailure] = []
    for source, failure_set in zip(sources, sets, strict=True):
        failures += [
            PossibleFailure(
                kind=SETS[source],
                name=name,
                adjustments=_adjustments(problem, failure_set, source, row),
                probability=None if failure_set.probability is None else float(failure_set.probability[row]),
            )
            for row, name in enumerate(failure_set.names)
        ]
    return PossibleFailures(failures=failures, data=join_sets(sets))


def _adjustments(problem: Traffic, failures: FailureSet, source: FailureSource, row: int) -> dict[str, Any]:
    name = failures.names[row]
    if source == "links":
        return {"fail_links": (name,)}
    if source == "nodes":
        return {"fail_nodes": (name,)}
    rows = failures.link[failures.start[row] : failures.start[row + 1]]
    tail, head = (problem.links[end].to_numpy()[rows] for end in ("tail", "head"))
    number, is_parallel = problem.parallel[rows], problem.is_parallel[rows]
    return {
        "fail_links": tuple(
            f"{a}->{b}" + (f"#{nth}" if is_numbered else "")
            for a, b, nth, is_numbered in zip(tail, head, number, is_parallel, strict=True)
        )
    }


def _is_followed(problem: Traffic, parameters: Mapping[str, Any], options: Options) -> bool:
    """Return whether reconvergence is analysed without being asked for: of plain plans, in little memory."""
    is_plain = parameters.get("rates", "given") == "given" and options.service != "all"
    return is_plain and len(problem.targets) * len(problem.links) <= MOST_TREE_ENTRIES


def analyse_failures(
    problem: Traffic,
    plan: Routing,
    design: str | None,
    parameters: Mapping[str, Any],
    failures: PossibleFailures,
    restoration: Restoration | None,
    options: Options,
) -> FailureAnalysis | None:
    """Return the analysis of the failures, see `FailureStudy.analyse`."""
    data: FailureSet = failures.data
    if restoration == "reoptimize":
        return Reoptimization(problem=problem, failures=data, options=options)
    if design in RECONVERGING and restoration in (None, "reconverge"):
        if restoration is None and not _is_followed(problem, parameters, options):
            return None
        return Reconvergence.of(problem, data, is_single=RECONVERGING[design])
    if restoration is None:
        if design is not None and plan.weights is None and plan.guarantees is None:
            return None
        restoration = find_restoration(problem, plan)
        if design is None and restoration == "reconverge":
            paths = PlanInFailures(problem=problem, plan=plan, restoration=restoration)
            return Reconvergence(paths=paths.shortest_paths, failures=data, problem=problem)
    if restoration == "reconverge":
        return Reconvergence.of(problem, data, weight=weights_of(problem, plan))
    return FixedPlan.of(problem, plan, data, restoration)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reconvergence:
    """Analysis with routing protocols that find new shortest paths after a failure.

    problem  what is offered; `paths` may have less, where a plan sheds some
    """

    problem: Traffic
    failures: FailureSet
    paths: ShortestPathRouting

    @classmethod
    def of(
        cls, problem: Traffic, failures: FailureSet, *, weight: Floats | None = None, is_single: bool = False
    ) -> Reconvergence:
        """Return the analysis of all traffic of a problem; see `ShortestPathRouting`."""
        paths = ShortestPathRouting(problem=problem, weight=weight, is_single=is_single)
        return cls(problem=problem, failures=failures, paths=paths)

    @property
    def about(self) -> str:
        """Restoration after a failure, in one sentence."""
        source_note = "" if self.paths.weight is None else " by the plan's weights, which stay as they are"
        how = (
            "one path for each demand"
            if self.paths.is_single
            else "split evenly over equally short ones (ECMP)"
        )
        return f"traffic follows the shortest paths that are left{source_note}, {how}"

    def busiest_first(self) -> Ints:
        """Return the failures by row, those that hit most traffic first."""
        failures, load = self.failures, self.paths.trees.load.sum(axis=0)
        rows = np.repeat(np.arange(len(failures)), np.diff(failures.start))
        hit = sum_by_index(rows, load[failures.link], len(failures))
        return np.argsort(-hit, kind="stable")

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], tuple[Floats, Floats]]:
        """Return the outcomes of some failures, and sums over them for each demand: see `Outcomes`."""
        solution = self.paths.solve(self.failures.select(rows))
        offered = float(self.problem.rate_mbps.sum())
        kept_back = self._kept_back
        labels = self.problem.link_labels
        outcomes = []
        for s in range(len(rows)):
            busiest, fullest = int(solution.busiest[s]), float(solution.max_utilization[s])
            sent, delivered = float(solution.sent[s]), float(solution.delivered[s])
            outcomes.append(
                outcome_of(
                    offered=offered,
                    delivered=delivered,
                    lost=sent - delivered,
                    shed=float(solution.disconnected[s]) + float(kept_back.sum()),
                    admitted=float(solution.admitted[s]),
                    overloaded_links=int(solution.overloaded_links[s]),
                    fullest=(labels[busiest] if busiest >= 0 else None, fullest),
                    concurrent_flow=1 / fullest if sent > 0 and fullest > 0 else None,
                    min_rate_share=float(solution.min_share[s]) if sent > 0 else None,
                )
            )
        return outcomes, (solution.lost, solution.served)

    def conclude(self, parts: Sequence[tuple[Floats, Floats]]) -> Sequence[Section]:
        """Return expected losses and availabilities where failures have probabilities."""
        none = self.failures.probability_of_none
        if none is None:
            return ()
        nothing = FailureSet.of_rows(
            ["nothing"], [np.zeros(0, dtype=np.int64)], self.failures.links, np.array([none])
        )
        intact = self.paths.solve(nothing)
        lost = intact.lost + np.sum([outcome[0] for outcome in parts], axis=0) + self._kept_back
        served = intact.served + np.sum([outcome[1] for outcome in parts], axis=0)
        is_whole = self._kept_back <= TOLERANCE * self.problem.rate_mbps
        return availability_tables(self.problem, lost, np.where(is_whole, served, 0.0))

    @property
    def _kept_back(self) -> Floats:
        """Traffic of each demand that is not sent even without failures, (K,), Mbit/s."""
        missing = self.problem.rate_mbps - self.paths.problem.rate_mbps
        return np.where(missing > 1e-12 * self.problem.rate_mbps, missing, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPlan:
    """Analysis of a plan that stays as it is after a failure, see `PlanInFailures`."""

    plan: PlanInFailures
    failures: FailureSet

    @classmethod
    def of(cls, problem: Traffic, plan: Routing, failures: FailureSet, restoration: Restoration) -> FixedPlan:
        """Return the analysis of a plan."""
        fixed = PlanInFailures(problem=problem, plan=plan, restoration=restoration)
        return cls(plan=fixed, failures=failures)

    @property
    def about(self) -> str:
        """Restoration after a failure, in one sentence."""
        return ABOUT[self.plan.restoration]

    @cached_property
    def order(self) -> Ints:
        """The demands in the order of admission."""
        return admission_order(self.plan.problem)

    def busiest_first(self) -> Ints:
        """Return the failures by row, those that hit most traffic first."""
        failures = self.failures
        rows = np.repeat(np.arange(len(failures)), np.diff(failures.start))
        hit = sum_by_index(rows, self.plan.flow.load_mbps[failures.link], len(failures))
        return np.argsort(-hit, kind="stable")

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], tuple[Floats, Floats]]:
        """Return the outcomes of some failures, and sums over them for each demand: see `Outcomes`."""
        probability = self.failures.probability
        return self._outcomes(
            self.failures.link_down[rows], np.zeros(len(rows)) if probability is None else probability[rows]
        )

    def _outcomes(
        self, down: Bools, probability: Floats
    ) -> tuple[list[FailureOutcome], tuple[Floats, Floats]]:
        """Return the outcomes of failures of links, (S, E), and expected losses and availabilities, (K,)."""
        rate = self.plan.problem.rate_mbps
        outcomes, lost, served = [], np.zeros(len(rate)), np.zeros(len(rate))
        for share, after in zip(probability, self.plan.simulate(down, with_flow=True), strict=True):
            outcomes.append(self._outcome(after))
            lost += share * (rate - after.delivered_mbps)
            served += share * (after.delivered_mbps >= rate * (1 - TOLERANCE))
        return outcomes, (lost, served)

    def _outcome(self, after: Aftermath) -> FailureOutcome:
        problem = self.plan.problem
        rate, sent = problem.rate_mbps, self.plan.flow.served_mbps
        use = None if after.load_mbps is None else after.load_mbps / problem.capacity_mbps
        busiest = int(np.argmax(use)) if use is not None and len(use) else -1
        shed = np.where(rate - sent > 1e-12 * rate, rate - sent, 0.0)
        admitted = None
        if after.flow is not None and after.flow.by_demand:
            matrix = after.flow.flow_mbps
            admitted = admit_flows(
                matrix.indptr.astype(np.int64),
                matrix.indices.astype(np.int64),
                matrix.data,
                after.sent_mbps,
                problem.capacity_mbps.copy(),
                self.order,
            )
        return outcome_of(
            offered=float(rate.sum()),
            delivered=float(after.delivered_mbps.sum()),
            lost=float((sent - after.delivered_mbps).sum()),
            shed=float(shed.sum()),
            admitted=admitted,
            overloaded_links=0 if use is None else int((use > 1 + TOLERANCE).sum()),
            fullest=(
                problem.link_labels[busiest] if use is not None and use.any() else None,
                None if use is None else float(use.max(initial=0.0)),
            ),
        )

    def conclude(self, parts: Sequence[tuple[Floats, Floats]]) -> Sequence[Section]:
        """Return expected losses and availabilities where failures have probabilities."""
        none = self.failures.probability_of_none
        if none is None:
            return ()
        intact = self._outcomes(np.zeros((1, self.failures.links), dtype=bool), np.array([none]))[1]
        lost, served = (
            np.sum([intact[index], *(outcome[index] for outcome in parts)], axis=0) for index in (0, 1)
        )
        return availability_tables(self.plan.problem, lost, served)


FAILURES: Final = FailureStudy[Traffic](
    sets=SETS,
    default=default_sets,
    find=find_failures,
    analyse=analyse_failures,
    figures={
        "admitted_mbps": ("Admitted in order", "Mbit/s"),
        "links_over": ("Overloaded links", "links"),
        "bound_mbps": ("Bound on delivered", "Mbit/s"),
    },
)
