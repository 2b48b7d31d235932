"""Version of planner."""

__version__ = "0.2.0"
