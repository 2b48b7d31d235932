"""Failures of single elements against a plain loop over networkx, and what becomes of an interruption."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import planner
from planner.errors import InputError
from planner.runs.trials import _why_no_plan
from planner.scenarios.catalogue import find_system
from planner.sweeps.failure_list import Failures
from planner_models.traffic import Traffic
from tests import commands

TRAFFIC = find_system("traffic")


def network(
    links: list[tuple[str, str, float]], demands: list[tuple[str, str, float]], **columns: list[float]
) -> Traffic:
    frame = pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]).assign(**columns)
    rates = pd.DataFrame(demands, columns=["source", "target", "rate_mbps"])
    return Traffic.from_tables({"links": frame, "demands": rates})


def random_network(seed: int) -> tuple[Traffic, nx.DiGraph]:
    """Return a ring of duplex lines with chords, and one demand that is more than fits."""
    random = np.random.default_rng(seed)
    ring = [(i, (i + 1) % 6) for i in range(6)]
    chords = [(0, 3), (1, 4)][: int(random.integers(0, 3))]
    graph = nx.DiGraph()
    for a, b in [*ring, *chords]:
        capacity = float(random.integers(1, 9))
        graph.add_edge(f"n{a}", f"n{b}", capacity=capacity)
        graph.add_edge(f"n{b}", f"n{a}", capacity=capacity)
    links = [(a, b, graph[a][b]["capacity"]) for a, b in graph.edges]
    return network(links, [("n0", "n2", 100.0)]), graph


def delivered_without(graph: nx.DiGraph, kind: str, name: str) -> float:
    remainder = graph.copy()
    if kind == "node":
        remainder.remove_edges_from([edge for edge in graph.edges if name in edge])
    else:
        a, b = name.split("<->")
        remainder.remove_edges_from([(a, b), (b, a)])
    return float(nx.maximum_flow_value(remainder, "n0", "n2"))


def test_faults_of_a_failure_are_told_apart() -> None:
    run = planner.solve(network([("a", "b", 1.0)], [("a", "b", 1.0)]), design="optimum")
    failed = replace(run, plan=None, error=InputError("links row 1: tail is missing", "a rule is broken"))
    assert _why_no_plan(failed) == "links row 1: tail is missing; a rule is broken"


@pytest.mark.parametrize("seed", range(3))
def test_each_failure_costs_what_a_maximum_flow_says(seed: int) -> None:
    problem, graph = random_network(seed)
    result = planner.failures(problem, design="optimum")
    lines = graph.number_of_edges() // 2
    assert len(result.failures) == result.total == lines + 6
    before = float(nx.maximum_flow_value(graph, "n0", "n2"))
    for failure in result.failures:
        expected = delivered_without(graph, failure.kind, failure.element)
        assert failure.metrics["delivered_mbps"] == pytest.approx(expected, abs=1e-6)
        assert failure.cost == pytest.approx(before - expected, abs=1e-6)
        assert failure.share == pytest.approx((before - expected) / 100.0, abs=1e-8)
        assert failure.is_harmless == (expected >= before - 1e-6)
    costs = [failure.cost for failure in result.failures]
    assert costs == sorted(costs, key=lambda cost: -(cost or 0.0))
    assert result.harmless == sum(failure.is_harmless for failure in result.failures)
    worst = result.failures[0]
    assert f"The failure of {worst.kind} {worst.element} hurts most" in result.verdict
    count = f"{result.harmless} of" if result.harmless else "each of the"
    assert f"; {count} {len(result.failures)} failures of single elements" in result.verdict


def triangle() -> Traffic:
    lines = [("a", "b", 4.0), ("b", "c", 3.0), ("a", "c", 2.0)]
    both = [*lines, *((head, tail, capacity) for tail, head, capacity in lines)]
    return network(both, [("a", "c", 4.0)])


def test_only_elements_that_can_fail_are_tried() -> None:
    kinds = {kind.name for kind in TRAFFIC.problem.elements if kind.with_role("failure")}
    result = planner.failures(triangle())
    assert {failure.kind for failure in result.failures} == kinds
    only = planner.failures(triangle(), kinds="link")
    assert {failure.kind for failure in only.failures} == {"link"}
    assert {failure.element for failure in only.failures} == {"a<->b", "b<->c", "a<->c"}


def test_elements_that_have_failed_already_are_not_tried() -> None:
    result = planner.failures(triangle(), kinds=["link"], changes={"problem.fail_links": ["a<->b"]})
    assert {failure.element for failure in result.failures} == {"b<->c", "a<->c"}
    assert result.run.metrics["delivered_mbps"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kinds": "lnk"}, "kinds: traffic has no 'lnk' that can fail; did you mean 'link'?"),
        ({"kinds": []}, "kinds: none is named"),
        ({"limit": 0}, "limit is 0, must be at least 1"),
        ({"workers": 0}, "workers is 0, must be at least 1"),
        ({"design": "optimun"}, "did you mean 'optimum'?"),
    ],
)
def test_bad_arguments_are_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        planner.failures(triangle(), **given)
    assert says in str(error.value)


def test_the_limit_takes_the_busiest_elements() -> None:
    result = planner.failures(triangle(), kinds="link", limit=1, design="optimum")
    assert len(result.failures) == 1
    assert result.total == 3
    assert "2 of 3 failures were not tried" in result.verdict


ODD = ["x*", "[y]", "Zürich #2", "a b", "q?", "100%", "-n"]


@pytest.mark.slow
def test_odd_names_select_themselves_only() -> None:
    links = [(ODD[i], ODD[(i + 1) % len(ODD)], 5.0) for i in range(len(ODD))]
    both = [*links, *((head, tail, rate) for tail, head, rate in links)]
    problem = network(both, [(ODD[0], ODD[3], 8.0)])
    result = planner.failures(problem, design="optimum")
    assert len(result.failures) == 2 * len(ODD)
    assert not [failure.error for failure in result.failures if failure.error]
    for failure in result.failures:
        if failure.kind == "link":
            assert failure.metrics["delivered_mbps"] == pytest.approx(5.0)
    json.dumps(result.to_dict(), allow_nan=False)


def interrupt_after(count: int) -> Callable[[int, int, int], None]:
    def advance(finished: int, failed: int, total: int) -> None:
        if finished == count:
            raise KeyboardInterrupt

    return advance


def test_an_interruption_keeps_what_was_found() -> None:
    result = planner.failures(triangle(), advance=interrupt_after(2))
    assert result.is_interrupted
    assert result.exit_code == 130
    assert len(result.failures) == 2
    assert "Interrupted: 4 of 6 failures were not tried." in result.verdict
    failures = planner.failures(triangle())
    results = {(failure.kind, failure.element): failure.cost for failure in failures.failures}
    assert all(
        results[failure.kind, failure.element] == pytest.approx(failure.cost) for failure in result.failures
    )


def test_what_is_found_is_shown_while_the_search_runs() -> None:
    seen: list[Failures] = []
    planner.failures(triangle(), found=seen.append)
    assert seen
    assert len(seen[0].failures) == 1


def test_the_map_has_what_each_failure_costs() -> None:
    result = planner.failures(triangle(), design="optimum")
    drawing = result.map
    assert drawing is not None
    costs = {
        failure.element: 100 * (failure.share or 0.0) for failure in result.failures if failure.kind == "link"
    }
    for row in drawing.links.itertuples():
        assert row.value == pytest.approx(max(0.0, costs[str(row.element)]))
    nodes = {
        failure.element: 100 * (failure.share or 0.0) for failure in result.failures if failure.kind == "node"
    }
    assert dict(zip(drawing.nodes["node"], drawing.nodes["value"], strict=True)) == pytest.approx(nodes)
    assert drawing.unit == "%"
    assert result.plot() is not None


def test_a_problem_without_a_plan_tries_nothing() -> None:
    problem = network([("a", "b", 1.0)], [("a", "b", 5.0)])
    result = planner.failures(problem, design="optimum", service="all")
    assert result.failures == ()
    assert result.exit_code == 3
    assert "No failure was tried." in result.verdict


@pytest.mark.slow
def test_the_command_fits_a_terminal_and_answers_as_python() -> None:
    evaluation = commands.planner("failures", "traffic/abilene", "--kinds", "link", "--design", "ecmp")
    assert evaluation.code == 0, evaluation.err
    assert "hurts most" in evaluation.out
    table = [line for line in evaluation.out.splitlines() if "<->" in line and "hurts" not in line]
    assert len(table) == 15, "one table, not several beside each other"
    plain = commands.planner("failures", "traffic/abilene", "--kinds", "link", "--design", "ecmp", "--json")
    result = planner.failures("traffic/abilene", kinds="link", design="ecmp")
    results = json.loads(plain.out)
    assert results["verdict"] == result.verdict
    assert [failure["element"] for failure in results["failures"]] == [
        failure.element for failure in result.failures
    ]


@pytest.mark.slow
def test_workers_find_the_same() -> None:
    alone = planner.failures("traffic/abilene", kinds="link", design="optimum")
    shared = planner.failures("traffic/abilene", kinds="link", design="optimum", workers=2)
    assert [failure.cost for failure in shared.failures] == pytest.approx(
        [failure.cost for failure in alone.failures]
    )
    # elements whose failures cost the same have any order
    assert {failure.element: failure.cost for failure in shared.failures} == pytest.approx(
        {failure.element: failure.cost for failure in alone.failures}
    )


COMPARED = (
    "delivered_mbps",
    "lost_mbps",
    "shed_mbps",
    "overloaded_links",
    "max_utilization",
    "concurrent_flow",
)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["ecmp", "shortest_path"])
def test_the_compiled_analysis_says_what_the_design_says(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = triangle()
    fast = planner.failures(problem, design=design)
    assert fast.restoration
    monkeypatch.setattr("planner_models.traffic.designs.failure_analysis.RECONVERGING", {})
    slow = planner.failures(problem, design=design)
    assert not slow.restoration
    assert fast.harmless == slow.harmless
    by_name = {failure.name: failure for failure in slow.failures}
    assert by_name.keys() == {failure.name for failure in fast.failures}
    for failure in fast.failures:
        expected = by_name[failure.name]
        assert failure.cost == pytest.approx(expected.cost, abs=1e-9)
        assert failure.losses == pytest.approx(expected.losses)
        assert failure.adjustments == expected.adjustments
        for metric in COMPARED:
            assert failure.metrics[metric] == pytest.approx(expected.metrics[metric]), metric
        if failure.busiest is not None:
            assert expected.busiest is not None
            assert failure.busiest.value == pytest.approx(expected.busiest.value)


def with_failures() -> Traffic:
    rows = [("duct", "a<->b", 0.1), ("duct", "b<->c", 0.1), ("site", "c", 0.05)]
    failures = pd.DataFrame(rows, columns=["failure", "member", "probability"])
    return Traffic.from_tables({**triangle().to_tables(), "failures": failures})


@pytest.mark.parametrize("design", ["ecmp", "optimum"])
def test_failures_of_the_table_have_probabilities(design: str) -> None:
    result = planner.failures(with_failures(), design=design)
    assert {failure.name for failure in result.failures} == {"duct", "site"}
    assert result.probability_of_none == pytest.approx(0.85)
    lost = {failure.name: sum(failure.losses.values()) for failure in result.failures}
    before = sum(result.run.constraints.lost.values())
    expected = 0.85 * before + 0.1 * lost["duct"] + 0.05 * lost["site"]
    assert result.expected_loss == pytest.approx(expected)
    assert "the expected loss is" in result.verdict
    assert result.to_dict()["expected_loss"] == pytest.approx(expected)
    again = planner.failures(with_failures(), design=design, failures="links")
    assert {failure.kind for failure in again.failures} == {"link"}
    assert again.expected_loss is None


def test_pairs_of_links_cost_at_least_as_much_as_each_alone() -> None:
    problem = triangle()
    single = {
        failure.element: failure.cost or 0.0
        for failure in planner.failures(problem, design="optimum", kinds="link").failures
    }
    pairs = planner.failures(problem, design="optimum", failures="double_links")
    assert pairs.total == 3
    assert "failures of link pairs" in pairs.verdict
    for failure in pairs.failures:
        assert (failure.cost or 0.0) >= max(single[name] for name in failure.element.split(" + ")) - 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"failures": "link"},
            "failures: 'link' is no set of traffic, which has table, links, nodes, double_links; did you",
        ),
        ({"failures": "links", "kinds": "link"}, "failures and kinds: only one of them can be given"),
        ({"failures": "table"}, "failures is 'table', but the problem has no table failures"),
    ],
)
def test_sets_that_there_are_not_are_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as error:
        planner.failures(triangle(), design="ecmp", **arguments)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.slow
def test_sets_of_failures_are_evaluated_on_a_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    columns = ["element", "cost", "delivered_mbps", "lost_mbps"]
    local = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with distributed.LocalCluster(**local) as cluster:
        for design, restoration in (("ecmp", None), ("robust", None), ("ecmp", "reoptimize")):
            inputs: dict[str, Any] = {"design": design, "restoration": restoration}
            here = planner.failures("traffic/wan_safe", **inputs)
            there = planner.failures("traffic/wan_safe", cluster=cluster.scheduler_address, **inputs)
            assert there.verdict == here.verdict
            pd.testing.assert_frame_equal(there.to_frame()[columns], here.to_frame()[columns])
            assert [section.title for section in there.sections] == [
                section.title for section in here.sections
            ]
