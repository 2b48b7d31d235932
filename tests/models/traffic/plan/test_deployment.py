"""Deployment tables: traffic that follows them loads links as the plan does."""

from __future__ import annotations

import json
from typing import Any, cast

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import deployment
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


def network(links: list[tuple[str, str, float]], demands: list[tuple[str, str, float]]) -> Traffic:
    return Traffic.from_tables(
        {
            "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]),
            "demands": pd.DataFrame(demands, columns=["source", "target", "rate_mbps"]),
        }
    )


def rows_of(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


@st.composite
def networks(draw: st.DrawFn) -> Traffic:
    """Draw a two-way ring of 4 to 6 nodes with chords, some parallel links, and a few demands."""
    count = draw(st.integers(4, 6))
    names = [f"n{i}" for i in range(count)]
    ring = [(i, (i + 1) % count) for i in range(count)]
    chords = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=4))
    ends = ring + [(a, b) for a, b in chords if a != b]
    rates = st.integers(1, 9).map(float)
    links = [(names[a], names[b], draw(rates)) for pair in ends for a, b in (pair, pair[::-1])]
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] != p[1]),
            min_size=1,
            max_size=5,
            unique=True,
        )
    )
    return network(links, [(names[a], names[b], draw(rates)) for a, b in pairs])


def loads_of_next_hops(problem: Traffic, tables: dict[str, pd.DataFrame]) -> dict[Any, float]:
    """Return loads where every demand follows the table, share by share, in plain Python."""
    ways: dict[Any, list[tuple[str, int, float]]] = {}
    for row in rows_of(tables["next_hops"]):
        source = None if pd.isna(row.source) else row.source
        ways.setdefault((row.node, source, row.target), []).append((row.next_hop, row.parallel, row.share))
    load: dict[Any, float] = {}
    for demand in rows_of(tables["rates"]):
        here = {demand.source: demand.rate_mbps}
        for _ in range(len(problem.nodes)):  # longer walks would be cycles
            there: dict[str, float] = {}
            for node, amount in here.items():
                if node == demand.target:
                    continue
                its = ways.get((node, demand.source, demand.target)) or ways[(node, None, demand.target)]
                for head, parallel, share in its:
                    there[head] = there.get(head, 0.0) + amount * share
                    load[node, head, parallel] = load.get((node, head, parallel), 0.0) + amount * share
            here = there
        assert not here or set(here) == {demand.target}, "something is still under way"
    return load


def loads_of_paths(tables: dict[str, pd.DataFrame]) -> dict[Any, float]:
    rate = {(row.source, row.target): row.rate_mbps for row in rows_of(tables["rates"])}
    load: dict[Any, float] = {}
    for row in rows_of(tables["paths"]):
        nodes = json.loads(row.path)
        assert (nodes[0], nodes[-1]) == (row.source, row.target)
        assert len(set(nodes)) == len(nodes)
        numbers = json.loads(row.parallel) if "parallel" in tables["paths"] else [1] * (len(nodes) - 1)
        for hop in zip(nodes, nodes[1:], numbers, strict=False):
            load[hop] = load.get(hop, 0.0) + rate[row.source, row.target] * row.share
    return load


def assert_loads(plan: Routing, result: dict[Any, float], scale: float) -> None:
    for row in rows_of(plan.links):
        assert result.get((row.tail, row.head, row.parallel), 0.0) == pytest.approx(
            row.load_mbps, rel=1e-9, abs=1e-8 * scale
        )


def assert_whole(tables: dict[str, pd.DataFrame]) -> None:
    hops = tables["next_hops"].fillna({"source": "-"})
    sums = hops.groupby(["node", "source", "target"])["share"].sum()
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12)
    if "paths" in tables:
        np.testing.assert_allclose(
            tables["paths"].groupby(["source", "target"])["share"].sum(), 1.0, rtol=1e-12
        )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(networks(), st.sampled_from(["concurrent", "utilization", "total", "ecmp", "paths"]))
def test_following_the_tables_gives_the_loads_of_the_plan(problem: Traffic, kind: str) -> None:
    if kind == "ecmp":
        plan = ecmp.route(problem).plan
    elif kind == "paths":
        plan = optimum.route(problem, objective="total", paths=2).plan
    else:
        plan = optimum.route(problem, objective=cast(Any, kind)).plan
    assert plan is not None
    scale = float(problem.rate_mbps.max())
    for by in ("auto", "pair"):
        tables = deployment.deployment_tables(problem, plan, by=by)
        assert_whole(tables)
        assert_loads(plan, loads_of_next_hops(problem, tables), scale)
        assert_loads(plan, loads_of_paths(tables), scale)


