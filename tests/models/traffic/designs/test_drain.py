"""Drains: nothing uses what is drained, the least traffic moves, and which elements share a window."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import Options
from planner.contract.proof import Status
from planner.errors import InputError, PlanRejected
from planner_models.traffic import Routing, Traffic, check, measure
from planner_models.traffic.designs import drain, drain_program, ecmp
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import routing_from_tables
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import as_graph, both_ways, network, problems

LINKS = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0), ("b", "c", 4.0)])
SQUARE = network(LINKS, [("a", "d", 6.0), ("a", "b", 2.0), ("c", "d", 3.0), ("b", "c", 1.0)])


def plan_of(problem: Traffic, **parameters: object) -> tuple[Routing, float, float | None]:
    decision = drain.route(problem, **parameters)  # type: ignore[arg-type]
    assert decision.plan is not None
    assert decision.proof.objective is not None
    assert check(problem, decision.plan).of_limits({"capacity", "demand"}).frame.empty
    moved = measure(problem, decision.plan, None)["moved_mbps"]
    assert moved == pytest.approx(decision.proof.objective, abs=1e-9)
    return decision.plan, decision.proof.objective, decision.proof.bound


def uses(problem: Traffic, plan: Routing, links: set[str], nodes: set[str]) -> list[str]:
    """Return the rows of flows over drained links, or through drained nodes."""
    result = []
    for row in plan.flows.to_dict("records"):
        passes = {row["tail"]} - {row["source"]} | {row["head"]} - {row["target"]}
        if f"{row['tail']}->{row['head']}" in links or passes & nodes:
            result.append(str(row))
    return result


def least_moved(problem: Traffic, nodes: set[str], links: set[int]) -> tuple[float, float]:
    """Return the most served and then the least moved traffic, by a program over all paths."""
    graph, count = as_graph(problem), len(problem.links)
    now = ecmp.route(problem).plan
    assert now is not None
    present = routing.flow_by_demand(problem, now).toarray()
    columns: list[np.ndarray] = []  # load, then served by demand
    stays: list[float] = []
    limits: list[tuple[np.ndarray, np.ndarray]] = []
    owner: list[int] = []
    for k, (source, target, rate) in enumerate(
        problem.demands[["source", "target", "rate_mbps"]].itertuples(index=False)
    ):
        paths = []
        for path in nx.all_simple_edge_paths(graph, source, target):
            keys = [key for _, _, key in path]
            inner = {head for _, head, _ in path[:-1]}
            if not set(keys) & links and not inner & nodes:
                paths.append(keys)
        for keys in paths:
            load = np.zeros(count)
            load[keys] = 1.0
            columns.append(load)
            stays.append(0.0)
            owner.append(k)
        used = np.flatnonzero(present[k] > 1e-12)
        ends = [(str(problem.links["tail"].iloc[e]), str(problem.links["head"].iloc[e])) for e in used]
        is_wrong = bool(set(used.tolist()) & links) or any(
            tail in nodes - {source} or head in nodes - {target} for tail, head in ends
        )
        if not is_wrong:
            columns.append(present[k] / rate)
            stays.append(1.0)
            owner.append(k)
            continue
        first = len(columns)
        for keys in paths:
            if set(keys) <= set(used.tolist()):
                load = np.zeros(count)
                load[keys] = 1.0
                columns.append(load)
                stays.append(1.0)
                owner.append(k)
        limits.append((np.arange(first, len(columns)), present[k]))
    size = len(columns)
    loads = np.array(columns).reshape(size, count).T
    served = np.zeros((len(problem.demands), size))
    served[owner, np.arange(size)] = 1.0
    rows, right = [loads, served], [problem.capacity_mbps, problem.rate_mbps]
    for group, largest in limits:
        share = np.zeros((count, size))
        share[:, group] = loads[:, group]
        rows.append(share)
        right.append(largest)
    upper, limit = np.vstack(rows), np.concatenate(right)
    if not size:
        return 0.0, 0.0
    largest = -linprog(-np.ones(size), upper, limit, method="highs").fun
    upper, limit = np.vstack([upper, -np.ones(size)]), np.r_[limit, -largest * (1 - 1e-9)]
    selected = -linprog(-np.array(stays), upper, limit, method="highs").fun
    return largest, largest - selected


@pytest.mark.slow
@settings(max_examples=40)
@given(problems(max_nodes=5, max_demands=4), st.data())
def test_the_least_traffic_moves(problem: Traffic, data: st.DataObject) -> None:
    names = problem.nodes["node"].tolist()
    nodes = set(data.draw(st.lists(st.sampled_from(names), max_size=1)))
    link = data.draw(st.integers(-1, len(problem.links) - 1))
    label = [problem.link_labels[link]] if link >= 0 else []
    if link >= 0 and "#" not in label[0] and (problem.is_parallel)[link]:
        label = [f"{label[0]}#1"]
    cut = {link} if link >= 0 else set()
    plan, moved, bound = plan_of(problem, links=tuple(label), nodes=tuple(nodes))
    served, lower = least_moved(problem, nodes, cut)
    assert measure(problem, plan, None)["delivered_mbps"] == pytest.approx(served, rel=1e-5, abs=1e-6)
    assert moved == pytest.approx(lower, rel=1e-4, abs=1e-4)
    assert bound is None or bound <= lower + 1e-4
    plain = set() if link >= 0 and problem.is_parallel[link] else set(label)
    assert not uses(problem, plan, plain, nodes)


def test_a_drained_line_carries_nothing_and_other_demands_stay() -> None:
    plan, moved, bound = plan_of(SQUARE, links=("a<->b",))
    assert not uses(SQUARE, plan, {"a->b", "b->a"}, set())
    assert moved == pytest.approx(3.0 + 2.0)  # half of a->d, all of a->b
    assert bound == pytest.approx(moved)
    assert plan.moved is not None
    assert plan.moved.to_dict("records") == [
        {"source": "a", "target": "d", "rate_mbps": pytest.approx(3.0)},
        {"source": "a", "target": "b", "rate_mbps": pytest.approx(2.0)},
    ]


def test_a_drained_node_keeps_its_own_demands() -> None:
    plan, moved, _ = plan_of(SQUARE, nodes=("b",))
    assert not uses(SQUARE, plan, set(), {"b"})
    assert moved == pytest.approx(3.0)
    assert measure(SQUARE, plan, None)["shed_mbps"] == pytest.approx(0.0, abs=1e-9)


def test_scarce_capacity_sheds_the_least() -> None:
    problem = network(LINKS, [("a", "d", 15.0), ("a", "b", 2.0)])
    plan, _, _ = plan_of(problem, links=("a<->b",))
    assert measure(problem, plan, None)["delivered_mbps"] == pytest.approx(10.0, rel=1e-5)


def test_strict_service_has_no_plan_and_the_reason() -> None:
    problem = network(LINKS, [("a", "d", 15.0), ("a", "b", 2.0)])
    decision = drain.route(problem, links=("a<->b",), options=Options(service="all"))
    assert decision.plan is None
    assert decision.proof.status is Status.INFEASIBLE
    assert decision.proof.reasons == ("at most 58.8235% of all traffic fits without the drained elements",)
    assert drain.route(problem, options=Options(service="all")).plan is not None


def test_the_present_plan_is_the_previous_one() -> None:
    problem = generators.abilene()
    now = optimum.route(problem, objective="utilization")
    same = drain.route(problem, previous=now)
    if now.proof.objective is not None and now.proof.objective <= 1:
        assert same.proof.objective == pytest.approx(0.0, abs=1e-6)
    decision = drain.route(problem, links=("CHINng<->IPLSng",), previous=now)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.bound is not None


def test_the_present_plan_is_read_from_its_tables(tmp_path: Path) -> None:
    now = optimum.route(SQUARE, paths=2, objective="utilization")
    assert now.plan is not None
    assert now.plan.routes is not None
    now.plan.flows.to_csv(tmp_path / "flows.csv", index=False)
    (tmp_path / "routes").mkdir()
    now.plan.routes.to_csv(tmp_path / "routes" / "routes.csv", index=False)
    expected = drain.route(SQUARE, links=("a<->b",), previous=now).proof.objective
    for folder in (tmp_path, tmp_path / "routes"):
        _, moved, _ = plan_of(SQUARE, links=("a<->b",), present=folder)
        assert moved == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InputError, match="no such folder"):
        drain.route(SQUARE, present=tmp_path / "none")


def test_links_of_the_previous_plan_that_are_gone_must_move() -> None:
    now = ecmp.route(SQUARE)
    without = network(
        [link for link in LINKS if {link[0], link[1]} != {"a", "b"}],
        [("a", "d", 6.0), ("a", "b", 2.0), ("c", "d", 3.0), ("b", "c", 1.0)],
    )
    _, moved, bound = plan_of(without, previous=now)
    assert moved == pytest.approx(5.0)
    assert bound == pytest.approx(5.0)


def test_a_path_that_has_lost_a_link_in_its_middle_moves() -> None:
    ends = both_ways([("a", "b", 5.0), ("b", "c", 5.0), ("c", "d", 5.0), ("b", "e", 5.0), ("e", "c", 5.0)])
    demands = [("a", "d", 2.0), ("a", "c", 1.0), ("a", "b", 1.0)]
    now = ecmp.route(network(ends, demands))
    without = network([link for link in ends if {link[0], link[1]} != {"b", "c"}], demands)
    plan, moved, bound = plan_of(without, previous=now)
    assert moved == pytest.approx(3.0)
    assert bound == pytest.approx(3.0)
    assert measure(without, plan, None)["delivered_mbps"] == pytest.approx(4.0)


def test_windows_hold_what_can_be_drained_together() -> None:
    names = ("a<->b", "b<->d", "a<->c", "c<->d", "b<->c")
    decision = drain.route(SQUARE, links=names, windows=True)
    assert decision.plan is not None
    table = decision.plan.windows
    assert table is not None
    assert set(table["element"]) == set(names)
    elements = drain_program.find_elements(SQUARE, names, ())
    for _, share in table[table["window"] > 0].groupby("window"):
        together = drain_program.join(SQUARE, {name: elements[name] for name in share["element"]})
        assert drain.fits_without(SQUARE, together, Options())
    fits = {
        size: any(
            drain.fits_without(
                SQUARE, drain_program.join(SQUARE, {name: elements[name] for name in selected}), Options()
            )
            for selected in itertools.combinations(names, size)
        )
        for size in (3, 4)
    }
    assert int(table["window"].max()) >= (2 if not fits[4] else 1)
    again = routing_from_tables(SQUARE, decision.plan.to_tables())
    assert measure(SQUARE, again, None) == measure(SQUARE, decision.plan, None)


def test_an_element_that_cannot_be_drained_alone_has_no_window() -> None:
    line = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0)])
    plan = drain.route(line, links=("a<->b",), windows=True).plan
    assert plan is not None
    assert plan.windows is not None
    assert plan.windows["window"].tolist() == [0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"links": ("a->x",)}, "links: 'a->x' matches no link; did you mean 'a->c'?"),
        ({"nodes": ("x",)}, "nodes: 'x' matches no node"),
    ],
)
def test_unknown_names(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        drain.route(SQUARE, **parameters)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_moved_traffic_that_cannot_be_is_refused() -> None:
    tables = drain.route(SQUARE, links=("a<->b",)).plan.to_tables()  # type: ignore[union-attr]
    tables["moved"] = tables["moved"].assign(rate_mbps=100.0)
    with pytest.raises(PlanRejected, match="moved row 1: a->d moves 100 Mbit/s, but 6 Mbit/s are sent"):
        check(SQUARE, routing_from_tables(SQUARE, tables))
