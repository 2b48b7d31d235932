"""VDN's optimization by decomposition: a tree for each object, prices for the links, and a proven bound.

At prices on the links the objects part: the best tree of each is a small problem of its own (`exact`
for few requests, `relaxation` for many), and what they are worth together, plus the price of all
room, is more than any plan is worth. Mixing trees object by object (`mixing`) finds prices that make
this bound small. From the mixes whole trees are settled, large bitrates first (`dive`), and ruined
and recreated (`packing`); that is attempted again and again (`attempt`), until the gap is reached or
time is up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof, Status, relative_gap
from planner.system import Decision
from planner_models.livevideo import layers as arrays
from planner_models.livevideo import optimum
from planner_models.livevideo.attempt import LEAST, Attempt
from planner_models.livevideo.compiled import get_ready
from planner_models.livevideo.dive import BRISK, FAST, SLOW, Pace
from planner_models.livevideo.eviction import Guide
from planner_models.livevideo.limits import Limits
from planner_models.livevideo.measure import OBJECTIVE, measure
from planner_models.livevideo.mixing import Effort, Mixing
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, rows_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIME_LIMIT_S: Final = 60.0
GAP: Final = 1e-3
THREADS: Final = 2

QUICK: Final[Effort] = (6, 1)
"""For trees that are good enough to move prices."""

GOOD: Final[Effort] = (6, 2)
"""For trees that mixes converge with."""

FINE: Final[Effort] = (30, 65)
"""Once that makes no progress any more."""

TIGHT: Final[Effort] = (60, 129)
"""For a bound."""

CALM: Final = 0.3
"""Share of the newest prices in the mean that bounds are computed at."""

PATIENCE: Final = 3
"""Bounds in a row that are no better by `PROGRESS` before the search turns to trees alone."""

PROGRESS: Final = 5e-3
"""Share of the gap."""

MOST: Final = 5
"""Bounds, at most, of what is small."""

PASSES: Final = 6
"""Passes over all objects between two bounds."""

PIECE: Final = 4
"""Work for an object in a piece of an attempt."""

WORK: Final = {GOOD: 0.25, FINE: 1.0, TIGHT: 1.25}
"""Work for an object in a pass or a bound: what takes as long as so many rounds of ruin and recreate."""

IDLE: Final = 3
"""Pieces of ruin and recreate in a row that gain no more than `GAINED` before a dive is attempted beside."""

GAINED: Final = 0.01
"""Share of the gap."""

FIRST: Final = 1e12
"""Merit of trees that must stay."""

WARMTH: Final = 0.005
"""Temperature of ruin and recreate at the start of a cycle, in mean worths of an object."""

CYCLE: Final = 8
"""Pieces of work in which it cools down; in the first it is cold."""

SMALL: Final = 3_000
"""Links that objects may use, all together, up to which integer programming closes what gap is left."""

LARGE: Final = 12_000
"""Requests from which the first dive takes larger steps, and others wait until bounds make no progress."""

FRESH: Final = 6
"""Pieces of work that the trees of the last plan get at the last prices, before these are looked into."""

RENEWING: Final = 8
"""Passes over the last plan's trees, so that mixes are of this window, before these are dived from."""

SETTLING: Final = 0.5
"""Share of the time after which prices are taken as they are."""

ROUNDING: Final = 1e-10
"""Share of what is added up that a bound is raised by, so that it holds whatever was rounded."""

