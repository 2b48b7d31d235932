"""Choice of arcs that flow may take near a plan, a part of all, so that programs with flow are small.

The traffic of a root takes arcs that lie on paths little longer than the shortest one, and those that it
takes in the plan, which so stays feasible. A search without the other arcs can miss better plans, and finds
those that it does not miss several times sooner.
"""

from __future__ import annotations

from planner.search.tolerances import NEGLIGIBLE
from planner_models.capacity.designs.network_design.feasibility import Feasibility
from planner_models.capacity.designs.network_design.incumbent import Plan
from planner_models.capacity.designs.network_design.network import Bools, Floats

MAX_DETOUR = 1.5
"""Most detour of a path over an arc, in lengths of mean links."""

LEAST_FLOW = NEGLIGIBLE


class ArcChoice:
    """Chooses arcs by their detours and by the flow of the current plan.

    lengths  (E,) cost of a unit of capacity on each link
    """

    def __init__(self, feasibility: Feasibility, lengths: Floats) -> None:
        self.feasibility, self.network = feasibility, feasibility.network
        self.lengths = lengths / max(float(lengths.mean()), 1e-12)
        self._plan: Plan | None = None
        self._used: Bools | None = None

    def choose(self, plan: Plan, free: Bools) -> Bools | None:
        """Return the arcs that the flow of each root may take, (K, A); None for all, where time runs out.

        free  (E,) links that may have capacity besides those of the plan
        """
        used = self._used_arcs(plan)
        if used is None:
            return None
        usable = free | (self.feasibility.capacity(plan.point) > 0)
        detours = self.network.detours(self.lengths[self.network.capacity_edge], usable)
        return used | (detours <= MAX_DETOUR)

    def _used_arcs(self, plan: Plan) -> Bools | None:
        """Return the arcs that the flow of each root takes in a plan, (K, A)."""
        if self._plan is not plan:
            oracle, capacity = self.feasibility.oracle, self.feasibility.capacity(plan.point)
            rate, left_s = self.feasibility.instance.rate, self.feasibility.incumbent.left_s()
            if oracle.solve(capacity, rate, left_s) is None:
                return None
            self._plan, self._used = plan, oracle.flows() > LEAST_FLOW
        return self._used
