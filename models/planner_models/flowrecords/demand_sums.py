"""Sums over parts of flow records: bytes by demand and bucket, by use, and by prefix without a node."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.errors import InputError
from planner_models.flowrecords.records import address_text

MAX_CELLS: Final = 50_000_000
"""Demands times buckets."""


class Cells:
    """Bytes by demand and bucket, with demands in the order in which they come."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.keys = np.empty(0, dtype=np.int64)
        self.octets = np.empty((0, buckets))
        self.variance = np.empty(0)

    def add(self, key: Ints, bucket: Ints, octets: Floats, variance: Floats) -> None:
        """Add pieces of records, (P,) each.

        key       number of the demand
        variance  of the bytes by sampling

        raises    InputError where there are more than MAX_CELLS
        """
        distinct, demand = np.unique(key, return_inverse=True)
        rows = self._rows_of(distinct)
        self.variance[rows] += np.bincount(demand, weights=variance, minlength=len(distinct))
        if len(distinct) * self.buckets <= len(key):
            sums = np.bincount(
                demand * self.buckets + bucket, weights=octets, minlength=len(distinct) * self.buckets
            )
            self.octets[rows] += sums.reshape(len(distinct), self.buckets)
            return
        cell, row = np.unique(demand * self.buckets + bucket, return_inverse=True)
        sums = np.bincount(row, weights=octets, minlength=len(cell))
        self.octets[rows[cell // self.buckets], cell % self.buckets] += sums

    def _rows_of(self, distinct: Ints) -> Ints:
        """Return the row of each demand, where new ones are added; (D,) ascending numbers."""
        order = np.argsort(self.keys)
        position = np.searchsorted(self.keys, distinct, sorter=order)
        is_known = position < len(self.keys)
        is_known[is_known] = self.keys[order[position[is_known]]] == distinct[is_known]
        rows = np.empty(len(distinct), dtype=np.int64)
        rows[is_known] = order[position[is_known]]
        fresh = distinct[~is_known]
        rows[~is_known] = len(self.keys) + np.arange(len(fresh))
        self.keys = np.append(self.keys, fresh)
        if len(self.keys) * self.buckets > MAX_CELLS:
            raise InputError(
                f"records: make {len(self.keys):,} demands in {self.buckets:,} buckets, must be at most "
                f"{MAX_CELLS:,} rates; take longer buckets or shorter prefixes"
            )
        if len(self.keys) > len(self.octets):
            added = max(len(self.keys), min(2 * len(self.octets), MAX_CELLS // self.buckets)) - len(
                self.octets
            )
            self.octets = np.concatenate([self.octets, np.zeros((added, self.buckets))])
            self.variance = np.concatenate([self.variance, np.zeros(added)])
        return rows

    def finish(self) -> tuple[Ints, Floats, Floats]:
        """Return the numbers of demands, ascending, (K,), their bytes, (K, B), and variance, (K,)."""
        order = np.argsort(self.keys)
        return self.keys[order], self.octets[order], self.variance[order]


class PrefixSums:
    """Bytes by prefix: the /24 of an IPv4 address, the /48 of an IPv6 address."""

    def __init__(self) -> None:
        self.sums: pd.Series[float] | None = None
        self.waiting: list[pd.DataFrame] = []
        self.waiting_rows = 0

    def add(self, high: Ints, low: Ints, octets: Floats) -> None:
        """Add bytes of addresses, (R,) each."""
        frame = pd.DataFrame({"high": high, "low": low >> 8 << 8, "octets": octets})
        is_long = frame["high"] != -(1 << 63)
        frame.loc[is_long, "high"] = frame.loc[is_long, "high"] // 65536 * 65536
        frame.loc[is_long, "low"] = -(1 << 63)
        sums = frame.groupby(["high", "low"])["octets"].sum().reset_index()
        self.waiting.append(sums)
        self.waiting_rows += len(sums)
        if self.waiting_rows > (0 if self.sums is None else len(self.sums)):
            self._merge()

    def _merge(self) -> None:
        before = [] if self.sums is None else [self.sums.reset_index()]
        frames = [*before, *self.waiting]
        self.sums = pd.concat(frames).groupby(["high", "low"])["octets"].sum() if frames else None
        self.waiting, self.waiting_rows = [], 0

    def largest(self, count: int) -> dict[str, float]:
        """Return the prefixes with most bytes."""
        self._merge()
        if self.sums is None:
            return {}
        sums = self.sums.nlargest(count)
        return {
            prefix_name(*halves): octets
            for halves, octets in zip(sums.index.tolist(), sums.tolist(), strict=True)
        }


def prefix_name(high: int, low: int) -> str:
    """Return the /24 of an IPv4 address, or the /48 of an IPv6 address."""
    address = address_text(high, low)
    length = 24 if ":" not in address else 48
    return str(ipaddress.ip_network(f"{address}/{length}", strict=False))


@dataclass(kw_only=True)
class Uses:
    """Bytes by use, as the report has them, and other sums over parts.

    bucket_pieces  (B,) shares of records in each bucket
    """

    octets: float = 0.0
    removed: float = 0.0
    repeated: float = 0.0
    mapped: float = 0.0
    local: float = 0.0
    dropped: float = 0.0
    flows: int = 0
    sources: PrefixSums = field(default_factory=PrefixSums)
    targets: PrefixSums = field(default_factory=PrefixSums)
    bucket_pieces: Ints
