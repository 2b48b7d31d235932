"""Machines that are together, and limits of racks and zones: against all assignments of tiny fleets."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from planner_models.consolidation import Consolidation, check
from planner_models.consolidation.designs import patterns
from planner_models.consolidation.designs.bundles import keep_one_host, pin_groups
from planner_models.consolidation.problem.packing import empty_group
from tests.models.consolidation.fleets import machines, make

KINDS = [
    ("together", "host"),
    ("together", "rack"),
    ("together", "zone"),
    ("spread", "rack"),
    ("spread", "zone"),
]
PER_PLACE = 2
"""Hosts of each type in each rack that are tried."""


def fleet(seed: int, kind: str, domain: str) -> Consolidation:
    """Return machines of three shapes, two in a group, and hosts of one node in two places."""
    random = np.random.default_rng(seed)
    count = np.array([2.0, 1.0, float(random.integers(1, 3))])
    places: dict[str, Any] = {"zone": ["x", "y"], "most": [PER_PLACE, PER_PLACE]}
    if domain == "rack":
        places = {"zone": ["x"], "racks": [2.0], "most": [PER_PLACE]}
    return make(
        hosts={"host_type": ["a", "b"], "price_per_h": [2.0, 3.0], "most": [4.0, 2.0]},
        nodes={
            "host_type": ["a", "b"],
            "node": ["0", "0"],
            "threads": [float(random.integers(6, 9)), 12.0],
            "memory_gb": [32.0, 48.0],
        },
        machines=machines(
            count=count,
            vcpus_min=random.integers(1, 4, 3).astype(float),
            memory_gb=random.integers(4, 12, 3).astype(float),
            group=["g", "g", ""],
        ),
        rules={
            "kind": [kind],
            "group": ["g"],
            "domain": [domain],
            "most": [2.0 if kind == "spread" else 1.0],
            "target": [""],
        },
        zones=places,
    )


def cheapest(problem: Consolidation) -> float:
    """Return the least price over all assignments of machines to single hosts; inf where none is allowed."""
    assert problem.rules is not None
    rule = problem.rules.iloc[0]
    hosts = [
        (supply.host_type, getattr(supply, str(rule["domain"]), ""), supply.zone, row)
        for row, supply in enumerate(problem.supplies)
        for _ in range(PER_PLACE)
    ]
    shapes = [shape for shape, count in enumerate(problem.count.tolist()) for _ in range(count)]
    size = np.array([[problem.vcpus[shape], problem.memory_gb[shape]] for shape in shapes])
    capacity = problem.nodes[["threads", "memory_gb"]].to_numpy(float)
    best = np.inf
    for choice in product(range(len(hosts)), repeat=len(shapes)):
        used = sorted(set(choice))
        price = sum(float(problem.price[hosts[host][0]]) for host in used)
        if price >= best or not _keeps_supply(problem, [hosts[host] for host in used]):
            continue
        members = [choice[number] for number, shape in enumerate(shapes) if shape < 2]
        if not _keeps_rule(rule, [host if rule["domain"] == "host" else hosts[host][1] for host in members]):
            continue
        assigned = np.array(choice)
        if all((size[assigned == host].sum(axis=0) <= capacity[hosts[host][0]]).all() for host in used):
            best = price
    return best


def _keeps_supply(problem: Consolidation, used: list[tuple[int, Any, str, int]]) -> bool:
    types = np.bincount([host_type for host_type, *_ in used], minlength=2)
    zones = [sum(zone == name for _, _, zone, _ in used) for name in problem.zone_names]
    return bool((types <= problem.most).all() and (np.array(zones) <= problem.zone_most).all())


def _keeps_rule(rule: Any, domains: list[Any]) -> bool:
    if rule["kind"] == "together":
        return len(set(domains)) == 1
    return bool(max(domains.count(name) for name in domains) <= rule["most"])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "domain"), KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_plan_and_bound_enclose_all_assignments(seed: int, kind: str, domain: str) -> None:
    problem = fleet(seed, kind, domain)
    decision = patterns.plan(problem)
    exact = cheapest(problem)
    assert decision.plan is not None
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= exact + 1e-6
    if decision.plan.refused is None:
        assert not len(check(problem, decision.plan))
        assert exact - 1e-6 <= decision.proof.objective <= exact + problem.price.max() + 1e-6
    else:
        assert exact == np.inf


def test_each_zone_of_a_group_is_a_problem_of_its_own() -> None:
    problem = fleet(0, "together", "zone")
    pinned = pin_groups(problem)
    assert [item.rules["target"].tolist() for item in pinned if item.rules is not None] == [["x"], ["y"]]
    assert all(not item.bundles for item in pinned)
    assert pin_groups(fleet(0, "spread", "zone"))[0].rules is not None


def test_one_host_keeps_the_machines_that_are_together() -> None:
    problem = fleet(0, "together", "host")
    group = empty_group(problem, 0, 3)
    way = problem.placings[0][0][0]
    group.add((0, way.vcpus, 0), way, 2)
    kept = keep_one_host(problem, [group], np.array([0, 1]))
    assert [(item.hosts, item.members(0)) for item in kept] == [(1, 2)]


def test_the_only_rack_of_a_zone_is_another_one_than_that_of_the_next_zone() -> None:
    """Two racks hold two machines each: four that are in one rack together have no host."""
    problem = make(
        machines=machines(count=[4.0], vcpus_min=[8.0], group=["g"]),
        zones={"zone": ["x", "y"], "most": [1.0, 1.0]},
        rules={"kind": ["together"], "group": ["g"], "domain": ["rack"]},
    )
    plan = patterns.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert plan.refused is not None
    assert plan.refused["machines"].tolist() == [4.0]
