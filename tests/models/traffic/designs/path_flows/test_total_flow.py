"""The largest total flow by the augmented Lagrangian against the linear program."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options, Status
from planner.errors import InputError
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import optimum
from planner_models.traffic.designs.path_flows import total_flow
from planner_models.traffic.plan import flow_decision
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import both_ways, network, problems


def largest_total(problem: Traffic) -> float:
    proof = optimum.route(problem, objective="total", method="lp").proof
    assert proof.status is Status.OPTIMAL
    assert proof.objective is not None
    return proof.objective


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(problems(), st.sampled_from([0.3, 1.0, 3.0, 20.0]))
def test_incumbent_and_bound_enclose_the_linear_program(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    decision = total_flow.route(problem)
    best = largest_total(problem)
    assert decision.proof.objective <= best * (1 + 1e-6)
    assert decision.proof.bound >= best * (1 - 1e-6)
    assert decision.proof.gap <= 1e-3
    assert check(problem, decision.plan).frame.empty
    assert measure(problem, decision.plan, None)["delivered_mbps"] == pytest.approx(decision.proof.objective)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(problems(), st.sampled_from([1.0, 3.0, 20.0]), st.integers(1, 3))
def test_the_simplex_method_ends_a_search_at_the_optimum(
    problem: Traffic, factor: float, passes: int
) -> None:
    problem = problem.scale_demands(factor)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(total_flow, "PASSES_BEFORE_SIMPLEX", passes)
        decision = total_flow.route(problem, options=Options(gap=1e-9))
    best = largest_total(problem)
    assert decision.proof.objective == pytest.approx(best, rel=1e-7)
    assert decision.proof.bound == pytest.approx(best, rel=1e-7)
    assert check(problem, decision.plan).frame.empty


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(problems(), st.integers(0, 100))
def test_more_capacity_never_hurts(problem: Traffic, link: int) -> None:
    problem = problem.scale_demands(3.0)
    links = problem.links.copy()
    links.loc[link % len(links), "capacity_mbps"] *= 3
    wider = Traffic(nodes=problem.nodes, links=links, demands=problem.demands)
    assert total_flow.route(problem).proof.objective <= total_flow.route(wider).proof.bound * (1 + 1e-9)


@pytest.mark.parametrize("factor", [1.5, 4.0])
def test_a_real_network_is_solved_to_the_gap(factor: float) -> None:
    problem = generators.germany50().scale_demands(factor)
    decision = total_flow.route(problem, options=Options(gap=1e-4))
    assert decision.proof.status is Status.OPTIMAL
    assert check(problem, decision.plan).frame.empty
    assert decision.proof.objective == pytest.approx(largest_total(problem), rel=1.1e-4)
    loads = decision.plan.links["load_mbps"].to_numpy() / problem.capacity_mbps
    assert loads.max() <= 1 + 1e-9


def test_few_sources_are_the_roots() -> None:
    ring = both_ways([(f"n{i}", f"n{(i + 1) % 8}", 3.0) for i in range(8)])
    problem = network(ring, [("n0", f"n{i}", 2.0) for i in range(1, 8)])
    assert len(TotalFlow(problem).demands.roots) == 1
    decision = total_flow.route(problem)
    assert decision.proof.objective == pytest.approx(6.0, rel=1e-6)
    assert check(problem, decision.plan).frame.empty


def test_a_time_limit_leaves_an_incumbent_and_a_bound() -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1)).scale_demands(4.0)
    decision = total_flow.route(problem, options=Options(time_limit_s=0.01))
    assert decision.proof.status is Status.FEASIBLE
    assert 0 < decision.proof.objective < decision.proof.bound <= problem.rate_mbps.sum()
    assert check(problem, decision.plan).frame.empty


@pytest.mark.slow
def test_every_evaluation_narrows_the_gap() -> None:
    search = TotalFlow(generators.germany50().scale_demands(3.0))
    steps = list(search.run(gap=1e-6))
    values, bounds = np.array([s.value for s in steps]), np.array([s.bound for s in steps])
    assert (np.diff(values) >= 0).all()
    assert (np.diff(bounds) <= 0).all()
    assert (values <= bounds * (1 + 1e-12)).all()


def test_a_plan_with_many_rows_has_flows_per_target(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generators.germany50().scale_demands(3.0)
    by_demand = total_flow.route(problem)
    monkeypatch.setattr(flow_decision, "MAX_PAIR_ROWS", 10)
    by_target = total_flow.route(problem)
    assert "source" in by_demand.plan.flows
    assert "source" not in by_target.plan.flows
    check(problem, by_target.plan)
    pd.testing.assert_frame_equal(by_demand.plan.links, by_target.plan.links)


def test_another_solver_is_refused() -> None:
    with pytest.raises(InputError, match="'columns' is a solver of its own"):
        total_flow.route(generators.abilene(), options=Options(backend="ortools:glop"))


def test_the_incumbent_stays_a_flow_while_the_search_goes_on() -> None:
    problem = generators.germany50().scale_demands(1.2)
    ends = problem.links["tail"] + "-" + problem.links["head"]
    is_later_best = 0
    for failed in ("Koblenz-Koeln", "Berlin-Hannover", "Leipzig-Nuernberg", "Frankfurt-Mannheim"):
        links = problem.links[~ends.isin([failed, "-".join(reversed(failed.split("-")))])]
        traffic = Traffic(nodes=problem.nodes, links=links, demands=problem.demands)
        search, value = TotalFlow(traffic), 0.0
        for state in search.run(gap=0.0):
            result = search.path_flow()
            hops = result.end - result.start
            path = np.repeat(np.arange(len(hops)), hops)
            position = np.arange(len(path)) - np.repeat(np.cumsum(hops) - hops, hops) + result.start[path]
            load = np.bincount(result.link[position], weights=result.flow[path], minlength=len(links))
            served = np.bincount(
                search.order[result.demand], weights=result.flow, minlength=len(traffic.demands)
            )
            assert (load <= traffic.capacity_mbps * (1 + 1e-9)).all()
            assert (served <= traffic.rate_mbps * (1 + 1e-9)).all()
            assert result.flow.sum() == pytest.approx(state.value, rel=1e-9)
            is_later_best += state.value > value
            value = state.value
            if state.passes >= 60:
                break
    assert is_later_best, "incumbents are replaced, and kept while others are no better"


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(problems(), st.sampled_from([0.3, 1.0, 3.0, 20.0]), st.integers(0, 2**16))
def test_a_start_from_the_plan_before_does_not_change_the_optimum(
    problem: Traffic, factor: float, seed: int
) -> None:
    problem = problem.scale_demands(factor)
    before = total_flow.route(problem)
    random = np.random.default_rng(seed)
    changed = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
    down = random.random(len(problem.links)) < 0.2
    failed = changed.without_links(down).routable if not down.all() else changed
    for other in (changed, failed):
        if not (other.rate_mbps > 0).any():
            continue
        decision, best = total_flow.route(other, previous=before), largest_total(other)
        assert decision.proof.objective <= best * (1 + 1e-6)
        assert decision.proof.objective >= best * (1 - 1e-3)
        assert decision.proof.bound >= best * (1 - 1e-6)
        assert check(other, decision.plan).frame.empty


@pytest.mark.slow
def test_the_plan_before_saves_passes() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50", seed=1))
    scale = 2.0 * float(total_flow.route(problem).proof.objective) / float(problem.rate_mbps.sum())
    problem = problem.scale_demands(max(scale, 2.0))
    before = total_flow.route(problem, exact=False).plan
    assert before is not None
    random = np.random.default_rng(1)
    other = problem.with_rates(problem.rate_mbps * random.lognormal(0, 0.01, len(problem.demands)))
    cold = list(TotalFlow(other).run(gap=1e-4))[-1]
    warm = list(TotalFlow(other, start=PreviousRoutes.of(other, before)).run(gap=1e-4))[-1]
    assert warm.passes < cold.passes
    assert warm.value == pytest.approx(cold.value, rel=3e-4)
