"""Small problems of system `cdnrouting`, and a brute force that shares no code with the designs."""

from __future__ import annotations

from dataclasses import replace

from planner_models.cdnrouting import Delivery
from planner_models.cdnrouting.problem import generators


def network(
    seed: int = 0, *, nodes: int = 6, clusters: int = 3, load: float = 1.2, step: float = 1.0
) -> Delivery:
    """Return a random network with so many clusters."""
    problem = generators.backbone(nodes=nodes, clusters=clusters, load=load, seed=seed)
    return problem.with_terms(step=step)


def with_capacity(problem: Delivery, factor: float) -> Delivery:
    """Return the problem with the capacity of clusters multiplied by a factor."""
    capacity = problem.clusters["capacity_mbps"] * factor
    return replace(problem, clusters=problem.clusters.assign(capacity_mbps=capacity))
