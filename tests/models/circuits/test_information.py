"""Signalling for a week's circuits, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.signalling import Signalling, no_signalling
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuits import SYSTEM, Circuits, information
from planner_models.circuits.designs import equal_days
from planner_models.circuits.plan.plan import Day, make_plan
from planner_models.circuits.problem import generators
from tests.models.circuits.demands import problems

DEGRADABLE = [
    design
    for design in SYSTEM.designs
    if design.observe
    in (
        information.observe_demand,
        information.observe_multicasts,
        information.observe_queues,
        information.observe_data_units,
    )
]
FAST: dict[str, dict[str, Any]] = {"search": {"steps": 1_000}}
"""Parameters of a design that searches for long by default."""
FACTS = ("window_us", "night_us", "shortest_day_us", "switches", "dark")


def problem(bits: list[list[float]], **switch: Any) -> Circuits:
    return Circuits.from_matrix(
        np.array(bits),
        circuit_mbps=1_000.0,
        packet_mbps=10.0,
        night_us=10.0,
        window_us=10_000.0,
        **switch,
    )


@pytest.fixture
def three() -> Circuits:
    """r0 -> r1 has 3.5 MB, r1 -> r2 has 1 MB, r2 -> r0 a single bit."""
    return problem([[0, 28e6, 0], [0, 0, 8e6], [1, 0, 0]])


DAYS = [
    Day(duration_us=100.0, target=np.array([1, 2, -1])),
    Day(duration_us=50.0, target=np.array([1, -1, -1])),
]
# to each of both switches: two lengths, three circuits with two ends each
SCHEDULE = 2 * (2 * 8 + 3 * 2 * 4)
REPORTS = 3 * (4 + 8)


def test_queues_are_reported_rack_by_rack(three: Circuits) -> None:
    plan, _, _ = make_plan(three, DAYS)
    assert information.count_queue_reports(three, plan) == Signalling(
        messages=3 + 2, bytes=REPORTS + SCHEDULE
    )


def test_each_data_unit_is_reported(three: Circuits) -> None:
    """Four units, one and one, each with two ends and a size."""
    plan, _, _ = make_plan(three, DAYS)
    assert information.count_data_units(three, plan) == Signalling(
        messages=6 + 3 + 2, bytes=6 * 16 + REPORTS + SCHEDULE
    )


def test_no_more_units_are_reported_than_connections_hand_over() -> None:
    large = problem([[0, 8e9], [0, 0]])
    plan, _, _ = make_plan(large, [])
    assert information.count_data_units(large, plan) == Signalling(messages=16 + 2, bytes=16 * 16 + 12)


def test_whole_transfers_are_reported_once_and_parts_of_coflows_each(three: Circuits) -> None:
    plan, _, _ = make_plan(three, DAYS)
    assert information.count_transfers(three, plan) == Signalling(
        messages=3 + 3 + 2, bytes=3 * 16 + REPORTS + SCHEDULE
    )
    parts = pd.DataFrame(
        [("a", "r0", "r1", 20e6), ("b", "r0", "r1", 8e6), ("a", "r1", "r2", 8e6), ("b", "r2", "r0", 1.0)],
        columns=["coflow", "source_rack", "target_rack", "bits"],
    )
    tables = {**three.to_tables(), "coflows": parts}
    assert information.count_transfers(Circuits.from_tables(tables), plan).messages == 4 + 3 + 2


def test_each_circuit_switch_gets_its_own_days() -> None:
    two = problem([[0, 8e6], [8e6, 0]], circuit_switches=2)
    swap = np.array([1, 0])
    plan, _, _ = make_plan(
        two, [Day(duration_us=9.0, target=swap), Day(duration_us=9.0, target=swap, switch=1)]
    )
    said = 2 * (2 * 8 + 4 * 2 * 4)
    assert information.count_queue_reports(two, plan) == Signalling(messages=2 + 3, bytes=2 * 12 + said)


def test_without_circuits_only_reports_are_sent(three: Circuits) -> None:
    plan, _, _ = make_plan(three, [])
    assert information.count_queue_reports(three, plan) == Signalling(messages=3, bytes=REPORTS)
    assert (
        equal_days.count_requests(three, plan)
        == no_signalling(three, plan)
        == Signalling(messages=0, bytes=0)
    )


def test_requests_grants_and_accepts_are_counted() -> None:
    """r0 asks r1 and r2, r1 asks r2: three requests, then two grants, to r0 from r1 and from r2.

    r0 accepts r1. In the second iteration r1 asks r2, which grants, and r1 accepts. In the second day
    what is left is r0 -> r2: a request, a grant, an accept.
    """
    demand = problem([[0, 4e6, 4e6], [0, 0, 4e6], [0, 0, 0]])
    design = SYSTEM.design("islip")
    run = evaluate(SYSTEM, demand, Entry(label="islip", design=design, parameters={"day_us": 4_000.0}))
    assert run.plan.configurations["day"].nunique() == 2
    assert run.metrics["messages"] == (3 + 2 + 1) + 3 + 3
    assert run.metrics["signalling_bytes"] == 4 * run.metrics["messages"]


@pytest.mark.parametrize(
    "design", [field for field in SYSTEM.designs if field.name != "bound"], ids=lambda d: d.name
)
def test_every_design_declares_its_signalling(design: Any) -> None:
    demand = generators.skewed(racks=8, large=2, small=2, window_us=500.0, seed=1)
    run = evaluate_with(design.name, demand)
    alone = design.name in ("strobe", "fixed", "packet_only")
    assert (run.metrics["messages"] == 0) == (run.metrics["signalling_bytes"] == 0) == alone


@pytest.fixture(scope="module")
def skewed() -> Circuits:
    return generators.skewed(racks=32, large=3, small=8, seed=4)


def evaluate_with(design: str, problem: Circuits, **how: Any) -> Any:
    parameters = FAST.get(design, {})
    entry = Entry(label=design, design=SYSTEM.design(design), parameters=parameters, information=how)
    return evaluate(SYSTEM, problem, entry)


def test_an_exact_observation_is_the_problem_itself(skewed: Circuits) -> None:
    assert information.observe_demand(skewed, memory_us=1.0, seed=7) is skewed
    assert information.observe_data_units(skewed, unit_bytes=1e9, seed=7) is skewed


def test_every_design_that_observes_demand_can_have_degraded_observations() -> None:
    degradations = {degradation.parameter for degradation in SYSTEM.studies.coordination.degradations}  # type: ignore[union-attr]
    assert degradations == {"age_us", "noise", "granularity_bytes"}
    free = {"islip", "strobe", "fixed", "packet_only", "bound"}
    assert {design.name for design in SYSTEM.designs} == {design.name for design in DEGRADABLE} | free


@settings(max_examples=20, deadline=None)
@given(problem=problems(max_racks=5), age=st.sampled_from([0.1, 1.0, 50.0]), seed=st.integers(0, 50))
def test_earlier_demand_has_the_same_amounts_from_each_rack(problem: Circuits, age: float, seed: int) -> None:
    then = information.demand_at_age(problem, age, 1.0, seed)
    np.testing.assert_allclose(then.bits.sum(axis=1), problem.bits.sum(axis=1))
    assert (np.diag(then.bits) == 0).all()
    for fact in FACTS:
        assert getattr(then, fact) == getattr(problem, fact)


def test_demands_of_one_size_leave_what_racks_receive_as_it_is() -> None:
    """Rings: every demand is as large as every other, so that only partners change."""
    problem = generators.rings(racks=12, count=3)
    then = information.demand_at_age(problem, 1e9, 1.0, 0)
    np.testing.assert_allclose(then.bits.sum(axis=0), problem.bits.sum(axis=0))
    np.testing.assert_allclose(then.bits.sum(axis=1), problem.bits.sum(axis=1))
    assert (then.bits != problem.bits).any()


def test_a_demand_remains_with_the_probability_that_its_memory_implies() -> None:
    problem = generators.skewed(racks=48, large=4, small=12, noise=0.0, seed=2)
    total = problem.bits.sum()
    for age in (0.1, 0.5, 2.0):
        selected = [
            np.minimum(problem.bits, information.demand_at_age(problem, age, 1.0, seed).bits).sum() / total
            for seed in range(12)
        ]
        # one that has changed may by chance lie where another one was: 16 of 47 other racks
        expected = np.exp(-age)
        assert expected - 0.03 < np.mean(selected) < expected + (1 - expected) * 0.45


def test_older_reports_serve_less(skewed: Circuits) -> None:
    served = [
        np.mean(
            [evaluate_with("eclipse", skewed, age_us=age, seed=s).metrics["served_share"] for s in range(3)]
        )
        for age in (0.0, 1_000.0, 10_000.0, 100_000.0)
    ]
    assert served == sorted(served, reverse=True)
    assert served[0] > 2 * served[-1]


def test_observations_have_no_coflows() -> None:
    import pandas as pd

    truth = generators.rings(racks=4)
    parts = truth.demands.assign(coflow="c")[["coflow", "source_rack", "target_rack", "bits"]]
    problem = Circuits(racks=truth.racks, demands=truth.demands, switch=truth.switch, coflows=parts)
    assert isinstance(problem.coflows, pd.DataFrame)
    assert information.observe_demand(problem, age_us=5.0).coflows is None
    assert information.observe_demand(problem, noise=0.1).coflows is None


def test_noise_has_the_given_deviation_and_the_truth_as_its_median() -> None:
    problem = generators.skewed(racks=64, seed=3)
    ratio = np.log(information.observe_demand(problem, noise=0.5, seed=1).pair_bits / problem.pair_bits)
    assert ratio.std() == pytest.approx(0.5, rel=0.1)
    assert np.median(ratio) == pytest.approx(0.0, abs=0.06)


def test_amounts_are_rounded_up_to_whole_steps(skewed: Circuits) -> None:
    told = information.observe_demand(skewed, granularity_bytes=3e5).pair_bits
    steps = told / (8 * 3e5)
    np.testing.assert_allclose(steps, np.round(steps))
    assert (told >= skewed.pair_bits * (1 - 1e-12)).all()
    assert (told < skewed.pair_bits + 8 * 3e5).all()
    even = skewed.with_bits(np.full(len(skewed.demands), 8 * 6e5))
    exact = information.observe_demand(even, granularity_bytes=3e5)
    np.testing.assert_allclose(exact.pair_bits, 8 * 6e5)


def test_queues_are_limited_before_noise_is_added(skewed: Circuits) -> None:
    depth = 16 * 9_000 * 8
    assert information.observe_queues(skewed).bits.max() == depth
    assert information.observe_queues(skewed, noise=0.5).bits.max() > depth
    assert information.observe_queues(skewed, granularity_bytes=1e6).bits.max() == 8e6


def test_full_queues_divide_the_week(skewed: Circuits) -> None:
    """The busiest rack's circuit is busy for so much of it, and all pairs are scaled alike."""
    plain, filled = information.observe_queues(skewed), information.observe_queues(skewed, fill_share=0.5)
    time = filled.bits / filled.circuit_mbps
    assert max(time.sum(axis=0).max(), time.sum(axis=1).max()) == pytest.approx(0.5 * 2_000.0)
    ratio = filled.pair_bits / plain.pair_bits
    assert ratio.min() == pytest.approx(ratio.max())
    enough = information.observe_queues(skewed, depth_packets=10_000, fill_share=0.5)
    np.testing.assert_array_equal(enough.bits, skewed.bits)


