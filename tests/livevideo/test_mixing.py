"""Mixes of trees: loads follow shares, prices bound every plan, dives leave trees that fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo, check, generate, measure, optimum
from planner_models.livevideo import layers as arrays
from planner_models.livevideo.dive import Dive
from planner_models.livevideo.limits import Limits
from planner_models.livevideo.mixing import Mixing
from planner_models.livevideo.packing import Packing
from planner_models.livevideo.pricing import Pricer
from tests.livevideo.networks import problems


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
        mixing.turn(steps=20, nodes=17)
    late = bound(mixing.price)
    assert late <= early < bound(np.zeros(len(limits.limit)))
    # the mix is worth nearly the bound, and nearly keeps the limits
    assert mixing.worth.sum() == pytest.approx(late, rel=0.03)
    assert (mixing.load <= 1.25 * limits.limit).all()


@pytest.mark.parametrize("hurry", [False, True])
def test_a_dive_leaves_trees_that_fit_and_the_mixing_as_it_was(hurry: bool) -> None:
    one = crowded(2)
    mixing, packing = mixed(one, 8)
    share, load = mixing.share.copy(), mixing.load.copy()
    dive = Dive(mixing, packing.free, packing.rooms_of_frozen(), large=False)
    while dive.left:
        dive.round(hurry=hurry)
    dive.close()
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
    prices = mixing.limits.by_class(mixing.price)
    packing.rebuild(mixing.choice, prices, mixing.dual, mixing.best)
    start = packing.total
    packing.work(prices, 3_000, 0.02)
    assert packing.total == pytest.approx(packing.objective())
    packing.back()
    assert packing.total >= start
    for choice in (packing.choice, packing.best_choice):
        plan = packing.layers.plan(choice)
        assert not len(check(one, plan))
    assert measure(one, plan, None)["service_minus_cost"] == pytest.approx(packing.best_total)
