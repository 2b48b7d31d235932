"""Tables of tunnels and classes: what is read, what is refused, and what remains after failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.errors import InputError, PlanRejected
from planner_models.capacity import CapacityPlanning, Purchases, formulation
from planner_models.capacity.plan.check import evaluate
from planner_models.capacity.problem import tunnels
from planner_models.capacity.problem.adjustments import adjust
from planner_models.capacity.problem.generators import backbone
from tests.models.capacity.networks import (
    least_cost_on_paths,
    limit_latency,
    problem_of,
    restricted_problem,
    ring,
    simple_paths,
)

seeds = st.integers(0, 100_000)
LENGTHS = [("a", "b", 10.0, 300.0), ("b", "c", 10.0, 300.0), ("a", "c", 0.0, 800.0)]
"""A ring with delays of 1.5, 1.5 and 4 ms."""
NO_PLACES = "and nodes have no latitude and longitude; demands have max_latency_ms"


def tunnel_table(*rows: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["path", "name"][: len(rows[0])])


def of_classes(*names: str) -> pd.DataFrame:
    return pd.DataFrame(
        [("a", "c", 1.0, name) for name in names], columns=["source", "target", "rate_mbps", "class"]
    )


def test_a_path_is_read_as_arcs_of_links() -> None:
    problem = ring(tunnels=tunnel_table(("c > b > a", "back"), ("b > c", "of no demand")))
    paths = problem.tunnel_paths
    assert paths is not None
    assert paths.names == ["back"]
    assert paths.uses.toarray().tolist() == [[1, 1, 0]]
    assert paths.arcs.toarray().tolist() == [[0, 0, 0, 1, 1, 0]]
    assert paths.pair_of.tolist() == [0]
    assert problem.size()["tunnels"] == 2
    again = CapacityPlanning.from_tables(problem.to_tables())
    assert again.to_tables().keys() == problem.to_tables().keys()
    one_way = ring(tunnels=tunnel_table(("c > b > a",)), network=pd.DataFrame({"direction": ["bidirected"]}))
    assert one_way.tunnel_paths is None  # the demand is from a to c


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"tunnels": tunnel_table(("a > d > c",))}, "tunnels row 1: path 'd' is no node of the network"),
        ({"tunnels": tunnel_table(("a > c",), ("a > c",))}, "tunnels row 2: path is there already in row 1"),
        ({"tunnels": tunnel_table(("a",))}, "tunnels row 1: path is 'a', must be two nodes at least"),
        (
            {"tunnels": tunnel_table(("a > b > a",))},
            "tunnels row 1: path passes 'a' twice",
        ),
        (
            {"demands": of_classes("glod"), "classes": pd.DataFrame({"class": ["gold"], "priority": [1]})},
            "demands row 1: class 'glod' is no class of classes; did you mean 'gold'?",
        ),
        (
            {"classes": pd.DataFrame({"class": ["gold"], "priority": [1]})},
            "demands: column 'class' is missing; the table classes needs it",
        ),
        (
            {
                "demands": of_classes("gold"),
                "classes": pd.DataFrame({"class": ["gold"], "priority": [1], "protected_share": [1.2]}),
            },
            "classes row 1: protected_share is 1.2, must be at most 1",
        ),
        ({"demands": of_classes("gold", "gold")}, "demands row 2"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ring(**tables)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(message)


def test_growth_needs_several_years() -> None:
    demands = pd.DataFrame({"source": ["a"], "target": ["c"], "rate_mbps": [5.0], "growth": [0.1]})
    with pytest.raises(InputError, match="column 'growth' needs several years"):
        adjust(ring(demands=demands))
    assert adjust(ring(demands=demands), years=2).rate_mbps.tolist() == [[5.0], [5.5]]


def test_a_lost_link_takes_its_tunnels_and_leaves_demands_bound() -> None:
    problem = adjust(ring(tunnels=tunnel_table(("a > b > c",))), failures="links")
    lost = adjust(problem, fail_links=("b<->a",))
    assert lost.tunnel_paths is not None
    assert lost.cut_off[0].tolist() == [True]
    assert lost.states.names == ["b<->c", "a<->c"]
    assert planner.solve(lost, design="optimum").metrics["unserved_mbps"] == 15.0
    free = adjust(ring(tunnels=tunnel_table(("a > b > c",), ("a > c",))), fail_links=("a<->b",))
    assert planner.solve(free, design="optimum").metrics["unserved_mbps"] == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(tunnel="x"), "tunnel_flows row 1: tunnel 'x' is none of the demands'"),
        (
            lambda frame: frame.assign(rate_mbps=3.0),
            "tunnel_flows: tunnels from a to c carry 3 Mbit/s, must",
        ),
        (lambda frame: frame.iloc[:0], "tunnel_flows: tunnels from a to c carry 0 Mbit/s, must be 15"),
        (lambda frame: pd.concat([frame, frame]), "tunnel_flows: a tunnel is there twice"),
    ],
)
def test_wrong_traffic_in_tunnels_is_rejected(
    change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    problem = ring(tunnels=tunnel_table(("a > b > c",)))
    plan = planner.solve(problem, design="optimum").plan
    assert plan.tunnel_flows is not None
    wrong = Purchases(**{**plan.to_tables(), "tunnel_flows": change(plan.tunnel_flows)})
    with pytest.raises(PlanRejected, match="tunnel_flows") as caught:
        evaluate(problem, wrong)
    assert str(caught.value).startswith(message)


def test_the_backbone_has_classes_and_disjoint_tunnels_on_request() -> None:
    problem = backbone(cities=8, classes=True, tunnels=3)
    paths = problem.tunnel_paths
    assert paths is not None
    for pair in range(paths.pairs):
        uses = paths.uses[np.flatnonzero(paths.pair == pair)].toarray()
        assert len(uses) == 2
        assert uses.sum(axis=0).max() == 1
    plain = backbone(cities=8)
    assert problem.rate_mbps.sum() == pytest.approx(plain.rate_mbps.sum())
    assert problem.class_table["protected_share"].tolist() == [1.0, 1.0, 0.4]


def limited(*limits: float | None, rate: float = 15.0) -> pd.DataFrame:
    rows = [("a", "c", rate, limit, str(index)) for index, limit in enumerate(limits)]
    return pd.DataFrame(rows, columns=["source", "target", "rate_mbps", "max_latency_ms", "class"])


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=seeds, routing=st.booleans())
def test_the_least_cost_is_that_of_a_program_over_all_paths(seed: int, routing: bool) -> None:
    problem = limit_latency(restricted_problem(seed, routing=routing), seed)
    right = least_cost_on_paths(problem)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(right, rel=2e-4, abs=1e-5)
    assert not len(run.violations)
    for other in planner.compare(problem, designs=("rounding", "greedy", "shortest_path")):
        assert other.metrics["total_cost"] >= right * (1 - 1e-6) - 1e-6, other.label
        assert not len(other.violations), other.label


@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("years", [1, 2])
def test_the_formal_model_has_the_same_optimum(seed: int, years: int) -> None:
    pyo = pytest.importorskip("pyomo.environ")
    problem = limit_latency(restricted_problem(seed, years=years), seed)
    model = formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(model)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(pyo.value(model.goal), rel=2e-4, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=10)
@given(seed=seeds)
def test_paths_are_all_those_within_the_limit(seed: int) -> None:
    problem = limit_latency(restricted_problem(seed), seed)
    paths, delay = problem.tunnel_paths, problem.lines["latency_ms"].to_numpy()
    configured = set() if problem.tunnels is None else set(problem.tunnels["path"])
    for row, demand in problem.demands.iterrows():
        if paths is None or np.isnan(demand["max_latency_ms"]) or paths.pair_of[row] < 0:
            continue
        existing = [
            (" > ".join(nodes), " > ".join(nodes[::-1]), sum(delay[line] for line, _ in steps))
            for nodes, steps in simple_paths(problem, demand["source"], demand["target"])
        ]
        if problem.direction != "undirected":
            existing = [(name, name, time) for name, _, time in existing]
        if any({name, back} & configured for name, back, _ in existing):
            existing = [item for item in existing if set(item[:2]) & configured]
        fast = {frozenset(item[:2]) for item in existing if item[2] <= demand["max_latency_ms"]}
        current = [
            name for name, pair in zip(paths.names, paths.pair, strict=True) if pair == paths.pair_of[row]
        ]
        # a path may be configured twice, once in each direction
        names = [name.split(" (within")[0] for name in current]
        assert all(any(name in pair for pair in fast) for name in names)
        assert all(any(name in pair for name in names) for pair in fast)
        assert len(names) == len(set(names))


def test_looser_limits_never_cost_more() -> None:
    tight, loose, none = (
        planner.solve(problem_of_ring(limit), design="optimum").metrics["total_cost"]
        for limit in (3.5, 5.0, None)
    )
    # within 3.5 ms only a > b > c: a module on both links; else one module on a<->c
    assert (tight, loose, none) == (pytest.approx(8.0), pytest.approx(4.0), pytest.approx(4.0))


@pytest.mark.slow
@settings(max_examples=4)
@given(seed=seeds)
def test_looser_limits_of_any_demand_never_cost_more(seed: int) -> None:
    problem = replace(limit_latency(restricted_problem(seed), seed), failures=None)
    looser = problem.demands["max_latency_ms"] + 3.0
    other = replace(problem, demands=problem.demands.assign(max_latency_ms=looser))
    if (problem.cut_off == other.cut_off).all():  # what gets its first route must be carried
        costs = [
            planner.solve(item, design="optimum").metrics["total_cost"] or 0.0 for item in (problem, other)
        ]
        assert costs[1] <= costs[0] * (1 + 1e-4) + 1e-9


def problem_of_ring(limit: float | None) -> CapacityPlanning:
    return problem_of(LENGTHS, limited(limit).drop(columns="class"))


def test_classes_of_two_nodes_have_limits_of_their_own() -> None:
    problem = problem_of(LENGTHS, limited(3.5, None, 4.5, rate=5.0))
    paths = problem.tunnel_paths
    assert paths is not None
    assert paths.pair_of.tolist() == [0, -1, 1]
    assert paths.names == ["a > b > c", "a > b > c (within 4.5 ms)", "a > c"]
    run = planner.solve(adjust(problem, failures="links"), design="optimum")
    assert run.metrics["cut_off_mbps"] == 5.0
    assert not len(run.violations)


def test_a_demand_without_a_path_in_time_is_cut_off_and_said_to_be() -> None:
    problem = problem_of(LENGTHS, limited(1.0, 3.5, rate=5.0))
    for run in planner.compare(problem, designs=("optimum", "rounding", "greedy", "shortest_path")):
        assert run.metrics["unserved_mbps"] == pytest.approx(5.0), run.label
        assert not len(run.violations), run.label
    says = planner.explain(problem, design="optimum").explanation.sentences
    why = "no path within the latency limit is left"
    assert f"5 Mbit/s of demand have no route, whatever is bought: {why}." in says


def test_tunnels_beyond_the_limit_are_not_used() -> None:
    problem = problem_of(LENGTHS, limited(3.5), tunnels=pd.DataFrame({"path": ["a > c", "a > b > c"]}))
    paths = problem.tunnel_paths
    assert paths is not None
    assert paths.names == ["a > b > c"]


def test_a_given_delay_goes_before_the_length() -> None:
    links = pd.DataFrame(LENGTHS, columns=["tail", "head", "capacity_mbps", "length_km"])
    problem = problem_of(LENGTHS, limited(3.5)).to_tables() | {
        "links": links.assign(latency_ms=[9, None, None])
    }
    changed = CapacityPlanning.from_tables(problem)
    assert changed.latency_ms.tolist() == [9.0, 1.5, 4.0]
    assert changed.cut_off[0].tolist() == [True]


def test_a_path_beyond_the_limit_is_rejected() -> None:
    problem = problem_of(LENGTHS, limited(3.5).drop(columns="class"))
    plan = planner.solve(problem, design="optimum").plan
    slow = plan.tunnel_flows.assign(tunnel="a > c")
    with pytest.raises(PlanRejected) as caught:
        evaluate(problem, Purchases(**{**plan.to_tables(), "tunnel_flows": slow}))
    assert str(caught.value) == (
        "tunnel_flows row 1: tunnel 'a > c' is none of the demands': it takes 4 ms, they allow at most 3.5"
    )


def test_a_class_gets_a_limit_in_place_of_its_own() -> None:
    problem = problem_of(LENGTHS, limited(9.0, 8.0, rate=5.0))
    changed = adjust(problem, max_latency_ms={"1": 3.5})
    assert changed.max_latency_ms.tolist() == [9.0, 3.5]
    with pytest.raises(InputError, match="max_latency_ms: 'golf' is no class"):
        adjust(problem, max_latency_ms={"golf": 3.0})
    with pytest.raises(InputError, match="demands have no classes"):
        adjust(ring(), max_latency_ms={"gold": 3.0})


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        (limited(5.0), f"links row 1: latency_ms and length_km are missing, {NO_PLACES}"),
        (limited(-1.0), "demands row 1: max_latency_ms is -1.0, must be at least 0"),
    ],
)
def test_bad_limits_are_refused(demands: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ring(demands=demands)
    assert caught.value.faults[0] == message


def test_too_many_paths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels, "MOST_PATHS", 1)
    with pytest.raises(InputError) as caught:
        problem_of(LENGTHS, limited(4.5))
    says = "demands: max_latency_ms leaves more than 1 paths; tighten the limits, or give the paths in the"
    assert list(caught.value.faults) == [f"{says} table tunnels"]
