"""The what-if page: a question, its answer in a picture, and possible changes."""

from planner_dashboard.what_if.page import page

__all__ = ["page"]
