"""Client groups: clients that are alike to the broker's objective, counted together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientGroups:
    """G groups of clients of one location, bitrate and restriction class, whatever content they want.

    location           (G,) row of `locations`
    bitrate_mbps       (G,) of each client
    restriction_class  (G,) row of the problem's `restriction_classes`
    count              (G,) clients, all above 0
    of_row             (R,) the group of each row of clients; -1 for rows without clients
    """

    location: Ints
    bitrate_mbps: Floats
    restriction_class: Ints
    count: Ints
    of_row: Ints

    @classmethod
    def of(cls, location: Ints, bitrate_mbps: Floats, count: Ints, restriction_class: Ints) -> ClientGroups:
        """Return the groups of rows of clients, each argument (R,)."""
        levels, level = np.unique(bitrate_mbps, return_inverse=True)
        kinds = int(restriction_class.max(initial=0)) + 1
        key = (location * np.int64(len(levels)) + level.ravel()) * kinds + restriction_class
        group_keys, group = np.unique(np.where(count > 0, key, -1), return_inverse=True)
        group = group.ravel()
        if len(group_keys) and group_keys[0] == -1:
            group_keys, group = group_keys[1:], group - 1
        clients = np.zeros(len(group_keys), dtype=np.int64)
        used = group >= 0
        np.add.at(clients, group[used], count[used])
        location_row, level = np.divmod(group_keys // kinds, max(len(levels), 1))
        return cls(
            location=location_row,
            bitrate_mbps=levels[level],
            restriction_class=group_keys % kinds,
            count=clients,
            of_row=group.astype(np.int64),
        )
