"""Observations by age of information, measurement noise and granularity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import Signalling
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic import SYSTEM, Traffic, information
from planner_models.traffic.designs import link_weights
from planner_models.traffic.designs.bgp_exits import describe_networks
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem import generators
from tests.models.traffic.bounds import optimum_bound
from tests.models.traffic.networks import both_ways, network, problems

ABILENE = generators.abilene()
LINE = network(
    both_ways([("a", "b", 10.0), ("b", "c", 10.0), ("c", "d", 10.0)]),
    [("a", "c", 1.0), ("a", "d", 2.0), ("b", "c", 3.0), ("b", "d", 6.0), ("a", "b", 5.0), ("d", "a", 4.0)],
    weight=[1.0, 5.0, 1.0, 1.0, 5.0, 1.0],
)


def sent_between(problem: Traffic, region: np.ndarray) -> np.ndarray:
    """Return the sums of rates between regions."""
    positions = region[problem.source] * len(region) + region[problem.target]
    return sum_by_index(positions, problem.rate_mbps, len(region) ** 2)


# --- the truth ----------------------------------------------------------------------------


def test_an_observation_without_degradation_is_the_problem_itself() -> None:
    assert information.observe_reports(ABILENE) is ABILENE
    assert information.observe_locally(ABILENE) is ABILENE
    assert information.observe_reports(ABILENE, age_s=0.0, noise=0.0, granularity=0, seed=9) is ABILENE
    assert information.observe_reports(ABILENE, age_s=600.0, swing=0.0) is ABILENE, "demands that never move"


def test_regions_of_one_node_report_every_demand() -> None:
    assert information.observe_reports(ABILENE, granularity=1) is ABILENE


# --- noise --------------------------------------------------------------------------------


def test_noise_of_own_measurements_and_of_reports_is_the_same() -> None:
    item, other = (
        information.observe_locally(ABILENE, noise=0.3, seed=4),
        information.observe_reports(ABILENE, noise=0.3, seed=4),
    )
    np.testing.assert_array_equal(item.rate_mbps, other.rate_mbps)
    factors = np.log(item.rate_mbps / ABILENE.rate_mbps)
    assert factors.std() == pytest.approx(0.3, rel=0.2)
    assert abs(np.median(factors)) < 0.1
    assert not np.array_equal(
        item.rate_mbps, information.observe_locally(ABILENE, noise=0.3, seed=5).rate_mbps
    )


# --- age ----------------------------------------------------------------------------------


@pytest.mark.parametrize("age_s", [60.0, 3600.0, 1e9])
def test_old_rates_differ_from_current_ones_as_two_times_of_the_process(age_s: float) -> None:
    """Against the process itself, followed in small steps from equilibrium."""
    swing, memory_s = 0.5, 3600.0
    random = np.random.default_rng(7)
    then = random.normal(0.0, swing, 20_000)
    now, steps = then.copy(), 50
    keep = math.exp(-age_s / memory_s / steps)
    for _ in range(steps):
        now = keep * now + random.normal(0.0, swing * math.sqrt(1 - keep**2), len(now))
    drifts = [
        np.log(information.observe_reports(ABILENE, age_s=age_s, seed=seed).rate_mbps / ABILENE.rate_mbps)
        for seed in range(40)
    ]
    assert np.std(drifts) == pytest.approx(np.std(now - then), rel=0.03)
    assert abs(np.mean(drifts)) < 0.03


def test_old_rates_of_slowly_changing_demands_have_smaller_errors() -> None:
    def error(**given: float) -> float:
        return float(
            np.std(np.log(information.observe_reports(ABILENE, **given).rate_mbps / ABILENE.rate_mbps))
        )

    assert error(age_s=60) < error(age_s=600) < error(age_s=6000)
    assert error(age_s=600, memory_s=86_400) < error(age_s=600) < error(age_s=600, swing=1.0)


def test_age_and_noise_are_independent() -> None:
    aged = np.log(
        information.observe_reports(ABILENE, age_s=1e9, swing=math.sqrt(0.5)).rate_mbps / ABILENE.rate_mbps
    )
    noisy = np.log(information.observe_reports(ABILENE, noise=1.0).rate_mbps / ABILENE.rate_mbps)
    assert abs(np.corrcoef(aged, noisy)[0, 1]) < 0.3


@pytest.mark.parametrize(("swing", "memory_s"), [(0.5, 3600.0), (0.2, 900.0)])
def test_the_drift_of_a_series_is_found(swing: float, memory_s: float) -> None:
    """A process of known drift, with a common daily cycle and demands of all sizes."""
    random, times, demands = np.random.default_rng(3), 4_000, 40
    keep = math.exp(-300.0 / memory_s)
    level = np.empty((times, demands))
    level[0] = random.normal(0.0, swing, demands)
    for step in range(1, times):
        level[step] = keep * level[step - 1] + random.normal(0.0, swing * math.sqrt(1 - keep**2), demands)
    day = np.sin(np.arange(times) * 2 * math.pi / 288)[:, None]
    rates = np.exp(level + day + random.normal(0.0, 2.0, demands))
    rates[5, 0] = 0.0
    result = information.estimate_drift(rates, step_s=300.0)
    assert result == pytest.approx((swing, memory_s), rel=0.1)


def test_a_constant_series_has_no_drift() -> None:
    assert information.estimate_drift(np.full((5, 3), 2.0), step_s=60.0) == (0.0, math.inf)
    with pytest.raises(ValueError, match="needs three times"):
        information.estimate_drift(np.ones((2, 3)), step_s=60.0)


# --- granularity --------------------------------------------------------------------------------


def test_regions_consist_of_close_nodes() -> None:
    region = information.group_nodes(LINE, 2)
    a, b, c, d = (region[LINE.node_index.get_loc(name)] for name in "abcd")
    assert a == b
    assert c == d
    assert a != c
    assert len(set(information.group_nodes(LINE, 4))) == 1


def test_rates_between_nodes_of_regions_are_estimated_by_gravity() -> None:
    """By hand: {a, b} send 12 to {c, d}; in total a sends 8 and b 9, c receives 4 and d 8."""
    observed = information.observe_reports(LINE, granularity=2)
    rate = dict(zip(observed.demand_labels, observed.rate_mbps, strict=True))
    weight = {"a->c": 8 * 4, "a->d": 8 * 8, "b->c": 9 * 4, "b->d": 9 * 8}
    for pair, value in weight.items():
        assert rate[pair] == pytest.approx(12 * value / sum(weight.values()))
    assert rate["a->b"] == pytest.approx(5.0), "alone within its region"
    assert rate["d->a"] == pytest.approx(4.0), "alone between its regions"


@settings(max_examples=25)
@given(problem=problems(max_nodes=6), granularity=st.integers(2, 8))
def test_sums_between_regions_are_reported_exactly(problem: Traffic, granularity: int) -> None:
    observed = information.observe_reports(problem, granularity=granularity)
    region = information.group_nodes(problem, granularity)
    np.testing.assert_allclose(sent_between(observed, region), sent_between(problem, region), rtol=1e-9)
    assert observed.links is problem.links
    assert ((observed.rate_mbps > 0) == (problem.rate_mbps > 0)).all()


@settings(max_examples=25)
@given(problem=problems(max_nodes=6), granularity=st.integers(2, 6), coarser=st.integers(2, 6))
def test_regions_are_nested_and_no_more_than_needed(problem: Traffic, granularity: int, coarser: int) -> None:
    small, large = (
        information.group_nodes(problem, granularity),
        information.group_nodes(problem, max(granularity, coarser)),
    )
    assert len(set(small)) <= math.ceil(len(small) / granularity)
    for item in set(small):
        assert len(set(large[small == item])) == 1


def test_noise_of_sums_is_one_factor_for_a_pair_of_regions() -> None:
    plain, noisy = (
        information.observe_reports(LINE, granularity=2),
        information.observe_reports(LINE, granularity=2, noise=0.7, seed=1),
    )
    factor = dict(zip(LINE.demand_labels, noisy.rate_mbps / plain.rate_mbps, strict=True))
    assert factor["a->c"] == pytest.approx(factor["b->d"])
    assert len({round(value, 9) for value in factor.values()}) == 3


def test_gravity_of_one_region_is_exact_where_demands_are_gravity() -> None:
    """Every demand is proportional to the masses of its ends, so one region estimates it exactly.

    This needs separate sources and targets: without demands from a node to itself, gravity among
    all nodes is not a fixed point.
    """
    links = both_ways([("a", "b", 9.0), ("b", "c", 9.0), ("c", "d", 9.0)])
    mass = {"a": 1.0, "b": 3.0}
    want = {"c": 2.0, "d": 5.0}
    problem = network(links, [(s, t, m * w) for s, m in mass.items() for t, w in want.items()])
    np.testing.assert_allclose(
        information.observe_reports(problem, granularity=4).rate_mbps, problem.rate_mbps
    )


BY_REPORTS = [design for design in SYSTEM.designs if design.observe is information.observe_reports]


@pytest.mark.parametrize("design", BY_REPORTS, ids=lambda design: design.name)
@settings(max_examples=6)
@given(
    problem=problems(max_nodes=5),
    information=st.fixed_dictionaries(
        {
            "age_s": st.sampled_from([0.0, 900.0]),
            "noise": st.sampled_from([0.0, 0.8]),
            "granularity": st.sampled_from([0, 3]),
            "seed": st.integers(0, 3),
        }
    ),
)
def test_a_plan_made_on_an_observation_is_valid_in_truth(
    problem: Traffic, design: Design, information: dict[str, Any]
) -> None:
    """`evaluate` rejects invalid plans; served rates are true rates, or the shares that the plan serves."""
    fast = {"weights": {"evaluations": 50}, "hedera_annealing": {"iterations": 5}}.get(design.name, {})
    entry = Entry(label="observing", design=design, parameters=fast, information=information)
    run = evaluate(SYSTEM, problem, entry)
    assert run.plan is not None
    again = evaluate(SYSTEM, problem, entry)
    assert run.metrics["concurrent_flow"] == again.metrics["concurrent_flow"], "same seed, same result"
    assert run.metrics["delivered_mbps"] <= optimum_bound(problem) * (1 + 1e-6)


SQUARE = network(
    both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0)]),
    [("a", "d", 12.0), ("a", "b", 1.0), ("c", "d", 1.0)],
)
REPORTS = 3 * 12  # a reports two demands, c one: each a name and a figure


def make_plan(problem: Traffic, rows: list[tuple[str, str, str, str, float]]) -> Routing:
    flows = pd.DataFrame(rows, columns=["source", "target", "tail", "head", "rate_mbps"])
    return SYSTEM.plan.from_tables(problem, {"flows": flows.assign(parallel=1)})


ROWS = [
    ("a", "d", "a", "b", 8.0),
    ("a", "d", "b", "d", 8.0),
    ("a", "d", "a", "c", 4.0),
    ("a", "d", "c", "d", 4.0),
    ("a", "b", "a", "b", 1.0),
    ("c", "d", "c", "d", 1.0),
]


def test_every_source_reports_and_every_node_gets_its_splits() -> None:
    plan = make_plan(SQUARE, ROWS)
    # a, b and c forward; each of six rows has source, target, next hop and share
    assert information.signal_splits(SQUARE, plan) == Signalling(
        messages=2 + 3, bytes=REPORTS + 6 * (3 * 4 + 8)
    )


def test_splits_by_target_are_shorter() -> None:
    rows = [("d", "a", "b"), ("d", "b", "d"), ("d", "a", "c"), ("d", "c", "d"), ("b", "a", "b")]
    rates = [8.0, 8.0, 4.0, 5.0, 1.0]
    flows = pd.DataFrame(rows, columns=["target", "tail", "head"]).assign(parallel=1, rate_mbps=rates)
    plan = SYSTEM.plan.from_tables(SQUARE, {"flows": flows})
    assert information.signal_splits(SQUARE, plan) == Signalling(
        messages=2 + 3, bytes=REPORTS + 5 * (2 * 4 + 8)
    )


def test_sources_of_elastic_demands_get_their_rates_too() -> None:
    plan = make_plan(SQUARE, ROWS)
    result = information.signal_splits_and_rates(SQUARE, plan)
    assert result == Signalling(messages=5, bytes=REPORTS + 6 * 20 + 3 * 12)


def test_whole_paths_need_no_shares() -> None:
    plan = make_plan(
        SQUARE, [row for row in ROWS if row[:4] not in {("a", "d", "a", "c"), ("a", "d", "c", "d")}]
    )
    assert information.signal_paths(SQUARE, plan) == Signalling(messages=2 + 3, bytes=REPORTS + 4 * 12)


def test_weights_are_sent_to_every_node_and_flooded() -> None:
    plan = link_weights.route(SQUARE, evaluations=10).plan
    assert plan is not None
    # four nodes are sent their weights, and each announces them over eight links
    assert information.signal_weights(SQUARE, plan) == Signalling(
        messages=2 + 4 + 4 * 8, bytes=REPORTS + 8 * 12 + 8 * 8 * 12
    )


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_designs_without_shared_information_send_no_messages(design: Design) -> None:
    """All others send some, but those whose announcements change with the network, not with demands."""
    run = evaluate(SYSTEM, SQUARE, Entry(label=design.name, design=design))
    alone = design.mechanism in (Mechanism.NONE, Mechanism.REACTION) or design.doubts is describe_networks
    assert (run.metrics["messages"] == 0) == alone
    assert (run.metrics["signalling_bytes"] == 0) == alone
