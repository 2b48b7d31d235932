"""Summaries of blocks of records: those of all records, by plain counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flowrecords.summaries import SummaryBuilder, summarize
from tests.models.flowrecords.test_partitions import draw


@given(count=st.integers(1, 80), seed=st.integers(0, 1 << 32), size=st.integers(1, 30))
def test_blocks_have_the_summary_of_all(count: int, seed: int, size: int) -> None:
    records = draw(count, seed)
    builder = SummaryBuilder()
    for first in range(0, count, size):
        builder.add(records.select(np.arange(first, min(first + size, count))))
    names = [*records.exporters, ""]
    columns = (records.exporter, records.input_interface, records.sampling)
    expected = Counter((names[row[0]], *row[1:]) for row in zip(*(c.tolist() for c in columns), strict=True))
    for summary in (builder.finish(), summarize(records)):
        kinds = summary.kinds
        of_kinds = [*kinds.exporters, ""]
        rows = zip(kinds.exporter, kinds.input_interface, kinds.sampling, strict=True)
        found = [(of_kinds[exporter], int(interface), int(rate)) for exporter, interface, rate in rows]
        # a counter has its keys in the order of their first records
        assert dict(zip(found, summary.records_of_kind.tolist(), strict=True)) == expected
        assert found == list(expected)
        assert (summary.count, summary.has_unknown_direction) == (count, bool((records.direction < 0).any()))
        assert (summary.first_s, summary.last_s) == (records.start_s.min(), records.end_s.max())
        assert summary.last_start_s == records.start_s.max()
