"""Table updates for joins and leaves of one group, in closed form: section 4.3.1.

Source: "Scaling IP Multicast on Datacenter Topologies", section 4.3.
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
