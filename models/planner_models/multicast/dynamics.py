"""How often switches change their tables as hosts join and leave groups.

A join or leave changes the edge switch of the host; the aggregation switches of the pod that hold the
group's partition (ra) where it is the group's first or last member there; the cores that do (rc) where
it is the first or last in the pod. A batch changes each switch at most once.

Source: "Scaling IP Multicast on Datacenter Topologies", section 4.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from planner.errors import InputError
from planner.system import Section
from planner_models.multicast.addresses import Distribution
from planner_models.multicast.problem import Multicast

LAYERS = ("edge", "aggregation", "core")
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Updates:
    """Switch updates by layer, on average for an event (or in all, where so said)."""

    edge: float
    aggregation: float
    core: float

    @property
    def total(self) -> float:
        return self.edge + self.aggregation + self.core


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """Hosts spread evenly: `pods` pods with `edges` edge switches of `hosts` hosts each.

    aggregation_copies  ra: aggregation switches of a pod that hold the group
    core_copies         rc: cores that do
    """

    pods: int
    edges: int
    hosts: int
    aggregation_copies: int
    core_copies: int

    def __post_init__(self) -> None:
        numbers = vars(self)
        faults = [f"{name} is {value}, must be at least 1" for name, value in numbers.items() if value < 1]
        if faults:
            raise InputError(*faults)

    @property
    def size(self) -> int:
        return self.pods * self.edges * self.hosts


# --- one group, in closed form ------------------------------------------------------------


def burst(tenant: Tenant, joins: int, *, batched: bool) -> Updates:
    """Updates a join, where `joins` hosts drawn uniformly join an empty group. Exact.

    batched  every switch that is concerned changes once, whatever number of hosts joined below it

    raises   InputError for no joins, or more than there are hosts
    source   section 4.3.1, Fig. 7
    """
    if not 1 <= joins <= tenant.size:
        raise InputError(f"joins is {joins}, must be from 1 to {tenant.size}")
    edges = tenant.pods * tenant.edges * (1 - _missed(tenant.size, tenant.hosts, joins))
    pods = tenant.pods * (1 - _missed(tenant.size, tenant.hosts * tenant.edges, joins))
    ra, rc = tenant.aggregation_copies, tenant.core_copies
    if batched:
        return Updates(edge=edges / joins, aggregation=ra * pods / joins, core=rc / joins)
    return Updates(edge=1.0, aggregation=ra * edges / joins, core=rc * pods / joins)


def next_join(tenant: Tenant, members: int) -> Updates:
    """Updates when a host that is no member, drawn uniformly, joins a group of `members`. Exact."""
    if not 0 <= members < tenant.size:
        raise InputError(f"members is {members}, must be from 0 to {tenant.size - 1}")
    return _single(tenant, members)


def next_leave(tenant: Tenant, members: int) -> Updates:
    """Updates when a member drawn uniformly leaves a group of `members`. Exact."""
    if not 1 <= members <= tenant.size:
        raise InputError(f"members is {members}, must be from 1 to {tenant.size}")
    return _single(tenant, members - 1)


def _single(tenant: Tenant, others: int) -> Updates:
    """One host comes or goes; `others` are spread over the rest of the hosts."""
    rest = tenant.size - 1
    return Updates(
        edge=1.0,
        aggregation=tenant.aggregation_copies * _missed(rest, tenant.hosts - 1, others),
        core=tenant.core_copies * _missed(rest, tenant.hosts * tenant.edges - 1, others),
    )


def _missed(size: int, part: int, drawn: int) -> float:
    """Probability that `drawn` of `size` hosts, without repetition, miss a given `part` of them."""
    if drawn > size - part:
        return 0.0
    lgamma = math.lgamma
    left = size - part
    log = lgamma(left + 1) - lgamma(left - drawn + 1) - lgamma(size + 1) + lgamma(size - drawn + 1)
    return math.exp(log)


def simulated_burst(
    tenant: Tenant, joins: int, *, batched: bool, rng: np.random.Generator, times: int = 100
) -> Updates:
    """The same as `burst`, by drawing hosts `times` times and counting switches."""
    totals = np.zeros(3)
    ra, rc = tenant.aggregation_copies, tenant.core_copies
    for _ in range(times):
        edge = rng.choice(tenant.size, size=joins, replace=False) // tenant.hosts
        edges, pods = len(np.unique(edge)), len(np.unique(edge // tenant.edges))
        totals += (edges, ra * pods, rc) if batched else (joins, ra * edges, rc * pods)
    edge, aggregation, core = (totals / (joins * times)).tolist()
    return Updates(edge=edge, aggregation=aggregation, core=core)


# --- all groups, event by event -----------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Churn:
    """What joins and leaves of many groups did.

    joins, leaves     updates an event, where switches change at once
    events            how many joins and how many leaves
    batched           updates an event of either kind, where switches change once a batch
    switch_updates    (switches,) updates of each, batched, in the order of `wiring.switches`
    """

    joins: Updates
    leaves: Updates
    events: tuple[int, int]
    batched: Updates
    switch_updates: Ints

    def table(self) -> pd.DataFrame:
        """The rows of the paper's Table 2: one a layer, columns join and leave."""
        rows = ["events", *LAYERS, "total"]
        columns = {
            name: [float(count), *(getattr(each, layer) for layer in (*LAYERS, "total"))]
            for name, count, each in zip(
                ("join", "leave"), self.events, (self.joins, self.leaves), strict=True
            )
        }
        return pd.DataFrame(columns, index=pd.Index(rows, name="updates"))


