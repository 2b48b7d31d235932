"""Fixed routing: the shares of a given plan, at other rates and on other links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import ecmp, fixed
from planner_models.traffic.designs.oblivious import oblivious
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.plan import Routing
from tests.models.traffic.networks import both_ways, network

RING = network(
    both_ways([("a", "b", 10.0), ("b", "c", 10.0), ("c", "d", 10.0), ("d", "a", 10.0)]),
    [("a", "c", 16.0), ("b", "d", 0.0), ("c", "a", 2.0)],
)


def write(plan: Routing | None, folder: Path, *names: str) -> Path:
    assert plan is not None
    folder.mkdir(exist_ok=True)
    for name, table in plan.to_tables().items():
        if not names or name in names:
            table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_keeps_the_shares_of_a_plan(tmp_path: Path) -> None:
    plan = optimum.route(RING).plan
    folder = write(plan, tmp_path / "plan", "flows")
    less = RING.with_rates(RING.rate_mbps / 2)
    selected = fixed.route(less, present=folder).plan
    assert selected is not None
    assert check(less, selected).frame.empty
    assert measure(less, selected, plan)["moved_share"] == 0
    assert measure(less, selected, None)["max_utilization"] == pytest.approx(0.4)


def test_shares_serve_demands_that_had_no_rate(tmp_path: Path) -> None:
    other = RING.with_rates(np.array([0.0, 4.0, 0.0]))
    flows = write(optimum.route(RING).plan, tmp_path / "flows", "flows")
    without = fixed.route(other, present=flows).plan
    assert without is not None
    assert without.shed is not None
    hose = tmp_path / "hose.csv"
    hose.write_text("node,egress_mbps,ingress_mbps\na,9,9\nb,9,9\nc,9,9\nd,9,9\n")
    folder = write(oblivious.route(RING, over="hose", hose=hose).plan, tmp_path / "wide")
    served = fixed.route(other, present=folder).plan
    assert served is not None
    assert served.shed is None


def test_demands_over_links_that_are_gone_are_shed(tmp_path: Path) -> None:
    folder = write(optimum.route(RING).plan, tmp_path / "plan", "flows")
    up = np.array(RING.link_labels) != "a->b"
    cut = Traffic.from_tables({"links": RING.links[up], "demands": RING.demands})
    plan = fixed.route(cut, present=folder).plan
    assert plan is not None
    assert plan.shed is not None
    assert plan.shed[["source", "target", "rate_mbps"]].to_numpy().tolist() == [["a", "c", 16.0]]
    assert check(cut, plan).of_limits({"demand"}).frame.empty


def test_without_tables_it_is_ecmp(tmp_path: Path) -> None:
    default, expected = fixed.route(RING).plan, ecmp.route(RING).plan
    assert default is not None
    assert expected is not None
    assert default.flows.equals(expected.flows)
    with pytest.raises(InputError, match="has none of the tables"):
        fixed.route(RING, present=tmp_path)
