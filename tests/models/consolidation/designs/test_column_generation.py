"""Groups that are apart from each other: against the direct model and all assignments of tiny fleets."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from planner.backends.pyomo import solve_model
from planner.errors import InputError
from planner.options import Options
from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import DESIGNS, patterns
from planner_models.consolidation.designs.column_generation import list_selections
from planner_models.consolidation.designs.formulation import formulation
from tests.models.consolidation.fleets import machines, make

SHAPES = 4
ONE_GROUP = "apart without a target separates the machines of one group"


def fleet(seed: int, domain: str) -> Consolidation:
    """Return machines of four shapes, of which some pairs are apart, on hosts of one or two nodes."""
    random = np.random.default_rng(seed)
    pairs = [(first, second) for first in range(SHAPES) for second in range(first)]
    picked = random.choice(len(pairs), int(random.integers(1, 3)), replace=False)
    tables: dict[str, Any] = {
        "hosts": {"host_type": ["a", "b"], "price_per_h": [2.0, 3.0]},
        "nodes": {
            "host_type": ["a", "b", "b"],
            "node": ["0", "0", "1"],
            "threads": [8.0, 8.0, 4.0],
            "memory_gb": [32.0, 32.0, 16.0],
        },
        "machines": machines(
            count=random.integers(0, 3, SHAPES).astype(float),
            vcpus_min=2.0 * random.integers(1, 3, SHAPES),
            memory_gb=random.integers(2, 12, SHAPES).astype(float),
            split=random.choice(["never", "even"], SHAPES),
            group=[f"g{row}" for row in range(SHAPES)],
        ),
        "rules": {
            "kind": ["apart"] * len(picked),
            "group": [f"g{pairs[row][0]}" for row in picked],
            "domain": [domain] * len(picked),
            "target": [f"g{pairs[row][1]}" for row in picked],
        },
    }
    if domain == "zone":
        tables["zones"] = {"zone": ["x", "y"], "most": [2.0, 1.0]}
    return make(**tables)


@pytest.mark.parametrize("seed", range(8))
def test_hosts_of_groups_that_are_apart(seed: int) -> None:
    problem = fleet(seed, "host")
    exact = solve_model(formulation(problem, hosts=8), Options(gap=0.0)).objective
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert exact is not None
    assert not len(check(problem, decision.plan))
    assert (decision.proof.bound or 0.0) <= exact + 1e-6
    assert exact - 1e-6 <= (decision.proof.objective or 0.0) <= exact + 3.0 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["host", "zone"])
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_each_design_keeps_groups_apart(design: Any, domain: str) -> None:
    for seed in range(4):
        problem = fleet(seed, domain)
        decision = design.run(problem, options=Options())
        assert not len(check(problem, decision.plan).of_limits(decision.guarantees)), seed


def cheapest(problem: Consolidation) -> float:
    """Return the least price of machines in zones that keep rules, or are refused at their price."""
    assert problem.rules is not None
    best = np.inf
    shapes = [shape for shape, count in enumerate(problem.count.tolist()) for _ in range(count)]
    apart = [
        (int(group[1]), int(target[1])) for group, target in problem.rules[["group", "target"]].to_numpy()
    ]
    for choice in product(range(3), repeat=len(shapes)):  # zone x, zone y, none
        inside = [
            {shape for shape, zone in zip(shapes, choice, strict=True) if zone == row} for row in (0, 1)
        ]
        if any({first, second} <= group for group in inside for first, second in apart):
            continue
        price = sum(problem.own_price[shape] for shape, zone in zip(shapes, choice, strict=True) if zone == 2)
        for row, most in ((0, 2), (1, 1)):
            counts = [float(sum(s == shape and z == row for s, z in zip(shapes, choice, strict=True)))
                      for shape in range(SHAPES)]  # fmt: skip
            price += _least(tuple(counts), problem, most) if price < best else 0.0
        best = min(best, price)
    return float(best)


def _least(counts: tuple[float, ...], problem: Consolidation, most: int) -> float:
    """Return the least price of hosts for some machines without rules; inf where they are too few."""
    if not any(counts):
        return 0.0
    alone = make(
        hosts=problem.hosts.to_dict("list"),
        nodes=problem.nodes.to_dict("list"),
        machines={**problem.machines.drop(columns="group").to_dict("list"), "count": list(counts)},
        zones={"zone": ["x"], "most": [float(most)]},
    )
    plan = patterns.plan(alone, options=Options(gap=0.0)).plan
    assert plan is not None
    metrics = measure(alone, plan, None)
    return np.inf if metrics["refused"] else float(metrics["price_per_h"] or 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_zones_of_groups_that_are_apart(seed: int) -> None:
    problem = fleet(seed, "zone")
    decision = patterns.plan(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    exact = cheapest(problem)
    assert (decision.proof.bound or 0.0) <= exact + 1e-6
    assert (decision.proof.objective or 0.0) >= (decision.proof.bound or 0.0) - 1e-6


def test_hosts_have_the_largest_sets_of_shapes_without_a_conflict() -> None:
    problem = make(
        machines=machines(count=[1.0, 1.0, 1.0], group=["a", "b", "c"]),
        rules={"kind": ["apart"], "group": ["a"], "domain": ["host"], "target": ["b"]},
    )
    selections = {tuple(np.flatnonzero(selection).tolist()) for selection in list_selections(problem)}
    assert selections == {(0, 2), (1, 2)}


@pytest.mark.parametrize(
    ("group", "target", "domain", "line"),
    [
        (["a", "b"], "c", "host", "target 'c' is no group of a machine; valid: a, b"),
        (["a", "a; b"], "b", "host", "machine 'm1' is in group 'a' and in 'b'; " + ONE_GROUP),
        (["a", "b"], "b", "node", "domain is node, groups can be apart in a host, rack or zone"),
    ],
)
def test_wrong_pairs_are_named(group: list[str], target: str, domain: str, line: str) -> None:
    rules = {"kind": ["apart"], "group": ["a"], "domain": [domain], "target": [target]}
    with pytest.raises(InputError) as error:
        make(machines=machines(group=group), rules=rules)
    assert error.value.faults == (f"rules row 1: {line}",)
