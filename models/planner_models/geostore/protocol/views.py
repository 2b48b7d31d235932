"""Consistency of the view of a datacenter with partial replicas: its own, and the nearest others.

Eiger checks a dependency in the datacenter that applies the write, and that covers all that it depends on,
because each of these was checked in the same datacenter (sections 2.3 and 3.1). A check at another datacenter
covers only what that one was served with. So it is enough only where both are served by the same replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints


class Gap(NamedTuple):
    """A dependency that one-hop checks do not cover in a datacenter.

    `group` is checked at datacenter `checked_at`, whose writes of it were checked against `on` at `there`;
    clients of `datacenter` are served with `on` by `here`.
    """

    datacenter: int
    group: int
    checked_at: int
    on: int
    here: int
    there: int


def nearest_replicas(present: Bools, rtt_ms: Floats) -> Ints:
    """Return the datacenter that serves each group to each datacenter, shape (D, G): itself if it can."""
    distance = rtt_ms.copy()
    np.fill_diagonal(distance, 0.0)
    reach = np.where(present[None, :, :], distance[:, :, None], np.inf)
    home: Ints = np.argmin(reach, axis=1).astype(np.int64)
    return home


def find_gaps(present: Bools, rtt_ms: Floats, depends: Mapping[int, Sequence[int]]) -> list[Gap]:
    """Return the dependencies that checks at the nearest replica leave open, in datacenters with replicas.

    present  (D, G) replicas of groups
    depends  groups that the writes of a group depend on
    """
    home = nearest_replicas(present, rtt_ms)
    gaps = []
    for datacenter in range(len(present)):
        for group in sorted(_find_followed(np.flatnonzero(present[datacenter]).tolist(), depends)):
            checked_at = int(home[datacenter, group])
            for on in depends.get(group, ()):
                here, there = int(home[datacenter, on]), int(home[checked_at, on])
                if here != there:
                    gaps.append(Gap(datacenter, group, checked_at, on, here, there))
    return gaps


def _find_followed(groups: Sequence[int], depends: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the groups and all that they depend on, in one or more steps."""
    followed, stack = set(groups), list(groups)
    while stack:
        for on in depends.get(stack.pop(), ()):
            if on not in followed:
                followed.add(on)
                stack.append(on)
    return followed
