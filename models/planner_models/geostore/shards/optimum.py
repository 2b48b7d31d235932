"""Least objective a L + b sum of f_t (4 p_t - 2) + c moves: exactly where it is small, else with a bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner.search.judged import gap_of
from planner_models.geostore.shards.balancing import largest_first, rebalance
from planner_models.geostore.shards.contiguous import best_runs
from planner_models.geostore.shards.keyspace import NO_SERVER, Keyspace
from planner_models.geostore.shards.partitioning import partition
from planner_models.geostore.shards.sharding import Sharding, keep_in_place, load_bound, measure
from planner_models.geostore.shards.simple import hash_ranges

MAX_VARIABLES: Final = 300
"""Of the integer program; larger ones are not built."""
FACTORS: Final = (1.0, 1.05, 1.2, 1.5)
"""Loads over their bound from which on servers give ranges away."""


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best sharding found, its objective, and a lower bound of all placements of undivided ranges."""

    server: Ints
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """Relative gap of the objective to the bound."""
        return (self.objective - self.bound) / max(abs(self.objective), 1e-9)


def solve(keyspace: Keyspace, options: Options = Options()) -> Optimum:
    """Return a sharding with the least objective: proven for small keyspaces, else the best design's.

    raises  MissingPackage where the keyspace is large, has transactions, and no partitioner is installed
    """
    pieces = np.ones(len(keyspace.kops), dtype=np.int64)

    def objective(server: Ints) -> float:
        return measure(keyspace, Sharding(pieces=pieces, server=server)).objective

    rows = len(keyspace.kops) + len(keyspace.transactions.per_s)
    is_small = rows * len(keyspace.server_kops) <= MAX_VARIABLES
    best = min(candidates(keyspace, with_partitions=not is_small), key=objective)
    bound = objective_bound(keyspace)
    gap = gap_of(options, default=1e-4)
    if is_small and objective(best) > bound * (1 + gap):
        solution = backends.solve(program(keyspace), options)
        if solution.bound is not None:
            bound = max(bound, solution.bound)
        if solution.x is not None:
            count = len(keyspace.kops) * len(keyspace.server_kops)
            server = solution.x[:count].reshape(len(keyspace.kops), -1).argmax(axis=1)
            best = min(best, server, key=objective)
    return Optimum(server=best, objective=objective(best), bound=min(bound, objective(best)))


def candidates(keyspace: Keyspace, *, with_partitions: bool) -> Iterator[Ints]:
    """Yield the placements of all designs, and moves from today's."""
    yield keep_in_place(keyspace, best_runs(keyspace)[0])
    yield keep_in_place(keyspace, hash_ranges(keyspace))
    yield keep_in_place(keyspace, largest_first(keyspace))
    if keyspace.today is not None:
        yield from (rebalance(keyspace, factor) for factor in FACTORS)
        if (keyspace.today != NO_SERVER).all():
            yield keyspace.today
    if with_partitions and len(keyspace.transactions.per_s) and len(keyspace.server_kops) > 1:
        yield keep_in_place(keyspace, partition(keyspace))


def objective_bound(keyspace: Keyspace) -> float:
    """Return a lower bound of the objective: the load's, one server for each transaction, no moves."""
    weights = keyspace.weights
    messages = 2 * float(keyspace.transactions.per_s.sum())
    return weights.load * load_bound(keyspace) + weights.messages * messages


def program(keyspace: Keyspace) -> LinearProgram:
    """Return the integer program of least objective.

    assign[r, s]  1 where range r is on server s
    touches[t, s] at least assign[r, s] for each range r of transaction t; their sum is p_t
    load          L, at least the load over capacity of each server
    """
    ranges, servers = len(keyspace.kops), len(keyspace.server_kops)
    accesses, weights = keyspace.transactions, keyspace.weights
    moves = np.zeros((ranges, servers))
    if keyspace.today is not None:
        placed = np.flatnonzero(keyspace.today != NO_SERVER)
        moves[placed] = weights.move_gb * keyspace.gb[placed, None]
        moves[placed, keyspace.today[placed]] = 0.0
    m = ProgramBuilder(name="shards", offset=-2 * weights.messages * float(accesses.per_s.sum()))
    assign = m.variables("assign", (ranges, servers), upper=1.0, cost=moves, integer=True)
    cost = 4 * weights.messages * np.repeat(accesses.per_s[:, None], servers, axis=1)
    touches = m.variables("touches", (len(accesses.per_s), servers), upper=1.0, cost=cost)
    load = m.variables("load", cost=weights.load)
    m.constrain("one_server", assign.sum(axis=1), lower=1.0, upper=1.0)
    share = sp.csr_array(keyspace.kops[None, :])
    for server, capacity in enumerate(keyspace.server_kops):
        m.constrain(f"load_{server}", (share / capacity) @ assign[:, server] - load, upper=0.0)
    if len(accesses.touched):
        m.constrain("touched", touches[accesses.owner] - assign[accesses.touched], lower=0.0)
    return m.build()
