"""Demand over time: the problem after each change of table `events`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.arrays import Floats
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import ANY


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
