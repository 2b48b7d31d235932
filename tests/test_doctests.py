"""The examples in docstrings run."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from planner.scenarios.catalogue import system_names


@pytest.mark.parametrize("name", system_names())
def test_the_page_of_each_system(name: str) -> None:
    outcome = doctest.testmod(import_module(f"planner_models.{name}"))
    assert outcome.attempted > 0, "a system's page has an example"
    assert outcome.failed == 0
