"""The fewest misses of a trace: a set cover of its headers by entries, with a bound for every cache.

An entry is a miss. Candidates are all entries of the least specific masks of the trace, by bits and by their
entropy; the one with the most headers that none yet serves is next. Headers that are pairwise incompatible
need an entry each, whatever the masks.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from planner.contract.design import Decision
from planner.options import Options
from planner_models.flowtables.designs.bound import find_incompatible
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.merged import PoolSearch, count_bits
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.problem import FlowTables

BACKEND: Final = "greedy set cover"
METRIC: Final = "misses"
MOST_TESTS: Final = 20_000_000_000  # of a mask for a header against an entry


def cover_trace(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Serve all connections by few entries, with as many masks as these take.

    In large problems only the masks of most headers are candidates, and one of all bits that rules match.
    """
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    headers = group_headers(problem)
    least = [make_least_masks(problem, by_entropy)(headers.words) for by_entropy in (True, False)]
    masks, count = np.unique(np.vstack(least), axis=0, return_counts=True)
    tests = len(headers.words) * max(len(problem.entries.action), 1)
    kept = np.argsort(-count, kind="stable")[: max(MOST_TESTS // tests, 1)]
    candidates = np.unique(np.vstack([masks[kept], problem.used_mask]), axis=0)
    table = PoolSearch(problem, headers).make_table(np.ascontiguousarray(candidates))
    incompatible = find_incompatible(problem, headers, count_bits(least[0]), until)
    return decide(
        problem, table, options=options, bound=float(len(incompatible)), metric=METRIC, backend=BACKEND
    )
