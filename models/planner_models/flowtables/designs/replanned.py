"""A pool of masks that is planned anew from the connections so far, whenever these have doubled."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.merged import PoolSearch
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.bit_index import make_bit_index
from planner_models.flowtables.plan.lookup import Table, install_all, make_table
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

HEAVY: Final = 1e6  # of a bit of a mask that is taken last
FIRST: Final = 250

First = Annotated[
    int, Field(ge=1, le=1_000_000, description="connections before masks are planned for the first time")
]


def plan_again(problem: FlowTables, *, first: First = FIRST, options: Options = Options()) -> Decision[Cache]:
    """Plan masks from the connections so far, each time that these have doubled; entries stay in place.

    A miss installs an entry with the planned mask that keeps its action and served the most connections for
    an entry; where none does, and before the first plan, with one of all bits that rules match.
    """
    headers = problem.headers
    count, words = headers.shape
    table = make_table(words, count, 2 * count + 1)  # a plan has at most a mask for each connection so far
    wanted = np.broadcast_to(problem.used_mask, headers.shape).copy()
    heavy = np.full(64 * words, HEAVY)
    index, known = make_bit_index(problem), 0
    while known < count:
        if known:
            _plan(problem, problem.with_flows(problem.flows.iloc[:known]), table)
        following = min(max(2 * known, first), count)
        install_all(
            table, headers[known:following], wanted[known:following], problem.entries, index, heavy, True
        )
        known = following
    return decide(problem, table, options=options)


def _plan(problem: FlowTables, past: FlowTables, table: Table) -> None:
    """Put the masks that are planned for past connections into a table, and let others be taken last."""
    headers = group_headers(past)
    search = PoolSearch(past, headers)
    masks = search.merge(make_least_masks(past, by_entropy=True)(headers.words))
    choice = search.choose(masks)
    used = int(table.counts[1])
    bits = np.bitwise_count(table.masks[:used]).sum(axis=1)
    table.weight[:used] = HEAVY * (1 + bits)
    for mask, weight in zip(masks, choice.entries / np.maximum(choice.hits, 0.5), strict=True):
        _add(table, mask & problem.used_mask, float(weight))


def _add(table: Table, mask: Words, weight: float) -> None:
    """Put a mask with a weight into a table, at the end of the search where it is not there."""
    used = int(table.counts[1])
    same = np.flatnonzero((table.masks[:used] == mask).all(axis=1))
    place = int(same[0]) if len(same) else used
    if not len(same):
        table.masks[place] = mask
        table.order[place] = place
        table.counts[1] += 1
    table.weight[place] = weight
