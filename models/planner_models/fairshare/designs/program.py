"""Linear and integer programs: dominant-resource fairness for given replicas, and the exact placement."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.errors import SolverFailure
from planner.options import Options
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem.problem import SharedStore

TIGHT: Final = 1e-7
"""Dual price, relative to the largest, from which a tenant is at its level in every solution."""
HELD: Final = 1e-9
"""Relative amount by which a tenant that is held may fall, so that rounding leaves programs feasible."""


SAME_SHARE: Final = 1e-9
"""Relative difference of least shares that counts as none."""


class Dominant(NamedTuple):
    """Rates of tenants (T,) and replicas (K,), thousands per second, and the levels with their tenants."""

    rate: Floats
    kops: Floats
    levels: tuple[tuple[float, Ints], ...]


def share_dominant(
    problem: SharedStore, replicas: Replicas, options: Options = Options(), *, due: Floats | None = None
) -> Dominant:
    """Return the lexicographic weighted max-min rates for given replicas, a linear program for each level.

    With several resources a tenant's rate counts by its dominant one. Each program raises the level of all
    tenants that are not held yet; those with a dual price on it are held there.

    due     (T,) rates at level 1; default: `entitlement`
    raises  SolverFailure where a program is not solved
    source  Ghodsi et al. 2011 (dominant-resource fairness)
    """
    due, demand = entitlement(problem) if due is None else due, problem.demand_of_tenant
    tenants, count = len(demand), len(replicas.partition)
    free = (due > 0) & (demand > 0)
    lower, upper = np.zeros(tenants), np.where(free, demand, 0.0)
    levels: list[tuple[float, Ints]] = []
    balance, capacity = _shared_rows(problem, replicas)
    kops, rate = np.zeros(count), np.zeros(tenants)
    while free.any():
        rows = np.flatnonzero(free)
        level = sp.coo_array(
            (
                np.concatenate([np.ones(len(rows)), -due[rows]]),
                (
                    np.tile(np.arange(len(rows)), 2),
                    np.concatenate([count + rows, np.full(len(rows), count + tenants)]),
                ),
            ),
            shape=(len(rows), count + tenants + 1),
        )
        solution = backends.solve(
            LinearProgram.build(
                sense="max",
                cost=np.concatenate([np.zeros(count + tenants), [1.0]]),
                rows=[*balance, *capacity, Rows("level", level, lower=0.0)],
                columns=[Columns("kops", count), Columns("rate", tenants), Columns("level", 1)],
                lower=np.concatenate([np.zeros(count), lower, [0.0]]),
                upper=np.concatenate([np.full(count, np.inf), upper, [np.inf]]),
                name="fair shares",
            ),
            options,
        )
        if solution.x is None or solution.row_duals is None:
            raise SolverFailure(f"{solution.backend}: level {len(levels) + 1} is {solution.status}")
        value, price = float(solution.x[-1]), np.abs(solution.row_duals[-len(rows) :])
        held = rows[price > TIGHT * max(float(price.max()), 1e-300)]
        kops, rate = solution.x[:count], solution.x[count:-1]
        levels.append((value, held))
        free[held] = False
        upper[held] = np.minimum(demand[held], value * due[held])
        lower[held] = upper[held] * (1 - HELD)
    return Dominant(rate.copy(), np.maximum(kops, 0.0), tuple(levels))


def _shared_rows(problem: SharedStore, replicas: Replicas) -> tuple[list[Rows], list[Rows]]:
    """Return the rows that every level has, over replicas, tenants and the level."""
    count, tenants, owner = len(replicas.partition), len(problem.tenants), problem.tenant
    width = count + tenants + 1
    k = np.arange(count)

    def matrix(rows: Ints, columns: Ints, values: Floats, height: int) -> sp.coo_array:
        return sp.coo_array((values, (rows, columns)), shape=(height, width))

    asked = np.flatnonzero((problem.demand_kops > 0) & problem.is_fixed[owner])
    place = np.full(len(owner), -1)
    place[asked] = np.arange(len(asked))
    mine = place[replicas.partition] >= 0
    mixed = matrix(
        np.concatenate([place[replicas.partition[mine]], np.arange(len(asked))]),
        np.concatenate([k[mine], count + owner[asked]]),
        np.concatenate([np.ones(int(mine.sum())), -problem.share_of_tenant[asked]]),
        len(asked),
    )
    elastic = ~problem.is_fixed[owner[replicas.partition]]
    sums = matrix(
        np.concatenate([owner[replicas.partition[elastic]], np.flatnonzero(~problem.is_fixed)]),
        np.concatenate([k[elastic], count + np.flatnonzero(~problem.is_fixed)]),
        np.concatenate([np.ones(int(elastic.sum())), -np.ones(int((~problem.is_fixed).sum()))]),
        tenants,
    )
    demand = matrix(replicas.partition, k, np.ones(count), len(owner))
    capacity = []
    for r, name in enumerate(problem.resource_names):
        use = problem.per_op[owner[replicas.partition], r]
        capacity.append(
            Rows(
                f"capacity {name}",
                matrix(replicas.node, k, use, len(problem.nodes)),
                upper=problem.capacity[:, r],
            )
        )
    balance = [
        Rows("mix", mixed, lower=0.0, upper=0.0),
        Rows("sum", sums, lower=0.0, upper=0.0),
        Rows("demand", demand, upper=problem.demand_kops),
    ]
    return balance, capacity


class Exact(NamedTuple):
    """Replicas of the integer program, None without a solution; bound on the least share; solver."""

    replicas: Replicas | None
    bound: float | None
    backend: str


def place_exactly(problem: SharedStore, options: Options = Options()) -> Exact:
    """Place replicas for the largest least share by an integer program; see `formulation`."""
    model = build_model(problem)
    solution = backends.solve(model, options)
    if solution.x is None:
        return Exact(None, None, solution.backend)
    partitions, nodes = len(problem.partitions), len(problem.nodes)
    partition, node = np.nonzero(solution.x[: partitions * nodes].reshape(partitions, nodes) > 0.5)
    return Exact(Replicas(partition, node), solution.bound, solution.backend)


def place_with_least_moves(
    problem: SharedStore, least_share: float, options: Options = Options()
) -> Replicas | None:
    """Return the placement that copies the least data of those with a least share; None where not found.

    By the same integer program, with the data that is copied as its objective.
    """
    built = build_model(problem)
    partitions, nodes = len(problem.partitions), len(problem.nodes)
    here = np.zeros((partitions, nodes), dtype=bool)
    here[problem.placed_replicas] = True
    cost = np.zeros(len(built.cost))
    cost[: partitions * nodes] = np.where(here, 0.0, problem.size_gb[:, None]).ravel()
    lower = built.lower.copy()
    lower[-1] = least_share * (1 - SAME_SHARE)
    model = replace(built, sense="min", cost=cost, lower=lower)
    solution = backends.solve(model, options)
    if solution.x is None:
        return None
    partition, node = np.nonzero(solution.x[: partitions * nodes].reshape(partitions, nodes) > 0.5)
    return Replicas(partition, node)


def build_model(problem: SharedStore, **_: object) -> LinearProgram:
    """Build the integer program of the placement with the largest least share.

    Variables: z (P, N) whether a replica is there, y (P, N) its rate, u (T, N) whether a tenant is on a node,
    x (T,) rates, and the least share.
    """
    P, N, T = len(problem.partitions), len(problem.nodes), len(problem.tenants)
    owner, demand, fair = problem.tenant, problem.demand_of_tenant, fair_share_kops(problem)
    starts = np.cumsum([0, P * N, P * N, T * N, T, 1])
    z, y, u, x, s = (int(start) for start in starts[:-1])
    width = int(starts[-1])
    p, n = (part.ravel() for part in np.indices((P, N)))
    place = np.arange(P * N)

    def rows(name: str, parts: list[tuple[Ints, Ints, Floats]], height: int, **limits: object) -> Rows:
        row, column, value = (np.concatenate([np.atleast_1d(part[i]) for part in parts]) for i in range(3))
        return Rows(name, sp.coo_array((value, (row, column)), shape=(height, width)), **limits)  # type: ignore[arg-type]

    one = np.ones(P * N)
    most = np.minimum(problem.demand_kops[p], problem.rate_kops[n])
    domains = int(problem.domain.max()) + 1
    t = np.arange(T)
    fixed = np.flatnonzero(problem.is_fixed[owner])
    elastic = np.flatnonzero(~problem.is_fixed[owner])
    split = [
        rows(
            "replicas", [(p, z + place, one)], P, lower=problem.wanted_replicas, upper=problem.wanted_replicas
        )
    ]
    split += [
        rows("domains", [(p * domains + problem.domain[n], z + place, one)], P * domains, upper=1.0),
        rows("memory", [(n, z + place, problem.size_gb[p])], N, upper=problem.memory_gb),
        rows("on", [(place, z + place, one), (place, u + owner[p] * N + n, -one)], P * N, upper=0.0),
        rows(
            "most_nodes",
            [(np.repeat(t, N), u + np.arange(T * N), np.ones(T * N))],
            T,
            upper=problem.most_nodes,
        ),
        rows("placed", [(place, y + place, one), (place, z + place, -most)], P * N, upper=0.0),
    ]
    for r, name in enumerate(problem.resource_names):
        use = problem.per_op[owner[p], r]
        split.append(rows(f"capacity {name}", [(n, y + place, use)], N, upper=problem.capacity[:, r]))
    mixed = np.isin(p, fixed)
    split.append(
        rows(
            "mix",
            [
                (p[mixed], y + place[mixed], one[mixed]),
                (fixed, x + owner[fixed], -problem.share_of_tenant[fixed]),
            ],
            P,
            lower=0.0,
            upper=0.0,
        )
    )
    split.append(rows("demand", [(p, y + place, one)], P, upper=problem.demand_kops))
    is_elastic = np.flatnonzero(~problem.is_fixed)
    free = np.isin(p, elastic)
    split.append(
        rows(
            "sum",
            [
                (owner[p[free]], y + place[free], one[free]),
                (is_elastic, x + is_elastic, -np.ones(len(is_elastic))),
            ],
            T,
            lower=0.0,
            upper=0.0,
        )
    )
    share = [(t, x + t, np.ones(T)), (t, np.full(T, s), -fair)]
    split.append(rows("share", share, T, lower=0.0))
    lowest, highest = np.zeros(width), np.ones(width)
    highest[y:u] = most
    highest[x:s] = demand
    may: Bools = np.broadcast_to(~problem.is_failed, (P, N)).copy()
    if problem.is_forbidden is not None:
        may &= ~problem.is_forbidden
    highest[z:y] = may.ravel()
    if problem.is_pinned is not None:
        lowest[z:y] = (problem.is_pinned & may).ravel()
    whole = np.zeros(width, dtype=bool)
    whole[z:y] = whole[u:x] = True
    names = [
        ("placed", P * N),
        ("kops", P * N),
        ("on", T * N),
        ("rate", T),
        ("least_share", 1),
    ]
    return LinearProgram.build(
        sense="max",
        cost=np.concatenate([np.zeros(width - 1), [1.0]]),
        rows=split,
        columns=[Columns(name, count) for name, count in names],
        lower=lowest,
        upper=highest,
        integer=whole,
        name="fairshare",
    ).describe("the smallest share of its fair rate that any tenant gets", metric="min_share")
