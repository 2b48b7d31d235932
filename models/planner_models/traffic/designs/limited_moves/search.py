"""The steps to the best plan under a limit of rerouted traffic, whatever solves each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import infeasible, undecided
from planner.search.tolerances import FEASIBILITY, ROUNDING, SOLVER
from planner_models.flows.link_flow_program import METRIC_OF, Objective
from planner_models.traffic.designs import class_priorities
from planner_models.traffic.designs.class_priorities import Level
from planner_models.traffic.plan.flow_decision import as_delivered
from planner_models.traffic.plan.moved_traffic import PresentFlow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

FIT_TOLERANCE: Final = FEASIBILITY  # of the demands; where all but this share fits, all counts as fitting
LEAST_TOLERANCE: Final = SOLVER  # of the most traffic, which the cheapest plan may deliver less
HELD: Final = ROUNDING  # relative; by so much less may later levels leave the ones before
POINT: Final = 0.01  # a percentage point of the traffic


@dataclass(frozen=True, kw_only=True, eq=False)
class MoveLimit:
    """The traffic that can stay on its present routes, and the largest share of it that may leave them."""

    present: PresentFlow
    most_moved: float

    @property
    def most_moved_mbps(self) -> float:
        """The traffic that may leave its present routes, Mbit/s."""
        return self.most_moved * self.present.total_mbps


class Search(ABC):
    """The steps to the optimum under the limit, and its price: gain per percentage point, by metric."""

    def __init__(self, problem: Traffic, limit: MoveLimit, options: Options) -> None:
        self.problem, self.limit, self.options = problem, limit, options
        self.deadline = Deadline.of(options)
        self.gain_per_point: dict[str, float] = {}

    def solve(self, objective: Objective, levels: Sequence[Level] | None) -> Decision[Routing]:
        """Return the decision for an objective of `optimum`.

        levels  of classes, where they have an order
        """
        if objective == "utilization" and self.options.service != "all":
            return self.spread("utilization")
        together = self.spread("concurrent", must_fit=objective != "concurrent")
        value, bound = together.proof.objective, together.proof.bound
        if value is not None and value >= 1 - FIT_TOLERANCE:
            if objective in ("delivered", "total"):
                made = as_delivered(self.problem, together, Status.OPTIMAL)
                self.gain_per_point["delivered_mbps"] = 0.0
                if levels is None:
                    return made
                return class_priorities.prove_all_served(made, levels, self.problem.rate_mbps)
            if objective == "cost":
                return self.find_cheapest()
            return together if objective == "concurrent" else self.spread("utilization")
        if self.options.service == "all":
            return self._refuse(objective, bound)
        self.gain_per_point = {}
        if objective == "concurrent":
            return self.grow()
        if levels is not None:
            return self.solve_levels(levels, has_least_cost=objective == "cost")
        return self.deliver_most(has_least_cost=objective == "cost")

    @abstractmethod
    def spread(self, objective: Objective, *, must_fit: bool = False) -> Decision[Routing]:
        """Solve for the smallest largest utilization of plans that serve everything.

        must_fit  once it is proven that not everything fits, the search may end with its bound alone
        """

    @abstractmethod
    def grow(self) -> Decision[Routing]:
        """Solve for the largest share of all demands, which is less than 1, within the capacities."""

    @abstractmethod
    def deliver_most(self, *, has_least_cost: bool) -> Decision[Routing]:
        """Solve for the most served traffic, then for the least cost of such plans if that is wanted."""

    @abstractmethod
    def find_cheapest(self) -> Decision[Routing]:
        """Solve for the least cost of plans that deliver everything."""

    @abstractmethod
    def solve_levels(self, levels: Sequence[Level], *, has_least_cost: bool) -> Decision[Routing]:
        """Solve for the levels of classes one after the other."""

    def options_left(self) -> Options:
        """Return the options with the time that is left."""
        return self.deadline.options(self.options)

    def set_gain(self, metric: str, gain_per_mbps: float) -> None:
        """Note the gain of a limit that is larger by a percentage point: so much for each Mbit/s."""
        gain = gain_per_mbps * self.limit.present.total_mbps
        self.gain_per_point[metric] = max(gain * POINT, 0.0)

    def _refuse(self, objective: Objective, bound: float | None) -> Decision[Routing]:
        """Return the decision that not everything fits; undecided where that is not proven."""
        metric = METRIC_OF[objective]
        if bound is None or bound >= 1:
            return Decision(plan=None, proof=undecided(metric=metric))
        reason = (
            f"with at most {self.limit.most_moved:.4%} of the traffic rerouted, all demand loads a link to "
            f"{1 / bound:.4%} of its capacity at least"
        )
        return Decision(plan=None, proof=infeasible(reason, metric=metric))
