"""Small stores, drawn at random or made from a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.fairshare import SharedStore
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Replicas


def make(
    rates: dict[str, float],
    tenants: dict[str, tuple[float, str, dict[str, tuple[float, str]]]],
    *,
    memory_gb: float = 100.0,
    size_gb: float = 1.0,
    **tables: Any,
) -> SharedStore:
    """Return a store with its replicas placed.

    rates    by node
    tenants  weight, mix, and by partition its demand and the nodes that it is placed on, such as "n1 n2"
    """
    parts = [(t, p, f) for t, (_, _, own_values) in tenants.items() for p, (f, _) in own_values.items()]
    placed = [
        (t, p, n)
        for t, (_, _, own_values) in tenants.items()
        for p, (_, on) in own_values.items()
        for n in on.split()
    ]
    count = {
        t: max(len(on.split()) for _, on in own_values.values()) for t, (_, _, own_values) in tenants.items()
    }
    return SharedStore(
        nodes=pd.DataFrame({"node": list(rates), "rate_kops": list(rates.values()), "memory_gb": memory_gb}),
        tenants=pd.DataFrame(
            [(t, weight, mix, max(count[t], 1)) for t, (weight, mix, _) in tenants.items()],
            columns=["tenant", "weight", "mix", "replicas"],
        ),
        partitions=pd.DataFrame(parts, columns=["tenant", "partition", "demand_kops"]).assign(
            size_gb=size_gb
        ),
        placed=pd.DataFrame(placed, columns=["tenant", "partition", "node"]) if placed else None,
        **tables,
    )


def replicas_of(problem: SharedStore) -> Replicas:
    """Return the placed replicas."""
    return Replicas(*problem.placed_replicas)


@st.composite
def stores(
    draw: st.DrawFn, *, mixes: tuple[str, ...] = ("elastic", "fixed"), tenants: int = 5, nodes: int = 4
) -> SharedStore:
    """Draw a store with up to some tenants and nodes, placed at random, with one to three replicas."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, nodes))
    rates = {f"n{n}": float(random.integers(2, 20)) for n in range(count)}
    people = {}
    for t in range(draw(st.integers(1, tenants))):
        copies = int(random.integers(1, min(3, count) + 1))
        own_values = {}
        for p in range(int(random.integers(1, 4))):
            on = random.choice(count, size=copies, replace=False)
            own_values[f"p{p}"] = (float(random.integers(0, 12)), " ".join(f"n{n}" for n in on))
        people[f"t{t}"] = (float(random.integers(1, 5)), draw(st.sampled_from(mixes)), own_values)
    first = next(iter(people.values()))[2]
    name, (demand, on) = next(iter(first.items()))
    first[name] = (demand + 1.0, on)
    return make(rates, people)


def rank_by_programs(problem: SharedStore, nodes: tuple[int, ...]) -> tuple[float, float]:
    """Return the largest share of reserved rates, then the largest least share, of partitions on nodes."""
    count, tenants = len(nodes), len(problem.tenants)
    fair, reserved, owner = fair_share_kops(problem), problem.reserved_kops, problem.tenant
    rates = np.zeros((2 + count, count + 1))
    for p, node in enumerate(nodes):
        rates[node, p] = rates[2 + p, p] = 1.0
    sums = np.array([[*(owner == t).astype(float), 0.0] for t in range(tenants)])
    limits = np.concatenate([problem.rate_kops, problem.demand_kops])
    mix = [
        [*(np.arange(count) == p) - problem.share_of_tenant[p] * (owner == owner[p]), 0.0]
        for p in range(count)
        if problem.is_fixed[owner[p]]
    ]

    def solve(due: np.ndarray, lower: np.ndarray) -> float:
        above = np.vstack([rates, sums, -sums, -sums])
        above[-tenants:, -1] = due
        right = np.concatenate([limits, problem.demand_of_tenant, -lower, np.zeros(tenants)])
        result = linprog(
            np.append(np.zeros(count), -1.0),
            A_ub=above,
            b_ub=right,
            A_eq=mix or None,
            b_eq=np.zeros(len(mix)) if mix else None,
            bounds=[(0, None)] * count + [(0, 1)],
        )
        return float(-result.fun)

    kept = solve(reserved, np.zeros(tenants))
    return round(kept, 7), solve(fair, reserved * kept * (1 - 1e-9))
