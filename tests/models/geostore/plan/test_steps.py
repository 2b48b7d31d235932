"""Steps from the replicas in place to a plan: replayed, each state keeps closure and numbers of replicas."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from planner_models.geostore import SYSTEM, Geostore
from planner_models.geostore.plan.steps import COPY, Change, dependency_levels, order_changes, peak_gb
from tests.models.geostore.stores import store


def with_random_depends(seed: int) -> tuple[Geostore, np.random.Generator]:
    """Return six groups with random dependencies, circles among them."""
    random = np.random.default_rng(seed)
    problem = store(seed, regions=5, groups=6, users=3)
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b and random.random() < 0.2]
    names = problem.groups["group"].to_numpy(object)
    frame = pd.DataFrame([(names[a], names[b]) for a, b in pairs], columns=["group", "on"])
    return replace(problem, depends=frame), random


@pytest.mark.parametrize("seed", range(40))
def test_components_and_levels_are_those_of_networkx(seed: int) -> None:
    problem, _ = with_random_depends(seed)
    graph = nx.DiGraph(list(zip(*(ends.tolist() for ends in problem.depend_ends), strict=True)))
    graph.add_nodes_from(range(6))
    components = {frozenset(members.tolist()) for members in problem.components}
    assert components == {frozenset(nodes) for nodes in nx.weakly_connected_components(graph)}
    outer = nx.condensation(graph)
    below: dict[int, int] = {}
    for circle in reversed(list(nx.topological_sort(outer))):
        below[circle] = max((below[other] + 1 for other in outer.successors(circle)), default=0)
    assert dependency_levels(problem).tolist() == [below[outer.graph["mapping"][group]] for group in range(6)]


@pytest.mark.parametrize("seed", range(10))
def test_cheapest_replicas_hold_all_that_their_groups_depend_on(seed: int) -> None:
    problem, _ = with_random_depends(seed)
    descendants = nx.transitive_closure(
        nx.DiGraph(list(zip(*(ends.tolist() for ends in problem.depend_ends), strict=True)))
    )
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.plan is not None
    held = {(row.group, row.region) for row in decision.plan.replicas.itertuples()}
    names = problem.group_index
    for group, region in held:
        number = names.get_loc(group)
        for other in descendants.successors(number) if number in descendants else ():
            assert (names[other], region) in held


def closed_replicas(problem: Geostore, random: np.random.Generator) -> np.ndarray:
    """Return random replicas where each region has what its groups depend on, (G, N)."""
    held = random.random((len(problem.groups), len(problem.regions))) < 0.3
    for _ in range(len(problem.groups)):
        for child, parent in zip(*problem.causal_edges, strict=True):
            held[parent] |= held[child]
    held[:, 0] = True
    return held


def replay(before: np.ndarray, changes: list[Change]) -> list[np.ndarray]:
    """Return the replicas after each step."""
    held, states = before.copy(), []
    for _, step in groupby(changes, key=lambda item: item.step):
        for item in step:
            assert held[item.group, item.region] == (item.change != COPY)
            held[item.group, item.region] = item.change == COPY
        states.append(held.copy())
    return states


@pytest.mark.parametrize("seed", range(40))
def test_each_step_keeps_closure_and_replicas(seed: int) -> None:
    problem, random = with_random_depends(seed)
    before, after = closed_replicas(problem, random), closed_replicas(problem, random)
    changes = order_changes(problem, before, after)
    states = replay(before, changes)
    assert len(changes) == (before != after).sum()
    assert (states[-1] == after).all()
    least = np.minimum(before.sum(axis=1), after.sum(axis=1))
    gb = problem.groups["size_gb"].to_numpy(float)
    for held in states:
        for child, parent in zip(*problem.causal_edges, strict=True):
            assert not (held[child] & ~held[parent]).any()
        assert (held.sum(axis=1) >= least).all()
        assert float(gb @ held.sum(axis=1)) <= peak_gb(problem, before, after) * (1 + 1e-12)
    for item in changes:
        assert (item.source >= 0) == (item.change == COPY)
        assert item.source < 0 or before[item.group, item.source]


def test_the_wrong_order_breaks_closure() -> None:
    """The replay finds the fault of a plan that is copied against the order of its dependencies."""
    problem = store(1, regions=3, groups=2, users=2, chain=2)
    before = np.array([[True, False, False]] * 2)
    changes = order_changes(problem, before, np.array([[True, True, False]] * 2))
    assert [(item.step, int(item.group)) for item in changes] == [(1, 0), (2, 1)]
    held = replay(before, changes[::-1])[0]
    assert (held[1] & ~held[0]).any()


def test_no_change_takes_no_step() -> None:
    problem = store(1)
    held = np.ones((len(problem.groups), len(problem.regions)), dtype=bool)
    assert order_changes(problem, held, held) == []
