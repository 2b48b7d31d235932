"""Synthetic problems of system `multicast`: tenants on a fat tree, after the paper's section 4.1."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner_models.multicast.equations import layout_faults
from planner_models.multicast.problem import Multicast, every_host

Placement = Annotated[
    Literal["near", "random"], Field(description="a tenant's hosts: side by side, or drawn from all")
]
Sizes = Annotated[
    Literal["wve", "uniform"], Field(description="group sizes: mostly small, or uniform up to the tenant")
]


def datacenter(
    *,
    k: Annotated[int, Field(ge=4, le=64, description="ports of each switch, even")] = 8,
    aggregation_copies: Annotated[int, Field(ge=1, description="ra; rc is its square")] = 2,
    table_size: Annotated[int, Field(ge=1, description="free entries of every switch")] = 100,
    tenants: Annotated[int, Field(ge=1, description="tenants")] = 20,
    groups: Annotated[int, Field(ge=1, description="groups of all tenants")] = 600,
    largest_tenant: Annotated[int, Field(ge=10, description="most hosts of a tenant")] = 60,
    placement: Placement = "near",
    sizes: Sizes = "wve",
    seed: Annotated[int, Field(ge=0, description="where placement and members are drawn")] = 0,
) -> Multicast:
    """Tenants of stratified sizes with groups in proportion, on an AB fat tree.

    Tenant sizes are quantiles, so that only who is a member depends on the seed: 96.6% are 10 plus an
    exponential of mean 120, the rest log-uniform from 300 to the largest. At the paper's k = 48,
    aggregation_copies = 3, 3,000 tenants of up to 5,000 hosts and 100,000 groups, sizes average 50
    (wve) and 510 (uniform). Rates are uniform from 1 to 10.

    source  section 4.1
    """
    half = k // 2
    parts = (half // aggregation_copies) ** 2
    faults = layout_faults(k, parts, aggregation_copies**2, aggregation_copies)
    if faults:
        raise InputError(*faults)
    rng = np.random.default_rng(seed)
    hosts = k * half * half
    size = np.minimum(tenant_sizes(tenants, largest_tenant), hosts)
    owner = np.sort(rng.choice(tenants, size=groups, p=size / size.sum()))
    rng.shuffle(owner)
    count = group_sizes(rng, size[owner], sizes)
    at = _placed(rng, size, hosts, placement)
    drawn = [at[t][rng.choice(len(at[t]), size=n, replace=False)] for t, n in zip(owner, count, strict=True)]
    names = [f"g{i}" for i in range(groups)]
    table = every_host(k)
    return Multicast(
        fabric=pd.DataFrame(
            {
                "kind": ["ab"],
                "k": [k],
                "partitions": [parts],
                "core_copies": [aggregation_copies**2],
                "aggregation_copies": [aggregation_copies],
                "core_entries": [table_size],
                "aggregation_entries": [table_size],
                "edge_entries": [table_size],
            }
        ),
        hosts=table,
        groups=pd.DataFrame({"group": names, "rate_mbps": rng.uniform(1, 10, size=groups)}),
        members=pd.DataFrame(
            {
                "group": np.repeat(np.array(names, dtype=object), count),
                "host": table["host"].to_numpy(dtype=object)[np.concatenate(drawn)],
            }
        ),
    )


def tenant_sizes(tenants: int, largest: int) -> NDArray[np.int64]:
    """(tenants,) hosts of each tenant: the quantiles of the distribution, smallest first."""
    quantile = (np.arange(tenants) + 0.5) / tenants
    body = 10 - 120 * np.log1p(-np.minimum(quantile / 0.966, 1 - 1e-12))
    low = min(300.0, float(largest))
    tail = low * (largest / low) ** np.clip((quantile - 0.966) / 0.034, 0, 1)
    return np.minimum(np.where(quantile < 0.966, body, tail), largest).astype(np.int64)


def group_sizes(rng: np.random.Generator, size: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """(groups,) members of each group, of tenants of `size` hosts each; 5 at least."""
    if kind == "uniform":
        return rng.integers(5, size + 1)
    small = rng.random(len(size)) < 0.9785
    share = np.where(small, rng.exponential(0.0298, len(size)), rng.uniform(0.8, 1.0, len(size)))
    return np.clip(np.rint(share * size), 5, size).astype(np.int64)


def _placed(
    rng: np.random.Generator, size: NDArray[np.int64], hosts: int, placement: str
) -> list[NDArray[np.int64]]:
    """The hosts of each tenant, tenants in random order where they lie side by side."""
    if placement == "random":
        return [rng.choice(hosts, size=n, replace=False) for n in size]
    order = rng.permutation(len(size))
    start = np.empty(len(size), dtype=np.int64)
    start[order] = np.concatenate([[0], np.cumsum(size[order])[:-1]])
    return [(first + np.arange(n)) % hosts for first, n in zip(start, size, strict=True)]
