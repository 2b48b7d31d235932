r"""The largest rates that every failure of a set leaves routable, by cutting planes over the failures.

$$\max \sum_k v_k b_k \quad\text{s.t.}\quad 0 \le b \le d,\quad
b \text{ can be routed without the links of } s \;\forall s$$

A failure s answers with the largest total flow of rates b over what it leaves, and with a cut where not all
of them fit (`failure_networks`). A demand that the failure leaves without a path does not count in it. The
master problem, over b alone, is solved by an interior point without crossover, whose solutions lie in the
middle of all optima: cuts there are far fewer than at vertices. Its dual values give the bound. Rates that
fit less and less, failure after failure, are a feasible solution.

Classes follow one another by priority, each with its values v: cuts stay, and what the levels before reached
is kept.

source  Kelley, "The cutting-plane method for solving convex programs" (1960)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract.progress import report
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import NEGLIGIBLE, OPTIMALITY, SOLVER
from planner_models.traffic.designs.class_priorities import HELD
from planner_models.traffic.designs.failure_robust.failure_networks import NO_LOSS, Answer, FailureNetwork

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
MAX_ROUNDS: Final = 1_000
MAX_STEPS: Final = 100  # of the common share in one failure
SMALLEST_RATE: Final = NEGLIGIBLE  # of a demand; less that fits is rounding
LEAST_RATE: Final = SOLVER  # of a demand, asked for besides, so that every demand has a coefficient in cuts
FIT_SHARE: Final = 0.3  # of the gap: rates that lose no more in the failures asked first are fitted into all
ACTIVE_ROUNDS: Final = 3  # after its last cut, in which a failure is asked before the others


class SurvivableRates:
    """The search: best rates so far, with their value, and a bound on that of all.

    best   (K,) Mbit/s; None before the first
    value  of the best rates in the present level, whose bound is `bound`
    """

    def __init__(self, offered_mbps: Floats, networks: Sequence[FailureNetwork]) -> None:
        self.offered = offered_mbps
        self._networks = networks
        self.best: Floats | None = None if offered_mbps.any() else offered_mbps.copy()
        self._least = NO_LOSS * float(offered_mbps.sum())
        self._last_cut = np.full(len(networks), -ACTIVE_ROUNDS)
        self._master = _Master(offered_mbps)
        self._round = 0
        self._held: list[tuple[Floats, float]] = []
        self.maximize(np.ones(len(offered_mbps)))

    def maximize(self, weight: Floats) -> None:
        """Take values of a Mbit/s of each demand, (K,); from the start they are 1."""
        self._weight = weight
        self._master.maximize(weight)
        self.value = 0.0 if self.best is None else float(weight @ self.best)
        self.bound = float(weight @ self.offered)

    def next_level(self, weight: Floats) -> None:
        """Keep the values of the levels so far, and go on with values of a Mbit/s of each demand, (K,)."""
        if self.best is not None:
            self._held.append((self._weight, self.value))
            self._master.keep(self._weight, self.value)
        self.maximize(weight)

    def run(self, options: Options, deadline: Deadline = NEVER) -> None:
        """Search to the gap of the options, or until a deadline."""
        gap = DEFAULT_GAP if options.gap is None else options.gap
        if self.bound - self.value <= gap * self.bound:
            return
        rates, is_exact = self.offered, False
        if self._round:
            rates = self._solve(options, is_exact=False)
        for _ in range(MAX_ROUNDS):
            rates = np.clip(rates, 0.0, self.offered)
            some = np.maximum(rates, LEAST_RATE * self.offered)
            active = np.flatnonzero(self._round - self._last_cut <= ACTIVE_ROUNDS)
            lost = self._ask(some, rates, active, deadline) if len(active) and self._round else {}
            few = FIT_SHARE * gap * min([self.bound, *(value for _, value in self._held)])
            if sum(lost.values()) <= few:
                lost = self._ask(some, rates, np.arange(len(self._networks)), deadline)
                # what the least rates add may lose more than the rates themselves
                if sum(lost.values()) <= few:
                    lost = self._ask(rates, rates, np.arange(len(self._networks)), deadline)
                self._fit(rates, lost, gap, deadline)
            if self._is_late(deadline):
                return
            if self._round and not self._held:
                report("delivered_mbps", self.value, self.bound)
            if self.bound - self.value <= gap * self.bound or (is_exact and not lost):
                return
            # where the middle of the optima fits, only a vertex has more
            is_exact = not lost
            self._round += 1
            rates = self._solve(options, is_exact=is_exact)

    def _solve(self, options: Options, *, is_exact: bool) -> Floats:
        rates, bound = self._master.solve(options, is_exact=is_exact)
        self.bound = max(min(self.bound, bound), self.value)
        return rates

    @staticmethod
    def _is_late(deadline: Deadline) -> bool:
        return deadline.is_over

    def _ask(self, asked: Floats, rates: Floats, selected: Ints, deadline: Deadline) -> dict[int, float]:
        """Test the rates in failures; add their cuts, and return the loss of each lossy one, Mbit/s.

        asked  at least the rates; what is asked beyond them may be lost
        """
        lost: dict[int, float] = {}
        tolerance_mbps = self._least + float((asked - rates).sum())
        for index in selected.tolist():
            if self._is_late(deadline):
                break
            answer = self._networks[index].ask(asked)
            missing = float((asked - answer.fits_mbps).sum())
            if missing > tolerance_mbps:
                lost[index] = missing
                self._last_cut[index] = self._round
                self._master.add(answer)
        return lost

    def _fit(self, rates: Floats, lost: dict[int, float], gap: float, deadline: Deadline) -> None:
        """Take rates that fit in each failure, those first that lose most: the others lose less then."""
        for index in sorted(lost, key=lambda network_index: -lost[network_index]):
            if self._is_late(deadline):
                return
            answer = self._networks[index].ask(rates)
            rates = np.minimum(rates, answer.fits_mbps)
            rates = np.where(rates > SMALLEST_RATE * self.offered, rates, 0.0)
            self._master.add(answer)
        is_kept = all(float(weight @ rates) >= value * (1 - gap) for weight, value in self._held)
        value = float(self._weight @ rates)
        if not self._is_late(deadline) and is_kept and (self.best is None or value > self.value):
            self.best, self.value = rates, value


def grow_together(
    offered_mbps: Floats, networks: Sequence[FailureNetwork], deadline: Deadline
) -> tuple[float | None, float]:
    """Return the largest share of all demands alike that every failure leaves routable, and a bound on it.

    In each failure, the cut of a share that does not fit gives the next share, until one fits: Newton's
    method from above, so that every share is a bound. The share is None where time is up.
    """
    share, smallest = 1.0, NO_LOSS * float(offered_mbps.sum())
    for network in networks:
        demand_mbps = np.where(network.has_route, offered_mbps, 0.0)
        for _ in range(MAX_STEPS):
            if deadline.is_over:
                return None, share
            answer = network.ask(share * demand_mbps)
            if float((share * demand_mbps - answer.fits_mbps).sum()) <= smallest:
                break
            smaller = answer.limit / float(answer.coefficient @ demand_mbps)
            if smaller >= share * (1 - NO_LOSS):
                break
            share = smaller
    return share, share


class _Master:
    """The master problem over rates in one session of HiGHS: the largest value under the cuts so far."""

    def __init__(self, offered_mbps: Floats) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs = highs
        self._unit = max(float(offered_mbps.max(initial=0.0)), 1e-300)
        self._most = offered_mbps / self._unit
        count = len(offered_mbps)
        self._weight = np.ones(count)
        program = LinearProgram.build(
            sense="max", cost=self._weight, upper=self._most, name="traffic survivable rates"
        )
        self._session: Any = highs.load(program, Options(threads=1))
        # rows "at most"; a level that is kept is one with its signs turned
        self._coefficients: list[Floats] = []
        self._limits: list[float] = []

    def maximize(self, weight: Floats) -> None:
        """Take values of a Mbit/s of each demand, (K,)."""
        self._weight = weight
        columns = np.arange(len(weight), dtype=np.int32)
        self._session.changeColsCost(len(weight), columns, -weight)  # the session minimizes

    def keep(self, weight: Floats, value: float) -> None:
        """Keep at least a value, for values of a Mbit/s of each demand, (K,)."""
        self._add_row(-weight, -value * (1 - HELD) / self._unit)

    def add(self, answer: Answer) -> None:
        """Add the cut of an answer."""
        if (answer.coefficient > 0).any():
            self._add_row(answer.coefficient, answer.limit / self._unit)

    def _add_row(self, coefficient: Floats, limit: float) -> None:
        used = np.flatnonzero(coefficient)
        self._session.addRow(-np.inf, limit, len(used), used.astype(np.int32), coefficient[used])
        self._coefficients.append(coefficient.copy())
        self._limits.append(limit)

    def solve(self, options: Options, *, is_exact: bool) -> tuple[Floats, float]:
        """Return rates (K,) and a bound on the value of all, Mbit/s; exact: a vertex of the optima."""
        self._session.setOptionValue("solver", "simplex" if is_exact else "ipm")
        self._session.setOptionValue("run_crossover", "off")
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL and not is_exact:  # its tolerance may be out of reach
            return self.solve(options, is_exact=True)
        solution = self._session.getSolution()
        cuts, limits = sp.csr_array(np.array(self._coefficients)), np.array(self._limits)
        # any prices at least 0 give a bound
        price = np.maximum(-np.array(solution.row_dual), 0.0)
        gain = np.maximum(self._weight - cuts.T @ price, 0.0)
        bound = float(price @ limits + gain @ self._most) * self._unit
        return np.array(solution.col_value) * self._unit, bound
