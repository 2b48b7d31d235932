"""Clients that are alike in all that matters, counted together: what makes millions of them few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Clients of one location, bitrate and share: G of them; what else they watch does not matter.

    location      (G,) row of `locations`
    bitrate_mbps  (G,) of each client
    share         (G,) row of the problem's `shares`
    count         (G,) clients, all above 0
    of_row        (R,) the group of each row of clients; -1 for rows without any
    """

    location: NDArray[np.int64]
    bitrate_mbps: NDArray[np.float64]
    share: NDArray[np.int64]
    count: NDArray[np.int64]
    of_row: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        location: NDArray[np.int64],
        bitrate_mbps: NDArray[np.float64],
        count: NDArray[np.int64],
        share: NDArray[np.int64],
    ) -> Groups:
        """The groups of rows of clients, each (R,)."""
        levels, level = np.unique(bitrate_mbps, return_inverse=True)
        kinds = int(share.max(initial=0)) + 1
        key = (location * np.int64(len(levels)) + level.ravel()) * kinds + share
        keys, group = np.unique(np.where(count > 0, key, -1), return_inverse=True)
        group = group.ravel()
        if len(keys) and keys[0] == -1:
            keys, group = keys[1:], group - 1
        clients = np.zeros(len(keys), dtype=np.int64)
        some = group >= 0
        np.add.at(clients, group[some], count[some])
        place, level = np.divmod(keys // kinds, max(len(levels), 1))
        return cls(
            location=place,
            bitrate_mbps=levels[level],
            share=keys % kinds,
            count=clients,
            of_row=group.astype(np.int64),
        )
