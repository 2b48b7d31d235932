"""Picture of a distribution network: tiers from left to right, from sources to clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from planner.arrays import Bools, Floats, Ints
from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import amount, amount_of, counted
from planner_models.livevideo.problem.problem import LiveVideo

MOST_GROUPS: Final = 60  # client groups that are drawn one by one; more are joined by the nearest cluster
MOST_LINKS: Final = 20_000
ASPECT: Final = 1.7  # width of the picture over its height
LINK: Final = "link"  # kinds of elements
CLUSTER: Final = "cluster"


def draw(problem: LiveVideo) -> Sequence[Drawing]:
    """Draw the network without a plan."""
    return (draw_network(problem, "Links by capacity"),)


def draw_network(
    problem: LiveVideo,
    title: str,
    *,
    load_mbps: Floats | None = None,
    losses: Mapping[str, Floats] | None = None,
    is_up: tuple[Bools, Bools] | None = None,
) -> NetworkMap:
    """Return the picture of the network: links by utilization, as wide as their load.

    load_mbps     (L,) of each link; None without a plan: links are as wide as their capacity
    losses        (Q,) clients of each request who lose, by how in words
    is_up         (L,) links and (C,) clusters that work, others are drawn as failed; None: all
    """
    shown = _join_groups(problem)  # the cluster whose node stands for each cluster
    clusters = len(problem.clusters)
    links_up, clusters_up = is_up or (np.ones(len(problem.links), bool), np.ones(clusters, bool))
    links = _join_links(problem, shown, load_mbps, links_up)
    if len(links) > MOST_LINKS:
        title += f", the first {MOST_LINKS:,} of {len(links):,}"
        order = np.argsort(-(links["width"]).to_numpy(float), kind="stable")[:MOST_LINKS]
        links = links.iloc[np.sort(order)].reset_index(drop=True)
    lost = {
        words: np.bincount(shown[problem.group], weights=losing, minlength=clusters)
        for words, losing in (losses or {}).items()
    }
    nodes = _tabulate_nodes(problem, shown, load_mbps)
    if lost:
        nodes["lost"] = np.sum(list(lost.values()), axis=0)
        nodes["lost_as"] = [
            " or ".join(words for words, of_nodes in lost.items() if of_nodes[node] > 0)
            for node in range(clusters)
        ]
    nodes[["x", "y"]] = _places(problem, shown)
    return NetworkMap(
        title=title,
        nodes=nodes.iloc[np.unique(shown[clusters_up])].reset_index(drop=True),
        links=links,
        value="utilization",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="clients",
        link_kind=LINK,
        node_kind=CLUSTER,
        whole=None if links_up.all() and clusters_up.all() else draw_network(problem, title),
    )


def _tabulate_nodes(problem: LiveVideo, shown: Ints, load_mbps: Floats | None) -> pd.DataFrame:
    """Return the node of each cluster, as large as its traffic and clients.

    shown  (C,) cluster with the node that stands for each cluster
    """
    is_group = problem.level == problem.group_level
    names = problem.clusters["cluster"].astype(str).to_numpy(dtype=object)
    joined = np.bincount(shown[is_group], minlength=len(names))
    clients = np.bincount(shown[problem.group], weights=problem.clients, minlength=len(names))
    loads = np.zeros(len(problem.links)) if load_mbps is None else load_mbps
    sent, full = (
        np.bincount(problem.tail, weights=of_links, minlength=len(names))
        for of_links in (loads, problem.capacity_mbps)
    )
    share = np.divide(100 * sent, full, out=np.full(len(names), np.nan), where=full > 0)
    traffic = full if load_mbps is None else sent
    text = [
        amount(all_, "Mbit/s") if load_mbps is None else f"sends {amount_of(load, all_, 'Mbit/s')}"
        for load, all_ in zip(sent.tolist(), full.tolist(), strict=True)
    ]
    return pd.DataFrame(
        {
            "node": names,
            "label": [
                name if many < 2 else f"{name} and {many - 1} more"
                for name, many in zip(names.tolist(), joined.tolist(), strict=True)
            ],
            "element": np.where(is_group, "", names),
            "group": problem.clusters["tier"].astype(str),
            "value": np.nan if load_mbps is None else share,
            "size": traffic / (traffic.max(initial=0.0) or 1.0) + clients / (clients.max(initial=0.0) or 1.0),
            "lost": 0.0,
            "note": np.where(is_group, [counted(many, "clients") for many in clients.tolist()], text),
        }
    )


def _join_groups(problem: LiveVideo) -> Ints:
    """Return the cluster with the node that stands for each cluster, shape (C,); of groups the first near by.

    It does not depend on which links are up where clusters have coordinates, or are few.
    """
    shown = np.arange(len(problem.clusters))
    groups = np.flatnonzero(problem.level == problem.group_level)
    if len(groups) <= MOST_GROUPS:
        return shown
    above = np.flatnonzero(problem.level == problem.group_level - 1)
    where = find_coordinates(problem)
    if where is not None:
        near = above[cKDTree(where[above]).query(where[groups])[1]]
    else:
        first = np.full(len(problem.clusters), -1)
        first[problem.head[::-1]] = problem.tail[::-1]
        near = first[groups]
    _, leader, inverse = np.unique(near, return_index=True, return_inverse=True)
    shown[groups] = groups[leader[inverse.ravel()]]
    return shown


def find_coordinates(problem: LiveVideo) -> Floats | None:
    """Return the place of each cluster on the unit sphere, (C, 3); None where one is unknown."""
    clusters, names = problem.clusters, ["latitude", "longitude"]
    if not set(names) <= set(clusters) or clusters[names].isna().any(axis=None):
        return None
    latitude, longitude = (np.radians(clusters[name].to_numpy(float)) for name in names)
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1)


def name_links(problem: LiveVideo) -> list[str]:
    """Return the name of each link, (L,), as `fail_links` takes it; "" where two have the same."""
    count = Counter(problem.link_labels)
    return [label if count[label] == 1 else "" for label in problem.link_labels]


def _join_links(problem: LiveVideo, shown: Ints, load_mbps: Floats | None, is_up: Bools) -> pd.DataFrame:
    """Return the working links between shown clusters, with sums of loads and capacities of joined ones."""
    count = len(problem.clusters)
    ends, first, inverse, joined = np.unique(
        (shown[problem.tail] * count + shown[problem.head])[is_up],
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    capacity = np.bincount(inverse, weights=problem.capacity_mbps[is_up], minlength=len(ends))
    load = np.full(len(ends), np.nan)
    if load_mbps is not None:
        load = np.bincount(inverse, weights=load_mbps[is_up], minlength=len(ends))
    names = np.array(name_links(problem), dtype=object)[is_up]
    with np.errstate(divide="ignore", invalid="ignore"):
        percent = np.where(load > 0, 100 * load / capacity, load)
    clusters = problem.clusters["cluster"].astype(str).to_numpy(dtype=object)
    return pd.DataFrame(
        {
            "tail": clusters[ends // count],
            "head": clusters[ends % count],
            "value": percent,
            "element": [
                names[link] if links == 1 else ""
                for link, links in zip(first.tolist(), joined.tolist(), strict=True)
            ],
            "width": capacity if load_mbps is None else load,
            "note": [
                amount(full, "Mbit/s") if load_mbps is None else amount_of(share, full, "Mbit/s")
                for share, full in zip(load.tolist(), capacity.tolist(), strict=True)
            ],
        }
    )


def _places(problem: LiveVideo, shown: Ints) -> Floats:
    """Return x and y of each cluster, (C, 2): tiers from left to right, within them by latitude or by row."""
    count = len(problem.clusters)
    order = np.arange(count)[::-1].astype(float)
    if "latitude" in problem.clusters and problem.clusters["latitude"].notna().all():
        order = problem.clusters["latitude"].to_numpy(float)
    positions = np.zeros((count, 2))
    for level in range(problem.group_level + 1):
        here = np.unique(shown[problem.level == level])
        ranked = here[np.lexsort((here, order[here]))]
        positions[ranked, 0] = ASPECT * level / problem.group_level
        positions[ranked, 1] = (np.arange(len(ranked)) + 0.5) / len(ranked)
    return positions
