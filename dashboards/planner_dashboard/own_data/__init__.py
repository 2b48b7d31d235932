"""Page "Your data": own tables recognized by content, edited in place, solved and saved as a scenario."""

from planner_dashboard.own_data.page import page

__all__ = ["page"]
