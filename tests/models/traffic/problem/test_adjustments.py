"""Scaled capacities of all links: changes, and errors of values."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import optimum
from tests.commands import planner
from tests.models.traffic.networks import both_ways, network, problems

RING = network(both_ways([("a", "b", 1.0), ("b", "c", 4.0), ("c", "a", 2.0)]), [("a", "b", 1.0)])


def test_only_capacities_are_scaled() -> None:
    twice = SYSTEM.problem.adjust(RING, capacity_scale=2.0)
    assert twice.capacity_mbps.tolist() == (2 * RING.capacity_mbps).tolist()
    assert twice.rate_mbps.tolist() == RING.rate_mbps.tolist()
    assert twice.links.drop(columns="capacity_mbps").equals(RING.links.drop(columns="capacity_mbps"))


def test_slow_links_keep_their_share_of_scaled_capacity() -> None:
    slow = SYSTEM.problem.adjust(RING, capacity_scale=3.0, capacity_factors={"b->c": 0.5})
    assert dict(zip(slow.link_labels, slow.capacity_mbps, strict=True))["b->c"] == 6.0


@settings(max_examples=15)
@given(problems(), st.sampled_from([0.25, 0.5, 3.0]))
def test_the_largest_share_that_fits_scales_with_capacity(problem: Traffic, factor: float) -> None:
    before, after = (
        optimum.route(item, objective="concurrent").proof.objective
        for item in (problem, SYSTEM.problem.adjust(problem, capacity_scale=factor))
    )
    assert before is not None
    assert after == pytest.approx(factor * before, rel=1e-6)


@pytest.mark.parametrize(
    ("factor", "fault"),
    [
        (1e308, "links row 2: capacity_mbps is inf, must be a finite number; for no limit write 1e+12"),
        (1e11, "links row 2: capacity_mbps is 100000000000000.0, must be at most 1e+12"),
        (1e-15, "links row 1: capacity_mbps is 1.0000000000000001e-16, must be 0 or at least 1e-15"),
    ],
)
def test_capacities_out_of_range_are_errors(factor: float, fault: str) -> None:
    problem = network([("a", "b", 0.1), ("b", "a", 1e3)], [("a", "b", 0.1)])
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(problem, capacity_scale=factor)
    assert fault in caught.value.faults


@pytest.mark.parametrize(
    ("value", "rule"),
    [("0", "must be greater than 0"), ("inf", "must be a finite number"), ("'x'", "must be a number")],
)
def test_an_invalid_scale_is_one_line(tmp_path: Path, value: str, rule: str) -> None:
    (tmp_path / "s.toml").write_text(
        'system = "traffic"\n[problem]\nsource = "generate"\npreset = "abilene"\n[designs.ecmp]\n'
    )
    result = planner("solve", tmp_path / "s.toml", "--set", f"problem.capacity_scale={value}")
    assert result.code == 1
    assert result.err.strip().endswith(f"s.toml: problem.capacity_scale is {value}, {rule}")
    assert len(result.err.strip().splitlines()) == 1
