"""Presentation of trees: drawings, and elements with their actions and use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.contract.elements import Action, ElementKind, ElementReport, Fact, Role
from planner.contract.studies import Decided, Section
from planner.formatting import amount, counted
from planner.io.in_memory import to_graph
from planner.options import Options
from planner.search.tolerances import IMPROVEMENT
from planner_models.livevideo.plan.check import Delivery, compute_delivery, is_overloaded
from planner_models.livevideo.plan.metrics import OBJECTIVE, losing_clients
from planner_models.livevideo.plan.plan import PricedDecision, Trees
from planner_models.livevideo.problem.drawing import CLUSTER, LINK, draw_network, find_coordinates, name_links
from planner_models.livevideo.problem.problem import LiveVideo

if TYPE_CHECKING:
    import networkx as nx


LOSS_WORDS: Final = {
    "unserved_clients": "not served",
    "degraded_clients": "degraded",
    "lower_bitrate_clients": "at a lower bitrate",
}
"""Words at a node by the metric that counts the clients."""
MOST_USERS: Final = 10  # rows of a table of channels
SMALLEST_GAIN: Final = IMPROVEMENT  # relative to the service that is requested


def add_load(problem: LiveVideo, plan: Trees) -> nx.MultiDiGraph:
    """Return the network with `load_mbps` and `utilization` of each link under a plan."""
    load = compute_delivery(problem, plan).load_mbps
    more = {"load_mbps": load, "utilization": problem.utilization(load)}
    return to_graph(problem.clusters, problem.links, more)


def draw(problem: LiveVideo, plan: Trees) -> Sequence[Drawing]:
    """Draw the tiers with the clients that lose, the clusters on a map, and utilization by tier.

    Clients lose where no tree reaches them, where a link before them is overloaded, or where they receive a
    lower bitrate than they requested.
    """
    delivery = compute_delivery(problem, plan)
    load, full = delivery.load_mbps, problem.capacity_mbps
    # a link that is full but for rounding is not overloaded
    load = np.where(is_overloaded(problem, load), load, np.minimum(load, full))
    percent = 100 * problem.utilization(load)
    level = problem.level[problem.tail]
    return (
        draw_network(
            problem, "Video from sources to clients", load_mbps=load, losses=find_losses(problem, delivery)
        ),
        *_draw_map(problem, percent),
        Distribution(
            title="Utilization of links by tier",
            values={
                f"{problem.tiers[tier]} to {problem.tiers[tier + 1]}": pd.Series(percent[level == tier])
                for tier in range(problem.group_level)
            },
            what="utilization",
            unit="%",
            limit=100.0,
        ),
    )


def find_losses(problem: LiveVideo, delivery: Delivery) -> dict[str, Floats]:
    """Return the losing clients of each request, by the words of the loss: each (Q,), disjoint."""
    losing = losing_clients(problem, delivery)
    return {words: losing[name] for name, words in LOSS_WORDS.items()}


def _draw_map(problem: LiveVideo, percent: Floats) -> Iterator[NetworkMap]:
    """Yield a map of the links between clusters, where these have places."""
    if find_coordinates(problem) is None:
        return
    named = problem.clusters.rename(columns={"cluster": "node", "tier": "group"}).astype(
        {"node": str, "group": str}
    )
    ends = problem.links[["tail", "head"]].astype(str)
    is_inner = problem.level[problem.tail] < max(problem.group_level - 1, 1)
    inner = ends.assign(value=percent, element=name_links(problem))[is_inner]
    nodes = named[named["node"].isin({*inner["tail"], *inner["head"]})]
    is_group = nodes["group"] == problem.tiers[problem.group_level]
    yield NetworkMap(
        title="Links between clusters by utilization",
        nodes=nodes.assign(element=nodes["node"].where(~is_group, "")).reset_index(drop=True),
        links=inner.reset_index(drop=True),
        value="utilization",
        unit="%",
        limit=100.0,
        link_kind=LINK,
        node_kind=CLUSTER,
    )


def find_dual_prices(problem: LiveVideo, decided: Decided) -> Floats | None:
    """Return the dual price of each link's capacity, (L,), objective per Mbit/s; None without prices."""
    if not isinstance(decided.decision, PricedDecision):
        return None
    prices = decided.decision.prices
    return np.array([prices.get((label, 0.0), 0.0) for label in problem.link_labels])


