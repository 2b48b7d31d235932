"""The cheapest fleets against the direct integer program, and how the optimum changes with a problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.backends.pyomo import solve_model
from planner.contract.proof import Status
from planner.options import Options
from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import fit_rules, patterns
from planner_models.consolidation.designs.formulation import formulation
from planner_models.consolidation.problem.adjustments import adjust
from planner_models.consolidation.problem.generators import awkward
from tests.models.consolidation.fleets import machines, make, random_fleet

EXACT = Options(gap=0.0)


def optimum(problem: Consolidation, hosts: int = 7) -> float:
    """Return the least price by the direct model of single hosts."""
    solution = solve_model(formulation(problem, hosts=hosts), EXACT)
    assert solution.objective is not None
    return solution.objective


@pytest.mark.parametrize("seed", range(10))
def test_plan_and_bound_enclose_the_optimum(seed: int) -> None:
    problem = random_fleet(seed)
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    exact = optimum(problem)
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= exact + 1e-6
    assert decision.proof.objective >= exact - 1e-6
    assert decision.proof.objective <= exact + problem.price.max() + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("losses", ["host", "rack", "zone"])
@pytest.mark.parametrize("seed", range(4))
def test_losses_enclose_the_optimum(seed: int, losses: str) -> None:
    problem = random_fleet(seed, losses=losses, largest=3)
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    exact = optimum(problem, hosts=2)
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= exact + 1e-6
    if losses == "host":  # two hosts of each type are enough: the direct model has no others
        assert decision.proof.objective <= optimum(problem, hosts=4) + problem.price.max() + 1e-6


@pytest.mark.parametrize("losses", ["host", "zone"])
def test_bounds_hold_where_hosts_are_too_few_for_machines_that_survive(losses: str) -> None:
    problem = adjust(random_fleet(1, losses=losses, largest=6), most=1.0)
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert decision.proof.bound is not None
    assert decision.proof.bound <= optimum(problem, hosts=1) + 1e-6
    assert decision.proof.bound_scope == "slots of each shape"


@pytest.mark.parametrize("seed", range(5))
def test_no_fit_rule_is_better_than_the_bound(seed: int) -> None:
    problem = awkward(machines=80, shapes=6, seed=seed)
    bound = patterns.plan(problem).proof.bound
    assert bound is not None
    for plan in (fit_rules.plan_best_fit, fit_rules.plan_first_fit, fit_rules.plan_spread):
        made = plan(problem).plan
        assert made is not None
        assert not len(check(problem, made))
        price = measure(problem, made, None)["price_per_h"]
        assert price is not None
        assert price >= bound - 1e-6


def test_more_memory_or_another_type_never_raises_the_bound() -> None:
    problem = awkward(machines=80, shapes=6, seed=2)
    before = patterns.plan(problem).proof.bound
    more = patterns.plan(adjust(problem, memory=1.5)).proof.bound
    other = patterns.plan(awkward(machines=80, shapes=6, types=2, seed=2)).proof.bound
    assert before is not None
    assert more is not None
    assert other is not None
    assert max(more, other) <= before + 1e-6


def test_the_order_of_rows_changes_nothing() -> None:
    problem = awkward(machines=80, shapes=6, seed=3)
    order = np.random.default_rng(1).permutation(len(problem.machines))
    turned = replace(problem, machines=problem.machines.iloc[order].reset_index(drop=True))
    assert patterns.plan(problem).proof.objective == patterns.plan(turned).proof.objective


def test_column_generation_is_better_than_best_fit() -> None:
    """The volume of 40 machines of each size fills 48 hosts of 16 threads, less a few threads."""
    problem = make(
        nodes={"host_type": ["h"], "node": ["0"], "threads": [16.0], "memory_gb": [100.0]},
        machines=machines(vcpus_min=[6.0, 5.0, 4.0, 3.0, 1.0], count=[40.0, 40.0, 40.0, 40.0, 40.0]),
    )
    best = patterns.plan(problem)
    fit = fit_rules.plan_best_fit(problem).plan
    assert best.proof.objective is not None
    assert best.proof.objective == best.proof.bound == 48.0
    assert fit is not None
    assert best.proof.objective <= measure(problem, fit, None)["price_per_h"]  # type: ignore[operator]


def test_a_zone_alone_cannot_be_survived() -> None:
    problem = make(machines=machines(count=[2.0]), zones={"zone": ["x"]}, survive={"domain": ["zone"]})
    proof = patterns.plan(problem).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == ("no machine restarts after the loss of 1 zone: there is 1",)


def test_hosts_that_are_too_few_hold_the_machines_of_most_weight() -> None:
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "most": [1.0]},
        machines=machines(vcpus_min=[8.0, 8.0], count=[2.0, 2.0], weight=[1.0, 3.0]),
    )
    plan = patterns.plan(problem).plan
    assert plan is not None
    assert plan.refused is not None
    assert plan.refused["machine"].tolist() == ["m0"]
    assert plan.refused["machines"].tolist() == [2.0]
    strict = patterns.plan(problem, options=Options(service="all")).proof
    assert strict.status is Status.INFEASIBLE
    assert "32 threads" in strict.reasons[0]


def test_machines_that_rules_allow_nowhere_are_refused() -> None:
    """No pattern has a machine, so that the search has no column."""
    problem = make(
        machines=machines(count=[2.0], group=["g"]),
        zones={"zone": ["x", "y"]},
        rules={"kind": ["not_on"] * 2, "group": ["g"] * 2, "domain": ["zone"] * 2, "target": ["x", "y"]},
    )
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert decision.plan.refused is not None
    assert decision.plan.refused["machines"].tolist() == [2.0]
    assert decision.proof.objective == decision.proof.bound == 2.0


def test_hosts_that_cost_nothing_are_no_reason_to_refuse_machines() -> None:
    """Two pairs fit a host only where each node has one of both shapes; best fit refuses all of them."""
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [0.0]},
        nodes={
            "host_type": ["h", "h"],
            "node": ["0", "1"],
            "threads": [10.0, 10.0],
            "memory_gb": [16.5, 16.0],
        },
        machines=machines(count=[2.0, 2.0], vcpus_min=[2.0, 6.0], memory_gb=[8.0, 8.0], group=["g", "g"]),
        rules={"kind": ["together"], "group": ["g"], "domain": ["host"]},
    )
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert decision.plan.refused is None
    assert decision.proof.status is Status.OPTIMAL
    kept_free = fit_rules.plan_percentage(problem)
    assert kept_free.plan is not None
    assert not len(check(problem, kept_free.plan).of_limits(kept_free.guarantees))


def test_no_machine_is_refused_where_only_a_dearer_host_is_left() -> None:
    problem = make(
        hosts={"host_type": ["cheap", "dear"], "price_per_h": [1.0, 7.0], "most": [1.0, 5.0]},
        nodes={
            "host_type": ["cheap", "dear"],
            "node": ["0", "0"],
            "threads": [4.0, 4.0],
            "memory_gb": [8.0, 8.0],
        },
        machines=machines(count=[2.0], vcpus_min=[4.0], memory_gb=[8.0]),
    )
    decision = patterns.plan(problem)
    assert (decision.proof.objective, decision.proof.bound) == (pytest.approx(8.0), pytest.approx(8.0))
