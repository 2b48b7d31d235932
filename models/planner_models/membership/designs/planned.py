"""Majorities with places and timeouts by search, with a proven bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, RankProof
from planner.contract.units import MONTH_S
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible, infeasible, judged, undecided
from planner_models.membership.designs.counts import least_down
from planner_models.membership.designs.decision import conclude, lack_of_hosts
from planner_models.membership.designs.groups import Extras
from planner_models.membership.designs.placement import LeaderSearch, Search
from planner_models.membership.plan.metrics import measure
from planner_models.membership.plan.plan import CHEAPER, MAJORITY_RULE, MembershipPlan, Placement
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import HEARTBEAT

SCOPE = "majorities"
Objective = Annotated[
    Literal["down", "cost"],
    Field(description="down: fewest seconds down, then the least price; cost: price and cost of being down"),
]


def plan(
    problem: Membership,
    *,
    objective: Objective = "down",
    cheaper: Annotated[
        bool, Field(description="whether to search the fewest seconds down of cheaper members too")
    ] = True,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Select sites, leader and timeout of 2f+1 members for the fewest seconds down, then the least price.

    All numbers of members at sites and all timeouts of a grid are considered: those up to 60 s in steps of 5%
    and all multiples of the interval up to 50. Services that differ by their names alone are searched once.
    """
    deadline = Deadline.of(options)
    kinds: dict[Service, list[str]] = {}
    for service in problem.service_list:
        kinds.setdefault(replace(service, name=""), []).append(service.name)
    results: dict[str, Search] = {}
    rows: list[tuple[str, float, float, float]] = []
    reasons = []
    for number, (service, names) in enumerate(kinds.items()):
        remaining = deadline.share_left(1 / (len(kinds) - number))
        search = make_search(problem, service, objective, deadline=remaining)
        result = search.run()
        if result is not None:
            results |= dict.fromkeys(names, result)
            found = _search_cheaper(problem, service, result, deadline=remaining) if cheaper else []
            rows += [(name, *row) for name in names for row in found]
        elif remaining.is_over:
            return Decision(
                plan=None, proof=undecided(f"{names[0]}: time is over before any places are found")
            )
        else:
            reasons += [f"{name}: {explain_infeasible(search)}" for name in names]
    if reasons:
        return Decision(plan=None, proof=infeasible(*reasons))
    searches = {service.name: results[service.name] for service in problem.service_list}
    placements = {
        service.name: make_placement(problem, service, searches[service.name])
        for service in problem.service_list
    }
    order = {name: row for row, name in enumerate(searches)}
    rows.sort(key=lambda row: order[row[0]])
    frame = pd.DataFrame(rows, columns=list(CHEAPER.columns)) if rows else None
    decision = conclude(problem, placements, feasible(), extras=Extras(cheaper=frame), options=options)
    assert decision.plan is not None
    return _prove(problem, decision, searches, objective, options)


def make_search(
    problem: Membership,
    service: Service,
    objective: str,
    *,
    size: int | None = None,
    price_limit: float | None = None,
    deadline: Deadline,
) -> LeaderSearch:
    """Return the search of the places of a service."""
    value: Callable[[Floats, Floats], tuple[Floats, Floats]] = least_down
    if objective == "cost":
        per_s = service.down_cost_per_s

        def value(down_s: Floats, price: Floats) -> tuple[Floats, Floats]:
            seconds = np.minimum(down_s, MONTH_S)
            return np.asarray(price + per_s * seconds), seconds

    return LeaderSearch(
        problem,
        service,
        size=service.size if size is None else size,
        value=value,
        price_limit=price_limit,
        deadline=deadline,
    )


def make_placement(problem: Membership, service: Service, result: Search) -> Placement:
    """Return the placement of a service by a search."""
    return Placement(
        members=result.counts,
        managers={},
        leader=result.leader,
        rule=MAJORITY_RULE,
        quorum=service.quorum(sum(result.counts.values())),
        kind=HEARTBEAT,
        interval_s=problem.watcher(HEARTBEAT).interval_s,
        timeout_s=result.timeout_s,
    )


def _search_cheaper(
    problem: Membership, service: Service, result: Search, *, deadline: Deadline
) -> list[tuple[float, float, float]]:
    """Return numbers of members, prices and fewest seconds down of cheaper members; odd numbers only."""
    rows = []
    fewest = 3 * service.faults + 1 if service.is_byzantine else 1
    sizes = {service.size, *range(fewest, service.size, 2)}
    for size in sorted(sizes) if result.price > 0 else ():
        limit = result.price * (1 - 1e-6)
        search = make_search(problem, service, "down", size=size, price_limit=limit, deadline=deadline)
        cheaper = search.run()
        if cheaper is not None and not cheaper.is_cut:
            rows.append((float(size), cheaper.price, cheaper.down_s))
    return rows


def _prove(
    problem: Membership,
    decision: Decision[MembershipPlan],
    searches: dict[str, Search],
    objective: str,
    options: Options,
) -> Decision[MembershipPlan]:
    """Return the decision with the proof of its searches."""
    plan = decision.plan
    assert plan is not None
    metrics = measure(problem, plan, None)
    bounds = np.array([result.bound for result in searches.values()])
    is_cut = any(result.is_cut for result in searches.values())
    gap = max(options.gap or 0.0, OPTIMAL_GAP)
    if objective == "cost":
        value, bound = metrics["cost"] or 0.0, float(bounds[:, 0].sum())
        proof = judged("min", value, bound, metric="cost", bound_scope=SCOPE, is_cut=is_cut, gap=gap)
        return Decision(plan=plan, proof=proof)
    down, price = metrics["down_s_per_month"] or 0.0, metrics["price"] or 0.0
    first, second = min(float(bounds[:, 0].mean()), down), min(float(bounds[:, 1].sum()), price)
    ranks = (RankProof("down_s_per_month", down, first), RankProof("price", price, second))
    proof = judged(
        "min",
        down,
        first,
        metric="down_s_per_month",
        ranks=ranks,
        bound_scope=SCOPE,
        is_cut=is_cut,
        gap=gap,
    )
    return Decision(plan=plan, proof=proof)


def explain_infeasible(search: LeaderSearch) -> str:
    """Return the reason why a service has no places: hosts, the time to a quorum, or the price."""
    problem, service = search.problem, search.service
    capacity = int(problem.tree.capacity[search.allowed].sum())
    if capacity < search.size:
        return lack_of_hosts(capacity, search.size)
    with_data = int(problem.tree.capacity[search.allowed & ~problem.is_witness].sum())
    if with_data < search.size - search.witnesses:
        return (
            f"the sites have hosts for {with_data} members with data, {search.size - search.witnesses} are "
            f"needed; at most {search.witnesses} may be witnesses"
        )
    times = search.nearest_quorums()
    limit = service.commit_limit_ms
    if limit is not None and not len(search.leaders):
        nearest_ms, leaf = min(times)
        return (
            f"no quorum of {search.quorum} is within {limit:g} ms; the nearest is {nearest_ms:.4g} ms from "
            f"'{problem.site_names[leaf]}'"
        )
    return f"no {search.size} members cost at most {service.price_limit:g} a month"
