"""The fairest rates: placement by search, then lexicographic max-min rates, exact for the replicas.

Stores in which requests do not choose replicas: each replica is a partition with a part of the demand.

Placements that are as fair and copy less data: by an integer program, or by returns one by one.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.fairshare.designs import fair_rates
from planner_models.fairshare.designs.decision import Previous, decide, start_from
from planner_models.fairshare.designs.fair_rates import (
    Seed,
    fair_load_kops,
    keep_reserved,
    rates_of_tenants,
    solve_given,
)
from planner_models.fairshare.designs.moves import move_least
from planner_models.fairshare.designs.placement import complete, place_by_load
from planner_models.fairshare.designs.placement_rules import (
    find_rules,
    keep_all,
    list_replicas,
    may_be,
    put,
    start_state,
)
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.max_min import share_max_min
from planner_models.fairshare.plan.metrics import count_moves, keeps_reserved, least_share
from planner_models.fairshare.plan.plan import Replicas, Sharing, sum_by_node
from planner_models.fairshare.plan.service import Served, split_evenly
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

BACKEND: Final = "maximum flows"
GIVEN: Final = "these replicas"
GIVEN_EVEN: Final = "these replicas with even splits"
SLACK: Final = 0.02  # utilization above the least possible, for a placement near the present one


Placement = Annotated[
    Literal["auto", "keep", "search", "exact"],
    Field(
        description="keep: replicas where they are placed, missing ones added; search: placed anew; exact: "
        "by an integer program; auto: search, the present placement if it is fairer, exact where small"
    ),
]

Splits = Annotated[
    Literal["best", "even"],
    Field(
        description="best: requests choose replicas for the fairest rates; even: those of a partition are "
        "split evenly over its replicas, so that the two show what choosing is worth"
    ),
]
MOST_EXACT: Final = 150  # partitions times nodes up to which integer programs are solved
MOST_RETURNS: Final = 100  # placements that are tried to move less data
MOST_RETURNED: Final = 20_000  # replicas up to which these are tried


def share(
    problem: SharedStore,
    *,
    placement: Placement = "auto",
    splits: Splits = "best",
    seed: Seed = 0,
    previous: Previous = None,
    options: Options = Options(),
) -> Decision[Sharing]:
    """Place replicas and share nodes so that the least share of any tenant is the largest.

    Rates and splits are exact for the replicas (`solve_given`). Reserved rates come first. The bound is on
    the least share of any plan: of one pool, and of the nodes that a tenant and a partition can use.

    returns  Decision with Sharing; objective and bound are of metric "min_share"
    raises   InputError for an exact placement with even splits
    """
    problem = start_from(problem, previous)
    load = fair_load_kops(problem)
    if splits == "even":
        return _share_evenly(problem, placement, seed, options)
    if placement == "exact":
        return _solve_exactly(problem, options)
    if placement == "keep":
        replicas = complete(problem, load)
        return _decide(problem, replicas, solve_given(problem, replicas, options), options, scope=GIVEN)
    fair, bound = fair_share_kops(problem), bound_share(problem)
    solved = []
    if placement == "auto" and problem.placed is not None and len(problem.placed):
        replicas = complete(problem, load)
        solved.append((replicas, solve_given(problem, replicas, options)))
        rate = rates_of_tenants(problem, replicas, solved[0][1].kops)
        if least_share(rate, fair) >= bound * (1 - 1e-6) and keeps_reserved(problem, rate):
            return _decide(problem, *solved[0], options, bound=bound)  # nothing needs to move
    candidates = [place_by_load(problem, load, seed=seed)]
    if solved:  # a placement near the present one may be as fair
        candidates.append(move_least(problem, load, slack=SLACK, seed=seed).replicas)
    solved += [(candidate, solve_given(problem, candidate, options)) for candidate in candidates]
    replicas, served = max(solved, key=lambda pair: rank(problem, pair[0], pair[1], fair))
    rate = rates_of_tenants(problem, replicas, served.kops)
    is_bound = least_share(rate, fair) >= bound * (1 - 1e-6) and keeps_reserved(problem, rate)
    cells = len(problem.partitions) * len(problem.nodes)
    if placement == "auto" and cells <= MOST_EXACT and not is_bound:
        return _solve_exactly(problem, options)
    if solved[0][0] is not replicas and len(solved) > 1:
        replicas, served = move_less(problem, replicas, served, options)
    return _decide(problem, replicas, served, options, bound=bound)


def _share_evenly(
    problem: SharedStore, placement: Placement, seed: int, options: Options
) -> Decision[Sharing]:
    """Return the fairest rates of replicas with even splits, exact for these; see `share`."""
    if placement == "exact":
        raise InputError(
            "placement: 'exact' is for the best splits; for even ones, take keep, search or auto"
        )
    load = fair_load_kops(problem)
    is_placed = problem.placed is not None and len(problem.placed) > 0
    keeps = placement == "keep" or (placement == "auto" and is_placed)
    replicas = complete(problem, load) if keeps else place_by_load(problem, load, seed=seed)
    divided, per_replica = divide_partitions(problem, replicas)
    served = Served(
        solve_given(divided, per_replica, options).kops, split_evenly(replicas, len(problem.partitions))
    )
    bound = bound_share_of(divided, per_replica, options)
    weight = sum_by_node(problem, replicas, served.kops)
    return decide(
        problem, replicas, served, weight, options=options, bound=bound, scope=GIVEN_EVEN, backend=BACKEND
    )


def bound_share(problem: SharedStore) -> float:
    """Return a bound on the least share of any placement: of one pool, and of each tenant's reach.

    A partition is served by at most as many nodes as it has replicas, a tenant by as many as it may be on,
    each with the largest capacity of a resource.
    """
    largest = np.sort(problem.capacity, axis=0)[::-1]
    together = np.vstack([np.zeros(largest.shape[1]), np.cumsum(largest, axis=0)])  # of so many nodes

    def reach(nodes: Ints, per_op: Floats) -> Floats:
        """Return the requests that so many nodes serve at most, with uses (n, R) of a request, (n,)."""
        capacity = together[np.minimum(nodes, len(together) - 1)]
        served = np.divide(capacity, per_op, out=np.full_like(capacity, np.inf), where=per_op > 0)
        return np.asarray(served.min(axis=1))

    demand = problem.demand_of_tenant
    of_partition = reach(problem.wanted_replicas, problem.per_op[problem.tenant])
    by_nodes = reach(problem.most_nodes, problem.per_op)
    slowest = np.full(len(demand), np.inf)
    asked = problem.share_of_tenant > 0
    np.minimum.at(slowest, problem.tenant[asked], of_partition[asked] / problem.share_of_tenant[asked])
    served = np.minimum(problem.demand_kops, of_partition)
    total = add_up(problem.tenant, weights=served, minlength=len(demand))
    upper = np.minimum(np.where(problem.is_fixed, slowest, total), by_nodes)
    fair = fair_share_kops(problem)
    return min(1.0, float((upper[fair > 0] / fair[fair > 0]).min(initial=1.0)))


def bound_share_of(problem: SharedStore, replicas: Replicas, options: Options = Options()) -> float:
    """Return the largest least share of any rates for given replicas."""
    fair = fair_share_kops(problem)
    reserved = keep_reserved(problem, replicas, options)
    if reserved is not None:
        if problem.capacity.shape[1] > 1:
            rate = fair_rates.share_dominant(
                problem, replicas, options, due=fair, reserved_kops=reserved
            ).rate
        else:
            rate = share_max_min(problem, replicas, due=fair, reserved_kops=reserved).rate
        return least_share(rate, fair)
    if problem.capacity.shape[1] > 1:
        levels = [
            level for level, _ in fair_rates.share_dominant(problem, replicas, options, due=fair).levels
        ]
    else:
        levels = [level.level for level in share_max_min(problem, replicas, due=fair, most_levels=1).levels]
    return min(levels[0], 1.0) if levels else 1.0


def _solve_exactly(problem: SharedStore, options: Options) -> Decision[Sharing]:
    """Return the decision of the integer program, with the exact rates of its replicas."""
    solution = fair_rates.place_exactly(problem, options)
    replicas = (
        place_by_load(problem, fair_load_kops(problem)) if solution.replicas is None else solution.replicas
    )
    served = solve_given(problem, replicas, options)
    bound = bound_share(problem) if solution.bound is None else min(solution.bound, bound_share(problem))
    replicas, served = move_less(problem, replicas, served, options)
    return _decide(problem, replicas, served, options, bound=bound, backend=solution.backend)


def _decide(
    problem: SharedStore,
    replicas: Replicas,
    served: Served,
    options: Options,
    *,
    bound: float | None = None,
    scope: str | None = None,
    backend: str = BACKEND,
) -> Decision[Sharing]:
    if scope is not None:
        bound = bound_share_of(problem, replicas, options)
    weight = sum_by_node(problem, replicas, served.kops)
    return decide(
        problem, replicas, served, weight, options=options, bound=bound, scope=scope, backend=backend
    )


def divide_partitions(problem: SharedStore, replicas: Replicas) -> tuple[SharedStore, Replicas]:
    """Return a store with partition k for replica k, an even part of the requests each, and its replicas.

    Its fair rates are those of the given replicas where requests are split evenly over them. Partitions
    without a replica follow, without one.
    """
    count = np.bincount(replicas.partition, minlength=len(problem.partitions))
    rows = np.concatenate([replicas.partition, np.flatnonzero(count == 0)])
    split = np.ones(len(rows))
    split[: len(replicas.partition)] = split_evenly(replicas, len(count))
    columns = problem.partitions.iloc[rows].reset_index(drop=True)
    divided = SharedStore(
        nodes=problem.nodes,
        tenants=problem.tenants.assign(replicas=1.0),
        partitions=columns.assign(
            partition=pd.Series(range(len(rows))).astype(str), demand_kops=columns["demand_kops"] * split
        ),
        groups=problem.groups,
        resources=problem.resources,
        uses=problem.uses,
    )
    return divided, Replicas(np.arange(len(replicas.partition)), replicas.node)


def rank(problem: SharedStore, replicas: Replicas, served: Served, fair: Floats) -> tuple[float, ...]:
    """Return a key of which more is better.

    First reserved rates (`keep_reserved`), then the least share, then less data that is copied, then
    requests.
    """
    rate = rates_of_tenants(problem, replicas, served.kops)
    reserved, smallest = least_share(rate, problem.reserved_kops), least_share(rate, fair)
    moves = count_moves(problem, replicas)
    return (
        float(f"{reserved:.8g}"),
        float(f"{smallest:.8g}"),
        -moves[1] if moves else 0.0,
        float(served.kops.sum()),
    )


def move_less(
    problem: SharedStore, replicas: Replicas, served: Served, options: Options
) -> tuple[Replicas, Served]:
    """Return a placement with the same least share that copies less data, where one is found.

    A small problem is solved by an integer program. In a large one, replicas go back to nodes where they are
    placed, one after the other, those with most data first, as long as the least share stays.
    """
    moves = count_moves(problem, replicas)
    if moves is None or moves[1] <= 0:
        return replicas, served
    fair = fair_share_kops(problem)
    best = rank(problem, replicas, served, fair)
    if len(problem.partitions) * len(problem.nodes) <= MOST_EXACT:
        placement = fair_rates.place_with_least_moves(
            problem, best[1], options, reserved_share=best[0]
        ).replicas
        if placement is None:
            return replicas, served
        other = solve_given(problem, placement, options)
        is_better = rank(problem, placement, other, fair) >= best
        return (placement, other) if is_better else (replicas, served)
    if len(replicas.node) > MOST_RETURNED:
        return replicas, served
    for partition, home in list_homes(problem, replicas)[:MOST_RETURNS]:
        changed = return_home(problem, replicas, partition, home)
        if changed is None:
            continue
        other = solve_given(problem, changed, options)
        reached = rank(problem, changed, other, fair)
        if reached > best:
            replicas, served, best = changed, other, reached
    return replicas, served


def list_homes(problem: SharedStore, replicas: Replicas) -> list[tuple[int, int]]:
    """Return the partitions and nodes where replicas are placed that have none now, most data first."""
    partition, node = problem.placed_replicas
    nodes = len(problem.nodes)
    missing = ~np.isin(partition * nodes + node, replicas.partition * nodes + replicas.node)
    order = np.argsort(-problem.size_gb[partition[missing]], kind="stable")
    return list(zip(partition[missing][order].tolist(), node[missing][order].tolist(), strict=True))


def return_home(problem: SharedStore, replicas: Replicas, partition: int, home: int) -> Replicas | None:
    """Return the replicas with one of a partition back on a node; None where the rules do not allow it."""
    rules, load = find_rules(problem), np.zeros(len(problem.partitions))
    state = start_state(problem, rules, load)
    keep_all(rules, state, load, *replicas, False)
    placed, node = problem.placed_replicas
    homes = set(node[placed == partition].tolist())
    for replica in range(state.node.shape[1]):
        present = int(state.node[partition, replica])
        if present < 0 or present in homes or state.is_pinned[partition, replica]:
            continue
        if may_be(rules, state, partition, replica, home, 0.0):
            put(rules, state, load, partition, replica, home)
            return list_replicas(state)
    return None
