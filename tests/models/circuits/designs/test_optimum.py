"""Every design with every parameter that changes its search, against the optimum of a brute-force search."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from planner.contract.proof import Status
from planner_models.circuits import SYSTEM, Circuits, check, measure
from planner_models.circuits.problem import generators

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "eclipse": [{"starts": starts} for starts in (0, 1, 4, 64)],
    "eclipse_queues": [{"starts": starts} for starts in (0, 4)],
    "eclipse_units": [{"starts": starts} for starts in (0, 4)],
    "tms": [{"rounds": rounds} for rounds in (1, 50)],
    "hotspot": [{"day_us": day_us} for day_us in (30.0, 200.0)],
    "islip": [{"day_us": day_us} for day_us in (30.0, 200.0)],
    "strobe": [{"day_us": day_us} for day_us in (30.0, 200.0)],
    "fixed": [{"shifts": (1, 2)}, {"shifts": (2,), "day_us": 100.0}],
    "search": [{"steps": steps} for steps in (0, 500)],
    "optimum": [{}, {"most_matchings": 1, "steps": 100}, {"steps": 0}],
}
"""Values of parameters; other designs run as they are."""


def most_by_brute_force(problem: Circuits) -> float:
    """Return the most bits of a week over all sets of matchings, each after a night, without packets."""
    bits, rate = problem.bits, problem.circuit_mbps
    racks, week, night = len(bits), float(problem.window_us or 0.0), problem.night_us
    pairs = [(i, j) for i, j in itertools.product(range(racks), repeat=2) if bits[i, j] > 0]
    orders = [np.array(order) for order in itertools.permutations(range(racks))]
    best = 0.0
    for count in range(1, min(len(orders), int(week / night)) + 1):
        for selected in itertools.combinations(orders, count):
            columns = count + len(pairs)
            upper = np.zeros((len(pairs) + 1, columns))
            for row, (i, j) in enumerate(pairs):
                upper[row, count + row] = 1.0
                upper[row, :count] = [-rate[i, j] * (order[i] == j) for order in selected]
            upper[-1, :count] = 1.0
            limits = [(0, None)] * count + [(0, bits[pair]) for pair in pairs]
            cost = np.concatenate([np.zeros(count), -np.ones(len(pairs))])
            free = np.concatenate([np.zeros(len(pairs)), [week - count * night]])
            best = max(best, -float(linprog(cost, A_ub=upper, b_ub=free, bounds=limits).fun))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_design_beats_the_optimum_with_any_parameter(seed: int) -> None:
    random = np.random.default_rng(seed)
    bits = random.choice([0.0, 1e6, 4e6, 9e6, 3e7], (3, 3))
    np.fill_diagonal(bits, 0.0)
    bits[0, 1] += 2e6
    problem = Circuits.from_matrix(
        bits,
        circuit_mbps=50_000.0,
        packet_mbps=0.0,
        night_us=float(random.choice([20.0, 150.0])),
        window_us=600.0,
    )
    upper = most_by_brute_force(problem) / 600.0
    for design in SYSTEM.designs:
        if design.name == "bound":
            for kinds in (1, 2, 4):
                bound = design.run(problem, parameters={"kinds": kinds}).proof.bound
                assert bound is not None
                assert bound >= upper * (1 - 1e-6)
            continue
        for parameters in PARAMETERS.get(design.name, [{}]):
            decision = design.run(problem, parameters=parameters)
            served = measure(problem, decision.plan, None)["served_mbps"]
            assert served is not None
            assert served <= upper * (1 + 1e-6), (design.name, parameters)
            assert not len(check(problem, decision.plan))
            if design.name == "optimum":
                assert decision.proof.bound is not None
                assert decision.proof.bound >= upper * (1 - 1e-6)
                if not parameters:
                    assert decision.proof.status is Status.OPTIMAL
                    assert served == pytest.approx(upper, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("starts", [0, 1, 4, 16])
def test_the_optimum_of_many_racks_knows_more_lengths_of_eclipse(starts: int) -> None:
    """Where matchings are not listed, no start of Eclipse serves more than the optimum."""
    problem = generators.skewed(
        racks=32,
        seed=41,
        load=0.9,
        large=7,
        small=10,
        large_share=0.3,
        packet_mbps=1_000.0,
        window_us=1_000.0,
    )
    best = SYSTEM.design("optimum").run(problem, parameters={"steps": 1_000}).proof.objective
    assert best is not None
    other = SYSTEM.design("eclipse").run(problem, parameters={"starts": starts}).proof.objective
    assert other is not None
    assert other <= best * (1 + 1e-6)
