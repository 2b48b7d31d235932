"""The fairest rates of given replicas, and the load that fair shares put on them.

Linear and integer programs: dominant-resource fairness for given replicas, and the exact placement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.errors import SolverFailure
from planner.options import Options
from planner.search.tolerances import ROUNDING, SOLVER
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops, pool_level
from planner_models.fairshare.plan.max_min import MaxMin, limit_to_reserved, serve_reserved, share_max_min
from planner_models.fairshare.plan.metrics import least_share
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.plan.service import Served, split_evenly
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

TIGHT: Final = SOLVER
"""Dual price, relative to the largest, from which a tenant is at its level in every solution."""
HELD: Final = ROUNDING
"""Relative amount by which a tenant that is held may fall, so that rounding leaves programs feasible."""
SAME_SHARE: Final = ROUNDING
"""Relative difference of least shares that counts as none."""


LEAST_DUE: Final = 1e-9
"""Part of its entitlement that a tenant with a fair share of 0 is due where others leave capacity."""


class Dominant(NamedTuple):
    """Rates of tenants (T,) and replicas (K,), thousands per second, and the levels with their tenants."""

    rate: Floats
    kops: Floats
    levels: tuple[tuple[float, Ints], ...]


def share_dominant(
    problem: SharedStore,
    replicas: Replicas,
    options: Options = Options(),
    *,
    due: Floats | None = None,
    reserved_kops: Floats | None = None,
) -> Dominant:
    """Return the lexicographic weighted max-min rates for given replicas, a linear program for each level.

    With several resources a tenant's rate counts by its dominant one. Each program raises the level of all
    tenants that are not held yet; those with a dual price on it are held there.

    due            (T,) rates at level 1; default: `entitlement`
    reserved_kops  (T,) rates that all tenants can have together, and do whatever their level; None: no such
    raises  SolverFailure where a program is not solved
    source  Ghodsi et al. 2011 (dominant-resource fairness)
    """
    due, demand = entitlement(problem) if due is None else due, problem.demand_of_tenant
    free = (due > 0) & (demand > 0)
    upper = np.where(free, demand, 0.0)
    reserved = np.zeros(len(demand)) if reserved_kops is None else reserved_kops
    lower = np.minimum(reserved * (1 - HELD), upper)
    kops, rate = np.zeros(len(replicas.partition)), np.zeros(len(demand))
    levels: list[tuple[float, Ints]] = []
    while free.any():
        rows = np.flatnonzero(free)
        program = _level_program(problem, replicas, rows, due, lower=lower, upper=upper)
        solution = backends.solve(program, options)
        if solution.x is None or solution.row_duals is None:
            raise SolverFailure(f"{solution.backend}: level {len(levels) + 1} is {solution.status}")
        value, price = float(solution.x[-1]), np.abs(solution.row_duals[-len(rows) :])
        held = rows[price > TIGHT * max(float(price.max()), 1e-300)]
        kops, rate = program.values("kops", solution.x), program.values("rate", solution.x)
        levels.append((value, held))
        free[held] = False
        upper[held] = np.clip(value * due[held], reserved[held], demand[held])
        lower[held] = upper[held] * (1 - HELD)
    return Dominant(rate.copy(), np.maximum(kops, 0.0), tuple(levels))


def _level_program(
    problem: SharedStore, replicas: Replicas, rows: Ints, due: Floats, *, lower: Floats, upper: Floats
) -> LinearProgram:
    """Return the program that raises the level t of tenants `rows`: rates y of replicas, x of tenants.

    lower, upper  (T,) limits of the tenants' rates
    """
    owner, partition = problem.tenant, replicas.partition
    asked = np.flatnonzero((problem.demand_kops > 0) & problem.is_fixed[owner])
    position = np.full(len(owner), -1)
    position[asked] = np.arange(len(asked))
    is_asked = position[partition] >= 0
    is_elastic, elastic = ~problem.is_fixed[owner[partition]], np.flatnonzero(~problem.is_fixed)
    tenants = len(problem.tenants)

    m = ProgramBuilder(sense="maximize", name="fair shares")
    y = m.variables("kops", len(partition))
    x = m.variables("rate", tenants, lower=lower, upper=upper)
    t = m.variables("level", cost=1.0)
    mixed = y[is_asked].sum_by(position[partition[is_asked]], len(asked))
    m.constrain("mix", mixed - x[owner[asked]] * problem.share_of_tenant[asked], equal=0.0)
    total = y[is_elastic].sum_by(owner[partition[is_elastic]], tenants)
    m.constrain("sum", total - x[elastic].sum_by(elastic, tenants), equal=0.0)
    m.constrain("demand", y.sum_by(partition, len(owner)), upper=problem.demand_kops)
    for r, name in enumerate(problem.resource_names):
        use = (y * problem.per_op[owner[partition], r]).sum_by(replicas.node, len(problem.nodes))
        m.constrain(f"capacity {name}", use, upper=problem.capacity[:, r])
    m.constrain("level", x[rows] - t * due[rows], lower=0.0)
    return m.build()


class Exact(NamedTuple):
    """Replicas of the integer program, None without a solution; bound on its objective; solver."""

    replicas: Replicas | None
    bound: float | None
    backend: str


def place_exactly(problem: SharedStore, options: Options = Options()) -> Exact:
    """Place replicas for the largest least share by an integer program; see `formulation`."""
    reserved_share = 1.0
    if problem.has_reserved:
        first = backends.solve(build_model(problem, reserved_share=None), options)
        if first.x is None:
            return Exact(None, None, first.backend)
        reserved_share = min(float(first.x[-1]), 1.0)
    solution = backends.solve(build_model(problem, reserved_share=reserved_share), options)
    if solution.x is None:
        return Exact(None, None, solution.backend)
    partitions, nodes = len(problem.partitions), len(problem.nodes)
    partition, node = np.nonzero(solution.x[: partitions * nodes].reshape(partitions, nodes) > 0.5)
    return Exact(Replicas(partition, node), solution.bound, solution.backend)


def place_with_least_moves(
    problem: SharedStore, least_share: float, options: Options = Options(), *, reserved_share: float = 1.0
) -> Exact:
    """Return the placement that copies the least data of those with a least share, and the bound on that, GB.

    By the same integer program, with the data that is copied as its objective.
    """
    built = build_model(problem, reserved_share=reserved_share)
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
        return Exact(None, solution.bound, solution.backend)
    partition, node = np.nonzero(solution.x[: partitions * nodes].reshape(partitions, nodes) > 0.5)
    return Exact(Replicas(partition, node), solution.bound, solution.backend)


def build_model(problem: SharedStore, *, reserved_share: float | None = 1.0, **_: object) -> LinearProgram:
    """Build the integer program of the placement with the largest least share.

    reserved_share  least rate of each tenant over its reserved one; None: the largest such share is the
                    objective in place of the least share

    Variables: z (P, N) whether a replica is there, y (P, N) its rate, u (T, N) whether a tenant is on a node,
    x (T,) rates, and the least share.
    """
    P, N, T = len(problem.partitions), len(problem.nodes), len(problem.tenants)
    owner, demand, fair = problem.tenant, problem.demand_of_tenant, fair_share_kops(problem)
    may = ~np.broadcast_to(problem.is_failed, (P, N))
    if problem.is_forbidden is not None:
        may = may & ~problem.is_forbidden
    pinned = np.zeros((P, N), dtype=bool) if problem.is_pinned is None else problem.is_pinned & may
    upper = np.minimum(problem.demand_kops[:, None], problem.rate_kops)
    domain = problem.domain[:, None] == np.arange(int(problem.domain.max()) + 1)
    is_fixed = problem.is_fixed[owner]
    fixed, elastic = np.flatnonzero(is_fixed), np.flatnonzero(~is_fixed)
    of_sum = np.flatnonzero(~problem.is_fixed)

    m = ProgramBuilder(sense="maximize", name="fairshare")
    z = m.variables("placed", (P, N), lower=pinned, upper=may, integer=True)
    y = m.variables("kops", (P, N), upper=upper)
    u = m.variables("on", (T, N), upper=1.0, integer=True)
    reserved = problem.reserved_kops
    fixed_part = 0.0 if reserved_share is None else reserved_share * (1 - HELD)
    x = m.variables("rate", T, lower=np.minimum(reserved * fixed_part, demand), upper=demand)
    s = m.variables("least_share", upper=1.0, cost=1.0)
    m.constrain("replicas", z.sum(axis=1), equal=problem.wanted_replicas)
    m.constrain("domains", z @ domain, upper=1.0)
    m.constrain("memory", (z * problem.size_gb[:, None]).sum(axis=0), upper=problem.memory_gb)
    m.constrain("on", z - u[owner], upper=0.0)
    m.constrain("most_nodes", u.sum(axis=1), upper=problem.most_nodes)
    m.constrain("placed", y - z * upper, upper=0.0)
    for r, name in enumerate(problem.resource_names):
        use = (y * problem.per_op[owner, r][:, None]).sum(axis=0)
        m.constrain(f"capacity {name}", use, upper=problem.capacity[:, r])
    mixed = y[fixed].sum(axis=1) - x[owner[fixed]] * problem.share_of_tenant[fixed]
    m.constrain("mix", mixed.sum_by(fixed, P), equal=0.0)
    m.constrain("demand", y.sum(axis=1), upper=problem.demand_kops)
    total = y[elastic].sum(axis=1).sum_by(owner[elastic], T)
    m.constrain("sum", total - x[of_sum].sum_by(of_sum, T), equal=0.0)
    m.constrain("share", x - s * (fair if reserved_share is not None else reserved), lower=0.0)
    return m.build().describe("the smallest share of its fair rate that any tenant gets", metric="min_share")


EQUAL: Final = ROUNDING  # relative difference of shares that is rounding
Rates = TypeVar("Rates", MaxMin, Dominant)
Seed = Annotated[int, Field(ge=0, description="seed of the random moves of the placement")]


def fair_load_kops(problem: SharedStore) -> Floats:
    """Return the load of each replica of a partition, (P,): its tenant's fair share, split evenly."""
    fair = fair_share_kops(problem)[problem.tenant]
    load: Floats = problem.share_of_tenant * fair / problem.wanted_replicas
    return load


