"""Lists of nodes as operators write them."""

from __future__ import annotations

import time

import pytest

from planner_models.networks.node_lists import parse_nodes, parse_numbers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A > B > C", ["A", "B", "C"]),
        ("A>B->C", ["A", "B", "C"]),
        ("New York → Washington DC", ["New York", "Washington DC"]),
        ('["A", "B > x"]', ["A", "B > x"]),
        ("[1, 2]", ["1", "2"]),
        ("[lab] > B", ["[lab]", "B"]),
        ("A > ", ["A", ""]),
        (" A  >\tB C ", ["A", "B C"]),
    ],
)
def test_nodes_are_read_as_written(text: str, names: list[str]) -> None:
    assert parse_nodes(text) == names


def test_many_spaces_within_a_name_take_linear_time() -> None:
    name, begin = "A" + " " * 300_000 + "B", time.process_time()
    assert parse_nodes(f"{name} -> C") == [name, "C"]
    assert time.process_time() - begin < 3


@pytest.mark.parametrize(("text", "numbers"), [("[1, 2]", [1, 2]), ("1,2", [1, 2]), ("2", [2]), ("x", None)])
def test_numbers_are_read_as_written(text: str, numbers: list[int] | None) -> None:
    assert parse_numbers(text) == numbers
