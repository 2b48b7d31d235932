"""Realization of a plan: the traffic that results when a plan made on an observation meets true demands."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats
from planner_models.flows import split_ratios
from planner_models.traffic.plan import classes
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic


def realize(truth: Traffic, observed: Traffic, plan: Routing) -> Routing:
    """Return the routing of the true rates over the split ratios of the plan.

    The share of a demand that the plan leaves unserved stays unserved. Where the plan's flows are
    per target, nodes split all traffic to a target as planned.
    """

    def relative_to_observed(rate_mbps: Floats) -> Floats:
        """Return the rates over the observed ones, shape (K,); 0 where nothing was observed."""
        observed_rate = observed.rate_mbps
        return np.divide(rate_mbps, observed_rate, out=np.zeros(len(observed_rate)), where=observed_rate > 0)

    if "source" in plan.flows:
        factor = relative_to_observed(truth.rate_mbps)
        return routing.routing_by_demand(
            truth, sp.diags_array(factor) @ routing.flow_by_demand(observed, plan)
        )
    served_share = relative_to_observed(verify_flow(observed, plan).served_mbps)
    rate_mbps = truth.rate_mbps * served_share
    if truth.has_classes:
        ratios_of = classes.ratios_by_class(observed, verify_flow(observed, plan))
        return classes.routing_by_class(truth, ratios_of, rate_mbps)
    flow = split_ratios.remove_cycles(observed, routing.flow_by_target(observed, plan).tocoo())
    ratios = split_ratios.complete_ratios(observed, split_ratios.compute_ratios(observed, flow))
    return routing.routing_by_target(truth, split_ratios.apply_ratios_by_target(truth, ratios, rate_mbps))
