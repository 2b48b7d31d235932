"""Delays between all pairs of leaves: from the row of the nearest sites above both that the table names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.membership.problem.schema import KINDS, LOCAL_RTT_MS
from planner_models.membership.problem.tree import SiteTree
from planner_models.networks.nodes import find_names

P99_OVER_MEAN: Final = math.log(100.0)
"""99th percentile of an exponential time over its mean."""
REGION: Final = KINDS.index("region")


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayMatrix:
    """Round-trip times between leaves, with their spread and loss.

    rtt_ms  (L, L); NaN where the table has none
    p99_ms  (L, L) 99th percentile, at least the round-trip time
    loss    (L, L) share of messages that are lost
    """

    rtt_ms: Floats
    p99_ms: Floats
    loss: Floats

    @cached_property
    def spread_s(self) -> Floats:
        """(L, L) mean of the exponential part of the delay of a message, s, beside half a round trip."""
        return np.asarray((self.p99_ms - self.rtt_ms) / 2 / P99_OVER_MEAN / 1e3)

    def missing_pairs(self, leaves: Ints) -> Iterator[tuple[int, int]]:
        """Yield the sites of each pair of leaves without a round-trip time."""
        first, second = np.nonzero(np.triu(np.isnan(self.rtt_ms), 1))
        yield from zip(leaves[first].tolist(), leaves[second].tolist(), strict=True)


def find_delays(delays: pd.DataFrame | None, site_index: pd.Index, tree: SiteTree) -> DelayMatrix:
    """Return the delays between all pairs of leaves.

    A pair has the row of the lowest sites that it is in and that the table names together, in either order.
    Without a row, sites of one region are `LOCAL_RTT_MS` apart, and a site is as far from itself. Sites
    without a region above them are of one region where the table has no larger site.
    """
    count = len(tree.leaves)
    values = {name: np.full((count, count), np.nan) for name in ("rtt_ms", "p99_ms", "loss")}
    _fill_regions(values, tree)
    if delays is not None and len(delays):
        _fill_rows(values, delays, site_index, tree)
    row = np.arange(count)
    missing = np.isnan(values["rtt_ms"][row, row])
    values["rtt_ms"][row[missing], row[missing]] = LOCAL_RTT_MS
    p99 = np.where(np.isnan(values["p99_ms"]), values["rtt_ms"], values["p99_ms"])
    return DelayMatrix(rtt_ms=values["rtt_ms"], p99_ms=p99, loss=np.nan_to_num(values["loss"], nan=0.0))


def _fill_regions(values: dict[str, Floats], tree: SiteTree) -> None:
    """Set the time between leaves of one region, or of one smaller site where others have a region."""
    if (tree.kind < REGION).all():
        values["rtt_ms"][:] = LOCAL_RTT_MS
        return
    region = np.array(
        [max((site for site in tree.paths[leaf] if tree.kind[site] <= REGION), key=lambda s: tree.kind[s])
         if tree.kind[leaf] <= REGION else leaf for leaf in tree.leaves.tolist()],
        dtype=np.int64,
    )  # fmt: skip
    values["rtt_ms"][region[:, None] == region[None]] = LOCAL_RTT_MS


def _fill_rows(values: dict[str, Floats], delays: pd.DataFrame, site_index: pd.Index, tree: SiteTree) -> None:
    """Set the times of the table: rows of larger sites first, those of the sites in them over these."""
    below = np.zeros((len(tree.parent), len(tree.leaves)), dtype=bool)
    depth = np.array([len(path) for path in tree.paths])
    for number, leaf in enumerate(tree.leaves.tolist()):
        below[list(tree.paths[leaf]), number] = True
    ends = [find_names(site_index, delays[name]) for name in ("from", "to")]
    columns = {
        name: delays[name].to_numpy(float) if name in delays else np.full(len(delays), np.nan)
        for name in values
    }
    for row in np.argsort(depth[ends[0]] + depth[ends[1]], kind="stable").tolist():
        pair = np.ix_(below[ends[0][row]], below[ends[1][row]])
        for name, matrix in values.items():
            matrix[pair] = columns[name][row]
            matrix.T[pair] = columns[name][row]
