r"""Placement of blocks that may go to any rack, for few circuit configurations.

The fewest configurations that give every pair of racks a circuit is the largest number of racks that
one rack sends to or receives from: a bipartite graph's edges fall into as many matchings (König).

$$\min \Delta \quad\text{s.t.}\quad
\sum_j x_{ij} = w_i,\quad x_{ij} \le \lceil w_i / k \rceil\, y_{ij},\quad
\sum_j y_{ij} \le \Delta,\; \sum_i y_{ij} \le \Delta,\quad
\sum_i x_{ij} \le (1 + \beta)\, \bar w,\quad
\sum_{(i,j) \notin P} x_{ij} \le \gamma \sum_i w_i,\quad
y_{ij} + y_{ji} \le 1$$

for the $x_{ij}$ blocks that rack i sends to rack j, and $y_{ij} \in \{0, 1\}$ whether it sends any.
Losing one other rack loses at most about a $k$-th of the replicas of a rack's blocks; no rack receives
more than $\beta$ above the mean; at most a share $\gamma$ of blocks goes between pairs that were not
used before, $P$. No two racks send to each other: replies would wait behind blocks in the same queue, and
be lost with them. Pairs that other flows use already are used: $y_{ij} = 1$, and the last rule is waived.

source  generalises the rule i + 1 of Mukerjee 2018, 2.6.1, which is optimal for k = 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.proof import Proof
from planner.errors import InputError
from planner.options import Options
from planner.search.judged import of_solution
from planner_models.circuitflows.plan.metrics import max_partners
from planner_models.circuitflows.problem.problem import FlowsInTime

if TYPE_CHECKING:
    import pyomo.environ as pyo

RacksEach = Annotated[
    int, Field(ge=1, description="other racks, at least, over which the blocks of a rack are spread")
]
Balance = Annotated[
    float, Field(ge=0, description="share by which a rack may receive more blocks than the mean")
]
Churn = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="share of blocks, at most, between pairs of racks that the last plan did not use",
    ),
]


def place_randomly(problem: FlowsInTime, *, seed: int) -> pd.DataFrame:
    """Return every block in another rack drawn at random, as HDFS does.

    source  Mukerjee 2018, 2.6.1
    """
    free = np.flatnonzero(problem.target < 0)
    rng = np.random.default_rng(seed)
    source, working = problem.source[free], np.flatnonzero(~problem.is_failed)
    min_racks: int | NDArray[np.int64] = 1  # not to its own rack
    if problem.is_failed.any():
        min_racks = (~problem.is_failed[source]).astype(np.int64)
    if (np.asarray(min_racks) >= len(working)).any():  # whatever their racks are, these flows never begin
        return place_in_ring(problem, shift=1)
    turn = rng.integers(min_racks, len(working), size=len(free))
    return _placement_table(problem, free, working[(np.searchsorted(working, source) + turn) % len(working)])


def place_in_ring(problem: FlowsInTime, *, shift: int) -> pd.DataFrame:
    """Return every block of rack i in rack i + shift, or the next that works: reHDFS with a shift of 1.

    source  Mukerjee 2018, 2.6.1
    """
    free, n = np.flatnonzero(problem.target < 0), len(problem.racks)
    if shift % n == 0:
        raise InputError(f"shift is {shift}, must not be a multiple of the {n} racks")
    target = _next_racks(problem, shift)
    return _placement_table(problem, free, target[problem.source[free]])


def _next_racks(problem: FlowsInTime, shift: int) -> NDArray[np.int64]:
    """Return (n,) the rack i + shift of each rack i, or the next one that works; any where none does."""
    racks = np.arange(len(problem.racks))
    first = (racks + shift) % len(racks)
    target = first.copy()
    for _ in racks:
        passed = problem.is_failed[target] | (target == racks)
        target = np.where(passed, (target + 1) % len(racks), target)
    unusable = problem.is_failed[target] | (target == racks)
    return np.where(unusable, first, target)


@dataclass(frozen=True, kw_only=True, eq=False)
class Placement:
    """A placement, None where there is none, and a proof about the configurations that it needs."""

    placement: pd.DataFrame | None
    proof: Proof


def optimize_placement(
    problem: FlowsInTime,
    *,
    racks_each: RacksEach = 1,
    balance: Balance = 0.0,
    churn: Churn = 1.0,
    used: NDArray[np.bool_] | None = None,
    options: Options = Options(),
) -> Placement:
    """Return the placement that needs the fewest configurations, by integer programming.

    used  (n, n) pairs of racks that were used before; None: no plan was, and churn has no limit
    """
    require_racks(problem, racks_each)
    program = build_program(problem, racks_each=racks_each, balance=balance, churn=churn, used=used)
    solution = backends.solve(program, options)
    proof = of_solution(
        solution,
        objective=None if solution.x is None else float(round(solution.x[-1])),
        bound=None if solution.bound is None else math.ceil(solution.bound - 1e-6),
        metric="pairs_per_rack",
        reasons=solution.reasons,
    )
    if solution.x is None:
        return Placement(placement=None, proof=proof)
    n = len(problem.racks)
    blocks = np.round(solution.x[: n * n]).astype(int).reshape(n, n)
    free = np.flatnonzero(problem.target < 0)
    target = _next_racks(problem, 1)[problem.source[free]]  # of failed racks, whose blocks are never sent
    for rack in np.flatnonzero(~problem.is_failed):
        block_rows = np.flatnonzero(problem.source[free] == rack)
        # in turn, so that a file's blocks are spread too
        remaining, turn = blocks[rack].copy(), 0
        for block in block_rows:
            while not remaining[turn % n]:
                turn += 1
            target[block] = turn % n
            remaining[turn % n] -= 1
            turn += 1
    everywhere = problem.target.copy()
    everywhere[free] = target
    sent = problem.can_send(everywhere)
    needed = float(max_partners(problem.source[sent], everywhere[sent], n))
    return Placement(
        placement=_placement_table(problem, free, target),
        proof=replace(proof, objective=needed),
    )


def build_program(
    problem: FlowsInTime,
    *,
    racks_each: RacksEach = 1,
    balance: Balance = 0.0,
    churn: Churn = 1.0,
    used: NDArray[np.bool_] | None = None,
) -> LinearProgram:
    """Return the program: x (n * n) blocks, y (n * n) whether any, and the largest number of partners."""
    n, blocks = len(problem.racks), blocks_to_place(problem)
    total = float(blocks.sum())
    largest = np.ceil(blocks / racks_each)
    loads = np.floor((1 + balance) * np.ceil(total / count_working(problem)) + 1e-9)
    works = (~problem.is_failed).astype(float)
    elsewhere = np.outer(works, works) * (1 - np.eye(n))
    taken = fixed_pairs(problem)
    m = ProgramBuilder(name="placement")
    x = m.variables("blocks", (n, n), upper=largest[:, None] * elsewhere, integer=True)
    y = m.variables("sends", (n, n), lower=taken, upper=elsewhere, integer=True)
    k = m.variables("configurations", upper=n, cost=1.0, integer=True)
    m.constrain("written", x.sum(axis=1), equal=blocks)
    m.constrain("spread", x - sp.diags_array(largest) @ y, upper=0.0)
    m.constrain("sends to", y.sum(axis=1) - k, upper=0.0)
    m.constrain("receives from", y.sum(axis=0) - k, upper=0.0)
    m.constrain("balance", x.sum(axis=0), upper=loads)
    if can_avoid_two_way(count_working(problem), racks_each) and not taken.any():
        first, second = np.triu_indices(n, 1)
        m.constrain("apart", y[first, second] + y[second, first], upper=1.0)
    if used is not None:
        m.constrain("churn", x[~used].sum(), upper=churn * total)
    return m.build()


def formulation(
    problem: FlowsInTime,
    *,
    racks_each: RacksEach = 1,
    balance: Balance = 0.0,
) -> pyo.ConcreteModel:
    """Return the placement model in Pyomo, symbol for symbol as in the module's docstring, without churn."""
    import pyomo.environ as pyo  # only where the formal model is wanted

    require_racks(problem, racks_each)
    w = blocks_to_place(problem)
    working = np.flatnonzero(~problem.is_failed).tolist()
    n, mean = len(working), math.ceil(w.sum() / len(working))
    m = pyo.ConcreteModel("placement")
    m.racks = pyo.Set(initialize=working)
    m.pairs = pyo.Set(initialize=[(i, j) for i in working for j in working if i != j])
    m.x = pyo.Var(m.pairs, domain=pyo.NonNegativeIntegers)
    m.y = pyo.Var(m.pairs, domain=pyo.Binary)
    m.configurations = pyo.Var(domain=pyo.NonNegativeIntegers)

    def to(i: int) -> list[tuple[int, int]]:
        return [(i, j) for j in working if j != i]

    def into(j: int) -> list[tuple[int, int]]:
        return [(i, j) for i in working if i != j]

    m.written = pyo.Constraint(m.racks, rule=lambda m, i: sum(m.x[p] for p in to(i)) == w[i])
    m.spread = pyo.Constraint(
        m.pairs, rule=lambda m, i, j: m.x[i, j] <= math.ceil(w[i] / racks_each) * m.y[i, j]
    )
    m.sends = pyo.Constraint(m.racks, rule=lambda m, i: sum(m.y[p] for p in to(i)) <= m.configurations)
    m.receives = pyo.Constraint(m.racks, rule=lambda m, j: sum(m.y[p] for p in into(j)) <= m.configurations)
    m.balance = pyo.Constraint(
        m.racks, rule=lambda m, j: sum(m.x[p] for p in into(j)) <= (1 + balance) * mean
    )
    taken = fixed_pairs(problem)
    for i, j in m.pairs:
        m.y[i, j].setlb(int(taken[i, j]))
    if can_avoid_two_way(n, racks_each) and not taken.any():
        m.apart = pyo.Constraint(
            m.pairs, rule=lambda m, i, j: m.y[i, j] + m.y[j, i] <= 1 if i < j else pyo.Constraint.Skip
        )
    m.fewest = pyo.Objective(expr=m.configurations)
    return m


