"""Other trees from a dive of their own, polished, in pieces: given up as soon as they promise too little."""

from __future__ import annotations

import time
from typing import Final

from planner_models.livevideo.dive import Dive, Pace
from planner_models.livevideo.eviction import Guide
from planner_models.livevideo.mixing import Mixing
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer

POLISH: Final = 8
"""Turns of ruin and recreate, at most, that trees get before they are offered."""

TURNS: Final = 2
"""Rounds of ruin and recreate for an object in a turn."""

LEAST: Final = 50
"""Rounds that there are besides, however few the objects are."""

SUBPROBLEM: Final = 0.25
"""Rounds of ruin and recreate that take as long as a subproblem of a dive."""

EARLY: Final = 0.25
"""Share of the objects from which on a dive goes to its end, whatever it promises."""


class Attempt:
    """Trees that come from a dive and are polished.

    packing  the trees
    over     whether nothing more is to be done: they are polished, or do not become the best in time
    """

    def __init__(self, mixing: Mixing, pricer: Pricer, seed: int, guide: Guide, pace: Pace) -> None:
        """Dive from the mix as it is, with a pricer that nobody else uses meanwhile."""
        self.packing, self.guide = Packing(mixing.layers, pricer, seed), guide
        self.packing.dual = mixing.dual.copy()
        self.dive: Dive | None = Dive(mixing.copy(pricer, seed), pace=pace)
        self.count = len(mixing.free)
        self.turn = TURNS * self.count + LEAST  # rounds of polishing
        self.left = POLISH
        self.over = False

    def work(self, rounds: float, standing: float, until: float) -> None:
        """What takes as long as so many rounds of polishing; in haste from time.perf_counter() `until` on.

        standing  what the best trees are worth
        """
        while rounds > 0 and not self.over:
            rounds -= SUBPROBLEM * self.dive.work if self.dive is not None else self.turn
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
                packing.fill(guide.prices, packing.by_merit(guide.worth), until=until)
                packing.keep()
                self.dive = None
            return
        before = packing.best_total
        packing.work(guide, self.turn, 0.0, until)
        self.left -= 1
        late = time.perf_counter() > until
        hopeless = standing - packing.best_total > self.left * (packing.best_total - before)
        self.over = self.left == 0 or late or hopeless
