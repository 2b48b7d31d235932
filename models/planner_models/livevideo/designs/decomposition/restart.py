"""Restart: another dive and its improvement, in pieces, given up as soon as it cannot beat the incumbent."""

from __future__ import annotations

from typing import Final

from planner.search.deadline import Deadline
from planner_models.livevideo.designs.decomposition.diving import Dive, DivePace
from planner_models.livevideo.designs.decomposition.ejection_chains import LagrangianSolution
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.pricing import Pricer
from planner_models.livevideo.designs.decomposition.ruin_recreate import FeasibleTrees

MAX_IMPROVEMENT_STEPS: Final = 8  # steps of local search that the trees of a dive get, at most
ROUNDS_PER_OBJECT: Final = 2  # rounds of ruin and recreate for each object in such a step
MIN_ROUNDS: Final = 50  # rounds in a step beside those
ROUNDS_PER_SUBPROBLEM: Final = 0.25
"""Rounds of ruin and recreate that take as long as a pricing problem of a dive."""

EARLY_SHARE: Final = 0.25
"""Share of the objects, still to be fixed, up to which a dive goes to its end whatever its estimate."""


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
