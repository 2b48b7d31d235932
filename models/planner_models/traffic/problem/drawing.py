"""Picture of a network: its nodes on a map, in the tiers of a fabric, or laid out by their links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.contract.layout import place_nodes
from planner.formatting import amount, amount_of
from planner.search.tolerances import NEGLIGIBLE
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.problem.network_elements import DuplexLines
from planner_models.traffic.problem.problem import Traffic

MOST_LINKS: Final = 20_000  # of a picture
SMALLEST_PART: Final = NEGLIGIBLE  # of a loss that words name
LINK: Final = "link"  # kinds of elements
NODE: Final = "node"


def draw(problem: Traffic) -> Sequence[Drawing]:
    """Draw the network without a plan."""
    return (draw_network(problem, "Links by capacity"),)


def draw_network(
    problem: Traffic,
    title: str,
    *,
    load_mbps: Floats | None = None,
    dropped_mbps: Floats | None = None,
    unsent_mbps: Floats | None = None,
    failed_mbps: Floats | None = None,
) -> NetworkMap:
    """Return the picture of the network: links by utilization, as wide as their capacity.

    load_mbps     (E,) of each link; None without a plan
    dropped_mbps  (E,) what each link drops
    unsent_mbps   (K,) what each demand does not send
    failed_mbps   (K,) the part of it that failed links take, or that has no path
    """
    links = _list_links(problem, load_mbps, dropped_mbps)
    if len(links) < len(problem.links):
        title += f", the first {len(links):,} of {len(problem.links):,}"
    return NetworkMap(
        title=title,
        nodes=_list_nodes(problem, unsent_mbps, failed_mbps),
        links=links,
        value="utilization",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="Mbit/s",
        link_kind=LINK,
        node_kind=NODE,
    )


def _list_links(problem: Traffic, load_mbps: Floats | None, dropped_mbps: Floats | None) -> pd.DataFrame:
    """Return the drawn links with their utilization, width and note; of many links the busiest."""
    capacity = problem.capacity_mbps
    lines = DuplexLines.group(problem, both_ways=True)
    names = Counter(lines.names)
    elements = np.array([name if names[name] == 1 else "" for name in lines.names], dtype=object)
    links = pd.DataFrame(
        {
            "tail": problem.links["tail"].to_numpy(),
            "head": problem.links["head"].to_numpy(),
            "value": np.nan if load_mbps is None else 100 * load_mbps / capacity,
            "element": elements[lines.of_link],
            "width": capacity,
        }
    )
    if dropped_mbps is not None:
        links["lost"] = dropped_mbps
    order = np.argsort(-(capacity if load_mbps is None else load_mbps / capacity), kind="stable")
    selected = np.sort(order[:MOST_LINKS])
    links = links.iloc[selected]
    load = [None] * len(selected) if load_mbps is None else load_mbps[selected].tolist()
    links["note"] = [
        amount(full, "Mbit/s") if carried is None else amount_of(carried, full, "Mbit/s")
        for carried, full in zip(load, capacity[selected].tolist(), strict=True)
    ]
    return links.reset_index(drop=True)


def _list_nodes(problem: Traffic, unsent_mbps: Floats | None, failed_mbps: Floats | None) -> pd.DataFrame:
    """Return the nodes with their places, the traffic that starts and ends there, and what is lost."""
    count = len(problem.nodes)
    sent = sum_by_index(problem.source, problem.rate_mbps, count)
    received = sum_by_index(problem.target, problem.rate_mbps, count)
    nodes = problem.nodes.dropna(axis="columns", how="all").reset_index(drop=True)
    if not {"x", "y"} <= set(nodes):  # in a fabric all hosts are alike, and many
        nodes = nodes.assign(size=sent + received)
    nodes = nodes.assign(
        note=[
            f"{amount(out, 'Mbit/s')} start here, {amount(into, 'Mbit/s')} end here"
            for out, into in zip(sent.tolist(), received.tolist(), strict=True)
        ],
    )
    if unsent_mbps is not None:
        nodes["lost"] = sum_by_index(problem.source, unsent_mbps, count)
        failed = np.zeros(len(unsent_mbps)) if failed_mbps is None else failed_mbps
        by_failure = sum_by_index(problem.source, failed, count)
        by_capacity = sum_by_index(problem.source, np.maximum(unsent_mbps - failed, 0.0), count)
        nodes["lost_as"] = _describe_losses(problem, by_capacity, by_failure)
    if not {"latitude", "longitude"} <= set(nodes):
        nodes[["x", "y"]] = place_nodes(nodes, problem.links).to_numpy()
    return nodes


def _describe_losses(problem: Traffic, by_capacity: Floats, by_failure: Floats) -> list[str]:
    """Return the reason for undelivered traffic from each node, shape (N,); "" if all of it arrives."""
    no_path = sum_by_index(problem.source, problem.unreachable * problem.rate_mbps, len(problem.nodes)) > 0
    texts = []
    for capacity, failure, is_cut_off in zip(by_capacity, by_failure, no_path, strict=True):
        cause = "no path" if is_cut_off else "failure"
        if capacity > SMALLEST_PART * failure:
            is_both = failure > SMALLEST_PART * capacity
            texts.append(f"not served (capacity, {cause})" if is_both else "not served (capacity)")
        else:
            texts.append(f"lost ({cause})" if failure > 0 else "")
    return texts
