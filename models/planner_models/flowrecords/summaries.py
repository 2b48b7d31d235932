"""Summaries of flow records before they are handled part by part: their time and their exporters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner_models.flowrecords.records import COLUMNS, UNKNOWN, FlowRecords

Kind = tuple[str, int, int]
"""Exporter of a record, "" for none, its input interface, and its sampling."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """Times, kinds and exporters of all records of an export.

    count                    of the records
    first_s, last_s          first start and last end, s since 1970
    last_start_s             last start, s since 1970
    has_unknown_direction    whether a record does not say its direction
    kinds                    a record of each exporter, input interface and sampling, in the order of their
                             first records; the other columns have no meaning
    records_of_kind          (K,) their numbers of records
    """

    count: int
    first_s: float
    last_s: float
    last_start_s: float
    has_unknown_direction: bool
    kinds: FlowRecords
    records_of_kind: Ints


class SummaryBuilder:
    """A summary of records that come in blocks."""

    def __init__(self) -> None:
        self.count = 0
        self.first_s, self.last_s, self.last_start_s = np.inf, -np.inf, -np.inf
        self.has_unknown_direction = False
        self.records_of: dict[Kind, int] = {}

    def add(self, records: FlowRecords) -> None:
        """Add a block of records."""
        if not len(records):
            return
        self.count += len(records)
        self.first_s = min(self.first_s, float(records.start_s.min()))
        self.last_s = max(self.last_s, float(records.end_s.max()))
        self.last_start_s = max(self.last_start_s, float(records.start_s.max()))
        self.has_unknown_direction |= bool((records.direction == UNKNOWN).any())
        for kind, count in count_kinds(records):
            self.records_of[kind] = self.records_of.get(kind, 0) + count

    def finish(self) -> Summary:
        """Return the summary of all blocks."""
        names = tuple(sorted({name for name, _, _ in self.records_of if name}))
        index = {name: code for code, name in enumerate(names)}
        kinds = list(self.records_of)
        columns = {name: np.zeros(len(kinds), dtype=np.int64) for name in COLUMNS}
        columns["exporter"] = np.array([index.get(name, UNKNOWN) for name, _, _ in kinds], dtype=np.int64)
        columns["input_interface"] = np.array([interface for _, interface, _ in kinds], dtype=np.int64)
        columns["sampling"] = np.array([sampling for _, _, sampling in kinds], dtype=np.int64)
        return Summary(
            count=self.count,
            first_s=self.first_s,
            last_s=self.last_s,
            last_start_s=self.last_start_s,
            has_unknown_direction=self.has_unknown_direction,
            kinds=FlowRecords(**columns, exporters=names),  # type: ignore[arg-type]
            records_of_kind=np.array(list(self.records_of.values()), dtype=np.int64),
        )


def count_kinds(records: FlowRecords) -> list[tuple[Kind, int]]:
    """Return exporter, input interface and sampling of records, and the number of each, in order."""
    code = np.zeros(len(records), dtype=np.int64)
    for column in (records.exporter, records.input_interface, records.sampling):
        if (column == column[0]).all():
            continue
        codes, distinct = pd.factorize(column)
        code = pd.factorize(code * len(distinct) + codes)[0]
    counts = np.bincount(code)
    first = np.empty(len(counts), dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]  # of repeated indices the last one counts
    result = []
    for row, count in zip(first.tolist(), counts.tolist(), strict=True):
        exporter = int(records.exporter[row])
        name = records.exporters[exporter] if exporter != UNKNOWN else ""
        result.append(((name, int(records.input_interface[row]), int(records.sampling[row])), count))
    return result


def summarize(records: FlowRecords) -> Summary:
    """Return the summary of records."""
    builder = SummaryBuilder()
    builder.add(records)
    return builder.finish()
