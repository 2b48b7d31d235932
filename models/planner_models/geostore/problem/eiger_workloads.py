"""Presets: the workloads of Eiger's generator (Lloyd et al. 2013, Table 3), and its runs of many servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models.geostore.problem.generators import Seed, Workload, world
from planner_models.geostore.problem.problem import Geostore

TAO_LEVELS: Final = (0.0, 0.5, 0.9, 0.99, 1.0)
TAO_VALUE_BYTES: Final = (1.0, 16.0, 32.0, 4096.0, 4096.0)
TAO_COLUMNS: Final = (1.0, 1.0, 2.0, 128.0, 128.0)
TAO_KEYS: Final = (1.0, 1.0, 16.0, 128.0, 128.0)
"""Quantiles at `TAO_LEVELS` of bytes of a value, columns of a key, and keys of a read.

Table 3 has those at 50, 90 and 99%; the least is 1, and none is larger than that at 99%, which is ours."""
TAO_WRITE_SHARE: Final = 0.002
TAO_KOPS: Final = 22.088 / 8
TAO_KEYS_PER_OP: Final = 88_238 / 22_088
TAO_COLUMNS_PER_KEY: Final = 466_844 / 88_238
"""Thousand operations a second of one of eight servers, keys of an operation, columns of a key (Table 4)."""
TAO_MEAN_BYTES: Final = 128.0
"""Mean bytes of a value of the distribution above."""
TAO_GROWTH: Final = 1.72
"""Factor of throughput for each doubling from 1 to 8 servers (7.9)."""
Regions = Annotated[int, Field(ge=2, le=200, description="number of regions, in large cities")]


@spread(workload=Workload(object_bytes=128.0))
def eiger_default(
    *,
    regions: Regions = 12,
    columns_per_key: Annotated[int, Field(ge=1, le=32, description="columns of a key")] = 5,
    keys_per_op: Annotated[int, Field(ge=1, le=32, description="keys of an operation")] = 5,
    write_transactions: Annotated[
        float, Field(ge=0, le=1, description="share of writes that are transactions")
    ] = 0.5,
    workload: Workload,
    seed: Seed = 0,
) -> Geostore:
    """Build regions as preset `world`, used with the default operations of Eiger's workload generator.

    Table 3 of Lloyd et al. 2013: values of 128 bytes, 5 columns of each of 5 keys, 10% writes, of which half
    are transactions.
    """
    problem = world(regions=regions, seed=seed, **vars(workload))
    access = problem.access.assign(
        keys_per_op=float(keys_per_op),
        columns_per_key=float(columns_per_key),
        write_transactions=write_transactions,
    )
    return replace(problem, access=access)


@spread(workload=Workload(write_share=TAO_WRITE_SHARE))
def tao(
    *,
    regions: Regions = 12,
    write_transactions: Annotated[
        float, Field(ge=0, le=1, description="share of writes that are transactions: TAO has none")
    ] = 0.0,
    workload: Workload,
    seed: Seed = 0,
) -> Geostore:
    """Build regions as preset `world`, used with the operations of Facebook's TAO.

    A group is data of one type: its bytes of a value, columns of a key and keys of an operation are drawn
    once, from the distributions whose 50, 90 and 99% Lloyd et al. 2013 print in Table 3, with logarithms that
    are linear between them. An operation has as many keys where it writes as where it reads, though TAO's
    writes have one: with 0.2% of writes the bytes of copies are overstated. `object_bytes` is not used.
    """
    problem = world(regions=regions, seed=seed, **vars(workload))
    random = np.random.default_rng((seed, 1))
    count = len(problem.groups)
    size, columns, keys = (
        draw_quantiles(quantiles, random.random(count))
        for quantiles in (TAO_VALUE_BYTES, TAO_COLUMNS, TAO_KEYS)
    )
    user = problem.user_group
    access = problem.access.assign(
        keys_per_op=keys[user], columns_per_key=columns[user], write_transactions=write_transactions
    )
    return replace(problem, groups=problem.groups.assign(object_bytes=size), access=access)


def draw_quantiles(quantiles: tuple[float, ...], share: Floats) -> Floats:
    """Return whole values at shares of a distribution, whose logarithms are linear between its quantiles.

    quantiles  values at `TAO_LEVELS`
    """
    return np.asarray(np.round(np.exp(np.interp(share, TAO_LEVELS, np.log(quantiles)))))


def operation_cost(servers: int) -> float:
    """Return the work of an operation of TAO on a cluster, in that of one key.

    Each server that has some of its keys, which are hashed, costs a constant, and each key 1; the
    constant makes throughput grow by 72% for each doubling from 1 to 8 servers.
    """

    def touched(count: int) -> float:
        return count * (1 - float((1 - 1 / count) ** TAO_KEYS_PER_OP))

    work = 8 / TAO_GROWTH**3  # of an operation on 8 servers over that on one
    constant = TAO_KEYS_PER_OP * (work - 1) / (touched(8) - work)
    return constant * touched(servers) + TAO_KEYS_PER_OP


def tao_scaling(
    *,
    servers: Annotated[int, Field(ge=1, le=1024, description="servers of each of the two clusters")] = 8,
) -> Geostore:
    """Build two clusters of equally many servers, the first one under the full load of TAO (Fig. 9).

    The second one replicates its writes. Operations have the mean keys and columns of Table 4 of Lloyd et al.
    2013, and a server of a cluster of eight its 2,761 operations a second. An operation costs a constant for
    each server that has some of its keys, and one for each key; the constant makes throughput grow by 72% for
    each doubling from 1 to 8 servers (7.9). Throughput then grows by 95% for each doubling from 8 to 128,
    where the paper prints 96%. The two kinds of work are a hypothesis, and prices are made up.
    """
    kops = TAO_KOPS * operation_cost(8) / operation_cost(servers)
    operations = 1000.0 * kops * servers
    names = ["cluster", "remote cluster"]
    return Geostore(
        regions=pd.DataFrame(
            {
                "region": names,
                "storage_usd_gb_month": 0.02,
                "server_usd_month": 150.0,
                "server_kops": kops,
                "least_servers": float(servers),
                "most_servers": float(servers),
            }
        ),
        links=pd.DataFrame({"source": names, "target": names[::-1], "rtt_ms": 1.0, "usd_per_gb": 0.02}),
        groups=pd.DataFrame(
            {
                "group": ["social graph"],
                "size_gb": [100.0],
                "object_bytes": [TAO_MEAN_BYTES],
                "class": ["causal"],
                "failures": [1.0],
            }
        ),
        access=pd.DataFrame(
            {
                "group": ["social graph"],
                "region": names[:1],
                "reads_per_s": [(1 - TAO_WRITE_SHARE) * operations],
                "writes_per_s": [TAO_WRITE_SHARE * operations],
                "keys_per_op": [TAO_KEYS_PER_OP],
                "columns_per_key": [TAO_COLUMNS_PER_KEY],
            }
        ),
        protocol=pd.DataFrame({"overhead": [0.0]}),  # measured throughput is that with causal consistency
    )
