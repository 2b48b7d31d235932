"""Equations (1) to (5): the number of groups that the layers of a fat tree hold."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import InputError


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
