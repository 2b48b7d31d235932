"""Check of distribution trees against the problem, independent of the method that made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, differs, exceeds
from planner.errors import PlanRejected
from planner_models.livevideo.plan.plan import (
    CarriedStreams,
    Trees,
    find_received,
    list_streams,
    load_per_link,
    served_clients,
)
from planner_models.livevideo.problem.problem import LiveVideo


@dataclass(frozen=True, kw_only=True, eq=False)
class Delivery:
    """Loads and served requests of a plan.

    object, link  (n,) object and link of each row of the plan: of its trees, then of its viewers
    count         (n,) streams of each row: 1, or the viewers on a link of a unicast last hop
    is_intact     (n,) whether each row arrives over links without overload
    load_mbps     (L,) load of each link
    clients       (Q,) clients of each request that are served
    intact_clients  (Q,) those of them over links without overload
    received      (Q,) object of most value, of those that each request accepts, whose tree reaches its
                  group; -1 for none
    intact        (Q,) the same, of those that arrive over links without overload
    arrivals      keys, object times number of clusters plus cluster, of what arrives without overload
    """

    object: Ints
    link: Ints
    load_mbps: Floats
    received: Ints
    intact: Ints
    arrivals: Ints
    count: Floats
    is_intact: Bools
    clients: Floats
    intact_clients: Floats

    @property
    def served(self) -> Bools:
        """(Q,) whether an object that each request accepts reaches its group, or a client of it."""
        return self.received >= 0


def check(problem: LiveVideo, plan: Trees) -> Violations:
    """Return violations of capacities, caps of bills, and rules on pinned and forbidden objects and links.

    raises  PlanRejected where the plan is no set of trees: unknown objects or links, a row twice, an
            object that a cluster receives twice, or sends without receiving or holding it; and where
            `waits` or `unserved` contradict the trees
    """
    delivery = compute_delivery(problem, plan)
    require_true_lists(problem, plan, delivery)
    load, capacity = delivery.load_mbps, problem.capacity_mbps
    over = np.flatnonzero(is_overloaded(problem, load))
    violations = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in over],
        amount=load[over],
        allowed=capacity[over],
        unit="Mbit/s",
    )
    tariffs = problem.tariffs
    billed = tariffs.load(load)
    exceeded = np.flatnonzero(exceeds(billed, tariffs.cap_mbps, relative=EXACT))
    violations += Violations.of(
        "cap",
        where=[tariffs.names[bill] for bill in exceeded.tolist()],
        amount=billed[exceeded],
        allowed=tariffs.cap_mbps[exceeded],
        unit="Mbit/s",
    )
    mask = problem.forbidden_pairs
    if mask is not None:
        rows = np.flatnonzero(mask[delivery.object, delivery.link])
        violations += Violations.of(
            "forbidden",
            where=[
                f"{problem.object_labels[delivery.object[row]]} on {problem.link_labels[delivery.link[row]]}"
                for row in rows
            ],
            amount=np.ones(len(rows)),
            allowed=np.zeros(len(rows)),
            unit="",
        )
    is_complete = delivery.clients >= problem.clients
    missing = problem.pinned_requests[~is_complete[problem.pinned_requests]]
    carried = set(zip(delivery.object.tolist(), delivery.link.tolist(), strict=True))
    absent = [(o, link) for o, link in problem.pinned_links.tolist() if (o, link) not in carried]
    where = [
        f"{problem.object_labels[problem.object[q]]} to {problem.requests['group'].iloc[q]}" for q in missing
    ] + [f"{problem.object_labels[o]} on {problem.link_labels[link]}" for o, link in absent]
    return violations + Violations.of(
        "pinned", where=where, amount=np.zeros(len(where)), allowed=np.ones(len(where)), unit=""
    )


def is_overloaded(problem: LiveVideo, load_mbps: Floats) -> Bools:
    """Return the links with more load than capacity, a mask (L,)."""
    return exceeds(load_mbps, problem.capacity_mbps, relative=EXACT)


def compute_delivery(problem: LiveVideo, plan: Trees) -> Delivery:
    """Return loads and served requests of a plan.

    raises  PlanRejected where the plan is no set of trees
    """
    streams = list_streams(problem, plan)
    _require_known(plan, streams)
    item, link, _ = streams
    count = len(problem.clusters)
    receives = item * count + problem.head[link]
    _require_once(problem, plan, streams, receives)
    tail = problem.tail[link]
    at_source = problem.level[tail] == 0
    source = np.searchsorted(problem.sources, tail)
    holds = np.zeros(len(tail), dtype=bool)
    holds[at_source] = problem.is_at_source[item[at_source], source[at_source]]
    has = np.where(at_source, holds, np.isin(item * count + tail, receives))
    if not has.all():
        row = int(np.flatnonzero(~has)[0])
        name = problem.clusters["cluster"].iloc[tail[row]]
        why = "does not hold" if at_source[row] else "does not receive"
        raise PlanRejected(f"{_row_name(plan, row)}: {name} {why} {problem.object_labels[item[row]]}")
    load = load_per_link(problem, streams)
    over = is_overloaded(problem, load)
    is_intact = _find_intact(problem, item, link, over) if over.any() else np.ones(len(item), dtype=bool)
    arrivals = receives[is_intact]
    received = find_received(problem, receives)
    clients = served_clients(problem, streams, received)
    intact, intact_clients = received, clients
    if over.any():
        intact = find_received(problem, arrivals)
        intact_clients = served_clients(
            problem, CarriedStreams(item[is_intact], link[is_intact], streams.number[is_intact]), intact
        )
    return Delivery(
        object=item,
        link=link,
        load_mbps=load,
        received=received,
        intact=intact,
        arrivals=arrivals,
        count=streams.number,
        is_intact=is_intact,
        clients=clients,
        intact_clients=intact_clients,
    )


def _row_name(plan: Trees, row: int) -> str:
    """Return the table and row of a row of `list_streams`."""
    trees = len(plan.trees)
    return f"trees row {row + 1}" if row < trees else f"viewers row {row - trees + 1}"


def _require_known(plan: Trees, streams: CarriedStreams) -> None:
    """Check that the objects and links of a plan are those of the problem.

    raises  PlanRejected with the first row of an unknown object, else of an unknown link
    """
    for rows, kind in ((streams.object, "object"), (streams.link, "link")):
        if not (rows < 0).any():
            continue
        row = int(np.flatnonzero(rows < 0)[0])
        if row < len(plan.trees) or plan.viewers is None:
            line, tail, head = plan.trees.iloc[row], "tail", "head"
        else:
            line, tail, head = plan.viewers.iloc[row - len(plan.trees)], "edge", "group"
        name = (
            f"channel '{line['channel']}' at {line['bitrate_kbps']:g} kbit/s"
            if kind == "object"
            else f"{line[tail]}->{line[head]}"
        )
        raise PlanRejected(f"{_row_name(plan, row)}: {name} is no {kind} of the problem")


def _require_once(problem: LiveVideo, plan: Trees, streams: CarriedStreams, receives: Ints) -> None:
    """Check that clusters receive an object once, and that a unicast last hop is listed as viewers.

    receives  (n,) key of object and receiver of each row

    raises  PlanRejected where an object arrives twice, a tree leads to a group of a unicast last hop, or more
            viewers are served than request
    """
    item, link, _ = streams
    if problem.is_unicast:
        _require_viewers(problem, plan, streams)
    is_tree = np.arange(len(item)) < len(plan.trees)
    _, first, times = np.unique(receives[is_tree], return_index=True, return_counts=True)
    if (times > 1).any():
        row = int(first[np.argmax(times > 1)])
        raise PlanRejected(
            f"trees: {problem.clusters['cluster'].iloc[problem.head[link[row]]]} receives "
            f"{problem.object_labels[item[row]]} {times.max()} times"
        )


def _require_viewers(problem: LiveVideo, plan: Trees, streams: CarriedStreams) -> None:
    """Check the viewers of a unicast last hop: whole numbers, a row an edge, no more than request.

    raises  PlanRejected with the first row that breaks a rule
    """
    item, link, count = streams
    trees = len(plan.trees)
    into_group = np.flatnonzero(problem.is_last_hop[link[:trees]])
    if len(into_group):
        row = int(into_group[0])
        raise PlanRejected(
            f"trees row {row + 1}: {problem.link_labels[link[row]]} leads to a group, must be a row of "
            "viewers: the last hop is unicast"
        )
    item, link, count = item[trees:], link[trees:], count[trees:]
    request = problem.request_rows(item, problem.head[link])
    _, first, times = np.unique(item * len(problem.links) + link, return_index=True, return_counts=True)
    twice = np.isin(np.arange(len(item)), first[times > 1])
    for is_bad, why in (
        (request < 0, "the group does not request this object"),
        (count != np.rint(count), "clients must be a whole number"),
        (count <= 0, "clients must be above 0"),
        (twice, "the edge has two rows for this object and group"),
    ):
        if is_bad.any():
            raise PlanRejected(f"viewers row {int(np.argmax(is_bad)) + 1}: {why}")
    served = np.bincount(request, count, minlength=len(problem.requests))
    over = np.flatnonzero(served > problem.clients)
    if len(over):
        q = int(over[0])
        raise PlanRejected(
            f"viewers: serve {served[q]:g} clients of {_request_label(problem, q)}, must be at most "
            f"{problem.clients[q]:g}"
        )


def require_true_lists(problem: LiveVideo, plan: Trees, delivery: Delivery) -> None:
    """Check that requests that waited are served, and that `unserved` lists exactly the other clients.

    raises  PlanRejected with the first row that contradicts the trees
    """
    served, unserved = delivery.served, problem.clients - delivery.clients
    if plan.waits is not None:
        rows = _find_requests(problem, plan.waits, "waits")
        if not served[rows].all():
            row = int(np.argmin(served[rows]))
            raise PlanRejected(
                f"waits row {row + 1}: no tree reaches {_request_label(problem, rows[row])}, must be served"
            )
    if plan.unserved is not None:
        rows = _find_requests(problem, plan.unserved, "unserved")
        if (unserved[rows] <= 0).any():
            row = int(np.argmax(unserved[rows] <= 0))
            raise PlanRejected(
                f"unserved row {row + 1}: a tree reaches {_request_label(problem, rows[row])}, must be absent"
            )
        clients, true = plan.unserved["clients"].to_numpy(float), unserved[rows]
        wrong = differs(clients, true, relative=EXACT)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise PlanRejected(f"unserved row {row + 1}: clients is {clients[row]:g}, must be {true[row]:g}")
        missing = unserved > 0
        missing[rows] = False
        if missing.any():
            label = _request_label(problem, int(np.argmax(missing)))
            raise PlanRejected(f"unserved: lacks {label}, which no tree reaches")


def _find_requests(problem: LiveVideo, table: pd.DataFrame, name: str) -> Ints:
    """Return the request of each row of a plan's table."""
    count = len(problem.clusters)
    item = problem.object_rows(table["channel"], table["bitrate_kbps"])
    group = problem.cluster_rows(table["group"])
    requests = pd.Index(problem.object * count + problem.group)
    rows = requests.get_indexer(pd.Index(np.where((item >= 0) & (group >= 0), item * count + group, -1)))
    if (rows < 0).any():
        row = int(np.argmax(rows < 0))
        line = table.iloc[row]
        raise PlanRejected(
            f"{name} row {row + 1}: group '{line['group']}' does not request channel '{line['channel']}' "
            f"at {line['bitrate_kbps']:g} kbit/s"
        )
    _, first, times = np.unique(rows, return_index=True, return_counts=True)
    if (times > 1).any():
        row = int(first[np.argmax(times > 1)])
        raise PlanRejected(
            f"{name}: {_request_label(problem, rows[row])} has {times.max()} rows, must have one"
        )
    return np.asarray(rows, dtype=np.int64)


