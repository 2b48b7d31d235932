"""What a controller is told: late, with noise, in sum; and how plans made on it play out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.run import evaluate
from planner.scenario import Entry
from planner.system import Design
from planner_models.traffic import SYSTEM, Traffic, generate, sees
from planner_models.traffic.problem import totals
from tests.traffic.networks import both_ways, network, problems

ABILENE = generate.abilene()

LINE = network(
    both_ways([("a", "b", 10.0), ("b", "c", 10.0), ("c", "d", 10.0)]),
    [("a", "c", 1.0), ("a", "d", 2.0), ("b", "c", 3.0), ("b", "d", 6.0), ("a", "b", 5.0), ("d", "a", 4.0)],
    weight=[1.0, 5.0, 1.0, 1.0, 5.0, 1.0],
)


def sent_between(problem: Traffic, region: np.ndarray) -> np.ndarray:
    """Rates between regions."""
    places = region[problem.source] * len(region) + region[problem.target]
    return totals(places, problem.rate_mbps, len(region) ** 2)


# --- the truth ----------------------------------------------------------------------------


def test_who_is_told_the_truth_believes_the_very_problem() -> None:
    assert sees.told(ABILENE) is ABILENE
    assert sees.observed(ABILENE) is ABILENE
    assert sees.told(ABILENE, age_s=0.0, noise=0.0, grain=0, seed=9) is ABILENE
    assert sees.told(ABILENE, age_s=600.0, swing=0.0) is ABILENE, "demands that never move"


def test_regions_of_one_node_tell_every_demand() -> None:
    assert sees.told(ABILENE, grain=1) is ABILENE


# --- noise --------------------------------------------------------------------------------


def test_noise_is_the_same_for_who_measures_and_who_is_told() -> None:
    one, other = sees.observed(ABILENE, noise=0.3, seed=4), sees.told(ABILENE, noise=0.3, seed=4)
    np.testing.assert_array_equal(one.rate_mbps, other.rate_mbps)
    factors = np.log(one.rate_mbps / ABILENE.rate_mbps)
    assert factors.std() == pytest.approx(0.3, rel=0.2)
    assert abs(np.median(factors)) < 0.1
    assert not np.array_equal(one.rate_mbps, sees.observed(ABILENE, noise=0.3, seed=5).rate_mbps)


# --- age ----------------------------------------------------------------------------------


@pytest.mark.parametrize("age_s", [60.0, 3600.0, 1e9])
def test_then_and_now_differ_as_two_times_of_the_process(age_s: float) -> None:
    """Against the process itself, followed in small steps from equilibrium."""
    swing, memory_s = 0.5, 3600.0
    random = np.random.default_rng(7)
    then = random.normal(0.0, swing, 20_000)
    now, steps = then.copy(), 50
    keep = math.exp(-age_s / memory_s / steps)
    for _ in range(steps):
        now = keep * now + random.normal(0.0, swing * math.sqrt(1 - keep**2), len(now))
    told = [
        np.log(sees.told(ABILENE, age_s=age_s, seed=seed).rate_mbps / ABILENE.rate_mbps) for seed in range(40)
    ]
    assert np.std(told) == pytest.approx(np.std(now - then), rel=0.03)
    assert abs(np.mean(told)) < 0.03


def test_a_demand_that_forgets_slowly_is_known_better() -> None:
    def off(**given: float) -> float:
        return float(np.std(np.log(sees.told(ABILENE, **given).rate_mbps / ABILENE.rate_mbps)))

    assert off(age_s=60) < off(age_s=600) < off(age_s=6000)
    assert off(age_s=600, memory_s=86_400) < off(age_s=600) < off(age_s=600, swing=1.0)


def test_age_and_noise_draw_other_figures() -> None:
    aged = np.log(sees.told(ABILENE, age_s=1e9, swing=math.sqrt(0.5)).rate_mbps / ABILENE.rate_mbps)
    noisy = np.log(sees.told(ABILENE, noise=1.0).rate_mbps / ABILENE.rate_mbps)
    assert abs(np.corrcoef(aged, noisy)[0, 1]) < 0.3


@pytest.mark.parametrize(("swing", "memory_s"), [(0.5, 3600.0), (0.2, 900.0)])
def test_the_drift_of_a_series_is_found(swing: float, memory_s: float) -> None:
    """In a process of known drift, under a day's common rise and fall and demands of all sizes."""
    random, times, demands = np.random.default_rng(3), 4_000, 40
    keep = math.exp(-300.0 / memory_s)
    level = np.empty((times, demands))
    level[0] = random.normal(0.0, swing, demands)
    for step in range(1, times):
        level[step] = keep * level[step - 1] + random.normal(0.0, swing * math.sqrt(1 - keep**2), demands)
    day = np.sin(np.arange(times) * 2 * math.pi / 288)[:, None]
    rates = np.exp(level + day + random.normal(0.0, 2.0, demands))
    rates[5, 0] = 0.0
    found = sees.drift(rates, step_s=300.0)
    assert found == pytest.approx((swing, memory_s), rel=0.1)


