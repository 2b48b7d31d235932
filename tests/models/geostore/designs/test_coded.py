"""Pieces of codes: the cheapest plan against a brute force with Coded Atomic Storage's rules of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from planner.errors import PlanRejected
from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.geostore import Geostore, check, measure
from planner_models.geostore.designs import optimum
from planner_models.geostore.designs.assembly import assemble
from planner_models.geostore.designs.coded import list_codes, place_coded
from planner_models.geostore.designs.component import costs_of
from planner_models.geostore.plan.evaluation import evaluate
from tests.models.geostore.stores import store, with_groups

MONTH_S = 30 * 86_400


def coded(
    seed: int, *, regions: int, users: int = 2, limit_ms: float = 400.0, size: float = 20_000.0
) -> Geostore:
    """Return one coded group of large objects, with a limit of writes above that of reads."""
    problem = store(seed, regions=regions, groups=1, users=users, limit_ms=limit_ms)
    columns = {"class": "coded", "object_bytes": size, "write_ms": 1.6 * limit_ms}
    return with_groups(problem, **columns)


def cost_of(problem: Geostore, sites: tuple[int, ...], numbers: tuple[int, int, int, int, int]) -> float:
    """Return the bill of pieces in some regions, from the tables; inf where a page is late.

    numbers  k, and the four quorums: of time stamps, pre-written pieces, finalizations, and pieces read
    """
    k, ask, prewrite, finalize, get = numbers
    group, rows = problem.groups.iloc[0], problem.access
    names = problem.regions["region"].tolist()
    table = {(row.source, row.target): (row.rtt_ms, row.usd_per_gb) for row in problem.links.itertuples()}
    table |= {(name, name): (problem.local_rtt_ms, 0.0) for name in names}
    chosen = [names[site] for site in sites]
    prices = problem.regions.set_index("region")
    gb = float(group["object_bytes"]) / 1e9 / k
    writes = rows["writes_per_s"].sum() * MONTH_S
    usd = sum(
        float(group["size_gb"]) / k * prices["storage_usd_gb_month"][name] + writes * prices["put_usd"][name]
        for name in chosen
    )
    for row in rows.itertuples():
        times = sorted(table[row.region, name][0] for name in chosen)
        if times[ask - 1] + times[prewrite - 1] + times[finalize - 1] > group["write_ms"]:
            return np.inf
        near = [n for n in chosen if times[ask - 1] + table[row.region, n][0] <= group["read_ms"]]
        piece = sorted(prices["get_usd"][n] + gb * table[n, row.region][1] for n in near)
        if len(piece) < get:
            return np.inf
        usd += row.reads_per_s * MONTH_S * sum(piece[:get])
        usd += row.writes_per_s * MONTH_S * gb * sum(table[row.region, name][1] for name in chosen)
    return float(usd)


def brute_force(problem: Geostore, failures: int = 1) -> float:
    """Return the least bill over all sites, k and quorums that survive failures; inf for none."""
    best = np.inf
    for n in range(1, len(problem.regions) + 1):
        sizes = range(1, n - failures + 1)
        for k, ask, prewrite, finalize, get in product(sizes, repeat=5):
            if ask + finalize <= n or ask + get <= n or prewrite + get < n + k or get < k:
                continue
            if (ask - 1, prewrite, finalize, get) != (n - finalize, n + k - get, finalize, get):
                continue  # quorums larger than they must be never cost less
            for sites in combinations(range(len(problem.regions)), n):
                best = min(best, cost_of(problem, sites, (k, ask, prewrite, finalize, get)))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_cheapest_code_equals_the_brute_force(seed: int) -> None:
    problem = coded(seed, regions=5, limit_ms=(150.0, 250.0, 400.0)[seed % 3])
    best = brute_force(problem)
    costs = costs_of(problem, causal=False)
    choices = place_coded(problem, 0, costs, 1.0, gap=1e-9, deadline=NEVER)
    assert bool(choices) == np.isfinite(best)
    for choice in choices:
        plan = assemble(problem, [choice.plan])
        assert not len(check(problem, plan))
        assert measure(problem, plan, None)["usd_per_month"] == pytest.approx(best, rel=1e-9)
        assert choice.cost == pytest.approx(best, rel=1e-9)
        assert choice.bound == pytest.approx(best, rel=1e-6)
    decision = optimum.place(problem, options=Options(gap=1e-9))
    assert decision.proof.bound is None or decision.proof.bound <= best * (1 + 1e-9)


def test_large_objects_are_cut_and_small_ones_are_not() -> None:
    for size, is_cut in ((1.0, False), (100_000.0, True)):
        problem = coded(1, regions=6, limit_ms=900.0, size=size)
        problem = with_groups(problem, size_gb=1e-3 if size == 1.0 else 1e6)
        plan = optimum.place(problem, options=Options(gap=1e-9)).plan
        assert plan is not None
        assert ("k" in plan.classes and plan.classes["k"].iloc[0] > 1) == is_cut
        assert (set(plan.replicas["role"]) == {"piece"}) == is_cut
        assert evaluate(problem, plan).survived.all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": 1.0}, "query \\+ r"),
        ({"query": 9.0}, "must be from 1 to n"),
        ({"k": 99.0}, "must be k = 99 and n \\+ k"),
        ({"class": "quorum"}, "must have 1 and 0|must be above"),
    ],
)
def test_quorums_that_miss_a_write_are_rejected(changes: dict[str, object], message: str) -> None:
    problem = with_groups(coded(1, regions=6, limit_ms=900.0, size=100_000.0), size_gb=1e6)
    plan = optimum.place(problem).plan
    assert plan is not None
    with pytest.raises(PlanRejected, match=message):
        evaluate(problem, replace(plan, classes=plan.classes.assign(**changes)))


def test_codes_survive_their_failures() -> None:
    for failures in (0, 1, 2):
        for code in list_codes(failures):
            assert max(code.query, code.r, code.w, code.end) <= code.n - failures
            assert min(code.query + code.end, code.query + code.r) > code.n
            assert code.r + code.w >= code.n + code.k
