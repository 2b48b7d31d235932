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


def test_a_failed_block_loses_its_demand() -> None:
    result = planner.failures(fabric(4.0), design="uniform", kinds="block")
    cost = {one.element: one.cost for one in result.failures}
    assert cost == {name: pytest.approx(rate) for name, rate in zip("abcd", [37, 35, 5, 7], strict=True)}
    assert not result.harmless
