"""Least moves for the same level: of placements with the largest least share, the one that copies least data.

The bound is a relaxation by a linear program: replicas that stay serve requests within the rates and the
memory of their nodes; those that are copied serve the rest wherever nodes have capacity, as one pool. A
copied replica serves no more than its partition's demand, or the fastest node. The plan: where the present
placement falls short, the full nodes of its lowest level lose the replicas that the relaxation copies, to
nodes with free capacity, until the level is reached; or the least data moves until the load of fair shares
fits (`moves`). Copied replicas then return one by one where the level stays. A small problem is solved by an
integer program.

Source: Fisher 1981 (relaxations); Pisces, 3.1, moves partitions for load alone.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner_models.fairshare.designs import fair_rates, optimum
from planner_models.fairshare.designs.decision import Previous, decide, start_from
from planner_models.fairshare.designs.fair_rates import (
    HELD,
    Seed,
    fair_load_kops,
    rates_of_tenants,
    share_fairly,
    solve_given,
)
from planner_models.fairshare.designs.moves import move_least
from planner_models.fairshare.designs.placement import bound_utilization, complete
from planner_models.fairshare.designs.placement_rules import (
    Rules,
    State,
    find_rules,
    keep_all,
    list_replicas,
    may_be,
    put,
    start_state,
)
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.max_min import MaxMin
from planner_models.fairshare.plan.metrics import count_moves, least_share
from planner_models.fairshare.plan.plan import Replicas, Sharing, read_plan, sum_by_node
from planner_models.fairshare.plan.service import Served
from planner_models.fairshare.problem.problem import SharedStore, find_memory_shortage
from planner_models.fairshare.problem.tables import add_up

MAX_ARCS: Final = 60_000  # replicas that may stay, and partitions, up to which the relaxation is solved
SLACKS: Final = (1.0, 0.5, 0.25)  # parts of the load above the least possible that the target leaves
MAX_RETURNS: Final = 300  # copies whose return is tried
MAX_ROUNDS: Final = 200  # in which replicas leave full nodes
BACKEND: Final = "linear program, local search"


class Relaxed(NamedTuple):
    """Bound on the data that is copied, GB; copies of each partition (P,) in the relaxation; solver."""

    bound_gb: float
    copies: Floats
    backend: str


def share(
    problem: SharedStore,
    *,
    slack: Annotated[
        float,
        Field(
            ge=0, lt=1, description="part of the least share of optimum that may be given up for fewer moves"
        ),
    ] = 0.01,
    seed: Seed = 0,
    previous: Previous = None,
    options: Options = Options(),
) -> Decision[Sharing]:
    """Reach the least share of `optimum` with the least data copied, with a bound on it.

    Reserved rates count as there. Without placed replicas, nothing is copied from a node, and the decision is
    that of `optimum`.

    returns  Decision with Sharing; objective and bound are of metric "moved_gb"
    """
    deadline = Deadline.of(options)
    problem = start_from(problem, previous)
    best = optimum.share(problem, seed=seed, options=options)
    if best.plan is None or problem.placed is None or not len(problem.placed):
        return best
    content = read_plan(problem, best.plan)
    replicas, served = content.replicas, Served(content.kops, content.split)
    rate = rates_of_tenants(problem, replicas, served.kops)
    target = least_share(rate, fair_share_kops(problem)) * (1 - slack)
    reserved = least_share(rate, problem.reserved_kops)
    relaxed = relax(problem, target, reserved, options)
    bound = None if relaxed is None else relaxed.bound_gb
    if len(problem.partitions) * len(problem.nodes) <= optimum.MOST_EXACT:
        exact = fair_rates.place_with_least_moves(problem, target, options, reserved_share=reserved)
        bound = max(bound or 0.0, exact.bound or 0.0)
        if exact.replicas is not None and _moved_gb(problem, exact.replicas) < _moved_gb(problem, replicas):
            replicas, served = exact.replicas, solve_given(problem, exact.replicas)
    elif relaxed is not None:
        targets = _Targets(target, reserved)
        replicas, served = _search(problem, (replicas, served), targets, relaxed, deadline)
    weight = sum_by_node(problem, replicas, served.kops)
    decision = decide(problem, replicas, served, weight, options=options, backend=BACKEND)
    counted = count_moves(problem, replicas)
    if decision.plan is None or counted is None:
        return decision
    if bound is not None:
        bound = min(bound, counted[1])
    gap = ROUNDING if options.gap is None else max(options.gap, ROUNDING)
    proof = judged(
        "min",
        counted[1],
        bound,
        is_optimal=bound is not None and counted[1] - bound <= max(gap, 1e-6) * max(counted[1], ROUNDING),
        bound_scope=None if bound is None else f"plans with a least share of {target:.4f}",
        metric="moved_gb",
        backend=BACKEND,
    )
    return Decision(plan=decision.plan, proof=proof, guarantees=decision.guarantees)


def relax(
    problem: SharedStore, level: float, reserved_share: float = 1.0, options: Options = Options()
) -> Relaxed | None:
    """Return the bound on the data that any placement copies that has a least share.

    None where the problem is too large, and where memory is too short for all replicas: then those without a
    place are not copied.

    level           share that every tenant gets at least
    reserved_share  share of reserved rates that every tenant gets at least
    """
    partition, _ = problem.placed_replicas
    if len(partition) + len(problem.partitions) > MAX_ARCS or find_memory_shortage(problem) is not None:
        return None
    solution = backends.solve(build_relaxation(problem, level, reserved_share), options)
    if solution.x is None or solution.bound is None:
        return None
    count = len(problem.partitions)
    bound, sizes = max(float(solution.bound), 0.0), problem.size_gb
    if sizes.min() == sizes.max() and sizes[0] > 0:  # whole replicas of one size
        bound = float(np.ceil(bound / sizes[0] - 1e-6) * sizes[0])
    return Relaxed(bound, np.asarray(solution.x[:count]), solution.backend)


def build_relaxation(problem: SharedStore, level: float, reserved_share: float) -> LinearProgram:
    """Build the relaxation.

    Variables: copies of partitions (P,), whether placed replicas stay and their rates (K,), rates of copies
    (P,) and of tenants (T,).
    """
    P, T, owner = len(problem.partitions), len(problem.tenants), problem.tenant
    partition, node = _list_homes(problem)
    capacity, per_op = problem.capacity, problem.per_op
    fastest = np.where(per_op > 0, capacity.max(axis=0) / np.maximum(per_op, 1e-300), np.inf).min(axis=1)
    of_copy = np.minimum(problem.demand_kops, fastest[owner])
    fair, demand = fair_share_kops(problem), problem.demand_of_tenant
    lower = np.minimum(np.maximum(level * fair, reserved_share * problem.reserved_kops) * (1 - HELD), demand)
    is_fixed = problem.is_fixed[owner]
    fixed, elastic, of_sum = (
        np.flatnonzero(is_fixed),
        np.flatnonzero(~is_fixed),
        np.flatnonzero(~problem.is_fixed),
    )

    m = ProgramBuilder(sense="minimize", name="least moves")
    c = m.variables("copies", P, upper=problem.wanted_replicas.astype(float), cost=problem.size_gb)
    k = m.variables("stays", len(partition), upper=1.0)
    y = m.variables("kops", len(partition))
    v = m.variables("copy_kops", P, upper=problem.demand_kops)
    x = m.variables("rate", T, lower=lower, upper=demand)
    m.constrain("replicas", k.sum_by(partition, P) + c, equal=problem.wanted_replicas)
    m.constrain(
        "memory", (k * problem.size_gb[partition]).sum_by(node, len(problem.nodes)), upper=problem.memory_gb
    )
    m.constrain("there", y - k * problem.demand_kops[partition], upper=0.0)
    m.constrain("copied", v - c * of_copy, upper=0.0)
    served = y.sum_by(partition, P) + v
    m.constrain("mix", (served[fixed] - x[owner[fixed]] * problem.share_of_tenant[fixed]), equal=0.0)
    m.constrain("demand", served, upper=problem.demand_kops)
    m.constrain("sum", served[elastic].sum_by(owner[elastic], T) - x[of_sum].sum_by(of_sum, T), equal=0.0)
    for r, name in enumerate(problem.resource_names):
        use = (y * per_op[owner[partition], r]).sum_by(node, len(problem.nodes))
        m.constrain(f"capacity {name}", use, upper=capacity[:, r])
        together = (served * per_op[owner, r]).sum()
        m.constrain(f"pool {name}", together, upper=float(capacity[:, r].sum()))
    return m.build()


def _list_homes(problem: SharedStore) -> tuple[Ints, Ints]:
    """Return the placed replicas that may stay: on nodes that work and that no rule forbids."""
    partition, node = problem.placed_replicas
    may = ~problem.is_failed[node]
    if problem.is_forbidden is not None:
        may &= ~problem.is_forbidden[partition, node]
    return partition[may], node[may]


# --- the search -------------------------------------------------------------------------------


class _Targets(NamedTuple):
    """Least share, and share of reserved rates, that a placement must allow."""

    level: float
    reserved: float


def _search(
    problem: SharedStore,
    start: tuple[Replicas, Served],
    targets: _Targets,
    relaxed: Relaxed,
    deadline: Deadline,
) -> tuple[Replicas, Served]:
    """Return replicas that reach the targets and copy less data than those at the start, or these.

    Tried are moves away from full nodes, and least moves for the load of nodes by fair shares: where each
    node has at most 1 / s of its rate of it, with even splits, every tenant has a share of s.
    """
    best, lowest = start[0], _moved_gb(problem, start[0])
    if lowest <= relaxed.bound_gb * (1 + ROUNDING) or problem.capacity.shape[1] > 1:
        return start
    candidates = [_relieve_all(problem, targets, relaxed, deadline)]
    load = fair_load_kops(problem)
    utilization = max(bound_utilization(problem, load), 1e-300)
    for factor in SLACKS:
        if not deadline.is_over:
            slack = max(1 / (max(targets.level, 1e-300) * utilization) - 1, 0.0) * factor
            candidates.append(move_least(problem, load, slack=slack).replicas)
    fair = fair_share_kops(problem)
    for replicas in candidates:
        if replicas is None or deadline.is_over or _moved_gb(problem, replicas) >= lowest:
            continue
        if _reaches(problem, share_fairly(problem, replicas).rate, fair, targets):
            best = _return_home(problem, replicas, targets, deadline)
            lowest = _moved_gb(problem, best)
    return start if best is start[0] else (best, solve_given(problem, best))


def _moved_gb(problem: SharedStore, replicas: Replicas) -> float:
    """Return the data that is copied, GB, where replicas are placed already."""
    counted = count_moves(problem, replicas)
    return np.inf if counted is None else counted[1]


def _relieve_all(
    problem: SharedStore, targets: _Targets, relaxed: Relaxed, deadline: Deadline
) -> Replicas | None:
    """Return the present placement after moves away from full nodes; None if targets stay out of reach."""
    load, fair = fair_load_kops(problem), fair_share_kops(problem)
    rules = find_rules(problem)
    state = start_state(problem, rules, load)
    keep_all(rules, state, load, *complete(problem, load), False)
    due = np.maximum(targets.level * fair, targets.reserved * problem.reserved_kops)
    for _ in range(MAX_ROUNDS):
        replicas = list_replicas(state)
        shares = share_fairly(problem, replicas)
        if _reaches(problem, shares.rate, fair, targets):
            return replicas
        moves = _relieve(problem, _Placed(rules, state, load), replicas, shares, due, relaxed.copies)
        if deadline.is_over or not moves:
            break
    return None


def _return_home(problem: SharedStore, replicas: Replicas, targets: _Targets, deadline: Deadline) -> Replicas:
    """Return replicas without the copies that the targets do not need, those with most data first."""
    fair = fair_share_kops(problem)
    for partition, home in optimum.list_homes(problem, replicas)[:MAX_RETURNS]:
        if deadline.is_over:
            break
        changed = optimum.return_home(problem, replicas, partition, home)
        if changed is not None and _reaches(problem, share_fairly(problem, changed).rate, fair, targets):
            replicas = changed
    return replicas


def _reaches(problem: SharedStore, rate: Floats, fair: Floats, targets: _Targets) -> bool:
    """Return whether rates of tenants (T,) reach the targets, but for rounding."""
    enough = 1 - FEASIBILITY
    return (
        least_share(rate, fair) >= targets.level * enough
        and least_share(rate, problem.reserved_kops) >= targets.reserved * enough
    )


class _Placed(NamedTuple):
    """A placement that changes, with its rules and the load of each replica of a partition, (P,)."""

    rules: Rules
    state: State
    load: Floats


def _relieve(
    problem: SharedStore, placed: _Placed, replicas: Replicas, shares: MaxMin, due: Floats, copies: Floats
) -> bool:
    """Move replicas from the full nodes of the lowest level to others, until its tenants have enough.

    Those that the relaxation copies go first, then those with most requests for each GB.

    due      (T,) rates that tenants must have
    copies   (P,) of each partition in the relaxation
    returns  whether any replica has moved
    """
    short = np.flatnonzero(shares.rate < due * (1 - FEASIBILITY))
    level = next((level for level in shares.levels if np.isin(level.tenants, short).any()), None)
    if level is None:
        return False
    lacking = float((due - shares.rate)[np.intersect1d(level.tenants, short)].sum())
    needed = np.minimum(np.divide(due, shares.rate, out=np.ones_like(due), where=shares.rate > 0), 1.0)
    kops = (
        shares.kops * needed[problem.tenant[replicas.partition]]
    )  # tenants above what they must have give way
    free = problem.rate_kops - add_up(replicas.node, kops, len(problem.nodes))
    free[level.nodes] = -np.inf
    rows = np.flatnonzero(np.isin(replicas.node, level.nodes))
    partition = replicas.partition[rows]
    asked = np.minimum(problem.demand_kops, problem.share_of_tenant * due[problem.tenant])[partition]
    relief = np.maximum(kops[rows], asked)
    order = np.lexsort(
        (-relief / np.maximum(problem.size_gb[partition], 1e-300), -np.round(copies[partition], 3))
    )
    has_moved = False
    for index in order.tolist():
        if lacking <= 0 or relief[index] <= 0:
            break
        p, old = int(partition[index]), int(replicas.node[rows[index]])
        slot = int(np.flatnonzero(placed.state.node[p] == old)[0])
        if placed.state.is_pinned[p, slot]:
            continue
        for n in np.argsort(-free, kind="stable").tolist():
            if free[n] <= 0:
                break
            if may_be(placed.rules, placed.state, p, slot, n, 0.0):
                put(placed.rules, placed.state, placed.load, p, slot, n)
                free[n] -= relief[index]
                lacking -= float(relief[index])
                has_moved = True
                break
    return has_moved
