"""Programs over moves: some demands may leave the list that they are on for one of a few others.

    min U   subject to   u_e + sum_j d_ej x_j <= U  for every link e,   sum of a demand's x_j <= 1,
                         sum of c_j x_j <= the moves that are left

with u_e the utilization now, d_ej the change by move j, and c_j 1 where the move takes a demand off its
shortest paths, -1 where it takes it back. With x whole it is the repair step of a large neighbourhood search;
with all demands on their shortest paths and fractional x, by column generation, it is the linear program of
few moved demands.

source  Shaw 1998 (large neighbourhood search)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints, Ints32
from planner.backends import Solution
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner_models.traffic.designs.segment_routing import segment_paths
from planner_models.traffic.designs.segment_routing.segment_paths import Legs
from planner_models.traffic.designs.segment_routing.splittable_flow import Items


@dataclass(frozen=True, kw_only=True, eq=False)
class Moves:
    """Moves of demands: item (J,), ascending, its new lists (J, k - 1), change (J, E) of utilization."""

    item: Ints
    lists: Ints32
    change: sp.csr_array


def find_changes(items: Items, legs: Legs, capacity: Floats, now: Ints32, item: Ints, lists: Ints32) -> Moves:
    """Return the moves of each item from its list in `now` (K, k - 1) to the one in `lists` (J, k - 1)."""
    order = np.argsort(item, kind="stable")
    item, lists = item[order], lists[order]
    parts = []
    for rows, sign in ((lists, 1.0), (now[item], -1.0)):
        start, link, amount = segment_paths.flow_of_lists(
            legs, items.source[item], items.target[item], rows, items.rate[item]
        )
        shape = (len(item), len(capacity))
        parts.append(sp.csr_array((sign * amount / capacity[link], link, start), shape=shape))
    return Moves(item=item, lists=lists, change=sp.csr_array(parts[0] + parts[1]))


def solve(
    moves: Moves,
    utilization: Floats,
    moved: Ints,
    most_moved: int | None,
    options: Options,
    *,
    whole: bool,
) -> tuple[Solution, Floats, float]:
    """Solve the program of some moves.

    utilization  (E,) now
    moved        (J,) c_j of each move
    most_moved   right-hand side of the moves that are left; None: no limit

    returns  solution, dual prices (E,) of links, at least 0 and adding up to 1 or 0, and that of the limit
    """
    count, links = len(moves.item), len(utilization)
    distinct, row = np.unique(moves.item, return_inverse=True)

    m = ProgramBuilder(name="moves of segment lists")
    x = m.variables("move", count, upper=1.0, integer=whole)
    t = m.variables("utilization", cost=1.0)
    m.constrain("capacity", moves.change.T @ x - t, upper=-utilization)
    m.constrain("one", x.sum_by(row, len(distinct)), upper=1.0)
    if most_moved is not None:
        m.constrain("moved", moved[None, :] @ x, upper=most_moved)
    solution = backends.solve(m.build(), options)
    duals = solution.row_duals
    if duals is None:
        return solution, np.zeros(links), 0.0
    price = np.maximum(-duals[:links], 0.0)
    return solution, price, max(-float(duals[-1]), 0.0) if most_moved is not None else 0.0


def apply(moves: Moves, x: Floats, lists: Ints32) -> Ints32:
    """Return the lists (K, k - 1) after the moves that are chosen, x of 1."""
    selected = np.flatnonzero(x[: len(moves.item)] > 0.5)
    after = lists.copy()
    after[moves.item[selected]] = moves.lists[selected]
    return after


def cheap_lists(items: Items, legs: Legs, price: Floats, selected: Ints, count: int) -> tuple[Ints, Ints32]:
    """Return the cheapest lists of the chosen items (C,) by first node, and their shortest paths.

    returns  item (J,) and lists (J, k - 1), at most `count` + 1 of each item
    """
    leg_price = segment_paths.price_legs(legs, price)
    list_price, first = segment_paths.cheapest_lists(leg_price, legs.middle, items.max_segments)
    source, target = items.source[selected], items.target[selected]
    through = leg_price[source][:, legs.middle] + list_price[-2][legs.middle][:, target].T  # (C, M)
    ends = (legs.middle == source[:, None]) | (legs.middle == target[:, None])
    through[ends] = np.inf
    best = np.argsort(through, axis=1, kind="stable")[:, :count]
    row, column = np.nonzero(np.isfinite(np.take_along_axis(through, best, axis=1)))
    node = legs.middle[best[row, column]]
    lists = segment_paths.follow_through(first, node, target[row])
    plain = np.repeat(target[:, None], items.max_segments - 1, axis=1).astype(np.int32)
    return np.r_[selected[row], selected], np.concatenate([lists, plain])


def differ(now: Ints32, item: Ints, lists: Ints32) -> Bools:
    """Return whether each list (J, k - 1) is another than that of its item in `now` (K, k - 1)."""
    return np.asarray((now[item] != lists).any(axis=1))