def can_avoid_two_way(racks: int, racks_each: int) -> bool:
    """Return whether each rack can send to so many others with no two that send to each other."""
    return 2 * racks_each <= racks - 1


def fixed_pairs(problem: FlowsInTime) -> NDArray[np.bool_]:
    """Return (n, n) pairs of racks with flows that have their target: they need circuits anyway."""
    assigned = (problem.target >= 0) & problem.can_send(problem.target)
    pairs = np.zeros((len(problem.racks), len(problem.racks)), dtype=bool)
    pairs[problem.source[assigned], problem.target[assigned]] = True
    return pairs


def blocks_to_place(problem: FlowsInTime) -> NDArray[np.float64]:
    """Return (n,) blocks that each rack writes and the plan places."""
    free = (problem.target < 0) & problem.can_send(problem.target)
    return np.bincount(problem.source[free], minlength=len(problem.racks)).astype(float)


def count_working(problem: FlowsInTime) -> int:
    """Return the number of working racks, at least 1."""
    return max(1, int((~problem.is_failed).sum()))


def require_racks(problem: FlowsInTime, racks_each: int) -> None:
    """Raise InputError where there are not so many other racks that work."""
    others = count_working(problem) - 1
    if racks_each > others:
        raise InputError(f"racks_each is {racks_each}, there are {others} other racks")


def used_pairs(problem: FlowsInTime, placement: pd.DataFrame) -> NDArray[np.bool_]:
    """Return (n, n) pairs of racks that a placement, maybe of other flows, sent blocks between."""
    used = np.zeros((len(problem.racks), len(problem.racks)), dtype=bool)
    row_of = pd.Index(problem.flows["flow"]).get_indexer(pd.Index(placement["flow"]))
    valid = row_of >= 0
    target = problem.places.get_indexer(pd.Index(placement["target_rack"]))
    used[problem.source[row_of[valid]], target[valid]] = True
    return used


def _placement_table(
    problem: FlowsInTime, flows: NDArray[np.int64], target: NDArray[np.int64]
) -> pd.DataFrame:
    """Return the table `placement` of some flows."""
    names = problem.flows["flow"].to_numpy(object)
    return pd.DataFrame({"flow": names[flows], "target_rack": problem.names[target]})