def churn(
    problem: Multicast,
    *,
    events: int,
    rng: np.random.Generator,
    copies: int | None = None,
    batch: int = 1,
) -> Churn:
    """Joins and leaves in all groups of a problem, each as likely; counts the updates they take.

    The group of an event is drawn in proportion to the members it has in the problem. In a join, a host
    of the group's tenant that is no member comes, in a leave a member goes, each drawn uniformly. Where
    none can, as where all hosts of the tenant are members, the event becomes its opposite.

    copies   ra; default: that of the fabric
    batch    consecutive events, of all groups, that switches are told of together: what comes and goes
             within a batch changes nothing, and a switch changes each group's entry once at most
    raises   InputError for a problem that does not say which hosts the tenant of each group has
    source   section 4.3.2, Table 2; that groups give out partitions in turn is ours and changes no average
    """
    if batch < 1:
        raise InputError(f"batch is {batch}, must be at least 1")
    held = problem.distribution(problem.aggregation_copies if copies is None else copies)
    group, time, joined, host, edge_flips, pod_flips = _happened(problem, events, rng, least=0)
    partition = group % held.partitions
    edge = problem.edge_of_host[host]
    pod = problem.wiring.edge_pod[edge]
    holders = np.zeros((problem.pods, held.partitions), dtype=np.int64)
    np.add.at(holders, problem.wiring.aggregation_pod, held.aggregation)
    each = np.column_stack(
        [
            np.ones(events),
            edge_flips * holders[pod, partition],
            pod_flips * held.core.sum(axis=0)[partition],
        ]
    )
    means = [
        each[mine].mean(axis=0).tolist() if mine.any() else [0.0, 0.0, 0.0] for mine in (joined, ~joined)
    ]
    joins, leaves = (Updates(edge=e, aggregation=a, core=c) for e, a, c in means)
    # of what came and went in a batch, an even number of times is no change
    when = group * (events // batch + 1) + time // batch
    rows = (
        _odd(when, host, np.ones(events, dtype=bool), edge),
        _odd(when, edge, edge_flips, pod),
        _odd(when, pod, pod_flips, np.zeros(events, dtype=np.int64)),
    )
    switches = _switch_updates(problem, held, (partition, edge, pod), rows)
    layers = [float(switches[problem.wiring.layers == layer].sum()) / events for layer in LAYERS]
    return Churn(
        joins=joins,
        leaves=leaves,
        events=(int(joined.sum()), int((~joined).sum())),
        batched=Updates(edge=layers[0], aggregation=layers[1], core=layers[2]),
        switch_updates=switches,
    )


def section(problem: Multicast, *, events: int, batch: int, seed: int) -> tuple[Section, str]:
    """What joins and leaves do to the tables, as a part of an explanation: one row a layer."""
    made = churn(problem, events=events, rng=np.random.default_rng(seed), batch=batch)
    rows = []
    for layer in LAYERS:
        mine = problem.wiring.layers == layer
        updates = made.switch_updates[mine]
        busiest = int(updates.argmax())
        rows.append(
            {
                "layer": layer,
                "join": getattr(made.joins, layer),
                "leave": getattr(made.leaves, layer),
                "batched": getattr(made.batched, layer),
                "mean": float(updates.mean()),
                "most": int(updates[busiest]),
                "busiest": problem.wiring.switches[mine][busiest],
            }
        )
    sentence = (
        f"A join changes {made.joins.total:.2f} switches and a leave {made.leaves.total:.2f} on average"
        + (f", or {made.batched.total:.2f} in batches of {batch:,} events." if batch > 1 else ".")
    )
    units = dict.fromkeys(("join", "leave", "batched"), "updates an event")
    return (
        Section(
            title=f"updates of {events:,} joins and leaves",
            frame=pd.DataFrame(rows),
            units=units | dict.fromkeys(("mean", "most"), "updates of a switch"),
            note="join, leave: where switches change at once; batched, mean, most: once a batch",
        ),
        sentence,
    )


def _odd(when: Ints, what: Ints, mine: NDArray[np.bool_], at: Ints) -> Ints:
    """Rows, one for each place `at` and batch, where something of `what` changed an odd number of times.

    when  a number for each group and batch
    """
    rows = np.flatnonzero(mine)
    key = when[rows] * (int(what.max()) + 1) + what[rows]
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    rows = rows[first[times % 2 == 1]]
    place = when[rows] * (int(at.max()) + 1) + at[rows]
    return np.asarray(rows[np.unique(place, return_index=True)[1]], dtype=np.int64)


def _switch_updates(
    problem: Multicast, held: Distribution, where: tuple[Ints, Ints, Ints], rows: tuple[Ints, Ints, Ints]
) -> Ints:
    """(switches,) how often each changes.

    where  partition, edge switch and pod of each event
    rows   events that change the edge switch, the pod's aggregation switches, the cores: those that hold
           the partition
    """
    (partition, edge, pod), (at_edge, in_pod, at_core), wires = where, rows, problem.wiring
    in_pods = np.zeros((wires.pods, held.partitions), dtype=np.int64)
    np.add.at(in_pods, (pod[in_pod], partition[in_pod]), 1)
    changed = [
        held.core @ np.bincount(partition[at_core], minlength=held.partitions),
        (held.aggregation * in_pods[wires.aggregation_pod]).sum(axis=1),
        np.bincount(edge[at_edge], minlength=problem.edge_count),
    ]
    return np.concatenate(changed).astype(np.int64)


def after(problem: Multicast, *, events: int, rng: np.random.Generator) -> Multicast:
    """The problem after as many joins and leaves, as in `churn`, but that a last member never leaves."""
    group, _, _, host, _, _ = _happened(problem, events, rng, least=1)
    hosts = len(problem.hosts)
    change, times = np.unique(group * hosts + host, return_counts=True)
    now = np.setxor1d(problem.group_of.astype(np.int64) * hosts + problem.host_of, change[times % 2 == 1])
    return problem.with_members(*np.divmod(now, hosts))


def _happened(
    problem: Multicast, events: int, rng: np.random.Generator, *, least: int
) -> tuple[Ints, Ints, NDArray[np.bool_], Ints, NDArray[np.bool_], NDArray[np.bool_]]:
    """Group, time, whether it is a join, host, and flips (see `_run`) of each event, group by group.

    least  members that a group keeps
    """
    whose = tenant_hosts(problem)
    if events < 1:
        raise InputError(f"events is {events}, must be at least 1")
    count = problem.member_counts
    group = rng.choice(len(count), size=events, p=count / count.sum())
    time = np.argsort(group, kind="stable")  # groups do not meddle with each other: one after the other
    group = group[time]
    joined, host, edge_flips, pod_flips, strange = _run(
        group,
        rng.random(events) < 0.5,
        rng.random(events),
        *whose,
        np.concatenate([[0], np.cumsum(count)]),
        problem.host_of[np.argsort(problem.group_of, kind="stable")],
        problem.edge_of_host,
        problem.wiring.edge_pod,
        least,
    )
    if strange >= 0:
        name = problem.groups["group"].iloc[strange]
        raise InputError(f"members: group '{name}' has a member that is no host of its tenant")
    return group, time, joined, host, edge_flips, pod_flips


def tenant_hosts(problem: Multicast) -> tuple[Ints, Ints, Ints]:
    """Hosts of all tenants, where each tenant's begin (tenants + 1,), and the tenant of each group.

    raises  InputError for a problem that does not say which hosts the tenant of each group has
    """
    if problem.tenants is None or "tenant" not in problem.groups:
        raise InputError("tenants: dynamics need this table, and the column 'tenant' of groups")
    names, hosts = problem.tenants["tenant"].cat, problem.tenants["host"].cat
    host = pd.Index(problem.hosts["host"]).get_indexer(pd.Index(hosts.categories))[hosts.codes.to_numpy()]
    codes = names.codes.to_numpy()
    order = np.argsort(codes, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names.categories)))])
    tenant = pd.Index(names.categories).get_indexer(pd.Index(problem.groups["tenant"]))
    return host[order].astype(np.int64), first.astype(np.int64), tenant.astype(np.int64)


