"""Coordination mechanisms: their measured value, also with worse information, and which one suits."""

from planner_dashboard.recipes.page import page

__all__ = ["page"]
