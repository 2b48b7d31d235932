"""Reservations with a backup path each, which takes over where the first path fails.

First paths are those of design `cspf`. The backup path of a demand shares no link with its first path, and
none that fails together with one of them: links of one failure of the set are a shared risk. Its bandwidth
is reserved for it alone, or shared with backup paths of demands that no failure of the set hits together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible
from planner_models.flows.path_flow_program import CandidatePaths, route_table
from planner_models.traffic.designs.failure_robust.surviving_paths import add_guarantees, resolve_source
from planner_models.traffic.designs.reserved_paths import (
    FITS,
    Path,
    PathSearch,
    Reservations,
    Tie,
    admit_paths,
    list_paths,
    signal_all,
)
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.failure_sets import FailureSet, FailuresParameter, build_failure_set
from planner_models.traffic.problem.problem import Traffic

Sharing = Annotated[
    Literal["shared", "dedicated"],
    Field(
        description="bandwidth of backup paths; shared: a link reserves the most that one failure of the set "
        "needs there; dedicated: it reserves the rates of all demands whose backup path uses it"
    ),
]
Unprotected = Annotated[
    Literal["sent", "shed"],
    Field(description="whether a demand without a backup path is sent without a guarantee, or shed"),
]


@shed_unreachable_by_demand
def route(
    problem: Traffic,
    *,
    failures: FailuresParameter = None,
    bandwidth: Sharing = "shared",
    unprotected: Unprotected = "sent",
    tie: Tie = "first",
    options: Options = Options(),
) -> Decision[Routing]:
    """Admit each demand whole on the shortest path with enough bandwidth, and reserve a backup path for it.

    Where the shortest path leaves no backup path, the first path avoids one of its shared risks after the
    other, until one is left. A failure that cuts a demand off asks for no backup path. Demands are protected
    in the order of setup priorities. At the time limit, the others stay without a backup path.

    returns  Decision with a Routing whose table `routes` has first and backup paths by their preference, and
             whose table `guarantees` has the demands that are protected
    source   RFC 4427, 4.11 (end-to-end protection with shared and dedicated bandwidth); RFC 3209
    """
    source = resolve_source(problem, failures)
    search = PathSearch(problem, tie)
    reservations = Reservations.of(problem, problem.setup_priority, problem.hold_priority)
    deadline = Deadline.of(options)
    signal_all(problem, reservations, search, "priority", deadline)
    backups = _Backups(problem, build_failure_set(problem, source), reservations, search, bandwidth)
    backups.protect_all(deadline)
    if unprotected == "shed":
        backups.shed_unprotected()
    plan = backups.make_plan()
    safe = np.where(backups.is_protected, problem.rate_mbps, 0.0)
    plan = add_guarantees(problem, plan, safe, failures=source, at_once=1, restoration="split")
    return Decision(plan=plan, proof=feasible(), guarantees=frozenset({"capacity", "guarantees"}))


class _Backups:
    """Backup paths of demands with a reservation.

    path          of each demand, None where it has none
    is_protected  (K,) demands that arrive in each failure that does not cut them off
    needed        (S, E) bandwidth that backup paths take on links in each failure, Mbit/s; one row where
                  their bandwidth is dedicated
    """

    def __init__(
        self,
        problem: Traffic,
        failures: FailureSet,
        reservations: Reservations,
        search: PathSearch,
        bandwidth: Sharing,
    ) -> None:
        self.problem, self.reservations, self.search = problem, reservations, search
        self.path: list[Path | None] = [None] * len(problem.demands)
        self.is_protected = np.zeros(len(problem.demands), dtype=bool)
        self._down = failures.link_down
        self._cut_off = np.array(
            [problem.disconnected_demands(~down) for down in self._down], dtype=bool
        ).reshape(len(self._down), len(problem.demands))
        self._is_shared = bandwidth == "shared"
        self.needed = np.zeros((len(self._down) if self._is_shared else 1, len(problem.links)))
        self._most_needed = np.zeros(len(problem.links))
        self._unreserved = np.asarray(problem.capacity_mbps - reservations.used.sum(axis=0))

    def protect_all(self, deadline: Deadline) -> None:
        """Reserve a backup path for each demand that needs one, stronger setup priorities first."""
        admitted = [row for row, path in enumerate(self.reservations.path) if path is not None]
        for demand in sorted(admitted, key=self.reservations.rank):
            if deadline.is_over:
                return
            self.is_protected[demand] = self._protect(demand)

    def _protect(self, demand: int) -> bool:
        """Reserve a backup path, with another first path if need be; return whether there is one."""
        first = self.reservations.path[demand]
        assert first is not None
        if self._reserve_backup(demand, first, self._unreserved):
            return True
        rate = self.problem.rate_mbps[demand]
        freed = self._unreserved.copy()
        freed[list(first)] += rate
        for other in self._other_paths(demand, first, freed):
            unreserved = freed.copy()
            unreserved[list(other)] -= rate
            if self._reserve_backup(demand, other, unreserved):
                self.reservations.remove(demand)
                self.reservations.admit(demand, other)
                self._unreserved = unreserved
                return True
        return False

    def _reserve_backup(self, demand: int, first: Path, unreserved: Floats) -> bool:
        """Reserve a backup path for a first path; return whether there is one, or none is needed.

        unreserved  (E,) bandwidth that first paths leave
        """
        hits = self._hits(demand, first)
        if not len(hits):
            return True
        rows = hits if self._is_shared else np.zeros(1, dtype=np.int64)
        available = unreserved - self.needed[rows].max(axis=0)
        path = self._find(demand, available, np.asarray(self._down[hits].any(axis=0)))
        if path is None:
            return False
        self.path[demand] = path
        links = np.array(path)
        self.needed[np.ix_(rows, links)] += self.problem.rate_mbps[demand]
        self._most_needed[links] = self.needed[:, links].max(axis=0)
        return True

    def _hits(self, demand: int, path: Path) -> Ints:
        """Return the failures that take a path of a demand and do not cut the demand off."""
        return np.flatnonzero(self._down[:, list(path)].any(axis=1) & ~self._cut_off[:, demand])

    def _find(self, demand: int, available: Floats, avoided: Bools) -> Path | None:
        is_open = ~avoided & (available >= self.problem.rate_mbps[demand] * FITS)
        return self.search.find_within(demand, np.where(is_open, self.problem.weight, np.inf), available)

    def _other_paths(self, demand: int, first: Path, unreserved: Floats) -> Iterator[Path]:
        """Yield other first paths, each without the links of one of the failures that take the shortest."""
        available = unreserved - self._most_needed
        for failure in self._hits(demand, first).tolist():
            path = self._find(demand, available, self._down[failure])
            if path is not None:
                yield path

    def shed_unprotected(self) -> None:
        """Remove the reservations of demands that are not protected."""
        for demand, path in enumerate(self.reservations.path):
            if path is not None and not self.is_protected[demand]:
                self.reservations.remove(demand)

    def make_plan(self) -> Routing:
        """Return the plan, with a route of preference 0 for each first path and of 1 for each backup path."""
        plan = admit_paths(self.problem, self.reservations.path)
        paths_by_preference = [list_paths(paths) for paths in (self.reservations.path, self.path)]
        tables = []
        for preference, paths in enumerate(paths_by_preference):
            rate = self.problem.rate_mbps[paths.demand]
            candidates = CandidatePaths(found=paths, width=len(self.problem.links))
            routes = route_table(self.problem, candidates, rate)
            sent = rate if preference == 0 else np.zeros(len(rate))
            tables.append(routes.assign(rate_mbps=sent, reserved_mbps=rate, preference=float(preference)))
        filled = [table for table in tables if len(table)] or tables[:1]
        return replace(plan, routes=pd.concat(filled, ignore_index=True))
