"""Conformance tests, for planner's own parts and for those that other packages add."""

from planner.testing.backends import check_backend
from planner.testing.designs import check_design
from planner.testing.magnitudes import check_magnitudes
from planner.testing.systems import check_system

__all__ = ["check_backend", "check_design", "check_magnitudes", "check_system"]
