"""The formal model against enumeration, and the designs between the bound and the optimum."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from planner.backends.pyomo import solve_model
from planner.errors import InputError
from planner.options import Options
from planner_models.flowtables import SYSTEM, FlowTables, measure
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.designs.formulation import formulation, list_masks
from planner_models.flowtables.plan.classification import find_valid
from tests.models.flowtables.switches import make

CASES = [
    ([(3, "a=5", "drop"), (2, "a=4/1", "out:1"), (1, "", "out:2")], ["a=0", "a=1", "a=4", "a=5", "a=6"]),
    ([(3, "a=1", "out:1"), (2, "a=2", "out:2")], ["a=1", "a=2", "a=3", "a=7"]),
    ([(2, "a=4/1 c=1", "out:1"), (1, "a=6/2", "out:2")], ["a=0", "a=4 c=1", "a=5 c=1", "a=6", "a=7 c=2"]),
    ([(2, "a=3", "drop"), (1, "a=0/1", "out:1")], ["a=0", "a=1", "a=2", "a=3", "a=5"]),
]


def repeat(headers: list[str]) -> list[str]:
    """Return headers with 1, 4, 7, ... connections."""
    return [text for index, text in enumerate(headers) for _ in range(1 + 3 * index)]


def enumerate_all(problem: FlowTables, most_masks: int) -> float:
    """Return the least time of a connection, over all ordered masks and valid masks of each header."""
    headers, masks = group_headers(problem), list_masks(problem)
    valid = find_valid(headers.words, masks, problem.entries)
    probe, upcall = problem.probe_us, problem.cost("upcall_us")
    best = np.inf
    for count in range(1, most_masks + 1):
        for used in combinations(range(len(masks)), count):
            options = [[m for m in used if valid[m, h]] for h in range(len(headers.words))]
            for selected in product(*options):
                entries = {(m, tuple((headers.words[h] & masks[m]).tolist())) for h, m in enumerate(selected)}
                for order in permutations(used):
                    searched = [order.index(m) + 1 for m in selected]
                    lookups = probe * float(np.dot(headers.weight, searched))
                    best = min(best, lookups + (upcall + probe * count) * len(entries))
    return best / len(problem.flows)


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("probe_ns", [147.0, 3_000.0])
def test_the_model_has_the_optimum_and_no_design_beats_it(case: int, probe_ns: float) -> None:
    rules, headers = CASES[case]
    problem = make(rules, repeat(headers), probe_ns=probe_ns)
    optimum = solve_model(formulation(problem, most_masks=2), Options(threads=1)).objective
    assert optimum is not None
    assert optimum == pytest.approx(enumerate_all(problem, 2), rel=1e-6)
    three = solve_model(formulation(problem, most_masks=3), Options(threads=1)).objective
    assert three is not None
    assert three <= optimum * (1 + 1e-6)
    for design in SYSTEM.designs:
        decision = design.run(problem)
        metrics = measure(problem, decision.plan, None)
        # more masks than three may be better still
        if (metrics["masks"] or 0) <= 3:
            assert (metrics["cpu_per_connection_us"] or 0.0) >= three * (1 - 1e-6), design.name
        if decision.proof.bound is not None and decision.proof.metric == "cpu_per_connection_us":
            assert decision.proof.bound <= three * (1 + 1e-6)
    merged = SYSTEM.design("merged").run(problem).proof.objective
    assert merged is not None
    assert merged <= 1.25 * three


def test_large_problems_have_no_model() -> None:
    with pytest.raises(InputError, match="rules match"):
        formulation(SYSTEM.problem.presets["small"]())