def _list_users(problem: LiveVideo, delivery: Delivery, links: Bools) -> Section:
    """Return the channels with the largest load on some links, and all others in one row."""
    here = links[delivery.link]
    rows = pd.DataFrame(
        {
            "channel": problem.objects["channel"].to_numpy()[delivery.object[here]],
            "load_mbps": problem.bitrate_mbps[delivery.object[here]] * delivery.count[here],
        }
    )
    by_channel = rows.groupby("channel", sort=False)["load_mbps"].sum()
    order = by_channel.sort_values(ascending=False, kind="stable")
    users = list(zip(order.index.astype(str), order.tolist(), strict=True))
    shown, others = users[:MOST_USERS], users[MOST_USERS:]
    if others:
        shown.append((counted(len(others), "others"), sum(load for _, load in others)))
    frame = pd.DataFrame(shown, columns=["channel", "load_mbps"])
    total = float(frame["load_mbps"].sum())
    frame["share"] = frame["load_mbps"] / total if total > 0 else 0.0
    units = {"load_mbps": "Mbit/s", "share": ""}
    return Section(title="Channels with the largest load", frame=frame, units=units)


def _describe_links(
    problem: LiveVideo, decided: Decided, links: Bools, *, label: str
) -> tuple[Delivery, list[Fact], Section]:
    """Return the delivery, facts and users of some links, (L,); `label` names their capacity."""
    delivery = compute_delivery(problem, decided.decision.plan)  # type: ignore[arg-type]
    load, capacity = delivery.load_mbps[links], problem.capacity_mbps[links]
    spent = float(problem.cost[links] @ load)
    price = find_dual_prices(problem, decided)
    facts = [
        Fact(
            label="Utilization",
            value=100 * float(load.sum() / capacity.sum()) if capacity.sum() > 0 else None,
            unit="%",
        ),
        Fact(label="Load", value=float(load.sum()), unit="Mbit/s"),
        Fact(label=label, value=float(capacity.sum()), unit="Mbit/s"),
        Fact(
            label="Gain by 1 Mbit/s more (service minus cost)",
            value=None if price is None else float(price[links].sum()),
        ),
        Fact(label="Cost of its traffic", value=spent),
    ]
    return delivery, facts, _list_users(problem, delivery, links)


# --- links --------------------------------------------------------------------------------


def list_links(problem: LiveVideo) -> Sequence[str]:
    """Return the names of all links, tail->head; names that two have are left out."""
    return [name for name in name_links(problem) if name]


