"""A shared store in simulated time: its queues, the controllers' observations of them, and their changes.

Demand over time: the problem after each change of table `events`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import FAIR_QUEUING, WINDOWS, Content, Replicas, Sharing, read_plan
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import ANY
from planner_models.fairshare.problem.tables import add_up
from planner_models.fairshare.simulation.queues import (
    BINS_OF_FACTOR_10,
    LEAST_LATENCY_S,
    Store,
    pass_time,
    start_queues,
    wake,
)

INTERVAL_S: Final = 1.0
LEAST_QUANTUM: Final = 0.01
"""Requests of a round: rounds without any service are few."""
LEAST_WINDOW: Final = 1e-3
"""Of the mean window of a tenant, so that each replica keeps getting requests to measure."""


class Snapshot(NamedTuple):
    """Measurements of the running store; counts are since its start.

    now_s, replicas  time and placement
    served           (T, N) requests
    sent             (P,) requests
    latency_s        (T, N) smoothed; 0: none yet
    is_backlogged    (P,) whether the partition's source wants to send more than it may keep outstanding
    windows          (T, N) windows of routers, relative to each other
    weight           (T, N) local weights
    """

    now_s: float
    replicas: Replicas
    served: Ints
    sent: Ints
    latency_s: Floats
    is_backlogged: Bools
    windows: Floats
    weight: Floats


class Change(NamedTuple):
    """A decision of a controller: local weights (T, N), windows (T, N), or a plan; None: no change of it."""

    weight: Floats | None = None
    windows: Floats | None = None
    plan: Sharing | None = None


class StoreExecution:
    """Queues of a shared store under a plan; controllers change weights, windows and placement.

    weight           (T, N) local weights at the start
    outstanding      requests that a tenant keeps waiting for each of its nodes, where table tenants says none
    quantum          requests in a round of a node, of the tenant with the least weight, in the mean of nodes
    measured_from_s  start of the time that figures are about
    """

    def __init__(
        self,
        problem: SharedStore,
        plan: Sharing,
        *,
        weight: Floats,
        outstanding: int,
        quantum: float,
        seed: int,
        measured_from_s: float,
    ) -> None:
        self.problem = problem
        self.plan = plan
        content = read_plan(problem, plan)
        self.replicas, self.split, self.weight = content.replicas, content.split, weight
        self._changes = list(list_changes(problem))
        self._order = np.argsort(problem.tenant, kind="stable")
        source = np.where(problem.is_fixed[problem.tenant], -1 - problem.tenant, np.arange(len(self._order)))
        keys = source[self._order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        self._first = np.concatenate([starts, [len(keys)]]).astype(np.int64)
        self._owner = problem.tenant[self._order[starts]].astype(np.int64)
        self.demand = problem.admit(problem.demand_kops)
        self.windows = np.ones_like(weight)
        present = self._present()
        mean = np.divide(weight.sum(axis=1), np.maximum(present.sum(axis=1), 1))
        positive = mean[(mean > 0) & present.any(axis=1)]
        self._of_weight = quantum / float(positive.min(initial=np.inf)) if len(positive) else 1.0
        self.now_s, self._from_s = 0.0, measured_from_s
        self._store = self._lay_out(plan.queueing == FAIR_QUEUING)
        self._random = np.random.default_rng(seed)
        self._queues, self._counts = start_queues(self._store, self._outstanding(outstanding, present))
        self._recorded = self._served_by_tenant()
        self._rows: list[tuple[float, Floats, Floats]] = []
        self._delays_before: Ints | None = self._counts.delays.copy() if measured_from_s <= 0 else None

    # --- the control loop -----------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """Serve requests until a time, with the changes of demand on the way."""
        while self.now_s < until_s:
            interval_end = (np.floor(self.now_s / INTERVAL_S + 1e-9) + 1) * INTERVAL_S
            change = self._changes[0][0] if self._changes else np.inf
            if change <= self.now_s:
                self.demand = self.problem.admit(self._changes.pop(0)[1])
                self._refresh()
                continue
            end = min(until_s, interval_end, change)
            pass_time(self._store, self._queues, self._counts, end, self._random)
            self.now_s = end
            if end == interval_end:
                self._record_interval()
            if self._delays_before is None and end >= self._from_s:
                self._delays_before = self._counts.delays.copy()

    def apply(self, decision: Change) -> None:
        """Set local weights, windows, or a plan."""
        if decision.plan is not None:
            content: Content = read_plan(self.problem, decision.plan)
            self.plan, self.replicas, self.split = decision.plan, content.replicas, content.split
            self.weight = content.weight if decision.weight is None else decision.weight
        elif decision.weight is not None:
            self.weight = decision.weight
        if decision.windows is not None:
            self.windows = decision.windows
        self._refresh()

    def observe(self) -> Snapshot:
        """Return the current measurements."""
        backlogged = np.zeros(len(self._order), dtype=bool)
        backlogged[self._order] = np.repeat(self._queues.idle < 0, np.diff(self._first))
        sent = np.zeros(len(self._order), dtype=np.int64)
        sent[self._order] = self._counts.sent
        return Snapshot(
            self.now_s,
            self.replicas,
            self._counts.served.copy(),
            sent,
            self._counts.latency_s.copy(),
            backlogged,
            self.windows.copy(),
            self.weight.copy(),
        )

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return the rate and the fair share of each tenant in each second."""
        names = self.problem.tenant_names
        frames = [
            pd.DataFrame({"at_s": at_s, "tenant": names, "kops": rate, "fair_share_kops": fair})
            for at_s, rate, fair in self._rows
        ]
        columns = ["at_s", "tenant", "kops", "fair_share_kops"]
        return {"rates": pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)}

    @property
    def delays(self) -> Ints:
        """Distribution of latency since the start of the time that figures are about; see `queues.BINS`."""
        before = 0 if self._delays_before is None else self._delays_before
        return self._counts.delays - before

    # --- arrays of the kernel -------------------------------------------------------------

    def _present(self) -> Bools:
        present = np.zeros(self.weight.shape, dtype=bool)
        present[self.problem.tenant[self.replicas.partition], self.replicas.node] = True
        return present

    def _outstanding(self, each: int, present: Bools) -> Ints:
        """Return the requests that each source keeps waiting, (S,), at least 1."""
        outstanding = self.problem.outstanding
        of_tenant = np.where(np.isnan(outstanding), each * np.maximum(present.sum(axis=1), 1), outstanding)
        parts = np.bincount(self._owner, minlength=len(of_tenant))
        return np.maximum(np.round(of_tenant / np.maximum(parts, 1)), 1).astype(np.int64)[self._owner]

    def _lay_out(self, is_fair: bool) -> Store:
        problem = self.problem
        partitions = len(self._order)
        rank = np.empty(partitions, dtype=np.int64)
        rank[self._order] = np.arange(partitions)
        works = problem.rate_kops[self.replicas.node] > 0
        partition, node = rank[self.replicas.partition], self.replicas.node
        rows = np.lexsort((node, partition))
        rows = rows[works[rows]]
        partition, node = partition[rows], node[rows].astype(np.int64)
        if self.plan.replica_choice == WINDOWS:
            weight = self.windows[problem.tenant[self.replicas.partition[rows]], node]
        else:
            weight = self.split[rows]
        count = np.bincount(partition, minlength=partitions)
        total = add_up(partition, weight, partitions)
        weight = np.where(total[partition] > 0, weight, 1.0)
        total = add_up(partition, weight, partitions)
        start = np.concatenate([[0], np.cumsum(count)])
        sums = np.cumsum(weight / total[partition])
        before = np.concatenate([[0.0], sums])[start[:-1]]
        chance = sums - before[partition]
        demand = np.where(count > 0, self.demand[self._order], 0.0)
        sources = np.repeat(np.arange(len(self._owner)), np.diff(self._first))
        pace = add_up(sources, demand, len(self._owner))
        is_short = add_up(sources, np.where(count > 0, 0.0, self.demand[self._order]), len(self._owner)) > 0
        pace = np.where(is_short, 0.0, pace)  # a partition without replica stops its source
        running = np.cumsum(demand)
        offset = np.concatenate([[0.0], running])[self._first[:-1]]
        total_demand = add_up(sources, demand, len(self._owner))
        popular = np.divide(
            running - offset[sources],
            total_demand[sources],
            out=np.ones_like(running),
            where=total_demand[sources] > 0,
        )
        popular = np.where(popular > 1 - 1e-12, 1.0, popular)
        quantum = np.maximum(self.weight * self._of_weight, LEAST_QUANTUM)
        return Store(
            rate=problem.rate_kops * 1e3,
            tenant=self._owner,
            pace=pace * 1e3,
            first=self._first,
            popular=popular,
            at=start.astype(np.int64),
            node=node,
            chance=chance,
            quantum=quantum,
            is_fair=is_fair,
        )

    def _refresh(self) -> None:
        self._store = self._lay_out(self._store.is_fair)
        wake(self._store, self._queues, self.now_s)

    def _served_by_tenant(self) -> Floats:
        return np.asarray(self._counts.served.sum(axis=1), dtype=np.float64)

    def _record_interval(self) -> None:
        served = self._served_by_tenant()
        rate = (served - self._recorded) / INTERVAL_S / 1e3
        fair = fair_share_kops(self.problem.with_demand(self.demand)) if self.demand.any() else 0.0 * rate
        self._rows.append((self.now_s - INTERVAL_S, rate, fair))
        self._recorded = served


