"""Adjustments that apply to every problem of system `cdnrouting`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner_models.cdnrouting.problem.problem import Delivery

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def adjust(
    problem: Delivery,
    *,
    scale: Annotated[Positive, Field(description="all traffic is multiplied by this")] = 1.0,
    client_scale: Annotated[Positive, Field(description="bitrates of clients are multiplied by this")] = 1.0,
    fail_links: Annotated[tuple[str, ...], Field(description="links, as tail->head, that are down")] = (),
    fail_clusters: Annotated[tuple[str, ...], Field(description="clusters that serve no client")] = (),
    link_factors: Annotated[
        dict[str, Factor], Field(description="links, and what their capacity is multiplied by")
    ] = {},  # noqa: B006 - never changed
    cluster_factors: Annotated[
        dict[str, Factor], Field(description="clusters, and what their capacity is multiplied by")
    ] = {},  # noqa: B006 - never changed
    queueing_ms: Annotated[
        Positive | None,
        Field(description="delay of a link's queue at half its capacity, ms; default: as in the tables"),
    ] = None,
    performance_weight: Annotated[
        float | None,
        Field(ge=0, le=1, description="weight of latency against prices; default: as in the tables"),
    ] = None,
    step: Annotated[
        float | None,
        Field(
            ge=1e-3,
            le=1,
            description="share of clients that the CDN moves at once; default: as in the tables",
        ),
    ] = None,
    cdn_rounds: Annotated[
        int | None,
        Field(ge=1, le=1000, description="moves of the CDN for each of the ISP; default: as in the tables"),
    ] = None,
) -> Delivery:
    """Return the problem with other traffic, capacities or terms.

    raises  InputError for links and clusters that are none
    """
    changed = problem
    if scale != 1:
        changed = scale_traffic(changed, scale)
    if client_scale != 1:
        bitrate = changed.clients["bitrate_kbps"] * client_scale
        changed = replace(changed, clients=changed.clients.assign(bitrate_kbps=bitrate))
    index = pd.Index(problem.link_labels)
    factors = {**dict.fromkeys(link_factors, 1.0), **link_factors, **dict.fromkeys(fail_links, 0.0)}
    if factors:
        parameter = "link_factors" if link_factors else "fail_links"
        rows = changed.require(parameter, factors, index, "link")
        changed = replace(changed, links=_multiply(changed.links, rows, factors))
    factors = {**cluster_factors, **dict.fromkeys(fail_clusters, 0.0)}
    if factors:
        parameter = "cluster_factors" if cluster_factors else "fail_clusters"
        rows = changed.require(parameter, factors, problem.cluster_index, "cluster")
        changed = replace(changed, clusters=_multiply(changed.clusters, rows, factors))
    inputs = {
        "queueing_ms": queueing_ms,
        "performance_weight": performance_weight,
        "step": step,
        "cdn_rounds": cdn_rounds,
    }
    terms = {name: float(value) for name, value in inputs.items() if value is not None}
    return changed.with_terms(**terms) if terms else changed


def scale_traffic(problem: Delivery, factor: float) -> Delivery:
    """Return the problem with all traffic multiplied by a factor."""
    return replace(
        problem,
        demands=problem.demands.assign(rate_mbps=problem.demands["rate_mbps"] * factor),
        clients=problem.clients.assign(bitrate_kbps=problem.clients["bitrate_kbps"] * factor),
    )


def _multiply(frame: pd.DataFrame, rows: Ints, factors: dict[str, float]) -> pd.DataFrame:
    """Return a table with the capacity of some rows multiplied by factors, in their order."""
    capacity = frame["capacity_mbps"].to_numpy(float).copy()
    capacity[rows] *= np.array(list(factors.values()))
    return frame.assign(capacity_mbps=capacity)
