"""The least-cost purchases against enumeration, and what must hold for any data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.contract.proof import Status
from planner.options import Options
from planner_models import capacity
from planner_models.capacity import CapacityPlanning
from planner_models.capacity.designs.cutting_planes import Master
from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.plan import tabulate_purchases
from planner_models.capacity.plan.reading import from_tables
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import (
    cost_by_oracle,
    fits_by_oracle,
    least_cost_by_enumeration,
    least_cost_on_paths,
    limit_latency,
    problem_of,
    random_problem,
    restricted_problem,
    ring,
    shed_by_oracle,
)

DESIGNS = ("optimum", "rounding", "greedy", "shortest_path")
seeds = st.integers(0, 100_000)


@pytest.mark.parametrize("seed", [1, 3])  # undirected and bidirected; directed ones have more links
@pytest.mark.parametrize("failures", ["none", "links"])
def test_no_cheaper_purchases_are_enough(seed: int, failures: str) -> None:
    problem = adjust(random_problem(seed), failures=failures)  # type: ignore[arg-type]
    run = planner.solve(problem, design="optimum")
    cost = run.metrics["purchase_cost"]
    assert run.status == "optimal"
    assert cost is not None
    assert least_cost_by_enumeration(problem, 2, cost) == pytest.approx(cost)


@pytest.mark.parametrize("seed", range(3))
def test_plans_fit_and_cost_what_they_say(seed: int) -> None:
    problem = adjust(random_problem(seed, modules=2), failures="links")
    for run in planner.compare(problem, designs=DESIGNS):
        counts = np.zeros(len(problem.options.link))
        for bought in run.plan.purchases.to_dict(orient="records"):
            position = problem.names.index(bought["link"]) * len(problem.modules)
            counts[position + problem.modules["module"].tolist().index(bought["module"])] = bought["count"]
        assert run.metrics["purchase_cost"] == pytest.approx(cost_by_oracle(problem, counts))
        capacity = problem.installed_mbps.copy()
        np.add.at(capacity, problem.options.link, counts * problem.options.size)
        assert fits_by_oracle(problem, capacity), run.label
        assert run.metrics["unserved_mbps"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_fewer_failures_never_cost_more(seed: int) -> None:
    problem = random_problem(seed, modules=2)
    sets = ("none", "links", "double_links")
    costs = [
        planner.solve(adjust(problem, failures=item), design="optimum").metrics["total_cost"]  # type: ignore[arg-type]
        for item in sets
    ]
    assert costs == sorted(costs)


@pytest.mark.parametrize("seed", range(3))
def test_no_plan_beats_the_bounds(seed: int) -> None:
    problem = adjust(random_problem(seed, modules=2, years=2), failures="links")
    runs = planner.compare(problem, designs=DESIGNS)
    bounds = [run.proof.bound for run in runs if run.proof.bound is not None]
    assert len(bounds) == 2
    for run in runs:
        cost = run.metrics["cost_of_all"]
        assert cost is not None
        assert cost >= max(bounds) * (1 - 1e-9), run.label


@pytest.mark.parametrize("seed", range(3))
def test_later_years_never_cost_less(seed: int) -> None:
    problem = random_problem(seed, modules=2)
    costs = [
        planner.solve(adjust(problem, years=years, growth=0.3), design="optimum").metrics["total_cost"] or 0.0
        for years in (1, 2, 3)
    ]
    assert costs[0] <= costs[1] + 1e-6
    assert costs[1] <= costs[2] + 1e-6


def test_waiting_pays_where_prices_fall() -> None:
    years = pd.DataFrame({"year": [1, 2], "demand_factor": [0.5, 1.0], "price_factor": [1.0, 0.5]})
    run = planner.solve(ring(years=years), design="optimum")
    bought = run.plan.purchases
    assert bought[["year", "cost"]].to_numpy().tolist() == [[2.0, 2.0]]
    assert run.status == "optimal"


def test_setup_is_paid_once_and_routing_counts() -> None:
    no = 0.0
    problem = ring([("a", "b", 10, no, no, 0.5), ("b", "c", 10, no, no, 0.5), ("a", "c", 0, no, 6.0, 0.1)])
    run = planner.solve(problem, design="optimum")
    # two modules and the setup of a<->c, 15 Mbit/s at 0.1; or one module there and 5 Mbit/s over b at 1.0
    assert run.metrics["total_cost"] == pytest.approx(min(2 * 4 + 6 + 1.5, 4 + 6 + 1.0 + 5.0))
    assert run.status == "optimal"


def test_one_module_a_link() -> None:
    problem = adjust(ring(demands=[("a", "c", 25.0)]), modules_per_link="one")
    run = planner.solve(problem, design="optimum")
    assert run.metrics["delivered_mbps"] == 25.0
    assert run.plan.purchases["count"].tolist() == [1.0, 1.0, 1.0]


def brute_force_delivery(problem: CapacityPlanning, budget: float) -> float:
    """Return the most that is delivered in the worst state by purchases within a budget, by enumeration."""
    best = 0.0
    for selected in np.ndindex(*[3] * len(problem.lines)):
        counts = np.array(selected, dtype=float)
        if cost_by_oracle(problem, counts) > budget + 1e-9:
            continue
        capacity = problem.installed_mbps + 5.0 * counts
        rate = problem.rate_mbps[0]
        shed = max(
            shed_by_oracle(problem, np.where(down, 0.0, capacity), rate)
            for down in [np.zeros(len(capacity), dtype=bool), *problem.states.link_down]
        )
        best = max(best, float(rate.sum()) - shed)
        if shed == 0:
            break
    return best


@pytest.mark.parametrize("budget", [0.0, 8.0])
def test_within_a_budget_nothing_delivers_more(budget: float) -> None:
    problem = adjust(random_problem(0), failures="none", scale=3.0, budget=budget)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["over_budget"] == 0
    assert run.metrics["delivered_mbps"] == pytest.approx(brute_force_delivery(problem, budget), abs=1e-5)
    greedy = planner.solve(problem, design="greedy")
    assert (greedy.metrics["delivered_mbps"] or 0.0) <= (run.metrics["delivered_mbps"] or 0.0) + 1e-5


@pytest.mark.parametrize(
    ("budget", "cost", "delivered"),
    [(0.0, 1e6, 10.0), (0.0, 0.0, 15.0), (5.0, 1e12, 11.0), (1e-12, 1e6, 10.0), (1e12, 1.0, 15.0)],
)
def test_a_budget_may_be_nothing_beside_the_costs(budget: float, cost: float, delivered: float) -> None:
    modules = pd.DataFrame([("m", 10.0, cost), ("s", 1.0, 3.0)], columns=["module", "capacity_mbps", "cost"])
    problem = ring(modules=modules, network=pd.DataFrame({"budget": [budget]}))
    run = planner.solve(problem, design="optimum")
    assert run.proof.status is Status.OPTIMAL
    assert run.metrics["delivered_mbps"] == pytest.approx(delivered)
    assert run.metrics["purchase_cost"] <= budget


def test_strict_service_says_why_not_all_fits() -> None:
    modules = pd.DataFrame([("m", 10.0, 4.0, 0.0)], columns=["module", "capacity_mbps", "cost", "max_count"])
    short = planner.solve(ring(modules=modules), design="optimum", service="all")
    assert short.proof.status is Status.INFEASIBLE
    assert short.proof.reasons == (
        "without failures, 5 of 15 Mbit/s do not fit with all modules that may be bought",
    )
    poor = planner.solve(adjust(ring(), budget=1.0), design="optimum", service="all")
    reason = "the budget of 1 leaves at least 5 of 15 Mbit/s unserved in the worst case"
    assert poor.proof.reasons == (reason,)


def wide(size_mbps: float, missing: int) -> CapacityPlanning:
    """Return a demand of 1e9 Mbit/s on a link that lacks so many small modules, or one large one."""
    modules = pd.DataFrame(
        {"module": ["small", "large"], "capacity_mbps": [size_mbps, 1e9], "cost": [1.0, 1e9]}
    )
    return problem_of([("a", "b", 1e9 - missing * size_mbps)], [("a", "b", 1e9)], modules=modules)


@pytest.mark.parametrize("size_mbps", [0.5, 50.0, 500.0])
@pytest.mark.parametrize("budget", [None, 1e12])
def test_small_modules_are_bought_beside_much_traffic(size_mbps: float, budget: float | None) -> None:
    """One millionth of all traffic may be left out, which is up to 2,000 of the smallest modules."""
    run = planner.solve(adjust(wide(size_mbps, 800_000), budget=budget), design="optimum")
    assert run.status == "optimal"
    assert run.metrics["unserved_mbps"] == 0
    assert 800_000 - 1e3 / size_mbps <= run.metrics["total_cost"] <= 800_000 * (1 + 1e-4)
    assert run.proof.bound <= 800_000


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("budget", [None, 1e13])
def test_a_link_has_at_most_as_many_modules_as_a_plan_can_list(design: str, budget: float | None) -> None:
    """A million of 1e-6 Mbit/s carry nothing of 1e9: whatever they cost, 4 large ones are needed."""
    modules = pd.DataFrame({"module": ["tiny", "large"], "capacity_mbps": [1e-6, 2.5e8], "cost": [1e-6, 5e8]})
    problem = problem_of([("a", "b", 0.0)], [("a", "b", 1e9)], modules=modules)
    run = planner.solve(adjust(problem, budget=budget), design=design, options=Options(time_limit_s=5.0))
    assert run.plan.purchases["count"].max() <= 1e6
    assert run.metrics["unserved_mbps"] == 0
    assert run.metrics["total_cost"] == pytest.approx(2e9)
    if design == "optimum":
        assert run.status == "optimal"


def beside_much(
    installed_mbps: float, *, budget: float | None = None, failures: str = "none"
) -> CapacityPlanning:
    """Return 10 Mbit/s from b to c beside 1e9 from a to b; only small modules fit a link of b and c."""
    links = [("a", "b", 0.0), ("b", "c", installed_mbps), ("b", "c", installed_mbps)]
    modules = pd.DataFrame(
        {
            "module": ["large", "small", "small"],
            "capacity_mbps": [2.5e8, 3.0, 3.0],
            "cost": [5e8, 1e8, 1e8],
            "link": ["a<->b", "b<->c", "b<->c#2"],
        }
    )
    problem = problem_of(links, [("a", "b", 1e9), ("b", "c", 10.0)], modules=modules)
    return adjust(problem, budget=budget, failures=failures)  # type: ignore[arg-type]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("installed_mbps", "small"), [(0.0, 4), (1.0, 3), (3.0, 2), (5.0, 0)])
def test_a_small_demand_is_served_beside_a_large_one(design: str, installed_mbps: float, small: int) -> None:
    """Together the two links need 10 Mbit/s, of modules of 3: so many are enough, and not fewer."""
    run = planner.solve(beside_much(installed_mbps), design=design)
    assert run.metrics["unserved_mbps"] == 0
    cost = run.metrics["total_cost"]
    assert cost is not None
    if design == "shortest_path":  # all on one of the links
        assert cost >= 2e9 + small * 1e8
    else:
        assert cost == pytest.approx(2e9 + small * 1e8, rel=1e-9)
    if design == "optimum":
        assert run.status == "optimal"


@pytest.mark.parametrize("installed_mbps", [0.0, 2.0])
def test_the_least_is_left_out_within_a_budget(installed_mbps: float) -> None:
    """The large modules and one small one are within it."""
    run = planner.solve(beside_much(installed_mbps, budget=2.1e9), design="greedy")
    assert run.metrics["unserved_mbps"] == pytest.approx(10.0 - 3.0 - 2 * installed_mbps, rel=1e-3)


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=seeds, routing=st.booleans())
def test_the_least_cost_is_that_of_a_program_over_all_paths(seed: int, routing: bool) -> None:
    problem = restricted_problem(seed, routing=routing)
    right = least_cost_on_paths(problem)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(right, rel=2e-4, abs=1e-6)
    assert run.decision.proof.bound <= right * (1 + 1e-6) + 1e-6
    assert not len(run.violations)


@pytest.mark.slow
@settings(max_examples=4)
@given(seed=seeds, routing=st.booleans())
def test_cuts_over_all_states_find_the_same(seed: int, routing: bool) -> None:
    problem = restricted_problem(seed, routing=routing)
    result = Master(problem, Options(gap=1e-6)).iterate(allowed=least_shed(problem))
    assert result is not None
    assert result.objective == pytest.approx(least_cost_on_paths(problem), rel=1e-4, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=3)
@given(seed=seeds)
def test_no_design_is_cheaper_and_each_plan_is_checked(seed: int) -> None:
    problem = restricted_problem(seed)
    right = least_cost_on_paths(problem)
    for run in planner.compare(problem, designs=("rounding", "greedy", "shortest_path")):
        assert run.metrics["total_cost"] >= right * (1 - 1e-6) - 1e-6, run.label
        assert run.metrics["unserved_mbps"] == pytest.approx(0, abs=1e-6), run.label
        assert not len(run.violations), run.label
        bought = run.plan.purchases[["link", "module", "count"]]
        assert capacity.measure(problem, from_tables(problem, {"purchases": bought}), None)[
            "purchase_cost"
        ] == pytest.approx(run.metrics["purchase_cost"])


@pytest.mark.slow
def test_less_protection_and_more_tunnels_never_cost_more() -> None:
    for seed in (1, 2):
        problem = restricted_problem(seed)
        assert problem.classes is not None
        looser = replace(problem, classes=problem.classes.assign(protected_share=0.0))
        assert least_cost(looser) <= least_cost(problem) * (1 + 1e-4) + 1e-9
        normal = replace(problem, failures=None)  # a failure may cut tunnels off, whose demands need not fit
        assert least_cost(replace(normal, tunnels=None)) <= least_cost(normal) * (1 + 1e-4) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "years"), [(2, 1), (4, 2), (7, 2)])
def test_budgets_with_tunnels_limits_and_years_reach_what_the_formal_model_does(
    seed: int, years: int
) -> None:
    pyo = pytest.importorskip("pyomo.environ")
    problem = limit_latency(restricted_problem(seed, years=years), seed)
    cost = planner.solve(problem, design="optimum").metrics["purchase_cost"] or 0.0
    delivered = []
    for share in (0.0, 0.4, 0.8, 1.0):
        within = adjust(problem, budget=share * cost)
        model = capacity.formulation(within)
        pyo.SolverFactory("appsi_highs").solve(model)
        run = planner.solve(within, design="optimum")
        delivered.append(run.metrics["delivered_mbps"] or 0.0)
        assert delivered[-1] == pytest.approx(pyo.value(model.proof_objective), rel=1e-4, abs=1e-4)
        assert run.metrics["over_budget"] == pytest.approx(0.0, abs=1e-6)
        assert not len(run.violations)
    assert delivered == pytest.approx(sorted(delivered))  # a larger budget never delivers less


def least_cost(problem: capacity.CapacityPlanning) -> float:
    cost = planner.solve(problem, design="optimum").metrics["total_cost"]
    assert cost is not None
    return cost


def test_a_class_that_need_not_survive_costs_nothing_in_a_failure() -> None:
    demands = pd.DataFrame(
        [("a", "c", 5.0, "gold"), ("a", "c", 10.0, "bulk")],
        columns=["source", "target", "rate_mbps", "class"],
    )
    classes = pd.DataFrame([("gold", 1.0), ("bulk", 2.0)], columns=["class", "priority"])
    problem = adjust(ring(demands=demands), failures="links")
    assert least_cost(problem) == pytest.approx(16.0)  # 15 Mbit/s on both ways round
    assert least_cost(replace(problem, classes=classes)) == pytest.approx(16.0)
    shares = classes.assign(protected_share=[1.0, 0.5])
    assert least_cost(replace(problem, classes=shares)) == pytest.approx(4.0)  # 10 on both ways round
    shares = classes.assign(protected_share=[1.0, 0.0])
    assert least_cost(replace(problem, classes=shares)) == pytest.approx(4.0)


def test_demands_take_their_tunnels_only() -> None:
    problem = ring(tunnels=pd.DataFrame({"path": ["a > b > c"]}))
    run = planner.solve(problem, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(8.0)  # 15 Mbit/s on two links of 10
    assert run.plan.tunnel_flows.to_numpy().tolist() == [["a > b > c", 15.0]]
    assert not len(run.plan.flows)
    both = ring(tunnels=pd.DataFrame({"path": ["a > b > c", "c > a"], "name": ["long", "short"]}))
    run = planner.solve(both, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(4.0)
    assert set(run.plan.tunnel_flows["tunnel"]) <= {"long", "short"}


def test_a_failure_of_all_tunnels_cuts_a_demand_off() -> None:
    problem = adjust(ring(tunnels=pd.DataFrame({"path": ["a > b > c"]})), failures="links")
    assert problem.cut_off[:, 0].tolist() == [False, True, True, False]
    assert planner.solve(problem, design="optimum").metrics["cut_off_mbps"] == 15.0


def test_growth_of_each_demand_counts_from_the_first_year() -> None:
    demands = pd.DataFrame(
        [("a", "c", 10.0, 0.5), ("a", "b", 1.0, None)], columns=["source", "target", "rate_mbps", "growth"]
    )
    years = pd.DataFrame([(2027, 1.0), (2029, 2.0)], columns=["year", "demand_factor"])
    problem = ring(demands=demands, years=years)
    assert problem.rate_mbps.tolist() == [[10.0, 1.0], [45.0, 2.0]]


def test_purchases_of_a_plan_are_those_of_its_counts() -> None:
    problem = restricted_problem(1)
    decision = capacity.designs.optimum.plan(problem)
    again = from_tables(problem, decision.plan.to_tables())
    counts = capacity.plan.check.read_counts(problem, again)
    assert tabulate_purchases(problem, counts).equals(decision.plan.purchases)
