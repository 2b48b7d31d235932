"""Analysis of many failures: which one fits a design or a plan, and what it says of each failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.failure_analysis import (
    FailureAnalysis,
    FailureOutcome,
    FailureStudy,
    PossibleFailure,
    PossibleFailures,
)
from planner.contract.studies import Section
from planner.errors import InputError, SolverFailure
from planner.options import Options, Restoration
from planner_models.traffic.designs.reoptimized_failures import Reoptimization
from planner_models.traffic.plan.availability_tables import availability_tables, outcome_of
from planner_models.traffic.plan.check import TOLERANCE, VerifiedFlow, verify_flow
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.failed_links import survive
from planner_models.traffic.plan.plan import Routing, links_of_routes, list_routes, require_links
from planner_models.traffic.plan.reconvergence.admission import admit_flows
from planner_models.traffic.plan.reconvergence.drops import MOST_STEPS
from planner_models.traffic.plan.reconvergence.evaluation import Outcomes, evaluate
from planner_models.traffic.plan.reconvergence.network import Network, admission_order, network_of
from planner_models.traffic.plan.reconvergence.shortest_paths import Trees, find_trees
from planner_models.traffic.problem.failure_sets import (
    FailureSet,
    FailureSource,
    build_failure_set,
    join_sets,
)
from planner_models.traffic.problem.problem import Traffic, sum_by_index

SETS: Final = {"table": "failure", "links": "link", "nodes": "node", "double_links": "link pair"}
"""Kind of the failures of each set."""
RECONVERGING: Final = {"ecmp": False, "packet_scatter": False, "shortest_path": True}
"""Designs on shortest paths by link weights, and whether they take a single one."""
MOST_TREE_ENTRIES: Final = 60_000_000  # targets times links; larger trees do not fit the memory
PRECISION: Final = 1e-9  # of shares of links that overload leaves


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
    found: list[PossibleFailure] = []
    for source, one in zip(sources, sets, strict=True):
        found += [
            PossibleFailure(
                kind=SETS[source],
                name=name,
                adjustments=_adjustments(problem, one, source, row),
                probability=None if one.probability is None else float(one.probability[row]),
            )
            for row, name in enumerate(one.names)
        ]
    return PossibleFailures(failures=found, data=join_sets(sets))


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
    if restoration is None and design is not None:
        is_plain = parameters.get("rates", "given") == "given" and options.service != "all"
        fits = len(problem.targets) * len(problem.links) <= MOST_TREE_ENTRIES
        if design not in RECONVERGING or not is_plain or not fits:
            return None
        restoration = "reconverge"
    if restoration is None:
        by_itself: Restoration = "none" if plan.routes is None else "local"
        restoration = by_itself if plan.weights is None else "reconverge"
    if restoration == "reoptimize":
        return Reoptimization(problem=problem, failures=data, options=options)
    if restoration in ("none", "local"):
        if restoration == "local" and plan.routes is None:
            raise InputError("restoration local: the plan has no table routes, between which traffic moves")
        return FixedPlan(problem=problem, plan=plan, failures=data, is_local=restoration == "local")
    weight = None
    if plan.weights is not None:
        table = plan.weights
        place = require_links(problem, table["tail"], table["head"], table["parallel"], "weights")
        weight = np.empty(len(problem.links))
        weight[place] = table["weight"].to_numpy(float)
    return Reconvergence(
        problem=problem, failures=data, weight=weight, is_single=RECONVERGING.get(design or "", False)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Reconvergence:
    """Analysis where routing protocols find new shortest paths after a failure.

    weight     (E,) link weights; None: those of the problem
    is_single  whether all traffic takes one of equally short paths, not equal parts
    """

    problem: Traffic
    failures: FailureSet
    weight: Floats | None = None
    is_single: bool = False

    @property
    def about(self) -> str:
        """Restoration after a failure, in one sentence."""
        how = "one path for each demand" if self.is_single else "split evenly over equally short ones (ECMP)"
        return f"traffic follows the shortest paths that are left, {how}"

    @cached_property
    def network(self) -> Network:
        """The problem as arrays."""
        return network_of(self.problem, weight=self.weight, is_single=self.is_single)

    @cached_property
    def trees(self) -> Trees:
        """The shortest paths without failures."""
        return Trees(*find_trees(self.network))

    def busiest_first(self) -> Ints:
        """Return the failures by row, those that hit most traffic first."""
        failures, load = self.failures, self.trees.load.sum(axis=0)
        rows = np.repeat(np.arange(len(failures)), np.diff(failures.start))
        hit = sum_by_index(rows, load[failures.link], len(failures))
        return np.argsort(-hit, kind="stable")

    def solve(
        self, failures: FailureSet, *, with_loads: bool = False, with_demands: bool = False
    ) -> Outcomes:
        """Return the outcomes of failures.

        raises  SolverFailure where the shares that links pass do not converge
        """
        probability = np.zeros(0) if failures.probability is None else failures.probability
        found = evaluate(
            self.network,
            self.trees,
            failures.start,
            failures.link,
            probability,
            with_loads,
            with_demands,
            True,
        )
        found = Outcomes(*found)
        error = float(found.error.max(initial=0.0))
        if error > PRECISION:
            name = failures.names[int(np.argmax(found.error))]
            raise SolverFailure(
                f"delivered traffic after the failure of {name}: {MOST_STEPS} steps leave an "
                f"error of {error:.1e}"
            )
        return found

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], tuple[Floats, Floats]]:
        """Return the outcomes of some failures, and sums over them for each demand: see `Outcomes`."""
        found = self.solve(self.failures.select(rows))
        offered = float(self.problem.rate_mbps.sum())
        labels = self.problem.link_labels
        outcomes = []
        for s in range(len(rows)):
            busiest, fullest = int(found.busiest[s]), float(found.max_utilization[s])
            sent, delivered = float(found.sent[s]), float(found.delivered[s])
            outcomes.append(
                outcome_of(
                    offered=offered,
                    delivered=delivered,
                    lost=sent - delivered,
                    shed=float(found.disconnected[s]),
                    admitted=float(found.admitted[s]),
                    overloaded_links=int(found.overloaded_links[s]),
                    fullest=fullest,
                    busiest=labels[busiest] if busiest >= 0 else None,
                    concurrent_flow=1 / fullest if sent > 0 and fullest > 0 else None,
                    min_rate_share=float(found.min_share[s]) if sent > 0 else None,
                )
            )
        return outcomes, (found.lost, found.served)

    def conclude(self, parts: Sequence[tuple[Floats, Floats]]) -> Sequence[Section]:
        """Return expected losses and availabilities where failures have probabilities."""
        none = self.failures.probability_of_none
        if none is None:
            return ()
        nothing = FailureSet.of_rows(
            ["nothing"], [np.zeros(0, dtype=np.int64)], self.failures.links, np.array([none])
        )
        calm = self.solve(nothing)
        lost = calm.lost + np.sum([part[0] for part in parts], axis=0)
        served = calm.served + np.sum([part[1] for part in parts], axis=0)
        return availability_tables(self.problem, lost, served)


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPlan:
    """Analysis of a plan that stays as it is after a failure.

    Traffic that would ride a failed link is lost and loads no link, as its source finds no route. With
    `is_local` it moves to the routes of its demand that survive, in proportion to their rates; only where
    none survives it is lost.
    """

    problem: Traffic
    plan: Routing
    failures: FailureSet
    is_local: bool

    @property
    def about(self) -> str:
        """Restoration after a failure, in one sentence."""
        if self.is_local:
            return "traffic of a lost route moves to those of its demand that survive, in proportion"
        return "what would ride a failed link is lost"

    @cached_property
    def flow(self) -> VerifiedFlow:
        """The flow of the plan without failures."""
        return verify_flow(self.problem, self.plan)

    @cached_property
    def order(self) -> Ints:
        """The demands in the order of admission."""
        return admission_order(self.problem)

    @cached_property
    def routes(self) -> tuple[sp.csr_array, Ints, Floats]:
        """Share of each route's traffic on links, (R, E), its demand and its rate, (R,)."""
        routes = self.plan.routes
        assert routes is not None
        uses = links_of_routes(self.problem, routes, list_routes(self.problem, routes))
        return uses, self.problem.find_demands(routes), routes["rate_mbps"].to_numpy(float)

    def busiest_first(self) -> Ints:
        """Return the failures by row, those that hit most traffic first."""
        failures = self.failures
        rows = np.repeat(np.arange(len(failures)), np.diff(failures.start))
        hit = sum_by_index(rows, self.flow.load_mbps[failures.link], len(failures))
        return np.argsort(-hit, kind="stable")

    def flow_after(self, down: Ints) -> VerifiedFlow:
        """Return the flow where some links, by row, have failed."""
        flow = self.flow
        if not (flow.load_mbps[down] > 0).any():
            return flow
        is_down = np.zeros(len(self.problem.links), dtype=bool)
        is_down[down] = True
        if self.is_local:
            uses, demand, rate = self.routes
            demands = len(self.problem.demands)
            is_alive = np.asarray(uses[:, is_down].sum(axis=1)).ravel() == 0
            before = sum_by_index(demand, rate, demands)
            left = sum_by_index(demand, np.where(is_alive, rate, 0.0), demands)
            grows = np.divide(before, left, out=np.zeros(demands), where=left > 0)
            moved = np.where(is_alive, rate * grows[demand], 0.0)
            spread = sp.csr_array((moved, (demand, np.arange(len(rate)))), shape=(demands, len(rate)))
            amount = sp.csr_array(spread @ uses)
            served = np.where(left > 0, flow.served_mbps, 0.0)
            row, by_demand = np.arange(demands), True
        else:
            amount, served = survive(self.problem, flow, is_down)
            row, by_demand = flow.commodity, flow.by_demand
        return VerifiedFlow(
            load_mbps=np.asarray(amount.sum(axis=0)).ravel(),
            link_row=flow.link_row,
            served_mbps=served,
            flow_mbps=amount,
            commodity=row,
            by_demand=by_demand,
        )

    def evaluate(self, rows: Ints) -> tuple[list[FailureOutcome], tuple[Floats, Floats]]:
        """Return the outcomes of some failures, and sums over them for each demand: see `Outcomes`."""
        demands, probability = len(self.problem.demands), self.failures.probability
        outcomes, sums = [], (np.zeros(demands), np.zeros(demands))
        for row in rows.tolist():
            down = self.failures.link[self.failures.start[row] : self.failures.start[row + 1]]
            outcomes.append(self._outcome(down, sums, 0.0 if probability is None else probability[row]))
        return outcomes, sums

    def _outcome(self, down: Ints, sums: tuple[Floats, Floats], probability: float) -> FailureOutcome:
        """Return the outcome of one failure; add what each demand loses, and whether all of it arrives."""
        problem, flow = self.problem, self.flow_after(down)
        delivered = delivered_rates(problem, flow)
        rate, sent = problem.rate_mbps, self.flow.served_mbps
        sums[0][:] += probability * (rate - delivered)
        sums[1][:] += probability * (delivered >= rate * (1 - TOLERANCE))
        use = flow.load_mbps / problem.capacity_mbps
        busiest = int(np.argmax(use)) if len(use) else -1
        cut = float((sent - flow.served_mbps).sum())
        lost = float((flow.served_mbps - delivered).sum())
        shed = np.where(rate - sent > 1e-12 * rate, rate - sent, 0.0)
        admitted = None
        if flow.by_demand:
            matrix = flow.flow_mbps
            admitted = admit_flows(
                matrix.indptr.astype(np.int64),
                matrix.indices.astype(np.int64),
                matrix.data,
                flow.served_mbps,
                problem.capacity_mbps.copy(),
                self.order,
            )
        return outcome_of(
            offered=float(rate.sum()),
            delivered=float(delivered.sum()),
            lost=lost + cut,
            shed=float(shed.sum()),
            admitted=admitted,
            overloaded_links=int((use > 1 + TOLERANCE).sum()),
            fullest=float(use[busiest]) if busiest >= 0 else 0.0,
            busiest=problem.link_labels[busiest] if busiest >= 0 and use[busiest] > 0 else None,
        )

    def conclude(self, parts: Sequence[tuple[Floats, Floats]]) -> Sequence[Section]:
        """Return expected losses and availabilities where failures have probabilities."""
        none = self.failures.probability_of_none
        if none is None:
            return ()
        calm = np.zeros(len(self.problem.demands)), np.zeros(len(self.problem.demands))
        self._outcome(np.zeros(0, dtype=np.int64), calm, none)
        lost, served = (np.sum([calm[at], *(part[at] for part in parts)], axis=0) for at in (0, 1))
        return availability_tables(self.problem, lost, served)


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
