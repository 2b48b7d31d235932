"""Table updates for joins and leaves of one group, in closed form: section 4.3.1.

Source: "Scaling IP Multicast on Datacenter Topologies", section 4.3.

Equations (1) to (5): the number of groups that the layers of a fat tree hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Updates:
    """Switch updates by layer, on average for an event."""

    edge: float
    aggregation: float
    core: float

    @property
    def total(self) -> float:
        """Updates of all layers."""
        return self.edge + self.aggregation + self.core


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """Hosts spread evenly: `pods` pods with `edges` edge switches of `hosts` hosts each.

    aggregation_copies  ra: aggregation switches of a pod that hold the group
    core_copies         rc: cores that hold it
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
        """Hosts of the tenant."""
        return self.pods * self.edges * self.hosts


def burst_updates(tenant: Tenant, joins: int, *, batched: bool) -> Updates:
    """Return the updates a join, where `joins` hosts drawn uniformly join an empty group. Exact.

    batched  every switch changes once, whatever number of hosts joined below it

    raises   InputError for no joins, or more than there are hosts
    source   section 4.3.1, Fig. 7
    """
    if not 1 <= joins <= tenant.size:
        raise InputError(f"joins is {joins}, must be from 1 to {tenant.size}")
    edges = tenant.pods * tenant.edges * (1 - _miss_probability(tenant.size, tenant.hosts, joins))
    pods = tenant.pods * (1 - _miss_probability(tenant.size, tenant.hosts * tenant.edges, joins))
    ra, rc = tenant.aggregation_copies, tenant.core_copies
    if batched:
        return Updates(edge=edges / joins, aggregation=ra * pods / joins, core=rc / joins)
    return Updates(edge=1.0, aggregation=ra * edges / joins, core=rc * pods / joins)


def join_updates(tenant: Tenant, members: int) -> Updates:
    """Return the updates when another host, drawn uniformly, joins a group of `members`. Exact."""
    if not 0 <= members < tenant.size:
        raise InputError(f"members is {members}, must be from 0 to {tenant.size - 1}")
    return _single_updates(tenant, members)


def leave_updates(tenant: Tenant, members: int) -> Updates:
    """Return the updates when a member drawn uniformly leaves a group of `members`. Exact."""
    if not 1 <= members <= tenant.size:
        raise InputError(f"members is {members}, must be from 1 to {tenant.size}")
    return _single_updates(tenant, members - 1)


def _single_updates(tenant: Tenant, others: int) -> Updates:
    """Return the updates as one host comes or goes; `others` are spread over the other hosts."""
    others_in_group = tenant.size - 1
    return Updates(
        edge=1.0,
        aggregation=tenant.aggregation_copies * _miss_probability(others_in_group, tenant.hosts - 1, others),
        core=tenant.core_copies * _miss_probability(others_in_group, tenant.hosts * tenant.edges - 1, others),
    )


def _miss_probability(size: int, subset: int, drawn: int) -> float:
    """Return the probability that `drawn` of `size` hosts, without repetition, miss a `subset` of them."""
    if drawn > size - subset:
        return 0.0
    lgamma = math.lgamma
    others = size - subset
    log = lgamma(others + 1) - lgamma(others - drawn + 1) - lgamma(size + 1) + lgamma(size - drawn + 1)
    return math.exp(log)


def updates_per_second(updates: Updates, *, k: int, events_per_pod: float) -> Updates:
    """Return the updates a second of a switch of each layer of a fat tree.

    source  section 4.3.2: 42, 78 and 133 at 1,000 events a pod and the averages of Table 2b
    """
    half = k // 2
    return Updates(
        edge=events_per_pod * updates.edge / half,
        aggregation=events_per_pod * updates.aggregation / half,
        core=k * events_per_pod * updates.core / half**2,
    )


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Division of an address space: `partitions` n, copies of each at cores (rc) and in a pod (ra)."""

    partitions: int
    core_copies: int
    aggregation_copies: int


def core_capacity(*, k: int, table_size: float, core_copies: int) -> float:
    """Return the groups that the core layer holds, with tables of `table_size` entries. Equation (1)."""
    return table_size * k**2 / (4 * core_copies)


def aggregation_capacity(*, k: int, table_size: float, aggregation_copies: int) -> float:
    """Return the groups that the aggregation layer of a pod holds. Equation (2)."""
    return table_size * k / (2 * aggregation_copies)


def edge_capacity(*, k: int, table_size: float, edges_per_pod: float) -> float:
    """Return the groups that the edge layer of a pod holds, each at `edges_per_pod`. Equation (3)."""
    return table_size * k / (2 * edges_per_pod)


def pod_capacity(
    *, k: int, table_size: float, aggregation_copies: int, edges_per_pod: float, aggregated: bool = False
) -> float:
    """Return the groups that a pod holds. Equation (4).

    aggregated  its bottleneck layer shares entries, so that the other layer limits it
    """
    pick = min if aggregated else max
    return table_size * k / (2 * pick(float(aggregation_copies), edges_per_pod))


def system_capacity(
    *, core_groups: float, share_across_pods: float, pod_groups: float, pods: int, pods_per_group: float
) -> float:
    """Return the groups that all layers hold, with equal pods. Equation (5).

    share_across_pods  share of groups with members in several pods, more than 0
    """
    return min(core_groups / share_across_pods, pods * pod_groups / pods_per_group)


def find_layout_faults(k: int, partitions: int, core_copies: int, aggregation_copies: int) -> list[str]:
    """Return the requirements of Algorithm 1 that these numbers violate, one line each."""
    faults = []
    if k < 2 or k % 2 or k > 64:
        return [f"k is {k}, must be even and from 2 to 64"]
    if partitions * core_copies != k**2 // 4:
        faults.append(
            f"partitions x core_copies is {partitions} x {core_copies} = {partitions * core_copies}, "
            f"must be k^2/4 = {k**2 // 4}"
        )
    if aggregation_copies**2 != core_copies:
        faults.append(f"aggregation_copies^2 is {aggregation_copies**2}, must be core_copies = {core_copies}")
    if aggregation_copies < 1 or k % (2 * aggregation_copies):
        faults.append(f"2 x aggregation_copies is {2 * aggregation_copies}, must divide k = {k}")
    return faults


def list_layouts(k: int) -> list[Layout]:
    """Return every layout of the address space that Algorithm 1 admits, fewest copies first."""
    if k < 2 or k % 2:
        raise InputError(f"k is {k}, must be even")
    half = k // 2
    return [
        Layout(partitions=(half // ra) ** 2, core_copies=ra**2, aggregation_copies=ra)
        for ra in range(1, half + 1)
        if half % ra == 0
    ]
