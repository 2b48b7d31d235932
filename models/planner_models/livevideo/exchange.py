"""What the control planes of system `livevideo` tell each other for one window.

Counted from the trees as they play out and the requests of the window. An object is named by its
channel and its bitrate; what is fixed, such as links and their prices, is known to all. Clusters are those
above the client groups; into the groups DNS maps clients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.exchange import FIGURE, NAME, Exchange
from planner_models.livevideo.check import delivered
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.sees import end_s
from planner_models.livevideo.streams import Streams, in_order
from planner_models.livevideo.trees import Trees

OBJECT: Final = NAME + FIGURE
"""A channel and one of its bitrates."""

LINK: Final = NAME + FIGURE
"""The other end of a link, and what it can carry."""

ANNOUNCED_S: Final = 1.0
"""Between two announcements of a cluster (Mukerjee 2018, 4.4.2)."""


def central(problem: LiveVideo, plan: Trees) -> Exchange:
    """Each cluster reports its links and the requests that came to it; the controller answers with next
    hops, and tells DNS which edge serves whom.

    source  Mukerjee 2018, sections 4.3.1 and 4.4.1, Table 4.1
    """
    return _reports(problem) + _decisions(problem, plan)


def channel_by_channel(problem: LiveVideo, plan: Trees) -> Exchange:
    """As `central`, for each channel that is asked for on its own: all links, its requests, its trees.

    source  Mukerjee 2018, section 4.7.1 (Overlay Multicast)
    """
    _, channel = np.unique(problem.objects["channel"].to_numpy(), return_inverse=True)
    asked = len(np.unique(channel[problem.object]))
    return _reports(problem, asked) + _decisions(problem, plan, channel)


def distributed(problem: LiveVideo, plan: Trees) -> Exchange:
    """Each cluster announces to those one tier down, every second, how far it is from what it receives.

    A row for each object that it receives, from the first request on, and one for all others: distance
    and path capacity (Table 4.2).

    source  Mukerjee 2018, section 4.4.2
    """
    rounds = int(end_s(problem) // ANNOUNCED_S)
    inner = problem.level[problem.head] < len(problem.tiers) - 1  # groups are told nothing
    below = np.bincount(problem.tail[inner], minlength=len(problem.clusters))
    _, cluster, since = _received(problem, plan)
    heard = np.clip(rounds - np.floor(since / ANNOUNCED_S), 0, None) * below[cluster]
    messages = int(inner.sum()) * rounds
    return Exchange(
        messages=messages,
        bytes=int(messages * 2 * FIGURE + heard.sum() * (OBJECT + 2 * FIGURE)),
    )


def hybrid(problem: LiveVideo, plan: Trees) -> Exchange:
    """As `central` and `distributed` together."""
    return central(problem, plan) + distributed(problem, plan)


def by_dns(ttl_s: float) -> Callable[[LiveVideo, Trees], Exchange]:
    """Clusters report load and subscriptions to the monitors once a window; who has no valid answer asks.

    ttl_s   seconds for which an answer counts
    source  Mukerjee 2018, sections 4.2.1 and 4.7.1
    """
    return partial(_by_dns, ttl_s=ttl_s)


def _by_dns(problem: LiveVideo, plan: Trees, *, ttl_s: float) -> Exchange:
    """A question names a channel, an answer a cluster and for how long; the denied ask once."""
    clusters = _clusters(problem)
    item, _, _ = _received(problem, plan)
    reports = Exchange(
        messages=int(clusters.sum()), bytes=int(len(problem.links) * LINK + len(item) * OBJECT)
    )
    _, channel = np.unique(problem.objects["channel"].to_numpy(), return_inverse=True)
    of_channel = channel.tolist()
    whole, grown = Streams(problem), Streams(problem)
    whole.add_plan(plan)
    known: dict[tuple[int, int], float] = {}
    asked = 0
    for o, group, time in in_order(problem):
        if grown.has(o, group):
            continue
        path = whole.path(o, group, up_to=grown) if whole.has(o, group) else []
        for cluster in [grown.head[link] for link in path] or [group]:
            key = (of_channel[o], cluster)
            if time - known.get(key, -np.inf) >= ttl_s:
                known[key] = time
                asked += 1
        grown.add_path(o, path)
    return reports + Exchange(messages=2 * asked, bytes=asked * (2 * NAME + FIGURE))


def _clusters(problem: LiveVideo) -> NDArray[np.bool_]:
    """(C,) those above the groups."""
    return np.asarray(problem.level < len(problem.tiers) - 1)


def _reports(problem: LiveVideo, controllers: int = 1) -> Exchange:
    """Every link by its other end and capacity to each controller, every request to one of them."""
    requests = len(problem.requests) * (NAME + OBJECT + FIGURE)
    return Exchange(
        messages=int(_clusters(problem).sum()) * controllers,
        bytes=len(problem.links) * LINK * controllers + requests,
    )


def _decisions(problem: LiveVideo, plan: Trees, controller: NDArray[np.int64] | None = None) -> Exchange:
    """From a controller to each cluster that receives anything, next hops under a version; and to DNS.

    controller  (O,) of each object; default: one for all
    """
    found = delivered(problem, plan)
    head = problem.head[found.link]
    inner = problem.level[head] < len(problem.tiers) - 1
    by = np.zeros(len(head), dtype=np.int64) if controller is None else controller[found.object]
    steered = len(np.unique(by[inner] * len(problem.clusters) + head[inner]))
    named = len(np.unique(by[~inner]))
    hops, mapped = int(inner.sum()), int((~inner).sum())
    return Exchange(
        messages=steered + named,
        bytes=steered * FIGURE + hops * (OBJECT + NAME) + mapped * (OBJECT + 2 * NAME),
    )


def _received(
    problem: LiveVideo, plan: Trees
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The objects that clusters receive, one row each: object, cluster, and when the first asked for it."""
    whole = Streams(problem)
    whole.add_plan(plan)
    last = len(problem.tiers) - 1
    since: dict[tuple[int, int], float] = {}
    for o, group, time in in_order(problem):
        cluster = group if whole.has(o, group) else None
        while cluster is not None and whole.level[cluster] > 0:
            if whole.level[cluster] < last:
                if (o, cluster) in since:
                    break  # who is above has been asked before
                since[o, cluster] = time
            cluster = whole.tail[whole.parent[o, cluster]]
    item, cluster_of = (np.array([key[i] for key in since], dtype=np.int64) for i in range(2))
    return item, cluster_of, np.array(list(since.values()), dtype=float)
