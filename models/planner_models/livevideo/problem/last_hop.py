"""Note on the last hop: a link into a group carries each object once, for all viewers of the group."""

from __future__ import annotations

import numpy as np

from planner.formatting import amount, counted
from planner_models.livevideo.problem.tables import VideoTables


def describe_shared_last_hop(problem: VideoTables) -> str:
    """Return a note where links into groups are too small to send every viewer its own stream; else "".

    The plans hold all the same: an object crosses a link once. A network whose last hop is unicast, such as
    one over HTTP, would serve fewer viewers.
    """
    count = len(problem.clusters)
    each_alone = np.bincount(
        problem.group, weights=problem.clients * problem.bitrate_mbps[problem.object], minlength=count
    )
    capacity = np.bincount(problem.head, weights=problem.capacity_mbps, minlength=count)
    short = np.flatnonzero(each_alone > capacity * (1 + 1e-9))
    if not len(short):
        return ""
    worst = int(short[np.argmax(each_alone[short] - capacity[short])])
    group = problem.clusters["cluster"].iloc[worst]
    viewers = float(problem.clients[problem.group == worst].sum())
    others = len(short) - 1
    return (
        f"assumed: links into a group carry each stream once for all of its viewers (multicast); a stream of "
        f"its own for each of the {counted(viewers, 'viewers')} of '{group}' would need "
        f"{amount(float(each_alone[worst]), 'Mbit/s')}, and its links have "
        f"{amount(float(capacity[worst]), 'Mbit/s')}"
        + (f"; {counted(others, 'other groups', 'are')} short too" if others else "")
    )
