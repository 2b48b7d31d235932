"""Updates over intermediate paths: against a search of its own over all simple paths, and their tables."""

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

import planner
from planner.errors import InputError, PlanRejected
from planner_models import updates
from planner_models.updates.plan.plan import from_tables, read_stages
from planner_models.updates.problem.problem import Update


def update(
    links: list[tuple[str, str, float]],
    classes: list[tuple[str, str, str, float]],
    now: dict[str, str],
    after: dict[str, str],
    **columns: Any,
) -> Update:
    """Return an update of paths such as "abd", of classes (name, ingress, egress, Mbit/s)."""
    switches = sorted({end for a, b, _ in links for end in (a, b)})

    def rules(paths: dict[str, str]) -> pd.DataFrame:
        rows = [(name, a, b) for name, path in paths.items() for a, b in itertools.pairwise(path)]
        return pd.DataFrame(rows, columns=["class", "switch", "next_hop"])

    return Update.from_tables(
        {
            "switches": pd.DataFrame({"switch": switches, **columns}),
            "links": pd.DataFrame(links, columns=["from", "to", "capacity_mbps"]),
            "classes": pd.DataFrame(classes, columns=["class", "ingress", "egress", "traffic_mbps"]),
            "now": rules(now),
            "next": rules(after),
        }
    )


EXCHANGE = update(
    [(a, b, 10.0) for a, b in ("ab", "bd", "ac", "cd", "ae", "ed")],
    [("f1", "a", "d", 10.0), ("f2", "a", "d", 10.0)],
    {"f1": "abd", "f2": "acd"},
    {"f1": "acd", "f2": "abd"},
)


def fewest_moves(  # noqa: C901 - one search
    problem: Update, now: dict[str, str], after: dict[str, str]
) -> int | None:
    """Return the fewest moves of single classes over simple paths, by breadth-first search; None for none."""
    capacity = {
        (row["from"], row["to"]): row["capacity_mbps"] for row in problem.links.to_dict(orient="records")
    }
    traffic = problem.classes.set_index("class")["traffic_mbps"].to_dict()
    graph = nx.DiGraph(list(capacity))
    names = [name for name in now if now[name] != after[name]]
    fixed = [name for name in now if now[name] == after[name]]
    paths = {
        name: [tuple(path) for path in nx.all_simple_paths(graph, now[name][0], now[name][-1])]
        for name in names
    }

    def load_of(used: list[tuple[str, set[tuple[str, str]]]]) -> dict[tuple[str, str], float]:
        total: dict[tuple[str, str], float] = {}
        for name, edges in used:
            for edge in edges:
                total[edge] = total.get(edge, 0.0) + traffic[name]
        return total

    def edges(path: Any) -> set[tuple[str, str]]:
        return set(itertools.pairwise(path))

    before = load_of([(name, edges(now[name])) for name in now])
    then = load_of([(name, edges(after[name])) for name in after])
    limit = {edge: max(value, before.get(edge, 0), then.get(edge, 0)) for edge, value in capacity.items()}
    start, goal = tuple(tuple(now[name]) for name in names), tuple(tuple(after[name]) for name in names)
    reached, level, moves = {start}, [start], 0
    while level:
        if goal in level:
            return moves
        following = []
        for state in level:
            for index, name in enumerate(names):
                for path in paths[name]:
                    new = (*state[:index], path, *state[index + 1 :])
                    if new in reached:
                        continue
                    others = [(other, edges(state[i])) for i, other in enumerate(names) if i != index]
                    used = [*others, *((other, edges(now[other])) for other in fixed)]
                    used.append((name, edges(state[index]) | edges(path)))
                    if all(value <= limit[edge] + 1e-9 for edge, value in load_of(used).items()):
                        reached.add(new)
                        following.append(new)
        level, moves = following, moves + 1
    return None


