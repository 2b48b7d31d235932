"""Throughput overheads of Table 4, and metadata bytes of section 7.2."""

from __future__ import annotations

from typing import Final

import pandas as pd

UNITS: Final = ("ops", "keys", "columns")
THROUGHPUT: Final = {
    "cassandra": (23_657.0, 94_502.0, 498_239.0),
    "eiger": (22_088.0, 88_238.0, 466_844.0),
    "all_txns": (22_891.0, 91_439.0, 480_904.0),
}
"""Operations, keys and columns per second (Table 4)."""


def overhead_percent(throughput: float, baseline: float) -> float:
    """Return the share of a baseline's throughput that is lost, in percent."""
    return 100 * (1 - throughput / baseline)


def table_4() -> pd.DataFrame:
    """Return the overhead of each run of Eiger in Table 4, percent: a row a unit, and the larger one.

    The printed maximum is that of the run without write transactions: the other one loses less.
    """
    rows = [
        {
            "unit": unit,
            "eiger": overhead_percent(eiger, cassandra),
            "all_txns": overhead_percent(all_txns, cassandra),
        }
        for unit, cassandra, eiger, all_txns in zip(UNITS, *THROUGHPUT.values(), strict=True)
    ]
    frame = pd.DataFrame(rows)
    frame["max_overhead"] = frame[["eiger", "all_txns"]].max(axis=1)
    return frame


def transaction_messages(servers: int) -> int:
    """Return the messages of a local write-only transaction over some servers, its client's included.

    Sub-requests to each, votes, commits and acknowledgements of the cohorts, and one reply (section 5.2):
    p + 3 (p - 1) + 1 = 4 p - 2.
    """
    return servers + 3 * (servers - 1) + 1
