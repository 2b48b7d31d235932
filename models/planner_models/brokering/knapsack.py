"""A tighter bound: whole clients cannot fill a cluster's room to the last bit at no loss.

Relaxing that every client is served once, at a worth u_g for each client of group g, leaves one
knapsack a cluster. With the prices p_m of room from the flow, a client of g in m has the reduced cost

    r_gm = c_gm + p_m w_g - u_g,

and the knapsack is the least of `sum r x + p_m (room - sum w x)` over whole x. At the flow's own
worths, u_g the least of c_gm + p_m w_g, a full cluster's clients all look alike (r = 0), and any of
them would fill it. So u_g is raised towards the second least, which leaves the relaxation's bound as
it is, and makes clients that clearly belong in a cluster clearly belong there. What the knapsacks
come to above their divisible values adds to the bound.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from planner_models.brokering.flow import Relaxed, Transport, grain_mbps

MOST_WORK: Final = 10**8  # additions for one knapsack; larger ones are left out, the bound stays valid


def excess(problem: Transport, relaxed: Relaxed, sent: NDArray[np.int32], *, worth: float) -> float:
    """What the knapsacks of all clusters add to the relaxation's bound.

    sent   (G, C) a plan; what it loses in a cluster is the most that its knapsack can add
    worth  clusters where the plan loses less than this are left out
    """
    grain = grain_mbps(problem.weight)
    if grain is None:
        return 0.0
    price = relaxed.price
    unit = np.rint(problem.weight / grain).astype(np.int64)
    best, worths = _worths(problem, price)
    added = 0.0
    for cluster in np.flatnonzero(price > 0):
        reduced = problem.cost[:, cluster] + price[cluster] * problem.weight - worths
        reduced[best == cluster] = np.minimum(reduced[best == cluster], 0.0)
        reduced[best != cluster] = np.maximum(reduced[best != cluster], 0.0)
        room = int(np.rint(problem.room[cluster] / grain))
        per_unit = float(price[cluster]) * grain
        inside = reduced < 0
        divisible = float(reduced[inside] @ problem.count[inside])
        some = sent[:, cluster] > 0
        here = sent[some, cluster]
        lost = float(reduced[some] @ here) + per_unit * (room - int(unit[some] @ here)) - divisible
        if lost < worth:
            continue
        # whoever is worth more than the plan loses stays inside, or outside
        surely = reduced < -lost
        left = room - int(unit[surely] @ problem.count[surely])
        items = np.flatnonzero((np.abs(reduced) <= lost) & (unit <= left))
        many = np.minimum(problem.count[items], left // unit[items])
        if left < 0 or left * np.ceil(np.log2(1.0 + many)).sum() > MOST_WORK:
            continue
        value = fill(unit[items], many, reduced[items], left, per_unit)
        added += max(value + float(reduced[surely] @ problem.count[surely]) - divisible, 0.0)
    return added


def _worths(problem: Transport, price: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(G,) each group's best cluster at these prices, and what a client of it is worth.

    Where the best cluster has a price, the worth is the second least cost (a price there too: half
    way), so that it stands out; where it has none, nothing is gained by that.
    """
    groups = np.arange(len(problem.weight))
    priced = problem.cost + price * problem.weight[:, None]
    best = priced.argmin(axis=1)
    least = priced[groups, best].copy()
    priced[groups, best] = np.inf
    other = priced.argmin(axis=1)
    second = priced[groups, other]
    second = np.where(np.isfinite(second), second, 2 * np.abs(least) + 1)  # nowhere else to go
    share = np.where(price[best] > 0, np.where(price[other] > 0, 0.5, 1.0), 0.0)
    return best.astype(np.int64), least + share * (second - least)


@numba.njit(cache=True)
def fill(
    unit: NDArray[np.int64],
    many: NDArray[np.int64],
    reduced: NDArray[np.float64],
    room: int,
    per_unit: float,
) -> float:  # pragma: no cover - compiled
    """The least of the reduced costs of what is taken and `per_unit` for each unit of room left.

    unit     (I,) size of each item
    many     (I,) how often it may be taken
    reduced  (I,) cost of one, also below 0
    """
    best = np.full(room + 1, np.inf)
    best[0] = 0.0
    reached = 0
    for i in range(len(unit)):
        left, part = many[i], 1
        while left > 0:
            take = min(part, left)
            size, cost = take * unit[i], take * reduced[i]
            reached = min(room, reached + size)
            for f in range(reached, size - 1, -1):
                value = best[f - size] + cost
                if value < best[f]:
                    best[f] = value
            left -= take
            part *= 2
    least = np.inf
    for f in range(room + 1):
        value = best[f] + per_unit * (room - f)
        if value < least:
            least = value
    return least
