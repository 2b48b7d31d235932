"""Frank-Wolfe loads and bounds; trees from dives, ruin and recreate, ejection chains and restarts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.search.deadline import NEVER, Deadline
from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import optimum
from planner_models.livevideo.designs.decomposition.decomposition import Restart
from planner_models.livevideo.designs.decomposition.diving import SLOW, Dive
from planner_models.livevideo.designs.decomposition.ejection_chains import LagrangianSolution, occupy_all
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.layered_problem import CapacityRows, build_layers
from planner_models.livevideo.designs.decomposition.pricing import Effort, Pricer, used_links
from planner_models.livevideo.designs.decomposition.ruin_recreate import FeasibleTrees
from planner_models.livevideo.designs.tree.local_network import PerLayer
from planner_models.livevideo.problem import generators
from tests.models.livevideo.networks import problem, problems

FINE = Effort(30, 65)


def compute_value(feasible: FeasibleTrees) -> float:
    """Return the value of all trees, added up anew."""
    residual = PerLayer(*(share.copy() for share in feasible.state.residual))
    value: float = occupy_all(feasible.state._replace(residual=residual))
    return value


def solve_at_prices(relaxation: FrankWolfe) -> LagrangianSolution:
    """Return the best trees at the prices of the last pass."""
    prices = relaxation.rows.link_prices(relaxation.price)
    trees = relaxation.trees
    result = relaxation.pricer.price_all(prices, trees.dual.copy(), FINE, trees.paths)
    return LagrangianSolution(prices, result.paths, result.value)


def run_passes(item: LiveVideo, passes: int) -> tuple[FrankWolfe, FeasibleTrees]:
    """Return the relaxation after some passes, and feasible trees of the same problem, empty."""
    layered = build_layers(item)
    pricer = Pricer(layered, 1)
    relaxation = FrankWolfe(layered, CapacityRows(layered), pricer, 0)
    for _ in range(passes):
        relaxation.run_pass()
    return relaxation, FeasibleTrees(layered, pricer, 0)


def crowded(seed: int) -> LiveVideo:
    """Return a problem where the links from the sources can carry about half of the demand."""
    return generators.heavy_tail(
        videos=80, requests_per_video=4.0, source_gbps=0.25, sources=2, reflectors=3, groups=120, edges=30,
        reflectors_per_edge=2, seed=seed,
    )  # fmt: skip


@given(problems(rules=True), st.integers(1, 5))
@settings(max_examples=15)
def test_shares_are_fractions_and_loads_are_their_sums(one: LiveVideo, passes: int) -> None:
    relaxation, _ = run_passes(one, passes)
    rows, layered, combinations = relaxation.rows, relaxation.layered, relaxation.combinations
    object_class = layered.objects.object_class
    assert combinations.share.min(initial=0.0) >= -1e-12
    assert combinations.share.max(initial=0.0) <= 1 + 1e-12
    item = np.repeat(np.arange(len(object_class)), np.diff(combinations.first))
    load = [
        float(
            (combinations.share * rows.usage[object_class[item], m])[combinations.link == rows.link[m]].sum()
        )
        for m in range(len(rows.limit))
    ]
    assert combinations.row_load == pytest.approx(np.array(load), abs=1e-9)


@given(problems(), st.integers(0, 100))
@settings(max_examples=15)
def test_any_prices_bound_the_optimum(one: LiveVideo, seed: int) -> None:
    best = optimum.distribute(one).proof.objective
    layered = build_layers(one)
    rows, pricer = CapacityRows(layered), Pricer(layered, 1)
    price = np.random.default_rng(seed).exponential(0.3, len(rows.limit))
    dual = np.full(len(layered.request), -1.0)
    trees = pricer.price_all(rows.link_prices(price), dual, Effort(20, 33))
    capacity_value = float(price @ rows.limit)
    assert best is not None
    assert (trees.value <= trees.bound + 1e-9).all()
    assert best <= float(trees.bound.sum()) + capacity_value + 1e-9


def test_prices_converge() -> None:
    relaxation, _ = run_passes(crowded(1), 4)
    layered, rows = relaxation.layered, relaxation.rows

    def bound(price: np.ndarray) -> float:
        dual = np.full(len(layered.request), -1.0)
        trees = relaxation.pricer.price_all(rows.link_prices(price), dual, Effort(60, 129))
        return float(trees.bound.sum() + price @ rows.limit)

    early = bound(relaxation.price)
    for _ in range(30):
        relaxation.run_pass(Effort(20, 17))
    late = bound(relaxation.price)
    assert late <= early < bound(np.zeros(len(rows.limit)))
    # the combinations have nearly the value of the bound, and nearly satisfy the limits
    assert relaxation.combinations.value.sum() == pytest.approx(late, rel=0.03)
    assert (relaxation.combinations.row_load <= 1.25 * rows.limit).all()


@pytest.mark.parametrize("deadline", [NEVER, Deadline(0.0, 0.0)])
def test_a_dive_finds_feasible_trees_and_does_not_change_the_relaxation(deadline: Deadline) -> None:
    item = crowded(2)
    relaxation, feasible = run_passes(item, 8)
    before = relaxation.combinations.copy()
    dive = Dive(relaxation.copy(relaxation.pricer, 1))
    while dive.remaining:
        dive.run_round(deadline=deadline)
    assert (relaxation.combinations.share == before.share).all()
    assert (relaxation.combinations.row_load == before.row_load).all()
    feasible.adopt(dive.paths)
    plan = feasible.layered.to_plan(feasible.state.paths)
    assert not len(check(item, plan))
    assert measure(item, plan, None)["service_minus_cost"] == pytest.approx(feasible.value)
    assert feasible.value > 0


def test_local_search_stays_feasible_and_keeps_its_value_up_to_date() -> None:
    item = crowded(3)
    relaxation, feasible = run_passes(item, 8)
    solution = solve_at_prices(relaxation)
    trees = relaxation.trees
    feasible.rebuild(trees.paths, solution.prices, trees.dual, trees.value)
    start = feasible.value
    feasible.improve(solution, 9_000, 0.02)
    assert feasible.value == pytest.approx(compute_value(feasible))
    feasible.return_to_best()
    assert feasible.value >= start
    for paths in (feasible.state.paths, feasible.best_paths):
        plan = feasible.layered.to_plan(paths)
        assert not len(check(item, plan))
    assert measure(item, plan, None)["service_minus_cost"] == pytest.approx(feasible.best_value)


def test_reduced_costs_are_zero_for_the_best_trees_and_their_value_for_none() -> None:
    relaxation, _ = run_passes(crowded(4), 6)
    solution = solve_at_prices(relaxation)
    assert solution.reduced_costs(relaxation.layered, solution.paths) == pytest.approx(0.0, abs=1e-9)
    nothing = np.full_like(solution.paths, -1)
    assert solution.reduced_costs(relaxation.layered, nothing) == pytest.approx(solution.value)


def test_ejection_chains_stay_feasible_and_never_lose_value() -> None:
    item = crowded(5)
    relaxation, feasible = run_passes(item, 8)
    solution = solve_at_prices(relaxation)
    trees = relaxation.trees
    feasible.rebuild(trees.paths, solution.prices, trees.dual, trees.value)
    for factor in (1.0, 0.6):
        before = feasible.value
        gained = feasible.eject(solution, 600, factor)
        feasible.value += gained
        assert gained >= 0
        assert feasible.value == pytest.approx(before + gained)
        assert feasible.value == pytest.approx(compute_value(feasible))
        assert not len(check(item, feasible.layered.to_plan(feasible.state.paths)))


def test_an_object_with_another_path_is_ejected() -> None:
    """v0 can only come over c0, where v1 is; v1 can as well come over c1, at more cost."""
    item = problem(
        [("a", "b0", 9.0, 0.0), ("a", "b1", 9.0, 0.0), ("b0", "c0", 1.0, 0.0), ("b1", "c1", 1.0, 1.0),
         ("c0", "d0", 9.0, 0.0), ("c0", "d1", 9.0, 0.0), ("c1", "d1", 9.0, 0.0)],
        [("v0", 1_000.0, 1.0), ("v1", 1_000.0, 1.0)],
        [("d0", "v0", 1_000.0, 1.0), ("d1", "v1", 1_000.0, 1.0)],
        tiers={"a": "source", "b": "reflector", "c": "edge", "d": "group"},
    )  # fmt: skip
    layered = build_layers(item)
    rows, pricer = CapacityRows(layered), Pricer(layered, 1)
    prices = rows.link_prices(np.zeros(len(rows.limit)))
    trees = pricer.price_all(prices, np.full(2, -1.0), FINE)
    solution = LagrangianSolution(prices, trees.paths, trees.value)
    feasible = FeasibleTrees(layered, pricer, 0)
    feasible.adopt(np.where(np.arange(2)[:, None] == 1, trees.paths, -1))
    assert feasible.value == pytest.approx(1.0)
    assert feasible.ruin_recreate(prices, 0, 4, 1.0, 0.0) == 0.0
    feasible.value += feasible.eject(solution, 20, 1.0)
    assert feasible.value == pytest.approx(compute_value(feasible))
    assert feasible.value == pytest.approx(2.0 - 1e-4)
    assert not len(check(item, layered.to_plan(feasible.state.paths)))


def test_a_bound_holds_when_there_was_no_time_for_it() -> None:
    relaxation, _ = run_passes(crowded(6), 4)
    prices = relaxation.rows.link_prices(relaxation.price)
    start, dual = relaxation.trees.paths.copy(), relaxation.trees.dual
    late = relaxation.pricer.price_all(prices, dual.copy(), FINE, start, deadline=Deadline(0.0, 0.0))
    best = relaxation.pricer.price_all(prices, dual.copy(), FINE, start)
    assert (late.paths == start).all()
    assert (late.value == 0).all()
    assert (late.bound >= best.value - 1e-9).all()
    assert late.bound.sum() > best.bound.sum()


def test_a_dive_estimates_the_value_of_its_trees() -> None:
    entry = crowded(4)
    relaxation, feasible = run_passes(entry, 8)
    dive = Dive(relaxation.copy(relaxation.pricer, 1))
    estimates = []
    while dive.remaining:
        dive.run_round()
        estimates.append(dive.value_estimate)
    feasible.adopt(dive.paths)
    assert dive.fixed_value == pytest.approx(feasible.value)
    assert estimates[-1] == pytest.approx(feasible.value, rel=0.02)
    assert estimates[0] >= feasible.value
    item, link = used_links(feasible.layered, dive.paths)
    rows, object_class = relaxation.rows, feasible.layered.objects.object_class
    for m in range(len(rows.limit)):
        users = item[link == rows.link[m]]
        assert dive.fixed_load[m] == pytest.approx(rows.usage[object_class[users], m].sum())


def test_a_restart_that_cannot_beat_the_incumbent_is_given_up() -> None:
    relaxation, _ = run_passes(crowded(5), 8)
    solution = solve_at_prices(relaxation)
    hopeless = Restart(relaxation, relaxation.pricer, 1, solution, SLOW)
    hopeless.run(10**9, 1e9, NEVER)
    assert hopeless.is_over
    assert hopeless.dive is not None
    good = Restart(relaxation, relaxation.pricer, 1, solution, SLOW)
    while not good.is_over:
        good.run(1, 0.0, NEVER)
    assert good.dive is None
    assert good.feasible.best_value > 0
    layered = good.feasible.layered
    assert not len(check(layered.problem, layered.to_plan(good.feasible.best_paths)))