Moved = Annotated[
    Annotated[int, Field(ge=0)] | None,
    Field(
        description="most objects of the last plan whose trees may change, but for branches that nobody "
        "asks for any more; none: any number"
    ),
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced(Decision[Trees]):
    """A decision that remembers the prices it was made at, for the next window to start from.

    prices  by row: a link and the bitrate that the row counts, 0 for its capacity
    """

    prices: dict[tuple[str, float], float] = field(default_factory=dict)


def distribute(
    problem: LiveVideo,
    *,
    most_moved: Moved = None,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """Trees for all objects by decomposition, with a proven bound; the default at scale.

    Stops at the gap asked for (default 0.1%) or at the time limit (default 60 s). With `previous`
    it starts from that plan and, where they are known, its prices. The same seed takes the same
    course, with any number of threads: where the gap ends it, the plan is the same; a time limit
    ends it sooner or later, which may be at another plan.

    raises  InputError for another backend: it is a solver of its own; for more than four tiers
            `optimum.distribute` is asked
    source  Mukerjee 2018, Fig. 4.8; Dantzig and Wolfe 1960
    """
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': 'vdn' is a solver of its own, leave it out")
    if len(problem.tiers) > arrays.MOST_TIERS:
        return optimum.distribute(problem, options=options)
    if not len(problem.requests) and not len(problem.pinned_links):
        empty = arrays.of(problem).plan(np.zeros((0, 3), dtype=np.int64))
        proof = Proof(status=Status.OPTIMAL, objective=0.0, bound=0.0, metric=OBJECTIVE, backend="columns")
        return Decision(plan=empty, proof=proof)
    get_ready()  # not within the time limit
    return _Search(problem, options, previous, most_moved).run()


class _Search:
    """One run: prices and the bound they prove on one side, whole trees on the other."""

    def __init__(
        self, problem: LiveVideo, options: Options, previous: Decision[Trees] | None, most_moved: int | None
    ) -> None:
        limit_s = options.time_limit_s or TIME_LIMIT_S
        self.until = time.perf_counter() + limit_s
        self.settled = self.until - (1 - SETTLING) * limit_s  # when prices must be
        self.gap = GAP if options.gap is None else options.gap
        self.threads = options.threads or min(THREADS, os.cpu_count() or 1)
        self.problem, self.most_moved = problem, most_moved
        self.seed = options.seed or 0
        self.layers = layers = arrays.of(problem)
        self.limits = Limits(layers)
        self.pricer, self.alone, self.beside = (Pricer(layers, n) for n in (self.threads, 1, 1))
        self.mixing = Mixing(layers, self.limits, self.pricer, self.seed)
        self.packing = Packing(layers, self.pricer, self.seed)
        self.asked = np.flatnonzero(np.diff(layers.object_first) > 0)
        self.large = len(layers.group) > LARGE
        self.small = len(self.mixing.link) <= SMALL and most_moved is None
        self.attempts = most_moved is None  # else most trees stay: there is little to dive for
        self.first: Attempt | None = None  # of each thread
        self.second: Attempt | None = None
        self.turn = 0
        self.bound = np.inf
        self.price = np.zeros(len(self.limits.limit))  # where the bound is
        self.mean: Floats | None = None
        self.before: Ints | None = None
        self.warm = self.late = False
        if previous is not None and previous.plan is not None:
            self.before = layers.choice(previous.plan)
            remembered = previous.prices if isinstance(previous, Priced) else {}
            self.price = self.limits.named(remembered)
            self.warm = bool(self.price.any())
            self.last_plan: Trees = previous.plan

    # --- the course of it -------------------------------------------------------------------

    def run(self) -> Decision[Trees]:
        if self.before is not None:
            self.mixing.start_from(self.before, self.price if self.warm else None)
        self._settle_prices()
        self._pack()
        if not self._done():
            self._side_by_side()
        self.pricer.close()
        if self.small and not self._done():
            self._exactly()
        return self._decision()

    def _settle_prices(self) -> None:
        """Passes over all objects until prices hardly move, and a first bound."""
        if self.warm:  # the last prices, as they are
            self.mean = self.price.copy()
            self._prove(FINE)
            return
        for count, effort in ((4, QUICK), (16, GOOD)):
            for _ in range(count):
                if self.mean is not None and time.perf_counter() > self.settled:
                    break
                self._pass(effort, self.settled)
        self.late = time.perf_counter() > self.settled
        self._prove(GOOD if self.late else TIGHT)

    def _pass(self, effort: Effort, until: float | None = None) -> None:
        self.mixing.turn(effort, until=self.until if until is None else until)
        price = self.mixing.price
        calm = self.mean is not None and self.mixing.passes > 4
        self.mean = (1 - CALM) * self.mean + CALM * price if calm and self.mean is not None else price

    def _prove(self, effort: Effort = TIGHT) -> None:
        """A bound at the mean of the last prices."""
        assert self.mean is not None
        mixing, layers = self.mixing, self.layers
        by_link = self.limits.by_class(self.mean)
        choice, best, bound = mixing.pricer.solve(
            by_link, mixing.dual.copy(), *effort, mixing.choice, self.until
        )
        room = self.mean @ self.limits.limit
        total = float(bound.sum() + room) - layers.must * layers.pinned
        total += ROUNDING * float(bound.sum() + room)
        if total < self.bound or not np.isfinite(self.bound):
            self.bound, self.price = total, self.mean.copy()
            self.guide = Guide(prices=by_link, trees=choice, worth=best)

    # --- whole trees ------------------------------------------------------------------------

    def _pack(self) -> None:
        """Trees that fit: those of the last plan and what can be added, or from a dive."""
        if self.before is None:
            self._dive(FAST if self.late else BRISK if self.large else SLOW)
            return
        carried = np.zeros(len(self.layers.klass), dtype=bool)
        carried[self.layers.item[self.before[:, 2] >= 0]] = True
        merit = self.guide.worth.copy()
        if self.most_moved is not None:
            known, _ = rows_of(self.problem, self.last_plan)
            carried[known[known >= 0]] = True
            merit[self._hold(self.before, carried)] = FIRST
        start = np.where(carried[self.layers.item][:, None], self.before, self.guide.trees)
        self.packing.rebuild(start, self.guide.prices, self.mixing.dual, merit)
        idle = 0
        for _ in range(FRESH):
            if self._done() or idle == 2:  # neither what is evicted nor what is ruined gains
                break
            standing = self.packing.best_total
            self.packing.work(self.guide, len(self.asked) // 4, 0.0, self.until)
            idle = 0 if self._gained(standing) else idle + 1
        if self.warm and self.attempts and not self.large and not self._done():
            for _ in range(RENEWING):
                self._pass(GOOD)
            self._dive(SLOW)

    def _dive(self, pace: Pace) -> None:
        """Trees from a dive by all threads; polished until they are better than those that are there."""
        attempt = Attempt(self.mixing, self.pricer, self.seed, self.guide, pace)
        packing = attempt.packing
        standing = self.packing.best_total if self.before is not None else -np.inf
        while not attempt.over and (attempt.dive is not None or packing.best_total <= standing):
            attempt.piece(standing, self.until)
        if packing.best_total > standing:
            self.packing.dual = packing.dual
            self.packing.adopt(packing.best_choice)

    def _hold(self, before: Ints, carried: NDArray[np.bool_]) -> Ints:
        """Let only so many trees of the last plan change, those that gain most by it; objects of others."""
        layers, guide = self.layers, self.guide
        gain = np.where(carried, guide.losses(layers, before), -np.inf)
        last = np.flatnonzero(carried)
        moving = np.argsort(-gain, kind="stable")[: min(self.most_moved or 0, len(last))]
        held = np.setdiff1d(last, moving)
        self.packing.freeze(held)
        return held

    # --- both, side by side -------------------------------------------------------------------

    def _side_by_side(self) -> None:
        """Better bounds, and then attempts, in one thread; ruin and recreate in another, piece by piece,
        and attempts of its own while that gains nothing.

        What each piece does is fixed before it begins, and results are exchanged only between
        pieces: one thread after the other gives the same.
        """
        self.mixing.pricer = self.alone
        pool = ThreadPoolExecutor(1) if self.threads > 1 else None
        self.standing = self.packing.best_total  # as of the beginning of the piece
        course = self._course()
        work: int | None = next(course)
        step, idle = 0, 0
        while work is not None and time.perf_counter() < self.until and not self._done():
            heat = WARMTH * (1 - (step % CYCLE) / CYCLE) ** 2 if step >= CYCLE else 0.0
            rounds = work + LEAST
            if step % CYCLE == 0:
                self.packing.back()
            step += 1
            self.standing = self.packing.best_total
            if self.second is None and idle >= IDLE and self.attempts:
                self.second = self._attempt(self.beside)
            piece: Callable[[], None]
            if self.second is not None:
                piece = partial(self.second.work, rounds, self.standing, self.until)
            else:
                temperature = heat * abs(self.packing.best_total) / max(len(self.asked), 1)
                piece = partial(self.packing.work, self.guide, rounds, temperature, self.until)
            if pool is None:
                piece()
                work = next(course, None)
            else:
                other = pool.submit(piece)
                try:
                    work = next(course, None)
                finally:
                    other.result()
            if self.second is None:
                idle += 1
            self.first, self.second = self._taken(self.first), self._taken(self.second)
            if self._gained(self.standing):
                idle = 0
        if pool is not None:
            pool.shutdown()

    def _gained(self, standing: float) -> bool:
        """Whether the best trees are worth more than they were by a share of the gap that counts."""
        return self.packing.best_total - standing > GAINED * (self.bound - standing)

    def _taken(self, attempt: Attempt | None) -> Attempt | None:
        """The attempt, while it is not over; then its trees are taken where they are better."""
        if attempt is None or not attempt.over:
            return attempt
        if attempt.packing.best_total > self.packing.best_total:
            self.packing.adopt(attempt.packing.best_choice)
        return None

    def _course(self) -> Iterator[int]:
        """What one thread does, in pieces; yields before each how much work it is."""
        count = len(self.asked)
        stalled, tried = 0, 0
        if self.warm and not self.small:  # the bound is good already
            yield from self._attempted()
            stalled = PATIENCE - 1
        while stalled < PATIENCE and not (self.small and tried == MOST):
            tried += 1
            before = self.bound
            effort = FINE if stalled else GOOD
            yield int(WORK[effort] * PASSES * count)
            for _ in range(PASSES):
                self._pass(effort)
            yield int(WORK[TIGHT] * count)
            self._prove()
            if before - self.bound <= PROGRESS * (before - self.standing):  # smaller steps, by better trees
                stalled += 1
                self.mixing.stiffness *= 0.5
            else:
                stalled = min(stalled, 1)
        while not self.small:
            yield from self._attempted()

    def _attempted(self) -> Iterator[int]:
        """An attempt of the first thread, in pieces as `_course`."""
        if not self.attempts:
            yield len(self.asked)
            return
        piece = PIECE * len(self.asked)
        yield piece
        attempt = self.first = self._attempt(self.alone)
        attempt.work(piece, self.standing, self.until)
        while not attempt.over:
            yield piece
            attempt.work(piece, self.standing, self.until)

    def _attempt(self, pricer: Pricer) -> Attempt:
        """Another dive from the mix as it is; objects come in another order each time."""
        self.turn += 1
        return Attempt(self.mixing, pricer, self.seed + self.turn, self.guide, FAST if self.large else SLOW)

    def _exactly(self) -> None:
        """Leave what is small, and whose gap does not close, to integer programming."""
        left = self.until - time.perf_counter()
        if left <= 0:
            return
        options = Options(time_limit_s=left, gap=self.gap, threads=self.threads, seed=self.seed)
        found = optimum.distribute(self.problem, options=options)
        if found.plan is not None:
            self.packing.adopt(self.layers.choice(found.plan))
        if found.proof.bound is not None:
            self.bound = min(self.bound, found.proof.bound)

    def _done(self) -> bool:
        gap = relative_gap(self.packing.value(), self.bound)
        return gap is not None and gap <= self.gap

    def _decision(self) -> Decision[Trees]:
        plan = self.layers.plan(self.packing.best_choice)
        worth = measure(self.problem, plan, None)[OBJECTIVE] or 0.0
        bound = max(self.bound, worth)
        missing = self.layers.pinned - self.packing.served_pins()
        keeps = frozenset({"capacity", "forbidden"}) if missing else None
        gap = relative_gap(worth, bound)
        optimal = gap is not None and gap <= max(self.gap, 1e-9) and not missing
        return Priced(
            plan=plan,
            proof=Proof(
                status=Status.OPTIMAL if optimal else Status.FEASIBLE,
                objective=worth,
                bound=bound if not missing else None,
                metric=OBJECTIVE,
                backend="columns",
            ),
            keeps=keeps,
            prices=self.limits.remembered(self.price),
        )
