"""What the control planes of system `traffic` tell each other when demands have changed.

The network is known already: link states are flooded when links change, not demands.
"""

from __future__ import annotations

from planner.system import Exchange
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing

NAME, FIGURE = 4, 8


def nothing(problem: Traffic, plan: Routing) -> Exchange:  # noqa: ARG001
    """Every switch or host decides on what passes it."""
    return Exchange(messages=0, bytes=0)


def central(problem: Traffic, plan: Routing) -> Exchange:
    """Every source reports its demands' rates; the controller sends every node its splits."""
    sources = problem.demands["source"].nunique()
    rows = plan.flows
    whom = [name for name in ("source", "target", "head") if name in rows]
    reports = len(problem.demands) * (NAME + FIGURE)
    splits = len(rows) * (NAME * len(whom) + FIGURE)
    return Exchange(messages=int(sources + rows["tail"].nunique()), bytes=int(reports + splits))


def weights(problem: Traffic, plan: Routing) -> Exchange:  # noqa: ARG001
    """Every source reports its demands' rates; new link weights are flooded over every link."""
    sources = problem.demands["source"].nunique()
    reports = len(problem.demands) * (NAME + FIGURE)
    links, nodes = len(problem.links), len(problem.nodes)
    # a node announces its own links, and the announcement crosses every link once
    flood = links * links * (NAME + FIGURE)
    return Exchange(messages=int(sources + nodes * links), bytes=int(reports + flood))
