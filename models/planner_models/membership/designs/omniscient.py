"""A bound for all rules: every failure known as it happens, so that any member that is up leads at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.contract.units import MONTH_S
from planner.search.judged import infeasible, undecided
from planner_models.membership.designs.counts import CountSearch, Request
from planner_models.membership.designs.decision import lack_of_hosts
from planner_models.membership.designs.rules import current_counts
from planner_models.membership.plan.plan import MembershipPlan
from planner_models.membership.problem.problem import Membership, Service

SCOPE: Final = "plans with as many members"
"""What the bound covers: plans with no more members than a service asks for, needs for its faults, or has."""


def bound_all(problem: Membership) -> Decision[MembershipPlan]:
    """Return a bound on the seconds down of every rule, and no plan.

    Failures are known as they happen. A service is down while none of its members is up, and while another
    one takes over from a leader at the leaf that fails least. Members are where they are least often all
    down, as many as the service asks for, needs for its faults, or has today. Managers, detection and quorums
    take no time.
    """
    allowed = (problem.tree.capacity > 0) & ~problem.is_lost
    bounds, reasons = [], []
    for service in problem.service_list:
        result = _bound_service(problem, service, allowed)
        if isinstance(result, str):
            reasons.append(f"{service.name}: {result}")
        else:
            bounds.append(result)
    if reasons:
        return Decision(plan=None, proof=infeasible(*reasons))
    bound = float(np.mean(bounds))
    return Decision(plan=None, proof=undecided(bound=bound, metric="down_s_per_month", bound_scope=SCOPE))


def _bound_service(problem: Membership, service: Service, allowed: Bools) -> float | str:
    """Return the bound on the seconds down of a service in a month, or the reason why it has no plan."""
    hosts = int(problem.tree.capacity[allowed].sum())
    current, _, _ = current_counts(problem, service)
    size = min(max(service.size, service.pair, sum(current.values())), hosts)
    if size == 0:
        return lack_of_hosts(hosts, service.size)
    sites = len(problem.sites)
    request = Request(
        size=size,
        quorum=1,
        quorum_near=0,
        allowed=allowed,
        near=np.ones(sites, dtype=bool),
        seconds=np.zeros(sites),
        price=np.zeros(sites),
    )
    choice = CountSearch(problem.tree, request).run()
    assert choice is not None, "there are as many hosts as members"
    leaves = problem.leaves[allowed[problem.leaves]]
    failovers = float(problem.tree.leaf_rate[leaves].min()) * service.failover_s
    return min(choice.quorum_s + failovers, MONTH_S)
