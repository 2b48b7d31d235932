"""Check of a routing against the raw problem, independent of the design that made it.

The table `guarantees` claims that traffic arrives in each failure of a set. Every failure of the claimed set
is simulated. Where sources split over routes whose reservations fit into the capacities, failures overload no
link, and each demand is followed alone through all combinations of failures that take routes from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, allowance, differs, exceeds
from planner.errors import PlanRejected, did_you_mean
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.failure_outcomes import SplitRoutes, deliver_in_failures, find_preferred
from planner_models.traffic.plan.flow_check import check_flow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import require_classes
from planner_models.traffic.plan.rerouting import make_rerouting
from planner_models.traffic.plan.verified_flow import VerifiedFlow, verify_flow
from planner_models.traffic.problem.failure_sets import FAILURE_SOURCES, FailureSet, build_failure_set
from planner_models.traffic.problem.problem import Traffic

MAX_COMBINATIONS: Final = 100_000  # of failures that are simulated one by one
RESTORATIONS: Final = ("split", "reroute")


def check(problem: Traffic, plan: Routing) -> Violations:
    """Return violations: links above their capacity, demands neither sent nor shed, false utilizations,
    traffic beyond latency limits or against rules, and demands that failures hit harder than guaranteed.

    raises  PlanRejected where the plan is no flow: an unknown link or demand, traffic that is lost or
            appears from nowhere or circles where no demand passes, more traffic than a demand's rate; or
            where its tables contradict each other: link totals, routes, weights, lies, segments, shed,
            moved, guarantees, shares
    """
    flow = verify_flow(problem, plan)
    violations = check_flow(problem, plan, flow)
    return violations if plan.guarantees is None else violations + check_guarantees(problem, plan, flow)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Claim:
    """The same claim for several demands: (K,) Mbit/s that arrive, 0 where nothing is claimed."""

    rate_mbps: Floats
    failures: FailureSet
    at_once: int
    restoration: str
    availability: float | None


def check_guarantees(problem: Traffic, plan: Routing, flow: VerifiedFlow) -> Violations:
    """Return the demands that get less in a failure than the plan claims, each in its worst failure.

    raises  PlanRejected for a claim about an unknown demand or set of failures, for more than is sent, and
            for a claim that cannot be checked
    """
    where: list[str] = []
    arrives: list[float] = []
    claimed: list[float] = []
    for claim in _read_claims(problem, plan, flow):
        for demand, failure, amount in _find_broken(problem, plan, flow, claim):
            where.append(f"{problem.demand_labels[demand]}: {failure}")
            arrives.append(amount)
            claimed.append(float(claim.rate_mbps[demand]))
    return Violations.of("guarantees", where=where, amount=arrives, allowed=claimed, unit="Mbit/s")


def _read_claims(problem: Traffic, plan: Routing, flow: VerifiedFlow) -> Iterator[_Claim]:
    table = plan.guarantees
    assert table is not None
    require_classes(problem, table, "guarantees")
    demand = problem.find_demands(table)
    rate = table["rate_mbps"].to_numpy(float)
    for row in np.flatnonzero((demand < 0) | ~(rate >= 0) | np.isinf(rate)).tolist():
        name = f"{table['source'].iloc[row]}->{table['target'].iloc[row]}"
        fault = f"rate_mbps is {rate[row]}, must be at least 0" if demand[row] >= 0 else ""
        raise PlanRejected(f"guarantees row {row + 1}: {fault or f'{name} is no demand of the problem'}")
    sent = flow.served_mbps[demand]
    too_much = np.flatnonzero(exceeds(rate, sent, flow.terms_mbps[demand]))
    if len(too_much):
        row = int(too_much[0])
        raise PlanRejected(
            f"guarantees row {row + 1}: {problem.demand_labels[demand[row]]} is said to get {rate[row]:.6g} "
            f"Mbit/s, but {sent[row]:.6g} Mbit/s are sent"
        )
    for name in ("availability", "probability"):
        table = table.assign(**{name: table.get(name, math.nan)})
    keys = table[["failures", "at_once", "restoration", "availability", "probability"]]
    kinds = keys.drop_duplicates().itertuples(index=False)
    kind_of = keys.groupby(list(keys), sort=False, dropna=False, observed=True).ngroup().to_numpy()
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(kind_of == number)
        minimum = np.zeros(len(problem.demands))
        minimum[demand[rows]] = rate[rows]
        yield _read_claim(problem, minimum, kind, f"guarantees row {rows[0] + 1}")


def _read_claim(problem: Traffic, minimum: Floats, kind: tuple[Any, ...], where: str) -> _Claim:
    """Return the claim that demands get a minimum rate, (K,), in failures of one kind.

    kind  failures, how many at once, restoration, availability and probability, as in the table `guarantees`
    """
    source, at_once, restoration, availability, probability = kind
    failures = _find_failures(problem, str(source), where)
    if failures.probability is None and not math.isnan(probability):
        if exceeds(probability * len(failures), 1.0, relative=EXACT):
            raise PlanRejected(
                f"{where}: probability is {probability:g}, which {len(failures)} failures cannot all have"
            )
        failures = failures.with_probability(float(probability))
    if restoration not in RESTORATIONS:
        raise PlanRejected(
            f"{where}: restoration is '{restoration}', must be split or reroute"
            + did_you_mean(str(restoration), RESTORATIONS)
        )
    has_availability = not math.isnan(availability)
    if has_availability and (failures.probability is None or at_once != 1):
        raise PlanRejected(
            f"{where}: availability is {availability:g}, which needs single failures with probabilities"
        )
    return _Claim(
        rate_mbps=minimum,
        failures=failures,
        at_once=int(at_once),
        restoration=str(restoration),
        availability=float(availability) if has_availability else None,
    )


def _find_failures(problem: Traffic, name: str, where: str) -> FailureSet:
    for source in FAILURE_SOURCES:
        if source == name and (name != "table" or problem.failures is not None):
            return build_failure_set(problem, source)
    if name == "table":
        raise PlanRejected(f"{where}: failures is 'table', but the problem has no table failures")
    raise PlanRejected(
        f"{where}: failures is '{name}', must be {', '.join(FAILURE_SOURCES[:-1])} or {FAILURE_SOURCES[-1]}"
        + did_you_mean(name, FAILURE_SOURCES)
    )


def _deliver_rerouted(
    problem: Traffic, plan: Routing, flow: VerifiedFlow, claim: _Claim, down: Bools
) -> Floats:
    """Return the rate that arrives of each demand where a controller reroutes, Mbit/s, by links that fail."""
    is_all_sent = not differs(claim.rate_mbps, flow.served_mbps, flow.terms_mbps).any()
    if claim.at_once == 1 and is_all_sent:  # metrics need the same
        in_failures = deliver_in_failures(problem, plan, claim.failures)
        return np.vstack([delivered_rates(problem, flow), in_failures])
    rerouting = make_rerouting(problem, plan, claim.rate_mbps)
    return np.array([rerouting.deliver(np.flatnonzero(link_down)) for link_down in down])


def _find_broken(
    problem: Traffic, plan: Routing, flow: VerifiedFlow, claim: _Claim
) -> Iterator[tuple[int, str, float]]:
    """Yield demands that get less than claimed, with the worst failure and the arrivals in it, Mbit/s."""
    if claim.restoration == "split":
        routes = SplitRoutes.of(problem, plan, flow)
        if claim.availability is None and routes.never_overload(problem):
            yield from _follow_each(problem, routes, flow, claim)
            return
    combinations = _list_combinations(claim)
    down = np.array([claim.failures.link_down[list(rows)].any(axis=0) for rows in combinations])
    down = down.reshape(len(combinations), len(problem.links))
    if claim.restoration == "reroute":
        arrives = _deliver_rerouted(problem, plan, flow, claim, down)
    else:
        outcomes = routes.simulate(problem, flow.served_mbps, down)
        arrives = np.array([outcome.delivered_mbps for outcome in outcomes])
    arrives = arrives.reshape(len(combinations), len(problem.demands))
    missing = _least_rates(claim, flow) - arrives
    for row in np.flatnonzero((missing > 0).any(axis=1)).tolist():
        missing[row, problem.disconnected_demands(~down[row])] = 0.0
    if claim.availability is not None:
        probability = np.r_[claim.failures.probability_of_none or 0.0, claim.failures.probability]
        fails = probability @ (missing > 0)
        missing = np.where(exceeds(fails, 1 - claim.availability, terms=1.0), missing, 0.0)
    worst = missing.argmax(axis=0) if len(missing) else np.zeros(len(problem.demands), dtype=np.int64)
    for demand in np.flatnonzero((missing > 0).any(axis=0)).tolist():
        row = int(worst[demand])
        yield demand, _name_failures(claim, combinations[row]), float(arrives[row, demand])


def _least_rates(claim: _Claim, flow: VerifiedFlow) -> Floats:
    """Return the traffic of each demand, (K,) Mbit/s, that must arrive for the claim to hold."""
    return claim.rate_mbps - allowance(claim.rate_mbps, flow.terms_mbps)


def _list_combinations(claim: _Claim) -> list[tuple[int, ...]]:
    """Return all sets of failures that may occur together, none among them."""
    count = len(claim.failures)
    if sum(math.comb(count, size) for size in range(claim.at_once + 1)) > MAX_COMBINATIONS:
        raise PlanRejected(
            f"guarantees: at_once is {claim.at_once}: {count} failures have more than {MAX_COMBINATIONS:,} "
            "combinations, which are not checked"
        )
    return [rows for size in range(claim.at_once + 1) for rows in itertools.combinations(range(count), size)]


def _name_failures(claim: _Claim, rows: tuple[int, ...]) -> str:
    return " and ".join(claim.failures.names[row] for row in rows) or "no failure"


def _follow_each(
    problem: Traffic, routes: SplitRoutes, flow: VerifiedFlow, claim: _Claim
) -> Iterator[tuple[int, str, float]]:
    """Yield broken claims of demands with routes that reserve their load: no demand disturbs another."""
    hits, least_mbps = routes.find_hits(claim.failures), _least_rates(claim, flow)
    order = np.argsort(routes.demand, kind="stable")
    start = np.searchsorted(routes.demand[order], np.arange(len(problem.demands) + 1))
    disconnected: dict[tuple[int, ...], Bools] = {}
    for demand in np.flatnonzero(claim.rate_mbps > 0).tolist():
        here = order[start[demand] : start[demand + 1]]
        minimum = float(least_mbps[demand])
        worst: tuple[str, float] | None = None
        for rows, is_lost in _list_losses(hits[:, here], claim.at_once):
            is_active = find_preferred(routes.preference[here], is_lost)
            arrives = min(float(flow.served_mbps[demand]), float(routes.most_mbps[here][is_active].sum()))
            if arrives >= minimum or (worst is not None and arrives >= worst[1]):
                continue
            if rows not in disconnected:
                down = claim.failures.link_down[list(rows)]
                disconnected[rows] = problem.disconnected_demands(~np.asarray(down.any(axis=0)))
            if not disconnected[rows][demand]:
                worst = _name_failures(claim, rows), arrives
        if worst is not None:
            yield demand, *worst


def _list_losses(hits: Bools, at_once: int) -> Iterator[tuple[tuple[int, ...], Bools]]:
    """Yield the sets of up to `at_once` failures that hit routes (S, R), and the routes that each takes."""
    relevant = np.flatnonzero(hits.any(axis=1)).tolist()
    yield (), np.zeros(hits.shape[1], dtype=bool)
    for size in range(1, at_once + 1):
        for rows in itertools.combinations(relevant, size):
            yield rows, np.asarray(hits[list(rows)].any(axis=0))
