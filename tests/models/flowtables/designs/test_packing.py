"""Covers by column generation and packings that bound them, against all valid cubes of small switches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from planner.search.deadline import NEVER
from planner_models.flowtables import SYSTEM, FlowTables, check
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.packing import pack
from planner_models.flowtables.plan.classification import classify
from tests.models.flowtables.switches import every_word, make, switches


def list_cubes(problem: FlowTables, words: np.ndarray) -> np.ndarray:
    """Return which headers (n, words) each valid cube holds, (n, cubes), by actions of all 256 headers."""
    every = every_word(problem)
    actions = classify(every, problem.entries)
    held = set()
    for mask in every:
        for value in np.unique(words & mask, axis=0):
            if len(np.unique(actions[((every & mask) == value).all(axis=1)])) == 1:
                held.add(((words & mask) == value).all(axis=1).tobytes())
    return np.array([np.frombuffer(item, dtype=bool) for item in sorted(held)]).T


@pytest.mark.slow
@given(switches())
@settings(max_examples=15, deadline=None)
def test_a_packing_is_no_larger_than_any_cover(problem: FlowTables) -> None:
    words = group_headers(problem).words
    result = pack(problem, words, 10, NEVER)
    cubes = list_cubes(problem, words)
    lower = linprog(np.ones(cubes.shape[1]), A_ub=-cubes.astype(float), b_ub=-np.ones(len(words))).fun
    assert result.bound <= lower + 1e-6
    assert len(result.header) >= lower - 1e-6
    is_held = np.zeros(len(words), dtype=bool)
    names = {cube.tobytes() for cube in cubes.T}
    for header, mask in zip(result.header, result.mask, strict=True):
        held = ((words ^ words[header]) & mask == 0).all(axis=1)
        assert held.tobytes() in names
        is_held |= held
    assert is_held.all()


def test_a_packing_proves_more_than_headers_that_share_no_entry() -> None:
    """Of three headers any two share an entry, and all three do not: 1.5 entries at least, so 2."""
    problem = make([(1, "a=7", "out:1")], ["a=4 b=0 c=0", "a=2 b=0 c=0", "a=1 b=0 c=0"])
    result = pack(problem, group_headers(problem).words, 10, NEVER)
    assert result.bound == pytest.approx(1.5)
    assert len(result.header) == 2
    proof = SYSTEM.design("fewest_misses").run(problem, parameters={"rounds": 10}).proof
    assert (proof.objective, proof.bound) == (2, 2)


def test_an_entry_is_valid_where_no_random_header_shows_the_opposite() -> None:
    """Of 65,536 headers with c=1 one alone matches no rule before that of c=1."""
    fields = pd.DataFrame(
        [("a", 16, "l2", 0), ("c", 1, "l4", 0)], columns=["field", "bits", "stage", "prefix"]
    )
    bits = [(3, f"a={1 << bit}/{1 << bit:#x}", "out:1") for bit in range(16)]
    headers = [f"a={value} c=1" for value in (0x5555, 0xAAAA, 0x5A5A)]
    problem = make([*bits, (2, "c=1", "out:2"), (1, "", "out:1")], headers, fields=fields)
    decision = SYSTEM.design("fewest_misses").run(problem, parameters={"rounds": 4})
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.proof.objective == 2
