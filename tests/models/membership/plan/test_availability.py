"""Availability up the tree against exhaustive enumeration of failures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.membership import Membership
from planner_models.membership.plan.availability import live_distribution
from planner_models.membership.problem.generators import regions, small
from tests.models.membership.failures import live_probabilities, placements
from tests.models.membership.problems import memberships


def distribution(problem: Membership, members: dict[str, int]) -> np.ndarray:
    rows = {problem.site_names.index(name): count for name, count in members.items()}
    return live_distribution(problem.tree, rows)[:, 0]


@given(memberships(), st.data())
@settings(max_examples=40)
def test_tree_equals_enumeration(problem: Membership, data: st.DataObject) -> None:
    options = list(placements(problem, 3))
    members = data.draw(st.sampled_from(options)) if options else {}
    enumerated = live_probabilities(problem, members)
    computed = distribution(problem, members)
    for live, probability in enumerate(computed):
        assert probability == pytest.approx(enumerated.get(live, 0.0), abs=1e-13, rel=1e-9)


def test_managers_and_members_fail_together_in_one_site() -> None:
    problem = small()
    leaf = problem.site_names.index("west a")
    states = live_distribution(problem.tree, {leaf: 1}, {leaf: 1})
    assert states[1, 0] == states[0, 1] == 0.0
    assert states.sum() == pytest.approx(1.0)


def test_hosts_fail_one_by_one() -> None:
    problem = regions(regions=1, zones=1, hosts=2)
    leaf = int(problem.leaves[0])
    states = live_distribution(problem.tree, {leaf: 2})[:, 0]
    above = np.prod(1 - problem.tree.down[list(problem.tree.paths[leaf])[1:]])
    up = 1 - problem.tree.down[leaf]
    assert states[1] == pytest.approx(above * 2 * up * (1 - up))
