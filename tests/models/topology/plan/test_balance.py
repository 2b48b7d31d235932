"""Routing by coordinate descent, beside a linear program of other code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.topology import Fabric
from planner_models.topology.designs.fixed_rules import match_demand
from planner_models.topology.plan.balance import balance, loads_of, scale_of
from planner_models.topology.problem import generators
from tests.models.topology.fabrics import fabrics, scale_by_oracle


@settings(max_examples=12, deadline=None)
@given(problem=fabrics())
def test_its_scale_is_near_the_best_and_never_above(problem: Fabric) -> None:
    links = generators.mesh(problem.ports)
    best = scale_by_oracle(problem, links)
    routing = balance(problem.demand_mbps, links * problem.link_mbps)
    assert routing.scale <= best * (1 + 1e-9)
    assert routing.scale >= 0.98 * best
    if best > 0:
        np.testing.assert_allclose(routing.shares.sum(axis=2)[problem.demand_mbps > 0], 1.0, rtol=1e-9)


def test_loads_follow_the_shares() -> None:
    """Half of 8 from a to b goes direct, half by c."""
    shares = np.zeros((3, 3, 3))
    shares[0, 1, 0] = shares[0, 1, 2] = 0.5
    load = loads_of(shares * 8)
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[0, 2] = expected[2, 1] = 4
    np.testing.assert_allclose(load, expected)
    assert scale_of(load, np.full((3, 3), 6.0)) == pytest.approx(1.5)


def test_the_search_stops_at_what_is_enough() -> None:
    problem = generators.gravity(blocks=12, load=0.5, seed=2)
    capacity = match_demand(problem) * problem.link_mbps
    assert balance(problem.demand_mbps, capacity, enough=1.0).scale >= 1.0
    assert balance(problem.demand_mbps, capacity).scale >= balance(
        problem.demand_mbps, capacity, enough=1.0
    ).scale * (1 - 1e-9)
