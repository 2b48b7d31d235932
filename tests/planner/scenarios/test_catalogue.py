"""Designs that installed packages add to systems, and those that this process adds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from planner import entry_points
from planner.errors import InputError
from planner.scenarios import catalogue
from planner.scenarios.catalogue import add_design, find_system
from planner.scenarios.installed_systems import DESIGN_GROUP, load_system

HERE = "tests.planner.scenarios.test_catalogue"


def mine(problem: Any) -> Any:
    """Decide as equal-cost multipath does."""
    return load_system("traffic").design("ecmp").run(problem)


DESIGN = mine
NUMBER = 3


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    find_system.cache_clear()
    yield
    catalogue._added.clear()
    find_system.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    original = entry_points.find_entry_points

    def find(group: str) -> dict[str, EntryPoint]:
        if group == DESIGN_GROUP:
            return {name: EntryPoint(name=name, value=value, group=group)}
        return original(group)

    monkeypatch.setattr(catalogue, "find_entry_points", find)


def test_a_package_adds_a_design_to_its_system_only(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "traffic.mine", f"{HERE}:DESIGN")
    system = find_system("traffic")
    assert system.designs[:-1] == load_system("traffic").designs
    assert system.design("mine").about == "Decide as equal-cost multipath does."
    assert find_system("circuits") is load_system("circuits")


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("traffic.mine", "no_such:DESIGN", "traffic.mine: cannot be loaded from no_such:DESIGN"),
        ("traffic.mine", f"{HERE}:NUMBER", f"{HERE}:NUMBER: designs: mine is 3, must be a Design or"),
        ("traffic.ecmp", f"{HERE}:DESIGN", f"{HERE}:DESIGN: designs: ecmp: traffic has a design of"),
    ],
)
def test_a_package_without_a_design_is_named_in_one_line(
    name: str, value: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, name, value)
    with pytest.raises(InputError) as caught:
        find_system("traffic")
    assert str(caught.value).startswith(line)


def test_this_process_adds_a_design() -> None:
    add_design("traffic", mine)
    assert find_system("traffic").designs[-1].name == "mine"
    with pytest.raises(InputError, match="traffic has a design of this name"):
        add_design("traffic", mine)
    with pytest.raises(InputError, match="no such system; did you mean 'traffic'"):
        add_design("trafic", mine)
