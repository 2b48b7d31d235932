"""Parts of flow records that have all records of each of their flows, to be handled one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints
from planner_models.flowrecords.records import FLOW_KEY, FlowRecords

PART_RECORDS: Final = 1 << 20
"""Records of a part, on average; a part with a very large flow has more."""
MOST_PARTS: Final = 1 << 15
MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: Knuth, volume 3, section 6.4
SHIFT: Final = np.uint64(32)


def number_parts(records: FlowRecords) -> NDArray[np.uint16]:
    """Return the part of each record, by a hash of its flow's key, shape (R,)."""
    count = min(-(-len(records) // PART_RECORDS), MOST_PARTS)
    if count <= 1:
        return np.zeros(len(records), dtype=np.uint16)
    code = np.zeros(len(records), dtype=np.uint64)
    for name in FLOW_KEY:
        code ^= getattr(records, name).astype(np.uint64)
        code *= MULTIPLIER
        code ^= code >> SHIFT
    return (code % np.uint64(count)).astype(np.uint16)


def split_parts(part: NDArray[np.uint16]) -> Iterator[Ints]:
    """Yield the rows of each part that has any, in their order."""
    ends = np.cumsum(np.bincount(part))
    order = np.argsort(part, kind="stable")
    for rows in np.split(order, ends[:-1]):
        if len(rows):
            yield rows


def count_flows(records: FlowRecords) -> int:
    """Return the number of distinct keys of flows."""
    parts = split_parts(number_parts(records))
    return sum(len(records.select(rows).flow_keys().drop_duplicates()) for rows in parts)
