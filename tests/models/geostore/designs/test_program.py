"""The integer program of a component against the search by Lagrangian bounds."""

from __future__ import annotations

import pytest

from planner_models.geostore.designs.component import allowed_attachments, costs_of, joint, single
from planner_models.geostore.designs.placement import solve_component
from planner_models.geostore.designs.program import solve_program
from tests.models.geostore.stores import store, with_groups


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_have_the_same_optimum(seed: int) -> None:
    problem = store(seed, regions=6, groups=3, users=3, chain=3, limit_ms=200.0)
    costs, allowed = costs_of(problem, causal=True), allowed_attachments(problem)
    members = next(rows for rows in problem.components if len(rows) > 1)
    for component in (joint(problem, members, costs, allowed), single(problem, 0, costs, allowed)):
        searched, solved = solve_component(component, gap=1e-8), solve_program(component, gap=1e-8)
        assert solved.cost == pytest.approx(searched.cost, rel=1e-6)
        assert solved.bound <= searched.cost * (1 + 1e-9)


def test_copies_that_are_always_late_exclude_replicas() -> None:
    problem = with_groups(store(1, regions=5, groups=1, users=2, limit_ms=None), stale_ms=0.1)
    component = single(problem, 0, costs_of(problem, causal=True), allowed_attachments(problem))
    assert solve_program(component, gap=1e-6).opened is None
    assert solve_component(component, gap=1e-6).opened is None
