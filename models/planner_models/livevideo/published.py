"""What the thesis states of VDN (Mukerjee 2018, chapter 4), beside what comes out here.

Its traces are not public: workloads are drawn anew from what it says of them, so that levels differ
where they hang on how popular each channel is, and orders say more. Weights are not printed either.
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from planner.published import Found, Study, Target
from planner_models.livevideo import optimum, scaling, testbed, traces
from planner_models.livevideo.measure import measure
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.rib import Ribs


def _worked_example(third: bool) -> LiveVideo:
    """Fig. 4.9 with capacities and costs of our own but for YA's 10."""
    links = [("S", "X", 0.9, 1.0), ("S", "Y", 2.0, 1.0), ("X", "A", 0.9, 1.0), ("Y", "A", 2.0, 10.0)]
    links.append(("Y", "B", 2.0, 1.0))
    asked = [("A", "V1", 800.0), ("B", "V1", 800.0), *([("A", "V2", 900.0)] if third else [])]
    tiers = {"S": "source", "X": "reflector", "Y": "reflector", "A": "group", "B": "group"}
    return LiveVideo(
        clusters=pd.DataFrame({"cluster": list(tiers), "tier": list(tiers.values())}),
        links=pd.DataFrame(links, columns=["tail", "head", "capacity_mbps", "cost"]),
        objects=pd.DataFrame(
            [("V1", 200.0, 1.0), ("V1", 800.0, 1.0), ("V2", 300.0, 1.0), ("V2", 900.0, 100.0)],
            columns=["channel", "bitrate_kbps", "priority"],
        ),
        requests=pd.DataFrame(asked, columns=["group", "channel", "bitrate_kbps"]),
        settings=pd.DataFrame({"service_weight": [10.0], "cost_weight": [1.0]}),
    )


def _figure_4_9(study: Study) -> Found:  # noqa: ARG001
    before, after = (optimum.distribute(_worked_example(third)).plan for third in (False, True))
    assert before is not None
    assert after is not None
    ya = [(plan.trees["tail"].eq("Y") & plan.trees["head"].eq("A")).any() for plan in (before, after)]
    served = measure(_worked_example(False), before, None)["requests_served"] or 0.0
    return Found(
        values={
            "live_ex_served": served / 100 * 2 if not ya[0] else 0.0,
            "live_ex_third": bool(not ya[0] and ya[1]),
        },
        notes={"live_ex_third": "capacities and other costs are our own, with weights 10 and 1 in Mbit/s"},
    )


def _table_4_1(study: Study) -> Found:  # noqa: ARG001
    """The sample: the controller sends V0 over R2 as of 15:20; its link fails; at 15:23 R1 it is."""
    capacity = {1: 10.0, 2: 15.0}
    cluster, v0, r1, r2 = 0, 0, 1, 2
    ribs = Ribs(1, capacity=lambda link: capacity[link], alone=True, timeout_s=600.0)
    ribs.told(cluster, 15 * 60 + 20.0, 15 * 60 + 20.0, [(v0, r2, 15.0)])
    capacity[r2] = 0.0
    now = 15 * 60 + 23.0
    stale = ribs.forwarding(cluster, v0, now) is None
    ribs.decides(cluster, v0, r1, now)
    entry = ribs.forwarding(cluster, v0, now)
    wins = stale and entry is not None and not entry.central
    return Found(
        values={
            "live_t41_fib_version": bool(wins and entry is not None and entry.version_s == now),
            "live_t41_fib_nexthop": bool(wins and entry is not None and entry.link == r1),
        }
    )


EXAMPLES: Final = (
    Target(
        name="table_4_1",
        place="Table 4.1",
        about="which of two decisions that a cluster holds it forwards by",
        rows=("live_t41_fib_version", "live_t41_fib_nexthop"),
        find=_table_4_1,
    ),
    Target(
        name="figure_4_9",
        place="Fig. 4.9",
        about="two channels, a dear link, and a third request that makes it worth its price",
        rows=("live_ex_served", "live_ex_third"),
        find=_figure_4_9,
        tolerance=1e-6,
        lost=("capacities, and costs but one",),
    ),
)
TARGETS: Final = (*EXAMPLES, *traces.TARGETS, *scaling.TARGETS, *testbed.TARGETS)
