"""What is wrong with a problem: one line each, by row, and the steps in which it is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from planner.errors import did_you_mean
from planner.tables import few, file_name, row_name, strangers
from planner_models.livevideo import rules, tiers

if TYPE_CHECKING:
    from planner_models.livevideo.problem import LiveVideo


def find(problem: LiveVideo) -> list[str]:
    """The faults of the first step that finds any: later ones would stumble over them."""
    for step in STEPS:
        found = list(step(problem))
        if found:
            return found
    return []


def reached(problem: LiveVideo) -> NDArray[np.bool_]:
    """(Q,) whether links as wide as the object, on which it is not forbidden, lead to who asks for it."""
    mask = problem.forbidden_pairs
    good = np.zeros(len(problem.requests), dtype=bool)
    asked = np.unique(problem.object)
    kinds: dict[tuple[float, bytes, bytes], list[int]] = {}
    for o in asked.tolist():
        closed = b"" if mask is None else mask[o].tobytes()
        key = (float(problem.bitrate_mbps[o]), problem.held[o].tobytes(), closed)
        kinds.setdefault(key, []).append(o)
    level = problem.level[problem.tail]
    for (bitrate, _, _), objects in kinds.items():
        usable = problem.capacity_mbps >= bitrate * (1 - 1e-9)
        if mask is not None:
            usable &= ~mask[objects[0]]
        on = np.zeros(len(problem.clusters), dtype=bool)
        on[problem.sources[problem.held[objects[0]]]] = True
        for step in range(len(problem.tiers) - 1):
            on[problem.head[usable & on[problem.tail] & (level == step)]] = True
        mine = np.isin(problem.object, objects)
        good[mine] = on[problem.group[mine]]
    return good


def _settings(problem: LiveVideo) -> Iterator[str]:
    if len(problem.settings) != 1:
        where = file_name(problem.settings, "settings")
        yield f"{where}: has {len(problem.settings)} rows, must have one"


def _unknown_names(problem: LiveVideo) -> Iterator[str]:
    for frame, table, column in (
        (problem.links, "links", "tail"),
        (problem.links, "links", "head"),
        (problem.requests, "requests", "group"),
        (problem.holders, "holders", "source"),
    ):
        yield from strangers(frame, table, column, problem.cluster_places, "no cluster")
    yield from _unknown_objects(problem)
    channels = set(problem.objects["channel"])
    found = [
        f"{row_name(problem.holders, 'holders', row)}: channel '{channel}' is no channel of the objects"
        + did_you_mean(channel, channels)
        for row, channel in enumerate(problem.holders["channel"])
        if channel not in channels
    ]
    yield from few(found, file_name(problem.holders, "holders"), "with an unknown channel")


def _unknown_objects(problem: LiveVideo) -> Iterator[str]:
    asked = problem.requests
    unknown = np.flatnonzero(problem.object < 0).tolist()
    found = []
    for row in unknown[:6]:
        channel, bitrate = asked["channel"].iloc[row], asked["bitrate_kbps"].iloc[row]
        known = problem.objects.loc[problem.objects["channel"] == channel, "bitrate_kbps"]
        if len(known):
            hint = f"; '{channel}' has " + ", ".join(f"{rate:g}" for rate in known.head(8)) + " kbit/s"
        else:
            hint = did_you_mean(channel, set(problem.objects["channel"]))
        found.append(
            f"{row_name(asked, 'requests', row)}: asks for an unknown object, "
            f"channel '{channel}' at {bitrate:g} kbit/s{hint}"
        )
    yield from few(found, file_name(asked, "requests"), "for an unknown object", count=len(unknown))


def _lost_groups(problem: LiveVideo) -> Iterator[str]:
    if problem.lost == "unserved":
        return
    fed = np.zeros(len(problem.clusters), dtype=bool)
    fed[problem.head] = True
    lost = np.flatnonzero(~fed & (problem.level == len(problem.tiers) - 1))
    above = problem.tiers[-2]
    found = [
        f"{row_name(problem.clusters, 'clusters', row)}: group '{problem.clusters['cluster'].iloc[row]}' "
        f"has no link from any cluster of tier '{above}'"
        for row in lost.tolist()
    ]
    yield from few(found, file_name(problem.clusters, "clusters"), "of groups without a link")


def _lost_objects(problem: LiveVideo) -> Iterator[str]:
    if problem.lost == "unserved" or not len(problem.requests):
        return
    largest = float(problem.capacity_mbps.max())
    asked = np.unique(problem.object)
    above = asked[problem.bitrate_mbps[asked] > largest]
    where = file_name(problem.objects, "objects")
    yield from few(
        [
            f"{row_name(problem.objects, 'objects', o)}: "
            f"bitrate_kbps {1000 * problem.bitrate_mbps[o]:g} is above "
            f"the capacity of every link (at most {1000 * largest:g} kbit/s)"
            for o in above.tolist()
        ],
        where,
        "with a bitrate above every link",
    )
    found = []
    good = reached(problem)
    for o in np.setdiff1d(asked, np.union1d(problem.object[good], above)).tolist():
        channel = problem.objects["channel"].iloc[o]
        found.append(
            f"{row_name(problem.objects, 'objects', o)}: channel '{channel}' is unreachable: "
            f"no path of links with {1000 * problem.bitrate_mbps[o]:g} kbit/s "
            "from a source that has it to a group that asks for it"
        )
    yield from few(found, where, "of unreachable channels")
    pins = problem.pinned_requests
    yield from few(
        [
            f"{problem.object_labels[problem.object[q]]} is pinned, but no path of links wide enough, on "
            f"which it may go, leads to group '{problem.requests['group'].iloc[q]}'"
            for q in pins[~good[pins]].tolist()
        ],
        file_name(problem.pinned, "pinned"),
        "that nothing can fulfil",
    )


STEPS: Final = (
    _settings,
    _unknown_names,
    tiers.faults,
    _lost_groups,
    rules.faults,
    _lost_objects,
)
"""In this order, each trusting what those before it found right."""
