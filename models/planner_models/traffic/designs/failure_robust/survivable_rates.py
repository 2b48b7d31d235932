r"""The largest rates that every failure of a set leaves routable, by cutting planes over the failures.

$$\max \sum_k b_k \quad\text{s.t.}\quad 0 \le b \le d,\quad b \text{ can be routed without the links of } s
\;\forall s$$

A failure s asks for the largest total flow of rates b over what it leaves (`least_cost`). Its link prices p,
with the distances of the demands under them, cut off a b that does not fit:

    sum of b_k min(1, dist_k(p))   <=   sum of capacity p

which holds for every p at least 0 and every b that fits. A demand that the failure leaves without a path does
not count in it. The master problem, over b alone, is solved by an interior point without crossover, whose
solutions lie in the middle of all optima: cuts there are far fewer than at vertices. Its dual values give the
bound. Rates that fit less and less, failure after failure, are a feasible solution.

source  Kelley, "The cutting-plane method for solving convex programs" (1960); metric inequalities: Onaga and
        Kakusho, "On feasibility conditions of multicommodity flows in networks" (1971)
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract.progress import report
from planner.contract.proof import Status
from planner.options import Options
from planner_models.traffic.designs.path_flows.least_cost import LeastCostFlow
from planner_models.traffic.designs.path_flows.path_pool import order_demands
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = 1e-6  # relative, where options give none
MAX_ROUNDS: Final = 1_000
NO_LOSS: Final = 1e-9  # of all traffic: a failure that loses less loses nothing
SMALLEST_RATE: Final = 1e-9  # of a demand; less that fits is rounding
LEAST_RATE: Final = 1e-7  # of a demand, so that every demand has a coefficient in cuts
FIT_SHARE: Final = 0.3  # of the gap: rates that lose no more in the failures asked first are fitted into all
ACTIVE_ROUNDS: Final = 3  # after its last cut, in which a failure is asked before the others


class _Answer(NamedTuple):
    """Part of rates b (K,) that fits after a failure, (K,) Mbit/s, and a cut.

    coefficient  (K,), limit  of the cut: coefficient @ b <= limit
    """

    fits_mbps: Floats
    coefficient: Floats
    limit: float


class SurvivableRates:
    """The search: best rates so far, with their total, and a bound on that of all.

    best  (K,) Mbit/s; None before the first
    """

    def __init__(self, problem: Traffic, failures: FailureSet) -> None:
        self.offered = problem.rate_mbps
        self._networks = [_Network(problem, down) for down in list_outages(problem, failures)]
        self.best: Floats | None = None
        self.value, self.bound = 0.0, float(self.offered.sum())
        self._least = NO_LOSS * self.bound
        self._last_cut = np.full(len(self._networks), -ACTIVE_ROUNDS)
        self._master = _Master(self.offered)

    def run(self, options: Options, until: float | None = None) -> None:
        """Search to the gap of the options, or until a time of time.perf_counter()."""
        gap = DEFAULT_GAP if options.gap is None else options.gap
        rates, is_exact = self.offered, False
        for round_ in range(MAX_ROUNDS):
            rates = np.clip(rates, LEAST_RATE * self.offered, self.offered)
            active = np.flatnonzero(round_ - self._last_cut <= ACTIVE_ROUNDS)
            lost = self._ask(rates, active, round_, until) if len(active) and round_ else {}
            if sum(lost.values()) <= FIT_SHARE * gap * self.bound:
                lost = self._ask(rates, np.arange(len(self._networks)), round_, until)
                self._fit(rates, lost, until)
            if self._is_late(until):
                return
            if round_:
                report("delivered_mbps", self.value, self.bound)
            if self.bound - self.value <= gap * self.bound or (is_exact and not lost):
                return
            # where the middle of the optima fits, only a vertex has more
            is_exact = not lost
            rates, bound = self._master.solve(options, is_exact=is_exact)
            self.bound = max(min(self.bound, bound), self.value)

    @staticmethod
    def _is_late(until: float | None) -> bool:
        return until is not None and time.perf_counter() >= until

    def _ask(self, rates: Floats, chosen: Ints, round_: int, until: float | None) -> dict[int, float]:
        """Ask failures for what fits; add their cuts, and return what each that loses any loses, Mbit/s."""
        lost: dict[int, float] = {}
        for place in chosen.tolist():
            if self._is_late(until):
                break
            answer = self._networks[place].ask(rates)
            missing = float((rates - answer.fits_mbps).sum())
            if missing > self._least:
                lost[place] = missing
                self._last_cut[place] = round_
                self._master.add(answer)
        return lost

    def _fit(self, rates: Floats, lost: dict[int, float], until: float | None) -> None:
        """Take rates that fit in each failure, those first that lose most: the others lose less then."""
        for place in sorted(lost, key=lambda one: -lost[one]):
            if self._is_late(until):
                return
            answer = self._networks[place].ask(rates)
            rates = np.minimum(rates, answer.fits_mbps)
            rates = np.where(rates > SMALLEST_RATE * self.offered, rates, 0.0)
            self._master.add(answer)
        if not self._is_late(until) and float(rates.sum()) > self.value:
            self.best, self.value = rates, float(rates.sum())


class _Network:
    """The links that a failure leaves, and the demands that it leaves a path."""

    def __init__(self, problem: Traffic, down: Bools) -> None:
        self._left = problem.without_links(down)
        self._ordered = order_demands(self._left.routable) if self._left.routable.rate_mbps.any() else None

    def ask(self, rate_mbps: Floats) -> _Answer:
        """Return what fits of rates, (K,) Mbit/s, and the cut of its prices."""
        fits, coefficient = rate_mbps.copy(), np.zeros(len(rate_mbps))
        if self._ordered is None:
            return _Answer(fits, coefficient, 0.0)
        graph, demands, order = self._ordered
        wanted = rate_mbps[order]
        search = LeastCostFlow(self._left, ordered=(graph, demands._replace(rate=wanted), order))
        search.deliver_most()
        flow = search.path_flow()
        sent = np.bincount(flow.demand, weights=flow.flow, minlength=len(order))
        fits[order] = np.minimum(sent, wanted)
        coefficient[order] = np.minimum(search.simplex.distances(), 1.0)
        price = np.maximum(search.simplex.state.price, 0.0)
        return _Answer(fits, coefficient, float(price @ self._left.capacity_mbps))


def list_outages(problem: Traffic, failures: FailureSet) -> Bools:
    """Return the links that each different failure takes down, and none, (F, E)."""
    return np.unique(np.r_[np.zeros((1, len(problem.links)), dtype=bool), failures.link_down], axis=0)


class _Master:
    """The master problem over rates in one session of HiGHS: the largest total under the cuts so far."""

    def __init__(self, offered_mbps: Floats) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs = highs
        self._unit = max(float(offered_mbps.max(initial=0.0)), 1e-300)
        self._most = offered_mbps / self._unit
        count = len(offered_mbps)
        program = LinearProgram.build(
            sense="max", cost=np.ones(count), upper=self._most, name="traffic survivable rates"
        )
        self._session: Any = highs.load(program, Options(threads=1))
        self._coefficients: list[Floats] = []
        self._limits: list[float] = []

    def add(self, answer: _Answer) -> None:
        """Add the cut of an answer."""
        used = np.flatnonzero(answer.coefficient > 0)
        if not len(used):
            return
        limit = answer.limit / self._unit
        coefficient = answer.coefficient[used]
        self._session.addRow(-np.inf, limit, len(used), used.astype(np.int32), coefficient)
        self._coefficients.append(answer.coefficient)
        self._limits.append(limit)

    def solve(self, options: Options, *, is_exact: bool) -> tuple[Floats, float]:
        """Return rates (K,) and a bound on the total of all, Mbit/s; exact: a vertex of the optima."""
        self._session.setOptionValue("solver", "simplex" if is_exact else "ipm")
        self._session.setOptionValue("run_crossover", "off")
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL and not is_exact:  # its tolerance may be out of reach
            return self.solve(options, is_exact=True)
        solution = self._session.getSolution()
        cuts, limits = sp.csr_array(np.array(self._coefficients)), np.array(self._limits)
        # the session minimizes; any prices at least 0 give a bound
        price = np.maximum(-np.array(solution.row_dual), 0.0)
        gain = np.maximum(1.0 - cuts.T @ price, 0.0)
        bound = float(price @ limits + gain @ self._most) * self._unit
        return np.array(solution.col_value) * self._unit, bound
