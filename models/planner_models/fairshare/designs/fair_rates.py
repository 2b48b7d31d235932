"""The fairest rates of given replicas, and the load that fair shares put on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final, TypeVar

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.fairshare.designs import program
from planner_models.fairshare.plan.fair_shares import fair_share_kops, pool_level
from planner_models.fairshare.plan.max_min import MaxMin, share_max_min
from planner_models.fairshare.plan.metrics import least_share
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.plan.service import Served, split_evenly
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

EQUAL: Final = ROUNDING  # relative difference of shares that is rounding
Rates = TypeVar("Rates", MaxMin, program.Dominant)
Seed = Annotated[int, Field(ge=0, description="seed of the random moves of the placement")]


def fair_load_kops(problem: SharedStore) -> Floats:
    """Return the load of each replica of a partition, (P,): its tenant's fair share, split evenly."""
    fair = fair_share_kops(problem)[problem.tenant]
    load: Floats = problem.share_of_tenant * fair / problem.wanted_replicas
    return load


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
    shares = share_max_min(problem, replicas, due=due)
    if due is not None:
        return shares
    pool = max(pool_level(problem), 1e-300)
    return replace(shares, levels=tuple(level._replace(level=level.level / pool) for level in shares.levels))


def _choose(problem: SharedStore, solve: Callable[[Floats | None], Rates]) -> Rates:
    """Return the rates over weights, or over fair shares where these have a larger least share.

    solve  returns the max-min rates over what tenants are due, (T,), or over weights for None
    """
    fair = fair_share_kops(problem)
    solution = solve(None)
    lowest = least_share(solution.rate, fair)
    if lowest < 1 - EQUAL:
        other = solve(fair)
        if least_share(other.rate, fair) > lowest * (1 + EQUAL):
            return other
    return solution


def rates_of_tenants(problem: SharedStore, replicas: Replicas, kops: Floats) -> Floats:
    """Return the rates of tenants (T,) of those of replicas (K,)."""
    owner = problem.tenant[replicas.partition]
    return add_up(owner, weights=kops, minlength=len(problem.tenants))
