"""Routing on shortest paths after failures: the paths of a network without failures, updated for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.errors import SolverFailure
from planner.search.tolerances import ROUNDING
from planner_models.traffic.plan.reconvergence.drops import MOST_STEPS
from planner_models.traffic.plan.reconvergence.evaluation import Outcomes, evaluate
from planner_models.traffic.plan.reconvergence.network import Network, network_of
from planner_models.traffic.plan.reconvergence.shortest_paths import Trees, find_trees
from planner_models.traffic.problem.failure_sets import FailureSet
from planner_models.traffic.problem.problem import Traffic

PRECISION: Final = ROUNDING  # of shares of links that overload leaves


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortestPathRouting:
    """All traffic of a problem on shortest paths.

    weight     (E,) link weights; None: those of the problem
    is_single  whether all traffic takes one of equally short paths, not equal parts
    """

    problem: Traffic
    weight: Floats | None = None
    is_single: bool = False

    @cached_property
    def network(self) -> Network:
        """The problem as arrays."""
        return network_of(self.problem, weight=self.weight, is_single=self.is_single)

    @cached_property
    def trees(self) -> Trees:
        """The shortest paths without failures."""
        return Trees(*find_trees(self.network))

    def solve(
        self,
        failures: FailureSet,
        *,
        with_loads: bool = False,
        with_demands: bool = False,
        with_admission: bool = True,
    ) -> Outcomes:
        """Return the outcomes of failures.

        raises  SolverFailure where the shares that links pass do not converge
        """
        probability = np.zeros(0) if failures.probability is None else failures.probability
        outcomes = Outcomes(
            *evaluate(
                self.network, self.trees, failures.start, failures.link, probability, with_loads,
                with_demands, with_admission,
            )
        )  # fmt: skip
        error = float(outcomes.error.max(initial=0.0))
        if error > PRECISION:
            name = failures.names[int(np.argmax(outcomes.error))]
            raise SolverFailure(
                f"delivered traffic after the failure of {name}: {MOST_STEPS} steps leave an error of "
                f"{error:.1e}"
            )
        return outcomes
