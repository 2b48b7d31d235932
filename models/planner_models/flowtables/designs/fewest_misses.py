"""The fewest misses of a trace: a cover of its headers by entries, with a bound for every cache.

An entry is a miss. Entries and the bound come from column generation (`designs/packing.py`); where there are
many headers, entries come from a greedy cover, and the bound from some of the headers. Candidates of the
greedy cover are all entries of the least specific masks of the trace, by bits and by their entropy; the one
with the most headers that none yet serves is next. Headers that are pairwise incompatible need an entry each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.flowtables.designs.bound import find_incompatible
from planner_models.flowtables.designs.cover import Headers, group_headers
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.pool_search import PoolSearch, count_bits
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.lookup import Table, insert_all, make_table
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

BACKEND: Final = "greedy set cover"
COLUMNS: Final = "column generation"
METRIC: Final = "misses"
MOST_TESTS: Final = 20_000_000_000  # of a mask for a header against an entry
LEAST_CANDIDATES: Final = 200  # masks of the greedy cover at a time limit, however short it is
MOST_PACKED: Final = 100_000_000  # pairs of headers whose entries are packed
MOST_ROWS: Final = 20_000  # entries of rules where entries are packed

Rounds = Annotated[
    int, Field(ge=0, le=100, description="programs over more and more entries; 0: a greedy cover alone")
]


def cover_trace(problem: FlowTables, *, rounds: Rounds = 0, options: Options = Options()) -> Decision[Cache]:
    """Serve all connections by few entries, with as many masks as these take."""
    deadline = Deadline.of(options).share(0.5)
    headers = group_headers(problem)
    minimal_masks = [make_least_masks(problem, by_entropy)(headers.words) for by_entropy in (True, False)]
    table, is_cut = _cover_greedily(problem, headers, np.vstack(minimal_masks), deadline)
    bound = len(find_incompatible(problem, headers, count_bits(minimal_masks[0]), deadline))
    backend = BACKEND
    if rounds and 0 < len(problem.entries.action) <= MOST_ROWS and len(headers.words) > bound:
        # compiled only where entries are packed
        from planner_models.flowtables.designs.packing import pack

        some = min(int(np.sqrt(MOST_PACKED)), len(headers.words))
        rows = np.linspace(0, len(headers.words) - 1, some).astype(np.int64)
        words = np.ascontiguousarray(headers.words[rows])
        cubes = pack(problem, words, rounds, deadline)
        bound = max(bound, int(np.ceil(cubes.bound - 1e-6)))
        if some == len(headers.words) and len(cubes.header) < table.counts[0]:
            table, backend = _make_table(words[cubes.header], cubes.mask), COLUMNS
    decision = decide(problem, table, options=options, bound=float(bound), metric=METRIC, backend=backend)
    return replace(decision, proof=replace(decision.proof, is_cut=True)) if is_cut else decision


def _cover_greedily(
    problem: FlowTables, headers: Headers, minimal: Words, deadline: Deadline
) -> tuple[Table, bool]:
    """Return entries of the masks of most headers, and of one of all bits that rules match.

    In large problems fewer masks are candidates. So are they at a time limit, but a few in any case; the
    second value is whether that is so.
    """
    masks, count = np.unique(minimal, axis=0, return_counts=True)
    tests = len(headers.words) * max(len(problem.entries.action), 1)
    rows = np.argsort(-count, kind="stable")[: max(MOST_TESTS // tests, 1)]
    search, tried = PoolSearch(problem, headers), len(rows)
    if not deadline.is_never:
        tried = 0
        while tried < len(rows) and (tried < LEAST_CANDIDATES or not deadline.is_over):
            search.find_members(masks[rows[tried]])  # which the search keeps
            tried += 1
    candidates = np.unique(np.vstack([masks[rows[:tried]], problem.used_mask]), axis=0)
    return search.make_table(np.ascontiguousarray(candidates)), tried < len(rows)


def _make_table(words: Words, mask: Words) -> Table:
    """Return the entries of headers, each with a mask (n, words)."""
    used, inverse = np.unique(mask, axis=0, return_inverse=True)
    table = make_table(words.shape[1], len(words), len(used))
    table.masks[: len(used)] = used
    table.counts[1] = len(used)
    insert_all(table, np.ascontiguousarray(words), inverse.reshape(-1).astype(np.int32))
    return table
