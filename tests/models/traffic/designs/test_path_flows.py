"""Least cost and largest total flow by the simplex method over paths, against linear programs over links."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import InputError, Options, Status, load
from planner.contract import progress
from planner.contract.design import Decision
from planner_models.flows import path_flow_program, total_flow
from planner_models.flows.augmented_lagrangian import TotalFlow
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import column_generation, path_flows
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.designs.optimum.optimum_search import GivenRoutes, OptimumSearch
from planner_models.traffic.designs.path_flows import shorten
from planner_models.traffic.plan import flow_decision
from planner_models.traffic.plan.flow_decision import routing_of_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import both_ways, network, problems

DIAMOND = [("s", "a", 10.0), ("a", "t", 10.0), ("s", "b", 5.0), ("b", "t", 5.0)]


@pytest.mark.slow
@settings(max_examples=30)
@given(problems(max_nodes=6, max_demands=6, costs=True), st.sampled_from([0.3, 1.0, 4.0]))
def test_it_costs_what_the_linear_program_finds(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    decision = path_flows.route_cheapest(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    check(problem, decision.plan)
    metrics = measure(problem, decision.plan, None)
    assert metrics["cost"] == pytest.approx(decision.proof.objective, rel=1e-9)
    upper = optimum.route(problem, objective="total", method="lp").proof.objective
    assert metrics["delivered_mbps"] == pytest.approx(upper, rel=1e-7)
    other = optimum.route(problem, objective="cost", method="lp")
    # the linear program may deliver 1e-7 less
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=1e-5, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=30)
@given(problems(max_nodes=6, max_demands=6), st.sampled_from([1.0, 4.0]))
def test_it_delivers_what_the_linear_program_finds(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    search = LeastCostFlow(problem)
    assert search.deliver_most()
    plan = routing_of_paths(problem, search.order, search.path_flow())
    check(problem, plan)
    upper = optimum.route(problem, objective="total", method="lp").proof.objective
    assert search.delivered_mbps() == pytest.approx(upper, rel=1e-7)
    assert search.total_bound_mbps() == pytest.approx(upper, rel=1e-7)


@settings(max_examples=20)
@given(problems(max_nodes=6, max_demands=6, costs=True), st.integers(1, 3))
def test_over_given_paths_it_costs_what_the_linear_program_finds(problem: Traffic, count: int) -> None:
    problem = problem.scale_demands(2)
    paths = path_flow_program.find_paths(problem, count=count)
    decision = path_flows.route_cheapest(problem, paths=paths, scope="the paths")
    other = optimum.route(problem, objective="cost", paths=count, method="lp")
    assert decision.proof.bound_scope == "the paths"
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=1e-5, abs=1e-5)


def test_a_dear_route_is_taken_where_nothing_else_delivers() -> None:
    # leaving traffic out must cost more than the dear link, which the first penalty does not know
    links = [("s", "a", 1.0), ("a", "t", 10.0), ("s", "t", 1.0), ("s", "b", 9.0), ("b", "t", 9.0)]
    problem = network(links, [("s", "t", 12.0), ("a", "t", 10.0)], cost=[1.0, 1.0, 1.0, 1e6, 1e6])
    decision = path_flows.route_cheapest(problem)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["rate_mbps"].sum() == pytest.approx(2.0)
    assert decision.proof.bound_scope == "plans that deliver the most"
    assert decision.proof.objective == pytest.approx(1 + 10 + 9 * 2e6 - 0.0, rel=1e-6)


def priced(problem: Traffic) -> Traffic:
    price = np.random.default_rng(1).integers(1, 9, len(problem.links)).astype(float)
    return Traffic.from_tables({**problem.to_tables(), "links": problem.links.assign(cost=price)})


def test_the_design_takes_it_for_large_problems_and_where_columns_are_asked_for() -> None:
    problem = priced(generators.abilene()).scale_demands(3)
    by_columns = optimum.route(problem, objective="cost", method="columns")
    by_program = optimum.route(problem, objective="cost", method="lp")
    assert by_columns.proof.backend == path_flows.SIMPLEX
    assert by_columns.proof.status is Status.OPTIMAL
    assert by_columns.proof.objective == pytest.approx(by_program.proof.objective, rel=1e-5)


def test_a_time_limit_leaves_a_plan_within_its_bound() -> None:
    problem = priced(generators.abilene()).scale_demands(3)
    decision = path_flows.route_cheapest(problem, options=Options(time_limit_s=1e-6))
    assert decision.plan is not None
    check(problem, decision.plan)
    bound = decision.proof.bound
    assert bound is None or bound <= decision.proof.objective


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner_models.flows import simplex

    monkeypatch.setattr(simplex, "PIVOTS_PER_CALL", 5)
    seen: list[progress.Progress] = []
    with progress.observe(seen.append):
        search = LeastCostFlow(generators.abilene().scale_demands(5))
        search.deliver_most()
    assert len(seen) > 3
    value = search.delivered_mbps()
    for state in seen:
        assert state.metric == "delivered_mbps"
        assert state.objective <= value * (1 + 1e-9) <= state.bound * (1 + 1e-6)


def test_another_solver_is_refused() -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)], cost=[1.0, 1.0, 3.0, 3.0])
    with pytest.raises(InputError, match=r"^backend is 'ortools:glop'"):
        path_flows.route_cheapest(problem, options=Options(backend="ortools:glop"))


@settings(max_examples=15)
@given(
    problems(max_nodes=6, max_demands=6, costs=True),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([None, 2]),
    st.integers(0, 2**16),
)
def test_a_start_from_the_plan_before_does_not_change_the_optimum(
    problem: Traffic, factor: float, count: int | None, seed: int
) -> None:
    problem = problem.scale_demands(factor)
    random = np.random.default_rng(seed)
    other = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
    paths = None if count is None else path_flow_program.find_paths(other, count=count)
    cold = path_flows.route_cheapest(other, paths=paths)
    warm = path_flows.route_cheapest(other, paths=paths, previous=path_flows.route_cheapest(problem))
    assert warm.proof.status is cold.proof.status is Status.OPTIMAL
    assert warm.proof.objective == pytest.approx(cold.proof.objective, rel=1e-6, abs=1e-6)
    assert warm.plan is not None
    check(other, warm.plan)


def test_the_largest_flow_begins_at_that_of_other_rates() -> None:
    """Two paths may each carry more than half of a rate that is lower now."""
    random, flow = np.random.default_rng(0), None
    problem = generators.abilene().scale_demands(10.0)
    for _ in range(6):
        other = problem.with_rates(problem.rate_mbps * random.uniform(0.0, 2.0, len(problem.demands)))
        search = LeastCostFlow(other)
        assert search.deliver_most(start=flow)
        assert search.delivered_mbps() == pytest.approx(search.total_bound_mbps(), rel=1e-9)
        flow = search.path_flow()


def least_length(problem: Traffic, utilization: float) -> float:
    """Return the least sum of routing metric times load within that utilization, by a program of its own."""
    nodes, links, demands = len(problem.nodes), len(problem.links), len(problem.demands)
    incidence = np.zeros((nodes, links))
    np.add.at(incidence, (problem.tail, np.arange(links)), 1.0)
    np.add.at(incidence, (problem.head, np.arange(links)), -1.0)
    supply = np.zeros((demands, nodes))
    np.add.at(supply, (np.arange(demands), problem.source), problem.rate_mbps)
    np.add.at(supply, (np.arange(demands), problem.target), -problem.rate_mbps)
    solution = linprog(
        np.tile(problem.weight, demands),
        A_ub=sp.hstack([sp.eye_array(links)] * demands),
        b_ub=problem.capacity_mbps * utilization,
        A_eq=sp.block_diag([incidence] * demands),
        b_eq=supply.ravel(),
    )
    return float(solution.fun)


def length(problem: Traffic, decision: Decision[Routing]) -> float:
    """Return the sum of routing metric times load of a plan."""
    assert decision.plan is not None
    return float(problem.weight @ decision.plan.links["load_mbps"].to_numpy(float))


@settings(max_examples=15)
@given(problems(max_nodes=6, max_demands=6))
def test_no_plan_of_the_same_utilization_is_shorter(problem: Traffic) -> None:
    problem = problem.scale_demands(0.05)
    before = column_generation.route(problem)
    assume((before.proof.objective or 0.0) >= 1 and before.plan is not None)
    assert before.plan is not None
    after = shorten(problem, before)
    assert after.plan is not None
    check(problem, after.plan)
    assert measure(problem, after.plan, None)["delivered_mbps"] == pytest.approx(problem.rate_mbps.sum())
    busiest = float(before.plan.links["utilization"].max())
    assert float(after.plan.links["utilization"].max()) <= busiest * (1 + 1e-9)
    assert length(problem, after) <= length(problem, before)
    assert length(problem, after) <= least_length(problem, busiest * (1 + 1e-7)) * (1 + 1e-5) + 1e-6
    assert after.proof == before.proof


def test_only_what_the_busiest_link_needs_takes_a_detour() -> None:
    links = [("s", "t", 10.0), ("s", "a", 10.0), ("a", "t", 10.0), ("t", "u", 2.0)]
    problem = network(links, [("s", "t", 6.0), ("t", "u", 1.0)])
    before = column_generation.route(problem)
    after = shorten(problem, before)
    assert after.plan is not None
    # half of the last link's capacity is used, so the direct link may carry 5, and 1 takes two links
    assert after.plan.links["load_mbps"].tolist() == pytest.approx([5, 1, 1, 1])


def test_on_too_many_links_the_plan_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_flows, "MAX_SIMPLEX_LINKS", 3)
    links = [("s", "t", 10.0), ("s", "a", 10.0), ("a", "t", 10.0), ("t", "u", 2.0)]
    problem = network(links, [("s", "t", 6.0), ("t", "u", 1.0)])
    before = column_generation.route(problem)
    assert shorten(problem, before) is before


def test_plans_of_a_backbone_are_shorter_than_those_of_the_linear_program() -> None:
    problem = load("traffic/germany50").make_problem()
    ours, other = optimum.route(problem), optimum.route(problem, method="lp")
    assert ours.plan is not None
    assert other.plan is not None
    check(problem, ours.plan)
    ends = [measure(problem, item.plan, None) for item in (ours, other)]
    assert ends[0]["mean_path_stretch"] < ends[1]["mean_path_stretch"]
    assert ends[0]["max_utilization"] == pytest.approx(ends[1]["max_utilization"], rel=1e-6)
    assert ours.proof.objective == ours.proof.bound == pytest.approx(problem.rate_mbps.sum())


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
    decision = path_flows.route_most(problem)
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
        decision = path_flows.route_most(problem, options=Options(gap=1e-9))
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
    assert path_flows.route_most(problem).proof.objective <= path_flows.route_most(wider).proof.bound * (
        1 + 1e-9
    )


@pytest.mark.parametrize("factor", [1.5, 4.0])
def test_a_real_network_is_solved_to_the_gap(factor: float) -> None:
    problem = generators.germany50().scale_demands(factor)
    decision = path_flows.route_most(problem, options=Options(gap=1e-4))
    assert decision.proof.status is Status.OPTIMAL
    assert check(problem, decision.plan).frame.empty
    assert decision.proof.objective == pytest.approx(largest_total(problem), rel=1.1e-4)
    loads = decision.plan.links["load_mbps"].to_numpy() / problem.capacity_mbps
    assert loads.max() <= 1 + 1e-9


def test_few_sources_are_the_roots() -> None:
    ring = both_ways([(f"n{i}", f"n{(i + 1) % 8}", 3.0) for i in range(8)])
    problem = network(ring, [("n0", f"n{i}", 2.0) for i in range(1, 8)])
    assert len(TotalFlow(problem).demands.roots) == 1
    decision = path_flows.route_most(problem)
    assert decision.proof.objective == pytest.approx(6.0, rel=1e-6)
    assert check(problem, decision.plan).frame.empty


def test_a_time_limit_leaves_an_incumbent_and_a_bound() -> None:
    problem = Traffic.from_tables(topohub.read("topozoo/TataNld", seed=1)).scale_demands(4.0)
    decision = path_flows.route_most(problem, options=Options(time_limit_s=0.01))
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
    by_demand = path_flows.route_most(problem)
    monkeypatch.setattr(flow_decision, "MAX_PAIR_ROWS", 10)
    by_target = path_flows.route_most(problem)
    assert "source" in by_demand.plan.flows
    assert "source" not in by_target.plan.flows
    check(problem, by_target.plan)
    pd.testing.assert_frame_equal(by_demand.plan.links, by_target.plan.links)


def test_another_solver_is_refused_of_total_flow() -> None:
    with pytest.raises(InputError, match="'columns' is a solver of its own"):
        path_flows.route_most(generators.abilene(), options=Options(backend="ortools:glop"))


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
def test_a_start_from_the_plan_before_does_not_change_the_optimum_of_total_flow(
    problem: Traffic, factor: float, seed: int
) -> None:
    problem = problem.scale_demands(factor)
    before = path_flows.route_most(problem)
    random = np.random.default_rng(seed)
    changed = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
    down = random.random(len(problem.links)) < 0.2
    failed = changed.without_links(down).routable if not down.all() else changed
    for other in (changed, failed):
        if not (other.rate_mbps > 0).any():
            continue
        decision, best = path_flows.route_most(other, previous=before), largest_total(other)
        assert decision.proof.objective <= best * (1 + 1e-6)
        assert decision.proof.objective >= best * (1 - 1e-3)
        assert decision.proof.bound >= best * (1 - 1e-6)
        assert check(other, decision.plan).frame.empty


@pytest.mark.slow
def test_the_plan_before_saves_passes() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50", seed=1))
    scale = 2.0 * float(path_flows.route_most(problem).proof.objective) / float(problem.rate_mbps.sum())
    problem = problem.scale_demands(max(scale, 2.0))
    before = path_flows.route_most(problem, exact=False).plan
    assert before is not None
    random = np.random.default_rng(1)
    other = problem.with_rates(problem.rate_mbps * random.lognormal(0, 0.01, len(problem.demands)))
    cold = list(TotalFlow(other).run(gap=1e-4))[-1]
    warm = list(TotalFlow(other, start=PreviousRoutes.of(other, before)).run(gap=1e-4))[-1]
    assert warm.passes < cold.passes
    assert warm.value == pytest.approx(cold.value, rel=3e-4)


@pytest.mark.slow
@settings(max_examples=20)
@given(problems(max_nodes=6, max_demands=6, costs=True), st.sampled_from([0.3, 1.0, 4.0]))
def test_no_routing_that_delivers_as_much_costs_less_than_the_bound(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    decision = path_flows.route_cheaply(problem, options=Options(gap=1e-3))
    assert decision.plan is not None
    check(problem, decision.plan)
    metrics = measure(problem, decision.plan, None)
    assert metrics["cost"] == pytest.approx(decision.proof.objective, rel=1e-9)
    delivered = metrics["delivered_mbps"]
    upper = optimum.route(problem, objective="total", method="lp").proof.objective
    assert delivered is not None
    assert upper is not None
    assert delivered >= upper * (1 - total_flow.SAME_FLOW - 1e-6)
    search = OptimumSearch(problem, GivenRoutes(method="lp"), Options())
    lower = search.solve("cost", least_mbps=delivered * (1 - 1e-9)).proof.objective
    assert decision.proof.bound is not None
    assert lower is not None
    assert decision.proof.bound <= lower * (1 + 1e-6) + 1e-6


@pytest.mark.slow
def test_a_wan_costs_what_the_linear_program_finds_to_the_gap() -> None:
    problem = generators.abilene(peak_utilization=1.5)
    price = np.random.default_rng(1).integers(1, 9, len(problem.links)).astype(float)
    problem = Traffic.from_tables({**problem.to_tables(), "links": problem.links.assign(cost=price)})
    decision = path_flows.route_cheaply(problem)
    other = optimum.route(problem, objective="cost", method="lp")
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 3e-3
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=3e-3)


def test_tiny_rates_on_the_cheapest_path_are_proven_at_once() -> None:
    links = [("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 1.0)]
    problem = network(links, [("s", "t", 1e-6), ("a", "t", 3e-6)], cost=[1.0, 2.0, 5.0])
    decision = path_flows.route_cheaply(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(1e-6 * 3 + 3e-6 * 2, rel=1e-9)


def test_a_dear_route_is_taken_where_nothing_else_delivers_of_approximate_cost() -> None:
    # the first penalty is 4 times the 2 of the cheapest paths, less than the dear detour of 200
    links = [("s", "a", 1.0), ("a", "t", 10.0), ("s", "b", 9.0), ("b", "t", 9.0)]
    problem = network(links, [("s", "t", 10.0)], cost=[1.0, 1.0, 100.0, 100.0])
    decision = path_flows.route_cheaply(problem)
    assert decision.plan is not None
    assert decision.plan.shed is None
    assert decision.proof.objective == pytest.approx(1 * 2 + 9 * 200, rel=1e-3)


def test_large_problems_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum_search, "LARGE_DEMANDS", 2)
    monkeypatch.setattr(optimum_search, "LARGE_LINKS", 2)
    links = [("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 1.0)]
    demands = [("s", "t", 0.5), ("a", "t", 0.1), ("s", "a", 0.2)]
    problem = network(links, demands, cost=[1.0, 2.0, 5.0])
    decision = optimum.route(problem, objective="cost", method="columns")
    assert decision.proof.backend == path_flows.LAGRANGIAN
    assert decision.proof.objective == pytest.approx(0.5 * 3 + 0.1 * 2 + 0.2, rel=1e-6)
