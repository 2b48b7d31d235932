"""Figure 4.16: buffering with the wait to join, and results that follow from few requests a second."""

from __future__ import annotations

import pandas as pd
import pytest

from planner_models.livevideo.problem import generators
from planner_models.livevideo.published import figures_4_16_and_4_17 as figures
from planner_models.livevideo.simulation.chunks import ChunkRule
from planner_models.livevideo.simulation.control import simulate


def test_the_wait_to_join_counts_as_buffering() -> None:
    """One client waits 10 of 30 s and stalls for 2, the other waits for all of its 20 s."""
    clients = pd.DataFrame({"asked_s": [0.0, 10.0], "watched_s": [20.0, 0.0], "stalled_s": [2.0, 0.0]})
    assert figures._buffering_share(clients, 30.0) == pytest.approx((10 + 2 + 20) / 50)


def test_servers_lose_more_where_one_reflector_has_all_requests() -> None:
    """Servers answer 16 requests a second: enough for two reflectors, not for one with all 50 streams."""
    problem = generators.ec2_testbed(videos=50)
    rule = ChunkRule(requests_per_s=16.0)
    results = {
        control: simulate(problem, control=control, until_s=60.0, chunks=rule, options=figures.OPTIONS)
        for control in ("distributed", "hybrid")
    }
    trees = results["hybrid"].tables["trees"]
    assert len(set(trees.loc[trees["tail"].isin(["S1", "S2"]), "head"])) == 1
    delivered = {name: result.metrics["delivered_kbps"] or 0.0 for name, result in results.items()}
    assert delivered["hybrid"] < 0.97 * delivered["distributed"]
