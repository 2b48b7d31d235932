"""Parts of flow records that have all records of each of their flows, to be handled one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints
from planner_models.flowrecords.records import FLOW_KEY, FlowRecords

PARTS: Final = 1 << 10
"""Parts of an export, whatever its size; those that are small are handled together."""
PART_RECORDS: Final = 1 << 19
"""Records that are handled together; more only where one part has more, as with a very large flow."""
MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: Knuth, volume 3, section 6.4
SHIFT: Final = np.uint64(32)


def hash_flows(records: FlowRecords) -> NDArray[np.uint64]:
    """Return a number of the flow of each record, the same for all records of a flow, shape (R,)."""
    code = np.zeros(len(records), dtype=np.uint64)
    for name in FLOW_KEY:
        code ^= getattr(records, name).astype(np.uint64)
        code *= MULTIPLIER
        code ^= code >> SHIFT
    return code


def number_parts(records: FlowRecords) -> NDArray[np.uint16]:
    """Return the part of each record, below PARTS, shape (R,)."""
    return (hash_flows(records) % np.uint64(PARTS)).astype(np.uint16)


def divide_part(records: FlowRecords, count: int) -> Iterator[FlowRecords]:
    """Yield the records of a part in about `count` smaller parts, each in its order."""
    if count <= 1:
        yield records
        return
    smaller = (hash_flows(records) // np.uint64(PARTS) % np.uint64(count)).astype(np.int64)
    ends = np.cumsum(np.bincount(smaller))
    for rows in np.split(np.argsort(smaller, kind="stable"), ends[:-1]):
        if len(rows):
            yield records.select(rows)


def group_parts(counts: Ints) -> list[tuple[int, int]]:
    """Return the first part of each group that is handled together, and the first one behind it.

    counts  (PARTS,) records of each part; a group has at most PART_RECORDS, or one part
    """
    groups: list[tuple[int, int]] = []
    first, records = 0, 0
    for index, count in enumerate(counts.tolist()):
        if records and records + count > PART_RECORDS:
            groups.append((first, index))
            first, records = index, 0
        records += count
    if records:
        groups.append((first, len(counts)))
    return groups


def number_flows(records: FlowRecords) -> Ints:
    """Return the number of the flow of each record, from 0 on, in no order, shape (R,)."""
    code = hash_flows(records)
    order = np.argsort(code)
    is_new, is_other = np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    is_new[1:] = code[order[1:]] != code[order[:-1]]
    for name in FLOW_KEY:
        column = getattr(records, name)[order]
        is_other[1:] |= column[1:] != column[:-1]
    if (is_other & ~is_new).any():  # two flows have one hash
        order = np.lexsort([getattr(records, name) for name in FLOW_KEY])
        is_other[:] = False
        for name in FLOW_KEY:
            column = getattr(records, name)[order]
            is_other[1:] |= column[1:] != column[:-1]
    flow = np.empty(len(order), dtype=np.int64)
    flow[order] = np.cumsum(is_other)
    return flow
