"""What the control planes of system `traffic` tell each other when demands have changed.

The network is known already: link states are flooded when links change, not demands.
"""

from __future__ import annotations

from planner.exchange import FIGURE, NAME, Exchange
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing


def central(problem: Traffic, plan: Routing) -> Exchange:
    """Every source reports its demands' rates; the controller sends every node its splits."""
    rows = plan.flows
    whom = [name for name in ("source", "target", "head") if name in rows]
    splits = len(rows) * (NAME * len(whom) + FIGURE)
    return _reported(problem, messages=rows["tail"].nunique(), told=splits)


def with_rates(problem: Traffic, plan: Routing) -> Exchange:
    """As `central`; with its splits every source is sent the rates that its demands may have."""
    rates = len(problem.demands) * (NAME + FIGURE)
    return central(problem, plan) + Exchange(messages=0, bytes=rates)


def paths(problem: Traffic, plan: Routing) -> Exchange:
    """Every source reports its demands' rates; the controller sends every node next hops, flow by flow.

    Counted as if it moved every demand: what stays where it was hashed to is not told in truth.
    """
    rows = plan.flows
    return _reported(problem, messages=rows["tail"].nunique(), told=len(rows) * 3 * NAME)


def weights(problem: Traffic, plan: Routing) -> Exchange:  # noqa: ARG001
    """Every source reports its demands' rates; every node is sent its links' weights, which it floods."""
    links = len(problem.links)
    announcers = problem.links["tail"].nunique()
    # an announcement names a node's links and their weights, and crosses every link once
    figures = links * (NAME + FIGURE)
    return _reported(problem, messages=announcers + announcers * links, told=figures + links * figures)


def _reported(problem: Traffic, *, messages: int, told: int) -> Exchange:
    """The reports of all sources, with what they are told."""
    reports = len(problem.demands) * (NAME + FIGURE)
    return Exchange(messages=int(problem.demands["source"].nunique() + messages), bytes=int(reports + told))