@njit(cache=True)
def _run(
    group: Ints,
    join: NDArray[np.bool_],
    draw: NDArray[np.float64],
    hosts: Ints,
    first_host: Ints,
    tenant: Ints,
    start: Ints,
    members: NDArray[np.int32],
    edge: Ints,
    pod: Ints,
    least: int,
) -> tuple[NDArray[np.bool_], Ints, NDArray[np.bool_], NDArray[np.bool_], int]:
    """Whether each event was a join, its host, and whether it was the first or last of its group at the
    edge switch, and in the pod; and a group with a member that its tenant does not have, or -1.

    Events come group by group.
    """
    events = len(group)
    joined = np.empty(events, dtype=np.bool_)
    at = np.empty(events, dtype=np.int64)
    at_edge_only = np.zeros(events, dtype=np.bool_)
    in_pod_only = np.zeros(events, dtype=np.bool_)
    mark = np.full(len(edge), -1, dtype=np.int64)
    pool = np.empty(len(edge), dtype=np.int64)
    at_edge = np.zeros(len(pod), dtype=np.int64)
    in_pod = np.zeros(pod.max() + 1, dtype=np.int64)
    count = size = 0
    for i in range(events):
        g = group[i]
        if i == 0 or g != group[i - 1]:  # a new group: its members first, then the tenant's other hosts
            at_edge[:] = 0
            in_pod[:] = 0
            count = start[g + 1] - start[g]
            for j in range(count):
                pool[j] = members[start[g] + j]
                mark[pool[j]] = g
                at_edge[edge[pool[j]]] += 1
                in_pod[pod[edge[pool[j]]]] += 1
            size = count
            for j in range(first_host[tenant[g]], first_host[tenant[g] + 1]):
                if mark[hosts[j]] != g:
                    pool[size] = hosts[j]
                    size += 1
            if size != first_host[tenant[g] + 1] - first_host[tenant[g]]:
                return joined, at, at_edge_only, in_pod_only, g
        comes = count < size and (join[i] or count <= least)
        joined[i] = comes
        if comes:
            j = count + int(draw[i] * (size - count))
            pool[j], pool[count] = pool[count], pool[j]
            switch = edge[pool[count]]
            at_edge_only[i] = at_edge[switch] == 0
            in_pod_only[i] = in_pod[pod[switch]] == 0
            at_edge[switch] += 1
            in_pod[pod[switch]] += 1
            count += 1
        else:
            j = int(draw[i] * count)
            count -= 1
            pool[j], pool[count] = pool[count], pool[j]
            switch = edge[pool[count]]
            at_edge[switch] -= 1
            in_pod[pod[switch]] -= 1
            at_edge_only[i] = at_edge[switch] == 0
            in_pod_only[i] = in_pod[pod[switch]] == 0
        at[i] = pool[count - 1] if comes else pool[count]
    return joined, at, at_edge_only, in_pod_only, -1


def update_load(updates: Updates, *, k: int, events_per_pod: float) -> Updates:
    """Updates a second of a switch of each layer of a fat tree, where each pod has so many events a second.

    source  section 4.3.2: 42, 78 and 133 at 1,000 events a pod and the averages of Table 2b
    """
    half = k // 2
    return Updates(
        edge=events_per_pod * updates.edge / half,
        aggregation=events_per_pod * updates.aggregation / half,
        core=k * events_per_pod * updates.core / half**2,
    )
