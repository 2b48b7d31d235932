"""Mixes of trees: loads follow shares, prices bound every plan, dives leave trees that fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo, check, generate, measure, optimum
from planner_models.livevideo import layers as arrays
from planner_models.livevideo.attempt import Attempt
from planner_models.livevideo.dive import SLOW, Dive
from planner_models.livevideo.eviction import Guide
from planner_models.livevideo.limits import Limits
from planner_models.livevideo.mixing import Mixing
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer, uses
from tests.livevideo.networks import problem, problems


def guided(mixing: Mixing) -> Guide:
    """The best trees at the prices that mixes have settled at."""
    prices = mixing.limits.by_class(mixing.price)
    trees, worth, _ = mixing.pricer.solve(prices, mixing.dual.copy(), 30, 65, mixing.choice)
    return Guide(prices=prices, trees=trees, worth=worth)


def mixed(one: LiveVideo, passes: int) -> tuple[Mixing, Packing]:
    """A mixing after some passes, and an empty packing of the same problem."""
    layers = arrays.of(one)
    pricer = Pricer(layers, 1)
    mixing = Mixing(layers, Limits(layers), pricer, 0)
    for _ in range(passes):
        mixing.turn()
    return mixing, Packing(layers, pricer, 0)


def crowded(seed: int) -> LiveVideo:
    """A problem whose sources can carry about half of what is asked for."""
    return generate.heavy_tail(
        videos=80, requests_per_video=4.0, source_gbps=0.25, sources=2, reflectors=3, groups=120, edges=30,
        reflectors_per_edge=2, seed=seed,
    )  # fmt: skip


@given(problems(rules=True), st.integers(1, 5))
@settings(max_examples=15)
def test_shares_are_mixes_of_trees_and_loads_are_what_they_add_up_to(one: LiveVideo, passes: int) -> None:
    mixing, _ = mixed(one, passes)
    limits, layers = mixing.limits, mixing.layers
    assert mixing.share.min(initial=0.0) >= -1e-12
    assert mixing.share.max(initial=0.0) <= 1 + 1e-12
    item = np.repeat(np.arange(len(layers.klass)), np.diff(mixing.start))
    load = [
        float((mixing.share * limits.takes[layers.klass[item], m])[mixing.link == limits.link[m]].sum())
        for m in range(len(limits.limit))
    ]
    assert mixing.load == pytest.approx(np.array(load), abs=1e-9)


@given(problems(), st.integers(0, 100))
@settings(max_examples=15)
def test_any_prices_bound_the_optimum(one: LiveVideo, seed: int) -> None:
    best = optimum.distribute(one).proof.objective
    layers = arrays.of(one)
    limits, pricer = Limits(layers), Pricer(layers, 1)
    price = np.random.default_rng(seed).exponential(0.3, len(limits.limit))
    dual = np.full(len(layers.group), -1.0)
    _, found, bound = pricer.solve(limits.by_class(price), dual, 20, 33)
    room = float(price @ limits.limit)
    assert best is not None
    assert (found <= bound + 1e-9).all()
    assert best <= float(bound.sum()) + room + 1e-9


def test_prices_settle() -> None:
    mixing, _ = mixed(crowded(1), 4)
    layers, limits = mixing.layers, mixing.limits

    def bound(price: np.ndarray) -> float:
        dual = np.full(len(layers.group), -1.0)
        found = mixing.pricer.solve(limits.by_class(price), dual, 60, 129)
        return float(found[2].sum() + price @ limits.limit)

    early = bound(mixing.price)
    for _ in range(30):
        mixing.turn((20, 17))
    late = bound(mixing.price)
    assert late <= early < bound(np.zeros(len(limits.limit)))
    # the mix is worth nearly the bound, and nearly keeps the limits
    assert mixing.worth.sum() == pytest.approx(late, rel=0.03)
    assert (mixing.load <= 1.25 * limits.limit).all()


@pytest.mark.parametrize("until", [np.inf, 0.0])
def test_a_dive_leaves_trees_that_fit_and_another_mixing_as_it_was(until: float) -> None:
    one = crowded(2)
    mixing, packing = mixed(one, 8)
    share, load = mixing.share.copy(), mixing.load.copy()
    dive = Dive(mixing.copy(mixing.pricer, 1))
    while dive.left:
        dive.round(until=until)
    assert (mixing.share == share).all()
    assert (mixing.load == load).all()
    packing.adopt(dive.chosen)
    plan = packing.layers.plan(packing.choice)
    assert not len(check(one, plan))
    assert measure(one, plan, None)["service_minus_cost"] == pytest.approx(packing.total)
    assert packing.total > 0


def test_ruin_and_recreate_keeps_limits_and_its_own_account() -> None:
    one = crowded(3)
    mixing, packing = mixed(one, 8)
    guide = guided(mixing)
    packing.rebuild(mixing.choice, guide.prices, mixing.dual, mixing.best)
    start = packing.total
    packing.work(guide, 9_000, 0.02)
    assert packing.total == pytest.approx(packing.objective())
    packing.back()
    assert packing.total >= start
    for choice in (packing.choice, packing.best_choice):
        plan = packing.layers.plan(choice)
        assert not len(check(one, plan))
    assert measure(one, plan, None)["service_minus_cost"] == pytest.approx(packing.best_total)


def test_losses_are_what_trees_are_worth_less_at_the_prices() -> None:
    mixing, packing = mixed(crowded(4), 6)
    guide = guided(mixing)
    assert guide.losses(mixing.layers, guide.trees) == pytest.approx(0.0, abs=1e-9)
    nothing = np.full_like(packing.choice, -1)
    assert guide.losses(mixing.layers, nothing) == pytest.approx(guide.worth)


def test_eviction_keeps_limits_and_its_own_account_and_never_loses() -> None:
    one = crowded(5)
    mixing, packing = mixed(one, 8)
    guide = guided(mixing)
    packing.rebuild(mixing.choice, guide.prices, mixing.dual, mixing.best)
    for factor in (1.0, 0.6):
        before = packing.total
        gained = packing.evict(guide, 600, factor)
        packing.total += gained
        assert gained >= 0
        assert packing.total == pytest.approx(before + gained)
        assert packing.total == pytest.approx(packing.objective())
        assert not len(check(one, packing.layers.plan(packing.choice)))


def test_who_has_another_way_makes_room() -> None:
    """v0 can only come over c0, where v1 is; v1 can as well come over c1, at more cost."""
    one = problem(
        [("a", "b0", 9.0, 0.0), ("a", "b1", 9.0, 0.0), ("b0", "c0", 1.0, 0.0), ("b1", "c1", 1.0, 1.0),
         ("c0", "d0", 9.0, 0.0), ("c0", "d1", 9.0, 0.0), ("c1", "d1", 9.0, 0.0)],
        [("v0", 1_000.0, 1.0), ("v1", 1_000.0, 1.0)],
        [("d0", "v0", 1_000.0, 1.0), ("d1", "v1", 1_000.0, 1.0)],
        tiers={"a": "source", "b": "reflector", "c": "edge", "d": "group"},
    )  # fmt: skip
    layers = arrays.of(one)
    limits, pricer = Limits(layers), Pricer(layers, 1)
    prices = limits.by_class(np.zeros(len(limits.limit)))
    trees, worth, _ = pricer.solve(prices, np.full(2, -1.0), 30, 65)
    guide = Guide(prices=prices, trees=trees, worth=worth)
    packing = Packing(layers, pricer, 0)
    packing.adopt(np.where(np.arange(2)[:, None] == 1, trees, -1))
    assert packing.total == pytest.approx(1.0)
    assert packing.shake(prices, 0, 4, 1.0, 0.0) == 0.0
    packing.total += packing.evict(guide, 20, 1.0)
    assert packing.total == pytest.approx(packing.objective())
    assert packing.total == pytest.approx(2.0 - 1e-4)
    assert not len(check(one, layers.plan(packing.choice)))


def test_a_bound_holds_when_there_was_no_time_for_it() -> None:
    mixing, _ = mixed(crowded(6), 4)
    prices = mixing.limits.by_class(mixing.price)
    start = mixing.choice.copy()
    trees, worth, late = mixing.pricer.solve(prices, mixing.dual.copy(), 30, 65, start, until=0.0)
    _, best, bound = mixing.pricer.solve(prices, mixing.dual.copy(), 30, 65, start)
    assert (trees == start).all()
    assert (worth == 0).all()
    assert (late >= best - 1e-9).all()
    assert late.sum() > bound.sum()


def test_a_dive_promises_what_its_trees_are_worth_in_the_end() -> None:
    one = crowded(4)
    mixing, packing = mixed(one, 8)
    dive = Dive(mixing.copy(mixing.pricer, 1))
    promises = []
    while dive.left:
        dive.round()
        promises.append(dive.promise)
    packing.adopt(dive.chosen)
    assert dive.worth == pytest.approx(packing.total)
    assert promises[-1] == pytest.approx(packing.total, rel=0.02)
    assert promises[0] >= packing.total
    item, link = uses(packing.layers, dive.chosen)
    limits = mixing.limits
    for m in range(len(limits.limit)):
        mine = item[link == limits.link[m]]
        assert dive.taken[m] == pytest.approx(limits.takes[packing.layers.klass[mine], m].sum())


def test_an_attempt_that_promises_too_little_is_given_up() -> None:
    mixing, _ = mixed(crowded(5), 8)
    guide = guided(mixing)
    hopeless = Attempt(mixing, mixing.pricer, 1, guide, SLOW)
    hopeless.work(10**9, 1e9, np.inf)
    assert hopeless.over
    assert hopeless.dive is not None
    good = Attempt(mixing, mixing.pricer, 1, guide, SLOW)
    while not good.over:
        good.work(1, 0.0, np.inf)
    assert good.dive is None
    assert good.packing.best_total > 0
    layers = good.packing.layers
    assert not len(check(layers.problem, layers.plan(good.packing.best_choice)))
