"""Rounding of capacities to whole streams: the largest load that a link can carry without dividing any.

Where streams have few bitrates, their sums leave gaps: a link of 75 Mbit/s carries 53 streams of
1.4 Mbit/s and leaves 0.8 Mbit/s unused. A limit on the largest sum holds for every plan, and is tighter
for fractional ones.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.tolerances import ROUNDING

UNIT_MBPS: Final = 1e-6
"""Precision at which bitrates are compared: of bit/s; others are left as they are."""

MAX_SUMS: Final = 4_000_000
"""Sums that are enumerated up to a capacity, at most, in units of the greatest common divisor."""

TOLERANCE: Final = ROUNDING  # share of the capacity that rounding must not take away


def round_capacities(capacity_mbps: Floats, rate_mbps: Floats, count: Ints) -> Floats:
    """Return the largest sum of streams within each capacity, Mbit/s; unchanged where sums are too many.

    capacity_mbps  (L,) capacities; infinite ones are unchanged
    rate_mbps      (K,) different bitrates of the streams
    count          (K,) streams of each bitrate
    """
    rounded = capacity_mbps.copy()
    rate_mbps, count = rate_mbps[count > 0], count[count > 0]
    exact = rate_mbps / UNIT_MBPS
    units = np.rint(exact)
    is_finite = np.isfinite(capacity_mbps) & (capacity_mbps < float(rate_mbps @ count))
    if not is_finite.any() or (np.abs(exact - units) > TOLERANCE * exact).any() or exact.max() > 2**52:
        return rounded
    divisor = int(np.gcd.reduce(units.astype(np.int64)))
    unit_mbps = divisor * UNIT_MBPS
    largest = float(capacity_mbps[is_finite].max()) / unit_mbps
    if largest > MAX_SUMS:
        return rounded
    sums = find_sums(units.astype(np.int64) // divisor, count, int(largest * (1 + TOLERANCE)))
    index = np.searchsorted(sums, np.floor(capacity_mbps[is_finite] / unit_mbps * (1 + TOLERANCE)), "right")
    rounded[is_finite] = np.minimum(capacity_mbps[is_finite], sums[index - 1] * unit_mbps)
    return rounded


def find_sums(rate: Ints, count: Ints, limit: int) -> Ints:
    """Return all sums up to `limit` of each rate (K,) at most `count` (K,) times, ascending from 0."""
    reached, mask = 1, (1 << (limit + 1)) - 1  # bit s is set where s is a sum
    for each, times in zip(rate.tolist(), count.tolist(), strict=True):
        remaining, power = min(times, limit // each), 1
        while remaining:  # by powers of two, so that each number up to `times` is a sum of parts
            power = min(power, remaining)
            reached |= (reached << (power * each)) & mask
            remaining -= power
            power *= 2
    bits = np.frombuffer(reached.to_bytes(limit // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")[: limit + 1])
