"""Faults of traffic problems, and their arrays."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import planner
from planner.errors import InputError
from planner_models.traffic import Traffic
from planner_models.traffic.problem import problem as module
from planner_models.traffic.problem import tables as tables_module
from tests.models.traffic.networks import as_graph, network, problems

LINKS = [("a", "b", 10.0), ("b", "c", 10.0)]
DEMANDS = [("a", "c", 1.0)]


@pytest.mark.parametrize(
    ("links", "demands", "messages"),
    [
        ([("a", "b", 0.0)], [("a", "b", 1.0)], ["links: capacity_mbps is 0 in every row: no link is up"]),
        (LINKS, [("a", "c", 1e13)], ["demands row 1: rate_mbps is 10000000000000.0, must be at most 1e+12"]),
        (LINKS, [("a", "c", 1e-300)], ["demands row 1: rate_mbps is 1e-300, must be 0 or at least 1e-15"]),
        (
            [("a", "b", -3.0)],
            [("a", "b", 1.0)],
            ["links row 1: capacity_mbps is -3.0, must be at least 0"],
        ),
        (
            [("a", "b", float("inf"))],
            [("a", "b", 1.0)],
            ["links row 1: capacity_mbps is inf, must be a finite number; for no limit write 1e+12"],
        ),
        (LINKS, [("a", "c", -1.0)], ["demands row 1: rate_mbps is -1.0, must be at least 0"]),
        (
            LINKS,
            [("a", "cc", 1.0)],
            ["demands row 1: target 'cc' is no node of the network; did you mean 'c'?"],
        ),
        (LINKS, [("a", "a", 1.0)], ["demands row 1: source and target are both 'a', must differ"]),
        ([*LINKS, ("c", "c", 1.0)], DEMANDS, ["links row 3: tail and head are both 'c', must differ"]),
        (
            LINKS,
            [*DEMANDS, *DEMANDS],
            [
                (
                    "demands row 2: source 'a', target 'c' is there already in row 1; "
                    "for several flows of a pair add a column class that names each"
                )
            ],
        ),
        (LINKS, [], ["demands: holds no rows"]),
        (
            [("a", "b", -3.0), ("b", "c", -2.0)],
            [("a", "c", -1.0)],
            [
                "links row 1: capacity_mbps is -3.0, must be at least 0",
                "links row 2: capacity_mbps is -2.0, must be at least 0",
                "demands row 1: rate_mbps is -1.0, must be at least 0",
            ],
        ),
    ],
)
def test_every_fault_is_one_line(
    links: list[tuple[str, str, float]], demands: list[tuple[str, str, float]], messages: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        network(links, demands)
    assert list(caught.value.faults) == messages


def test_of_many_similar_faults_only_the_first_are_listed() -> None:
    with pytest.raises(InputError) as caught:
        network(LINKS, [("a", f"x{i}", 1.0) for i in range(9)])
    assert len(caught.value.faults) == 6
    assert caught.value.faults[-1] == "demands: 4 more rows with an unknown target"


def test_odd_labels_stay_the_same() -> None:
    names = ["007", "NA", "São Paulo", 'quo"te', "a,b", " "]
    links = [(names[i], names[(i + 1) % 6], 1.0) for i in range(6)]
    problem = network(links, [(names[0], names[3], 1.0)])
    assert problem.nodes["node"].tolist() == names
    assert problem.link_labels[2] == 'São Paulo->quo"te'


def test_parallel_links_are_numbered() -> None:
    problem = network([("a", "b", 1.0), ("b", "a", 2.0), ("a", "b", 3.0)], [("a", "b", 1.0)])
    assert problem.link_labels == ["a->b", "b->a", "a->b#2"]


def test_tables_make_the_problem_again() -> None:
    problem = network(LINKS, DEMANDS, latency_ms=[1.0, 2.0])
    again = Traffic.from_tables(problem.to_tables())
    for name, frame in problem.to_tables().items():
        pd.testing.assert_frame_equal(frame, again.to_tables()[name])


@given(problem=problems())
def test_distances_equal_those_of_networkx(problem: Traffic) -> None:
    reverse = nx.DiGraph()
    for tail, head, data in as_graph(problem).edges(data=True):
        old = reverse.get_edge_data(head, tail, {"weight": float("inf")})["weight"]
        reverse.add_edge(head, tail, weight=min(old, data["weight"]))
    names = problem.nodes["node"].tolist()
    for row, target in enumerate(problem.targets):
        lengths = nx.single_source_dijkstra_path_length(reverse, names[target])
        expected = [lengths.get(name, float("inf")) for name in names]
        assert problem.distance[row].tolist() == pytest.approx(expected)


@given(problem=problems())
def test_the_incidence_has_each_link_once_at_either_end(problem: Traffic) -> None:
    balance = problem.incidence.toarray()
    assert balance.sum(axis=0).tolist() == [0.0] * len(problem.links)
    assert np.abs(balance).sum() == 2 * len(problem.links)
    assert (balance[problem.tail, np.arange(len(problem.links))] == 1).all()


def test_a_link_with_capacity_0_is_down() -> None:
    down = network([*LINKS, ("a", "c", 0.0), ("c", "a", 0.0)], [*DEMANDS, ("c", "b", 2.0)])
    assert down.link_labels == ["a->b", "b->c"]
    assert down.unreachable.tolist() == [False, True]
    assert down.scale_demands(2).size() == {"nodes": 3, "links": 2, "demands": 2}


def test_a_scaled_rate_out_of_range_is_an_error() -> None:
    problem = network(LINKS, DEMANDS)
    for factor, rule in ((1e20, "must be at most 1e+12"), (1e-20, "must be 0 or at least 1e-15")):
        with pytest.raises(InputError) as caught:
            problem.scale_demands(factor)
        assert rule in str(caught.value)


@given(problem=problems())
def test_demands_are_found_alike_by_a_table_and_by_a_search(problem: Traffic) -> None:
    count = len(problem.nodes)
    source, target = (ends.ravel() for ends in np.meshgrid(np.arange(-1, count), np.arange(-1, count)))
    by_table = problem.demands_between(source, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "PAIRS_PER_DEMAND", -1)
        other = Traffic.from_tables(problem.to_tables())
        assert other._pair_table is None
        np.testing.assert_array_equal(other.demands_between(source, target), by_table)


@pytest.mark.parametrize("objective", ["delivered", "total", "concurrent"])
def test_a_link_without_limit_is_written_as_the_largest_capacity(objective: str) -> None:
    tables = {
        "links": pd.DataFrame(
            [("a", "b", 1e12), ("b", "c", 10.0)], columns=["tail", "head", "capacity_mbps"]
        ).assign(weight=1.0),
        "demands": pd.DataFrame(
            [("a", "b", 30.0), ("a", "c", 15.0)], columns=["source", "target", "rate_mbps"]
        ),
    }
    run = planner.solve(Traffic.from_tables(tables), design="optimum", objective=objective)
    assert run.plan is not None
    # concurrent: the largest common share is 10 of 15
    expected = 10 / 15 * 45 if objective == "concurrent" else 30 + 10
    assert run.metrics["delivered_mbps"] == pytest.approx(expected)


@pytest.mark.parametrize("per_query", [0, 10**9])
def test_links_are_found_by_ends_and_number(per_query: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIPLES_PER_QUERY", per_query)
    problem = network([("a", "b", 1.0), ("b", "c", 1.0), ("a", "b", 2.0)], [("a", "c", 1.0)])
    a, b, c = problem.node_index.get_indexer(["a", "b", "c"]).tolist()
    ends = np.array([(a, b, 1), (a, b, 2), (b, c, 1), (b, c, 2), (c, b, 1), (-1, b, 1), (a, b, 3), (a, b, 0)])
    assert problem.find_links(*ends.T).tolist() == [0, 2, 1, -1, -1, -1, -1, -1]
