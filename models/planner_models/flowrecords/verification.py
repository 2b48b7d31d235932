"""Doubts about the bytes of flow records: counted several times, scaled by a wrong rate, or few samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.notes import add_note
from planner.contract.tables import row_name
from planner.errors import InputError, did_you_mean
from planner_models.graphs.indexing import sum_by_index

MAX_RATIO: Final = 1.5
"""Times that a byte may be counted, or that records may differ from counters, before it is an error."""
NEAR: Final = 0.2
"""Relative difference within which a ratio is taken for a power of two or ten."""


def require_counted_once(ratio: float, where: str) -> None:
    """Raise InputError where several exporters saw the same flows, and all of them are counted."""
    if ratio > MAX_RATIO:
        raise InputError(
            f"{where}: a byte was counted {ratio:.2f} times, as several exporters saw the same flows; "
            "duplicates is 'none', set it to 'exporter', 'boundary' or 'direction'"
        )


def describe_error(relative_error: Floats) -> Iterator[str]:
    """Yield the standard errors of demands by sampling in words; nothing without sampling."""
    if relative_error.any():
        median, largest = np.median(relative_error), relative_error.max()
        yield f"standard error of a demand by sampling: {median:.1%} in the median, {largest:.1%} at most"


def compare_counters(
    nodes: Sequence[str], ends: tuple[Ints, Ints], octets: Floats, counters: pd.DataFrame, where: str
) -> None:
    """Compare the bytes that nodes send and receive by records with those of their interface counters.

    nodes   names
    ends    source and target of each demand, rows of `nodes`
    octets  of each demand

    raises  InputError for nodes that are none, and where all records together are far from the counters
    """
    pairs = _pair_with_counters(nodes, ends, octets, counters)
    total = sum(counted for _, _, counted in pairs)
    if total <= 0:
        raise InputError("counters: has no bytes to compare with records")
    ratio = sum(ours for _, ours, _ in pairs) / total
    if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
        raise InputError(
            f"{where}: records have {ratio:.3g} times the bytes of the counters{explain_ratio(ratio)}"
        )
    add_note(f"{where}: records have {ratio:.3g} times the bytes of the counters")
    apart = [(label, ours / counted) for label, ours, counted in pairs if counted > 0]
    label, worst = max(apart, key=lambda pair: abs(np.log(max(pair[1], 1e-9))))
    if not 1 / MAX_RATIO <= worst <= MAX_RATIO:
        add_note(f"warning: {where}: by records {label} {worst:.3g} times the bytes of its counter")


def _pair_with_counters(
    nodes: Sequence[str], ends: tuple[Ints, Ints], octets: Floats, counters: pd.DataFrame
) -> list[tuple[str, float, float]]:
    """Return each counter in words, the bytes by records, and its own."""
    names = counters["node"].astype(str).tolist()
    for row, name in enumerate(names):
        if name not in nodes:
            near = did_you_mean(name, nodes)
            raise InputError(f"{row_name(counters, 'counters', row)}: node '{name}' is no node{near}")
    index = np.array([nodes.index(name) for name in names])
    pairs: list[tuple[str, float, float]] = []
    for column, end, verb in (("sent_bytes", ends[0], "sends"), ("received_bytes", ends[1], "receives")):
        if column in counters:
            by_node = sum_by_index(end, octets, len(nodes))[index]
            counted = counters[column].to_numpy(float)
            rows = np.flatnonzero(np.isfinite(counted))
            pairs += [(f"{names[row]} {verb}", float(by_node[row]), float(counted[row])) for row in rows]
    return pairs


def explain_ratio(ratio: float) -> str:
    """Return the likely reason for a ratio of records to counters in words; "" for none."""
    if abs(ratio - 2) <= 2 * NEAR:
        return ": is each byte counted twice? See duplicates"
    scale = max(ratio, 1 / ratio) if ratio > 0 else np.inf
    powers = np.r_[2.0 ** np.arange(2, 21), 10.0 ** np.arange(1, 7)]
    nearest = float(powers[np.argmin(np.abs(np.log(powers / scale)))]) if np.isfinite(scale) else np.inf
    if abs(scale / nearest - 1) <= NEAR:
        return f": is the sampling wrong by {nearest:,.0f}?"
    return ""
