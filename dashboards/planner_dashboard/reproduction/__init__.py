"""Published tables and figures beside our values: an overview of all verdicts, and runs on demand."""

from planner_dashboard.reproduction.page import page

__all__ = ["page"]
