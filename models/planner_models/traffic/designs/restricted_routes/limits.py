"""Limits of routes under the name that designs import them by; they are those of `problem.route_limits`."""

from __future__ import annotations

from planner_models.traffic.problem.route_limits import Conditions, RouteLimits

__all__ = ["Conditions", "RouteLimits"]