def solve_given(problem: SharedStore, replicas: Replicas, options: Options = Options()) -> Served:
    """Return the fairest rates of given replicas, with the split of requests over them.

    These are the lexicographic max-min rates over weights. Tenants that want little are served first there,
    which may cost others some of their fair share; where it does, or where tenants are in groups, the
    max-min rates over fair shares. Reserved rates come first (`keep_reserved`).
    """
    if problem.capacity.shape[1] > 1:
        reserved = keep_reserved(problem, replicas, options)
        kops = _choose(
            problem,
            lambda due: share_dominant(problem, replicas, options, due=due, reserved_kops=reserved),
        ).kops
    else:
        kops = share_fairly(problem, replicas).kops
    return served_of(problem, replicas, kops)


def keep_reserved(problem: SharedStore, replicas: Replicas, options: Options = Options()) -> Floats | None:
    """Return the part of each reserved rate that replicas serve at best, (T,); None where none is reserved.

    See `serve_reserved`; with several resources by linear programs.
    """
    if not problem.has_reserved:
        return None
    if problem.capacity.shape[1] == 1:
        return serve_reserved(problem, replicas)
    reserved = problem.reserved_kops
    return limit_to_reserved(share_dominant(problem, replicas, options, due=reserved).rate, reserved)


def served_of(problem: SharedStore, replicas: Replicas, kops: Floats) -> Served:
    """Return the service of replicas with rates (K,), split as these are; evenly where nothing is served."""
    total = add_up(replicas.partition, weights=kops, minlength=len(problem.partitions))
    of = total[replicas.partition]
    split = np.divide(kops, of, out=split_evenly(replicas, len(problem.partitions)), where=of > 0)
    return Served(kops, split)


