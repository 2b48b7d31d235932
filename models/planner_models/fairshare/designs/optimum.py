"""The fairest rates: placement by search, then lexicographic max-min rates, exact for the replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final, Literal, TypeVar

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.fairshare.designs import program
from planner_models.fairshare.designs.decision import Previous, decide, start_from
from planner_models.fairshare.designs.even_splits import divide_partitions
from planner_models.fairshare.designs.placement import complete, place_by_load
from planner_models.fairshare.plan.fair_shares import fair_share_kops, pool_level
from planner_models.fairshare.plan.max_min import MaxMin, share_max_min
from planner_models.fairshare.plan.metrics import least_share
from planner_models.fairshare.plan.plan import Replicas, Sharing, sum_by_node
from planner_models.fairshare.plan.service import Served, split_evenly
from planner_models.fairshare.problem.problem import SharedStore, add_up

BACKEND: Final = "maximum flows"
GIVEN: Final = "these replicas"
GIVEN_EVEN: Final = "these replicas with even splits"
EQUAL: Final = 1e-9  # relative difference of shares that is rounding
MOST_EXACT: Final = 150  # places of partitions at nodes up to which "auto" also solves the integer program

Rates = TypeVar("Rates", MaxMin, program.Dominant)

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

Seed = Annotated[int, Field(ge=0, description="seed of the random moves of the placement")]


def fair_load_kops(problem: SharedStore) -> Floats:
    """Return the load of each replica of a partition, (P,): its tenant's fair share, split evenly."""
    fair = fair_share_kops(problem)[problem.tenant]
    load: Floats = problem.share_of_tenant * fair / problem.wanted_replicas
    return load


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

    Rates and splits are exact for the replicas (`solve_given`). The bound is on the least share of any plan:
    of one pool, and of the nodes that a tenant and a partition can use.

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
        if least_share(_rates(problem, replicas, solved[0][1].kops), fair) >= bound * (1 - 1e-6):
            return _decide(problem, *solved[0], options, bound=bound)  # nothing needs to move
    replicas = place_by_load(problem, load, seed=seed)
    solved.append((replicas, solve_given(problem, replicas, options)))
    values = [
        (least_share(_rates(problem, one, served.kops), fair), served.kops.sum()) for one, served in solved
    ]
    replicas, served = solved[max(range(len(values)), key=values.__getitem__)]
    places = len(problem.partitions) * len(problem.nodes)
    if placement == "auto" and places <= MOST_EXACT and max(values)[0] < bound * (1 - 1e-6):
        return _solve_exactly(problem, options)
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
    divided, own = divide_partitions(problem, replicas)
    served = Served(solve_given(divided, own, options).kops, split_evenly(replicas, len(problem.partitions)))
    bound = bound_share_of(divided, own, options)
    weight = sum_by_node(problem, replicas, served.kops)
    return decide(
        problem, replicas, served, weight, options=options, bound=bound, scope=GIVEN_EVEN, backend=BACKEND
    )


def solve_given(problem: SharedStore, replicas: Replicas, options: Options = Options()) -> Served:
    """Return the fairest rates of given replicas, with the split of requests over them.

    These are the lexicographic max-min rates over weights. Tenants that want little are served first there,
    which may cost others some of their fair share; where it does, the max-min rates over fair shares.
    """
    if problem.capacity.shape[1] > 1:
        kops = _choose(problem, lambda due: program.share_dominant(problem, replicas, options, due=due)).kops
    else:
        kops = share_fairly(problem, replicas).kops
    total = add_up(replicas.partition, weights=kops, minlength=len(problem.partitions))
    of = total[replicas.partition]
    split = np.divide(kops, of, out=split_evenly(replicas, len(problem.partitions)), where=of > 0)
    return Served(kops, split)


def share_fairly(problem: SharedStore, replicas: Replicas) -> MaxMin:
    """Return the rates of `solve_given` where requests are the only resource; levels are over fair shares."""
    return _choose(problem, lambda due: _share_max_min(problem, replicas, due))


def _share_max_min(problem: SharedStore, replicas: Replicas, due: Floats | None) -> MaxMin:
    """Return the max-min rates over fair shares, or over weights: levels are then over those of one pool."""
    found = share_max_min(problem, replicas, due=due)
    if due is not None:
        return found
    pool = max(pool_level(problem), 1e-300)
    return replace(found, levels=tuple(one._replace(level=one.level / pool) for one in found.levels))


def _choose(problem: SharedStore, solve: Callable[[Floats | None], Rates]) -> Rates:
    """Return the rates over weights, or over fair shares where these have a larger least share.

    solve  returns the max-min rates over what tenants are due, (T,), or over weights for None
    """
    fair = fair_share_kops(problem)
    found = solve(None)
    least = least_share(found.rate, fair)
    if least < 1 - EQUAL:
        other = solve(fair)
        if least_share(other.rate, fair) > least * (1 + EQUAL):
            return other
    return found


def bound_share(problem: SharedStore) -> float:
    """Return a bound on the least share of any placement: of one pool, and of what a tenant can reach.

    A partition is served by at most as many nodes as it has replicas, a tenant by as many as it may be on.
    """
    fastest = np.concatenate([[0.0], np.cumsum(np.sort(problem.rate_kops)[::-1])])
    reach = fastest[np.minimum(problem.wanted_replicas, len(fastest) - 1)]
    demand = problem.demand_of_tenant
    by_nodes = fastest[np.minimum(problem.most_nodes, len(fastest) - 1)]
    slowest = np.full(len(demand), np.inf)
    asked = problem.share_of_tenant > 0
    np.minimum.at(slowest, problem.tenant[asked], (reach[asked] / problem.share_of_tenant[asked]))
    served = add_up(problem.tenant, weights=np.minimum(problem.demand_kops, reach), minlength=len(demand))
    most = np.minimum(np.where(problem.is_fixed, slowest, served), by_nodes)
    fair = fair_share_kops(problem)
    return min(1.0, float((most[fair > 0] / fair[fair > 0]).min(initial=1.0)))


def bound_share_of(problem: SharedStore, replicas: Replicas, options: Options = Options()) -> float:
    """Return the largest least share of any rates for given replicas."""
    fair = fair_share_kops(problem)
    if problem.capacity.shape[1] > 1:
        levels = [level for level, _ in program.share_dominant(problem, replicas, options, due=fair).levels]
    else:
        levels = [one.level for one in share_max_min(problem, replicas, due=fair, most_levels=1).levels]
    return min(levels[0], 1.0) if levels else 1.0


def _rates(problem: SharedStore, replicas: Replicas, kops: Floats) -> Floats:
    """Return the rates of tenants (T,) of those of replicas (K,)."""
    owner = problem.tenant[replicas.partition]
    return add_up(owner, weights=kops, minlength=len(problem.tenants))


def _solve_exactly(problem: SharedStore, options: Options) -> Decision[Sharing]:
    """Return the decision of the integer program, with the exact rates of its replicas."""
    found = program.place_exactly(problem, options)
    replicas = place_by_load(problem, fair_load_kops(problem)) if found.replicas is None else found.replicas
    served = solve_given(problem, replicas, options)
    bound = bound_share(problem) if found.bound is None else min(found.bound, bound_share(problem))
    return _decide(problem, replicas, served, options, bound=bound, backend=found.backend)


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