def describe_link(
    problem: LiveVideo,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return load, capacity and price of a link, and the channels with the largest part of its load."""
    link = problem.link_labels.index(LINKS.require(problem, name))
    is_here = np.arange(len(problem.links)) == link
    delivery, facts, users = _describe_links(problem, decided, is_here, label="Capacity")
    facts.append(Fact(label="Cost", value=float(problem.cost[link]), unit="per Mbit/s"))
    if problem.is_unicast and problem.is_last_hop[link]:
        facts.append(
            Fact(label="Viewers with a stream each", value=_count_clients(problem, delivery, is_here))
        )
    return ElementReport(facts=tuple(facts), sections=(users,))


def say_upgrade(problem: LiveVideo, action: Action, name: str) -> str:
    """Return the capacity that an upgrade adds to a link or to the links out of a cluster, as text."""
    is_here = np.array([label == name for label in problem.link_labels])
    if not is_here.any():
        is_here = (problem.links["tail"] == name).to_numpy()
    added = float(problem.capacity_mbps[is_here].sum()) * ((action.value or 1.0) - 1)
    return amount(added, "Mbit/s")


def _rank(
    decided: Decided, names: Sequence[str], by_name: Floats, full: Floats
) -> Mapping[str, float | None]:
    """Return names by value and then by utilization, with all service that is missing as bound of a gain.

    by_name  value of an upgrade by dual prices
    full     utilization
    """
    requested = decided.metrics["requested_service"] or 0.0
    missing = requested - (decided.metrics[OBJECTIVE] or 0.0)
    if missing <= SMALLEST_GAIN * requested:
        return {}
    order = np.lexsort((-full, -by_name))
    return {
        names[index]: missing
        for index in order.tolist()
        if names[index] and (by_name[index] > 0 or full[index] > 0)
    }


def rank_links(
    problem: LiveVideo,
    decided: Decided,
    action: Action,
    options: Options,  # noqa: ARG001 - the signature of `ranking`
) -> Mapping[str, float | None]:
    """Return the links with an upgrade that may serve more, by dual prices and then by utilization.

    A dual price is the gain of the first units, not of all; no gain exceeds the service that is missing.
    """
    load = compute_delivery(problem, decided.decision.plan).load_mbps  # type: ignore[arg-type]
    price = find_dual_prices(problem, decided)
    value = (
        np.zeros(len(load)) if price is None else price * problem.capacity_mbps * ((action.value or 1.0) - 1)
    )
    return _rank(decided, name_links(problem), value, problem.utilization(load))


# --- clusters -----------------------------------------------------------------------------


def list_clusters(problem: LiveVideo) -> Sequence[str]:
    """Return the names of all clusters but client groups; a name that a link has is left out."""
    names = problem.clusters["cluster"].astype(str)
    taken = set(problem.link_labels)
    return [name for name in names[problem.level != problem.group_level] if name not in taken]


def describe_cluster(
    problem: LiveVideo,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return the traffic that a cluster sends and receives, and the channels with its largest share."""
    name = CLUSTERS.require(problem, name)
    sends = (problem.links["tail"] == name).to_numpy()
    receives = (problem.links["head"] == name).to_numpy()
    delivery, facts, users = _describe_links(problem, decided, sends, label="Capacity of links from here")
    load = float(delivery.load_mbps[receives].sum())
    facts.insert(3, Fact(label="Load of links to here", value=load, unit="Mbit/s"))
    if problem.level[problem.cluster_index.get_loc(name)] == problem.group_level - 1:
        clients = _count_clients(problem, delivery, sends)
        facts.insert(4, Fact(label="Clients served from here", value=clients))
    return ElementReport(facts=tuple(facts), sections=(users,))


def _count_clients(problem: LiveVideo, delivery: Delivery, links: Bools) -> float:
    """Return the clients that some links into groups, (L,), serve without overload."""
    here = links[delivery.link] & delivery.is_intact
    if problem.is_unicast:
        return float(delivery.count[here].sum())
    count = len(problem.clusters)
    arrives = delivery.object[here] * count + problem.head[delivery.link[here]]
    is_direct = np.isin(delivery.intact * count + problem.group, arrives) & (delivery.intact >= 0)
    return float(problem.clients[is_direct].sum())


def rank_clusters(
    problem: LiveVideo,
    decided: Decided,
    action: Action,
    options: Options,  # noqa: ARG001 - the signature of `ranking`
) -> Mapping[str, float | None]:
    """Return the clusters with an upgrade that may serve more, by the dual prices of links from there."""
    load = compute_delivery(problem, decided.decision.plan).load_mbps  # type: ignore[arg-type]
    price = find_dual_prices(problem, decided)
    added = problem.capacity_mbps * ((action.value or 1.0) - 1)
    count = len(problem.clusters)
    gain = np.zeros(len(added)) if price is None else price * added
    value = np.bincount(problem.tail, weights=gain, minlength=count).astype(float)
    full = np.zeros(count)
    np.maximum.at(full, problem.tail, problem.utilization(load))
    names_listed = set(list_clusters(problem))
    names = [name if name in names_listed else "" for name in problem.clusters["cluster"].astype(str)]
    return _rank(decided, names, value, full)


def _factor(name: str, state: str, parameter: str, value: float, role: Role = "other") -> Action:
    return Action(name=name, state=state, parameter=parameter, value=value, role=role)


_CHANGES: Final = (
    _factor("Double the capacity", "at double capacity", "capacity_factors", 2.0, "upgrade"),
    _factor("Raise the cost by 20%", "at a 20% higher cost", "cost_factors", 1.2),
    _factor("Lower the cost by 20%", "at a 20% lower cost", "cost_factors", 0.8),
)
LINKS: Final = ElementKind[LiveVideo](
    name=LINK,
    names=list_links,
    actions=(Action(name="Fail", state="failed", parameter="fail_links", role="failure"), *_CHANGES),
    describe=describe_link,
    adds=say_upgrade,
    ranking=rank_links,
)
CLUSTERS: Final = ElementKind[LiveVideo](
    name=CLUSTER,
    names=list_clusters,
    actions=(Action(name="Fail", state="failed", parameter="fail_clusters", role="failure"), *_CHANGES),
    describe=describe_cluster,
    adds=say_upgrade,
    ranking=rank_clusters,
)
ELEMENTS: Final = (LINKS, CLUSTERS)
