"""Compiled analysis of failures against the designs, which run again on each failed problem."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.arrays import Floats
from planner.testing.kernels import compare_with_python
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.failure_analysis import Reconvergence
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.plan import flow_by_demand
from planner_models.traffic.plan.reconvergence.evaluation import ShortestPathRouting
from planner_models.traffic.plan.reconvergence.shortest_paths import admission_order
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.failure_sets import FailureSet, build_failure_set, join_sets
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import class_problems, problems

DECIDE = {False: ecmp.route, True: ecmp.route_single}


MOST = 5  # failures of a problem: the design runs again for each


def some_failures(problem: Traffic) -> FailureSet:
    nothing = FailureSet.of_rows(["nothing"], [np.zeros(0, dtype=np.int64)], len(problem.links))
    sets = [build_failure_set(problem, source) for source in ("links", "nodes", "double_links")]
    result = join_sets([nothing, *sets])
    return result.select(np.unique(np.linspace(0, len(result) - 1, MOST).astype(int)))


def admit(problem: Traffic, flow: Floats) -> float:
    """Admit demands in order, with their flows (K, E) where all are sent; return what fits."""
    residual, admitted = problem.capacity_mbps.copy(), 0.0
    for k in admission_order(problem):
        used = flow[k] > 0
        if not used.any():
            continue
        share = flow[k, used] / problem.rate_mbps[k]
        amount = min(problem.rate_mbps[k], float((residual[used] / share).min()))
        residual[used] -= amount * share
        admitted += amount
    return admitted


def compare_with_design(problem: Traffic, failures: FailureSet, *, is_single: bool) -> None:
    solution = ShortestPathRouting(problem=problem, is_single=is_single).solve(
        failures, with_loads=True, with_demands=True
    )
    scale = float(problem.rate_mbps.sum())
    for s in range(len(failures)):
        up = ~failures.link_down[s]
        if not up.any():
            assert solution.sent[s] == 0
            continue
        failed = replace(problem, links=problem.links[up])
        plan = DECIDE[is_single](failed).plan
        assert plan is not None
        flow = verify_flow(failed, plan)
        np.testing.assert_allclose(solution.load[s, up], flow.load_mbps, rtol=0, atol=1e-12 * scale)
        assert solution.sent[s] == pytest.approx(flow.served_mbps.sum(), abs=1e-9 * scale)
        delivered = delivered_rates(failed, flow)
        np.testing.assert_allclose(solution.by_demand[s], delivered, rtol=0, atol=1e-7 * scale)
        assert solution.delivered[s] == pytest.approx(delivered.sum(), abs=1e-7 * scale)
        by_demand = flow_by_demand(failed, plan).toarray()
        assert solution.admitted[s] == pytest.approx(admit(failed, by_demand), abs=1e-6 * scale)


@settings(max_examples=5)
@given(problems(), st.booleans(), st.sampled_from(["drop", "max-min"]))
def test_outcomes_are_those_of_the_design(problem: Traffic, is_single: bool, overload: str) -> None:
    problem = replace(problem.scale_demands(2.0), overload=overload)
    compare_with_design(problem, some_failures(problem), is_single=is_single)


@settings(max_examples=4)
@given(class_problems(), st.sampled_from(["drop", "priority", "max-min"]))
def test_classes_share_links_as_the_problem_says(problem: Traffic, overload: str) -> None:
    problem = replace(problem.scale_demands(2.0), overload=overload)
    compare_with_design(problem, some_failures(problem), is_single=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sndlib/nobel-germany", "topozoo/Abilene"])
def test_loads_of_real_networks(name: str) -> None:
    problem = Traffic.from_tables(topohub.read(name, seed=1, peak_utilization=1.3))
    failures = build_failure_set(problem, "links")
    compare_with_design(problem, failures.select(np.arange(0, len(failures), 6)), is_single=False)


@pytest.mark.slow
@pytest.mark.parametrize("overload", ["drop", "max-min"])
def test_python_gives_the_bits_of_compiled_code(overload: str) -> None:
    names, peaks = ("sndlib/abilene", "sndlib/polska", "sndlib/nobel-us"), (0.9, 1.5, 3.0)
    with compare_with_python() as counts:
        for name, peak in itertools.product(names, peaks):
            problem = Traffic.from_tables(topohub.read(name, seed=1, peak_utilization=peak))
            routing = ShortestPathRouting(problem=replace(problem, overload=overload))
            routing.solve(build_failure_set(problem, "links"), with_loads=True, with_demands=True)
    package = "planner_models.traffic.plan.reconvergence"
    for kernel in (f"{package}.evaluation.evaluate", f"{package}.shortest_paths.find_trees"):
        assert counts[kernel] == len(names) * len(peaks)


def test_a_second_path_of_the_same_weight_but_for_rounding() -> None:
    """0.1 + 0.2 is not 0.3 in binary: both paths stay equally short when a failure takes the first."""
    links = [
        ("a", "b", 0.3),
        ("a", "c", 0.1),
        ("c", "b", 0.2),
        ("b", "d", 1.0),
        ("e", "a", 1.0),
        ("e", "b", 1.3),
    ]
    frame = pd.DataFrame(links, columns=["tail", "head", "weight"]).assign(capacity_mbps=4.0)
    demands = pd.DataFrame([("a", "d", 6.0), ("e", "d", 3.0)], columns=["source", "target", "rate_mbps"])
    problem = Traffic.from_tables({"links": frame, "demands": demands})
    compare_with_design(problem, some_failures(problem), is_single=False)


def test_probabilities_sum_up_what_each_demand_loses() -> None:
    links = pd.DataFrame(
        [("a", "b", 4.0), ("b", "c", 4.0), ("a", "c", 2.0)], columns=["tail", "head", "capacity_mbps"]
    )
    demands = pd.DataFrame([("a", "c", 3.0), ("a", "b", 1.0)], columns=["source", "target", "rate_mbps"])
    failures = pd.DataFrame(
        [("direct", "a->c", 0.1), ("first", "a->b", 0.2)], columns=["failure", "member", "probability"]
    )
    problem = Traffic.from_tables({"links": links, "demands": demands, "failures": failures})
    analysis = Reconvergence.of(problem, build_failure_set(problem))
    _, sums = analysis.evaluate(np.array([0, 1]))
    table = analysis.conclude([sums])[0].frame.set_index("demand")
    # a->c is 1 above its direct link without a failure, fits on a->b->c, and is 1 above again
    assert table.loc["a->c", "expected_loss_mbps"] == pytest.approx(0.7 * 1 + 0.2 * 1)
    assert table.loc["a->c", "availability"] == pytest.approx(0.1)
    assert table.loc["a->b", "expected_loss_mbps"] == pytest.approx(0.2 * 1)
    assert table.loc["a->b", "availability"] == pytest.approx(0.8)
