"""Caches filled by misses, as in Open vSwitch: userspace makes an entry from each packet that misses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.least_specific import find_least_masks
from planner_models.flowtables.designs.tuple_space import make_tuple_space, search
from planner_models.flowtables.plan.bit_index import make_bit_index, weigh_bits
from planner_models.flowtables.plan.classification import classify, find_needed
from planner_models.flowtables.plan.lookup import Table, find_all, install_all, make_table
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

CHUNK: Final = 512  # connections whose misses get their masks together

ByEntropy = Annotated[
    bool,
    Field(
        description="whether a mask prefers bits that are the same in most connections; else it has few bits"
    ),
]


def install_microflows(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Install an entry for each header, which matches all bits."""
    return decide(problem, fill_by_misses(problem, match_all_bits(problem)), options=options)


def search_tuples(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Match all bits that tuple space search looks at, in every tuple."""
    return _search(problem, "tuple_search", options)


def sort_by_priority(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Search tuples by falling priority, and stop where no better match can follow."""
    return _search(problem, "priority", options)


def look_up_in_stages(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Look tuples up layer by layer, and stop at the first layer without a match."""
    return _search(problem, "staged", options)


def track_prefixes(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Skip tuples with a prefix that cannot match, by a trie for each field."""
    return _search(problem, "prefix", options)


def combine_all(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Combine priorities, stages and tries, as Open vSwitch does."""
    return _search(problem, "all", options)


def match_least(
    problem: FlowTables, *, by_entropy: ByEntropy = True, options: Options = Options()
) -> Decision[Cache]:
    """Match as little as keeps the packet's action: a minimum weight hitting set for each miss, greedily."""
    return decide(problem, fill_by_misses(problem, make_least_masks(problem, by_entropy)), options=options)


def serve_from_pool(
    problem: FlowTables, *, by_entropy: ByEntropy = True, options: Options = Options()
) -> Decision[Cache]:
    """Take a mask in use where it keeps the packet's action, the lightest first; else the least specific."""
    masks = make_least_masks(problem, by_entropy)
    return decide(problem, fill_by_misses(problem, masks, reuse=True), options=options)


def match_all_bits(problem: FlowTables) -> Callable[[Words], Words]:
    """Return the function that matches all bits of each of some headers (n, words)."""
    return lambda headers: np.broadcast_to(problem.full_mask, headers.shape).copy()


def make_least_masks(problem: FlowTables, by_entropy: bool) -> Callable[[Words], Words]:
    """Return the function that finds a mask of little weight for each of some headers (n, words)."""
    index = make_bit_index(problem, by_entropy=by_entropy)
    return lambda headers: np.asarray(
        find_least_masks(headers, find_needed_bits(problem, headers), problem.entries, index)
    )


def find_needed_bits(problem: FlowTables, headers: Words) -> Words:
    """Return the bits that an entry for each header (n, words) must match: of its type and its action."""
    return np.asarray(find_needed(headers, classify(headers, problem.entries), problem.entries))


def make_searched_masks(
    problem: FlowTables, *, by_priority: bool = False, is_staged: bool = False, by_prefix: bool = False
) -> Callable[[Words], Words]:
    """Return the function that finds the bits that a search looks at for each of some headers (n, words)."""
    space = make_tuple_space(problem, is_staged=is_staged)
    return lambda headers: (
        search(problem, headers, space, by_priority=by_priority, by_prefix=by_prefix)
        | find_needed_bits(problem, headers)
    )


MASKS_OF_MISSES: Final[dict[str, Callable[[FlowTables], Callable[[Words], Words]]]] = {
    "microflows": match_all_bits,
    "tuple_search": make_searched_masks,
    "priority": partial(make_searched_masks, by_priority=True),
    "staged": partial(make_searched_masks, is_staged=True),
    "prefix": partial(make_searched_masks, by_prefix=True),
    "all": partial(make_searched_masks, by_priority=True, is_staged=True, by_prefix=True),
    "least_specific": partial(make_least_masks, by_entropy=True),
    "pool": partial(make_least_masks, by_entropy=True),
}
"""For each design that acts at each miss, what returns the masks of new entries."""


def fill_by_misses(
    problem: FlowTables,
    make_masks: Callable[[Words], Words],
    *,
    reuse: bool = False,
) -> Table:
    """Return the entries after all connections, in their order, from an empty cache.

    make_masks  returns the mask of the entry that a miss of each header (n, words) installs
    reuse       whether the lightest mask in use that keeps the action is taken before
    """
    headers = problem.headers
    table = make_table(headers.shape[1], len(headers), len(headers))
    index = make_bit_index(problem)
    weight = weigh_bits(problem, by_entropy=True) if reuse else np.zeros(64 * headers.shape[1])
    if reuse:
        start, none = 0, headers[:0]
        while True:  # masks are made only for headers for which no mask in use is valid
            start += int(install_all(table, headers[start:], none, problem.entries, index, weight, True))
            if start == len(headers):
                return table
            header = headers[start : start + 1]
            install_all(table, header, make_masks(header), problem.entries, index, weight, True)
            start += 1
    for start in range(0, len(headers), CHUNK):
        chunk = headers[start : start + CHUNK]
        entry, _ = find_all(table, chunk)
        missed = np.flatnonzero(entry < 0)
        masks = np.zeros_like(chunk)
        masks[missed] = make_masks(chunk[missed])
        install_all(table, chunk, masks, problem.entries, index, weight, False)
    return table


def _search(problem: FlowTables, name: str, options: Options) -> Decision[Cache]:
    """Return the decision by the bits that a tuple space search looks at."""
    return decide(problem, fill_by_misses(problem, MASKS_OF_MISSES[name](problem)), options=options)
