"""Plans of the groups of one component, with cost and bound."""

from __future__ import annotations

from dataclasses import dataclass

from planner_models.geostore.plan.plan import GroupPlan


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The plans of a component's groups, their cost, and a bound on that of all their plans, USD a month."""

    groups: tuple[GroupPlan, ...]
    cost: float
    bound: float
