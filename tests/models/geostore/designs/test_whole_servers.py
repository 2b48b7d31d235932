"""Bound with least servers: below the best of all placements, and above the bound by use where they bind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.geostore import Geostore
from planner_models.geostore.designs import optimum
from planner_models.geostore.designs.placer import Placer
from planner_models.geostore.designs.whole_servers import bound_with_least_servers
from planner_models.geostore.problem.eiger_workloads import tao_scaling
from tests.models.geostore.stores import cheapest, store


def with_least(problem: Geostore, least: float, kops: float) -> Geostore:
    """Return the problem with whole servers, at prices that differ by region."""
    prices = [100.0 + 30 * row for row in range(len(problem.regions))]
    regions = problem.regions.assign(server_usd_month=prices, server_kops=kops, least_servers=least)
    return replace(problem, regions=regions)


@pytest.mark.parametrize(("seed", "least", "kops"), [(0, 3.0, 10.0), (1, 1.0, 0.05), (2, 2.0, 0.2)])
def test_bound_is_below_the_brute_force(seed: int, least: float, kops: float) -> None:
    problem = with_least(store(seed, regions=3, groups=1, users=2), least, kops)
    placer = Placer(problem=problem, gap=1e-6, deadline=NEVER)
    placer.place_all()
    bound = bound_with_least_servers(placer)
    best = cheapest(problem)
    assert best is not None
    assert bound <= best * (1 + 1e-9)
    assert placer.bound <= best * (1 + 1e-9)
    proof = optimum.place(problem, options=Options(gap=1e-6)).proof
    assert proof.bound is not None
    assert max(bound, placer.bound) == pytest.approx(proof.bound)
    if kops == 10.0:  # few operations: the least servers bind
        assert bound > placer.bound * 1.01


def test_two_clusters_of_least_servers_are_proven() -> None:
    proof = optimum.place(tao_scaling(servers=4)).proof
    assert proof.status is Status.OPTIMAL


def test_servers_by_use_have_no_such_bound() -> None:
    problem = store(1)
    placer = Placer(problem=problem, gap=1e-3, deadline=NEVER)
    assert bound_with_least_servers(placer) == -float("inf")
