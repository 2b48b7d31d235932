"""The basis of a simplex method over paths: its arrays, and the meaning of their entries."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints, Ints32

SLACK, PATH, RISE = 0, 1, 2
"""Kinds of basic columns: the slack of a link, a path, and t."""
RISE_PLACE, NEXT_ROOT, ROOTS_WITHOUT, PIVOTS, DEGENERATE, STAGE, QUEUE_PLACE = range(7)
"""Entries of `State.number`."""
NOW, LIMIT = 0, 1
"""Entries of `State.amount`."""
PATHS, LINKS = 0, 1
"""Entries of `State.used`."""
SMOOTHED, EXACT = 0, 1
"""Stages of the search: prices are smoothed first, to find good paths."""


class Stop(IntEnum):
    """Reason for the end of a search: an optimum, a call that ends, all demands served, or no limit of t."""

    OPTIMAL = 0
    CALL = 1
    SERVED = 2
    UNBOUNDED = 3


OPTIMAL, CALL, SERVED, UNBOUNDED = (stop.value for stop in Stop)
"""The same as numbers, for compiled code."""


class GivenPaths(NamedTuple):
    """The paths that demands may take: path p goes over link[start[p] : start[p + 1]].

    first  (K + 1,) those of demand k are first[k] to first[k + 1]; without entries all paths are allowed
    """

    first: Ints
    start: Ints
    link: Ints32


NO_PATHS: Final = GivenPaths(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32))


class State(NamedTuple):
    """The basis, of M = A columns, with the paths of K demands.

    capacity, cost  (A,) and (A + 1,) of links
    inverse  (A, A) the inverse of the basis: row by link, column by place in the basis
    kind, item  (A,) basic columns: slack of link `item`, path `item`, or t
    value    (A,) of the basic columns
    place_of (A,) place of the slack of each link, -1 where the link is full
    price    (A,) of links
    key      (K,) path; first (K,) place of the first other basic path of a demand, -1 for none
    after    (A,) place of the next one
    fixed, slope (K,)
    owner, start, end, link  paths, as in `path_pool`; used (2,) how many, and how many entries of `link`
    rise     (A,) column of t: slopes on the key paths
    queue    (K,) demands by the value of t at which they reach their rates
    number   (7,) place of t in the basis (-1 none), next root, roots since the last pivot, pivots, degenerate
             pivots, stage of the search, place in `queue`
    amount   (2,) t and its limit, the next value at which a demand reaches its rate
    """

    capacity: Floats
    cost: Floats
    inverse: Floats
    kind: NDArray[np.int8]
    item: Ints
    value: Floats
    place_of: Ints
    price: Floats
    key: Ints
    first: Ints
    after: Ints
    fixed: Floats
    slope: Floats
    owner: Ints32
    start: Ints
    end: Ints
    link: Ints32
    used: Ints
    rise: Floats
    queue: Ints
    number: Ints
    amount: Floats
