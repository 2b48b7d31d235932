"""Parts of flow records: each flow is whole in one, and groups of parts have few records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flowrecords import partitions
from planner_models.flowrecords.partitions import PARTS, divide_part, group_parts, number_flows, number_parts
from planner_models.flowrecords.records import COLUMNS, FLOW_KEY, FlowRecords

Key = tuple[int, ...]


def draw(count: int, seed: int) -> FlowRecords:
    """Return records of few flows, seen by three exporters or by one without a name."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {name: random.integers(-1, 2, count) for name in COLUMNS}
    columns["start_s"] = random.integers(0, 1_000, count).astype(float)
    columns["end_s"] = columns["start_s"] + random.integers(0, 700, count)
    columns["exporter"] = random.integers(-1, 3, count)
    columns["octets"] = random.integers(1, 5, count) * 100
    return FlowRecords(**columns, exporters=("a", "b", "c"))


def keys_of(records: FlowRecords) -> list[Key]:
    return list(zip(*(getattr(records, name).tolist() for name in FLOW_KEY), strict=True))


@given(count=st.integers(1, 120), seed=st.integers(0, 1 << 32), smaller=st.integers(0, 9))
def test_each_flow_is_whole_in_a_part(count: int, seed: int, smaller: int) -> None:
    records = draw(count, seed)
    keys = keys_of(records)
    part = number_parts(records)
    assert (
        len(set(zip(keys, part.tolist(), strict=True)))
        == len(set(keys))
        == len(set(number_flows(records).tolist()))
    )
    divided = list(divide_part(records, smaller))
    assert len(divided) <= max(smaller, 1)
    of_flow = [(key, number) for number, share in enumerate(divided) for key in set(keys_of(share))]
    assert len(of_flow) == len(set(keys))
    for key, number in of_flow:
        rows = [row for row, other in enumerate(keys) if other == key]
        same = [row for row, other in enumerate(keys_of(divided[number])) if other == key]
        assert divided[number].octets[same].tolist() == records.octets[rows].tolist()


@given(counts=st.lists(st.integers(0, 30), min_size=1, max_size=40), size=st.integers(1, 50))
def test_groups_have_all_parts_and_few_records(counts: list[int], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PART_RECORDS", size)
        groups = group_parts(np.array(counts))
    parts = [part for first, behind in groups for part in range(first, behind)]
    assert parts == list(range(len(parts)))
    assert not sum(counts[len(parts) :])
    for first, behind in groups:
        of_group = counts[first:behind]
        assert sum(of_group) <= size or sum(count > 0 for count in of_group) == 1


def test_flows_are_spread_evenly() -> None:
    records = draw(1, 1).select(np.zeros(100_000, dtype=np.int64))
    low = np.arange(100_000) << 8
    spread = number_parts(
        FlowRecords(**{name: getattr(records, name) for name in COLUMNS} | {"source_low": low})
    )
    counts = np.bincount(spread, minlength=PARTS)
    # of a Poisson distribution with mean 97.7 no part of 1,024 has fewer than 50 or more than 150
    assert 50 < counts.min() <= counts.max() < 150


def test_flows_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    records = draw(80, 3)
    monkeypatch.setattr(partitions, "hash_flows", lambda of: np.zeros(len(of), dtype=np.uint64))
    flow = partitions.number_flows(records).tolist()
    assert len(set(zip(keys_of(records), flow, strict=True))) == len(set(keys_of(records))) == len(set(flow))
