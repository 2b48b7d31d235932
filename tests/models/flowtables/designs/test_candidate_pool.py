"""The bound on pools of candidate masks, against its linear program and against the formal model."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from planner.backends.pyomo import solve_model
from planner.options import Options
from planner_models.flowtables import SYSTEM, FlowTables, check
from planner_models.flowtables.designs.candidate_pool import CandidateSearch, list_candidates
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.formulation import formulation, list_masks
from planner_models.flowtables.designs.pool_search import PoolSearch
from planner_models.flowtables.plan.classification import find_valid
from planner_models.flowtables.problem import generators
from planner_models.flowtables.problem.fields import Words
from tests.models.flowtables.switches import make

RULES = [
    [(3, "a=5", "drop"), (2, "a=4/1", "out:1"), (1, "", "out:2")],
    [(3, "a=1", "out:1"), (2, "a=2", "out:2")],
    [(2, "a=4/1 c=1", "out:1"), (1, "a=6/2", "out:2")],
]
HEADERS = ["a=0", "a=1", "a=3", "a=4 c=1", "a=5 c=1", "a=6", "a=7 c=2"]


def bound_pools(problem: FlowTables, masks: Words) -> tuple[CandidateSearch, float]:
    """Return the search among masks, the last of which serves all headers, and the bound of a connection."""
    headers = group_headers(problem)
    search = PoolSearch(problem, headers)
    candidates = list_candidates(search, masks, headers.words[:0], len(masks))
    candidate_search = CandidateSearch(problem, headers, search, candidates, masks[-1:])
    price = candidate_search.improve(30, np.random.default_rng(0))
    return candidate_search, candidate_search.bound_us(price) / len(problem.flows)


def solve_linear_program(problem: FlowTables, masks: Words, count: int) -> float:
    """Return the least value of a connection of the linear program of so many masks, in Pyomo."""
    headers, positions = group_headers(problem), range(count)
    valid = find_valid(headers.words, masks, problem.entries)
    miss_us = problem.cost("upcall_us") + problem.probe_us * count
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(len(masks)), range(len(headers.words)), positions, bounds=(0, 1))
    model.z = pyo.Var(range(len(masks)), positions, bounds=(0, 1))
    model.y, model.limits = pyo.VarList(domain=pyo.NonNegativeReals), pyo.ConstraintList()
    cost: Any = 0
    for m, mask in enumerate(masks):
        _, entry = np.unique(headers.words & mask, axis=0, return_inverse=True)
        for e, s in product(np.unique(entry).tolist(), positions):
            item = model.y.add()
            cost += miss_us * item
            model.limits.add(item <= model.z[m, s])
            for h in np.flatnonzero(entry.reshape(-1) == e).tolist():
                model.limits.add(model.x[m, h, s] <= (item if valid[m, h] else 0))
                cost += problem.probe_us * (s + 1) * float(headers.weight[h]) * model.x[m, h, s]
        model.limits.add(sum(model.z[m, s] for s in positions) <= 1)
    for s in positions:
        model.limits.add(sum(model.z[m, s] for m in range(len(masks))) <= 1)
    for h in range(len(headers.words)):
        model.limits.add(sum(model.x[m, h, s] for m in range(len(masks)) for s in positions) == 1)
    model.goal = pyo.Objective(expr=cost)
    result = solve_model(model, Options(threads=1)).objective
    assert result is not None
    return result / len(problem.flows)


@pytest.mark.parametrize(("rules", "probe_ns"), list(zip(RULES, (147.0, 3_000.0, 500.0), strict=True)))
def test_the_bound_is_the_least_value_of_the_linear_programs(
    rules: list[tuple[int, str, str]], probe_ns: float
) -> None:
    connections = [text for index, text in enumerate(HEADERS) for _ in range(1 + 3 * index)]
    problem = make(rules, connections, probe_ns=probe_ns)
    masks = list_masks(problem)[-6:]
    result, bound_us = bound_pools(problem, masks)
    values = [solve_linear_program(problem, masks, count) for count in range(1, len(masks) + 1)]
    assert bound_us <= min(values) * (1 + 1e-9)
    assert bound_us >= min(values) * 0.99
    assert result.time_us / len(problem.flows) >= min(values) * (1 - 1e-9)


@pytest.mark.parametrize("rules", RULES)
def test_no_pool_of_the_formal_model_beats_the_bound(rules: list[tuple[int, str, str]]) -> None:
    problem = make(rules, [text for text in HEADERS for _ in range(4)])
    result, bound_us = bound_pools(problem, list_masks(problem))
    optimum = solve_model(formulation(problem, most_masks=2), Options(threads=1)).objective
    assert optimum is not None
    assert bound_us <= optimum * (1 + 1e-6)
    if len(result.pool) <= 2:
        assert result.time_us / len(problem.flows) >= optimum * (1 - 1e-6)


@pytest.mark.slow
def test_candidates_give_a_pool_of_no_more_time_and_a_bound_on_pools_of_them() -> None:
    problem = generators.acl(rules=30, connections=100, seed=3)
    alone = SYSTEM.design("merged").run(problem, parameters={"trials": 50}).proof
    decision = SYSTEM.design("merged").run(problem, parameters={"trials": 50, "candidates": 40})
    proof = decision.proof
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    scope = r"pools of 40 candidate masks \(list [0-9a-f]{8}\) with an entry for each connection"
    assert re.fullmatch(scope, proof.bound_scope or "")
    assert alone.bound is not None
    assert alone.objective is not None
    assert alone.bound <= (proof.bound or 0.0) <= (proof.objective or 0.0) <= alone.objective


def test_more_masks_than_have_a_bound_of_their_own_are_bounded_together() -> None:
    """The bound on K and more masks is below that on K, and below those on more."""
    problem = generators.acl(rules=30, connections=100, seed=3)
    headers = group_headers(problem)
    search = PoolSearch(problem, headers)
    masks = list_prefixes(problem)
    candidates = list_candidates(search, masks, headers.words[:0], len(masks))
    candidate_search = CandidateSearch(problem, headers, search, candidates, masks)
    price = np.full(len(headers.words), candidate_search.time_us / len(headers.words))
    candidate_search.most = len(masks)
    each = [candidate_search.relax(price, count).bound for count in range(4, len(masks) + 1)]
    candidate_search.most = 4
    assert candidate_search.relax(price, 4).bound <= min(each)


def list_prefixes(problem: FlowTables) -> Words:
    """Return some prefixes of the bits that rules match, all of them last."""
    numbers = problem.layout.to_numbers(problem.used_mask[None, :])[0]
    cut = [numbers >> position << position for position in (64, 32, 16, 8, 4, 2, 1, 0)]
    return problem.layout.to_words(cut)
