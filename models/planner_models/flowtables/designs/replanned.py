"""A pool of masks that is planned anew from the connections so far, whenever these have doubled.

A miss installs the entry that would have held the most connections so far, of all entries of planned masks
that keep its action. Entries stay in place, so that each plan prefers the masks of those before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.compiled import kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.pool_search import PoolSearch
from planner_models.flowtables.designs.reactive import make_least_masks
from planner_models.flowtables.plan.bit_index import BLOCK, keeps_action, make_bit_index
from planner_models.flowtables.plan.lookup import (
    Table,
    add_mask,
    count_hit,
    find_entry,
    find_place,
    insert,
    make_table,
)
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

FIRST: Final = 250
PLANNING_SHARE: Final = 0.6  # of the time limit
TRIALS: Final = 600  # of the local search of each plan
MOST_COUNTED: Final = 4_000_000  # entries of planned masks whose connections are counted
UNSEEN: Final = 0.1  # of an entry without connections so far, as a part of those of an entry of its mask

First = Annotated[
    int, Field(ge=1, le=1_000_000, description="connections before masks are planned for the first time")
]


def plan_again(problem: FlowTables, *, first: First = FIRST, options: Options = Options()) -> Decision[Cache]:
    """Plan masks from the connections so far, each time that these have doubled; entries stay in place.

    A miss installs the entry of a planned mask that keeps its action and holds the most connections so far;
    before the first plan, one of all bits that rules match. Plans share `PLANNING_SHARE` of the time limit;
    those after it are left out, and masks stay as they are.
    """
    deadline = Deadline.of(options).share(PLANNING_SHARE)
    is_cut = False
    headers = problem.headers & problem.used_mask
    count, words = headers.shape
    table = make_table(words, count, 2 * count + 1)  # a plan has at most a mask for each connection so far
    index = make_bit_index(problem)
    planned, expected = problem.used_mask[None, :], np.zeros(1)
    served = 0
    while served < count:
        if served and deadline.is_over:
            is_cut = True
        elif served:
            past = problem.with_flows(problem.flows.iloc[:served])
            planned, expected = _plan(past, planned, table, options, deadline)
        following = min(max(2 * served, first), count)
        counted = make_table(words, min(following * len(planned), MOST_COUNTED), len(planned))
        counted.masks[:] = planned
        counts = np.zeros(len(counted.value), dtype=np.int64)
        count_all(counted, counts, headers[:served])
        mask_rows = add_masks(table, planned)
        serve_all(
            table, headers[served:following], problem.entries, index, counted, counts, mask_rows, expected
        )
        served = following
    decision = decide(problem, table, options=options)
    return replace(decision, proof=replace(decision.proof, is_cut=True)) if is_cut else decision


def _plan(
    past: FlowTables, planned: Words, table: Table, options: Options, deadline: Deadline
) -> tuple[Words, Floats]:
    """Return masks for past connections, and the expected hits of each entry at its first.

    deadline  at which the local search ends
    """
    headers = group_headers(past)
    in_use = table.masks[: int(table.counts[1])]
    search = PoolSearch(past, headers, in_use)
    minimal_masks = make_least_masks(past, by_entropy=True)(headers.words)
    start = min(search.merge(minimal_masks), planned, key=search.cost_of_masks)
    masks = search.improve(start, minimal_masks, TRIALS, np.random.default_rng(options.seed or 0), deadline)
    choice = search.choose(masks)
    expected = UNSEEN * choice.hits / np.maximum(choice.entries, 1)
    if (masks == past.used_mask).all(axis=1).any():
        return masks, expected
    return np.vstack([masks, past.used_mask]), np.append(expected, 0.0)  # keeps any action


@run_small_in_python(max_elements=5_000)
@kernel
def add_masks(table: Any, masks: Any) -> Any:
    """Return the numbers of masks (m, words) in a table, (m,); those that are not there become the last."""
    numbers, no_weight = np.zeros(len(masks), np.int64), np.zeros(64 * masks.shape[1])
    for m in range(len(masks)):
        numbers[m] = table.order[add_mask(table, masks[m], no_weight)]
    return numbers


@run_small_in_python(max_elements=2_000)
@kernel
def count_all(counted: Any, counts: Any, headers: Any) -> None:
    """Count headers (n, words) in the entries of all masks that hold them, while there is space."""
    for h in range(len(headers)):
        for mask in range(len(counted.masks)):
            entry = find_place(counted, headers[h], mask)
            if entry < 0 and counted.counts[0] == len(counts):
                continue
            counts[insert(counted, headers[h], mask) if entry < 0 else entry] += 1


@run_small_in_python(max_elements=5_000)
@kernel
def serve_all(
    table: Any, headers: Any, rules: Any, index: Any, counted: Any, counts: Any, positions: Any, expected: Any
) -> None:
    """Serve headers (n, words) in order; one without an entry gets that of the most headers so far.

    counted   table of planned masks, with the headers of each entry so far in `counts`
    positions     (m,) number of each planned mask in `table`; expected (m,) see `_plan`
    """
    buffer = np.zeros(BLOCK, np.uint64)
    for h in range(len(headers)):
        entry, searched = find_entry(table, headers[h])
        position = searched - 1
        if entry < 0:
            best, highest = np.int64(-1), -1.0
            for mask in range(len(positions)):
                slot = find_place(counted, headers[h], mask)
                value = expected[mask] + (counts[slot] if slot >= 0 else 0)
                if value > highest and keeps_action(headers[h], counted.masks[mask], index, rules, buffer):
                    best, highest = positions[mask], value
            insert(table, headers[h], best)
            position = 0
            while table.order[position] != best:
                position += 1
        count_hit(table, position)
        count_all(counted, counts, headers[h : h + 1])
