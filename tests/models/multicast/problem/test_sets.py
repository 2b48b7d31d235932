"""Problems from plain sets of members."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.errors import InputError
from planner_models.multicast import from_sets


def test_members_by_name_take_the_ports_of_the_smallest_fat_tree() -> None:
    problem = from_sets({"news": ["a", "b", "c"], "chat": ["a", "d"]}, rates_mbps={"news": 5.0, "chat": 1.0})
    assert problem.size() == {"hosts": 4, "groups": 2, "members": 5}
    assert problem.fabric["k"].tolist() == [4]
    assert problem.hosts[["host", "pod", "edge"]].to_numpy().tolist() == [
        ["a", 0, 0],
        ["b", 0, 0],
        ["c", 0, 1],
        ["d", 0, 1],
    ]
    assert planner.solve(problem).metrics["host_traffic_mbps"] is not None


def test_members_by_number_are_ports() -> None:
    problem = from_sets([{0, 5, 9}, {1, 17}])
    assert problem.fabric["k"].tolist() == [6], "port 17 is beyond the 16 of k = 4"
    assert set(problem.members["host"]) == {"h0", "h5", "h9", "h1", "h17"}


@pytest.mark.parametrize(
    ("sets", "given", "message"),
    [
        ([[1, "a"]], {}, "some members are names and some numbers"),
        ([[0, 99]], {"k": 4}, "100 hosts need more than the 16 ports of a fat tree with k 4"),
        ([["a", "b"]], {"rates_mbps": [1.0, 2.0]}, "has 2 rates, must have one for each of 1 groups"),
        ({"x": ["a", "b"]}, {"rates_mbps": {"y": 1.0}}, "group x has no rate"),
        ([], {}, "groups: holds no rows"),
    ],
)
def test_faults_are_one_line(sets: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        from_sets(sets, **given)
    assert message in str(raised.value)
