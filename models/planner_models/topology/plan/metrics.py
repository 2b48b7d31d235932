"""Metrics of system `topology`."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.contract.metrics import Headline, less, more
from planner.formatting import amount
from planner_models.topology.plan.check import evaluate
from planner_models.topology.plan.plan import Topology
from planner_models.topology.problem.problem import Fabric

MAX_NAMED: Final = 3  # demands that a sentence names
JUPITER: Final = "Poutievski et al. 2022 (Jupiter)"

METRICS: Final = (
    more(
        "demand_scale",
        "times",
        "largest factor by which all demand that can have a path may be multiplied on the plan's paths; 0 "
        "where some of it has none",
        JUPITER,
    ),
    more("offered_mbps", "Mbit/s", "all demand"),
    more("delivered_mbps", "Mbit/s", "demand that fits, where all demands with a path are reduced alike"),
    less(
        "unserved_mbps",
        "Mbit/s",
        "demand without a path, or that does not fit where others are reduced alike",
    ),
    less(
        "max_utilization",
        "",
        "largest load of a link over its capacity where all is sent; unknown where a demand has no path",
        JUPITER,
    ),
    less("stretch", "links", "mean number of links that traffic takes, one or two", JUPITER),
    less("transit_share", "", "share of traffic that takes a transit block"),
    less("links", "links", "links of the topology"),
    less("moved_links", "links", "links made anew; unknown without links of today"),
    less("steps", "steps", "steps of the change; unknown without links of today"),
    more(
        "drain_scale",
        "times",
        "least demand scale of the links that stay in service in a step, at most 1; unknown without steps",
    ),
)


def say_without_path(problem: Fabric) -> str:
    """Return the sentence that names demands which no plan has a path for; "" where there is none."""
    lacking = problem.demand_mbps - problem.servable_mbps
    count = int((lacking > 0).sum())
    if not count:
        return ""
    largest = np.argsort(-lacking, axis=None, kind="stable")[: min(count, MAX_NAMED)]
    pairs = zip(*np.unravel_index(largest, lacking.shape), strict=True)
    names = [f"{problem.names[i]}->{problem.names[j]}" for i, j in pairs]
    more = f" and {count - MAX_NAMED:,} more" if count > MAX_NAMED else ""
    verb = "demand has" if count == 1 else "demands have"
    return f"{count:,} {verb} no path: {', '.join(names)}{more} ({amount(float(lacking.sum()), 'Mbit/s')})."


def measure_without_path(problem: Fabric) -> dict[str, float]:
    """Return the demand, Mbit/s, that no plan has a path for, as part of `unserved_mbps`."""
    lacking = problem.demand_mbps - problem.servable_mbps
    return {"unserved_mbps": float(lacking[lacking > 0].sum())}


HEADLINE: Final = Headline(
    metric="demand_scale",
    verb="carries {} the demand",
    then="stretch",
    then_words="over a mean of",
    losses={"unserved_mbps": "leaves {} unserved"},
    growth="demand_scale",
    cost="unserved_mbps",
    unservable=say_without_path,
    unservable_losses=measure_without_path,
    table=(
        "demand_scale",
        "max_utilization",
        "unserved_mbps",
        "stretch",
        "transit_share",
        "moved_links",
        "steps",
        "drain_scale",
    ),
)
LIMITS: Final = {
    "ports": "blocks with more links than ports",
    "moves": "exceeded limits on moves",
    "routes": "demands without a whole path",
    "steps": "steps that move too many links",
    "drain": "steps in which the demand does not fit",
}


def measure(
    problem: Fabric,
    plan: Topology,
    previous: Topology | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    evaluation = evaluate(problem, plan)
    offered, scale = float(problem.demand_mbps.sum()), evaluation.scale
    delivered = evaluation.delivered_mbps
    present, changes = problem.present, evaluation.changes
    moved = None if present is None else float(np.maximum(evaluation.links - present, 0).sum() // 2)
    return {
        "demand_scale": scale,
        "offered_mbps": offered,
        "delivered_mbps": delivered,
        "unserved_mbps": offered - delivered,
        "max_utilization": 1 / scale if scale > 0 else None,
        "stretch": evaluation.stretch,
        "transit_share": evaluation.transit_share,
        "links": float(evaluation.links.sum() // 2),
        "moved_links": moved,
        "steps": None if changes is None else float(len(changes)),
        "drain_scale": min(evaluation.step_scales) if evaluation.step_scales else None,
    }
