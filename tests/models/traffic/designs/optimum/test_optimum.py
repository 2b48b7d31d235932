"""The optimum against closed forms, networkx, SciPy, the formal model and every backend."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import Options, Status, backends
from planner.backends import pyomo
from planner.contract.design import Decision
from planner.errors import InputError
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic import SYSTEM, Traffic, check, formulation, measure
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import as_graph, both_ways, network, problems

BACKENDS = ["highs", "ortools:glop", "ortools:pdlp", "pyomo:highs"]
OBJECTIVES = ["concurrent", "utilization", "total", "cost"]


def objective(decision: Decision[Any]) -> float:
    assert decision.proof.status is Status.OPTIMAL, decision.proof
    assert decision.proof.objective is not None
    return decision.proof.objective


def solve(problem: Traffic, **parameters: Any) -> Any:
    """Run `optimum` through the engine, which checks plan and guarantees in every test."""
    entry = Entry(label="optimum", design=SYSTEM.design("optimum"), parameters=parameters)
    return evaluate(SYSTEM, problem, entry)


# --- known answers ------------------------------------------------------------------------

DIAMOND = [("s", "a", 10.0), ("a", "t", 10.0), ("s", "b", 5.0), ("b", "t", 5.0)]


def test_two_routes_share_what_one_cannot_carry() -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)])
    assert objective(optimum.route(problem, objective="concurrent")) == pytest.approx(15 / 12)
    assert objective(optimum.route(problem, objective="utilization")) == pytest.approx(12 / 15)
    assert objective(optimum.route(problem, objective="total")) == pytest.approx(12)
    assert objective(optimum.route(problem.scale_demands(2), objective="total")) == pytest.approx(15)


@pytest.mark.parametrize(
    ("parameters", "over"),
    [
        ({}, ""),
        ({"method": "columns"}, ""),
        ({"method": "lp"}, ""),
        ({"paths": 1}, ", over the 1 shortest paths of each demand"),
    ],
)
def test_a_bound_on_the_utilization_is_of_plans_that_serve_all(parameters: dict[str, Any], over: str) -> None:
    """A plan that sheds half of the demand has half of the utilization, and no other proof is limited so."""
    problem = network(DIAMOND, [("s", "t", 12.0), ("t", "s", 1.0)])  # no link leads back
    run = solve(problem, objective="utilization", **parameters)
    half = solve(problem.scale_demands(0.5), objective="utilization", **parameters)
    assert half.metrics["max_utilization"] < 0.51 * run.proof.bound
    assert run.proof.bound_scope == f"plans that serve all demand that has a path{over}"
    free = solve(problem, objective="concurrent", **parameters)
    assert free.proof.bound_scope == (over.removeprefix(", over ") or None)
    assert optimum.route(problem.scale_demands(0), objective="utilization").proof.bound_scope is None


def test_cost_takes_the_cheap_route_until_it_is_full() -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)], cost=[1.0, 1.0, 3.0, 3.0])
    assert objective(optimum.route(problem, objective="cost")) == pytest.approx(10 * 2 + 2 * 6)


def test_one_demand_is_a_maximum_flow() -> None:
    graph = nx.gnp_random_graph(12, 0.3, seed=3, directed=True)
    links = [(str(u), str(v), float(1 + (u * 7 + v * 3) % 9)) for u, v in graph.edges]
    problem = network(links, [("0", "11", 1.0)])
    for _, _, data in (g := as_graph(problem)).edges(data=True):
        assert data["capacity"] > 0
    flow = nx.maximum_flow_value(nx.DiGraph(g), "0", "11")
    assert objective(optimum.route(problem, objective="concurrent")) == pytest.approx(flow)


def test_three_demands_on_a_triangle() -> None:
    ring = both_ways([("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)])
    problem = network(ring, [("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)])
    # each demand has its own link, and the way round uses two links of the others' way back
    assert objective(optimum.route(problem, objective="concurrent")) == pytest.approx(1.5)


def test_demands_that_do_not_fit_are_cut_by_the_same_share() -> None:
    problem = network([("s", "t", 10.0)], [("s", "t", 40.0)])
    run = solve(problem, objective="concurrent")
    assert run.metrics["concurrent_flow"] == pytest.approx(0.25)
    assert run.metrics["delivered_mbps"] == pytest.approx(10.0)
    assert run.metrics["shed_mbps"] == pytest.approx(30.0)
    assert run.plan.shed["rate_mbps"].tolist() == pytest.approx([30.0])
    assert not len(run.violations), "what is listed as shed is left out on purpose"


def test_overload_under_utilization_is_a_result() -> None:
    run = solve(network([("s", "t", 10.0)], [("s", "t", 40.0)]), objective="utilization")
    assert run.metrics["max_utilization"] == pytest.approx(4.0)
    assert run.metrics["shed_mbps"] == 0
    assert run.metrics["delivered_mbps"] == pytest.approx(10.0)
    assert run.metrics["lost_mbps"] == pytest.approx(30.0)
    assert run.violations.sentences() == ["capacity: violated 1 time, worst s->t: 40 against 10 Mbit/s"]


def test_an_infeasible_cost_problem_is_explained() -> None:
    problem = network([("s", "t", 10.0), ("t", "s", 9.0)], [("s", "t", 40.0)], cost=[1.0, 1.0])
    decision = optimum.route(problem, objective="cost", options=Options(service="all"))
    assert decision.proof.status is Status.INFEASIBLE
    assert decision.plan is None
    assert decision.proof.reasons[0] == "at most 25.0000% of every demand fits at the same time"
    assert any("capacity[s->t]" in reason for reason in decision.proof.reasons)


@pytest.mark.parametrize("goal", ["delivered", *OBJECTIVES])
@pytest.mark.parametrize("paths", ["any", 2])
def test_strict_service_serves_all_or_proves_that_it_cannot(goal: Any, paths: Any) -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)], cost=[1.0, 1.0, 3.0, 3.0])
    strict = Options(service="all")
    fits = optimum.route(problem, objective=goal, paths=paths, options=strict)
    assert fits.proof.status is Status.OPTIMAL
    assert fits.proof.objective == pytest.approx(optimum.route(problem, objective=goal).proof.objective)
    proof = optimum.route(problem.scale_demands(2), objective=goal, paths=paths, options=strict).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons[0] == "at most 62.5000% of every demand fits at the same time"


# --- the most traffic, then the least utilization ------------------------------------------


def test_the_default_delivers_the_most_and_then_loads_links_the_least() -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)])
    fits, scarce = solve(problem), solve(problem.scale_demands(2))
    assert fits.proof.metric == scarce.proof.metric == "delivered_mbps"
    assert fits.proof.objective == fits.proof.bound == pytest.approx(12.0)
    assert fits.metrics["max_utilization"] == pytest.approx(12 / 15)
    assert scarce.proof.objective == scarce.proof.bound == pytest.approx(15.0)
    assert scarce.metrics["shed_mbps"] == pytest.approx(9.0)
    assert scarce.constraints.met


def test_the_cheapest_plan_of_those_that_deliver_the_most() -> None:
    # 15 of 24 fit; on the cheap route 10, on the dear one 5
    problem = network(DIAMOND, [("s", "t", 24.0)], cost=[1.0, 1.0, 3.0, 3.0])
    for paths in ("any", 2):
        run = solve(problem, objective="cost", paths=paths)
        assert run.proof.objective == pytest.approx(10 * 2 + 5 * 6)
        assert run.metrics["cost"] == pytest.approx(10 * 2 + 5 * 6)
        assert run.metrics["delivered_mbps"] == pytest.approx(15.0, rel=1e-6)
        assert run.proof.bound_scope is not None


@pytest.mark.slow
@settings(max_examples=20)
@given(problem=problems(max_nodes=5), factor=st.sampled_from([0.1, 1.0, 4.0]))
def test_formal_model_and_exported_model_agree_with_the_default(problem: Traffic, factor: float) -> None:
    """Both are one program, whose objective is traffic - smallest capacity * utilization / 2."""
    problem = problem.scale_demands(factor)
    run = solve(problem)
    value = run.proof.objective - 0.5 * problem.capacity_mbps.min() * run.metrics["max_utilization"]
    exported = backends.solve(optimum.model(problem), Options())
    formal = pyomo.solve_model(formulation(problem), Options())
    assert exported.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert formal.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
    over_paths = backends.solve(optimum.model(problem, paths=60), Options())
    assert over_paths.objective == pytest.approx(value, rel=1e-6, abs=1e-6)


def test_no_demand_at_all() -> None:
    problem = network([("s", "t", 10.0)], [("s", "t", 0.0)])
    assert objective(optimum.route(problem, objective="utilization")) == 0
    for goal in ("delivered", "concurrent", "utilization", "total"):
        run = solve(problem, objective=goal)
        assert run.exit_code == 0
        assert run.proof.status is Status.OPTIMAL
        assert run.metrics["delivered_mbps"] == 0
        assert not len(run.plan.flows)


METHODS: list[tuple[str, dict[str, Any]]] = [
    (goal, parameters)
    for goal in ("delivered", *OBJECTIVES)
    for parameters in ({"method": "lp"}, {"method": "columns"}, {"paths": 3})
    if goal not in ("total", "cost") or parameters.get("method") != "columns"
]


@pytest.mark.parametrize(("goal", "parameters"), METHODS)
@settings(max_examples=8)
@given(problem=problems(max_nodes=6, costs=True), data=st.data())
def test_rates_over_twelve_decades_have_a_plan_within_its_bound(
    goal: Any, parameters: dict[str, Any], problem: Traffic, data: st.DataObject
) -> None:
    """The engine rejects plans that overload links or whose value is not as claimed; so must direct calls."""
    count, decades = len(problem.demands), st.floats(-8, 4)
    rate = 10 ** np.array(data.draw(st.lists(decades, min_size=count, max_size=count)))
    wide = data.draw(st.sampled_from([0.0, 1.0, 9.0]))
    capacity = np.minimum(problem.capacity_mbps ** (1 + wide), 1e12)
    problem = Traffic(
        nodes=problem.nodes,
        links=problem.links.assign(capacity_mbps=capacity),
        demands=problem.demands.assign(rate_mbps=rate),
    )
    run = solve(problem, objective=goal, **parameters)
    assert run.plan is not None
    direct = optimum.route(problem, objective=goal, **parameters)
    assert direct.proof.objective == run.proof.objective == pytest.approx(run.metrics[run.proof.metric])
    if direct.proof.status is Status.OPTIMAL:
        assert direct.proof.gap <= 1e-6
    if goal != "utilization":
        assert (direct.plan.links["load_mbps"] <= problem.capacity_mbps * (1 + 1e-6)).all()


def test_a_plan_beyond_the_tolerance_of_its_solver_is_reduced_and_not_called_optimal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = network(DIAMOND, [("s", "t", 24.0)])
    exact = backends.solve

    def solve_roughly(program: Any, options: Options) -> Any:
        solution = exact(program, options)
        assert solution.x is not None
        return replace(solution, x=solution.x * 1.001, objective=solution.objective * 1.001)

    monkeypatch.setattr(backends, "solve", solve_roughly)
    for paths in ("any", 2):
        decision = optimum.route(problem, objective="total", paths=paths)
        assert decision.proof.status is Status.FEASIBLE
        assert decision.proof.objective == pytest.approx(15.0)
        assert decision.plan.links["utilization"].max() <= 1 + 1e-9
        assert decision.proof.bound == pytest.approx(15.0)


def test_tiny_demands_are_served_too() -> None:
    problem = network(DIAMOND, [("s", "t", 1e4), ("a", "t", 1e-5)]).scale_demands(1e-3)
    run = solve(problem, objective="concurrent")
    assert run.metrics["shed_mbps"] == 0
    assert run.metrics["concurrent_flow"] == pytest.approx(run.proof.objective, rel=1e-6)


def test_cost_without_prices_is_refused() -> None:
    with pytest.raises(InputError, match="links: column 'cost' is missing; objective 'cost' needs it"):
        optimum.route(network(DIAMOND, [("s", "t", 1.0)]), objective="cost")


def test_a_hop_limit_needs_paths() -> None:
    with pytest.raises(InputError, match="a hop limit needs a number of paths"):
        optimum.route(network(DIAMOND, [("s", "t", 1.0)]), max_hops=3)


# --- independent witnesses ----------------------------------------------------------------


def by_all_paths(problem: Traffic, goal: str) -> float:
    """Return the optimum over every simple path, by SciPy: small networks only."""
    graph = as_graph(problem)
    paths: list[tuple[int, list[int]]] = []
    for k, row in problem.demands.iterrows():
        walks = nx.all_simple_edge_paths(graph, row["source"], row["target"])
        paths += [(int(k), [key for _, _, key in walk]) for walk in walks]
    uses = np.zeros((len(problem.links), len(paths)))
    serves = np.zeros((len(problem.demands), len(paths)))
    for p, (k, links) in enumerate(paths):
        uses[links, p] = 1
        serves[k, p] = 1
    rate, capacity = problem.rate_mbps, problem.capacity_mbps
    if goal == "concurrent":
        result = linprog(
            np.r_[np.zeros(len(paths)), -1.0],
            A_ub=np.c_[uses, np.zeros(len(capacity))],
            b_ub=capacity,
            A_eq=np.c_[serves, -rate],
            b_eq=np.zeros(len(rate)),
        )
        return float(-result.fun)
    if goal == "utilization":
        result = linprog(
            np.r_[np.zeros(len(paths)), 1.0],
            A_ub=np.c_[uses, -capacity],
            b_ub=np.zeros(len(capacity)),
            A_eq=np.c_[serves, np.zeros(len(rate))],
            b_eq=rate,
        )
        return float(result.fun)
    if goal == "total":
        result = linprog(-np.ones(len(paths)), A_ub=np.r_[uses, serves], b_ub=np.r_[capacity, rate])
        return float(-result.fun)
    price = problem.links["cost"].to_numpy(float)
    result = linprog(price @ uses, A_ub=uses, b_ub=capacity, A_eq=serves, b_eq=rate)
    if result.status != 0:  # the cheapest of the plans that deliver the most
        lower = by_all_paths(problem, "total") * (1 - 1e-7)
        limits = np.r_[capacity, rate, -lower]
        result = linprog(price @ uses, A_ub=np.r_[uses, serves, -np.ones((1, len(paths)))], b_ub=limits)
    return float(result.fun)


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["delivered", *OBJECTIVES])
@given(problem=problems(max_nodes=5, costs=True))
def test_equals_the_best_mix_of_all_simple_paths(goal: str, problem: Traffic) -> None:
    decision = optimum.route(problem, objective=goal)
    expected = by_all_paths(problem, "total" if goal == "delivered" else goal)
    assert objective(decision) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    fits = by_all_paths(problem, "concurrent") >= 1
    strict = optimum.route(problem, objective=goal, options=Options(service="all")).proof.status
    assert strict is (Status.OPTIMAL if fits else Status.INFEASIBLE)


@pytest.mark.parametrize(("goal", "backend"), list(itertools.product(OBJECTIVES, BACKENDS[1:])))
@settings(max_examples=12)
@given(problem=problems(costs=True))
def test_every_backend_finds_the_same_optimum(goal: str, backend: str, problem: Traffic) -> None:
    fast = optimum.route(problem, objective=goal)
    other = optimum.route(problem, objective=goal, options=Options(backend=backend))
    assert other.proof.status is fast.proof.status
    if fast.proof.objective is not None:
        assert other.proof.objective == pytest.approx(fast.proof.objective, rel=1e-6, abs=1e-7)


@given(problem=problems(), goal=st.sampled_from(["concurrent", "utilization", "total"]))
def test_plans_pass_the_check_and_are_worth_what_they_claim(problem: Traffic, goal: str) -> None:
    run = solve(problem, objective=goal)
    assert run.proof.gap == pytest.approx(0, abs=1e-6)
    assert run.metrics[run.proof.metric] == pytest.approx(run.proof.objective, rel=1e-6)


@pytest.mark.slow
@given(problem=problems(), factor=st.sampled_from([1e-9, 1e-6, 0.1, 3.0, 1e6, 1e9]))
def test_twice_the_demand_is_half_the_growth(problem: Traffic, factor: float) -> None:
    for paths in ("any", 2):
        item, other = (
            solve(entry, objective="concurrent", paths=paths)
            for entry in (problem, problem.scale_demands(factor))
        )
        assert other.proof.objective * factor == pytest.approx(item.proof.objective, rel=1e-6)
        assert other.proof.gap <= 1e-6


@pytest.mark.slow
@given(problem=problems())
def test_the_names_and_order_of_nodes_mean_nothing(problem: Traffic) -> None:
    renamed = Traffic.from_tables(
        {
            "nodes": problem.nodes.iloc[::-1].replace("^n", "node ", regex=True).reset_index(drop=True),
            "links": problem.links.iloc[::-1].replace("^n", "node ", regex=True).reset_index(drop=True),
            "demands": problem.demands.replace("^n", "node ", regex=True),
        }
    )
    assert objective(optimum.route(renamed)) == pytest.approx(objective(optimum.route(problem)), rel=1e-6)


@pytest.mark.slow
@given(problem=problems(), link=st.integers(0, 100))
def test_more_capacity_never_hurts(problem: Traffic, link: int) -> None:
    links = problem.links.copy()
    links.loc[link % len(links), "capacity_mbps"] *= 2
    wider = Traffic(nodes=problem.nodes, links=links, demands=problem.demands)
    assert objective(optimum.route(wider)) >= objective(optimum.route(problem)) * (1 - 1e-6)


# --- over paths ---------------------------------------------------------------------------


@given(problem=problems(), count=st.integers(1, 4), choice=st.sampled_from(["shortest", "disjoint"]))
def test_paths_never_beat_all_routes(problem: Traffic, count: int, choice: PathChoice) -> None:
    free = objective(optimum.route(problem))
    bound = optimum.route(problem, paths=count, path_choice=choice)
    assert objective(bound) <= free * (1 + 1e-6)
    assert bound.proof.bound_scope is not None, "its bound holds for its paths only, and must say so"


@given(problem=problems(max_nodes=4))
def test_all_paths_are_as_good_as_all_routes(problem: Traffic) -> None:
    assert objective(optimum.route(problem, paths=60)) == pytest.approx(
        objective(optimum.route(problem)), rel=1e-6
    )


def test_a_plan_over_paths_lists_its_routes() -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)])
    run = solve(problem, paths=2)
    routes = run.plan.routes.sort_values("path")
    assert routes["path"].tolist() == ['["s", "a", "t"]', '["s", "b", "t"]']
    assert routes["rate_mbps"].tolist() == pytest.approx([8.0, 4.0])


def test_routes_alone_make_the_plan_again() -> None:
    problem = network([*DIAMOND, ("s", "a", 3.0)], [("s", "t", 15.0)])
    plan = solve(problem, paths=5).plan
    again = SYSTEM.plan.from_tables(problem, {"routes": plan.routes})
    assert not len(check(problem, again))
    assert measure(problem, again, None) == pytest.approx(measure(problem, plan, None))


def test_a_hop_limit_leaves_the_long_way_out() -> None:
    problem = network([("s", "t", 1.0), ("s", "a", 9.0), ("a", "b", 9.0), ("b", "t", 9.0)], [("s", "t", 1.0)])
    assert objective(optimum.route(problem, objective="concurrent", paths=4)) == pytest.approx(10)
    assert objective(optimum.route(problem, objective="concurrent", paths=4, max_hops=2)) == pytest.approx(1)
    longer = network([("s", "a", 9.0), ("a", "b", 9.0), ("b", "t", 9.0)], [("s", "t", 1.0)])
    assert optimum.route(longer, paths=4, max_hops=2).plan.shed["rate_mbps"].tolist() == [1.0]


@pytest.mark.parametrize("goal", ["delivered", *OBJECTIVES])
def test_demands_without_a_path_within_the_hop_limit_are_shed_and_listed(goal: Any) -> None:
    chain = both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("c", "d", 4.0)])
    problem = network(chain, [("a", "b", 1.0), ("a", "d", 2.0), ("b", "d", 3.0)], cost=[1.0] * 6)
    run = solve(problem, objective=goal, paths=2, max_hops=2)
    assert run.plan.shed.to_dict("records") == [{"source": "a", "target": "d", "rate_mbps": 2.0}]
    assert run.metrics["delivered_mbps"] == pytest.approx(4.0)
    assert run.constraints.met
    served = "plans that serve all demand that has a path, over " if goal == "utilization" else ""
    assert run.proof.bound_scope == f"{served}the 2 shortest paths of each demand of at most 2 links"
    strict = optimum.route(problem, objective=goal, paths=2, max_hops=2, options=Options(service="all"))
    assert strict.proof.status is Status.INFEASIBLE
    assert strict.proof.reasons == ("demand a->d has no path within max_hops 2",)
    none = solve(network(chain, [("a", "d", 2.0)], cost=[1.0] * 6), objective=goal, paths=2, max_hops=2)
    assert none.plan.shed["rate_mbps"].tolist() == [2.0]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", ["highs", "ortools", "pyomo:highs"])
def test_backends_agree_on_a_real_network_in_one_process(backend: str, threads: int) -> None:
    problem = SYSTEM.problem.presets["germany50"]()
    options = Options(backend=backend, threads=threads)
    decision = optimum.route(problem, objective="concurrent", options=options)
    assert objective(decision) == pytest.approx(1.2774305, rel=1e-6)


def test_the_same_input_gives_the_same_plan() -> None:
    problem = SYSTEM.problem.presets["abilene"]()
    item, other = solve(problem).plan, solve(problem).plan
    pd.testing.assert_frame_equal(item.flows, other.flows)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.7, 3.0])
def test_the_total_by_columns_is_that_of_the_linear_program(factor: float) -> None:
    problem = generators.germany50().scale_demands(factor)
    for goal in ("total", "delivered"):
        made = optimum.route(problem, objective=goal, method="columns", options=Options(gap=1e-4))
        check(problem, made.plan)
        best = objective(optimum.route(problem, objective=goal, method="lp"))
        assert objective(made) == pytest.approx(best, rel=1.1e-4)
        assert made.proof.bound >= best * (1 - 1e-6)


def test_capacities_over_ten_decades_do_not_make_the_flow_over_paths_unbounded() -> None:
    links = [
        ("a", "b", 1.0, 3.0), ("b", "c", 1.0, 1.0), ("c", "d", 1.0, 1.0), ("d", "a", 1.0, 1.0),
        ("a", "b", 1.0, 3.0), ("a", "b", 1.0, 3.0), ("a", "c", 3.0**10, 1.0), ("c", "b", 9.0**10, 1.0),
        ("a", "b", 1.0, 2.0), ("a", "c", 9.0**10, 1.0), ("a", "c", 1.0, 1.0), ("b", "a", 1.0, 1.0),
    ]  # fmt: skip
    problem = Traffic.from_tables(
        {
            "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps", "weight"]),
            "demands": pd.DataFrame(
                [("a", "b", 1.0), ("a", "c", 1.0)], columns=["source", "target", "rate_mbps"]
            ),
        }
    )
    decision = optimum.route(problem, objective="concurrent", paths=3)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(9.0**10 / 2 + 3.0**10 / 2, rel=1e-4)