def _request_label(problem: LiveVideo, request: int) -> str:
    """Return a request as "object to group"."""
    return f"{problem.object_labels[problem.object[request]]} to {problem.requests['group'].iloc[request]}"


def received_mbps(problem: LiveVideo, delivery: Delivery) -> Floats:
    """Return the bitrate that the clients of each request receive without overload, (Q,); 0 for none.

    It is the requested one, else the highest lower one of their channel that reaches their group. Where the
    last hop is unicast, the streams of others are no help: it is the requested one of those who are served.
    """
    if problem.is_unicast:
        return np.where(delivery.intact >= 0, problem.bitrate_mbps[problem.object], 0.0)
    count = len(problem.clusters)
    item, group = np.divmod(delivery.arrivals, count)
    is_group = problem.level[group] == problem.group_level
    item, group = item[is_group], group[is_group]
    bitrates, rank = np.unique(problem.bitrate_mbps, return_inverse=True)
    rungs, channel = len(bitrates) + 1, problem.channel_number

    def keys(items: Ints, groups: Ints) -> Ints:  # in order of group and channel, then of bitrate
        return np.asarray((groups * (channel.max(initial=0) + 1) + channel[items]) * rungs + rank[items])

    arrived = np.sort(keys(item, group))
    keys_sought = keys(problem.object, problem.group)
    index = np.searchsorted(arrived, keys_sought, side="right") - 1
    last = arrived[np.maximum(index, 0)] if len(arrived) else np.full(len(keys_sought), -1)
    is_reached = (index >= 0) & (last // rungs == keys_sought // rungs)
    return np.where(is_reached, bitrates[np.where(is_reached, last % rungs, 0)], 0.0)


def _find_intact(problem: LiveVideo, item: Ints, link: Ints, over: Bools) -> Bools:
    """Return whether each row of a plan arrives over links without overload, (n,).

    item, link  (n,) object and link of each row
    over        (L,) whether each link has more load than capacity
    """
    count = len(problem.clusters)
    level = problem.level[problem.tail[link]]
    is_intact = ~over[link]
    for step in range(1, problem.group_level):
        above = (level == step - 1) & is_intact
        arrivals = item[above] * count + problem.head[link[above]]
        here = level == step
        is_intact[here] &= np.isin(item[here] * count + problem.tail[link[here]], arrivals)
    return is_intact
