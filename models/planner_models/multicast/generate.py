"""Synthetic problems of system `multicast`: tenants on a fat tree, after the paper's section 4.1."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner_models.multicast import workloads
from planner_models.multicast.equations import layout_faults
from planner_models.multicast.problem import Multicast, every_host

Kind = Annotated[
    Literal["ab", "standard", "portland"], Field(description="how pods of the fat tree connect to cores")
]
Placement = Annotated[
    Literal["near", "random"], Field(description="a tenant's hosts: side by side, or drawn at random")
]
Sizes = Annotated[
    Literal["wve", "uniform"], Field(description="group sizes: mostly small, or uniform up to the tenant")
]


def datacenter(
    *,
    kind: Kind = "ab",
    k: Annotated[int, Field(ge=4, le=64, description="ports of each switch, even")] = 8,
    aggregation_copies: Annotated[int, Field(ge=1, description="ra; rc is its square")] = 2,
    table_size: Annotated[int, Field(ge=1, description="free entries of every switch")] = 100,
    tenants: Annotated[int, Field(ge=1, description="tenants")] = 20,
    groups: Annotated[int, Field(ge=1, description="groups of all tenants")] = 600,
    largest_tenant: Annotated[int, Field(ge=10, description="most hosts of a tenant")] = 60,
    placement: Placement = "near",
    sizes: Sizes = "wve",
    arrangement: Annotated[int, Field(ge=0, description="where the order of tenants is drawn")] = 0,
    seed: Annotated[int, Field(ge=0, description="where members, rates and arrivals are drawn")] = 0,
) -> Multicast:
    """Tenants of stratified sizes with groups in proportion, on a fat tree.

    What capacities hang on is stratified, so that they differ little from seed to seed: see
    `workloads`. At the paper's k = 48, aggregation_copies = 3, 3,000 tenants of up to 5,000 hosts and
    100,000 groups, sizes average 49 (wve) and 499 (uniform). Rates are whole numbers from 1 to 10.

    source  section 4.1
    """
    half = k // 2
    parts = (half // aggregation_copies) ** 2
    faults = layout_faults(k, parts, aggregation_copies**2, aggregation_copies)
    if faults:
        raise InputError(*faults)
    drawn = workloads.drawn(
        hosts=k * half * half,
        tenants=tenants,
        largest_tenant=largest_tenant,
        groups=groups,
        placement=placement,
        sizes=sizes,
        arrangement=arrangement,
        seed=seed,
    )
    start, host = drawn.members()
    fabric = {
        "kind": kind,
        "k": k,
        "partitions": parts,
        "core_copies": aggregation_copies**2,
        "aggregation_copies": aggregation_copies,
        "core_entries": table_size,
        "aggregation_entries": table_size,
        "edge_entries": table_size,
    }
    names = pd.Index([f"g{i}" for i in range(groups)])
    whose = pd.Index([f"t{i}" for i in range(tenants)])
    places = every_host(k)
    tenant = np.repeat(np.arange(tenants, dtype=np.int32), np.diff(drawn.first_host))
    return Multicast.drawn(
        fabric=pd.DataFrame([fabric]),
        hosts=places,
        groups=pd.DataFrame(
            {"group": names, "rate_mbps": drawn.rate_mbps, "tenant": whose.to_numpy()[drawn.tenant]}
        ),
        start=start,
        host=host,
        tenants=pd.DataFrame(
            {
                "tenant": pd.Categorical.from_codes(tenant, whose),
                "host": pd.Categorical.from_codes(drawn.hosts, pd.Index(places["host"])),
            }
        ),
    )
