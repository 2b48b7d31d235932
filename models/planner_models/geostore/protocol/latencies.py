"""Latencies of Table 2: reads and writes of one client, calibrated on three printed values.

A request of a client takes an exponential time besides fixed delays; messages between servers and replies
take the fixed delay alone. The client itself adds a fixed time. Three values of the table fix the three
constants; everything else follows from the messages of the protocol.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner_models.geostore.protocol.cluster import Cluster, Operations
from planner_models.geostore.protocol.history import run
from planner_models.geostore.protocol.state import (
    BATCH,
    COMMIT_CHECKED,
    READ,
    SECOND_ROUND,
    TRANSACTION,
)
from planner_models.geostore.protocol.workloads import VICCI, VICCI_RTT_MS

ONE_ROUND_P50_MS, ONE_ROUND_P90_MS, TWO_ROUNDS_P50_MS = 0.47, 0.67, 0.68
"""Calibrated on: median and 90% of reads of one round, median of reads of two (Table 2)."""
ERLANG_2_MEDIAN: Final = 1.678347
"""Median of the sum of two exponentials with mean 1."""
PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0)
UW: Final = VICCI.index("uw")


class Constants(NamedTuple):
    """Constants of the model of latencies, ms.

    client_ms  a client's own time, once in each operation
    local_ms   one-way delay of a message within a datacenter
    jitter_ms  mean of the exponential time of a request
    """

    client_ms: float
    local_ms: float
    jitter_ms: float


def calibrate(
    one_p50_ms: float = ONE_ROUND_P50_MS,
    one_p90_ms: float = ONE_ROUND_P90_MS,
    two_p50_ms: float = TWO_ROUNDS_P50_MS,
) -> Constants:
    """Return the constants with these quantiles of reads of one and of two rounds.

    With t = client + 2 local: t + jitter ln 2 and t + jitter ln 10 are the quantiles of one round, and
    t + 2 local + jitter median(Erlang 2) is the median of two.
    """
    jitter = (one_p90_ms - one_p50_ms) / math.log(5)
    fixed = one_p50_ms - jitter * math.log(2)
    round_trip = two_p50_ms - fixed - jitter * ERLANG_2_MEDIAN
    return Constants(fixed - round_trip, round_trip / 2, jitter)


def micro_benchmark(constants: Constants, *, operations: int = 5_000, seed: int = 0) -> pd.DataFrame:
    """Return the latencies of Table 2 that the protocol gives: a row an operation, percentiles in ms.

    One client at the University of Washington, two servers a site (section 7.4). Reads of two rounds, and
    those that wait for a commit check, are forced to: one client alone meets no pending transaction.
    """
    cluster, batch = _cluster(constants), _single_client(operations)
    alone, second, checked = (
        run(cluster, batch, think_ms=constants.client_ms, slow_path=path, seed=seed + path)
        for path in (0, SECOND_ROUND, COMMIT_CHECKED)
    )
    kind, size = batch.kind, np.diff(batch.first)
    rows = {
        "eiger1": alone.latency_ms[kind == READ],
        "eiger2": second.latency_ms[kind == READ],
        "indirect": checked.latency_ms[kind == READ],
        "write_eiger": alone.latency_ms[(kind == BATCH) & (size == 1)],
        "write_eiger2": alone.latency_ms[(kind == BATCH) & (size == 2)],
        "write_txn2": alone.latency_ms[kind == TRANSACTION],
    }
    table = {name: constants.client_ms + np.percentile(values, PERCENTILES) for name, values in rows.items()}
    frame = pd.DataFrame(table, index=[f"p{percentile:g}_ms" for percentile in PERCENTILES]).T
    frame.insert(0, "operations", [len(values) for values in rows.values()])
    return frame.rename_axis("operation").reset_index()


def _cluster(constants: Constants) -> Cluster:
    """Return the three sites with two servers each; keys 0 and 1 are on different servers."""
    return Cluster(
        rtt_ms=np.array(VICCI_RTT_MS),
        present=np.ones((3, 2), dtype=bool),
        owner=np.tile([0, 1], (3, 1)),
        servers=2,
        is_counter=np.zeros(2, dtype=bool),
        local_ms=constants.local_ms,
        jitter_ms=0.0,
        wide_jitter_ms=0.0,
        request_jitter_ms=constants.jitter_ms,
    )


def _single_client(count: int) -> Operations:
    """Return reads and writes of one column, writes of two, and transactions of two, in turn."""
    size = np.tile([1, 1, 2, 2], count)
    first = np.concatenate([[0], np.cumsum(size)])
    key = np.arange(first[-1]) - np.repeat(first[:-1], size)
    return Operations(
        datacenter=np.array([UW]),
        client=np.zeros(4 * count, dtype=np.int64),
        kind=np.tile([READ, BATCH, BATCH, TRANSACTION], count),
        first=first,
        key=key,
        amount=np.ones(len(key), dtype=np.int64),
        coordinator=first[:-1],
    )