@pytest.mark.parametrize("design", DEGRADABLE, ids=lambda design: design.name)
@settings(max_examples=6, deadline=None)
@given(
    problem=problems(plain=False),
    how=st.sampled_from([{"age_us": 9_000.0}, {"noise": 1.0}, {"granularity_bytes": 5.0}]),
    seed=st.integers(0, 5),
)
def test_plans_on_bad_reports_keep_the_limits_in_truth(
    design: Any, problem: Circuits, how: dict[str, float], seed: int
) -> None:
    run = evaluate_with(design.name, problem, **how, seed=seed)
    assert run.plan is not None
    assert not run.omniscient
    assert not len(run.violations), run.violations.sentences()
    if problem.bits.any():
        assert 0 < run.metrics["served_share"] <= 1 + 1e-9


@pytest.mark.parametrize(
    "view", [information.observe_demand, information.observe_queues, information.observe_data_units]
)
def test_a_seed_repeats_and_another_differs(skewed: Circuits, view: Any) -> None:
    for how in ({"age_us": 5_000.0}, {"noise": 0.4}):
        first, again, other = (view(skewed, **how, seed=seed).bits for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


def test_better_reports_serve_more_and_bad_ones_less_than_none(skewed: Circuits) -> None:
    """Good reports beat queues, queues beat nothing; very bad reports are worse than queues."""
    alone, asked = (evaluate_with(name, skewed).metrics["served_share"] for name in ("packet_only", "islip"))
    queued = evaluate_with("solstice_queues", skewed, fill_share=1.0).metrics["served_share"]
    told = evaluate_with("solstice", skewed).metrics["served_share"]
    noisy = evaluate_with("solstice", skewed, noise=2.0, seed=1).metrics["served_share"]
    assert alone < queued < told
    assert noisy < asked
