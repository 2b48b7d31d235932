"""Compiles the kernels before a time limit begins, where no run on this machine has done so yet.

That takes half a minute and more, once, which the first run of all would lack for its search.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from planner_models.livevideo import layers as arrays
from planner_models.livevideo.dive import Dive
from planner_models.livevideo.eviction import Guide
from planner_models.livevideo.limits import Limits
from planner_models.livevideo.mixing import Mixing
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.star import EXACT


@cache
def get_ready() -> None:
    """Call each kernel of the decomposition once, in what a run would do."""
    layers = arrays.of(_smallest())
    limits, pricer = Limits(layers), Pricer(layers, 1)
    mixing, packing = Mixing(layers, limits, pricer, 0), Packing(layers, pricer, 0)
    prices = limits.by_class(np.zeros(len(limits.limit)))
    trees, worth, _ = pricer.solve(prices, mixing.dual.copy(), 1, 1)
    guide = Guide(prices=prices, trees=trees, worth=worth)
    packing.rebuild(trees, prices, mixing.dual, worth)
    packing.adopt(packing.choice)
    packing.evict(guide, 1, 1.0)
    packing.shake(prices, 1, 1, 1.0, 0.0)
    mixing.start_from(packing.choice, None)
    mixing.turn()
    Dive(mixing).round()


def _smallest() -> LiveVideo:
    """Two objects, one of them for as many as need the search, over links that only carry one."""
    groups = [f"group{n}" for n in range(EXACT + 1)]
    above = [("source", "reflector"), ("reflector", "edge")]
    return LiveVideo(
        clusters=pd.DataFrame(
            [("source", "source"), ("reflector", "reflector"), ("edge", "edge")]
            + [(group, "group") for group in groups],
            columns=["cluster", "tier"],
        ),
        links=pd.DataFrame(above + [("edge", group) for group in groups], columns=["tail", "head"]).assign(
            capacity_mbps=1.0
        ),
        objects=pd.DataFrame({"channel": ["many", "one"], "bitrate_kbps": 1000.0}),
        requests=pd.DataFrame(
            [(group, "many") for group in groups] + [(groups[0], "one")], columns=["group", "channel"]
        ).assign(bitrate_kbps=1000.0),
    )