def test_two_classes_exchange_their_paths_over_a_third() -> None:
    run = planner.solve(EXCHANGE, design="intermediate")
    assert run.status == "optimal"
    assert (run.metrics["class_moves"], run.metrics["overload_mbps"]) == (3.0, 0.0)
    assert not run.violations
    stages = read_stages(EXCHANGE, run.plan)
    assert [sorted(set(stage.plan.operations["class"])) for stage in stages] == [
        ["f1"],
        ["f2"],
        ["f1"],
    ] or len(stages) == 3


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[Update, dict[str, str], dict[str, str]]:
    """Draw a small network and two to four classes with present and next paths."""
    nodes = "abcde"
    pairs = list(itertools.permutations(nodes, 2))
    links = draw(st.lists(st.sampled_from(pairs), min_size=8, max_size=14, unique=True))
    graph = nx.DiGraph(links)
    now, after, classes = {}, {}, []
    for index in range(draw(st.integers(2, 4))):
        ends = draw(
            st.sampled_from([pair for pair in pairs if pair[0] in graph and pair[1] in graph] or pairs)
        )
        if ends[0] not in graph or ends[1] not in graph or not nx.has_path(graph, *ends):
            continue
        paths = sorted("".join(path) for path in nx.all_simple_paths(graph, *ends))
        name = f"f{index}"
        now[name], after[name] = draw(st.sampled_from(paths)), draw(st.sampled_from(paths))
        classes.append((name, *ends, float(draw(st.integers(1, 2)))))
    if not classes:
        return EXCHANGE, {"f1": "abd", "f2": "acd"}, {"f1": "acd", "f2": "abd"}
    capacity = float(draw(st.integers(2, 3)))
    return update([(a, b, capacity) for a, b in links], classes, now, after), now, after


@settings(max_examples=60)
@given(exchanges())
def test_no_plan_takes_fewer_moves(case: tuple[Update, dict[str, str], dict[str, str]]) -> None:
    problem, now, after = case
    fewest = fewest_moves(problem, now, after)
    run = planner.solve(problem, design="intermediate", paths=50)
    if fewest is None:
        assert run.proof.reasons
        assert run.proof.reasons[0].startswith("no moves over 50 intermediate paths")
        return
    assert run.metrics["class_moves"] == fewest
    assert run.proof.bound is None or run.proof.bound <= fewest
    assert not run.violations
    assert run.metrics["overload_mbps"] == 0


def test_tables_limit_moves_too() -> None:
    problem = update(
        [(a, b, 10.0) for a, b in ("ab", "bd", "ac", "cd", "ae", "ed")],
        [("f1", "a", "d", 10.0), ("f2", "a", "d", 10.0)],
        {"f1": "abd", "f2": "acd"},
        {"f1": "acd", "f2": "abd"},
        rule_capacity=[2, 1, 1, 1, 0],  # no rule at e
    )
    run = planner.solve(problem, design="intermediate")
    assert (
        run.proof.reasons[0]
        == "no moves over 4 intermediate paths of each class keep within tables and links"
    )
    assert run.metrics["overload_mbps"] == 10


def test_waypoints_are_passed_on_intermediate_paths() -> None:
    tables = EXCHANGE.to_tables()
    tables["classes"] = tables["classes"].assign(waypoints=["b", ""])
    run = planner.solve(Update.from_tables(tables), design="intermediate")
    assert set(run.plan.paths["class"]) == {"f2"}  # f1 passes b on its present path only


def test_a_plan_is_read_back_and_its_faults_are_named() -> None:
    plan = planner.solve(EXCHANGE, design="intermediate").plan
    tables = plan.to_tables()
    again = from_tables(EXCHANGE, tables)
    assert not updates.check(EXCHANGE, again)
    without = {name: frame for name, frame in tables.items() if name != "tables"}
    pd.testing.assert_frame_equal(from_tables(EXCHANGE, without).tables, plan.tables)
    wrong = tables["paths"].assign(**{"class": "f2"})
    with pytest.raises(PlanRejected, match="stage 1 changes no rule of class 'f2'"):
        from_tables(EXCHANGE, tables | {"paths": wrong})
    stages = tables["steps"].assign(stage=tables["steps"]["stage"] * 2)
    with pytest.raises(PlanRejected, match="stages are not numbered"):
        from_tables(EXCHANGE, tables | {"steps": stages})
    loop = tables["paths"].assign(next_hop=["e", "a"])
    with pytest.raises(PlanRejected, match="no link from 'e' to 'a'"):
        from_tables(EXCHANGE, tables | {"paths": loop})
    early = tables["steps"].assign(start_s=0.0, end_s=0.0)
    assert set(updates.check(EXCHANGE, replace(again, steps=early)).frame["limit"]) == {"time"}


def test_a_plan_over_a_full_link_is_refused() -> None:
    plan = planner.solve(EXCHANGE, design="intermediate").plan
    narrow = replace(EXCHANGE, links=EXCHANGE.links.assign(capacity_mbps=[10.0, 10, 10, 10, 5, 5]))
    violations = updates.check(narrow, plan)
    assert set(violations.frame["limit"]) == {"links"}
    assert np.isclose(violations.frame["amount"].max(), 10.0)


def test_simulation_refuses_intermediate_paths() -> None:
    with pytest.raises(InputError, match="has intermediate paths, which are not simulated"):
        planner.simulate(EXCHANGE, designs=("intermediate",))
