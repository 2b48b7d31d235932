"""Metrics of a routing."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.contract.metrics import Metric
from planner_models.traffic.plan.check import TOLERANCE, verify_flow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

METRICS: Final = (
    Metric(
        name="concurrent_flow",
        unit="x demand",
        better="more",
        about="factor by which all demands can grow before a link is full, with the plan's split ratios",
        source="maximum concurrent flow (Shahrokhi and Matula 1990)",
    ),
    Metric(
        name="max_utilization",
        unit="",
        better="less",
        about="load over capacity of the busiest link",
        source="Sen et al. 2013 (LocalFlow), section 4",
    ),
    Metric(name="total_flow_mbps", unit="Mbit/s", better="more", about="traffic that the plan serves"),
    Metric(
        name="mean_path_stretch",
        unit="x shortest",
        better="less",
        about="mean weight of the paths over that of the shortest paths, averaged by traffic",
    ),
    Metric(
        name="mean_latency_ms", unit="ms", better="less", about="mean delay of the paths, averaged by traffic"
    ),
    Metric(name="cost", unit="", better="less", about="cost of the traffic on all links"),
    Metric(name="overloaded_links", unit="links", better="less", about="links with more load than capacity"),
    Metric(name="unserved_mbps", unit="Mbit/s", better="less", about="demand that the plan does not serve"),
    Metric(
        name="mean_rate_share",
        unit="",
        better="more",
        about="served share of a demand, mean over demands",
        source="Sen et al. 2013 (LocalFlow), section 7.2",
    ),
    Metric(
        name="min_rate_share",
        unit="",
        better="more",
        about="served share of the demand with the smallest one",
        source="Sen et al. 2013 (LocalFlow), section 7.2",
    ),
    Metric(
        name="geometric_rate_share",
        unit="",
        better="more",
        about="geometric mean of the served shares of demands, largest under proportional fairness",
        source="Kelly, Maulloo and Tan 1998",
    ),
    Metric(
        name="rate_fairness",
        unit="",
        better="more",
        about="Jain's fairness index of the served shares of demands, 1 where all are the same",
        source="Jain, Chiu and Hawe 1984",
    ),
)


def measure(problem: Traffic, plan: Routing, previous: Routing | None) -> dict[str, float | None]:  # noqa: ARG001
    """Return every metric of the plan, from the true problem and the plan alone."""
    flow = verify_flow(problem, plan)
    load, served = flow.load_mbps, flow.served_mbps
    utilization = load / problem.capacity_mbps
    busiest = float(utilization.max(initial=0.0))
    wanted = problem.rate_mbps > 0
    smallest_share = float((served[wanted] / problem.rate_mbps[wanted]).min()) if wanted.any() else None
    total = float(served.sum())
    shortest = _shortest_weight(problem, served)
    return {
        "concurrent_flow": smallest_share / busiest if smallest_share is not None and busiest > 0 else None,
        "max_utilization": busiest,
        "total_flow_mbps": total,
        "mean_path_stretch": float(problem.weight @ load) / shortest if shortest > 0 else None,
        "mean_latency_ms": _per_link(problem, "latency_ms", load, total),
        "cost": _per_link(problem, "cost", load, 1.0),
        "overloaded_links": float((utilization > 1 + TOLERANCE).sum()),
        "unserved_mbps": float(np.clip(problem.rate_mbps * (1 - 1e-12) - served, 0.0, None).sum()),
        **_shares(served[wanted] / problem.rate_mbps[wanted]),
    }


def _shares(share: np.ndarray) -> dict[str, float | None]:
    """Return the metrics of the served shares of demands."""
    if not len(share):
        return dict.fromkeys(("mean_rate_share", "min_rate_share", "geometric_rate_share", "rate_fairness"))
    squares = float((share**2).sum())
    with np.errstate(divide="ignore"):
        geometric = float(np.exp(np.log(share).mean()))
    return {
        "mean_rate_share": float(share.mean()),
        "min_rate_share": float(share.min()),
        "geometric_rate_share": geometric,
        "rate_fairness": float(share.sum()) ** 2 / (len(share) * squares) if squares > 0 else None,
    }


def _shortest_weight(problem: Traffic, served: np.ndarray) -> float:
    """Return the sum of served rates times the weights of shortest paths."""
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    row = np.searchsorted(problem.targets, problem.target[wanted])
    return float(served[wanted] @ problem.distance[row, problem.source[wanted]])


def _per_link(problem: Traffic, column: str, load: np.ndarray, total: float) -> float | None:
    if column not in problem.links or total <= 0:
        return None
    return float(problem.links[column].to_numpy(float) @ load) / total
