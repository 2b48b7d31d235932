"""Parts of flow records: each flow is whole in one, and results are those of all records at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flowrecords import partitions
from planner_models.flowrecords.cleaning import keep_once, make_buckets, of_largest_in_part, spread_records
from planner_models.flowrecords.partitions import count_flows, number_parts, split_parts
from planner_models.flowrecords.records import COLUMNS, FLOW_KEY, FlowRecords


def draw(count: int, seed: int) -> FlowRecords:
    """Return records of few flows, seen by three exporters or by one without a name."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {name: random.integers(-1, 2, count) for name in COLUMNS}
    columns["start_s"] = random.integers(0, 1_000, count).astype(float)
    columns["end_s"] = columns["start_s"] + random.integers(0, 700, count)
    columns["exporter"] = random.integers(-1, 3, count)
    columns["octets"] = random.integers(1, 5, count) * 100
    return FlowRecords(**columns, exporters=("a", "b", "c"))


@given(count=st.integers(1, 120), seed=st.integers(0, 1 << 32), size=st.integers(1, 40))
def test_results_are_those_of_all_records_at_once(count: int, seed: int, size: int) -> None:
    records = draw(count, seed)
    octets = records.octets.astype(float)
    keys = list(zip(*(getattr(records, name).tolist() for name in FLOW_KEY), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PART_RECORDS", size)
        part = number_parts(records)
        assert len(set(zip(keys, part.tolist(), strict=True))) == len(set(keys))
        assert sorted(np.concatenate(list(split_parts(part))).tolist()) == list(range(count))
        assert count_flows(records) == len(set(keys))
        for bucket_s in (None, 300.0):
            pieces = spread_records(records, make_buckets(records, bucket_s))
            kept = keep_once(records, pieces, octets, "exporter", None)
            assert (kept == of_largest_in_part(records, pieces, octets)).all()


def test_flows_are_spread_over_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PART_RECORDS", 50)
    assert len(list(split_parts(number_parts(draw(1_000, 1))))) == 20
