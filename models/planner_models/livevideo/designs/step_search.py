"""Local search over bitrates: requests are served on residual capacity, at the best bitrate that gains.

A step serves one request at a higher bitrate than it receives, or at any where it receives none, over the
cheapest path that has capacity, and takes down what no other request needs then. Steps of the largest gain
per Mbit/s go first.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from planner.arrays import Ints
from planner.search.deadline import Deadline
from planner.search.tolerances import IMPROVEMENT
from planner_models.livevideo.plan.plan import Trees, find_received, plan_rows
from planner_models.livevideo.plan.streams import Streams
from planner_models.livevideo.problem.problem import LiveVideo

MIN_GAIN: Final = IMPROVEMENT  # of a step, as a share of the value that it serves
CHECKED: Final = 256  # requests between two looks at the clock


def serve_more(problem: LiveVideo, plan: Trees, deadline: Deadline) -> Trees:
    """Return the plan with requests served at more value, while a step gains; never a plan of less value.

    deadline  at which the search ends
    """
    search = _StepSearch(problem, plan)
    steps = problem.steps
    gain = steps.value - search.received_value[steps.request]
    per_mbps = gain / problem.bitrate_mbps[steps.object]
    order = np.argsort(-per_mbps, kind="stable")
    for number, step in enumerate(order[gain[order] > 0].tolist()):
        if number % CHECKED == 0 and deadline.is_over:
            break
        search.try_step(int(steps.request[step]), int(steps.object[step]), float(steps.value[step]))
    return search.streams.plan()


class _StepSearch:
    """Streams of a plan, and which requests and clusters need each.

    received        object that each request is served with, -1 for none
    received_value  (Q,) value of that
    needed          by object and cluster: requests and links below that need the object there
    """

    def __init__(self, problem: LiveVideo, plan: Trees) -> None:
        self.problem = problem
        self.streams = Streams(problem)
        self.streams.add_plan(plan)
        item, link = plan_rows(problem, plan)
        received = find_received(problem, item * len(problem.clusters) + problem.head[link])
        self.received: list[int] = received.tolist()
        value = problem.service_weight * problem.priority[received] * problem.clients
        self.received_value = np.where(received >= 0, value, 0.0)
        self.group: list[int] = problem.group.tolist()
        self.link_cost: list[float] = (problem.cost_weight * problem.cost).tolist()
        self.needed: Counter[tuple[int, int]] = Counter()
        for q, o in enumerate(self.received):
            if o >= 0:
                self.needed[o, self.group[q]] += 1
        for o, used in zip(item.tolist(), link.tolist(), strict=True):
            self.needed[o, self.streams.tail[used]] += 1
        for o, used in problem.pinned_links.tolist():
            self.needed[o, self.streams.head[used]] += 1
        self.is_pinned = np.isin(np.arange(len(problem.requests)), problem.pinned_requests).tolist()

    def try_step(self, request: int, item: int, value: float) -> None:
        """Serve the request with the object where that gains."""
        before = self.received[request]
        gain = value - float(self.received_value[request])
        if gain <= MIN_GAIN * value or (self.is_pinned[request] and before >= 0):
            return
        group = self.group[request]
        if self.streams.has(item, group):
            path: list[int] = []
        else:
            path_found = self._cheapest_path(item, group, gain)
            if path_found is None:
                return
            path = path_found
        self.streams.add_path(item, path)
        for link in path:
            self.needed[item, self.streams.tail[link]] += 1
        self.needed[item, group] += 1
        self.received[request] = item
        self.received_value[request] = value
        if before >= 0:
            self._release(before, group)

    def _cheapest_path(self, item: int, cluster: int, limit: float) -> list[int] | None:
        """Return the cheapest links with capacity that bring an object to a cluster, below `limit`."""
        streams, rate = self.streams, self.streams.bitrate[item]
        best: list[int] | None = None
        for link in streams.into[cluster]:
            spent = self.link_cost[link] * rate
            if spent >= limit or not streams.can_carry(item, link):
                continue
            tail = streams.tail[link]
            above: list[int] = []
            if not streams.has(item, tail):
                above_path = self._cheapest_path(item, tail, limit - spent)  # none into a source
                if above_path is None:
                    continue
                above = above_path
            limit = spent + sum(self.link_cost[used] for used in above) * rate
            best = [*above, link]
        return best

    def _release(self, item: int, cluster: int) -> None:
        """Take down the links that brought an object to a cluster, as far up as nothing else needs it."""
        streams = self.streams
        self.needed[item, cluster] -= 1
        while self.needed[item, cluster] == 0 and (item, cluster) in streams.parent:
            link = streams.parent[item, cluster]
            streams.remove(item, link)
            cluster = streams.tail[link]
            self.needed[item, cluster] -= 1


def received_steps(problem: LiveVideo, plan: Trees) -> Ints:
    """Return the object that each request is served with, (Q,), -1 for none."""
    item, link = plan_rows(problem, plan)
    is_path = (item >= 0) & (link >= 0)
    return find_received(problem, item[is_path] * len(problem.clusters) + problem.head[link[is_path]])
