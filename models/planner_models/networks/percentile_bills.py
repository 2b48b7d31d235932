"""Bills by a percentile of samples: the windows that are not billed, and the billed level of samples.

Samples are sorted, and the largest of the given share of them is billed: 95% leaves the busiest 5% of a
month's windows out, 100% bills the peak.

source  "95/5" or burstable billing, as in Singh et al., NSDI 2021 (CASCARA); Mukerjee 2018, 3.2.1 and 4.5
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from planner.arrays import Floats, Ints

PAID_SHARE: Final = 0.95
"""Share of the windows, sorted by traffic, of which the largest is billed."""

_ROUNDING: Final = 1e-9  # of a share times a number of windows


def billed_rank(windows: ArrayLike, share: float = PAID_SHARE) -> Ints:
    """Return the position, from 1, of the billed sample among so many ascending samples."""
    return np.ceil(share * np.asarray(windows, dtype=float) - _ROUNDING).astype(np.int64)


def count_unbilled(windows: ArrayLike, share: float = PAID_SHARE) -> Ints:
    """Return the number of busiest windows, of so many, that are not billed."""
    return np.asarray(windows, dtype=np.int64) - billed_rank(windows, share)


def billed_level(samples: Floats, share: float = PAID_SHARE) -> float:
    """Return the billed sample; 0 without samples."""
    if not len(samples):
        return 0.0
    return float(np.sort(samples)[max(int(billed_rank(len(samples), share)), 1) - 1])


def levels_of_next(samples: Floats, share: float = PAID_SHARE, *, times: int = 1) -> tuple[float, float]:
    """Return the least and the largest billed level with further samples of one value.

    With a sample u that is added so many times, `billed_level` is u within these levels, the lower one where
    u is below it, and the upper one where u is above it: u is then among the windows that are not billed. The
    upper level is infinite where fewer windows than that are left out.
    """
    ordered = np.sort(samples)
    rank = max(int(billed_rank(len(samples) + times, share)), 1)
    low = float(ordered[rank - times - 1]) if rank > times else 0.0
    high = float(ordered[rank - 1]) if rank <= len(ordered) else np.inf
    return low, high
