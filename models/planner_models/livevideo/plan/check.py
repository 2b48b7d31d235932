"""Check of distribution trees against the problem, independent of the method that made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, differs, exceeds
from planner.errors import PlanRejected
from planner_models.livevideo.plan.plan import Trees, find_received, plan_rows
from planner_models.livevideo.problem.problem import LiveVideo


@dataclass(frozen=True, kw_only=True, eq=False)
class Delivery:
    """Loads and served requests of a plan.

    object, link  (n,) object and link of each row of the plan
    load_mbps     (L,) load of each link
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

    @property
    def served(self) -> Bools:
        """(Q,) whether the tree of an object that each request accepts reaches its group."""
        return self.received >= 0


def check(problem: LiveVideo, plan: Trees) -> Violations:
    """Return violations of capacities and of the rules on pinned and forbidden objects and links.

    raises  PlanRejected where the plan is no set of trees: unknown objects or links, a row twice, an
            object that a cluster receives twice, or sends without receiving or holding it; and where
            `waits` or `unserved` contradict the trees
    """
    delivery = compute_delivery(problem, plan)
    require_true_lists(problem, plan, delivery.served)
    load, capacity = delivery.load_mbps, problem.capacity_mbps
    over = np.flatnonzero(is_overloaded(problem, load))
    violations = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in over],
        amount=load[over],
        allowed=capacity[over],
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
    missing = problem.pinned_requests[~delivery.served[problem.pinned_requests]]
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
    item, link = plan_rows(problem, plan)
    for rows, kind in ((item, "object"), (link, "link")):
        if (rows < 0).any():
            row = int(np.flatnonzero(rows < 0)[0])
            line = plan.trees.iloc[row]
            name = (
                f"channel '{line['channel']}' at {line['bitrate_kbps']:g} kbit/s"
                if kind == "object"
                else f"{line['tail']}->{line['head']}"
            )
            raise PlanRejected(f"trees row {row + 1}: {name} is no {kind} of the problem")
    count = len(problem.clusters)
    receives = item * count + problem.head[link]
    _, first, times = np.unique(receives, return_index=True, return_counts=True)
    if (times > 1).any():
        row = int(first[np.argmax(times > 1)])
        raise PlanRejected(
            f"trees: {problem.clusters['cluster'].iloc[problem.head[link[row]]]} receives "
            f"{problem.object_labels[item[row]]} {times.max()} times"
        )
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
        raise PlanRejected(f"trees row {row + 1}: {name} {why} {problem.object_labels[item[row]]}")
    load = np.bincount(link, weights=problem.bitrate_mbps[item], minlength=len(problem.links))
    received = find_received(problem, receives)
    over = is_overloaded(problem, load.astype(float))
    arrivals = _arrivals_without_overload(problem, item, link, over) if over.any() else receives
    return Delivery(
        object=item,
        link=link,
        load_mbps=load.astype(float),
        received=received,
        intact=find_received(problem, arrivals) if over.any() else received,
        arrivals=arrivals,
    )


def require_true_lists(problem: LiveVideo, plan: Trees, served: Bools) -> None:
    """Check that requests that waited are served (Q,), and that `unserved` lists exactly the others.

    raises  PlanRejected with the first row that contradicts the trees
    """
    if plan.waits is not None:
        rows = _find_requests(problem, plan.waits, "waits")
        if not served[rows].all():
            row = int(np.argmin(served[rows]))
            raise PlanRejected(
                f"waits row {row + 1}: no tree reaches {_request_label(problem, rows[row])}, must be served"
            )
    if plan.unserved is not None:
        rows = _find_requests(problem, plan.unserved, "unserved")
        if served[rows].any():
            row = int(np.argmax(served[rows]))
            raise PlanRejected(
                f"unserved row {row + 1}: a tree reaches {_request_label(problem, rows[row])}, must be absent"
            )
        clients, true = plan.unserved["clients"].to_numpy(float), problem.clients[rows]
        wrong = differs(clients, true, relative=EXACT)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise PlanRejected(f"unserved row {row + 1}: clients is {clients[row]:g}, must be {true[row]:g}")
        missing = ~served
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

    It is the requested one, else the highest lower one of their channel that reaches their group.
    """
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


def _arrivals_without_overload(problem: LiveVideo, item: Ints, link: Ints, over: Bools) -> Ints:
    """Return keys, object times number of clusters plus cluster, of the arrivals without overload.

    item, link  (n,) object and link of each row of a plan
    over        (L,) whether each link has more load than capacity
    """
    count = len(problem.clusters)
    level = problem.level[problem.tail[link]]
    intact = [np.zeros(0, dtype=np.int64)]
    for step in range(problem.group_level):
        here, used = item[level == step], link[level == step]
        is_intact = ~over[used]
        if step:
            is_intact &= np.isin(here * count + problem.tail[used], intact[-1])
        intact.append(here[is_intact] * count + problem.head[used[is_intact]])
    return np.concatenate(intact)
