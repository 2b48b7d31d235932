"""No coordination: the CDN takes near clusters, the network takes shortest paths."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner_models.cdnrouting.designs.decision import decide_without_bound, refuse_shortage
from planner_models.cdnrouting.designs.path_usage import PathUsage
from planner_models.cdnrouting.plan.flow_problem import Kinds, shortest_ratios
from planner_models.cdnrouting.plan.plan import DeliveryPlan, State
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.flows.source_choice import cheapest_sources


@refuse_shortage
def plan(problem: Delivery, *, options: Options = Options()) -> Decision[DeliveryPlan]:
    """Assign clients to the clusters of least latency at rest, and route on shortest paths."""
    kinds, ratios = Kinds.of(problem), shortest_ratios(problem)
    assigned = nearest(kinds, ratios, options)
    state = State(assigned=kinds.to_groups(assigned), ratios=ratios)
    return decide_without_bound(problem, [state])


def nearest(kinds: Kinds, ratios: sp.coo_array, options: Options) -> Floats:
    """Return the (K, S) traffic of kinds from the clusters of least latency at rest within capacities."""
    usage = PathUsage.of(kinds, ratios)
    solved = cheapest_sources(kinds.choice(), usage.latency(kinds.problem.network.latency), options)
    return np.zeros(kinds.allowed.shape) if solved is None else solved[0]
