"""Signalling of control planes in system `traffic` when demands have changed, counted for one decision.

The network is known already: link states are flooded when links change, not when demands do.
"""

from __future__ import annotations

import json

from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


def signal_splits(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates to a controller, and its split ratios to every node."""
    rows = plan.flows
    ends = [name for name in ("source", "target", "head") if name in rows]
    splits = len(rows) * (NAME * len(ends) + FIGURE)
    return _with_reports(problem, messages=rows["tail"].nunique(), sent_bytes=splits)


def signal_splits_and_rates(problem: Traffic, plan: Routing) -> Signalling:
    """Count as `signal_splits`; the message to each source also has its demands' admitted rates."""
    rates = len(problem.demands) * (NAME + FIGURE)
    return signal_splits(problem, plan) + Signalling(messages=0, bytes=rates)


def signal_paths(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates to a controller, and its next hops of each flow to every node.

    An upper estimate: in practice, flows that stay on their hashed path need no message.
    """
    rows = plan.flows
    return _with_reports(problem, messages=rows["tail"].nunique(), sent_bytes=len(rows) * 3 * NAME)


def signal_weights(problem: Traffic, plan: Routing) -> Signalling:  # noqa: ARG001
    """Count the reports of demands' rates, the link weights sent to every node, and their flooding.

    An announcement names a node's links and their weights, and crosses every link once.
    """
    links = len(problem.links)
    announcers = problem.links["tail"].nunique()
    figures = links * (NAME + FIGURE)
    return _with_reports(
        problem, messages=announcers + announcers * links, sent_bytes=figures + links * figures
    )


def signal_lies(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates, and the fake nodes, which are flooded over every link.

    A fake node's announcement names its router, its next hop and its target, and has a weight.
    """
    fake = 0 if plan.lies is None else int(plan.lies["fake_nodes"].sum())
    messages = fake * len(problem.links)
    return _with_reports(problem, messages=messages, sent_bytes=messages * (3 * NAME + FIGURE))


def signal_segments(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates, and the segment lists sent to the sources of their demands."""
    table = plan.segments
    if table is None or table.empty:
        return _with_reports(problem, messages=0, sent_bytes=0)
    nodes = sum(len(json.loads(text)) for text in table["segments"])
    return _with_reports(
        problem, messages=table["source"].nunique(), sent_bytes=len(table) * (NAME + FIGURE) + nodes * NAME
    )


def signal_reservations(problem: Traffic, plan: Routing) -> Signalling:
    """Count the path and the reservation message of each demand on each link of its path.

    Nodes flood the available bandwidth of their links once after all reservations, 8 figures a link.
    """
    hops = len(plan.flows)
    links, nodes = len(problem.links), problem.links["tail"].nunique()
    flooded = links * (NAME + 8 * FIGURE)
    return Signalling(
        messages=2 * hops + nodes * links, bytes=2 * hops * (2 * NAME + FIGURE) + flooded * links
    )


def _with_reports(problem: Traffic, *, messages: int, sent_bytes: int) -> Signalling:
    """Add the reports of all sources to the messages that they receive."""
    reports = len(problem.demands) * (NAME + FIGURE)
    sources = int(problem.demands["source"].nunique())
    return Signalling(messages=sources + int(messages), bytes=int(reports + sent_bytes))
