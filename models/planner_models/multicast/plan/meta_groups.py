"""Meta-groups: groups of one switch that share a table entry, and the cost of sharing.

Port sets are bit masks (uint64), rates in Mbit/s. Groups that share an entry form a meta-group and go
to all ports of any of them. The cost is equation (6): the congestion of each port's load, which is its
traffic where congestion is linear.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.errors import InputError

Masks = NDArray[np.uint64]

CONGESTION_SLOPES: Final = (1.0, 3.0, 10.0, 70.0, 500.0, 5000.0)
CONGESTION_LOADS: Final = (1 / 3, 2 / 3, 9 / 10, 1.0, 11 / 10)


@dataclass(frozen=True, kw_only=True)
class Congestion:
    """Cost of a load: F of equation (6), convex, zero at zero, piecewise linear.

    slopes      cost of one more Mbit/s on each piece, rising
    until_mbps  end of each piece but the last, rising

    raises  InputError for slopes or ends that do not rise, or do not fit together
    """

    slopes: tuple[float, ...] = (1.0,)
    until_mbps: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        faults = []
        if len(self.slopes) != len(self.until_mbps) + 1:
            faults.append(f"congestion: has {len(self.slopes)} slopes, needs {len(self.until_mbps) + 1}")
        if any(b < a for a, b in pairwise((0.0, *self.slopes))):
            faults.append("congestion: slopes must rise, or it is not convex")
        if any(b <= a for a, b in pairwise((0.0, *self.until_mbps))):
            faults.append("congestion: the ends of pieces must rise")
        if faults:
            raise InputError(*faults)

    @classmethod
    def of_ports(cls, port_mbps: float) -> Congestion:
        """Return the usual steps of traffic engineering: 1 up to a third of the speed, 5,000 beyond 1.1.

        source  Fortz and Thorup 2000, "Internet traffic engineering by optimizing OSPF weights"
        """
        if not port_mbps > 0:
            raise InputError(f"port speed is {port_mbps}, must be greater than 0")
        return cls(
            slopes=CONGESTION_SLOPES, until_mbps=tuple(share * port_mbps for share in CONGESTION_LOADS)
        )

    @property
    def is_linear(self) -> bool:
        """Return whether there is one piece."""
        return len(self.slopes) == 1

    def pieces(self) -> tuple[Floats, Floats]:
        """Return the slope of each piece, and its begin."""
        return np.array(self.slopes), np.array([0.0, *self.until_mbps])

    def of(self, load_mbps: Floats) -> Floats:
        """Return F of loads, of any shape."""
        slopes, begins = self.pieces()
        ends = np.append(begins[1:], np.inf)
        on = np.clip(load_mbps[..., None] - begins, 0.0, ends - begins)
        return np.asarray(on @ slopes)


LINEAR: Final = Congestion()


def extra_mbps(masks: Masks, rates: Floats, meta: Ints) -> float:
    """Return the traffic to ports without members, where groups of a meta-group go to all ports of any."""
    if not len(meta):
        return 0.0
    return float(rates @ np.bitwise_count(_unions(masks, meta)[meta] & ~masks))


def port_loads(masks: Masks, rates: Floats, meta: Ints, *, ports: int) -> Floats:
    """Return the load of each port, shape (ports,), Mbit/s, including traffic of shared entries."""
    if not len(meta):
        return np.zeros(ports)
    union = _unions(masks, meta)
    load = np.bincount(meta, weights=rates, minlength=len(union))
    reached = (union[:, None] >> np.arange(ports, dtype=np.uint64)) & np.uint64(1)
    return np.asarray(load @ reached.astype(float))


def congestion_cost(
    masks: Masks,
    rates: Floats,
    meta: Ints,
    *,
    ports: int,
    congestion: Congestion = LINEAR,
    background_mbps: Floats | None = None,
) -> float:
    """Return equation (6): the congestion of every port under its groups and its background traffic."""
    load = port_loads(masks, rates, meta, ports=ports)
    return float(congestion.of(load if background_mbps is None else load + background_mbps).sum())


def merge_equal_sets(masks: Masks) -> Ints:
    """Return a meta-group for each distinct port set: no extra traffic."""
    return np.unique(masks, return_inverse=True)[1].astype(np.int64)


def distinct_sets(masks: Masks, rates: Floats) -> tuple[Masks, Floats, Ints]:
    """Return the distinct port sets, the traffic of each, and the row of each group's set."""
    sets, inverse = np.unique(masks, return_inverse=True)
    return (
        sets,
        np.bincount(inverse, weights=rates, minlength=len(sets)).astype(float),
        inverse.astype(np.int64),
    )


def extra_mbps_bound(masks: Masks, rates: Floats, table_size: int) -> float:
    """Return a bound that no plan's extra traffic is below: all distinct port sets but `table_size` grow.

    Each grows by one port at least, at the rates of its groups; so the cheapest of them are counted.
    """
    sets, weights, _ = distinct_sets(masks, rates)
    return float(np.sort(weights)[: max(0, len(sets) - table_size)].sum())


def run_in_threads(do: Callable[[int], None], switches: Sequence[int], *, threads: int | None = None) -> None:
    """Run `do` for every switch, `threads` at a time: compiled code releases the interpreter lock."""
    if threads == 1 or len(switches) < 2:
        for switch in switches:
            do(switch)
        return
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        for _ in pool.map(do, switches):
            pass


def _unions(masks: Masks, meta: Ints) -> Masks:
    """Return the ports of each meta-group; 0 for numbers without groups."""
    order = np.argsort(meta, kind="stable")
    first = np.searchsorted(meta[order], np.arange(int(meta.max()) + 1))
    union = np.bitwise_or.reduceat(masks[order], np.minimum(first, len(meta) - 1))
    used = np.bincount(meta, minlength=len(union)) > 0
    return np.where(used, union, np.uint64(0))
