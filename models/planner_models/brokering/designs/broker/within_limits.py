"""Assignment within the limits of CDNs in regions, by integer programs in three ranks.

First the fewest clients are shed, then the floors lack the least traffic, then the objective is the least.
Where there are many variables, the program of divisible clients is solved first; whole clients of its
solution stay, and the integer program assigns the others alone. The bound is then of the former.

source  lexicographic goal programming: Charnes and Cooper 1961
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Floats, Ints, Ints32
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.backends.solution import Solution
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import infeasible, of_solution
from planner_models.brokering.plan.transportation import TransportationProblem
from planner_models.brokering.problem.problem import Brokering

DEFAULT_TIME_LIMIT_S: Final = 20.0
MAX_EXACT_VARIABLES: Final = 20_000
"""Variables up to which the integer program is solved as a whole."""
SLACK: Final = 1e-6
"""Share of a rank's value by which later ranks may miss it: solvers keep rows to about that."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Limited:
    """Clients of each group in each cluster.

    assigned   (G, C) clients, or (G, C + 1) with those that are shed; None without a plan
    bound      fewest clients that are shed, and least objective of the others; None for unknown
    lack_mbps  traffic that the floors lack
    proof      why there is no plan; None where there is one
    """

    assigned: Ints32 | None = None
    bound: tuple[int, float] | None = None
    lack_mbps: float = 0.0
    proof: Proof | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Arcs:
    """Variables of the program: V pairs of a group and a cluster on offer to it.

    group, cluster, cost, mbps  (V,) of each; cost and traffic of one client
    count, capacity_mbps        (G,) clients and (C,) capacity
    on_limit                    (K, V) traffic of a client that counts for a limit, Mbit/s
    floor_mbps, cap_mbps        (K,) of each limit
    """

    group: Ints
    cluster: Ints
    cost: Floats
    mbps: Floats
    count: Ints
    capacity_mbps: Floats
    on_limit: sp.csr_array
    floor_mbps: Floats
    cap_mbps: Floats

    @classmethod
    def of(cls, problem: Brokering, transport: TransportationProblem) -> _Arcs:
        """Return the variables of a problem."""
        group, cluster = np.nonzero(np.isfinite(transport.cost))
        limits = problem.volume_limits
        mbps = transport.bitrate_mbps[group]
        counts = limits.in_region[:, problem.groups.location[group]] & (
            problem.cdn[cluster] == limits.cdn[:, None]
        )
        return cls(
            group=group,
            cluster=cluster,
            cost=transport.cost[group, cluster],
            mbps=mbps,
            count=transport.count,
            capacity_mbps=transport.capacity_mbps,
            on_limit=sp.csr_array(counts * mbps),
            floor_mbps=limits.floor_mbps,
            cap_mbps=limits.cap_mbps,
        )

    def without(self, clients: Ints) -> _Arcs:
        """Return the remaining program after the assignment of some clients, (V,)."""
        loads = np.bincount(self.cluster, weights=clients * self.mbps, minlength=len(self.capacity_mbps))
        of_group = np.bincount(self.group, weights=clients, minlength=len(self.count)).astype(np.int64)
        used: Floats = self.on_limit @ clients
        return replace(
            self,
            count=self.count - of_group,
            capacity_mbps=np.maximum(self.capacity_mbps - loads, 0.0),
            floor_mbps=np.maximum(self.floor_mbps - used, 0.0),
            cap_mbps=np.maximum(self.cap_mbps - used, 0.0),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ranked:
    """Solution of the three ranks: clients (V,), shed clients and lack of floors, with their bounds."""

    clients: Floats
    shed: float
    lack_mbps: float
    last: Solution
    is_proven: bool
    shed_bound: float


def assign(problem: Brokering, transport: TransportationProblem, options: Options) -> Limited:
    """Return the clients of each group in each cluster within the limits.

    Floors that cannot be reached are missed by the least traffic; caps always hold.
    """
    deadline = Deadline.of(options, default_s=DEFAULT_TIME_LIMIT_S)
    arcs = _Arcs.of(problem, transport)
    is_small = len(arcs.group) <= MAX_EXACT_VARIABLES
    first = _solve_ranks(arcs, options, deadline, integer=is_small)
    if isinstance(first, Proof):
        return Limited(proof=first)
    clients, ranked = np.floor(first.clients + SLACK).astype(np.int64), first
    if not is_small:
        rest = _solve_ranks(arcs.without(clients), replace(options, service="best"), deadline, integer=True)
        if isinstance(rest, Proof):
            return Limited(proof=rest)
        clients += np.rint(rest.clients).astype(np.int64)
        ranked = rest
    assigned = np.zeros(transport.cost.shape, dtype=np.int32)
    assigned[arcs.group, arcs.cluster] = clients if not is_small else np.rint(first.clients)
    shed = transport.count - assigned.sum(axis=1)
    if options.service == "all" and shed.any():
        return Limited(
            proof=infeasible("whole clients do not fit within capacities and caps", metric="objective")
        )
    bound: tuple[int, float] | None = None
    value = first.last.bound if is_small else first.last.objective
    if first.is_proven and value is not None and ranked.lack_mbps <= first.lack_mbps + SLACK:
        bound = int(np.ceil(first.shed_bound - SLACK)), float(value)
    with_shed = np.column_stack([assigned, shed]).astype(np.int32) if shed.any() else assigned
    return Limited(assigned=with_shed, bound=bound, lack_mbps=_missing(arcs, assigned))


def _missing(arcs: _Arcs, assigned: Ints32) -> float:
    """Return the traffic that floors lack, Mbit/s."""
    load: Floats = arcs.on_limit @ assigned[arcs.group, arcs.cluster]
    lack = np.maximum(arcs.floor_mbps - load, 0.0)
    return float(lack[lack > SLACK * np.maximum(arcs.floor_mbps, 1.0)].sum())


def _solve_ranks(arcs: _Arcs, options: Options, deadline: Deadline, *, integer: bool) -> _Ranked | Proof:
    """Return the least objective among the least lack of floors among the fewest shed clients.

    All floors and all clients are tried first: most problems have a plan then.
    """

    def solve(program: LinearProgram) -> Solution:
        within = deadline.options(options if integer else replace(options, gap=None), minimum_s=0.1)
        return backends.solve(program, within)

    solution = solve(_build(arcs, "cost", integer=integer, shed=0.0, lack_mbps=0.0))
    if solution.x is not None:
        return _read(arcs, solution, is_proven=True, shed_bound=0.0)
    allowed_shed = 0.0
    shed_bound, is_proven = 0.0, True
    if options.service == "best":
        fewest = solve(_build(arcs, "shed", integer=integer))
        if fewest.objective is None:
            return of_solution(fewest, metric="objective")
        allowed_shed = round(fewest.objective) if integer else fewest.objective * (1 + SLACK) + SLACK
        shed_bound = fewest.bound if fewest.bound is not None else 0.0
        is_proven = fewest.status is Status.OPTIMAL
    lacks = solve(_build(arcs, "lack", integer=integer, shed=allowed_shed))
    if lacks.objective is None:
        if lacks.status is Status.INFEASIBLE:
            return infeasible(
                "the clients do not fit within capacities and the caps of CDNs", metric="objective"
            )
        return of_solution(lacks, metric="objective")
    is_proven &= lacks.status is Status.OPTIMAL
    allowed = lacks.objective * (1 + SLACK) + SLACK
    solution = solve(_build(arcs, "cost", integer=integer, shed=allowed_shed, lack_mbps=allowed))
    if solution.x is None:
        return _read(arcs, lacks, is_proven=False, shed_bound=shed_bound)
    return _read(arcs, solution, is_proven=is_proven, shed_bound=shed_bound)


def _read(arcs: _Arcs, solution: Solution, *, is_proven: bool, shed_bound: float) -> _Ranked:
    """Return a solution of the program with its shed clients and lack of floors."""
    assert solution.x is not None
    variables, groups = len(arcs.group), len(arcs.count)
    return _Ranked(
        clients=np.maximum(solution.x[:variables], 0.0),
        shed=float(solution.x[variables : variables + groups].sum()),
        lack_mbps=float(solution.x[variables + groups :].sum()),
        last=solution,
        is_proven=is_proven,
        shed_bound=shed_bound,
    )


def _build(
    arcs: _Arcs, aim: str, *, integer: bool, shed: float | None = None, lack_mbps: float | None = None
) -> LinearProgram:
    """Return the program that minimizes the shed clients, the lack of floors, or the cost.

    shed, lack_mbps  most clients that may be shed, and most traffic that floors may lack; None for any
    """
    groups, clusters, limits = len(arcs.count), len(arcs.capacity_mbps), len(arcs.floor_mbps)
    m = ProgramBuilder(name="brokering within limits")
    clients = m.variables(
        "clients",
        len(arcs.group),
        upper=arcs.count[arcs.group],
        cost=arcs.cost if aim == "cost" else 0.0,
        integer=integer,
    )
    shed_clients = m.variables(
        "shed", groups, upper=arcs.count, cost=1.0 if aim == "shed" else 0.0, integer=integer
    )
    lack = m.variables("lack", limits, upper=arcs.floor_mbps, cost=1.0 if aim == "lack" else 0.0)
    m.constrain("served", clients.sum_by(arcs.group, groups) + shed_clients, equal=arcs.count)
    m.constrain("capacity", (clients * arcs.mbps).sum_by(arcs.cluster, clusters), upper=arcs.capacity_mbps)
    load = arcs.on_limit @ clients
    capped = np.flatnonzero(np.isfinite(arcs.cap_mbps))
    if len(capped):
        m.constrain("caps", load[capped], upper=arcs.cap_mbps[capped])
    m.constrain("floors", load + lack, lower=arcs.floor_mbps)
    if shed is not None:
        m.constrain("fewest", shed_clients.sum(), upper=shed)
    if lack_mbps is not None:
        m.constrain("least", lack.sum(), upper=lack_mbps)
    return m.build()


def build_model(problem: Brokering, transport: TransportationProblem, *, sheds: bool) -> LinearProgram:
    """Return the program of the last rank, with every floor, for export."""
    arcs = _Arcs.of(problem, transport)
    return _build(arcs, "cost", integer=True, shed=None if sheds else 0.0, lack_mbps=0.0)


def price_limits(problem: Brokering, transport: TransportationProblem) -> tuple[Floats, Floats] | None:
    """Return the change of the objective by 1 Mbit/s more of each cap and of each floor, (K,) each.

    None where not all clients and floors can be served. Of divisible clients, by duality.
    """
    arcs = _Arcs.of(problem, transport)
    program = _build(arcs, "cost", integer=False, shed=0.0, lack_mbps=0.0)
    solution = backends.solve(program, Options())
    if solution.x is None or solution.row_duals is None:
        return None
    caps = np.zeros(len(arcs.cap_mbps))
    capped = np.flatnonzero(np.isfinite(arcs.cap_mbps))
    first = len(arcs.count) + len(arcs.capacity_mbps)  # after the rows of groups and of clusters
    of_floors = first + len(capped)
    caps[capped] = solution.row_duals[first:of_floors]
    return caps, solution.row_duals[of_floors : of_floors + len(arcs.floor_mbps)]
