"""Synthetic problems of system `multicast`: tenants on a fat tree, after the paper's section 4.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.multicast.problem import workloads
from planner_models.multicast.problem.equations import find_layout_faults
from planner_models.multicast.problem.problem import Multicast, list_hosts
from planner_models.multicast.problem.workloads import Tenancy

Kind = Annotated[
    Literal["ab", "standard", "portland"], Field(description="how pods of the fat tree connect to cores")
]


def sample() -> Multicast:
    """Return one tenant at one edge switch with many port sets, which all kernels of sharing work on."""
    return datacenter(
        k=24,
        aggregation_copies=12,
        tenants=1,
        groups=1100,
        largest_tenant=12,
        sizes="uniform",
        table_size=20,
    )


@dataclass(frozen=True, kw_only=True)
class FatTree:
    """Switches of a fat tree, and the space of their tables."""

    k: Annotated[int, Field(ge=4, le=64, description="ports of each switch, even")] = 8
    aggregation_copies: Annotated[int, Field(ge=1, le=100, description="ra; rc is its square")] = 2
    table_size: Annotated[int, Field(ge=0, le=1_000_000_000, description="free entries of every switch")] = (
        100
    )


@spread(fabric_size=FatTree(), tenancy=Tenancy())
def datacenter(
    *,
    kind: Kind = "ab",
    fabric_size: FatTree,
    tenancy: Tenancy,
    arrangement: Annotated[int, Field(ge=0, description="seed of the order of tenants")] = 0,
    seed: Annotated[int, Field(ge=0, description="seed of members, rates and arrivals")] = 0,
) -> Multicast:
    """Return tenants of stratified sizes, with groups in proportion, on a fat tree.

    Stratification keeps capacities similar from seed to seed: see `workloads`. At the paper's k = 48,
    aggregation_copies = 3, 3,000 tenants of up to 5,000 hosts and 100,000 groups, sizes average 49 (wve) and
    499 (uniform). Floats are whole numbers from 1 to 10.

    source  section 4.1
    """
    k, copies = fabric_size.k, fabric_size.aggregation_copies
    half = k // 2
    parts = (half // copies) ** 2
    if faults := find_layout_faults(k, parts, copies**2, copies):
        raise InputError(*faults)
    workload = workloads.generate_workload(
        hosts=k * half * half, tenancy=tenancy, arrangement=arrangement, seed=seed
    )
    start, host = workload.members()
    entries = {f"{layer}_entries": fabric_size.table_size for layer in ("core", "aggregation", "edge")}
    fabric = {
        "kind": kind,
        "k": k,
        "partitions": parts,
        "core_copies": copies**2,
        "aggregation_copies": copies,
        **entries,
    }
    names = pd.Index([f"g{i}" for i in range(tenancy.groups)])
    tenant_names = pd.Index([f"t{i}" for i in range(tenancy.tenants)])
    host_table = list_hosts(k)
    tenant = np.repeat(np.arange(tenancy.tenants, dtype=np.int32), np.diff(workload.first_host))
    return Multicast.from_arrays(
        fabric=pd.DataFrame([fabric]),
        hosts=host_table,
        groups=pd.DataFrame(
            {
                "group": names,
                "rate_mbps": workload.rate_mbps,
                "tenant": tenant_names.to_numpy()[workload.tenant],
            }
        ),
        start=start,
        host=host,
        tenants=pd.DataFrame(
            {
                "tenant": pd.Categorical.from_codes(tenant, tenant_names),
                "host": pd.Categorical.from_codes(workload.hosts, pd.Index(host_table["host"])),
            }
        ),
    )
