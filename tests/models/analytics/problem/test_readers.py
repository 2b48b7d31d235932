"""Regions of clouds as sites."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.analytics import check, measure
from planner_models.analytics.designs import optimum
from planner_models.analytics.problem.generators import finest_bytes
from planner_models.analytics.problem.readers import read_regions

THROUGHPUT = (
    "src_region,dst_region,throughput_received_bps\na:x,b:z,1e9\na:x,b:z,2e9\nb:y,b:z,5e8\nb:z,a:x,1\n"
)
EGRESS = "src,dest,cost\na:x,b:z,0.09\nb:y,b:z,0.02\nb:z,a:x,1\n"


def write(folder: Path) -> Path:
    (folder / "throughput.csv").write_text(THROUGHPUT)
    (folder / "egress_cost.csv").write_text(EGRESS)
    return folder


def test_regions_have_their_best_throughput_and_their_price(tmp_path: Path) -> None:
    problem = read_regions(path=write(tmp_path), region="b:z", queries=4, hours=1)
    assert problem.sites[["site", "pop", "uplink_mbps", "usd_per_gb"]].to_numpy().tolist() == [
        ["a:x", "a", 20.0, 0.09],
        ["b:y", "b", 5.0, 0.02],
    ]
    load = finest_bytes(problem)[:, :2].sum()
    assert problem.capacity_bytes[:, :2].sum() == pytest.approx(0.35 * load)
    plan = optimum.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert (measure(problem, plan, None)["transfer_cost"] or 0.0) > 0


def test_a_region_without_measurements_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"region: 'b:zz' is no region of .*; did you mean 'b:z'"):
        read_regions(path=write(tmp_path), region="b:zz")
    with pytest.raises(InputError, match=r"provider: no region 'c\.\.\.' has a measurement to 'b:z'"):
        read_regions(path=tmp_path, region="b:z", provider="c")


@pytest.mark.slow
@pytest.mark.skipif("PLANNER_TRACES" not in os.environ, reason="needs PLANNER_TRACES")
def test_backhaul_between_regions_of_clouds() -> None:
    """Sixty-two regions, an hour: a plan within 0.1% of its bound, whose traffic has a price."""
    problem = read_regions(path=Path(os.environ["PLANNER_TRACES"]) / "cloud", region="aws:us-east-1", hours=1)
    assert len(problem.sites) == 62
    decision = optimum.plan(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.proof.gap is not None
    assert decision.proof.gap < 0.001
    assert (measure(problem, decision.plan, None)["transfer_cost"] or 0.0) > 0
