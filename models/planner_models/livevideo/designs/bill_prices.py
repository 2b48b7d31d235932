"""Trees where links are on bills by percentile, or under caps: Lagrangian prices of bills, with a bound.

At a price per Mbit/s of each bill, the bill is one more cost of its links, and the trees are found, with
their bound, as without bills. The bound on every plan is that of these trees, plus the most by which the
price times a bill's load can exceed what the window really adds to it: a maximum over the corners of that
function, since it is piecewise linear. Kelley's cutting planes within a trust region improve the prices. Each
search for trees gives a plan: where it exceeds a cap, the streams of the least value per Mbit/s are removed,
and requests are served over other links instead.

source  Kelley 1960, "The cutting-plane method for solving convex programs", for prices;
        Mukerjee 2018, 4.5, for bills and caps
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from planner import backends
from planner.arrays import Floats
from planner.backends.program_builder import ProgramBuilder
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import COARSE_GAP, ROUNDING
from planner_models.livevideo.designs import integer_program
from planner_models.livevideo.designs.admission import admit_pinned, remove_over_caps
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import PricedDecision, Streams, Trees
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import BILLS, SAMPLES, empty_table

BACKEND: Final = "decomposition"
TIME_LIMIT_S: Final = 60.0
FIRST_SHARE: Final = 0.3  # share of the time limit for the first search for trees
NEXT_SHARE: Final = 0.35  # share of the remaining time for each of the others
MAX_ROUNDS: Final = 16  # searches for trees, at most
GAP_SHARE: Final = 0.4  # share of the gap that a search for trees may leave
MAX_LINKS: Final = 3_000  # candidate links of all objects up to which the integer program follows
PROGRAM_SHARE: Final = 0.5  # share of the time limit that is left for it
GROWTH: Final = 2.0  # of the trust region, after a better bound
SHRINKAGE: Final = 0.5  # of the trust region, after none

Solve = Callable[..., Decision[Trees]]


def distribute(
    problem: LiveVideo, solve: Solve, *, most_moved: int | None = None, options: Options = Options()
) -> Decision[Trees]:
    """Return trees within caps, at the prices of bills, and a bound on every plan.

    Stops at the gap of `options` (default 0.1%) or at the time limit (default 60 s).

    solve   searches for trees on a problem without bills
    raises  InputError for `most_moved`, or for another backend
    """
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': 'vdn' is a solver of its own, leave it out")
    if most_moved is not None:
        raise InputError("most_moved limits trees at fixed link costs: leave it out, or the links' bill")
    start = admit_pinned(problem, options)
    return start if isinstance(start, Decision) else _Search(problem, solve, options).run()


class _Search:
    """One run: prices of bills with their bound on one side, plans on the other.

    bills    (B,) bills with links, as positions in `Tariffs`
    largest  (B,) largest load of each bill's links, Mbit/s
    corners  (B, 4) loads at which what the window adds changes its slope, and the largest one
    added    (B, 4) what the window adds there, in the unit of the objective
    """

    def __init__(self, problem: LiveVideo, solve: Solve, options: Options) -> None:
        self.problem, self.solve, self.options = problem, solve, options
        self.deadline = Deadline.of(options, default_s=TIME_LIMIT_S)
        self.gap = COARSE_GAP if options.gap is None else options.gap
        self.is_small = integer_program.count_links(problem) <= MAX_LINKS
        self.tariffs = tariffs = problem.tariffs
        self.bills = np.unique(tariffs.of_link[tariffs.of_link >= 0])
        bills = self.bills
        self.largest = np.minimum(tariffs.load(problem.capacity_mbps), tariffs.cap_mbps)[bills]
        corners = np.stack([0 * self.largest, tariffs.low[bills], tariffs.high[bills], self.largest])
        self.corners = np.minimum(corners, self.largest).T
        slope = problem.cost_weight * tariffs.price[bills]
        self.slope = slope
        low, high = tariffs.low[bills, None], tariffs.high[bills, None]
        self.added = slope[:, None] * (np.clip(self.corners, low, high) - low)
        self.plain = replace(
            problem,
            links=problem.links.drop(columns="bill"),
            bills=empty_table(BILLS),
            samples=empty_table(SAMPLES),
            settings=problem.settings.assign(cost_weight=1.0),
        )
        self.radius = np.maximum(slope, self._typical_value())
        self.center, self.bound = np.zeros(len(bills)), np.inf
        self.cuts: list[tuple[float, Floats]] = []
        self.best: Trees | None = None
        self.best_value = -np.inf
        self.prices: dict[tuple[str, float], float] = {}

    def _typical_value(self) -> float:
        """Return the median value of serving a request per Mbit/s: the first step of a cap's price."""
        problem = self.problem
        value = problem.value / problem.bitrate_mbps[problem.object]
        return float(np.median(value)) if len(value) else 1.0

    def run(self) -> Decision[Trees]:
        """Improve prices and plans until the gap, the deadline, or prices that stay."""
        deadline = self.deadline.share(1 - PROGRAM_SHARE) if self.is_small else self.deadline
        price, previous = self.center.copy(), None
        for number in range(MAX_ROUNDS):
            until = deadline.share(FIRST_SHARE) if number == 0 else deadline.share_left(NEXT_SHARE)
            decision = self._solve_at(price, until, previous)
            if decision.plan is None:
                return decision
            previous = decision
            self._keep(decision.plan, price)
            if self._is_done() or deadline.is_over:
                break
            following = self._next_price()
            if following is None:
                break
            price = following
        if self.is_small and not self._is_done() and not self.deadline.is_over:
            self._solve_program()
        assert self.best is not None
        proof = judged(
            "max",
            self.best_value,
            self.bound,
            gap=max(self.gap, ROUNDING),
            metric=OBJECTIVE,
            backend=BACKEND,
        )
        return PricedDecision(plan=self.best, proof=proof, prices=self.prices)

    def _solve_at(self, price: Floats, until: Deadline, previous: Decision[Trees] | None) -> Decision[Trees]:
        """Return trees at prices of bills (B,) per Mbit/s; keep the bound that follows."""
        problem = self.problem
        cost = problem.cost_weight * problem.cost
        on_bill = self.tariffs.of_link >= 0
        cost[on_bill] += price[np.searchsorted(self.bills, self.tariffs.of_link[on_bill])]
        priced = replace(self.plain, links=self.plain.links.assign(cost=cost))
        options = until.options(replace(self.options, gap=GAP_SHARE * self.gap), minimum_s=0.1)
        arguments: dict[str, Any] = {} if previous is None else {"previous": previous}
        decision = self.solve(priced, options=options, **arguments)
        if decision.proof.bound is None or decision.plan is None:
            return decision
        bound = decision.proof.bound + float((price[:, None] * self.corners - self.added).max(axis=1).sum())
        is_better = bound < self.bound
        self.radius *= GROWTH if is_better else SHRINKAGE
        if is_better:
            self.bound, self.center = bound, price.copy()
            self.prices = decision.prices if isinstance(decision, PricedDecision) else {}
        load = compute_delivery(problem, decision.plan).load_mbps
        value = measure(priced, decision.plan, None)[OBJECTIVE] or 0.0
        billed = self.tariffs.load(load)[self.bills]
        self.cuts.append((value + float(price @ billed), billed))
        return decision

    def _next_price(self) -> Floats | None:
        """Return the prices (B,) of the least bound that the plans so far allow; None where none is less."""
        count = len(self.bills)
        m = ProgramBuilder(name="prices of bills")
        price = m.variables(
            "price", count, lower=np.maximum(self.center - self.radius, 0.0), upper=self.center + self.radius
        )
        excess = m.variables("excess", count, lower=-np.inf, cost=1.0)
        trees = m.variables("trees", lower=-np.inf, cost=1.0)
        for corner in range(self.corners.shape[1]):
            m.constrain(
                f"corner {corner}", excess - price * self.corners[:, corner], lower=-self.added[:, corner]
            )
        for number, (value, billed) in enumerate(self.cuts):
            m.constrain(f"plan {number}", trees + (price * billed).sum(), lower=value)
        solution = backends.solve(m.build(), self.deadline.options(Options(), minimum_s=1.0))
        if solution.x is None or solution.objective is None:
            return None
        if self.bound - solution.objective <= 0.1 * self.gap * abs(self.bound):
            return None
        return np.asarray(price.values(solution.x))

    def _keep(self, trees: Trees, price: Floats) -> None:
        """Keep a plan if it is the best so far, after its streams beyond caps have been moved."""
        problem = self.problem
        streams = Streams(problem)
        streams.add_plan(trees)
        plan = trees
        if remove_over_caps(streams):
            if not problem.is_unicast:
                self._serve_elsewhere(streams, price)
            plan = integer_program.trim_branches(problem, streams.plan())
        served = compute_delivery(problem, plan).clients >= problem.clients
        if not served[problem.pinned_requests].all():
            return
        value = measure(problem, plan, None)[OBJECTIVE] or 0.0
        if value > self.best_value:
            self.best, self.best_value = plan, value

    def _serve_elsewhere(self, streams: Streams, price: Floats) -> None:
        """Serve requests without a stream over the cheapest links with residual capacity, if they pay."""
        problem = self.problem
        of_link, cost = self.tariffs.of_link, problem.cost_weight * problem.cost
        cost[of_link >= 0] += price[np.searchsorted(self.bills, of_link[of_link >= 0])]
        per_mbps = cost.tolist()
        density = problem.value / problem.bitrate_mbps[problem.object]
        for q in np.argsort(-density, kind="stable").tolist():
            if self.deadline.is_over:
                return
            item, group = int(problem.object[q]), int(problem.group[q])
            links = streams.cheapest_path(item, group, per_mbps, float(problem.value[q]))
            if links and streams.fits_along(item, links):
                streams.add_path(item, links)

    def _is_done(self) -> bool:
        """Return whether a plan is within the gap of its bound."""
        if self.best is None:
            return False
        progress.report(OBJECTIVE, self.best_value, self.bound)
        gap = relative_gap(self.best_value, self.bound)
        return gap is not None and gap <= self.gap

    def _solve_program(self) -> None:
        """Solve the integer program in the remaining time; keep a better plan and a lower bound."""
        options = self.deadline.options(replace(self.options, gap=self.gap), minimum_s=1.0)
        exact = integer_program.solve(self.problem, options=options)
        if exact.proof.bound is not None:
            self.bound = min(self.bound, exact.proof.bound)
        objective = exact.proof.objective
        if exact.plan is not None and objective is not None and objective > self.best_value:
            self.best, self.best_value = exact.plan, objective
