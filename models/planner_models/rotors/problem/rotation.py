"""The rotation of rotor switches: which racks each switch connects when, whatever the demand.

The n - 1 matchings of n racks, in which each rack sends to each other one once, are dealt out to the u
switches. A switch keeps each of its K = ceil((n - 1) / u) positions for a day, after a night; positions that
are left over stay dark. Switches change one after another, a K u-th part of a cycle apart, so that few are
dark at once.

source  Mellette et al. 2017 (RotorNet); changes one after another: Mellette et al. 2020 (Opera)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints

DARK: Final = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Rotation:
    """A fixed rotation of u switches through K positions each.

    target    (u, K, n) rack that each rack sends to in a position of a switch; DARK for none
    day_us    time that a position lasts
    night_us  time before it in which the switch is dark; without effect for a single position
    """

    target: Ints
    day_us: float
    night_us: float

    @property
    def positions(self) -> int:
        """Number of positions of a switch, K."""
        return int(self.target.shape[1])

    @property
    def slot_us(self) -> float:
        """Time from one position of a switch to the next, us."""
        return self.day_us + (self.night_us if self.positions > 1 else 0.0)

    @property
    def cycle_us(self) -> float:
        """Time after which all repeats, us."""
        return self.positions * self.slot_us

    @property
    def duty_cycle(self) -> float:
        """Share of the time in which a switch is not dark."""
        return self.day_us / self.slot_us

    @cached_property
    def starts_us(self) -> Floats:
        """(u, K) start of each position's day within the cycle, us; from 0 to less than the cycle."""
        switches, positions, _ = self.target.shape
        offset = np.arange(switches)[:, None] / switches * self.slot_us
        start = offset + np.arange(positions) * self.slot_us + (self.slot_us - self.day_us)
        inside: Floats = start % self.cycle_us
        return inside

    @cached_property
    def up_share(self) -> Floats:
        """(n, n) share of the cycle in which a switch connects row to column, over all switches."""
        racks = self.target.shape[2]
        share: Floats = np.zeros((racks, racks))
        switch, position, source = np.nonzero(self.target != DARK)
        np.add.at(share, (source, self.target[switch, position, source]), self.day_us / self.cycle_us)
        return share


def make_rotation(racks: int, switches: int, day_us: float, night_us: float, seed: int | None) -> Rotation:
    """Return the rotation of some switches: of shifts, or of random matchings where there is a seed."""
    matchings = shift_racks(racks) if seed is None else draw_matchings(racks, seed)
    positions = -(-len(matchings) // switches)
    target: Ints = np.full((switches, positions, racks), DARK, dtype=np.int64)
    for index, matching in enumerate(matchings):
        switch, position = index % switches, index // switches
        # shifted by switch, so that positions that stay dark are apart in time
        target[switch, (position + switch) % positions] = matching
    return Rotation(target=target, day_us=day_us, night_us=night_us)


def shift_racks(racks: int) -> Ints:
    """Return (n - 1, n) matchings in which rack i sends to rack i + 1, i + 2, and so on around a circle."""
    each = np.arange(racks, dtype=np.int64)
    shifted: Ints = (each[None, :] + np.arange(1, racks)[:, None]) % racks
    return shifted


def draw_matchings(racks: int, seed: int) -> Ints:
    """Return (n - 1, n) random matchings in which each rack sends to each other one once.

    Each is the assignment of the least random weight among pairs that none before has; as all racks have
    equally many pairs left, there is one (Koenig).
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    random = np.random.default_rng(seed)
    is_unused = ~np.eye(racks, dtype=bool)
    matchings: Ints = np.empty((racks - 1, racks), dtype=np.int64)
    for index in range(racks - 1):
        weight = np.where(is_unused, random.random((racks, racks)), 2.0 * racks)
        source, matchings[index] = linear_sum_assignment(weight)
        is_unused[source, matchings[index]] = False
    return matchings
