"""Churn: joins and leaves in all groups of a problem, and series of problems as hosts join and leave.

The group of an event is drawn in proportion to the members it has in the problem. In a join, a host of the
group's tenant that is no member comes, in a leave a member goes, each drawn uniformly. Where none can, as
where all hosts of the tenant are members, the event becomes its opposite.

Source: "Scaling IP Multicast on Datacenter Topologies", section 4.3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.parameters import spread
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner_models.multicast.problem import generators
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.multicast.problem.topology import find_rows
from planner_models.multicast.problem.workloads import Tenancy

Windows = Annotated[int, Field(ge=1, le=100_000, description="number of consecutive problems")]
EventCount = Annotated[
    int, Field(ge=1, le=10**7, description="joins and leaves between one problem and the next")
]
Seed = Annotated[int, Field(ge=0, description="seed of the joins and leaves")]


class TenantHosts(NamedTuple):
    """Hosts of all tenants, one tenant after the other.

    host    row of each host
    first   (tenants + 1,) first of each tenant in `host`
    tenant  (G,) tenant of each group
    """

    host: Ints
    first: Ints
    tenant: Ints


class Members(NamedTuple):
    """Members of all groups before the first event, one group after the other.

    start  (G + 1,) first of each group in `host`
    host   row of each member's host
    edge   (hosts,) edge switch of each host
    pod    (edge switches,) pod of each edge switch
    """

    start: Ints
    host: NDArray[np.int32]
    edge: Ints
    pod: Ints


class Events(NamedTuple):
    """Joins and leaves, group by group and within a group in time.

    group       group of each event
    time        its place in time among the events of all groups
    is_join     whether it is a join; else it is a leave
    host        the host that joins or leaves
    edge_flips  whether the host is the group's first or last member at its edge switch
    pod_flips   whether it is the first or last in its pod
    """

    group: Ints
    time: Ints
    is_join: Bools
    host: Ints
    edge_flips: Bools
    pod_flips: Bools


def draw_events(problem: Multicast, count: int, rng: np.random.Generator, *, min_members: int = 0) -> Events:
    """Return `count` joins and leaves, each as likely, that leave every group at least `min_members`.

    raises  InputError for no events, and for a problem without the hosts of each group's tenant
    """
    tenants = tenant_hosts(problem)
    if count < 1:
        raise InputError(f"events is {count}, must be at least 1")
    size = problem.member_counts
    group = rng.choice(len(size), size=count, p=size / size.sum())
    time = np.argsort(group, kind="stable")  # groups are independent: one after the other
    group = group[time]
    is_join, host, edge_flips, pod_flips, faulty = _replay_events(
        group, rng.random(count) < 0.5, rng.random(count), tenants, list_members(problem), min_members
    )
    if faulty >= 0:
        name = problem.groups["group"].iloc[faulty]
        raise InputError(f"members: group '{name}' has a member that is no host of its tenant")
    return Events(group, time, is_join, host, edge_flips, pod_flips)


def apply_churn(problem: Multicast, *, events: int, rng: np.random.Generator) -> Multicast:
    """Return the problem after as many joins and leaves; the last member of a group never leaves."""
    drawn = draw_events(problem, events, rng, min_members=1)
    hosts = len(problem.hosts)
    change, times = np.unique(drawn.group * hosts + drawn.host, return_counts=True)
    now = np.setxor1d(problem.group_of.astype(np.int64) * hosts + problem.host_of, change[times % 2 == 1])
    return problem.with_members(*np.divmod(now, hosts))


def list_members(problem: Multicast) -> Members:
    """Return the members of all groups, group by group."""
    return Members(
        start=np.concatenate([[0], np.cumsum(problem.member_counts)]),
        host=problem.host_of[np.argsort(problem.group_of, kind="stable")],
        edge=problem.edge_of_host,
        pod=problem.wiring.edge_pod,
    )


def tenant_hosts(problem: Multicast) -> TenantHosts:
    """Return the hosts of all tenants, and the tenant of each group.

    raises  InputError for a problem without the hosts of each group's tenant
    """
    if problem.tenants is None or "tenant" not in problem.groups:
        raise InputError("tenants: dynamics need this table, and the column 'tenant' of groups")
    names = problem.tenants["tenant"].cat
    host = find_rows(problem.host_names, problem.tenants["host"])
    order = np.argsort(names.codes.to_numpy(), kind="stable")
    first = np.searchsorted(names.codes.to_numpy()[order], np.arange(len(names.categories) + 1))
    tenant = find_rows(pd.Index(names.categories), problem.groups["tenant"])
    return TenantHosts(host[order], first, tenant)


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _replay_events(
    group: Ints,
    wants_join: Bools,
    draw: Floats,
    tenants: TenantHosts,
    members: Members,
    min_members: int,
) -> tuple[Bools, Ints, Bools, Bools, int]:
    """Replay events group by group; return is_join, host, edge_flips and pod_flips of each (see `Events`).

    draw     uniform numbers that pick the hosts
    returns  last, a group with a member that is no host of its tenant, or -1
    """
    edge, pod = members.edge, members.pod
    events = len(group)
    is_join = np.zeros(events, dtype=np.bool_)
    host = np.zeros(events, dtype=np.int64)
    edge_flips = np.zeros(events, dtype=np.bool_)
    pod_flips = np.zeros(events, dtype=np.bool_)
    member_of = np.full(len(edge), -1, dtype=np.int64)
    pool = np.empty(len(edge), dtype=np.int64)
    at_edge = np.zeros(len(pod), dtype=np.int64)
    in_pod = np.zeros(pod.max() + 1, dtype=np.int64)
    count = size = 0
    for i in range(events):
        g = group[i]
        if i == 0 or g != group[i - 1]:  # a new group: its members first, then the tenant's other hosts
            at_edge[:] = 0
            in_pod[:] = 0
            count = members.start[g + 1] - members.start[g]
            for j in range(count):
                pool[j] = members.host[members.start[g] + j]
                member_of[pool[j]] = g
                at_edge[edge[pool[j]]] += 1
                in_pod[pod[edge[pool[j]]]] += 1
            size = count
            begin, end = tenants.first[tenants.tenant[g]], tenants.first[tenants.tenant[g] + 1]
            for j in range(begin, end):
                if member_of[tenants.host[j]] != g:
                    pool[size] = tenants.host[j]
                    size += 1
            if size != end - begin:
                return is_join, host, edge_flips, pod_flips, g
        joins = count < size and (wants_join[i] or count <= min_members)
        is_join[i] = joins
        if joins:
            j = count + int(draw[i] * (size - count))
        else:
            j = int(draw[i] * count)
            count -= 1
        pool[j], pool[count] = pool[count], pool[j]
        host[i] = pool[count]
        switch = edge[pool[count]]
        if not joins:
            at_edge[switch] -= 1
            in_pod[pod[switch]] -= 1
        edge_flips[i] = at_edge[switch] == 0
        pod_flips[i] = in_pod[pod[switch]] == 0
        if joins:
            at_edge[switch] += 1
            in_pod[pod[switch]] += 1
            count += 1
    return is_join, host, edge_flips, pod_flips, -1


@dataclass(frozen=True, kw_only=True, eq=False)
class ChurnSeries:
    """A problem, and the problems that follow as hosts join and leave (see `churn`)."""

    problem: Multicast
    windows: int
    events: int
    seed: int

    def __post_init__(self) -> None:
        if self.problem.tenants is None or "tenant" not in self.problem.groups:
            raise InputError("tenants: joins and leaves need this table, and the column 'tenant' of groups")

    def __len__(self) -> int:
        return self.windows

    def __iter__(self) -> Iterator[tuple[str, Multicast]]:
        rng = np.random.default_rng(self.seed)
        problem = self.problem
        for window in range(self.windows):
            if window:
                problem = apply_churn(problem, events=self.events, rng=rng)
            yield f"{window:0{len(str(self.windows - 1))}d}", problem


@spread(fabric_size=generators.FatTree(), tenancy=Tenancy())
def generate_churn(
    *,
    windows: Windows = 10,
    events: EventCount = 100,
    churn_seed: Seed = 0,
    fabric_size: generators.FatTree,
    tenancy: Tenancy,
    seed: Annotated[int, Field(ge=0, description="seed of members, rates and arrivals")] = 0,
) -> ChurnSeries:
    """Return groups of a generated datacenter (see preset datacenter), as hosts join and leave."""
    problem = generators.datacenter(**vars(fabric_size), **vars(tenancy), seed=seed)
    return ChurnSeries(problem=problem, windows=windows, events=events, seed=churn_seed)


def read_churn(
    *,
    path: Annotated[Path, Field(description="folder of the problem's tables, including tenants")],
    windows: Windows = 10,
    events: EventCount = 100,
    churn_seed: Seed = 0,
) -> ChurnSeries:
    """Return groups of your own tables, as hosts of their tenants join and leave."""
    problem = Multicast.from_tables(read_tables(TABLES, find_tables(TABLES, path, OPTIONAL_TABLES)))
    return ChurnSeries(problem=problem, windows=windows, events=events, seed=churn_seed)
