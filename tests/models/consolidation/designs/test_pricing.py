"""The most valuable pattern of a host: dynamic programming against an integer program."""

from __future__ import annotations

import numpy as np
import pytest

from planner.options import Options
from planner_models.consolidation.designs.grid import common_measure
from planner_models.consolidation.designs.pattern_program import price_by_program
from planner_models.consolidation.designs.pricing import NodePricer, RoundedPricer, fits, make_pricer
from planner_models.consolidation.problem.generators import pods
from planner_models.consolidation.problem.packing import regroup
from tests.models.consolidation.fleets import machines, make, random_fleet

EXACT = Options(gap=0.0)


@pytest.mark.parametrize("seed", range(12))
def test_dynamic_programming_equals_an_integer_program(seed: int) -> None:
    problem = random_fleet(seed, largest=40)
    random = np.random.default_rng(seed)
    values = random.uniform(0.1, 1.0, len(problem.machines)) * problem.vcpus * (problem.count > 0)
    allowed = np.ones(len(values), dtype=bool)
    pricer = NodePricer(problem)
    tables = pricer.tables(values, allowed)
    for host_type in range(len(problem.hosts)):
        fast = pricer.price(host_type, tables)
        unlimited = make(
            **{name: table for name, table in problem.to_tables().items() if name != "machines"},
            machines=problem.machines.assign(count=1000.0 * (problem.count > 0)),
        )
        exact = price_by_program(unlimited, host_type, values, allowed, EXACT)
        limited = price_by_program(problem, host_type, values, allowed, EXACT)
        assert limited.value - 1e-9 <= fast.bound <= exact.value + 1e-9
        if fast.pattern is not None:
            assert fast.value == pytest.approx(float(values @ fast.pattern.units))
            group = regroup(problem, host_type, 1, dict(fast.pattern.copies))
            assert min(min(free) for free in [*group.free_node, group.free_whole]) >= -1e-9


@pytest.mark.parametrize("seed", range(8))
def test_rounded_sizes_bound_the_value_and_their_patterns_fit(seed: int) -> None:
    """Memory in GiB and in GB has no common measure: the exact value lies between pattern and bound."""
    fleet = random_fleet(seed, largest=40)
    random = np.random.default_rng(seed)
    memory = random.uniform(3.0, 30.0, len(fleet.machines))
    problem = make(
        **{name: table for name, table in fleet.to_tables().items() if name != "machines"},
        machines=fleet.machines.assign(memory_gb=memory, count=1000.0 * (fleet.count > 0)),
    )
    values = random.uniform(0.1, 1.0, len(memory)) * problem.vcpus * (problem.count > 0)
    allowed = np.ones(len(values), dtype=bool)
    pricer = RoundedPricer(problem)
    for host_type in range(len(problem.hosts)):
        priced = pricer.price(host_type, pricer.tables(values, allowed))
        exact = price_by_program(problem, host_type, values, allowed, EXACT)
        assert priced.value <= exact.value + 1e-6
        assert exact.value <= priced.bound + 1e-6
        assert priced.bound <= 1.1 * exact.value + 1e-6
        if priced.pattern is not None:
            group = regroup(problem, host_type, 1, dict(priced.pattern.copies))
            assert min(min(free) for free in [*group.free_node, group.free_whole]) >= -1e-9


def test_pods_in_gib_and_gb_are_priced_by_rounded_tables() -> None:
    problem = pods(machines=300)
    memory = problem.memory_gb * np.where(np.arange(len(problem.machines)) % 2, 1.073741824, 1.0)
    mixed = make(
        **{name: table for name, table in problem.to_tables().items() if name != "machines"},
        machines=problem.machines.assign(memory_gb=memory),
    )
    assert isinstance(make_pricer(mixed), RoundedPricer)
    assert isinstance(make_pricer(problem), NodePricer)


@pytest.mark.parametrize("seed", range(6))
def test_more_patterns_of_a_table_fit_and_are_no_better_than_the_best(seed: int) -> None:
    problem = random_fleet(seed, largest=40)
    random = np.random.default_rng(seed)
    values = random.uniform(0.1, 1.0, len(problem.machines)) * problem.vcpus * (problem.count > 0)
    pricer = NodePricer(problem)
    tables = pricer.tables(values, np.ones(len(values), dtype=bool))
    for host_type in range(len(problem.hosts)):
        best = pricer.price(host_type, tables)
        more = list(pricer.price_more(host_type, tables, 5))
        assert more or best.pattern is None or not len(tables.items[0].rows)
        for pattern in more:
            assert float(values @ pattern.units) <= best.bound + 1e-9
            assert fits(problem, pattern)


def test_helpers_are_tried_in_each_node() -> None:
    """With 2 helper threads in one node, a machine of 8 fits in the other one."""
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "helper_share": [2 / 16]},
        machines=machines(vcpus_min=[8.0, 6.0]),
    )
    values = np.array([8.0, 6.0])
    pricer = NodePricer(problem)
    best = pricer.price(0, pricer.tables(values, np.ones(2, dtype=bool)))
    assert best.value == 14.0


def test_machines_split_in_any_way_are_priced_by_a_program() -> None:
    problem = make(machines=machines(vcpus_min=[12.0], split=["any"]))
    with pytest.raises(ValueError, match="in any way"):
        NodePricer(problem)
    priced = price_by_program(problem, 0, np.array([1.0]), np.ones(1, dtype=bool), EXACT)
    assert priced.value == 1.0


def test_amounts_have_a_common_measure() -> None:
    assert common_measure(np.array([0.25, 1.5])) == pytest.approx(0.25)
