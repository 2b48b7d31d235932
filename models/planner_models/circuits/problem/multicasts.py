"""Demands to several racks at once: the table `multicasts`, its faults, and its demands as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.table import Table, label, number
from planner.contract.tables import file_name, row_name, shorten_faults
from planner_models.circuits.problem.racks import END_COLUMNS, MOST_BITS, Racks

MULTICASTS: Final = Table(
    name="multicasts",
    other_names=("multicast demands", "replicated writes"),
    about="data to be sent from one rack to several, the same to each; a row a target",
    columns={
        "multicast": label("its name; all its rows have one source and one amount"),
        **END_COLUMNS,
        "bits": number("amount that each target is to receive, bits", more_than=0, at_most=MOST_BITS),
    },
    key=("multicast", "target_rack"),
    may_be_empty=True,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Multicasts:
    """Multicasts between racks that work, k of them, in the order of the table; none without a target.

    names      (k,)
    source     (k,) row of `racks`
    bits       (k,) amount that each target is to receive
    is_target  (k, n) whether each rack is a target
    """

    names: NDArray[np.object_]
    source: NDArray[np.int64]
    bits: NDArray[np.float64]
    is_target: NDArray[np.bool_]

    @classmethod
    def of(cls, racks: Racks, frame: pd.DataFrame) -> Multicasts:
        """Return the multicasts of a valid table."""
        number_of, names = pd.factorize(frame["multicast"])
        source, target = racks.rows_of(frame)
        works = ~(racks.is_failed[source] | racks.is_failed[target])
        is_target = np.zeros((len(names), len(racks.racks)), dtype=bool)
        is_target[number_of[works], target[works]] = True
        first = np.unique(number_of, return_index=True)[1]
        has_targets = np.flatnonzero(is_target.any(axis=1))
        return cls(
            names=np.asarray(names, dtype=object)[has_targets],
            source=source[first][has_targets],
            bits=frame["bits"].to_numpy(float)[first][has_targets],
            is_target=is_target[has_targets],
        )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def can_share_circuits(self) -> bool:
        """Whether there is a multicast to several racks that work."""
        return bool((self.is_target.sum(axis=1) > 1).any())

    @cached_property
    def targets(self) -> list[frozenset[int]]:
        """Rows of `racks` of the targets of each multicast."""
        return [frozenset(np.flatnonzero(row).tolist()) for row in self.is_target]

    @cached_property
    def copy_bits(self) -> NDArray[np.float64]:
        """(n, n) amount that each rack is to receive of the multicasts of each other one, by source."""
        n = self.is_target.shape[1]
        bits = np.zeros((n, n))
        np.add.at(bits, self.source, self.is_target * self.bits[:, None])
        return bits


def find_faults(racks: Racks, frame: pd.DataFrame) -> list[str]:
    """Return the faults of a table with valid columns: unknown racks, and rows of one name that differ."""
    if faults := list(racks.report_unknown_ends(frame, MULTICASTS.name)):
        return faults
    return shorten_faults(
        list(_report_differences(frame)), file_name(frame, MULTICASTS.name), "that do not fit a multicast"
    )


def _report_differences(frame: pd.DataFrame) -> Iterator[str]:
    first: dict[str, int] = {}
    columns = [frame[name].tolist() for name in ("multicast", "source_rack", "target_rack", "bits")]
    for row, (name, source, target, bits) in enumerate(zip(*columns, strict=True)):
        where = row_name(frame, MULTICASTS.name, row)
        if source == target:
            yield f"{where}: source_rack and target_rack are both '{source}', must differ"
        before = first.setdefault(name, row)
        if source != columns[1][before]:
            yield (
                f"{where}: source_rack is '{source}', must be '{columns[1][before]}' as in the other rows "
                f"of multicast '{name}'"
            )
        if bits != columns[3][before]:
            yield (
                f"{where}: bits is {bits:g}, must be {columns[3][before]:g} as in the other rows of "
                f"multicast '{name}': each target receives the same data"
            )
