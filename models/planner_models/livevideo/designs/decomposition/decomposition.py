"""VDN's optimization by Lagrangian decomposition: a proven bound from dual prices, and trees by heuristics.

At prices of the links the objects are independent: the best tree of each is a small problem of its own
(`pricing`). The values of these trees, plus the price of all capacity, bound the value of every plan.
Block-coordinate Frank-Wolfe finds prices that make the bound small (`frank_wolfe`). Its fractional trees
are fixed to whole ones by a diving heuristic (`diving`), which are improved by ruin and recreate
(`ruin_recreate`) and ejection chains (`ejection_chains`). Dives are restarted (`Restart`) until the gap
is reached or the time is up.

Restart: another dive and its improvement, in pieces, given up as soon as it cannot beat the incumbent.

Compilation of all kernels before a time limit starts, where no run on this machine has done so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import COARSE_GAP, ROUNDING
from planner_models.livevideo.designs import integer_program
from planner_models.livevideo.designs.admission import admit_pinned
from planner_models.livevideo.designs.decomposition import layered_problem
from planner_models.livevideo.designs.decomposition.diving import BRISK, FAST, SLOW, Dive, DivePace
from planner_models.livevideo.designs.decomposition.ejection_chains import LagrangianSolution
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.layered_problem import CapacityRows, build_layers
from planner_models.livevideo.designs.decomposition.pricing import Effort, Pricer
from planner_models.livevideo.designs.decomposition.ruin_recreate import FeasibleTrees
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import PricedDecision, Trees, plan_rows
from planner_models.livevideo.problem.generators import create_sample
from planner_models.livevideo.problem.problem import LiveVideo

BACKEND: Final = "decomposition"
TIME_LIMIT_S: Final = 60.0
GAP: Final = COARSE_GAP
THREADS: Final = 2

QUICK: Final = Effort(6, 1)  # for trees in the first passes, which only move prices
GOOD: Final = Effort(6, 2)  # for trees in the passes that follow
FINE: Final = Effort(30, 65)  # for trees in passes after a bound that made no progress
TIGHT: Final = Effort(60, 129)  # for a bound
DUAL_SMOOTHING: Final = 0.3  # weight of the newest prices in the smoothed prices that bounds are computed at
STALL_LIMIT: Final = 3  # bounds in a row without MIN_PROGRESS after which no more are computed
MIN_PROGRESS: Final = 5e-3  # improvement of a bound that counts as progress, as a share of the gap
MAX_SMALL_BOUNDS: Final = 5  # bounds, at most, of a problem that integer programming may solve
PASSES_PER_BOUND: Final = 6

RESTART_ROUNDS: Final = 4  # work for each object in a piece of a restart, in rounds of ruin and recreate
EFFORT_ROUNDS: Final = {GOOD: 0.25, FINE: 1.0, TIGHT: 1.25}
"""Rounds of ruin and recreate that take as long as an object in a pass or a bound of that effort."""

IDLE_LIMIT: Final = 3
"""Pieces of local search in a row without MIN_GAIN before its thread restarts from a dive too."""

MIN_GAIN: Final = 0.01  # gain of the best trees that counts, as a share of the gap
BIG_M_VALUE: Final = 1e12  # value of trees that must stay, above that of all others
INITIAL_TEMPERATURE: Final = 0.005
"""Temperature of ruin and recreate at the start of a cooling cycle, in mean values of an object."""

COOLING_PIECES: Final = 8  # pieces of work in a cooling cycle; the temperature is 0 in the first cycle
MAX_EXACT_LINKS: Final = 3_000
"""Candidate links of all objects up to which integer programming closes the gap that remains."""

LARGE_REQUESTS: Final = 12_000
"""Requests above which dives take larger steps, and a warm start is not followed by a dive."""

WARM_START_STEPS: Final = 6  # steps of local search on the previous plan's trees at the first prices
WARM_START_PASSES: Final = 8  # passes from the previous plan's trees before the dive that follows them
WARM_PENALTY_SCALE: Final = 0.5  # of Frank-Wolfe, from prices that are nearly right
PRICE_TIME_SHARE: Final = 0.5
"""Share of the time limit after which a first bound and a dive begin, whatever the prices are."""

PINNED_TIME_S: Final = 0.5
"""Time for the pinned streams alone, at least, where a search at its time limit has left some out."""

BOUND_ROUNDING: Final = 1e-10
"""Share of its terms' sum by which a bound is raised, so that it holds in spite of rounding."""

