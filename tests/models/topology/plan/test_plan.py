"""Demand that no plan has a path for: the other demand is served, and a failed block's demand is lost."""

from __future__ import annotations

import pandas as pd
import pytest

import planner
from planner_models.topology import Fabric


def fabric(ports_of_d: float) -> Fabric:
    blocks = pd.DataFrame({"block": list("abcd"), "ports": [4.0, 4.0, 4.0, ports_of_d], "port_mbps": 10.0})
    demands = pd.DataFrame(
        [("a", "b", 30.0), ("b", "c", 5.0), ("a", "d", 7.0)], columns=["source", "target", "rate_mbps"]
    )
    return Fabric.from_tables({"blocks": blocks, "demands": demands})


@pytest.mark.parametrize("design", ["optimum", "uniform", "matching", "proportional"])
def test_demand_without_a_path_does_not_stop_other_demand(design: str) -> None:
    run = planner.solve(fabric(0.0), design=design)
    assert run.constraints.met
    assert run.metrics["unserved_mbps"] == pytest.approx(7.0)
    assert run.verdict.startswith("1 demand has no path: a->d (7 Mbit/s).")
    if design == "optimum":  # all 4 ports of a and b: 40 Mbit/s for 30, directly and by c
        assert run.proof.bound == pytest.approx(4 / 3)


def test_demand_without_a_path_is_said_once_and_what_does_not_fit_apart_from_it() -> None:
    full = planner.solve(fabric(0.0), design="optimum").verdict
    assert full.count("7 Mbit/s") == 1
    assert "unserved" not in full
    doubled = fabric(0.0).to_tables()
    doubled["demands"] = doubled["demands"].assign(rate_mbps=doubled["demands"]["rate_mbps"] * 2)
    run = planner.solve(Fabric.from_tables(doubled), design="optimum")
    # 2/3 of 60 + 10 Mbit/s fits; 14 Mbit/s have no path
    assert run.metrics["unserved_mbps"] == pytest.approx(14 + 70 / 3)
    assert "a->d (14 Mbit/s). Apart from that, " in run.verdict
    assert "It leaves 23.33 Mbit/s unserved." in run.verdict


def test_a_failed_block_loses_its_demand() -> None:
    result = planner.failures(fabric(4.0), design="uniform", kinds="block")
    cost = {failure.element: failure.cost for failure in result.failures}
    assert cost == {name: pytest.approx(rate) for name, rate in zip("abcd", [37, 35, 5, 7], strict=True)}
    assert not result.harmless
