"""Flow size distributions: reading, drawing, means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from planner.errors import InputError
from planner_models.traffic.simulation import flow_arrivals
from planner_models.traffic.simulation.flow_arrivals import FlowSizes
from tests.models.flowrecords.exports import FLOWS, goflow, nfdump_old


def written(folder: Path, text: str) -> Path:
    path = folder / "sizes.txt"
    path.write_text(text)
    return path


def test_sizes_between_two_points_are_equally_likely(tmp_path: Path) -> None:
    sizes = flow_arrivals.read(written(tmp_path, "# bytes, probability\n0 0\n100\t0.5\n\n300,1\n"))
    assert sizes.mean_bytes() == 0.5 * 50 + 0.5 * 200
    assert sizes.quantile([0.25, 0.5, 0.75]).tolist() == [50.0, 100.0, 200.0]
    assert sizes.share_below(200) == 0.75
    assert sizes.share_below(-1) == 0.0
    assert sizes.share_below(300) == 1.0


def test_percent_and_a_first_point_above_zero(tmp_path: Path) -> None:
    sizes = flow_arrivals.read(written(tmp_path, "10 40\n20 100\n"))
    assert sizes.mean_bytes() == pytest.approx(0.4 * 10 + 0.6 * 15)
    assert sizes.share_below(10) == 0.4
    assert sizes.quantile([0.0, 0.4]).tolist() == [10.0, 10.0]


def test_logarithms_of_sizes_between_two_points_are_equally_likely(tmp_path: Path) -> None:
    sizes = flow_arrivals.read(written(tmp_path, "1e4 0\n1e7 1\n"), is_log=True)
    assert sizes.quantile([0.0, 1 / 3, 2 / 3, 1.0]) == pytest.approx([1e4, 1e5, 1e6, 1e7])
    assert sizes.share_below(1e5) == pytest.approx(1 / 3)
    random = np.random.default_rng(1)
    drawn = np.sort(sizes.sample(random, 20_000))
    assert stats.kstest(drawn, np.vectorize(sizes.share_below)).pvalue > 0.01
    assert drawn.mean() == pytest.approx(sizes.mean_bytes(), rel=0.03)
    assert sizes.mean_bytes() == pytest.approx((1e7 - 1e4) / np.log(1e3))
    with pytest.raises(InputError, match="point 1: size is 0 bytes, must be greater than 0 for logarithms"):
        flow_arrivals.read(written(tmp_path, "0 0\n1 1\n"), is_log=True)


def test_sizes_are_those_of_flows_in_records(tmp_path: Path) -> None:
    """Two records of one flow are one size; a second exporter of it adds none."""
    path = tmp_path / "records.csv"
    long = replace(FLOWS[0], start_ms=10_000, end_ms=20_000, octets=5_000)
    again = replace(FLOWS[0], exporter="192.0.2.2")
    path.write_bytes(nfdump_old([*FLOWS, long, again]))
    sizes = flow_arrivals.read_recorded(path)
    assert sorted(set(sizes.size_bytes.tolist())) == [1_500, 14_000, 123_456, 7_000_000, 80_000_000]
    assert sizes.share_below(123_456) == pytest.approx(0.6)
    path.write_bytes(nfdump_old(FLOWS[2:3]))
    alone = flow_arrivals.read_recorded(path)
    assert set(alone.sample(np.random.default_rng(1), 50).tolist()) == {1_500}


def test_sampled_records_give_no_sizes(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_bytes(goflow().replace(b'"sampling_rate": 1', b'"sampling_rate": 100'))
    with pytest.raises(
        InputError, match=r"records.json: records are sampled, one packet of 100, which misses"
    ):
        flow_arrivals.read_recorded(path)


@st.composite
def distributions(draw: st.DrawFn) -> FlowSizes:
    count = draw(st.integers(2, 8))
    size = sorted(draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count)))
    steps = draw(st.lists(st.integers(0, 100), min_size=count - 1, max_size=count - 1))
    probability = np.cumsum([0, *steps]) / max(sum(steps), 1)
    return FlowSizes(
        size_bytes=np.array(size, float) + np.arange(count), probability=np.r_[probability[:-1], 1.0]
    )


@given(distributions(), st.integers(0, 100))
def test_draws_follow_the_distribution(sizes: FlowSizes, seed: int) -> None:
    drawn = sizes.sample(np.random.default_rng(seed), 4000)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 1
    assert drawn.max() <= max(1, round(sizes.size_bytes[-1]))
    spread = sizes.size_bytes[-1] - sizes.size_bytes[0]
    assert abs(drawn.mean() - sizes.mean_bytes()) <= 5 * spread / np.sqrt(4000) + 1
    for point in sizes.size_bytes[1:-1]:
        assert abs((drawn <= point + 0.5).mean() - sizes.share_below(point + 0.5)) <= 0.05
    assert (sizes.sample(np.random.default_rng(seed), 4000) == drawn).all()


def test_real_distributions(traces: Path) -> None:
    vl2 = flow_arrivals.read(traces / "flowsizes" / "VL2_CDF.txt")
    assert vl2.share_below(125e3) == pytest.approx(0.829, abs=0.001)  # published: over 86 percent
    assert vl2.quantile(0.95) == 3_160_000
    for name in ("DCTCP", "FB"):
        assert flow_arrivals.read(traces / "flowsizes" / f"{name}_CDF.txt").mean_bytes() > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sizes.txt: holds 0 points, needs at least two lines of size and probability"),
        ("1 0\nabc\n", "sizes.txt line 2: is 'abc', must be a size and a probability"),
        ("1 0 7\n2 1\n", "sizes.txt line 1: is '1 0 7', must be a size and a probability"),
        ("5 0\n1 1\n", "sizes.txt: flow sizes, point 2: size 1 is less than 5 before it"),
        ("0 0.5\n1 0.2\n2 1\n", "sizes.txt: flow sizes, point 2: probability 0.2 is less than 0.5 before it"),
        ("0 0\n1 0.9\n", "sizes.txt: flow sizes: the last probability is 0.9, must be 1"),
        ("0 0\n1 1.5\n", "sizes.txt: flow sizes, point 2: probability is 1.5, must be from 0 to 1"),
        ("-1 0\n1 1\n", "sizes.txt: flow sizes, point 1: size is -1 bytes, must be finite and at least 0"),
        ("nan 0\n1 1\n", "sizes.txt: flow sizes, point 1: size is nan bytes, must be finite and at least 0"),
        ("0 0\n0 1\n", "sizes.txt: flow sizes: the largest size is 0 bytes"),
    ],
)
def test_bad_files_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        flow_arrivals.read(written(tmp_path, text))
    assert str(caught.value).splitlines()[0] == message


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        flow_arrivals.read(tmp_path / "nothing.txt")