def share_fairly(problem: SharedStore, replicas: Replicas) -> MaxMin:
    """Return the rates of `solve_given` where requests are the only resource; levels are over fair shares."""
    reserved = keep_reserved(problem, replicas)
    return _choose(problem, lambda due: _share_max_min(problem, replicas, due, reserved))


def _share_max_min(
    problem: SharedStore, replicas: Replicas, due: Floats | None, reserved_kops: Floats | None
) -> MaxMin:
    """Return the max-min rates over fair shares, or over weights: levels are then over those of one pool."""
    shares = share_max_min(problem, replicas, due=due, reserved_kops=reserved_kops)
    if due is not None:
        return shares
    pool = max(pool_level(problem), 1e-300)
    return replace(shares, levels=tuple(level._replace(level=level.level / pool) for level in shares.levels))


def _choose(problem: SharedStore, solve: Callable[[Floats | None], Rates]) -> Rates:
    """Return the rates over weights, or over fair shares where these have a larger least share.

    solve  returns the max-min rates over what tenants are due, (T,), or over weights for None
    """
    fair = fair_share_kops(problem)
    due = np.where(fair > 0, fair, LEAST_DUE * entitlement(problem))  # none is idle beside free capacity
    if problem.has_groups:  # weights alone do not say what tenants are due
        return solve(due)
    solution = solve(None)
    lowest = least_share(solution.rate, fair)
    if lowest < 1 - EQUAL:
        other = solve(due)
        if least_share(other.rate, fair) > lowest * (1 + EQUAL):
            return other
    return solution


def rates_of_tenants(problem: SharedStore, replicas: Replicas, kops: Floats) -> Floats:
    """Return the rates of tenants (T,) of those of replicas (K,)."""
    owner = problem.tenant[replicas.partition]
    return add_up(owner, weights=kops, minlength=len(problem.tenants))
