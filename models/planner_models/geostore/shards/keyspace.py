"""Keyspace: ranges of keys in order, the servers to put them on, and the accesses that touch several."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.errors import InputError

NO_SERVER = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Accesses:
    """Transactions, or other accesses, that touch several ranges.

    first  (T + 1,) first row of `touched` of each
    touched  ranges
    per_s  (T,) accesses per second
    """

    first: Ints
    touched: Ints
    per_s: Floats

    @classmethod
    def none(cls) -> Accesses:
        """Return no accesses."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(first=np.zeros(1, dtype=np.int64), touched=empty, per_s=np.zeros(0))

    @property
    def owner(self) -> Ints:
        """Access of each row of `touched`."""
        return np.repeat(np.arange(len(self.per_s)), np.diff(self.first))


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of the objective a L + b sum of f_t (4 p_t - 2) + c moves.

    load      of L, the largest load over capacity
    messages  of a transaction's message per second
    move_gb   of a GB that leaves the server that it is on today
    """

    load: float = 1.0
    messages: float = 0.0
    move_gb: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Keyspace:
    """Ranges of an ordered keyspace, and servers.

    kops          (R,) load of each range, thousands of operations per second
    gb            (R,) size
    server_kops   (S,) capacity of each server, in the order in which runs of ranges are given to them
    scans         (Q, 2) first and last range of each scan
    scan_per_s    (Q,) scans per second
    transactions  that touch several ranges
    today         (R,) server that has a range today; -1: none
    weights       of the objective
    """

    kops: Floats
    gb: Floats
    server_kops: Floats
    scans: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    scan_per_s: Floats = field(default_factory=lambda: np.zeros(0))
    transactions: Accesses = field(default_factory=Accesses.none)
    today: Ints | None = None
    weights: Weights = Weights()

    def __post_init__(self) -> None:
        faults = [
            *_negative("ranges", "kops", self.kops),
            *_negative("ranges", "gb", self.gb),
            *_negative("scans", "per_s", self.scan_per_s),
            *_negative("transactions", "per_s", self.transactions.per_s),
        ]
        if len(self.kops) == 0 or len(self.gb) != len(self.kops):
            faults.append(f"ranges: {len(self.kops)} loads, {len(self.gb)} sizes; must be as many, and some")
        if len(self.server_kops) == 0 or not (self.server_kops > 0).all():
            faults.append("servers: kops must be above 0, of one server at least")
        faults += _outside("scans", self.scans.ravel(), len(self.kops))
        faults += _outside("transactions", self.transactions.touched, len(self.kops))
        for row in np.flatnonzero(self.scans[:, 0] > self.scans[:, 1])[:1]:
            start, end = self.scans[row]
            faults.append(f"scans row {row + 1}: ends at range {end}, before its start, range {start}")
        if (np.diff(self.transactions.first) < 1).any():
            row = int(np.argmin(np.diff(self.transactions.first)))
            faults.append(f"transactions row {row + 1}: touches no range")
        if self.today is not None:
            is_wrong = (self.today < NO_SERVER) | (self.today >= len(self.server_kops))
            faults += [
                f"ranges row {row + 1}: today's server is {self.today[row]} of {len(self.server_kops)}"
                for row in np.flatnonzero(is_wrong)[:1]
            ]
        if faults:
            raise InputError(*faults)

    @property
    def is_equal(self) -> bool:
        """Whether all servers have the same capacity."""
        return bool((self.server_kops == self.server_kops[0]).all())


def _negative(table: str, name: str, values: Floats) -> list[str]:
    """Return a line for the first value that is below 0 or no number."""
    wrong: Bools = ~(np.isfinite(values) & (values >= 0))
    return [
        f"{table} row {row + 1}: {name} is {values[row]}, must be 0 or above"
        for row in np.flatnonzero(wrong)[:1]
    ]


def _outside(table: str, ranges: Ints, count: int) -> list[str]:
    """Return a line for the first range that there is not."""
    wrong = np.flatnonzero((ranges < 0) | (ranges >= count))
    return [f"{table}: range {ranges[row]} is none of 0 to {count - 1}" for row in wrong[:1]]
