"""Sources of system `geostore`: regions of clouds with measured times and prices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.geostore.problem.sources import read_cloud

FOLDER = os.environ.get("PLANNER_TRACES", "")
LATENCY = (
    "src_region,src_tier,dst_region,dst_tier,avg_rtt\n"
    "aws:a,PREMIUM,gcp:b,PREMIUM,10\naws:a,PREMIUM,gcp:b,STANDARD,90\ngcp:b,PREMIUM,aws:a,PREMIUM,12\n"
)
EGRESS = "src,dest,cost\naws:a,gcp:b,0.09\ngcp:b,aws:a,0.12\naws:a,aws:a,0\n"


def test_a_folder_of_measurements_is_read(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text(LATENCY)
    (tmp_path / "egress_cost.csv").write_text(EGRESS)
    problem = read_cloud(path=tmp_path, groups=2, users=2, seed=1)
    assert problem.rtt_ms[0, 1] == 10.0
    assert problem.rtt_ms[1, 0] == 12.0
    assert problem.usd_per_gb[1, 0] == 0.12
    assert problem.regions["provider"].tolist() == ["aws", "gcp"]
    with pytest.raises(InputError, match="has 1 regions with round-trip times and prices"):
        read_cloud(path=tmp_path, provider="aws", groups=2)


@pytest.mark.skipif(not Path(FOLDER, "cloud").is_dir(), reason="needs the real regions of PLANNER_TRACES")
def test_sixty_real_regions_have_times_and_prices() -> None:
    problem = read_cloud(path=Path(FOLDER, "cloud"), groups=5, seed=1)
    assert len(problem.regions) == 60
    assert (problem.rtt_ms > 0).all()
    assert problem.usd_per_gb.max() < 0.3