def test_shares_of_a_diamond() -> None:
    problem = network(
        [("a", "b", 10), ("b", "d", 10), ("a", "c", 5), ("c", "d", 5)], [("a", "d", 12.0), ("b", "d", 0.0)]
    )
    plan = optimum.route(problem, objective="concurrent").plan
    assert plan is not None
    tables = deployment.deployment_tables(problem, plan)
    assert list(tables) == ["rates", "next_hops", "paths"]
    assert tables["rates"].to_dict("records") == [{"source": "a", "target": "d", "rate_mbps": 12.0}]
    hops = tables["next_hops"]
    assert hops["source"].isna().all()
    share = {(row.node, row.next_hop): row.share for row in rows_of(hops)}
    assert share == pytest.approx({("a", "b"): 2 / 3, ("a", "c"): 1 / 3, ("b", "d"): 1.0, ("c", "d"): 1.0})
    paths = {row.path: row.share for row in rows_of(tables["paths"])}
    assert paths == pytest.approx({'["a", "b", "d"]': 2 / 3, '["a", "c", "d"]': 1 / 3})


def crossing() -> tuple[Traffic, Routing]:
    """Return two demands to d, each over the other's source: together their routes form a cycle."""
    ends = [("a", "b"), ("b", "a"), ("a", "d"), ("b", "d")]
    problem = network([(a, b, 10.0) for a, b in ends], [("a", "d", 1.0), ("b", "d", 2.0)])
    flow = np.array([[1.0, 0, 0, 1.0], [0, 2.0, 2.0, 0]])
    return problem, routing.routing_by_demand(problem, sp.coo_array(flow))


def test_routes_that_form_a_cycle_get_shares_for_each_demand() -> None:
    problem, plan = crossing()
    tables = deployment.deployment_tables(problem, plan)
    assert set(tables["next_hops"]["source"]) == {"a", "b"}
    assert_loads(plan, loads_of_next_hops(problem, tables), 2.0)
    with pytest.raises(InputError, match="by is 'target', but the routes to 'd' together form a cycle"):
        deployment.deployment_tables(problem, plan, by="target")


def test_a_plan_per_target() -> None:
    problem, _ = crossing()
    flows = pd.DataFrame(
        [("d", "a", "d", 1, 1.0), ("d", "b", "d", 1, 2.0)],
        columns=["target", "tail", "head", "parallel", "rate_mbps"],
    )
    plan = routing.routing_from_tables(problem, {"flows": flows})
    tables = deployment.deployment_tables(problem, plan)
    assert list(tables) == ["rates", "next_hops"]
    assert tables["rates"]["rate_mbps"].tolist() == [1.0, 2.0]
    assert_loads(plan, loads_of_next_hops(problem, tables), 2.0)
    with pytest.raises(InputError, match="by is 'pair', but the plan's flows have no source"):
        deployment.deployment_tables(problem, plan, by="pair")


def test_weights_of_the_plan_are_deployed() -> None:
    problem, plan = crossing()

    class Tuned(Routing):
        def to_tables(self) -> dict[str, pd.DataFrame]:
            return {**super().to_tables(), "weights": pd.DataFrame({"weight": [1.0]})}

    tuned = Tuned(flows=plan.flows, links=plan.links)
    assert deployment.deployment_tables(problem, tuned)["weights"]["weight"].tolist() == [1.0]


def test_a_plan_with_a_cycle_is_decomposed_into_paths() -> None:
    """One demand takes the cycle b, c once more than necessary: the paths leave the cycle out."""
    links = [("a", "b", 9.0), ("b", "c", 9.0), ("c", "b", 9.0), ("c", "d", 9.0)]
    problem = network(links, [("a", "d", 1.0)])
    plan = routing.routing_by_demand(problem, sp.coo_array(np.array([[1.0, 1.5, 0.5, 1.0]])))
    paths = deployment.deployment_tables(problem, plan)["paths"]
    assert paths["path"].tolist() == ['["a", "b", "c", "d"]']
    assert paths["share"].tolist() == [1.0]


@settings(max_examples=30, deadline=None)
@given(networks(), st.integers(0, 2**31))
def test_cycles_are_those_that_networkx_finds(problem: Traffic, seed: int) -> None:
    random = np.random.default_rng(seed)
    flow = sp.coo_array((random.random((3, len(problem.links))) < 0.3).astype(float))
    expected = []
    for row in flow.toarray():
        graph = nx.DiGraph()
        used = np.flatnonzero(row)
        graph.add_edges_from(zip(problem.tail[used].tolist(), problem.head[used].tolist(), strict=True))
        expected.append(not nx.is_directed_acyclic_graph(graph))
    assert deployment.has_cycle(problem, flow).tolist() == expected
