r"""Traffic engineering with a limit on risk: the least conditional value at risk of the share that is lost.

Linear program, for the reservation a of each path, failures q with probabilities (that nothing fails among
them), the share u lost of each demand and set of its paths that a failure takes, and an availability $\beta$:

$$\min \alpha + \frac{1}{1-\beta} \sum_q p_q s_q \quad\text{s.t.}\quad s_q \ge \ell_q - \alpha,$$
$$u_{k,F} \ge 1 - \frac{1}{d_k} \sum_{p \in P_k \setminus F} a_p,\quad
\sum_{p: e \in p} a_p \le c_e$$

$\ell_q$ is the largest $u_{k,F_q}$ of a demand, or the share of all traffic that is lost; demands that a
failure leaves no path do not count, and demands that none of the given paths serves lose everything.
Scenarios that take the same paths from a demand share its u, and only those in which a demand loses paths
make rows for it. A second program takes, of the plans of least risk, one that delivers the most traffic on
average.

source  Bogle et al., "TEAVAR: striking the right utilization-availability balance in WAN traffic engineering"
        (SIGCOMM 2019); Rockafellar and Uryasev 2000 (conditional value at risk)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends, formatting
from planner.arrays import Bools, Floats
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder, Variables
from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.contract.proof import Proof
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import of_solution, optimal
from planner.search.tolerances import ROUNDING, SOLVER
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.traffic.designs.failure_robust.surviving_paths import (
    TunnelChoice,
    TunnelCount,
    add_guarantees,
    choose_paths,
    find_hits,
    fit_reservations,
    largest_on_paths,
    plan_reservations,
    resolve_source,
)
from planner_models.traffic.designs.routable import refuse_demands
from planner_models.traffic.designs.route_choice import describe_lack, describe_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.failure_sets import FailureSet, FailuresParameter, build_failure_set
from planner_models.traffic.problem.problem import Traffic

RISK_TOLERANCE: Final = SOLVER  # by which the second program may exceed the least risk

Availability = Annotated[
    float,
    Field(
        ge=0,
        lt=1,
        description="the risk is the mean share lost in the worst 1 - availability of the time; 0: at all "
        "times",
    ),
]
FailureShare = Annotated[
    float,
    Field(
        gt=0,
        le=1,
        description="share of the time in which some failure occurs, all as often, where they have no "
        "probabilities",
    ),
]
Loss = Annotated[
    Literal["largest", "total"],
    Field(description="share that is lost: of the demand that loses most, or of all traffic"),
]


@dataclass(frozen=True, kw_only=True)
class FailureModel:
    """The failures, and their probabilities where the table has none."""

    failures: FailuresParameter = None
    failure_share: FailureShare = 0.01


@spread(model=FailureModel())
def route(
    problem: Traffic,
    *,
    availability: Availability = 0.99,
    loss: Loss = "largest",
    model: FailureModel,
    paths: TunnelCount = None,
    path_choice: TunnelChoice = "most_disjoint",
    options: Options = Options(),
) -> Decision[Routing]:
    """Reserve capacity on paths such that the mean loss in the worst part of the time is the least.

    Failures have the probabilities of the table `failures`, or all the same one (`failure_share`); at other
    times nothing fails. Restoration is local: the source of a demand sends over those of its paths that
    survive, up to what is reserved there, so that no link overloads.

    returns  Decision with a Routing whose table `routes` says what is reserved and whose table `guarantees`
             what arrives with at least the availability; the bound is that of the risk over these paths
    source   Bogle et al. 2019 (TEAVAR)
    """
    source = resolve_source(problem, model.failures)
    failure_set, assumed = build_failure_set(problem, source), None
    if failure_set.probability is None:
        assumed = model.failure_share / max(len(failure_set), 1)
        failure_set = failure_set.with_probability(assumed)
    served = problem.routable
    candidates, choice, limits = choose_paths(served, paths, path_choice)
    left_out = problem.unreachable | candidates.without_path(served)
    if options.service == "all" and left_out.any():
        return refuse_demands(problem, left_out, describe_lack(served, candidates, None))
    if not len(candidates.demand):
        plan = plan_reservations(problem, candidates, np.zeros(0), np.zeros(len(problem.demands)))
        return Decision(plan=plan, proof=optimal())
    search = _Search(problem, candidates, failure_set, availability, loss)
    solution, reserved = search.run(options)
    scope = (
        f"plans over {describe_paths(choice, path_choice, None, limits)}, and the risk beyond an "
        f"availability of {formatting.availability(availability)} in the failures of '{source}'"
        + (f", each {formatting.availability(assumed)} of the time" if assumed is not None else "")
    )
    if reserved is None:
        return Decision(plan=None, proof=of_solution(solution))
    reserved = fit_reservations(served, candidates, reserved)
    total = np.bincount(candidates.demand, weights=reserved, minlength=len(problem.demands))
    sent = np.minimum(served.rate_mbps, total)
    plan = plan_reservations(problem, candidates, reserved, sent)
    safe = search.guaranteed(reserved, sent)
    plan = add_guarantees(
        problem, plan, safe, failures=source, at_once=1, restoration="split", has_zeros=not safe.any()
    )
    assert plan.guarantees is not None
    claims = plan.guarantees.assign(availability=availability)
    if assumed is not None:
        claims = claims.assign(probability=assumed)
    proof = _prove(solution, search.risk(reserved), loss, scope)
    return Decision(plan=replace(plan, guarantees=claims), proof=proof)


def _prove(solution: Solution, risk: float, loss: str, scope: str) -> Proof:
    """Return the proof of a plan with this risk; the bound of the solution holds within its tolerance."""
    bound = solution.bound
    if bound is not None:
        bound = risk if abs(bound - risk) <= RISK_TOLERANCE else max(min(bound, risk), 0.0)
    return of_solution(
        solution,
        objective=risk,
        bound=bound,
        bound_scope=scope,
        metric="demand_risk" if loss == "largest" else "traffic_risk",
    )


class _Search:
    """Demands with a path, the sets of their paths that failures take, and the program over reservations.

    A loss is a demand and a set of its paths: first, for each demand, that without a failure.

    total_mbps     traffic of all demands
    least_loss     (S + 1,) lost in each failure, and without one, whatever is reserved: by demands that the
                   network connects then, while no given path serves them

    owner    (M,) place in `wanted` of each loss; survives (M, P) 1 for each path that is left
    scenario, of_loss  (H,) failures that take paths of demands, and the loss of each; not of demands that the
             failure leaves no path
    """

    def __init__(
        self, problem: Traffic, paths: CandidatePaths, failures: FailureSet, availability: float, loss: str
    ) -> None:
        self.problem, self.paths, self.availability, self.kind = problem, paths, availability, loss
        assert failures.probability is not None
        self.wanted = np.unique(paths.demand)
        self.rate = problem.rate_mbps[self.wanted]
        self.total_mbps = float(problem.rate_mbps.sum())
        count, demands = len(paths.demand), len(self.wanted)
        self.probability = np.r_[failures.probability, failures.probability_of_none or 0.0]
        hits = find_hits(paths, failures).tocoo()
        row = np.searchsorted(self.wanted, paths.demand)
        start = np.searchsorted(row, np.arange(demands + 1))
        key = row[hits.col] * len(failures) + hits.row
        keys, pair = np.unique(key, return_inverse=True)
        bits = np.zeros(len(keys), dtype=np.int64)
        np.bitwise_or.at(bits, pair, np.int64(1) << (hits.col - start[row[hits.col]]))
        hit, scenario = np.divmod(keys, max(len(failures), 1))
        disconnected = np.array(
            [problem.disconnected_demands(~down) for down in failures.link_down], dtype=bool
        ).reshape(len(failures), len(problem.demands))
        self.disconnected = disconnected[:, self.wanted]
        without_path = np.setdiff1d(np.flatnonzero(problem.rate_mbps > 0), self.wanted)
        lost_mbps = (~np.vstack([disconnected, problem.unreachable]) * problem.rate_mbps)[:, without_path]
        if loss == "largest":
            self.least_loss = (lost_mbps > 0).any(axis=1).astype(np.float64)
        else:
            self.least_loss = lost_mbps.sum(axis=1) / self.total_mbps
        losses, of_loss = np.unique(np.stack([hit, bits]), axis=1, return_inverse=True)
        self.owner = np.r_[np.arange(demands), losses[0]]
        taken = np.r_[np.zeros(demands, dtype=np.int64), losses[1]]
        size = np.diff(start)[self.owner]
        entry = np.repeat(np.arange(len(self.owner)), size)
        position = np.arange(len(entry)) - np.repeat(np.cumsum(size) - size, size)
        is_left = (taken[entry] >> position) & 1 == 0
        column = start[self.owner[entry]] + position
        self.survives = sp.csr_array(
            (np.ones(int(is_left.sum())), (entry[is_left], column[is_left])), shape=(len(self.owner), count)
        )
        counts = ~self.disconnected[scenario, hit]
        self.scenario, self.of_loss = scenario[counts], demands + of_loss.ravel()[counts]

    def shares_lost(self, reserved_mbps: Floats) -> Floats:
        """Return the share of its demand that each loss is, (M,)."""
        return np.asarray(np.maximum(1.0 - (self.survives @ reserved_mbps) / self.rate[self.owner], 0.0))

    def _loss_of_scenarios(self, share: Floats) -> Floats:
        """Return the loss in each failure, and without one, (S + 1,)."""
        demands = len(self.rate)
        lost = np.full((len(self.probability), demands), 0.0)
        lost[:] = share[:demands]
        lost[:-1][self.disconnected] = 0.0
        lost[self.scenario, self.owner[self.of_loss]] = share[self.of_loss]
        if self.kind == "largest":
            return np.asarray(np.maximum(lost.max(axis=1), self.least_loss))
        return np.asarray(lost @ self.rate / self.total_mbps + self.least_loss)

    def risk(self, reserved_mbps: Floats) -> float:
        """Return the conditional value at risk of reservations, (P,) Mbit/s."""
        return tail_mean(
            self._loss_of_scenarios(self.shares_lost(reserved_mbps)), self.probability, self.availability
        )

    def guaranteed(self, reserved_mbps: Floats, sent_mbps: Floats) -> Floats:
        """Return the arrivals of each demand with at least the availability, (K,) Mbit/s."""
        share = self.shares_lost(reserved_mbps)
        guaranteed = np.zeros(len(self.problem.demands))
        order = np.argsort(self.owner[self.of_loss], kind="stable")
        begin = np.searchsorted(self.owner[self.of_loss][order], np.arange(len(self.rate) + 1))
        for row, rate in enumerate(self.rate.tolist()):
            here = order[begin[row] : begin[row + 1]]
            lost, chance = share[self.of_loss[here]], self.probability[self.scenario[here]]
            worst = np.argsort(-lost, kind="stable")
            # the worst failures that may be given up together have no more than 1 - availability
            given_up = int(
                np.searchsorted(np.cumsum(chance[worst]), 1 - self.availability + ROUNDING, "right")
            )
            loss_limit = lost[worst[given_up]] if given_up < len(worst) else 0.0
            demand = self.wanted[row]
            guaranteed[demand] = min((1 - max(loss_limit, share[row])) * rate, sent_mbps[demand])
        return guaranteed

    def run(self, options: Options) -> tuple[Solution, Floats | None]:
        """Return the solution of least risk, and reservations (P,) Mbit/s of the best plan of least risk."""
        deadline = Deadline.of(options)
        first = backends.solve(self._program(None), options)
        if first.x is None or first.objective is None:
            return first, None
        program = self._program(max(first.objective, 0.0) + RISK_TOLERANCE)
        second = backends.solve(program, deadline.options(options))
        count = len(self.paths.demand)
        best = first.x if second.x is None else second.x
        return first, best[:count] * self._unit

    @cached_property
    def _unit(self) -> Floats:
        """(P,) unit of each path's reservation, Mbit/s: the most that it can be of use.

        It is the smaller of its demand and of its smallest capacity, so that no coefficient exceeds 1,
        whatever the magnitudes of demands and capacities.
        """
        per_mbps = largest_on_paths(self.paths, self._per_capacity)
        rate = self.problem.rate_mbps[self.paths.demand]
        return np.asarray(rate / np.maximum(rate * per_mbps, 1.0))

    @property
    def _per_capacity(self) -> Floats:
        """(E,) 1 over each capacity; 0 for links that are down."""
        capacity = self.problem.capacity_mbps
        return np.divide(1.0, capacity, out=np.zeros(len(capacity)), where=capacity > 0)

    def _program(self, most_risk: float | None) -> LinearProgram:
        """Return the program of least risk; or, under a limit on the risk, that of the most traffic.

        Variables: reservations (P,), shares lost (M,), the value at risk, the excess of each scenario over
        it, and for the largest loss that without a failure.
        """
        count, losses, scenarios = len(self.paths.demand), len(self.owner), len(self.probability)
        demands, tail = len(self.rate), self.probability / (1 - self.availability)
        least_risk = most_risk is None
        chance = self.probability[self.scenario]
        weight = np.bincount(self.of_loss, weights=chance, minlength=losses)
        weight[:demands] = 1.0 - np.bincount(self.owner[self.of_loss], weights=chance, minlength=demands)
        load = sp.diags_array(self._per_capacity) @ self.paths.uses.T @ sp.diags_array(self._unit)
        served = sp.diags_array(1.0 / self.rate[self.owner]) @ self.survives @ sp.diags_array(self._unit)

        m = ProgramBuilder(name="traffic of least risk")
        a = m.variables("reserved", count)
        mean = 0.0 if least_risk else weight * self.rate[self.owner] / self.total_mbps
        u = m.variables("lost", losses, upper=1.0, cost=mean)
        alpha = m.variables("value_at_risk", cost=float(least_risk))
        s = m.variables("excess", scenarios, cost=tail if least_risk else 0.0)
        largest = m.variables("largest")
        m.constrain("capacity", load @ a, upper=1.0, labels=lambda: self.problem.link_labels)
        m.constrain("lost", served @ a + u, lower=1.0)
        if self.kind == "largest":
            self._limit_largest(m, u, alpha + s, largest)
        else:
            self._limit_total(m, u, alpha + s)
        if most_risk is not None:
            m.constrain("risk", alpha + tail[None, :] @ s, upper=most_risk)
        return m.build()

    def _limit_largest(self, m: ProgramBuilder, u: Variables, value: Expression, largest: Variables) -> None:
        """Add that the value of a scenario, (S,), is at least the share of the demand that loses most.

        largest  share that a demand loses without a failure, of those that keep a path in every failure
        """
        of_none = self._connected_in_all()
        m.constrain("largest", largest - u[np.flatnonzero(of_none)], lower=0.0)
        m.constrain("scenario", value - largest, lower=0.0)
        m.constrain("failure", value[self.scenario] - u[self.of_loss], lower=0.0)
        m.constrain("without path", value, lower=self.least_loss)
        some = np.flatnonzero(~of_none)
        is_counted = np.r_[~self.disconnected, np.ones((1, len(self.rate)), dtype=bool)]
        scenario, demand = np.nonzero(is_counted[:, some])
        m.constrain("elsewhere", value[scenario] - u[some[demand]], lower=0.0)

    def _connected_in_all(self) -> Bools:
        """Return whether each demand with a path keeps one in every failure, (n,)."""
        return np.asarray(~self.disconnected.any(axis=0))

    def _limit_total(self, m: ProgramBuilder, u: Variables, value: Expression) -> None:
        """Add that the value of a scenario, (S,), is at least the share of all traffic that is lost in it."""
        demands, scenarios = len(self.rate), len(self.probability)
        weight = self.rate / self.total_mbps
        lost = np.ones((scenarios, demands), dtype=bool)
        lost[:-1][self.disconnected] = False
        lost[self.scenario, self.owner[self.of_loss]] = False  # they lose more than without a failure
        scenario, demand = np.nonzero(lost)
        share = (u[demand] * weight[demand]).sum_by(scenario, scenarios)
        more = (u[self.of_loss] * weight[self.owner[self.of_loss]]).sum_by(self.scenario, scenarios)
        m.constrain("scenario", value - share - more, lower=self.least_loss)


def tail_mean(loss: Floats, probability: Floats, availability: float) -> float:
    """Return the mean of a loss in the worst 1 - availability of the time: the conditional value at risk."""
    tail = 1.0 - availability
    order = np.argsort(-loss, kind="stable")
    before = np.r_[0.0, np.cumsum(probability[order])[:-1]]
    used = np.clip(np.minimum(probability[order], tail - before), 0.0, None)
    return float(used @ loss[order]) / tail
