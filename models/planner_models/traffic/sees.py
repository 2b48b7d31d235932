"""What control planes believe about a traffic problem, and how their plans play out in truth."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner_models.traffic import cycles, routing, splits
from planner_models.traffic.check import carried
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing


def measured(
    problem: Traffic,
    *,
    noise: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of each measured rate")
    ] = 0.0,
    seed: Annotated[int, Field(ge=0, description="seed of the noise")] = 0,
) -> Traffic:
    """The network as it is, and every demand's rate as measured: times a lognormal factor of median 1."""
    if noise == 0:
        return problem
    factor = np.random.default_rng(seed).lognormal(0.0, noise, size=len(problem.demands))
    return problem.with_rates(problem.rate_mbps * factor)


def enact(truth: Traffic, believed: Traffic, plan: Routing) -> Routing:
    """The plan as it plays out: each demand takes its splits, at its true rate.

    The share of a demand that the plan meant to leave unserved stays unserved.
    """
    if "source" not in plan.flows:
        return _enacted_by_target(truth, believed, plan)
    factor = np.divide(
        truth.rate_mbps, believed.rate_mbps, out=np.zeros(len(truth.demands)), where=believed.rate_mbps > 0
    )
    flow = sp.diags_array(factor) @ routing.flow_mbps(believed, plan)
    return routing.by_pair(truth, flow)


def _enacted_by_target(truth: Traffic, believed: Traffic, plan: Routing) -> Routing:
    """The same of a plan with flows per target: nodes split what they get for a target as planned."""
    flow = routing.flow_to_mbps(believed, plan)
    served = carried(believed, plan).served_mbps
    share = np.divide(served, believed.rate_mbps, out=np.zeros(len(served)), where=believed.rate_mbps > 0)
    ways = splits.of_flow(believed, cycles.without(believed, flow.tocoo()))
    ratios = splits.completed(believed, ways)
    return routing.by_target(truth, splits.gathered(truth, ratios, truth.rate_mbps * share))
