"""Shares of groups against a fluid simulation, and against the conditions of weighted max-min fairness."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner_models.fairshare import SharedStore
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops, flat_weights, pool_level
from planner_models.fairshare.plan.group_shares import build_tree, fill_groups, sum_groups


def pool(
    tenants: pd.DataFrame,
    demand: list[float],
    groups: pd.DataFrame | None = None,
    *,
    capacity: dict[str, float],
    uses: np.ndarray | None = None,
) -> SharedStore:
    """Return a store of one node with a partition for each tenant.

    capacity  by resource, of which "requests" is one
    uses      (T, further resources)
    """
    names, further = tenants["tenant"].tolist(), [name for name in capacity if name != "requests"]
    tables = {
        "nodes": pd.DataFrame({"node": ["n"], "rate_kops": [capacity["requests"]], "memory_gb": [100.0]}),
        "tenants": tenants.assign(mix="elastic"),
        "partitions": pd.DataFrame(
            {"tenant": names, "partition": "p", "demand_kops": demand, "size_gb": 0.1}
        ),
    }
    if groups is not None:
        tables["groups"] = groups
    if uses is not None:
        tables["resources"] = pd.DataFrame(
            [("n", name, capacity[name]) for name in further], columns=["node", "resource", "capacity"]
        )
        tables["uses"] = pd.DataFrame(
            [
                (tenant, name, uses[row, column])
                for row, tenant in enumerate(names)
                for column, name in enumerate(further)
            ],
            columns=["tenant", "resource", "per_op"],
        )
    return SharedStore.from_tables(tables)


def draw(rng: np.random.Generator, *, resources: int, reserves: bool = False) -> SharedStore:
    """Return a pool with up to nine tenants in a random tree of up to five groups."""
    count, groups = int(rng.integers(2, 10)), int(rng.integers(1, 6))
    names = [f"g{row}" for row in range(groups)]
    parent = ["", *[str(rng.choice(["", *names[:row]])) for row in range(1, groups)]]
    people = pd.DataFrame(
        {
            "tenant": [f"t{row}" for row in range(count)],
            "weight": rng.integers(1, 5, count).astype(float),
            "group": rng.choice(["", *names], count).astype(object),
        }
    )
    people.loc[0, "group"] = names[-1]
    demand = rng.choice([1.0, 4.0, 9.0, 500.0], count)
    if reserves:
        people["reserved_kops"] = rng.choice([np.nan, 0.5, 3.0, 6.0], count)
        people["limit_kops"] = rng.choice([np.nan, 6.0, 7.0, 20.0], count)
    capacity = {"requests": float(rng.integers(10, 40))}
    capacity |= {f"r{row}": float(rng.integers(5, 40)) for row in range(1, resources)}
    uses = rng.integers(0, 4, (count, resources - 1)).astype(float) if resources > 1 else None
    frame = pd.DataFrame(
        {"group": names, "parent": parent, "weight": rng.integers(1, 5, groups).astype(float)}
    )
    return pool(people, demand.tolist(), frame, capacity=capacity, uses=uses)


def simulate_filling(problem: SharedStore) -> np.ndarray:
    """Return the rates of a fluid simulation, (T,): from event to event, each group divides its growth.

    A group gives to its members that still grow, in proportion to weights. A tenant stops where it has all
    its demand, or where a resource that it uses is full.
    """
    parent_of = {str(g): str(p or "") for g, p in problem.groups[["group", "parent"]].to_numpy()}
    weight_of = dict(zip(problem.group_names, problem.weight_of_group, strict=True))
    groups = problem.tenants["group"].astype(str).tolist()
    total = problem.capacity.sum(axis=0)
    dominant = (problem.per_op / total).max(axis=1)
    rate, demand = np.zeros(len(groups)), problem.demand_of_tenant
    grows = demand > 0

    def growth() -> np.ndarray:
        """Return the growth of tenants in dominant share, for one of the root."""
        grown = np.zeros(len(groups))

        def give(group: str, amount: float) -> None:
            inner = [g for g, above in parent_of.items() if above == group and any_grows(g)]
            own = [t for t in np.flatnonzero(grows) if groups[t] == group]
            weights = sum(weight_of[g] for g in inner) + sum(problem.weight[t] for t in own)
            for g in inner:
                give(g, amount * weight_of[g] / weights)
            for t in own:
                grown[t] += amount * problem.weight[t] / weights

        give("", 1.0)
        return grown

    def any_grows(group: str) -> bool:
        within = any(grows[t] and groups[t] == group for t in range(len(groups)))
        return within or any(any_grows(g) for g, above in parent_of.items() if above == group)

    while grows.any():
        speed = growth() / dominant
        use, free = problem.per_op.T @ speed, total - problem.per_op.T @ rate
        steps = [(demand[t] - rate[t]) / speed[t] for t in np.flatnonzero(grows)]
        steps += [free[r] / use[r] for r in np.flatnonzero(use > 1e-12)]
        rate = rate + max(min(steps), 0.0) * speed
        full = total - problem.per_op.T @ rate <= 1e-9 * total
        grows = grows & (rate < demand * (1 - 1e-9)) & ~(problem.per_op[:, full] > 0).any(axis=1)
    return rate


@pytest.mark.parametrize("seed", range(30))
def test_shares_of_groups_are_those_of_a_fluid_simulation(seed: int) -> None:
    problem = draw(np.random.default_rng(seed), resources=1 + seed % 3)
    assert fair_share_kops(problem) == pytest.approx(simulate_filling(problem), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_reserved_rates_and_limits_keep_the_conditions_of_max_min_fairness(seed: int) -> None:
    """Of two members side by side, one that could fall has no larger part than one that could rise."""
    problem = draw(np.random.default_rng(seed), resources=1, reserves=True)
    rate, capacity = fair_share_kops(problem), float(problem.rate_kops.sum())
    demand, reserved = problem.demand_of_tenant, problem.reserved_kops
    assert rate.sum() == pytest.approx(min(capacity, demand.sum()))
    assert (rate <= demand * (1 + 1e-9)).all()
    if reserved.sum() > capacity:
        assert rate == pytest.approx(reserved * capacity / reserved.sum())
        return
    assert (rate >= reserved * (1 - 1e-9)).all()
    amounts = np.stack([rate, reserved, demand])
    every = np.concatenate([amounts, sum_groups(problem, amounts)], axis=1)
    weight = np.concatenate([problem.weight, problem.weight_of_group])
    for rows in build_tree(problem).members.values():
        part, lower, upper = every[:, rows]
        can_fall, can_rise = part > lower * (1 + 1e-9) + 1e-9, part < upper * (1 - 1e-9) - 1e-9
        if can_fall.any() and can_rise.any():
            level = part / weight[rows]
            assert level[can_fall].max() <= level[can_rise].min() * (1 + 1e-9)


def test_groups_that_change_nothing_leave_the_shares_of_tenants() -> None:
    rng = np.random.default_rng(3)
    for resources in (1, 2, 3):
        problem = draw(rng, resources=resources)
        plain = problem.with_tenants(group="")
        due = entitlement(plain)
        filled = fill_groups(
            plain,
            fraction=plain.weight / due,
            reserved_kops=np.zeros(len(due)),
            demand_kops=plain.demand_of_tenant,
            capacity=plain.capacity.sum(axis=0),
        )
        assert filled == pytest.approx(fair_share_kops(plain), rel=1e-9)


def test_a_queue_shares_within_itself_what_its_tenants_leave() -> None:
    """Of 12, groups a and b are due 6 each; in a, one tenant wants 1 and leaves 5 to the other."""
    people = pd.DataFrame({"tenant": ["a1", "a2", "b1"], "weight": [1.0, 1.0, 5.0], "group": ["a", "a", "b"]})
    groups = pd.DataFrame({"group": ["a", "b"], "weight": [1.0, 1.0]})
    problem = pool(people, [1.0, 100.0, 100.0], groups, capacity={"requests": 12.0})
    assert fair_share_kops(problem) == pytest.approx([1.0, 5.0, 6.0])
    assert flat_weights(problem) == pytest.approx([0.5, 0.5, 1.0])
    assert pool_level(problem) * entitlement(problem)[2] <= 6.0 * (1 + 1e-9)


def test_a_tenant_is_due_its_reserved_rate_its_limit_or_its_part() -> None:
    """Of 12: c has 8 reserved, a is limited to 1, and b has the remaining 3."""
    people = pd.DataFrame(
        {
            "tenant": ["a", "b", "c"],
            "weight": 1.0,
            "reserved_kops": [np.nan, np.nan, 8.0],
            "limit_kops": [1.0, np.nan, np.nan],
        }
    )
    problem = pool(people, [50.0, 50.0, 50.0], capacity={"requests": 12.0})
    assert fair_share_kops(problem) == pytest.approx([1.0, 3.0, 8.0])
