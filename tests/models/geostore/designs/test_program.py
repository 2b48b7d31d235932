"""The integer program of a component against the search by Lagrangian bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from planner import backends
from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.geostore.designs.component import (
    Component,
    allowed_attachments,
    costs_of,
    joint,
    single,
)
from planner_models.geostore.designs.placement import solve_component
from planner_models.geostore.designs.program import build_program, solve_program
from planner_models.geostore.designs.relaxed_program import relax
from tests.models.geostore.stores import store, with_groups


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_have_the_same_optimum(seed: int) -> None:
    problem = store(seed, regions=6, groups=3, users=3, chain=3, limit_ms=200.0)
    costs, allowed = costs_of(problem, causal=True), allowed_attachments(problem)
    members = next(rows for rows in problem.components if len(rows) > 1)
    for component in (joint(problem, members, costs, allowed), single(problem, 0, costs, allowed)):
        searched, solved = solve_component(component, gap=1e-8), solve_program(component, gap=1e-8)
        assert solved.cost == pytest.approx(searched.cost, rel=1e-6)
        assert solved.bound <= searched.cost * (1 + 1e-9)


def test_copies_that_are_always_late_exclude_replicas() -> None:
    problem = with_groups(store(1, regions=5, groups=1, users=2, limit_ms=None), stale_ms=0.1)
    component = single(problem, 0, costs_of(problem, causal=True), allowed_attachments(problem))
    assert solve_program(component, gap=1e-6).opened is None
    assert solve_component(component, gap=1e-6).opened is None


def draw_component(seed: int, *, regions: int, groups: int, users: int) -> Component:
    """Return a random component: prices by pair, limits of pages and copies, excluded replicas, in turn."""
    random = np.random.default_rng(seed)
    limit_ms = [None, 80.0, 150.0, 300.0][seed % 4]
    problem = store(
        seed, regions=regions, groups=groups, users=users, limit_ms=limit_ms, failures=seed % 3, chain=groups
    )
    if seed % 2:
        price = np.round(random.uniform(0.01, 0.2, len(problem.links)), 2)
        problem = replace(problem, links=problem.links.assign(usd_per_gb=price))
    if seed % 3 == 0:
        problem = with_groups(problem, stale_ms=random.choice([20.0, 60.0, 120.0, 1e4], groups))
    costs, allowed = costs_of(problem, causal=True), allowed_attachments(problem)
    component = joint(problem, problem.components[0], costs, allowed)
    is_excluded = random.random(component.state.shape) < 0.1 * (seed % 5 == 0)
    return replace(component, state=np.where(is_excluded, 0, component.state))


def cheapest_of(data: Component) -> float:
    """Return the least cost over all sets of replicas; inf where none keeps all constraints."""
    groups, regions = data.opening.shape
    best = np.inf
    for bits in product([False, True], repeat=groups * regions):
        opened = np.array(bits).reshape(groups, regions)
        if keeps_rules(data, opened):
            best = min(best, cost_of(data, opened))
    return best


def keeps_rules(data: Component, opened: np.ndarray) -> bool:
    """Return whether replicas keep states, numbers, covers and closure."""
    number = opened.sum(axis=1)
    return bool(
        not (opened & (data.state == 0)).any()
        and not (~opened & (data.state == 1)).any()
        and ((number >= data.least) & (number <= data.most)).all()
        and ((opened[data.cover_group] & data.cover).sum(axis=1) >= data.need).all()
        and not (opened[data.child] & ~opened[data.parent]).any()
    )


def cost_of(data: Component, opened: np.ndarray) -> float:
    """Return the cost of replicas with the cheapest attachment of each user, each copy paid by itself."""
    total = data.opening[opened].sum()
    for user, attachment in enumerate(data.attachment):
        ways = [np.inf]
        for entry in np.flatnonzero(opened[data.uses[:, user]].all(axis=0)):
            copies = 0.0
            for group in np.flatnonzero(data.uses[:, user] & (data.volume[:, user] > 0)):
                copies += data.volume[group, user] * data.price[group, entry, opened[group]].sum()
            ways.append(attachment[entry] + copies)
        total += min(ways)
    return float(total)


@pytest.mark.parametrize("seed", range(24))
def test_the_optimum_is_the_cheapest_of_all_sets_of_replicas(seed: int) -> None:
    data = draw_component(seed, regions=4, groups=2, users=3)
    solved, cheapest = solve_program(data, gap=1e-9), cheapest_of(data)
    assert solved.cost == pytest.approx(cheapest, rel=1e-9)
    assert solved.bound <= cheapest * (1 + 1e-9)
    assert solved.opened is None or solved.bound >= cheapest * (1 - 1e-6)


@pytest.mark.parametrize("first", range(0, 240, 20))
def test_the_optimum_is_that_of_the_whole_program(first: int) -> None:
    """Rows that enter where they matter, and replicas left out by reduced costs, change no optimum."""
    for seed in range(first, first + 20):
        data = draw_component(seed, regions=3 + seed % 4, groups=2 + seed % 3, users=2 + seed % 3)
        solved = solve_program(data, gap=1e-9)
        whole = backends.solve(build_program(data), Options(gap=1e-9, threads=1))
        if solved.opened is None:
            assert whole.x is None
            continue
        assert keeps_rules(data, solved.opened)
        assert solved.cost == pytest.approx(cost_of(data, solved.opened), rel=1e-9)
        assert solved.cost == pytest.approx(whole.objective, rel=1e-6)
        assert solved.cost * (1 - 1e-6) <= solved.bound <= solved.cost


@pytest.mark.parametrize("seed", range(12))
def test_the_linear_program_has_the_bound_of_the_one_with_all_rows(seed: int) -> None:
    data = draw_component(seed, regions=8, groups=4, users=4)
    whole = backends.solve(replace(build_program(data), integer=None))
    relaxed = relax(data, NEVER)
    if relaxed is None:
        assert whole.x is None
        return
    assert relaxed.bound == pytest.approx(whole.objective, rel=1e-7)
    cheapest = solve_program(data, gap=1e-9)
    if cheapest.opened is not None:
        raised = np.where(cheapest.opened, relaxed.raised, 0.0).max()
        assert relaxed.bound + raised <= cheapest.cost * (1 + 1e-9)
