"""Routing over given links, direct or by one transit block: coordinate descent on an exponential penalty.

Each demand in turn moves traffic from its most expensive path to its cheapest one until both cost the same,
where a link costs the derivative of exp(sharpness * utilization / largest utilization). The sharpness grows,
so that the penalty comes near to the largest utilization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, njit, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import SOLVED_SHARE

STAGES: Final = tuple(25.0 * 2**power for power in range(8))
"""Sharpness of the penalty, one stage after the other."""
WARM_STAGES: Final = STAGES[3:]
"""The same where the search begins with a good routing, which blunt penalties would spoil."""
MAX_PASSES: Final = 300
"""Most passes over all demands in a stage."""
CHECKED_PASSES: Final = 20
"""Passes after which the progress of a stage is looked at."""
STALL: Final = 2e-5
"""Relative progress of the largest utilization below which a stage ends."""
LEAST_SHARE: Final = SOLVED_SHARE
"""Share of a demand below which a path is left out."""
BISECTIONS: Final = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Routing:
    """Paths of all demands over some links.

    shares  (n, n, n) share of the demand from i to j by transit block k; k = i stands for the direct link
    scale   largest factor by which all demands may be multiplied and fit; 0 where one has no path
    """

    shares: Floats
    scale: float


def balance(
    demand: Floats,
    capacity: Floats,
    *,
    start: Floats | None = None,
    enough: float = np.inf,
    deadline: Deadline = NEVER,
) -> Routing:
    """Return a routing with a low largest utilization.

    demand    (n, n), in any unit
    capacity  (n, n) of all links from row to column, in the same unit
    start     (n, n, n) shares to begin with; default: direct, where there is a link
    enough    the scale at which the search stops
    deadline  after which no other stage begins
    """
    count = len(demand)
    unit = float(demand.max()) or 1.0
    flow = np.zeros((count, count, count))
    if start is not None:
        flow = start * (demand / unit)[:, :, None]
    scaled = demand / unit
    routable = _place(scaled, capacity / unit, flow)
    if enough <= 0 or not (flow > 0).any():
        return Routing(shares=_share(flow), scale=_scale_of(flow, scaled, capacity / unit, routable))
    for sharpness in STAGES if start is None else WARM_STAGES:
        if deadline.is_over:
            break
        top = _descend(
            scaled, capacity / unit, flow, sharpness, MAX_PASSES, 1 / enough if enough < np.inf else 0.0
        )
        if top <= 1 / enough:
            break
    shares = _share(flow)
    return Routing(
        shares=shares, scale=_scale_of(shares * scaled[:, :, None], scaled, capacity / unit, routable)
    )


def loads_of(flow: Floats) -> Floats:
    """Return the (n, n) load of the links of (n, n, n) flows by transit block, in their unit."""
    count = len(flow)
    each = np.arange(count)
    load: Floats = flow[each, :, each].copy()  # direct: from i to j by k = i
    transit = flow.copy()
    transit[each, :, each] = 0.0
    load += transit.sum(axis=1)  # from i to k
    load += transit.sum(axis=0).T  # from k to j
    return load


def scale_of(load: Floats, capacity: Floats) -> float:
    """Return the largest factor by which (n, n) loads may be multiplied; inf without a load."""
    used = load > 0
    return float((capacity[used] / load[used]).min(initial=np.inf))


def _scale_of(flow: Floats, demand: Floats, capacity: Floats, routable: Bools) -> float:
    if (demand[~routable] > 0).any():
        return 0.0
    return scale_of(loads_of(flow), capacity)


def _share(flow: Floats) -> Floats:
    """Return the shares of (n, n, n) flows, without traces, which add up to 1 for each demand with a path."""
    total = flow.sum(axis=2, keepdims=True)
    shares = np.divide(flow, total, out=np.zeros_like(flow), where=total > 0)
    shares[shares < LEAST_SHARE] = 0.0
    total = shares.sum(axis=2, keepdims=True)
    normalized: Floats = np.divide(shares, total, out=shares, where=total > 0)
    return normalized


@run_small_in_python(max_elements=500)
@njit(cache=True, error_model="numpy")
def _place(demand: Floats, capacity: Floats, flow: Floats) -> Bools:  # noqa: C901
    """Move the flow of paths without links, and the missing flow, to the widest path of each demand.

    Flows are changed in place. Returns (n, n) whether there is a path.
    """
    count = len(demand)
    routable = np.ones((count, count), np.bool_)
    for i in range(count):
        for j in range(count):
            placed, best, widest = 0.0, -1, 0.0
            for k in range(count):
                if k == j:
                    width = 0.0
                elif k == i:
                    width = capacity[i, j]
                else:
                    width = min(capacity[i, k], capacity[k, j])
                if width <= 0:
                    flow[i, j, k] = 0.0
                placed += flow[i, j, k]
                if width > 0 and (width > widest or k == i) and best != i:
                    best, widest = k, width
            if i == j or demand[i, j] <= 0:
                flow[i, j] = 0.0
            elif best < 0:
                routable[i, j] = False
            elif placed < demand[i, j]:
                flow[i, j, best] += demand[i, j] - placed
    return routable


@inner
def _price(load: float, capacity: float, rise: float, top: float) -> float:
    """Return the marginal cost of traffic on a link."""
    price: float = np.exp(rise * (load / capacity - top)) / capacity
    return price


@inner
def _path_price(
    load: Floats, capacity: Floats, path: tuple[int, int, int], moved: float, rise: float, top: float
) -> float:
    """Return the marginal cost of a path from i to j by k, once it carries `moved` more; direct by k = i.

    path  i, j and k
    """
    i, j, k = path
    if k == i:
        return _price(load[i, j] + moved, capacity[i, j], rise, top)
    price = _price(load[i, k] + moved, capacity[i, k], rise, top)
    price += _price(load[k, j] + moved, capacity[k, j], rise, top)
    return price


@inner
def _add_load(
    load: Floats,
    price: Floats,
    capacity: Floats,
    link: tuple[int, int],
    amount: float,
    rise: float,
    top: float,
) -> None:
    """Add to the load of a link, and find its marginal cost anew."""
    load[link] += amount
    price[link] = _price(load[link], capacity[link], rise, top)


class _Links(NamedTuple):
    """Links from row to column, (n, n) each, in one pass.

    rise  of the price, per unit of utilization
    top   largest utilization when the pass began
    """

    load: Floats
    price: Floats
    capacity: Floats
    rise: float
    top: float


@njit(cache=True, error_model="numpy")
def _descend(  # noqa: C901 - one compiled loop
    demand: Floats, capacity: Floats, flow: Floats, sharpness: float, passes: int, enough: float
) -> float:
    """Lower the penalty of (n, n, n) flows in place; return the largest utilization.

    enough  utilization at which it stops
    """
    count = len(demand)
    load, price = _load_of(flow), np.full((count, count), np.inf)
    top = _largest_utilization(load, capacity)
    before = top
    for number in range(passes):
        if top <= enough:
            break
        rise = sharpness / top
        links = _Links(load, price, capacity, rise, top)
        for i in range(count):
            for j in range(count):
                if capacity[i, j] > 0:
                    price[i, j] = _price(load[i, j], capacity[i, j], rise, top)
        for i in range(count):
            for j in range(count):
                if demand[i, j] > 0:
                    _balance_pair(links, flow, i, j)
        top = _largest_utilization(load, capacity)
        if number % CHECKED_PASSES == CHECKED_PASSES - 1:
            if before - top < STALL * top:
                break
            before = top
    return top


@inner
def _load_of(flow: Floats) -> Floats:
    """Return the (n, n) load of flows by transit block."""
    count = len(flow)
    load = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            for k in range(count):
                if flow[i, j, k] > 0:
                    if k == i:
                        load[i, j] += flow[i, j, k]
                    else:
                        load[i, k] += flow[i, j, k]
                        load[k, j] += flow[i, j, k]
    return load


@inner
def _largest_utilization(load: Floats, capacity: Floats) -> float:
    top = 0.0
    for i in range(len(load)):
        for j in range(len(load)):
            if capacity[i, j] > 0:
                top = max(top, load[i, j] / capacity[i, j])
    return top


@inner
def _balance_pair(links: _Links, flow: Floats, i: int, j: int) -> None:  # noqa: C901 - one compiled loop
    """Move flow of a pair from its dearest path to its cheapest one, until their prices are equal."""
    load, price, capacity, rise, top = links
    cheap, dear, low, high = -1, -1, np.inf, -1.0
    for k in range(len(load)):
        if k == j:
            continue
        cost = price[i, j] if k == i else price[i, k] + price[k, j]
        if cost < low:
            low, cheap = cost, k
        if flow[i, j, k] > 0 and cost > high:
            high, dear = cost, k
    if cheap < 0 or dear < 0 or cheap == dear or high - low <= 1e-9 * high:
        return
    lower, upper = 0.0, flow[i, j, dear]
    amount = upper
    for _ in range(BISECTIONS):
        old = _path_price(load, capacity, (i, j, dear), -amount, rise, top)
        new = _path_price(load, capacity, (i, j, cheap), amount, rise, top)
        if old >= new:
            lower = amount
            if amount == upper:
                break
        else:
            upper = amount
        amount = 0.5 * (lower + upper)
    if lower <= 0:
        return
    flow[i, j, dear] -= lower
    flow[i, j, cheap] += lower
    for turn in range(2):
        k = dear if turn == 0 else cheap
        change = -lower if turn == 0 else lower
        if k == i:
            _add_load(load, price, capacity, (i, j), change, rise, top)
        else:
            _add_load(load, price, capacity, (i, k), change, rise, top)
            _add_load(load, price, capacity, (k, j), change, rise, top)


def capacity_of(links: Ints | Floats, link_mbps: Floats) -> Floats:
    """Return the (n, n) capacity from row to column of (n, n) links, Mbit/s."""
    capacity: Floats = links * link_mbps
    return capacity
