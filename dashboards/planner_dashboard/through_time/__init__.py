"""Page "Through time": designs on consecutive windows with events, and simulations, played in time."""

from planner_dashboard.through_time.page import page

__all__ = ["page"]
