"""Metrics of system `fairshare`: the tenants' rates over their fair shares.

Measures of the tenants' remaining rates as load or nodes change, before anything is decided again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.metrics import Headline, less, more
from planner.formatting import counted, few
from planner.search.tolerances import FEASIBILITY, NEGLIGIBLE
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops, pool_level
from planner_models.fairshare.plan.max_min import Network, serve_reserved, share_max_min
from planner_models.fairshare.plan.plan import Content, Replicas, Sharing, place_as, read_plan
from planner_models.fairshare.plan.service import divide_limits, serve
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

SATISFIED: Final = (
    FEASIBILITY  # relative to its demand: a tenant that is served less by more than this wants more
)
MOST_SHORT: Final = 0.999
MAX_NAMED: Final = 6  # tenants in a sentence
NOTHING: Final = NEGLIGIBLE  # of its demand: a tenant that gets no more gets nothing
PISCES: Final = "Shue, Freedman, Shaikh 2013 (Pisces)"


METRICS: Final = (
    more(
        "min_share",
        "",
        "least rate of a tenant over its fair share: what it would get if the store were one pool",
    ),
    more(
        "least_level_kops",
        "kops",
        "min_share of what a unit of weight is due: the level up to which every tenant gets what it wants",
    ),
    more("throughput_kops", "kops", "requests that are served, of all tenants"),
    less("unmet_kops", "kops", "requests that are not served, of all tenants"),
    more(
        "min_max_ratio",
        "",
        "least over largest rate of a tenant, each over its fair share",
        f"{PISCES}, 4",
        title="min over max share",
    ),
    more(
        "isolation",
        "",
        "least part that a tenant keeps of its rate, or of its fair share if that is less, when every second "
        "tenant doubles its demand and weights stay",
        f"{PISCES}, Figure 3, bottom row",
    ),
    more(
        "n_minus_1_share",
        "",
        "min_share after the worst loss of a node, with the fairest rates of the replicas that are left; "
        "none for several resources and for over a million replicas times nodes",
        title="min share if a node fails",
    ),
    more("jain", "", "Jain's index of the rates of tenants, each over its fair share", title="Jain's index"),
    less("max_utilization", "", "load over capacity of the busiest node"),
    more(
        "reserved_share",
        "",
        "least rate of a tenant over its reserved rate, at most 1; none where no rate is reserved",
        "Gulati, Merchant, Varman 2010 (mClock)",
    ),
    less("below_reserved", "tenants", "tenants that get less than the reserved rate that they demand"),
    less("tenants_below", "tenants", "tenants that get less than 99.9% of their fair share"),
    less("starved_tenants", "tenants", "tenants that want something and get nothing"),
    less("unplaced_replicas", "replicas", "replicas without a place"),
    less("moved_gb", "GB", "data that is copied to a node where it is not yet; none without table placed"),
    less("moved_partitions", "replicas", "replicas on a node where they are not yet"),
    less("max_memory_share", "", "used over all memory of the fullest node"),
)
MOST_WORK: Final = 1_000_000  # nodes times replicas up to which the loss of each node is computed


def say_without_share(problem: SharedStore) -> str:
    """Return the sentences on tenants that are due nothing, with the reason; "" where there is none."""
    lacking = (problem.demand_of_tenant > 0) & (fair_share_kops(problem) <= 0)
    can_be_served = entitlement(problem) > 0
    sentences = []
    for rows, reason in (
        (np.flatnonzero(lacking & ~can_be_served), "as no working node has capacity"),
        (np.flatnonzero(lacking & can_be_served), "as reserved rates of others take all"),
    ):
        if len(rows):
            names = few([str(name) for name in problem.tenant_names[rows]], MAX_NAMED)
            sentences.append(f"{counted(len(rows), 'tenants', 'have')} a fair share of 0, {reason}: {names}.")
    return " ".join(sentences)


HEADLINE: Final = Headline(
    metric="min_share",
    verb="gives every tenant at least {} of its fair share",
    losses={
        "starved_tenants": "gives nothing to",
        "unplaced_replicas": "leaves {} without a place",
    },
    worst=("starved_tenants",),
    unservable=say_without_share,
    cost="least_level_kops",
    table=(
        "min_share",
        "throughput_kops",
        "isolation",
        "n_minus_1_share",
        "min_max_ratio",
        "max_utilization",
        "moved_gb",
        "unplaced_replicas",
    ),
)
LIMITS: Final = {
    "nodes": "partitions with two replicas in one domain",
    "failed": "replicas on failed nodes",
    "replicas": "partitions with too many replicas",
    "placed": "partitions with too few replicas",
    "memory": "nodes with too little memory",
    "most_nodes": "tenants on too many nodes",
    "pinned": "partitions that are not where they are pinned",
    "forbidden": "partitions on forbidden nodes",
    "demand": "partitions that are served more than their demand",
    "limit": "tenants that are served more than their limit",
    "reserved": "tenants below their reserved rate",
    "mix": "partitions that are not served in proportion",
    "rate": "overloaded nodes",
    "shares": "rates that are not what replicas serve",
}


def find_unsatisfied(problem: SharedStore, rate_kops: Floats) -> Bools:
    """Return whether each tenant wants more than it gets, (T,)."""
    demand = problem.demand_of_tenant
    return np.asarray(rate_kops < demand * (1 - SATISFIED))


def is_starved(problem: SharedStore, rate_kops: Floats) -> Bools:
    """Return whether each tenant wants something and gets nothing but rounding, (T,).

    rate_kops  (T,)
    """
    demand = problem.demand_of_tenant
    return np.asarray((demand > 0) & (rate_kops <= NOTHING * demand))


def least_share(rate_kops: Floats, fair_kops: Floats) -> float:
    """Return the least rate over the fair share of all tenants with one, at most 1.

    rate_kops, fair_kops  (T,)
    """
    due = fair_kops > 0
    return min(float((rate_kops[due] / fair_kops[due]).min(initial=1.0)), 1.0)


def find_below_reserved(problem: SharedStore, rate_kops: Floats) -> Bools:
    """Return whether each tenant gets less than the reserved rate that it demands, (T,).

    rate_kops  (T,)
    """
    return np.asarray(rate_kops < problem.reserved_kops * (1 - SATISFIED))


def keeps_reserved(problem: SharedStore, rate_kops: Floats) -> bool:
    """Return whether every tenant gets its reserved rate; see `find_below_reserved`."""
    return not bool(find_below_reserved(problem, rate_kops).any())


def count_moves(problem: SharedStore, replicas: Replicas) -> tuple[int, float] | None:
    """Return the replicas on nodes where they are not placed yet, and their GB; None without table placed."""
    if problem.placed is None:
        return None
    partition, node = problem.placed_replicas
    nodes = len(problem.nodes)
    keys = np.append(partition * nodes + node, -1)  # ascending, as the placed replicas are
    key = replicas.partition * nodes + replicas.node
    new = keys[np.searchsorted(keys[:-1], key)] != key
    return int(new.sum()), float(problem.size_gb[replicas.partition[new]].sum())


def measure(problem: SharedStore, plan: Sharing, previous: Sharing | None) -> dict[str, float | None]:
    """Return a value for every metric; moves are from the plan before, else from table placed."""
    content = read_plan(problem, plan)
    partition, node = content.replicas
    served = add_up(problem.tenant[partition], weights=content.kops, minlength=len(problem.tenants))
    fair = fair_share_kops(problem)
    share = served[fair > 0] / fair[fair > 0]
    use = np.zeros_like(problem.capacity)
    for r in range(use.shape[1]):
        use[:, r] = add_up(
            node, weights=content.kops * problem.per_op[problem.tenant[partition], r], minlength=len(use)
        )
    full = np.divide(use, problem.capacity, out=np.zeros_like(use), where=problem.capacity > 0)
    memory = add_up(node, weights=problem.size_gb[partition], minlength=len(problem.nodes))
    largest = float(share.max(initial=0.0))
    squares = float((share**2).sum())
    count = np.bincount(partition, minlength=len(problem.partitions))
    moves = count_moves(problem if previous is None else place_as(problem, previous), content.replicas)
    demand, total = float(problem.demand_of_tenant.sum()), float(served.sum())
    is_even = not len(share) or largest <= 0
    lowest = least_share(served, fair)
    return {
        "min_share": lowest,
        "least_level_kops": lowest
        * float((pool_level(problem) * entitlement(problem) / problem.weight).max()),
        "throughput_kops": total,
        "unmet_kops": max(demand - total, 0.0),
        "min_max_ratio": 1.0 if is_even else float(share.min()) / largest,
        "isolation": find_isolation(problem, plan, content),
        "n_minus_1_share": least_share_after_loss(problem, content.replicas),
        "jain": 1.0 if is_even else float(share.sum()) ** 2 / (len(share) * squares),
        "max_utilization": float(full.max(initial=0.0)),
        "reserved_share": least_share(served, problem.reserved_kops) if problem.has_reserved else None,
        "below_reserved": float(find_below_reserved(problem, served).sum()),
        "tenants_below": float((share < MOST_SHORT).sum()),
        "starved_tenants": float(is_starved(problem, served).sum()),
        "unplaced_replicas": float(np.maximum(problem.wanted_replicas - count, 0).sum()),
        "moved_gb": moves[1] if moves else None,
        "moved_partitions": float(moves[0]) if moves else None,
        "max_memory_share": float(
            np.divide(memory, problem.memory_gb, out=np.zeros_like(memory), where=problem.memory_gb > 0).max()
        ),
    }


def find_isolation(problem: SharedStore, plan: Sharing, content: Content) -> float:
    """Return the least part of its rate that a tenant keeps when every second tenant doubles its demand.

    Placement and local weights stay. The demand of odd rows of `tenants` doubles, then that of even ones;
    each time the other tenants count. A tenant that had more than its fair share of the larger demand keeps
    all if it still has that share.

    Source: Shue, Freedman, Shaikh 2013 (Pisces), Figure 3, bottom row.
    """
    owner = problem.tenant[content.replicas.partition]
    tenants = len(problem.tenants)
    before = add_up(owner, content.kops, tenants)
    limits = divide_limits(problem, content.replicas, content.weight)
    retained = 1.0
    for parity in range(2):
        doubles = np.arange(tenants) % 2 == parity
        demand = problem.requested_kops * np.where(doubles, 2.0, 1.0)
        served = serve(
            problem,
            content.replicas,
            content.split,
            content.weight,
            queueing=plan.queueing,
            replica_choice=plan.replica_choice,
            most_kops=limits,
            demand_kops=problem.demand_kops * np.where(doubles, 2.0, 1.0)[problem.tenant],
        )
        after = add_up(owner, served.kops, tenants)
        due = np.minimum(before, fair_share_kops(problem, demand_kops=demand))
        counts = ~doubles & (due > 0)
        retained = min(retained, float((after[counts] / due[counts]).min(initial=1.0)))
    return retained


def least_share_after_loss(problem: SharedStore, replicas: Replicas) -> float | None:
    """Return the least share that the replicas allow at best after the worst loss of one node.

    Rates are the fairest ones for the replicas that are left, and fair shares are those of the nodes that are
    left. None for stores with several resources, and where nodes times replicas are above `MOST_WORK`.
    """
    working = np.flatnonzero(problem.rate_kops > 0)
    if problem.capacity.shape[1] > 1:
        return None
    if _is_lost_with_a_node(problem, replicas):
        return 0.0
    if len(working) * len(replicas.partition) > MOST_WORK:
        return None
    lowest, network = 1.0, Network(problem, replicas)
    for n in working.tolist():
        rate = problem.rate_kops.copy()
        rate[n] = 0.0
        fair = fair_share_kops(problem, capacity=np.array([rate.sum()]))
        if fair.sum() <= 0:
            return 0.0
        if problem.has_reserved:
            reserved = serve_reserved(problem, replicas, rate_kops=rate, network=network)
            rates = share_max_min(
                problem, replicas, due=fair, rate_kops=rate, network=network, reserved_kops=reserved
            ).rate
            lowest = min(lowest, least_share(rates, fair))
            continue
        shares = share_max_min(problem, replicas, due=fair, most_levels=1, rate_kops=rate, network=network)
        lowest = min([lowest, *(level.level for level in shares.levels)])
    return lowest


def _is_lost_with_a_node(problem: SharedStore, replicas: Replicas) -> bool:
    """Return whether some node has all replicas of a partition that stops its tenant of fixed mix."""
    works = problem.rate_kops[replicas.node] > 0
    count = np.bincount(replicas.partition[works], minlength=len(problem.partitions))
    stops = problem.is_fixed[problem.tenant] & (problem.demand_kops > 0)
    return bool((count[stops] <= 1).any())
