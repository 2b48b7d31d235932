"""Named and random failures, and errors of their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.adjustments import adjust
from tests.commands import planner
from tests.models.traffic.networks import both_ways, network, problems

RING = network(
    both_ways([("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)]), [("a", "b", 1.0), ("c", "b", 1.0)]
)
TWINS = network([("a", "b", 1.0), ("a", "b", 2.0), ("b", "a", 3.0), ("b", "a", 4.0)], [("a", "b", 1.0)])


def labels(problem: Traffic) -> set[str]:
    return set(problem.link_labels)


def test_without_failures_the_problem_is_the_same() -> None:
    assert adjust(RING) is RING


def test_one_direction_and_both_directions() -> None:
    assert labels(RING) - labels(adjust(RING, fail_links=("a->b",))) == {"a->b"}
    assert labels(RING) - labels(adjust(RING, fail_links=("a<->b",))) == {"a->b", "b->a"}


def test_parallel_links_fail_together_unless_numbered() -> None:
    assert adjust(TWINS, fail_links=("b->a",)).capacity_mbps.tolist() == [1.0, 2.0]
    assert adjust(TWINS, fail_links=("a->b#2",)).capacity_mbps.tolist() == [1.0, 3.0, 4.0]
    assert adjust(TWINS, fail_links=("a<->b#2",)).capacity_mbps.tolist() == [1.0, 3.0]


def test_patterns_match_many_links() -> None:
    tree = generators.fat_tree(k=8)
    remaining_problem = adjust(tree, fail_links=("aggregation-*-0<->core-0-[123]",))
    assert len(tree.links) - len(remaining_problem.links) == 2 * 8 * 3


def test_a_failed_node_loses_its_links() -> None:
    remaining_problem = adjust(RING, fail_nodes=("c",), lost_demands="drop")
    assert labels(remaining_problem) == {"a->b", "b->a"}
    assert remaining_problem.demand_labels == ["a->b"]
    assert remaining_problem.nodes["node"].tolist() == ["a", "b", "c"]


def test_slow_links_have_a_share_of_their_capacity() -> None:
    remaining_problem = adjust(RING, capacity_factors={"a<->b": 0.1, "a->*": 0.5})
    assert dict(zip(remaining_problem.link_labels, remaining_problem.capacity_mbps, strict=True)) == {
        "a->b": 0.1, "b->a": 0.1, "b->c": 1.0, "c->b": 1.0, "a->c": 0.5, "c->a": 1.0,
    }  # fmt: skip


def test_groups_of_links_and_nodes(tmp_path: Path) -> None:
    table = tmp_path / "risks.csv"
    table.write_text("group,member\nduct,a<->b\nduct,b->c\nhall,c\n")
    assert labels(RING) - labels(
        adjust(RING, fail_groups=("duct",), risk_groups=table, lost_demands="drop")
    ) == {"a->b", "b->a", "b->c"}
    hall = adjust(RING, fail_groups=("hall",), risk_groups=table, lost_demands="drop")
    assert labels(hall) == {"a->b", "b->a"}
    drawn = {
        frozenset(
            labels(adjust(RING, fail_random_groups=1, risk_groups=table, failure_seed=s, lost_demands="drop"))
        )
        for s in range(10)
    }
    assert len(drawn) == 2


@given(problems(), st.integers(0, 3), st.integers(0, 100))
def test_random_links_fail_with_their_opposites(problem: Traffic, count: int, seed: int) -> None:
    cables = {
        (min(t, h), max(t, h), n)
        for t, h, n in zip(problem.tail, problem.head, problem.parallel, strict=True)
    }
    try:
        remaining_problem = adjust(problem, fail_random_links=count, failure_seed=seed, lost_demands="drop")
    except InputError as error:
        said = str(error)
        assert "left to fail" in said or "leave no link" in said or "leave no demand" in said
        return
    again = adjust(problem, fail_random_links=count, failure_seed=seed, lost_demands="drop")
    assert again.links.equals(remaining_problem.links)
    capacity = np.bincount(
        np.minimum(remaining_problem.tail, remaining_problem.head) * len(problem.nodes)
        + np.maximum(remaining_problem.tail, remaining_problem.head)
    ).sum()
    assert capacity == len(remaining_problem.links) <= len(problem.links)
    assert len(problem.links) - len(remaining_problem.links) <= 2 * count
    assert len(problem.links) - len(remaining_problem.links) >= min(count, len(cables))


def test_random_nodes_are_no_ends_of_demands() -> None:
    tree = generators.fat_tree(k=4)
    for seed in range(10):
        remaining_problem = adjust(tree, fail_random_nodes=3, failure_seed=seed, lost_demands="drop")
        degree = np.bincount(remaining_problem.tail, minlength=len(remaining_problem.nodes))
        dark = remaining_problem.nodes["node"][degree == 0]
        # hosts whose edge switch failed are dark too
        assert sum(not name.startswith("host") for name in dark) == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"fail_links": ("a->d",)}, "problem.fail_links: 'a->d' matches no link; did you mean 'a->c'?"),
        ({"fail_links": ("a-b",)}, "problem.fail_links: 'a-b' is no link, write tail->head or tail<->head"),
        ({"fail_nodes": ("z",)}, "problem.fail_nodes: 'z' matches no node; valid: a, b, c"),
        ({"fail_groups": ("x",)}, "problem.fail_groups: needs problem.risk_groups, the table of groups"),
        (
            {"fail_random_groups": 1},
            "problem.fail_random_groups: needs problem.risk_groups, the table of groups",
        ),
        (
            {"capacity_factors": {"a->b": 0.0}},
            "problem.capacity_factors: 'a->b' is 0.0, must be greater than 0",
        ),
        ({"fail_random_links": 9}, "problem.fail_random_links is 9, but there are 3 links left to fail"),
        (
            {"fail_random_nodes": 1},
            (
                "problem.fail_random_nodes is 1, but there are 0 nodes where no demand starts or ends "
                "left to fail"
            ),
        ),
        (
            {"fail_nodes": ("c",), "lost_demands": "error"},
            (
                "problem: failures leave demand c->b without a path; "
                "lost_demands = 'shed' lists such demands in the plan"
            ),
        ),
        (
            {"fail_links": ("*->b",), "lost_demands": "drop"},
            "problem: failures leave no demand with a path",
        ),
    ],
)
def test_each_error_is_one_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        adjust(RING, **parameters)
    assert str(caught.value) == message


def test_errors_of_the_risk_table_name_its_rows(tmp_path: Path) -> None:
    table = tmp_path / "risks.csv"
    table.write_text("group,member\nduct,a->b\nduct,a->x\nhall,q\n")
    with pytest.raises(InputError) as caught:
        adjust(RING, fail_groups=("duct", "hal"), risk_groups=table)
    assert str(caught.value).splitlines() == [
        "risks.csv row 3: 'a->x' matches no link; did you mean 'a->c'?",
        "risks.csv row 4: 'q' matches no node; valid: a, b, c",
        "problem.fail_groups: no such group 'hal'; did you mean 'hall'?",
    ]


def test_failures_apply_to_any_source(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'system = "traffic"\n[problem]\nsource = "generate"\npreset = "fat_tree"\nscale = 0.5\n'
        'fail_links = ["aggregation-0-0<->core-0-0"]\ncapacity_factors = {"edge-0-0->*" = 0.5}\n'
        "[designs.localflow]\n"
    )
    result = planner("solve", tmp_path / "s.toml", "--json")
    assert result.code == 0, result.err
    assert '"links": 94' in result.out


def test_adjust_accepts_every_parameter() -> None:
    adjusted = SYSTEM.problem.adjust(RING, scale=2.0, fail_links=("a->c",), capacity_factors={"c->a": 0.5})
    assert adjusted.rate_mbps.tolist() == [2.0, 2.0]
    assert "a->c" not in labels(adjusted)
    assert 0.5 in adjusted.capacity_mbps
