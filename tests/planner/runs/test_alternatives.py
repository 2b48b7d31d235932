"""Plans near the optimum: within the loss, best in their aim, never better than a bound."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import planner
from planner.errors import InputError
from planner_models.traffic import Traffic
from tests.commands import planner as command
from tests.models.traffic.networks import network, problems

TRIANGLE = network(
    [("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 10.0), ("c", "b", 10.0)],
    [("a", "c", 8.0), ("a", "b", 4.0)],
)


def test_each_plan_is_best_in_its_aim() -> None:
    result = planner.alternatives(
        TRIANGLE, within=0.0, goals=["fewest_links", "least_traffic", "least_busiest"]
    )
    frame = result.to_frame().set_index("alternative")
    assert frame.loc["fewest_links", "amount"] == pytest.approx(2.0)
    assert frame.loc["least_traffic", "amount"] == pytest.approx(12.0)
    assert frame.loc["least_busiest", "amount"] == pytest.approx(0.6)  # 12 of 20 leave a
    assert (frame["loss"] < 1e-6).all()
    assert result.exit_code == 0
    for item in result.alternatives:
        assert item.run.metrics["delivered_mbps"] == pytest.approx(12.0)
        assert item.amount <= item.at_optimum + 1e-6


def test_an_aim_about_a_node() -> None:
    problem = network(
        [("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)], [("a", "d", 12.0)]
    )
    result = planner.alternatives(problem, within=0.25, goals="least_through=b")
    (item,) = result.alternatives
    assert item.amount == pytest.approx(0.0, abs=1e-6)  # 10 over c lose 2 of 12
    assert item.run.metrics["delivered_mbps"] >= 9.0 - 1e-6
    assert item.run.proof.bound is None
    assert item.bound == pytest.approx(item.amount, abs=1e-6)


@settings(max_examples=15)
@given(problem=problems(max_nodes=4))
def test_the_fewest_links_are_those_of_enumeration(problem: Traffic) -> None:
    """Try all sets of links: the least that carry as much as all, by the optimum of each."""
    if len(problem.links) > 7:
        return
    result = planner.alternatives(problem, within=0.0, goals="fewest_links")
    (item,) = result.alternatives
    most = result.optimum.metrics["delivered_mbps"]
    for count in range(len(problem.links) + 1):
        if any(
            _delivered(problem, np.array(links, dtype=int)) >= (most or 0.0) * (1 - 1e-6)
            for links in itertools.combinations(range(len(problem.links)), count)
        ):
            break
    assert item.amount == pytest.approx(count, abs=1e-6)


def _delivered(problem: Traffic, links: np.ndarray) -> float:
    if not len(links):
        return 0.0
    part = Traffic.from_tables(
        {
            "nodes": problem.nodes,
            "links": problem.links.iloc[links].reset_index(drop=True),
            "demands": problem.demands,
        }
    )
    return planner.solve(part, design="optimum").metrics["delivered_mbps"] or 0.0


def test_the_most_different_plan_uses_other_routes() -> None:
    problem = network([("a", "b", 10.0), ("a", "b", 10.0)], [("a", "b", 6.0)])
    model = planner.model(problem, objective="total")
    assert model.goals
    result = planner.alternatives(problem, within=0.0, goals="most_different", objective="total")
    (item,) = result.alternatives
    assert item.at_optimum == pytest.approx(1.0)
    assert item.amount == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("paths", ["any", 2])
def test_the_fewest_moves_keep_what_can_stay(paths: object) -> None:
    today = [("a", "d", "a", "b", 8.0), ("a", "d", "b", "d", 8.0)]
    frame = pd.DataFrame(today, columns=["source", "target", "tail", "head", "rate_mbps"])
    less = network([("a", "b", 10.0), ("b", "d", 6.0), ("a", "c", 10.0), ("c", "d", 10.0)], [("a", "d", 8.0)])
    result = planner.alternatives(
        less, within=0.0, goals="fewest_moves", previous={"flows": frame}, paths=paths
    )
    (item,) = result.alternatives
    assert item.run.metrics["delivered_mbps"] == pytest.approx(8.0)
    assert item.amount == pytest.approx(4.0)  # 2 of 8 leave both links of the way over b
    assert item.bound == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"within": 1.5}, "within is 1.5, must be a share from 0"),
        ({"within": "1%"}, "within is 1%, must be a share from 0"),
        ({"goals": "fewest_link"}, "no such aim; did you mean 'fewest_links'"),
        ({"goals": "least_through"}, "least_through needs a node"),
        ({"goals": "least_through=x"}, "'x' is no node"),
        ({"goals": "fewest_links=3"}, "fewest_links has no value"),
        ({"design": "ecmp"}, "has no model that can be changed"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        planner.alternatives(TRIANGLE, **arguments)  # type: ignore[arg-type]


def test_the_command_saves_plans_under_names_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "plans"
    result = command(
        "alternatives",
        "traffic/abilene",
        "--within",
        "2%",
        "--goal",
        "least_through=HSTNng",
        "--out",
        out,
        "--json",
    )
    assert result.code == 0
    answer = json.loads(result.out)
    assert answer["within"] == pytest.approx(0.02)
    assert answer["alternatives"][0]["loss"] <= 0.02 + 1e-9
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"optimum", "1_least_through_hstnng"}
    assert command("alternatives", "traffic/abilene", "--within", "little").code == 1
