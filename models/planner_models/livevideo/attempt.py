"""Other trees from a dive of their own, polished, in pieces: given up as soon as they promise too little."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from planner_models.livevideo.dive import Dive, Pace
from planner_models.livevideo.eviction import Guide
from planner_models.livevideo.mixing import Mixing
from planner_models.livevideo.packing import Packing

POLISH: Final = 8
"""Turns of ruin and recreate, at most, that trees get before they are offered."""

TURNS: Final = 2
"""Rounds of ruin and recreate for an object in a turn."""

LEAST: Final = 50
"""Rounds of a turn that there are besides."""

EARLY: Final = 0.25
"""Share of the objects from which on a dive goes to its end, whatever it promises."""

FACTORS: Final = (1.0, 0.9, 0.5, 0.0)
"""Shares of the prices, in turn, at which what a dive left without trees is placed."""


class Attempt:
    """Trees that come from a dive and are polished.

    packing  the trees
    over     whether nothing more is to be done: they are polished, or do not become the best in time
    """

    def __init__(self, mixing: Mixing, packing: Packing, guide: Guide, pace: Pace) -> None:
        """Dive by a mixing that nobody else uses."""
        self.packing, self.guide = packing, guide
        packing.dual = mixing.dual.copy()
        self.dive: Dive | None = Dive(mixing, [room.copy() for room in packing.full], pace=pace)
        self.count = len(mixing.free)
        self.left = POLISH
        self.over = False

    @property
    def next(self) -> int:
        """About how many subproblems the next piece solves."""
        return self.dive.work if self.dive is not None else self._turn

    @property
    def _turn(self) -> int:
        return TURNS * self.count + LEAST

    def work(self, subproblems: int, standing: float, until: float) -> None:
        """So much of it, about; all that is left in haste from time.perf_counter() `until` on.

        standing  what the best trees are worth
        """
        while subproblems > 0 and not self.over:
            subproblems -= self.next
            self.piece(standing, until)

    def piece(self, standing: float, until: float) -> None:
        """A round of the dive, or a turn of polishing."""
        packing, guide = self.packing, self.guide
        if self.dive is not None:
            self.dive.round(until=until)
            early = self.dive.left > EARLY * self.count  # what is lost later is found again by polishing
            late = time.perf_counter() > until and standing > 0
            self.over = late or (early and self.dive.promise <= standing)
            if not self.over and not self.dive.left:
                packing.adopt(self.dive.chosen)
                fill(packing, guide, until)
                self.dive = None
            return
        before = packing.best_total
        packing.work(guide, self._turn, 0.0, until)
        self.left -= 1
        late = time.perf_counter() > until
        hopeless = standing - packing.best_total > self.left * (packing.best_total - before)
        self.over = self.left == 0 or late or hopeless


def fill(packing: Packing, guide: Guide, until: float) -> None:
    """Give trees to what has none, those worth most first, and then at lower prices."""
    order = np.argsort(-guide.worth / packing.layers.bitrate, kind="stable").astype(np.int64)
    for factor in FACTORS:
        packing.total += packing.fill(guide.prices, factor, order)
        if time.perf_counter() > until:
            break
    packing.keep()
