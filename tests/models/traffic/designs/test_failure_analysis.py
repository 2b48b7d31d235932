"""Analysis of fixed plans under failures: against a simulation by hand, and the laws it must obey."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner_models.networks.node_lists import parse_nodes
from planner_models.traffic.designs import ecmp, tunnels
from planner_models.traffic.designs.failure_analysis import FixedPlan, Reconvergence
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.designs.reoptimized_failures import Reoptimization
from planner_models.traffic.plan.check import check
from planner_models.traffic.plan.metrics import measure
from planner_models.traffic.plan.rerouting import read_routing
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.failure_sets import build_failure_set, join_sets
from planner_models.traffic.problem.problem import Traffic
from tests.models.traffic.networks import problems

LINKS = pd.DataFrame(
    [(a, b, 10.0) for a, b in ["ab", "ba", "bd", "db", "ac", "ca", "cd", "dc"]],
    columns=["tail", "head", "capacity_mbps"],
)
DEMANDS = pd.DataFrame([("a", "d", 12.0), ("c", "d", 3.0)], columns=["source", "target", "rate_mbps"])
TUNNELS = pd.DataFrame([("a > b > d", 2.0), ("a > c > d", 1.0), ("c > d", 1.0)], columns=["path", "weight"])


def square() -> Traffic:
    return Traffic.from_tables({"links": LINKS, "demands": DEMANDS, "tunnels": TUNNELS})


def outcomes(problem: Traffic, *, is_local: bool) -> dict[str, dict[str, float | None]]:
    plan = tunnels.route(problem).plan
    assert plan is not None
    failures = build_failure_set(problem, "links")
    analysis = FixedPlan.of(problem, plan, failures, "local" if is_local else "none")
    result, _ = analysis.evaluate(np.arange(len(failures)))
    return {name: {**item.metrics, **item.figures} for name, item in zip(failures.names, result, strict=True)}


def test_without_restoration_the_traffic_of_lost_routes_is_lost() -> None:
    result = outcomes(square(), is_local=False)
    assert result["a<->b"]["delivered_mbps"] == pytest.approx(7.0)
    assert result["a<->b"]["lost_mbps"] == pytest.approx(8.0)
    assert result["a<->c"]["delivered_mbps"] == pytest.approx(11.0)
    assert result["c<->d"]["lost_mbps"] == pytest.approx(7.0)


def test_local_restoration_moves_traffic_to_the_routes_that_survive() -> None:
    result = outcomes(square(), is_local=True)
    # all 12 of a->d on a > c > d: 10 of them pass a->c, then 10 of 13 pass c->d; admission serves 10
    assert result["a<->b"]["delivered_mbps"] == pytest.approx(10.0)
    assert result["a<->b"]["max_utilization"] == pytest.approx(1.5)
    assert result["a<->b"]["admitted_mbps"] == pytest.approx(10.0)
    assert result["a<->c"]["delivered_mbps"] == pytest.approx(13.0)
    # c->d has no other route
    assert result["c<->d"]["delivered_mbps"] == pytest.approx(10.0)
    assert result["c<->d"]["lost_mbps"] == pytest.approx(5.0)


@pytest.mark.slow
@settings(max_examples=10)
@given(problems(max_nodes=5), st.data())
def test_the_check_of_a_plan_on_the_failed_network_says_the_same(
    problem: Traffic, data: st.DataObject
) -> None:
    """A plan made before a failure is read on the network after it; the loss is that of the analysis."""
    decide = data.draw(st.sampled_from([ecmp.route, optimum.route]))
    plan = decide(problem).plan
    assert plan is not None
    failures = build_failure_set(problem, "links")
    row = data.draw(st.integers(0, len(failures) - 1))
    failed = adjust(problem, fail_links=(failures.names[row],))
    if not len(failed.links):
        return
    read = read_routing(failed, plan.to_tables())
    analysis = FixedPlan.of(problem, plan, failures, "none")
    outcome = analysis.evaluate(np.array([row]))[0][0]
    metrics = measure(failed, read, None)
    for name in ("delivered_mbps", "lost_mbps", "shed_mbps", "max_utilization", "overloaded_links"):
        assert metrics[name] == pytest.approx(outcome.metrics[name], abs=1e-6), name
    rode = set(check(failed, read).frame.query("limit == 'failed_links'")["where"])
    load = plan.links["load_mbps"].to_numpy()
    down = np.flatnonzero(failures.link_down[row])
    assert len(rode) == np.count_nonzero(load[down] > 0)


def test_what_rides_failed_links_is_said() -> None:
    problem = square()
    plan = tunnels.route(problem).plan
    assert plan is not None
    failed = adjust(problem, fail_links=("a<->b",))
    read = read_routing(failed, plan.to_tables())
    assert read.lost is not None
    assert read.lost["rate_mbps"].tolist() == pytest.approx([8.0])
    assert measure(failed, read, None)["lost_mbps"] == pytest.approx(8.0)
    assert "failed_links" in set(check(failed, read).frame["limit"])


@pytest.mark.parametrize("arrow", [None, " > ", "->"])
def test_routes_over_failed_links_are_lost_in_each_notation(arrow: str | None) -> None:
    problem = square()
    routes = tunnels.route(problem).plan.to_tables()["routes"]  # type: ignore[union-attr]
    if arrow is not None:
        routes = routes.assign(path=[arrow.join(parse_nodes(path)) for path in routes["path"]])
    read = read_routing(adjust(problem, fail_links=("a<->b",)), {"routes": routes})
    assert read.lost is not None
    assert read.lost["rate_mbps"].tolist() == pytest.approx([8.0])


def test_flows_without_routes_move_to_the_paths_that_make_them_up() -> None:
    problem = Traffic.from_tables({"links": LINKS, "demands": DEMANDS})
    result = planner.failures(problem, design="optimum", failures="links", restoration="local")
    assert "moves to those of its demand that survive" in result.restoration
    lost = {failure.element: failure.metrics["lost_mbps"] for failure in result.failures}
    assert lost["c<->d"] == pytest.approx(5.0)  # of 15 Mbit/s that share b->d, and c->d has no other path


def test_a_plan_made_elsewhere_is_examined() -> None:
    problem = square()
    plan = tunnels.route(problem).plan
    result = planner.failures(problem, plan=plan, failures="links")
    assert result.run.label == "the plan"
    assert "moves to those of its demand that survive" in result.restoration
    worst = result.failures[0]
    assert worst.element in ("a<->b", "b<->d", "c<->d")
    again = planner.failures(problem, plan=plan, failures="links", restoration="reconverge")
    assert "shortest paths" in again.restoration


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ("ffc", "moves to those of its demand that survive"),
        ("robust", "a controller routes again what the plan sends"),
        ("weights", "by the plan's weights, which stay as they are"),
    ],
)
def test_a_design_is_restored_as_it_is_made_for(design: str, words: str) -> None:
    """Delivered traffic in each failure is at least what the plan guarantees, and as its metrics say."""
    problem = Traffic.from_tables({"links": LINKS, "demands": DEMANDS})
    result = planner.failures(problem, design=design, failures="links")
    assert words in result.restoration
    assert result.run.plan is not None
    again = planner.failures(problem, plan=result.run.plan, failures="links")
    assert again.to_frame()["delivered_mbps"].tolist() == result.to_frame()["delivered_mbps"].tolist()
    worst = result.metrics.get("worst_delivered_mbps")
    if worst is not None:
        lower = min(failure.metrics["delivered_mbps"] or 0.0 for failure in result.failures)
        assert lower == pytest.approx(worst, rel=1e-6)
        assert worst >= (result.metrics["guaranteed_mbps"] or 0.0) - 1e-6


@settings(max_examples=10)
@given(problems())
def test_fewer_failures_have_no_worse_worst_case(problem: Traffic) -> None:
    failures = build_failure_set(problem, "links")
    analysis = Reconvergence.of(problem, failures)
    delivered = [item.metrics["delivered_mbps"] for item in analysis.evaluate(np.arange(len(failures)))[0]]
    fewer = np.arange(0, len(failures), 2)
    share = replace(analysis, failures=failures.select(fewer))
    some = [item.metrics["delivered_mbps"] for item in share.evaluate(np.arange(len(fewer)))[0]]
    assert min(some, default=0.0) >= min(delivered) - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("is_warm", [False, True])
@settings(max_examples=8)
@given(problem=problems(max_nodes=5))
def test_reoptimized_outcomes_are_those_of_the_design(problem: Traffic, is_warm: bool) -> None:
    """Small problems are solved again; here also from the basis without failures, as large ones are."""
    problem = problem.scale_demands(1.5)
    failures = join_sets([build_failure_set(problem, source) for source in ("links", "nodes")])
    failures = failures.select(np.unique(np.linspace(0, len(failures) - 1, 5).astype(int)))
    analysis = Reoptimization(problem=problem, failures=failures)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum_search, "solves_total_over_paths", lambda *_: is_warm)
        assert (analysis.basis is not None) == (is_warm and problem.routable.rate_mbps.any())
    full = analysis.intact.delivered_mbps.sum()
    result, _ = analysis.evaluate(np.arange(len(failures)))
    for name, item in zip(failures.names, result, strict=True):
        delivered = item.metrics["delivered_mbps"]
        assert delivered is not None
        assert delivered <= full + 1e-6  # a failure never helps
        assert delivered <= item.figures["bound_mbps"] + 1e-6
        assert item.metrics["max_utilization"] <= 1 + 1e-6  # type: ignore[operator]
        kind = "fail_nodes" if name in set(problem.nodes["node"].astype(str)) else "fail_links"
        failed = adjust(problem, **{kind: (name,)})
        if len(failed.links):
            expected = optimum.route(failed, objective="delivered").proof.objective
            assert delivered == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_tables_that_name_failed_links_are_no_fault() -> None:
    rows = pd.DataFrame([("duct", "a<->b"), ("duct", "c"), ("site", "d")], columns=["failure", "member"])
    problem = Traffic.from_tables({**square().to_tables(), "failures": rows})
    result = planner.failures(problem, restoration="reoptimize")
    assert {failure.name: failure.metrics["delivered_mbps"] for failure in result.failures} == {
        "duct": 0.0,
        "site": 0.0,
    }