def test_a_series_that_never_moves_forgets_nothing() -> None:
    assert sees.drift(np.full((5, 3), 2.0), step_s=60.0) == (0.0, math.inf)
    with pytest.raises(ValueError, match="wants three times"):
        sees.drift(np.ones((2, 3)), step_s=60.0)


# --- grain --------------------------------------------------------------------------------


def test_regions_are_of_nodes_that_are_close() -> None:
    region = sees.regions(LINE, 2)
    a, b, c, d = (region[LINE.node_places.get_loc(name)] for name in "abcd")
    assert a == b
    assert c == d
    assert a != c
    assert len(set(sees.regions(LINE, 4))) == 1


def test_rates_within_a_region_are_guessed_by_gravity() -> None:
    """By hand: {a, b} tell {c, d} that they send 12; a sends 8 in all and b 9, c gets 4 and d gets 8."""
    believed = sees.told(LINE, grain=2)
    rate = dict(zip(believed.demand_labels, believed.rate_mbps, strict=True))
    weight = {"a->c": 8 * 4, "a->d": 8 * 8, "b->c": 9 * 4, "b->d": 9 * 8}
    for pair, its in weight.items():
        assert rate[pair] == pytest.approx(12 * its / sum(weight.values()))
    assert rate["a->b"] == pytest.approx(5.0), "alone within its region"
    assert rate["d->a"] == pytest.approx(4.0), "alone between its regions"


@settings(max_examples=25)
@given(problem=problems(max_nodes=6), grain=st.integers(2, 8))
def test_sums_between_regions_are_told_truly(problem: Traffic, grain: int) -> None:
    believed = sees.told(problem, grain=grain)
    region = sees.regions(problem, grain)
    np.testing.assert_allclose(sent_between(believed, region), sent_between(problem, region), rtol=1e-9)
    assert believed.links is problem.links
    assert ((believed.rate_mbps > 0) == (problem.rate_mbps > 0)).all()


@settings(max_examples=25)
@given(problem=problems(max_nodes=6), grain=st.integers(2, 6), coarser=st.integers(2, 6))
def test_regions_are_nested_and_no_more_than_asked(problem: Traffic, grain: int, coarser: int) -> None:
    small, large = sees.regions(problem, grain), sees.regions(problem, max(grain, coarser))
    assert len(set(small)) <= math.ceil(len(small) / grain)
    for one in set(small):
        assert len(set(large[small == one])) == 1


def test_noise_of_sums_is_one_figure_for_a_pair_of_regions() -> None:
    plain, noisy = sees.told(LINE, grain=2), sees.told(LINE, grain=2, noise=0.7, seed=1)
    factor = dict(zip(LINE.demand_labels, noisy.rate_mbps / plain.rate_mbps, strict=True))
    assert factor["a->c"] == pytest.approx(factor["b->d"])
    assert len({round(value, 9) for value in factor.values()}) == 3


def test_gravity_of_one_region_is_exact_where_demands_are_gravity() -> None:
    """Masses on the line: every pair in proportion to both ends is what one region would guess.

    Without a node's own demand to itself, gravity is not a fixed point; with sources and targets
    apart it is.
    """
    links = both_ways([("a", "b", 9.0), ("b", "c", 9.0), ("c", "d", 9.0)])
    mass = {"a": 1.0, "b": 3.0}
    want = {"c": 2.0, "d": 5.0}
    problem = network(links, [(s, t, m * w) for s, m in mass.items() for t, w in want.items()])
    np.testing.assert_allclose(sees.told(problem, grain=4).rate_mbps, problem.rate_mbps)


# --- plans made on it ---------------------------------------------------------------------

TOLD = [design for design in SYSTEM.designs if design.sees is sees.told]


@pytest.mark.parametrize("design", TOLD, ids=lambda design: design.name)
@settings(max_examples=6)
@given(
    problem=problems(max_nodes=5),
    seen=st.fixed_dictionaries(
        {
            "age_s": st.sampled_from([0.0, 900.0]),
            "noise": st.sampled_from([0.0, 0.8]),
            "grain": st.sampled_from([0, 3]),
            "seed": st.integers(0, 3),
        }
    ),
)
def test_what_was_decided_on_hearsay_is_a_plan_in_truth(
    problem: Traffic, design: Design, seen: dict[str, Any]
) -> None:
    """`evaluate` rejects what is none; demands keep their true rates, or the share that the plan meant."""
    fast = {"weights": {"evaluations": 50}, "hedera_annealing": {"iterations": 5}}.get(design.name, {})
    entry = Entry(label="it", design=design, parameters=fast, sees=seen)
    run = evaluate(SYSTEM, problem, entry)
    assert run.plan is not None
    again = evaluate(SYSTEM, problem, entry)
    assert run.metrics["concurrent_flow"] == again.metrics["concurrent_flow"], "the seed says it all"
    best = evaluate(SYSTEM, problem, Entry(label="best", design=SYSTEM.design("optimum")))
    assert run.metrics["concurrent_flow"] <= best.proof.bound * (1 + 1e-6)
