"""Random variants of problems: valid, different, and the same for a seed."""

from __future__ import annotations

import pytest

from planner.contract.tables import digest
from planner.scenarios.catalogue import find_system, system_names
from planner.testing.cases import tiny_problem
from planner.testing.variants import random_variant


@pytest.mark.parametrize("name", system_names())
def test_variants_differ_by_their_seed(name: str) -> None:
    system = find_system(name)
    problem = tiny_problem(system)
    first, again, other = (random_variant(system, problem, seed) for seed in (1, 1, 2))
    assert isinstance(first, system.problem.type)
    assert digest(first.to_tables()) == digest(again.to_tables())
    assert len({digest(one.to_tables()) for one in (problem, first, other)}) == 3
