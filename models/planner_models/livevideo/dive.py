"""From mixes of trees to whole ones: settle what is nearly decided, let prices adapt to it, and go on.

A mix close to a single tree becomes that tree and takes its room for good; the objects that are left
see what room there is, and mix anew at the prices that follow. Objects of high bitrate are settled
first: a link is filled by large things and then small ones, not the other way round. With them go the
few that are worth most of all.
"""

from __future__ import annotations

import time
from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.mixing import STIFF, Effort, Mixing, hold
from planner_models.livevideo.pricing import carry, fits
from planner_models.livevideo.star import ROUNDING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEARLY: Final = 0.02
"""How far a mix may be from a tree and be settled out of turn."""

POPULAR: Final = 16
"""What is worth so many objects of the highest bitrates is settled with them: it hardly fits later."""

Pace = tuple[int, float]
"""Passes of a round, and the share of the objects of the highest bitrates that it settles, at least."""

SLOW: Final[Pace] = (2, 0.25)
BRISK: Final[Pace] = (3, 0.5)
FAST: Final[Pace] = (2, 0.5)

EFFORT: Final[Effort] = (6, 1)
WHOLE: Final[Effort] = (30, 129)
"""For trees that move prices, and for those that may be settled."""

LAST: Final = 12
"""So few objects are settled together in the last round."""


class Dive:
    """Whole trees for objects, round by round, by a mixing of its own.

    chosen   (Q, 3) links of the trees settled, -1 where there is none
    work     about how many subproblems the next round solves
    promise  about what all trees will be worth, or less: those settled, and what prices say of others;
             as of when the last of the largest bitrate were settled, or there is no other
    """

    def __init__(self, mixing: Mixing, *, pace: Pace = SLOW) -> None:
        layers = mixing.layers
        self.mixing = mixing
        self.rooms = [room.copy() for room in mixing.pricer.room]  # what settled trees leave
        self.turns, self.share = pace
        self.chosen = np.full((len(layers.group), 3), -1, dtype=np.int64)
        self.weight = np.floor(np.log2(layers.bitrate))
        top = (self.weight == self.weight[mixing.free].max()) & (layers.total > 0)
        self.weight[layers.total > POPULAR * layers.total[top].mean()] = self.weight[top].max()
        self.taken = np.zeros(len(mixing.limits.limit))
        self.worth, self.promise = 0.0, np.inf
        mixing.stiffness = STIFF
        mixing.room = self.rooms

    @property
    def left(self) -> int:
        """Objects that are not settled."""
        return len(self.mixing.free)

    @property
    def work(self) -> int:
        return self.turns * self.left

    def round(self, *, until: float = np.inf) -> None:
        """Mix anew and settle some; from `until` on, all of the last trees that fit."""
        mixing, layers = self.mixing, self.mixing.layers
        self._tighten()
        size = self.weight[mixing.free]
        place = np.flatnonzero(size == size.max())
        for _ in range(self.turns - 1):
            if time.perf_counter() < until:
                mixing.turn(EFFORT, until=until)
        if time.perf_counter() < until:
            if LAST < len(place) < self.left:
                mixing.turn(EFFORT, careful=(self.weight == size.max(), WHOLE), until=until)
            else:
                mixing.turn(WHOLE, until=until)
                self.promise = self.worth + float(mixing.best[mixing.free].sum())
                self.promise += float(mixing.price @ (mixing.limit - self.taken))
        hurry = time.perf_counter() > until
        far = mixing.distance()[place]
        order = np.argsort(far, kind="stable")
        count = max(LAST, int(self.share * len(order)), int(np.searchsorted(far[order], NEARLY)))
        if hurry:
            place, order = np.arange(len(size)), np.arange(len(size))
            count = len(order)
        objects = mixing.free[place[order[:count]]]
        merit = mixing.best[objects] / layers.bitrate[objects]
        objects = objects[np.argsort(-merit, kind="stable")]
        settled = self._settle(objects)
        if hurry or not settled.any():  # what does not fit now stays without
            left = objects[~settled[objects]]
            for o in left.tolist():
                mixing.choice[layers.object_first[o] : layers.object_first[o + 1]] = -1
            settled |= self._settle(left)
        self.worth += float(mixing.worth[settled].sum())
        mixing.free = mixing.free[~settled[mixing.free]]

    def _tighten(self) -> None:
        """Count on no room that is too little for another object of those that are left.

        Mixes may go over links without room, and so push prices up, but for those of the last bitrate.
        """
        mixing, layers, limits = self.mixing, self.mixing.layers, self.mixing.limits
        rates = np.unique(layers.bitrate[mixing.free])
        unit = np.where(limits.floor > 0, limits.floor, rates[0])
        more = np.floor(np.maximum(np.concatenate(self.rooms)[limits.link], 0.0) / unit + ROUNDING)
        counts = limits.floor > 0
        mixing.limit[counts] = (self.taken + more)[counts]
        if len(rates) == 1:
            mixing.limit[~counts] = (self.taken + rates[0] * more)[~counts]
            mixing.need = self.rooms

    def _settle(self, objects: Ints) -> NDArray[np.bool_]:
        """Give objects their last trees for good where they fit; (O,) which."""
        mixing, layers, limits = self.mixing, self.mixing.layers, self.mixing.limits
        a, b, c = self.rooms
        settled = np.zeros(len(layers.klass), dtype=np.bool_)
        settle(
            objects, settled, layers.object_first, layers.klass, layers.bitrate, layers.value,
            limits.cost, mixing.choice, mixing.sizes[0], mixing.sizes[1], mixing.start, mixing.link,
            mixing.share, mixing.worth, limits.first, limits.of_link, mixing.takes, mixing.load,
            self.taken, mixing.mark, a, b, c, self.chosen,
        )  # fmt: skip
        return settled


@nb.njit(cache=True, nogil=True)
def settle(
    objects: Ints, settled: NDArray[np.bool_], first: Ints, klass: Ints, rate: Floats, value: Floats,
    cost: Floats, choice: Ints, n_a: int, n_b: int, start: Ints, link: Ints, share: Floats, worth: Floats,
    row_first: Ints, row_of: Ints, takes: Floats, load: Floats, taken: Floats, mark: Ints,
    a_room: Floats, b_room: Floats, c_room: Floats, chosen: Ints,
) -> None:  # fmt: skip
    """Give objects their trees in `choice` for good, one after the other where they fit.

    taken  (M,) what settled trees take of each row, grows by these
    """
    for o in objects:
        if not fits(first[o], first[o + 1], rate[o], choice, a_room, b_room, c_room):
            continue
        settled[o] = True
        carry(first[o], first[o + 1], rate[o], -1.0, choice, a_room, b_room, c_room)
        for i in range(first[o], first[o + 1]):
            for column in range(3):
                chosen[i, column] = choice[i, column]
        worth[o] = hold(
            o, first, klass, rate, value, cost, choice, n_a, n_b, start, link, share,
            row_first, row_of, takes, load, mark,
        )  # fmt: skip
        for n in range(start[o], start[o + 1]):
            if share[n] > 0.5:  # 0 or 1 now, but for rounding
                for j in range(row_first[link[n]], row_first[link[n] + 1]):
                    taken[row_of[j]] += takes[klass[o], row_of[j]]
