"""Counters of section 3.3: 7 from adds of 1, 2 and 4; after an add of 1, 8 with one dependency."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner_models.geostore.protocol.cluster import Operations
from planner_models.geostore.protocol.history import History, run
from planner_models.geostore.protocol.state import ADD, BATCH, READ
from planner_models.geostore.protocol.workloads import full_cluster

AMOUNTS: Final = (1, 2, 4)
READS: Final = 200
"""Reads of the counter, until the adds of all datacenters have arrived."""


def add_to_counter() -> tuple[History, int, int]:
    """Return a run of the example, and the operations that depend on the reads of 7 and of 8.

    An add in each datacenter; then a client reads 7, adds 1, reads 8, and writes another key.
    """
    cluster = replace(full_cluster(keys=2, counters=1), wide_jitter_ms=0.0)
    first, last = len(AMOUNTS) + READS, len(AMOUNTS) + READS + 2
    kind = np.array([*([ADD] * len(AMOUNTS)), *([READ] * READS), ADD, READ, BATCH])
    amount = np.ones(len(kind), dtype=np.int64)
    amount[: len(AMOUNTS)] = AMOUNTS
    operations = Operations(
        datacenter=np.array([0, 1, 2, 0]),
        client=np.array([0, 1, 2, *([3] * (READS + 3))]),
        kind=kind,
        first=np.arange(len(kind) + 1),
        key=np.where(kind == BATCH, 0, 1),
        amount=amount,
        coordinator=np.arange(len(kind)),
    )
    return run(cluster, operations), first, last
