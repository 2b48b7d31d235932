"""Tables of tunnels and classes: what is read, what is refused, and what remains after failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import planner
from planner.errors import InputError, PlanRejected
from planner_models.capacity import CapacityPlanning, Purchases
from planner_models.capacity.plan.check import evaluate
from planner_models.capacity.problem.adjustments import adjust
from planner_models.capacity.problem.generators import backbone
from tests.models.capacity.networks import ring


def tunnels(*rows: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["path", "name"][: len(rows[0])])


def of_classes(*names: str) -> pd.DataFrame:
    return pd.DataFrame(
        [("a", "c", 1.0, name) for name in names], columns=["source", "target", "rate_mbps", "class"]
    )


def test_a_path_is_read_as_arcs_of_links() -> None:
    problem = ring(tunnels=tunnels(("c > b > a", "back"), ("b > c", "of no demand")))
    paths = problem.tunnel_paths
    assert paths is not None
    assert paths.names == ["back"]
    assert paths.uses.toarray().tolist() == [[1, 1, 0]]
    assert paths.arcs.toarray().tolist() == [[0, 0, 0, 1, 1, 0]]
    assert paths.pair_of.tolist() == [0]
    assert problem.size()["tunnels"] == 2
    again = CapacityPlanning.from_tables(problem.to_tables())
    assert again.to_tables().keys() == problem.to_tables().keys()
    one_way = ring(tunnels=tunnels(("c > b > a",)), network=pd.DataFrame({"direction": ["bidirected"]}))
    assert one_way.tunnel_paths is None  # the demand is from a to c


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"tunnels": tunnels(("a > d > c",))}, "tunnels row 1: path 'd' is no node of the network"),
        ({"tunnels": tunnels(("a > c",), ("a > c",))}, "tunnels row 2: path is there already in row 1"),
        ({"tunnels": tunnels(("a",))}, "tunnels row 1: path is 'a', must be two nodes at least"),
        (
            {"tunnels": tunnels(("a > b > a",))},
            "tunnels row 1: path passes 'a' twice",
        ),
        (
            {"demands": of_classes("glod"), "classes": pd.DataFrame({"class": ["gold"], "priority": [1]})},
            "demands row 1: class 'glod' is no class of classes; did you mean 'gold'?",
        ),
        (
            {"classes": pd.DataFrame({"class": ["gold"], "priority": [1]})},
            "demands: column 'class' is missing; the table classes needs it",
        ),
        (
            {
                "demands": of_classes("gold"),
                "classes": pd.DataFrame({"class": ["gold"], "priority": [1], "protected_share": [1.2]}),
            },
            "classes row 1: protected_share is 1.2, must be at most 1",
        ),
        ({"demands": of_classes("gold", "gold")}, "demands row 2"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ring(**tables)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(message)


def test_growth_needs_several_years() -> None:
    demands = pd.DataFrame({"source": ["a"], "target": ["c"], "rate_mbps": [5.0], "growth": [0.1]})
    with pytest.raises(InputError, match="column 'growth' needs several years"):
        adjust(ring(demands=demands))
    assert adjust(ring(demands=demands), years=2).rate_mbps.tolist() == [[5.0], [5.5]]


def test_a_lost_link_takes_its_tunnels_and_leaves_demands_bound() -> None:
    problem = adjust(ring(tunnels=tunnels(("a > b > c",))), failures="links")
    lost = adjust(problem, fail_links=("b<->a",))
    assert lost.tunnel_paths is not None
    assert lost.cut_off[0].tolist() == [True]
    assert lost.states.names == ["b<->c", "a<->c"]
    assert planner.solve(lost, design="optimum").metrics["unserved_mbps"] == 15.0
    free = adjust(ring(tunnels=tunnels(("a > b > c",), ("a > c",))), fail_links=("a<->b",))
    assert planner.solve(free, design="optimum").metrics["unserved_mbps"] == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(tunnel="x"), "tunnel_flows row 1: tunnel 'x' is none of the demands'"),
        (
            lambda frame: frame.assign(rate_mbps=3.0),
            "tunnel_flows: tunnels from a to c carry 3 Mbit/s, must",
        ),
        (lambda frame: frame.iloc[:0], "tunnel_flows: tunnels from a to c carry 0 Mbit/s, must be 15"),
        (lambda frame: pd.concat([frame, frame]), "tunnel_flows: a tunnel is there twice"),
    ],
)
def test_wrong_traffic_in_tunnels_is_rejected(
    change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    problem = ring(tunnels=tunnels(("a > b > c",)))
    plan = planner.solve(problem, design="optimum").plan
    assert plan.tunnel_flows is not None
    wrong = Purchases(**{**plan.to_tables(), "tunnel_flows": change(plan.tunnel_flows)})
    with pytest.raises(PlanRejected, match="tunnel_flows") as caught:
        evaluate(problem, wrong)
    assert str(caught.value).startswith(message)


def test_the_backbone_has_classes_and_disjoint_tunnels_on_request() -> None:
    problem = backbone(cities=8, classes=True, tunnels=3)
    paths = problem.tunnel_paths
    assert paths is not None
    for pair in range(paths.pairs):
        uses = paths.uses[np.flatnonzero(paths.pair == pair)].toarray()
        assert len(uses) == 2
        assert uses.sum(axis=0).max() == 1
    plain = backbone(cities=8)
    assert problem.rate_mbps.sum() == pytest.approx(plain.rate_mbps.sum())
    assert problem.class_table["protected_share"].tolist() == [1.0, 1.0, 0.4]
