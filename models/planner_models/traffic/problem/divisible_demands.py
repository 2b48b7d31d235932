"""Note on demands that may be split over paths and sent in part: it matters where capacity is short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from planner.contract.tolerances import EXACT, exceeds

if TYPE_CHECKING:
    from planner_models.traffic.problem.problem import Traffic

SENT_IN_PART: Final = (
    "assumed: demands may be split over paths and sent in part, and some nodes have more than their links "
    "carry; reservations that are admitted whole or refused (RSVP-TE) are not modelled"
)
SPLIT: Final = (
    "assumed: demands may be split over paths, and some are larger than each link at one of their ends; "
    "reservations that stay on one path (RSVP-TE) are not modelled"
)


def find_divided(problem: Traffic) -> str | None:
    """Return a note where the links of a node cannot carry its demands, or no link one of them; else None.

    Networks that reserve whole demands would refuse some of these; plans split them, and send parts.
    """
    count, rate, capacity = len(problem.nodes), problem.rate_mbps, problem.capacity_mbps
    is_split = False
    for nodes, of_links in ((problem.source, problem.tail), (problem.target, problem.head)):
        offered = np.bincount(nodes, weights=rate, minlength=count)
        total = np.bincount(of_links, weights=capacity, minlength=count)
        if ((total > 0) & exceeds(offered, total, relative=EXACT)).any():
            return SENT_IN_PART
        largest, widest = np.zeros(count), np.zeros(count)
        np.maximum.at(largest, nodes, rate)
        np.maximum.at(widest, of_links, capacity)
        is_split = is_split or bool(((total > 0) & exceeds(largest, widest, relative=EXACT)).any())
    return SPLIT if is_split else None
