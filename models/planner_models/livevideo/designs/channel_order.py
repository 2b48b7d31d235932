"""Order of channels in time: the order in which uncoordinated designs send their objects."""

from __future__ import annotations

import numpy as np

from planner.arrays import Ints
from planner_models.livevideo.problem.problem import LiveVideo


def order_by_first_request(problem: LiveVideo) -> Ints:
    """Return the objects, (O,), by the first request of their channel, and within it by their own.

    Objects without requests come last among those of their channel.
    """
    channel = problem.channel_number
    first_s = np.full(len(channel), np.inf)
    np.minimum.at(first_s, problem.object, problem.arrival_s)
    first_of_channel = np.full(channel.max(initial=-1) + 1, np.inf)
    np.minimum.at(first_of_channel, channel, first_s)
    return np.lexsort((first_s, first_of_channel[channel]))
