"""A pool of masks from a trace: least specific masks merged into few, then improved by local search.

Each mask costs lookups, each entry an upcall. Merging goes from one mask for each kind of packet to one mask
for all, and keeps the step with the least cost. Local search then drops masks, and changes them by the bits
of one field, while the cost falls; the entries of given masks are a greedy set cover.
"""

from __future__ import annotations

from typing import Annotated, Final
from zlib import crc32

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.flowtables.designs.bound import find_incompatible
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.pool_search import PoolSearch, count_bits
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.problem import FlowTables

BACKEND: Final = "merging and local search"
CANDIDATE_BACKEND: Final = "Lagrangian relaxation and local search"
CANDIDATE_SCOPE: Final = "pools of {:,} candidate masks (list {}) with an entry for each connection"
"""Lists differ where their searches do: bounds of two of them say nothing of each other's pools."""
Prove = Annotated[bool, Field(description="whether a bound on the time of all caches is found")]
Trials = Annotated[int, Field(ge=0, le=100_000, description="changes of masks that local search tries")]
MostCandidates = Annotated[
    int,
    Field(
        ge=0,
        le=20_000,
        description="masks, of which the best pool is searched, with a bound on pools of them; 0: all masks",
    ),
]


def plan_pool(
    problem: FlowTables,
    *,
    trials: Trials = 1_000,
    prove: Prove = True,
    candidates: MostCandidates = 0,
    options: Options = Options(),
    previous: Decision[Cache] | None = None,
) -> Decision[Cache]:
    """Find a pool of few masks for all connections: merge least specific masks, then improve them.

    previous  a decision whose masks are the start where they cost less than merged ones
    """
    deadline = Deadline.of(options)
    headers = group_headers(problem)
    minimal_masks = make_least_masks(problem, by_entropy=True)(headers.words)
    search = PoolSearch(problem, headers)
    start = search.merge(minimal_masks)
    if previous is not None and previous.plan is not None:
        start = min(start, search.take_masks(previous.plan), key=search.cost_of_masks)
    random = np.random.default_rng(options.seed or 0)
    best = search.improve(start, minimal_masks, trials, random, deadline.share(0.4))
    if candidates:
        # compiled only for candidates
        from planner_models.flowtables.designs.candidate_pool import CandidateSearch, list_candidates

        listed = list_candidates(search, best, minimal_masks, candidates)
        search_of_candidates = CandidateSearch(problem, headers, search, listed, best)
        price = search_of_candidates.improve(trials, random, deadline.share(0.6))
        bound = search_of_candidates.bound_us(price, deadline.share(0.9)) if prove else None
        return decide(
            problem,
            search.make_table(search_of_candidates.pool),
            options=options,
            bound=None if bound is None else bound / len(problem.flows),
            scope=CANDIDATE_SCOPE.format(len(listed.masks), f"{crc32(listed.masks.tobytes()):08x}"),
            backend=CANDIDATE_BACKEND,
        )
    table = search.make_table(best)
    if not prove:
        return decide(problem, table, options=options, backend=BACKEND)
    # compiled only for proofs
    from planner_models.flowtables.designs.mask_bound import bound_time

    incompatible = find_incompatible(problem, headers, count_bits(minimal_masks), deadline.share(0.7))
    bound_us = bound_time(problem, headers, incompatible, deadline.share(0.9))
    return decide(problem, table, options=options, bound=bound_us, backend=BACKEND)
