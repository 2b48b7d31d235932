"""The integer program of Fig. 4.8 as sparse arrays, without what no plan would use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.backends.linear import Columns, LinearProgram, Rows
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, plan_of, rows_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Served:
    """The program, and which object and link each of its variables is of.

    object, link  (n,) of variable j: 1 where the object crosses the link
    """

    program: LinearProgram
    object: NDArray[np.int64]
    link: NDArray[np.int64]

    def plan(self, problem: LiveVideo, x: NDArray[np.float64]) -> Trees:
        """The trees of a solution, without branches that serve nobody."""
        on = x > 0.5
        return trimmed(problem, plan_of(problem, self.object[on], self.link[on]))

    def point(self, problem: LiveVideo, plan: Trees) -> NDArray[np.float64]:
        """(n,) the plan as values of the variables; ValueError where a row of it has no variable."""
        item, link = rows_of(problem, plan)
        count = len(problem.links)
        keys = self.object * count + self.link
        order = np.argsort(keys)
        place = np.minimum(np.searchsorted(keys[order], item * count + link), max(len(keys) - 1, 0))
        if len(item) and (not len(keys) or (keys[order][place] != item * count + link).any()):
            raise ValueError("a row of the plan has no variable")
        x = np.zeros(len(keys))
        x[order[place]] = 1.0
        return x


def build(problem: LiveVideo) -> Served:
    """Fig. 4.8 with the corrections that `formulation` states, pruned.

    Left out are links that lead an object to nobody who asks for it, that have less capacity than
    its bitrate, that no source which holds it can feed, or that it must not cross. The dummy link
    of a group is its sum of links in, which is at most 1.
    """
    pairs = _candidates(problem)
    item, link = pairs[:, 0], pairs[:, 1]
    count, clusters = len(pairs), len(problem.clusters)
    column = np.arange(count)
    bitrate = problem.bitrate_mbps[item]
    receives = item * clusters + problem.head[link]  # where each variable delivers its object
    places, place = np.unique(receives, return_inverse=True)
    place = place.ravel()

    worth = np.zeros(len(places))
    asked = problem.object * clusters + problem.group
    where = np.minimum(np.searchsorted(places, asked), max(len(places) - 1, 0))
    known = places[where] == asked if len(places) else np.zeros(len(asked), dtype=bool)
    np.add.at(worth, where[known], problem.value[known])

    inner = np.flatnonzero(problem.level[problem.tail[link]] > 0)
    sends = np.searchsorted(places, item[inner] * clusters + problem.tail[link[inner]])
    into = sp.csr_array((np.ones(count), (place, column)), shape=(len(places), count))
    forward = into[sends] - sp.csr_array(
        (np.ones(len(inner)), (np.arange(len(inner)), inner)), shape=(len(inner), count)
    )
    load = sp.csr_array((bitrate, (link, column)), shape=(len(problem.links), count))
    usable = np.diff(load.indptr) > 0
    crossed = np.bincount(place, minlength=len(places)) > 1

    lower, upper = np.zeros(count), np.ones(count)
    for o, pinned in problem.pinned_links.tolist():
        lower[(item == o) & (link == pinned)] = 1.0
    must = problem.pinned_requests
    where_must = problem.object[must] * clusters + problem.group[must]
    needed = np.isin(places, where_must)
    absent = ~np.isin(where_must, places)
    pinned_absent = [
        (o, pinned)
        for o, pinned in problem.pinned_links.tolist()
        if not ((item == o) & (link == pinned)).any()
    ]
    impossible = int(absent.sum()) + len(pinned_absent)
    labels = problem.link_labels

    def place_labels(which: NDArray[np.int64]) -> list[str]:
        names, objects = problem.clusters["cluster"].to_numpy(), problem.object_labels
        return [f"{objects[key // clusters]} at {names[key % clusters]}" for key in which.tolist()]

    def variable_labels(which: NDArray[np.int64]) -> list[str]:
        objects = problem.object_labels
        return [f"{objects[item[j]]} on {labels[link[j]]}" for j in which.tolist()]

    rows = [
        Rows(
            "capacity",
            load[usable],
            upper=problem.capacity_mbps[usable],
            labels=lambda: [labels[i] for i in np.flatnonzero(usable)],
        ),
        Rows("received", forward, lower=0.0, labels=lambda: variable_labels(inner)),
        Rows("once", into[crossed], upper=1.0, labels=lambda: place_labels(places[crossed])),
        Rows("pinned", into[needed], lower=1.0, labels=lambda: place_labels(places[needed])),
    ]
    if impossible:  # what must be served cannot be
        rows.append(Rows("unreachable", sp.csr_array((impossible, count)), lower=1.0))
    program = LinearProgram.build(
        sense="max",
        cost=worth[place] - problem.cost_weight * problem.cost[link] * bitrate,
        rows=rows,
        columns=[Columns("serves", count, labels=lambda: variable_labels(column))],
        lower=lower,
        upper=upper,
        integer=np.ones(count, dtype=bool),
        name="live video",
    )
    return Served(program=program, object=item, link=link)


def _candidates(problem: LiveVideo) -> NDArray[np.int64]:
    """(n, 2) objects and links that a plan may use, by object."""
    clusters = len(problem.clusters)
    mask = problem.forbidden_pairs
    wide = problem.capacity_mbps
    order = np.argsort(problem.head, kind="stable")
    first = np.searchsorted(problem.head[order], np.arange(clusters + 1))
    wanted = np.unique(problem.object * clusters + problem.group)
    if len(problem.pinned_links):  # what must cross a link is wanted at its end
        pins = problem.pinned_links
        wanted = np.union1d(wanted, pins[:, 0] * clusters + problem.head[pins[:, 1]])
    steps: list[NDArray[np.int64]] = []
    for step in range(len(problem.tiers) - 1, 0, -1):
        here = wanted[problem.level[wanted % clusters] == step]
        item, cluster = here // clusters, here % clusters
        times = first[cluster + 1] - first[cluster]
        o = np.repeat(item, times)
        start = np.repeat(first[cluster] - np.r_[0, np.cumsum(times)[:-1]], times) if len(times) else times
        link = order[start + np.arange(int(times.sum()))] if len(times) else np.zeros(0, dtype=np.int64)
        fits = wide[link] >= problem.bitrate_mbps[o]
        if mask is not None:
            fits &= ~mask[o, link]
        o, link = o[fits], link[fits]
        steps.append(np.stack([o, link], axis=1))
        wanted = np.union1d(wanted, o * clusters + problem.tail[link])
    place = np.full(clusters, -1)
    place[problem.sources] = np.arange(len(problem.sources))
    fed = np.zeros(0, dtype=np.int64)
    kept: list[NDArray[np.int64]] = []
    for step, pairs in enumerate(reversed(steps)):
        o, link = pairs[:, 0], pairs[:, 1]
        tail = problem.tail[link]
        good = problem.held[o, place[tail]] if step == 0 else np.isin(o * clusters + tail, fed)
        kept.append(pairs[good])
        fed = np.unique(o[good] * clusters + problem.head[link[good]])
    pairs = np.concatenate(kept) if kept else np.zeros((0, 2), dtype=np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def trimmed(problem: LiveVideo, plan: Trees) -> Trees:
    """The plan without branches that serve nobody and that no rule pins."""
    item, link = rows_of(problem, plan)
    clusters = len(problem.clusters)
    needed = np.unique(problem.object * clusters + problem.group)
    pinned = problem.pinned_links
    pins = pinned[:, 0] * len(problem.links) + pinned[:, 1]
    keep = np.zeros(len(item), dtype=bool)
    for step in range(len(problem.tiers) - 2, -1, -1):
        at = problem.level[problem.tail[link]] == step
        mine = at & (
            np.isin(item * clusters + problem.head[link], needed)
            | np.isin(item * len(problem.links) + link, pins)
        )
        keep |= mine
        needed = np.union1d(needed, item[mine] * clusters + problem.tail[link[mine]])
    return plan_of(problem, item[keep], link[keep])
