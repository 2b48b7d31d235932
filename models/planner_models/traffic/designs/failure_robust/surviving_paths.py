"""Candidate paths of each demand that survive failures, and plans with reservations on them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.formatting import few
from planner.search.tolerances import NEGLIGIBLE
from planner_models.flows.path_flow_program import CandidatePaths, route_table
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic.designs.route_choice import find_candidates
from planner_models.traffic.plan.plan import Routing, routing_by_demand
from planner_models.traffic.problem.failure_sets import FailureSet, FailureSource
from planner_models.traffic.problem.problem import Traffic

DEFAULT_PATHS: Final = 4
LEAST_RESERVED: Final = NEGLIGIBLE  # of a demand
MAX_PATHS: Final = 62  # of a demand; sets of them are bits of an integer

TunnelCount = Annotated[
    Annotated[int, Field(gt=0, le=MAX_PATHS)] | Literal["tunnels"] | None,
    Field(
        description="paths that each demand may take: that many, or the tunnels of the problem; default: the "
        f"tunnels where it has any, else {DEFAULT_PATHS}"
    ),
]
TunnelChoice = Annotated[
    PathChoice,
    Field(
        description="with a number of paths: as many link-disjoint ones as there are (most_disjoint), each "
        "the shortest without the links of those before (disjoint), or the shortest"
    ),
]


def choose_paths(
    problem: Traffic, paths: int | Literal["tunnels"] | None, choice: PathChoice
) -> tuple[CandidatePaths, int | Literal["tunnels"], RouteLimits | None]:
    """Return the paths of demands with a rate, the value of `paths` that they follow, and their limits."""
    if paths is None:
        paths = DEFAULT_PATHS if problem.tunnels is None else "tunnels"
    limits = RouteLimits.of(problem)
    return find_candidates(problem, paths, choice, None, limits), paths, limits


@dataclass(frozen=True, kw_only=True, eq=False)
class SurvivingPaths:
    """Distinct sets of paths of a demand that failures take, with at least one path left; M of all demands.

    demand     (M,) of each set, ascending
    survives   (M, P) 1 for each path that is left
    cut        (K,) whether failures may take all paths of a demand while the network has another one
    """

    demand: Ints
    survives: sp.csr_array
    cut: Bools

    @classmethod
    def of(
        cls, problem: Traffic, paths: CandidatePaths, failures: FailureSet, at_once: int
    ) -> SurvivingPaths:
        """Return the paths that survive up to `at_once` failures."""
        count = len(paths.demand)
        start = np.searchsorted(paths.demand, np.arange(len(problem.demands) + 1))
        position = np.arange(count) - start[paths.demand]
        hits = find_hits(paths, failures).tocoo()
        # (demand, failure) -> bits of the paths that it takes
        key = paths.demand[hits.col] * max(len(failures), 1) + hits.row
        keys, row = np.unique(key, return_inverse=True)
        bits = np.zeros(len(keys), dtype=np.int64)
        np.bitwise_or.at(bits, row, np.int64(1) << position[hits.col])
        owner, failure = np.divmod(keys, max(len(failures), 1))
        begin = np.searchsorted(owner, np.arange(len(problem.demands) + 1))
        demand: list[int] = []
        sets: list[int] = []
        connectivity = _Connectivity(problem, failures)
        cut = np.zeros(len(problem.demands), dtype=bool)
        for k in np.flatnonzero(np.diff(start)).tolist():
            every = (1 << int(start[k + 1] - start[k])) - 1
            here = slice(begin[k], begin[k + 1])
            taken = {0}
            for _ in range(at_once):
                taken = {mask | more for mask in taken for more in {0, *bits[here].tolist()}}
            if every in taken:
                taken.remove(every)
                cut[k] = not connectivity.explains(
                    k, list(zip(failure[here].tolist(), bits[here].tolist(), strict=True)), every, at_once
                )
            largest = [
                mask for mask in taken if not any(mask != other and mask & other == mask for other in taken)
            ]
            demand += [k] * len(largest)
            sets += sorted(largest)
        return cls(
            demand=np.array(demand, dtype=np.int64),
            survives=_list_survivors(np.array(demand, dtype=np.int64), sets, start, count),
            cut=cut,
        )


def find_hits(paths: CandidatePaths, failures: FailureSet) -> sp.csr_array:
    """Return nonzero entries where a failure takes a path, shape (S, P)."""
    uses = paths.uses
    touches = sp.csr_array((np.ones(uses.nnz), uses.indices, uses.indptr), uses.shape)
    return sp.csr_array(sp.csr_array(failures.link_down.astype(float)) @ touches.T)


def _list_survivors(demand: Ints, sets: list[int], start: Ints, count: int) -> sp.csr_array:
    """Return 1 for each path of a demand that is not in a set of bits, (M, P)."""
    size = np.diff(start)[demand]
    row = np.repeat(np.arange(len(demand)), size)
    position = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    is_left = (np.array(sets, dtype=np.int64)[row] >> position) & 1 == 0
    column = start[demand][row] + position
    return sp.csr_array(
        (np.ones(int(is_left.sum())), (row[is_left], column[is_left])), shape=(len(demand), count)
    )


class _Connectivity:
    """Tells whether failures that take all paths of a demand leave the network without any for it."""

    def __init__(self, problem: Traffic, failures: FailureSet) -> None:
        self._problem, self._failures = problem, failures
        self._known: dict[frozenset[int], Bools] = {}

    def explains(self, demand: int, hits: list[tuple[int, int]], every: int, at_once: int) -> bool:
        """Return whether all sets of failures that take all paths disconnect the demand.

        hits  failures that take paths of the demand, and the bits of these
        """
        partial_sets: list[tuple[frozenset[int], int]] = [(frozenset(), 0)]
        for _ in range(at_once):
            longer: dict[frozenset[int], int] = {}
            for (failed_set, taken), (failure, bits) in itertools.product(partial_sets, hits):
                together = failed_set | {failure}
                if taken | bits == every:
                    if not self._disconnects(together, demand):
                        return False
                elif failure not in failed_set:
                    longer[together] = taken | bits
            partial_sets = list(longer.items())
        return True

    def _disconnects(self, failed_set: frozenset[int], demand: int) -> bool:
        if failed_set not in self._known:
            down = self._failures.link_down[sorted(failed_set)]
            self._known[failed_set] = self._problem.disconnected_demands(~np.asarray(down.any(axis=0)))
        return bool(self._known[failed_set][demand])


def fit_reservations(problem: Traffic, paths: CandidatePaths, reserved_mbps: Floats) -> Floats:
    """Return the reservations of paths, (P,), without those that are rounding, and fitted into capacities."""
    is_rounding = reserved_mbps <= LEAST_RESERVED * problem.rate_mbps[paths.demand]
    reserved = np.where(is_rounding, 0.0, reserved_mbps)
    excess, capacity = np.ones(len(problem.links)), problem.capacity_mbps
    np.divide(paths.uses.T @ reserved, capacity, out=excess, where=capacity > 0)
    excess = np.maximum(excess, 1.0)
    return np.asarray(reserved / largest_on_paths(paths, excess))


def largest_on_paths(paths: CandidatePaths, value: Floats) -> Floats:
    """Return the largest value of the links of each path, (P,); `value` is (E,), at least 0."""
    on_links = sp.csr_array((paths.uses != 0) * value[None, :])
    return np.asarray(on_links.max(axis=1).toarray(), dtype=float).ravel()


def resolve_source(problem: Traffic, failures: FailureSource | None) -> FailureSource:
    """Return the set of failures that a parameter means, see `FailuresParameter`."""
    if failures is None:
        return "links" if problem.failures is None else "table"
    return failures


def describe_unsafe(problem: Traffic, is_unsafe: Bools) -> tuple[str, ...]:
    """Return a sentence on the demands (K,) that a plan sends without a guarantee; () for none."""
    names = [problem.demand_labels[k] for k in np.flatnonzero(is_unsafe).tolist()]
    if not names:
        return ()
    what = f"demand {names[0]} is" if len(names) == 1 else f"{len(names):,} demands ({few(names, 4)}) are"
    why = "a failure takes all permitted paths, while the network has another"
    return (f"{what} sent without a guarantee: {why}",)


def plan_reservations(
    problem: Traffic, paths: CandidatePaths, reserved_mbps: Floats, sent_mbps: Floats
) -> Routing:
    """Return the plan that sends rates (K,) over paths in proportion to their reservations, (P,)."""
    demand = paths.demand
    total = np.bincount(demand, weights=reserved_mbps, minlength=len(problem.demands))
    share = np.divide(sent_mbps, total, out=np.zeros(len(total)), where=total > 0)
    rate = np.minimum(share[demand], 1.0) * reserved_mbps
    assignment = sp.csr_array(
        (np.ones(len(demand)), (demand, np.arange(len(demand)))), shape=(len(problem.demands), len(demand))
    )
    flow = sp.csr_array(assignment @ (sp.diags_array(rate) @ paths.uses))
    routes = route_table(problem, paths, rate)
    routes["reserved_mbps"] = reserved_mbps[rate > 0]
    return routing_by_demand(problem, flow.tocoo(), routes)


def add_guarantees(
    problem: Traffic,
    plan: Routing,
    rate_mbps: Floats,
    *,
    failures: FailureSource,
    at_once: int,
    restoration: str,
    has_zeros: bool = False,
) -> Routing:
    """Return the plan with the table of guaranteed arrivals in failures, (K,) Mbit/s, of demands with any.

    has_zeros  whether demands that get nothing are listed too: the table says which failures were planned for
    """
    rows = np.flatnonzero((problem.rate_mbps > 0) if has_zeros else (rate_mbps > 0))
    table = pd.DataFrame(
        {name: problem.demands[name].astype(str).to_numpy()[rows] for name in problem.demand_key}
    )
    table = table.assign(
        rate_mbps=rate_mbps[rows], failures=failures, at_once=float(at_once), restoration=restoration
    )
    return replace(plan, guarantees=table)
