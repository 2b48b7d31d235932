"""Fair optima against Clarabel, plain filling by linear programs, and their own bound."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from planner import Options, Status
from planner.backends.linear_program import LinearProgram
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.flows import link_flow_program
from planner_models.traffic import SYSTEM, Traffic, measure
from planner_models.traffic.designs import fitted_plan, utility_maximization
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems


def solve(problem: Traffic, **parameters: Any) -> Any:
    """Run `utility` through the engine, which checks plan and guarantees in every test."""
    return evaluate(SYSTEM, problem, Entry(label="u", design=SYSTEM.design("utility"), parameters=parameters))


def by_clarabel(problem: Traffic, model: LinearProgram | None = None) -> float:
    """Return the largest mean of log(share) over all routings, or a program's, by exponential cones."""
    model = link_flow_program.build(problem, "total").program if model is None else model
    requested = problem.rate_mbps[problem.rate_mbps > 0]
    size, count = model.cost.size, len(requested)
    rows, right, cones = [], [], []
    fixed = model.row_lower == model.row_upper
    for matrix, limit, cone in (
        (model.matrix[fixed], model.row_upper[fixed], clarabel.ZeroConeT),
        (model.matrix[~fixed], model.row_upper[~fixed], clarabel.NonnegativeConeT),
        (-sp.eye_array(size), np.zeros(size), clarabel.NonnegativeConeT),
    ):
        rows.append(sp.hstack([matrix, sp.csr_array((matrix.shape[0], count))]))
        right.append(limit)
        cones.append(cone(len(limit)))
    served = size - count + np.arange(count)
    rows.append(sp.csr_array((1 / requested, (np.arange(count), served)), shape=(count, size + count)))
    right.append(np.ones(count))
    cones.append(clarabel.NonnegativeConeT(count))
    for k in range(count):
        positions = ([0, 2], [size + k, size - count + k])
        rows.append(sp.csr_array(([-1.0, -1 / requested[k]], positions), shape=(3, size + count)))
        right.append(np.array([0.0, 1.0, 0.0]))
        cones.append(clarabel.ExponentialConeT())
    config = clarabel.DefaultSettings()
    config.verbose = False
    full = size + count
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((full, full)),
        np.r_[np.zeros(size), -np.ones(count)],
        sp.csc_matrix(sp.vstack(rows)),
        np.concatenate(right),
        cones,
        config,
    )
    return -float(solver.solve().obj_val) / count


@settings(max_examples=25)
@given(problems(max_nodes=5, max_demands=4))
def test_proportional_is_what_clarabel_finds(problem: Traffic) -> None:
    run = solve(problem)
    assert run.proof.status is Status.OPTIMAL
    best = np.exp(by_clarabel(problem))
    assert run.metrics["geometric_rate_share"] == pytest.approx(best, rel=2e-4)
    assert run.proof.bound >= best * (1 - 1e-5)


@pytest.mark.slow
@settings(max_examples=25)
@given(problems(max_nodes=5, max_demands=4))
def test_max_min_begins_where_concurrent_flow_ends_and_leaves_nothing(problem: Traffic) -> None:
    run = solve(problem, fairness="max-min")
    assert run.proof.status is Status.OPTIMAL
    first = optimum.route(problem, objective="concurrent").proof.objective
    assert first is not None
    assert run.metrics["min_rate_share"] == pytest.approx(min(1.0, first), rel=1e-6)
    # no demand can have more unless one that has no more gets less
    share = _served(problem, run.plan) / problem.rate_mbps
    for k in range(len(share)):
        if share[k] >= 1 - 1e-6:
            continue
        floor = np.where(share <= share[k] + 1e-6, share, share[k])
        floor[k] = share[k]
        assert _most(problem, floor, k) <= share[k] + 1e-4


def _served(problem: Traffic, plan: Any) -> np.ndarray:
    from planner_models.traffic.plan.verified_flow import verify_flow

    return verify_flow(problem, plan).served_mbps