MostMoved = Annotated[
    Annotated[int, Field(ge=0)] | None,
    Field(
        description="most objects of the previous plan whose trees may change, except for branches without "
        "requests; none: any number"
    ),
]
MAX_IMPROVEMENT_STEPS: Final = 8  # steps of local search that the trees of a dive get, at most
ROUNDS_PER_OBJECT: Final = 2  # rounds of ruin and recreate for each object in such a step
MIN_ROUNDS: Final = 50  # rounds in a step beside those
ROUNDS_PER_SUBPROBLEM: Final = 0.25
"""Rounds of ruin and recreate that take as long as a pricing problem of a dive."""
EARLY_SHARE: Final = 0.25
"""Share of the objects, still to be fixed, up to which a dive goes to its end whatever its estimate."""


def distribute(
    problem: LiveVideo,
    *,
    most_moved: MostMoved = None,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """Return trees for all objects by decomposition, with a proven bound; the default at scale.

    Stops at the gap of `options` (default 0.1%) or at the time limit (default 60 s). With `previous`
    it starts from that plan and, if it has them, its prices. The same seed takes the same steps with
    any number of threads: the plan is the same if the gap ends the search, not if the time limit does.

    raises  InputError for another backend, since the algorithm is a solver of its own
    notes   problems of more than four tiers are left to the integer program
    source  Mukerjee 2018, Fig. 4.8; Dantzig and Wolfe 1960
    """
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': 'vdn' is a solver of its own, leave it out")
    if len(problem.tiers) > layered_problem.MAX_TIERS:
        return integer_program.solve(problem, options=options)
    if not len(problem.requests) and not len(problem.pinned_links):
        empty = layered_problem.build_layers(problem).to_plan(np.zeros((0, 3), dtype=np.int64))
        proof = judged("max", 0.0, 0.0, metric=OBJECTIVE, backend=BACKEND)
        return Decision(plan=empty, proof=proof)
    get_ready()  # before the time limit starts
    return _Search(problem, options, previous, most_moved).run()


class _Search:
    """One run: dual prices and their bound on one side, whole trees on the other.

    relaxation  Frank-Wolfe state, which makes the prices
    solution    best trees at the prices of the best bound
    feasible    whole trees, with the best ones so far
    """

    def __init__(
        self, problem: LiveVideo, options: Options, previous: Decision[Trees] | None, most_moved: int | None
    ) -> None:
        self.deadline = Deadline.of(options, default_s=TIME_LIMIT_S)
        self.price_deadline = self.deadline.share(PRICE_TIME_SHARE)
        self.gap = GAP if options.gap is None else options.gap
        self.threads = options.threads or min(THREADS, os.cpu_count() or 1)
        self.problem, self.most_moved = problem, most_moved
        self.seed = options.seed or 0
        self.layered = layered = layered_problem.build_layers(problem)
        self.rows = CapacityRows(layered)
        self.pricer = Pricer(layered, self.threads)
        self.first_pricer, self.second_pricer = Pricer(layered, 1), Pricer(layered, 1)  # of one thread each
        self.relaxation = FrankWolfe(layered, self.rows, self.pricer, self.seed)
        self.feasible = FeasibleTrees(layered, self.pricer, self.seed)
        self.count = len(self.relaxation.active)
        self.is_large = len(layered.request) > LARGE_REQUESTS
        self.is_small = len(self.relaxation.combinations.link) <= MAX_EXACT_LINKS and most_moved is None
        self.can_restart = most_moved is None  # else most trees stay, and dives gain little
        self.first_restart: Restart | None = None  # of each thread
        self.second_restart: Restart | None = None
        self.restarts = 0
        self.bound = np.inf
        self.bound_price = np.zeros(len(self.rows.limit))
        self.smoothed_price: Floats | None = None
        self.previous_paths: Ints | None = None
        self.has_prices = self.is_late = False
        if previous is not None and previous.plan is not None:
            self.previous_paths = layered.paths_of(previous.plan)
            prices = previous.prices if isinstance(previous, PricedDecision) else {}
            self.bound_price = self.rows.from_labels(prices)
            self.has_prices = bool(self.bound_price.any())
            self.previous_plan: Trees = previous.plan

    def run(self) -> Decision[Trees]:
        """Find prices and trees, improve both, and return the best of each."""
        if self.previous_paths is not None:
            price = self.bound_price if self.has_prices else None
            self.relaxation.warm_start(self.previous_paths, price)
        self._find_first_prices()
        self._find_first_trees()
        if not self._is_done():
            self._improve_both()
        self.pricer.close()
        if self.is_small and not self._is_done():
            self._solve_integer_program()
        if self.feasible.served_pins() < self.layered.pinned_count:
            self._admit_pinned()
        return self._decision()

    # --- prices and bounds ------------------------------------------------------------------

    def _find_first_prices(self) -> None:
        """Run passes over all objects until prices hardly change, and compute a first bound."""
        if self.has_prices:
            self.smoothed_price = self.bound_price.copy()
            self._compute_bound(FINE)
            return
        for count, effort in ((4, QUICK), (16, GOOD)):
            for _ in range(count):
                if self.smoothed_price is not None and self.price_deadline.is_over:
                    break
                self._run_pass(effort, self.price_deadline)
        self.is_late = self.price_deadline.is_over
        self._compute_bound(GOOD if self.is_late else TIGHT)

    def _run_pass(self, effort: Effort, deadline: Deadline | None = None) -> None:
        self.relaxation.run_pass(effort, deadline=self.deadline if deadline is None else deadline)
        price = self.relaxation.price
        if self.smoothed_price is not None and self.relaxation.passes > 4:
            price = (1 - DUAL_SMOOTHING) * self.smoothed_price + DUAL_SMOOTHING * price
        self.smoothed_price = price

    def _compute_bound(self, effort: Effort = TIGHT) -> None:
        """Compute the bound at the smoothed prices; keep the prices if it is the best so far."""
        assert self.smoothed_price is not None
        trees, layered = self.relaxation.trees, self.layered
        prices = self.rows.link_prices(self.smoothed_price)
        priced = self.relaxation.pricer.price_all(
            prices, trees.dual.copy(), effort, trees.paths, self.deadline
        )
        total = float(priced.bound.sum() + self.smoothed_price @ self.rows.limit)
        bound = total - layered.pin_bonus * layered.pinned_count
        bound += BOUND_ROUNDING * total
        if bound < self.bound or not np.isfinite(self.bound):
            self.bound, self.bound_price = bound, self.smoothed_price.copy()
            self.solution = LagrangianSolution(prices, priced.paths, priced.value)

    # --- whole trees ------------------------------------------------------------------------

    def _improve_start(self) -> None:
        """Improve the trees of the previous plan until neither ejection chains nor ruin and recreate gain."""
        idle = 0
        for _ in range(WARM_START_STEPS):
            if self._is_done() or idle == 2:
                break
            before = self.feasible.best_value
            self.feasible.improve(self.solution, self.count // 4, 0.0, self.deadline)
            idle = 0 if self._is_improved(before) else idle + 1

    def _find_first_trees(self) -> None:
        """Find trees that fit: those of the previous plan with additions, or those of a dive."""
        if self.previous_paths is None:
            self._dive(FAST if self.is_late else BRISK if self.is_large else SLOW)
            return
        is_carried = np.zeros(self.layered.objects.bitrate.shape, dtype=bool)
        is_carried[self.layered.request_object[self.previous_paths[:, 2] >= 0]] = True
        value = self.solution.value.copy()
        if self.most_moved is not None:
            carried, _ = plan_rows(self.problem, self.previous_plan)
            is_carried[carried[carried >= 0]] = True
            value[self._freeze_most(self.previous_paths, is_carried)] = BIG_M_VALUE
        is_kept = is_carried[self.layered.request_object][:, None]
        start = np.where(is_kept, self.previous_paths, self.solution.paths)
        self.feasible.rebuild(start, self.solution.prices, self.relaxation.trees.dual, value)
        self._improve_start()
        if self.has_prices and self.can_restart and not self.is_large and not self._is_done():
            for _ in range(WARM_START_PASSES):
                self._run_pass(GOOD)
            self._dive(SLOW)

    def _dive(self, pace: DivePace) -> None:
        """Find trees by a dive of all threads; improve them until they beat those of the previous plan."""
        restart = Restart(self.relaxation, self.pricer, self.seed, self.solution, pace)
        feasible = restart.feasible
        incumbent = self.feasible.best_value if self.previous_paths is not None else -np.inf
        while not restart.is_over and (restart.dive is not None or feasible.best_value <= incumbent):
            restart.run_piece(incumbent, self.deadline)
        if feasible.best_value > incumbent:
            self.feasible.set_dual(feasible.state.dual)
            self.feasible.adopt(feasible.best_paths)

    def _freeze_most(self, paths: Ints, is_carried: Bools) -> Ints:
        """Freeze all trees of the previous plan but `most_moved` of highest reduced cost; return them."""
        reduced_cost = np.where(is_carried, self.solution.reduced_costs(self.layered, paths), -np.inf)
        carried = np.flatnonzero(is_carried)
        moving = np.argsort(-reduced_cost, kind="stable")[: min(self.most_moved or 0, len(carried))]
        frozen = np.setdiff1d(carried, moving)
        self.feasible.freeze(frozen)
        return frozen

    # --- both, side by side -------------------------------------------------------------------

    def _second_piece(self, step: int, rounds: int) -> Callable[[], None]:
        """Return a piece of work of the second thread: of a restarted dive, else of local search."""
        if self.second_restart is not None:
            return partial(self.second_restart.run, rounds, self.incumbent, self.deadline)
        temperature = 0.0
        if step >= COOLING_PIECES:
            temperature = INITIAL_TEMPERATURE * (1 - (step % COOLING_PIECES) / COOLING_PIECES) ** 2
        temperature *= abs(self.feasible.best_value) / max(self.count, 1)
        return partial(self.feasible.improve, self.solution, rounds, temperature, self.deadline)

    def _improve_both(self) -> None:
        """Improve bounds, then restart dives, in one thread; improve the trees in the other.

        The second thread restarts dives too while local search gains nothing. The work of a piece is
        fixed before it begins, and results are exchanged only between pieces: so one thread finds the
        same as two.
        """
        self.relaxation.pricer = self.first_pricer
        pool = ThreadPoolExecutor(1) if self.threads > 1 else None
        self.incumbent = self.feasible.best_value  # at the beginning of the piece
        pieces = self._first_thread()
        work: int | None = next(pieces)
        step, idle = 0, 0
        while work is not None and not self.deadline.is_over and not self._is_done():
            if step % COOLING_PIECES == 0:
                self.feasible.return_to_best()
            self.incumbent = self.feasible.best_value
            if self.second_restart is None and idle >= IDLE_LIMIT and self.can_restart:
                self.second_restart = self._create_restart(self.second_pricer)
            piece = self._second_piece(step, work + MIN_ROUNDS)
            step += 1
            if pool is None:
                piece()
                work = next(pieces, None)
            else:
                other = pool.submit(piece)
                try:
                    work = next(pieces, None)
                finally:
                    other.result()
            if self.second_restart is None:
                idle += 1
            self.first_restart = self._collect(self.first_restart)
            self.second_restart = self._collect(self.second_restart)
            if self._is_improved(self.incumbent):
                idle = 0
        if pool is not None:
            pool.shutdown()

    def _is_improved(self, before: float) -> bool:
        """Return whether the best trees have gained a share of the gap that counts."""
        return self.feasible.best_value - before > MIN_GAIN * (self.bound - before)

    def _collect(self, restart: Restart | None) -> Restart | None:
        """Return the restart if it goes on; else adopt its trees if they are the best, and return None."""
        if restart is None or not restart.is_over:
            return restart
        if restart.feasible.best_value > self.feasible.best_value:
            self.feasible.adopt(restart.feasible.best_paths)
        return None

    def _first_thread(self) -> Iterator[int]:
        """Run the work of the first thread in pieces; yield the size of each before it, in rounds."""
        stalled, bounds = 0, 0
        if self.has_prices and not self.is_small:
            if self.is_large:  # a bound takes long, and is good already
                yield from self._restart_once()
                stalled = STALL_LIMIT - 1
            else:
                stalled = 1
                self.relaxation.penalty_scale = WARM_PENALTY_SCALE
        while stalled < STALL_LIMIT and not (self.is_small and bounds == MAX_SMALL_BOUNDS):
            bounds += 1
            before = self.bound
            effort = FINE if stalled else GOOD
            yield int(EFFORT_ROUNDS[effort] * PASSES_PER_BOUND * self.count)
            for _ in range(PASSES_PER_BOUND):
                self._run_pass(effort)
            yield int(EFFORT_ROUNDS[TIGHT] * self.count)
            self._compute_bound()
            if before - self.bound <= MIN_PROGRESS * (before - self.incumbent):
                stalled += 1
                self.relaxation.penalty_scale *= 0.5  # for smaller changes of prices
            else:
                stalled = min(stalled, 1)
        while not self.is_small:
            yield from self._restart_once()

    def _restart_once(self) -> Iterator[int]:
        """Run a restart of the first thread in pieces, as `_first_thread`."""
        if not self.can_restart:
            yield self.count
            return
        rounds = RESTART_ROUNDS * self.count
        yield rounds
        restart = self.first_restart = self._create_restart(self.first_pricer)
        restart.run(rounds, self.incumbent, self.deadline)
        while not restart.is_over:
            yield rounds
            restart.run(rounds, self.incumbent, self.deadline)

    def _create_restart(self, pricer: Pricer) -> Restart:
        """Return another dive from the current relaxation, with a seed of its own."""
        self.restarts += 1
        pace = FAST if self.is_large else SLOW
        return Restart(self.relaxation, pricer, self.seed + self.restarts, self.solution, pace)

    # --- the end --------------------------------------------------------------------------------

    def _solve_integer_program(self) -> None:
        """Solve a small problem by integer programming where the gap remains too large."""
        if self.deadline.is_over:
            return
        options = self.deadline.options(Options(gap=self.gap, threads=self.threads, seed=self.seed))
        solution = integer_program.solve(self.problem, options=options)
        if solution.plan is not None:
            self.feasible.adopt(self.layered.paths_of(solution.plan))
        if solution.proof.bound is not None:
            self.bound = min(self.bound, solution.proof.bound)

    def _admit_pinned(self) -> None:
        """Take the cheapest trees of the pinned streams alone where the search has left some out."""
        options = self.deadline.options(Options(threads=self.threads), minimum_s=PINNED_TIME_S)
        streams = admit_pinned(self.problem, options)
        if not isinstance(streams, Decision):
            self.feasible.adopt(self.layered.paths_of(streams.plan()))
            self.feasible.complete(
                self.solution.prices,
                self.feasible.order_by_value(self.solution.value),
                deadline=self.deadline,
            )
            self.feasible.adopt(self.feasible.state.paths)

    def _is_done(self) -> bool:
        objective = self.feasible.objective()
        progress.report(OBJECTIVE, objective, self.bound)
        gap = relative_gap(objective, self.bound)
        return gap is not None and gap <= self.gap

    def _decision(self) -> Decision[Trees]:
        plan = self.layered.to_plan(self.feasible.best_paths)
        objective = measure(self.problem, plan, None)[OBJECTIVE] or 0.0
        has_all_pins = self.feasible.served_pins() == self.layered.pinned_count
        return PricedDecision(
            plan=plan,
            proof=judged(
                "max",
                objective,
                self.bound if has_all_pins else None,
                gap=max(self.gap, ROUNDING),
                metric=OBJECTIVE,
                backend=BACKEND,
            ),
            guarantees=None if has_all_pins else frozenset({"capacity", "forbidden"}),
            prices=self.rows.to_labels(self.bound_price),
        )


class Restart:
    """A dive, followed by local search on its trees.

    feasible  the trees
    is_over   whether nothing more is to be done: the search has ended, or cannot beat the incumbent
    """

    def __init__(
        self, relaxation: FrankWolfe, pricer: Pricer, seed: int, solution: LagrangianSolution, pace: DivePace
    ) -> None:
        """Start a dive from a copy of the relaxation, with a pricer that no other thread uses meanwhile."""
        self.feasible, self.solution = FeasibleTrees(relaxation.layered, pricer, seed), solution
        self.feasible.set_dual(relaxation.trees.dual)
        self.dive: Dive | None = Dive(relaxation.copy(pricer, seed), pace=pace)
        self.count = len(relaxation.active)
        self.step_rounds = ROUNDS_PER_OBJECT * self.count + MIN_ROUNDS
        self.steps_left = MAX_IMPROVEMENT_STEPS
        self.is_over = False

    def run(self, rounds: float, incumbent: float, deadline: Deadline) -> None:
        """Run pieces for about as long as so many rounds of local search take; see `run_piece`."""
        while rounds > 0 and not self.is_over:
            rounds -= ROUNDS_PER_SUBPROBLEM * self.dive.round_work if self.dive else self.step_rounds
            self.run_piece(incumbent, deadline)

    def run_piece(self, incumbent: float, deadline: Deadline) -> None:
        """Run a round of the dive, or a step of local search.

        incumbent  value of the best trees known
        deadline   from which the dive ends at once, and no more steps follow
        """
        feasible, solution = self.feasible, self.solution
        if self.dive is not None:
            self.dive.run_round(deadline=deadline)
            is_early = self.dive.remaining > EARLY_SHARE * self.count  # later losses can be recovered
            is_late = deadline.is_over and incumbent > 0
            self.is_over = is_late or (is_early and self.dive.value_estimate <= incumbent)
            if not self.is_over and not self.dive.remaining:
                feasible.adopt(self.dive.paths)
                feasible.complete(solution.prices, feasible.order_by_value(solution.value), deadline=deadline)
                feasible.record_best()
                self.dive = None
            return
        before = feasible.best_value
        feasible.improve(solution, self.step_rounds, 0.0, deadline)
        self.steps_left -= 1
        is_late = deadline.is_over
        is_hopeless = incumbent - feasible.best_value > self.steps_left * (feasible.best_value - before)
        self.is_over = self.steps_left == 0 or is_late or is_hopeless


@cache
def get_ready() -> None:
    """Call each kernel of the decomposition once, with the types of a run."""
    layered = build_layers(create_sample())
    rows, pricer = CapacityRows(layered), Pricer(layered, 1)
    relaxation, feasible = FrankWolfe(layered, rows, pricer, 0), FeasibleTrees(layered, pricer, 0)
    prices = rows.link_prices(np.zeros(len(rows.limit)))
    dual = relaxation.trees.dual
    trees = pricer.price_all(prices, dual.copy(), Effort(1, 1))
    feasible.rebuild(trees.paths, prices, dual, trees.value)
    feasible.adopt(feasible.state.paths)
    feasible.eject(LagrangianSolution(prices, trees.paths, trees.value), 1, 1.0)
    feasible.ruin_recreate(prices, 1, 1, 1.0, 0.0)
    relaxation.warm_start(feasible.state.paths, None)
    relaxation.run_pass()
    Dive(relaxation).run_round()
