"""Hosts that are emptied from today: budgets, bounds, drained hosts, and moves in waves."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import repack, waves
from planner_models.consolidation.problem.generators import present
from planner_models.consolidation.problem.today import count_machines, read_today
from tests.models.consolidation.fleets import machines, make


def fits(problem: Consolidation, hosts: tuple[int, ...]) -> bool:
    """Return whether the machines of some hosts fit on the others where they are, by trying all of them."""
    today = read_today(problem)
    free = [
        [np.array(node) for node in group.free_node]
        for row, group in enumerate(today.groups)
        if row not in hosts
    ]
    moving = [
        shape
        for row in hosts
        for shape in range(len(problem.machines))
        for _ in range(today.machines[row, shape])
    ]

    def place(index: int) -> bool:
        if index == len(moving):
            return True
        need = problem.needs[moving[index]]
        for host in free:
            for node in host:
                if (node + 1e-9 >= need).all():
                    node -= need
                    if place(index + 1):
                        return True
                    node += need
        return False

    return place(0)


def fewest_hosts(problem: Consolidation, budget: float) -> float:
    """Return the fewest hosts in use within a budget, by brute force over the hosts that are empty then."""
    hosts, counts = count_machines(problem)
    memory = counts @ problem.memory_gb
    limit = budget * float(problem.memory_gb @ problem.count)
    best = len(hosts)
    for size in range(1, len(hosts)):
        for selected in itertools.combinations(range(len(hosts)), size):
            cost = len(hosts) - len(selected)
            if cost < best and memory[list(selected)].sum() <= limit + 1e-9 and fits(problem, selected):
                best = cost
    return float(best)


@pytest.mark.parametrize("seed", range(6))
def test_plan_and_bound_enclose_the_optimum(seed: int) -> None:
    problem = present(hosts=5, machines=9, use=0.45, shapes=3, seed=seed)
    decision = repack.plan(problem, budget=0.5)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    exact = fewest_hosts(problem, 0.5)
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= exact + 1e-6
    assert decision.proof.objective >= exact - 1e-6


def test_a_larger_budget_never_costs_more() -> None:
    problem = present(hosts=40, machines=300, seed=2)
    frame = repack.trade_off(problem, [0.0, 0.02, 0.05, 0.2])
    assert frame["moved_gb"].iloc[0] == 0
    assert (frame["price_per_h"].diff().dropna() <= 1e-9).all()
    assert (frame["price_per_h"] >= frame["bound"] - 1e-6).all()


def test_drained_hosts_are_emptied_whatever_the_budget_is() -> None:
    problem = present(hosts=30, machines=150, drained_racks=1, hosts_per_rack=3, seed=1)
    plan = repack.plan(problem, budget=0.0).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert not {"host 1", "host 2", "host 3"} & set(plan.fleet["host"])


def test_moves_wait_for_links_and_machines_that_write_too_fast_stay() -> None:
    problem = present(hosts=30, machines=150, drained_racks=1, hosts_per_rack=3, seed=1)
    decision = repack.plan(problem, budget=0.1)
    assert decision.plan is not None
    assert decision.plan.moves is not None
    hosts, _ = count_machines(problem)
    bound = waves.bound_s(problem, decision.plan.moves, hosts)
    last = measure(problem, decision.plan, None)["move_s"]
    assert last is not None
    assert bound - 1e-6 <= last <= 2 * bound
    assert waves.send_gb(8.0, 1.0, 2.0, rounds=1) == 12.0
    assert waves.send_gb(8.0, 2.0, 2.0) is None


def test_a_host_with_too_many_machines_today_loses_some() -> None:
    problem = make(
        machines=machines(vcpus_min=[8.0], count=[3.0]),
        present={"host": ["a", "b"], "host_type": ["h", "h"]},
        now={"machine": ["m0"], "host": ["a"], "machines": [3.0]},
    )
    assert read_today(problem).overfull == ["a"]
    plan = repack.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert plan.moves is not None
    assert plan.moves[["from_host", "to_host"]].to_numpy().tolist() == [["a", "b"]]


def test_a_host_has_the_capacity_at_each_moment_of_the_moves() -> None:
    """Two machines change places: while they move, each host would have to hold both."""
    problem = make(
        machines=machines(
            machine=["left", "right"], vcpus_min=[8.0, 8.0], memory_gb=[40.0, 40.0], split=["even"] * 2
        ),
        present={"host": ["a", "b"], "host_type": ["h", "h"]},
        now={"machine": ["left", "right"], "host": ["a", "b"]},
    )
    plan = repack.plan(problem, budget=0.0).plan
    assert plan is not None
    other = plan.placement.assign(host=plan.placement["host"].map({"a": "b", "b": "a"}))
    swap = pd.DataFrame(
        {
            "move": [1.0, 2.0],
            "wave": [1.0, 2.0],
            "machine": ["left", "right"],
            "from_host": ["a", "b"],
            "to_host": ["b", "a"],
            "gb": [40.0, 40.0],
            "start_s": [0.0, 40.0],
            "seconds": [32.0, 32.0],
        }
    )
    frame = check(problem, replace(plan, placement=other, moves=swap)).frame
    assert frame[["limit", "where", "amount", "allowed"]].to_numpy().tolist() == [["moves", "b", 80.0, 64.0]]
