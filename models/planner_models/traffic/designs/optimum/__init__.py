"""The design `optimum`: `route`, and the search that it chooses by objective and size."""

from planner_models.traffic.designs.optimum.optimum import route

__all__ = ["route"]
