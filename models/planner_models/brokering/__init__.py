"""Brokering."""
from planner_models.brokering.problem import Brokering