def _most(problem: Traffic, floor: np.ndarray, k: int) -> float:
    """Return the largest share of demand k when every demand j gets at least floor[j], by SciPy."""
    from scipy.optimize import linprog

    model = link_flow_program.build(problem, "total").program
    count = len(problem.rate_mbps)
    cost = np.zeros(model.cost.size)
    served = model.cost.size - count
    cost[served + k] = -1 / problem.rate_mbps[k]
    fixed = model.row_lower == model.row_upper
    lower = np.r_[np.zeros(served), floor * problem.rate_mbps * (1 - 1e-7)]
    solution = linprog(
        cost,
        A_ub=sp.csc_matrix(model.matrix[~fixed]),
        b_ub=model.row_upper[~fixed] * (1 + 1e-9),
        A_eq=sp.csc_matrix(model.matrix[fixed]),
        b_eq=model.row_upper[fixed],
        bounds=np.column_stack([lower, model.upper]),
    )
    assert solution.status == 0
    return float(-solution.fun)


def test_the_textbook_example() -> None:
    # a demand over both links, and one over each: 1/3 and 2/3, or a half each
    links = both_ways([("a", "b", 1.0), ("b", "c", 1.0)])
    problem = network(links, [("a", "c", 1.0), ("a", "b", 1.0), ("b", "c", 1.0)])
    proportional, fair = solve(problem), solve(problem, fairness="max-min")
    assert _served(problem, proportional.plan) == pytest.approx([1 / 3, 2 / 3, 2 / 3], rel=0.03)
    assert _served(problem, fair.plan) == pytest.approx([0.5, 0.5, 0.5])


def test_a_fat_tree_serves_everyone() -> None:
    problem = generators.fat_tree(k=4)
    for fairness in ("proportional", "max-min"):
        assert solve(problem, fairness=fairness).metrics["min_rate_share"] == pytest.approx(1.0)


def test_a_time_limit_leaves_a_bound_or_nothing() -> None:
    decision = utility_maximization.route(
        generators.abilene().scale_demands(3), options=Options(time_limit_s=1e-6)
    )
    assert decision.proof.status in (Status.UNDECIDED, Status.FEASIBLE)


def test_a_program_larger_than_the_time_limit_leaves_a_heuristic_within_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = generators.abilene().scale_demands(3)
    optimum = utility_maximization.route(problem)
    assert optimum.proof.bound is not None
    monkeypatch.setattr(utility_maximization, "PROGRAM_S_PER_FLOW", 1.0)
    assert utility_maximization.route(problem).proof.bound == optimum.proof.bound  # without a limit
    entry = Entry(label="u", design=SYSTEM.design("utility"))
    run = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=5.0))
    assert run.plan is not None
    assert not len(run.violations.of_limits(frozenset({"capacity", "demand"})))
    value = run.metrics["geometric_rate_share"]
    assert value is not None
    assert value == pytest.approx(run.proof.objective)
    assert 0 < value <= optimum.proof.bound + 1e-9 < 1.0 == run.proof.bound
    assert "flow variables, takes longer than the limit of 5 s" in run.proof.reasons[0]
    monkeypatch.setattr(fitted_plan, "MAX_FLOWS", 0)
    large = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=5.0))  # for `fitted_plan`
    assert large.proof.backend == "equal-cost multipath"
    assert not len(large.violations.of_limits(frozenset({"capacity", "demand"})))
    assert large.metrics["geometric_rate_share"] == pytest.approx(large.proof.objective)
    assert 0 < (large.proof.objective or 0.0) <= optimum.proof.bound + 1e-9
    assert large.proof.reasons


def test_without_demand_there_is_nothing_to_share() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 0.0)])
    decision = utility_maximization.route(problem)
    assert decision.plan is not None
    assert decision.plan.links["load_mbps"].tolist() == [0.0, 0.0]
    assert measure(problem, decision.plan, None)["mean_rate_share"] is None
