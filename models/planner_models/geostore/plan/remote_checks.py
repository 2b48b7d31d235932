"""Checks of dependent writes at other datacenters: their rate, cost and gaps.

A replica of a group in a region without one that it depends on checks at the nearest replica of that. This
keeps order only if both regions are served with all that it depends on by the same replicas
(`protocol.views.find_gaps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.geostore.problem.costs import month_gb
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.protocol.views import Gap, find_gaps, nearest_replicas


@dataclass(frozen=True, kw_only=True, eq=False)
class RemoteChecks:
    """Checks at other datacenters, one for each group, dependency and region.

    group, on   (C,) group that is written, and the one that it depends on
    region, nearest  (C,) region of the replica, and that of the nearest replica of the other group
    per_s       (C,) checks a second
    """

    group: Ints
    on: Ints
    region: Ints
    nearest: Ints
    per_s: Floats

    def delay_ms(self, problem: Geostore) -> Floats:
        """Return the longest wait of a write for its checks in each region, (G, N), ms."""
        wait = np.zeros((len(problem.groups), len(problem.regions)))
        np.maximum.at(wait, (self.group, self.region), problem.rtt_ms[self.region, self.nearest])
        return wait

    def usd(self, problem: Geostore) -> float:
        """Return the price of the messages of all checks, two each, USD a month."""
        size = np.full(len(self.per_s), problem.term("dependency_bytes"))
        price = problem.usd_per_gb[self.region, self.nearest] + problem.usd_per_gb[self.nearest, self.region]
        return float(month_gb(self.per_s, size) @ price)


def find_checks(problem: Geostore, held: Bools, is_remote: Bools) -> RemoteChecks:
    """Return the checks of groups at other datacenters.

    held       (G, N) where replicas are
    is_remote  (G,) groups whose writes may be checked elsewhere
    """
    home = nearest_replicas(held.T, problem.rtt_ms)
    group, on = problem.causal_edges
    pair, region = np.nonzero(held[group] & ~held[on] & is_remote[group][:, None])
    writes = np.bincount(problem.user_group, problem.use("writes_per_s"), len(problem.groups))
    count = dependency_rate(problem)
    return RemoteChecks(
        group=group[pair],
        on=on[pair],
        region=region,
        nearest=home[region, on[pair]],
        per_s=writes[group[pair]] * count[pair],
    )


def dependency_rate(problem: Geostore) -> Floats:
    """Return the dependencies of a write, in the mean, for each causal edge, (E,)."""
    if problem.depends is None:
        return np.zeros(0)
    group, on = problem.depend_ends
    is_checked = ~problem.is_strong[group] & ~problem.is_strong[on]
    rate = problem.depends["share"].to_numpy(float) * problem.depends["per_write"].to_numpy(float)
    return np.asarray(rate[is_checked])


def find_open_gaps(problem: Geostore, held: Bools, groups: Ints) -> list[Gap]:
    """Return the dependencies within some groups that checks at the nearest replica leave open.

    Regions without replicas of the groups are left out; numbers are those of the problem.
    """
    row_of = {int(group): row for row, group in enumerate(groups.tolist())}
    depends: dict[int, list[int]] = {}
    for child, parent in zip(*(ends.tolist() for ends in problem.causal_edges), strict=True):
        if child in row_of and parent in row_of:
            depends.setdefault(row_of[child], []).append(row_of[parent])
    regions = np.flatnonzero(held[groups].any(axis=0))
    gaps = find_gaps(held[np.ix_(groups, regions)].T, problem.rtt_ms[np.ix_(regions, regions)], depends)
    return [
        Gap(
            datacenter=int(regions[gap.datacenter]),
            group=int(groups[gap.group]),
            checked_at=int(regions[gap.checked_at]),
            on=int(groups[gap.on]),
            here=int(regions[gap.here]),
            there=int(regions[gap.there]),
        )
        for gap in gaps
    ]