def quantile_s(delays: Ints, quantile: float) -> float | None:
    """Return the latency that a part of the requests does not exceed, s; None without requests."""
    total = int(delays.sum())
    if not total:
        return None
    bin_index = int(np.searchsorted(np.cumsum(delays), quantile * total))
    return float(LEAST_LATENCY_S * 10 ** ((bin_index + 0.5) / BINS_OF_FACTOR_10))


def list_changes(problem: SharedStore) -> Iterator[tuple[float, Floats]]:
    """Yield the times of changes in ascending order, each with the demand from then on, (P,) kops.

    A change of a tenant's whole demand keeps the proportions of its partitions; they are those of the start
    where it has none at the time.
    """
    if problem.events is None or not len(problem.events):
        return
    demand = problem.demand_kops.copy()
    count = np.bincount(problem.tenant, minlength=len(problem.tenants))
    first = np.where(problem.demand_of_tenant[problem.tenant] > 0, problem.share_of_tenant, 0.0)
    proportions = np.where(
        problem.demand_of_tenant[problem.tenant] > 0, first, 1.0 / np.maximum(count, 1)[problem.tenant]
    )
    row_of = {str(name): row for row, name in enumerate(problem.tenant_names)}
    events = problem.events.sort_values("at_s", kind="stable")
    rows = problem.find_partitions(events)
    is_any = (events["partition"].astype(str) == ANY).to_numpy()
    values, times = events["demand_kops"].to_numpy(float), events["at_s"].to_numpy(float)
    tenants = events["tenant"].astype(str).to_list()
    for at_s, first_row, end in _group(times):
        for k in range(first_row, end):
            if not is_any[k]:
                demand[rows[k]] = values[k]
                continue
            is_owner = problem.tenant == row_of[tenants[k]]
            total = float(demand[is_owner].sum())
            demand[is_owner] = values[k] * (demand[is_owner] / total if total > 0 else proportions[is_owner])
        yield at_s, demand.copy()


def _group(times: Floats) -> Iterator[tuple[float, int, int]]:
    """Yield each of the ascending times, with its first row and that after its last."""
    values, starts = np.unique(times, return_index=True)
    yield from zip(values.tolist(), starts.tolist(), [*starts[1:].tolist(), len(times)], strict=True)
