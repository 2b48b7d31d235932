"""Checks of given plans."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.livevideo import LiveVideo, check
from tests.models.livevideo.plans import V, plan, small


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", 1000.0, "S", "E")], "channel 'x' at 1000 kbit/s is no object of the problem"),
        ([("v", 1000.0, "A", "E")], "A->E is no link of the problem"),
        ([("v", 1000.0, "E", "A")], "E does not receive v/1000"),
        ([*V, ("v", 1000.0, "S", "E2"), ("v", 1000.0, "E2", "A")], "A receives v/1000 2 times"),
        ([*V, V[0]], "E receives v/1000 2 times"),
    ],
)
def test_tables_that_are_no_trees_are_rejected(rows: list[tuple[str, float, str, str]], message: str) -> None:
    with pytest.raises(PlanRejected, match=message):
        check(small(), plan(*rows))


def test_a_source_must_hold_the_channel() -> None:
    one = small()
    other = LiveVideo(
        clusters=pd.concat(
            [one.clusters, pd.DataFrame({"cluster": ["S2"], "tier": ["source"]})], ignore_index=True
        ),
        links=pd.concat(
            [one.links, pd.DataFrame([("S2", "E", 9.0, 0.0, 0.0)], columns=one.links.columns)],
            ignore_index=True,
        ),
        objects=one.objects, requests=one.requests,
        holders=pd.DataFrame({"channel": ["v"], "source": ["S2"]}),
    )  # fmt: skip
    with pytest.raises(PlanRejected, match="S does not hold v/1000"):
        check(other, plan(*V))
