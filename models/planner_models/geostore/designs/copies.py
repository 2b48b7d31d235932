"""Costs of copies of writes beside replicas and attachments, by sets of a user's attachments.

A copy to a replica has the lowest price of all attachments, and each higher price is paid where the user is
attached at none of the regions below it (Cornuejols et al. 1980, for facilities by distance). Regions with
the same price are one set, so that a program is small, and its linear program has the bound of one with a
copy from each attachment to each replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner_models.geostore.designs.component import Component


class Steps(NamedTuple):
    """Prices of copies that a user pays where it is attached outside of a set.

    usd      (D,) cost of the copies; inf where copies from outside of the set are too late
    replica  (D,) replica that the copies go to, of G * N
    number   (D,) set
    """

    usd: Floats
    replica: Ints
    number: Ints


@dataclass(frozen=True, eq=False)
class Writer:
    """A user's writes of groups that have the same prices of copies.

    rows       (r,) attachments of the user
    groups     (g,) groups
    volume     (g,) GB a month
    price      (r, N) USD/GB from each attachment
    is_shared  (N,) whether the lowest price is not that of the replica's own region alone
    """

    rows: Ints
    groups: Ints
    volume: Floats
    price: Floats
    is_shared: Bools


class Copies:
    """Costs of copies of a component with users of one replica each.

    replica_usd   (G * N,) cost of the copies to a replica at their lowest prices
    attached_usd  (attachments,) below 0: an attachment at a replica itself needs no copy there
    """

    def __init__(self, data: Component, user: Ints, entry: Ints) -> None:
        """Find lowest prices; `user` and `entry` are the users and regions of attachments, users in order."""
        self.replica_usd = np.zeros(data.opening.size)
        self.attached_usd = np.zeros(len(user))
        self.regions = data.opening.shape[1]
        self._may_open = np.asarray(data.state != 0)
        self._sets: list[Ints] = []
        self._numbers = dict[tuple[int, bytes], int]()
        self._writers = [self._start(item, entry) for item in _writers(data, user, entry)]

    def _start(self, writer: Writer, entry: Ints) -> Writer:
        """Add the lowest prices of a writer's copies to costs; return it with which are shared."""
        price = writer.price
        own, at = np.arange(len(writer.rows)), entry[writer.rows]
        lowest, is_shared = price.min(axis=0), np.ones(self.regions, dtype=bool)
        others = price.copy()
        others[own, at] = np.inf
        second = others.min(axis=0)[at]
        may_open = np.asarray(self._may_open[writer.groups].any(axis=0))[at]
        is_alone: Bools = np.asarray((price[own, at] < second) & np.isfinite(second) & may_open)
        is_shared[at[is_alone]] = False
        step = np.where(is_alone, second - np.where(is_alone, lowest[at], 0.0), 0.0)
        self.attached_usd[writer.rows] -= step * writer.volume.sum()
        paid = np.where(np.isfinite(lowest), lowest, 0.0)
        paid[at] += step
        self.replica_usd += _place(paid, writer, self.regions, len(self._may_open))
        return Writer(writer.rows, writer.groups, writer.volume, price, is_shared)

    def steps_at(self, region: int) -> Steps:
        """Return the higher prices of copies to the replicas of a region, and the sets below them."""
        usd, replica, number = [], [], []
        if self._may_open[:, region].any():
            for writer in self._writers:
                for cost, rows in _levels(writer, region):
                    usd.append(cost * writer.volume)
                    replica.append(writer.groups * self.regions + region)
                    number.append(np.full(len(writer.groups), self._number(rows)))
        if not usd:
            return Steps(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        return Steps(np.concatenate(usd), np.concatenate(replica), np.concatenate(number))

    def _number(self, rows: Ints) -> int:
        """Return the number of a set of attachments."""
        number = self._numbers.setdefault((len(rows), rows.tobytes()), len(self._sets))
        if number == len(self._sets):
            self._sets.append(rows)
        return number

    def sets(self) -> sp.csr_array:
        """Return the attachments of each set, (sets, attachments) of ones."""
        lengths = [len(rows) for rows in self._sets]
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *self._sets])
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return sp.csr_array(
            (np.ones(len(columns)), columns, starts), shape=(len(lengths), len(self.attached_usd))
        )


def _writers(data: Component, user: Ints, entry: Ints) -> Iterator[Writer]:
    """Yield the users that write, once for each kind of prices of their groups."""
    ends = np.searchsorted(user, np.arange(len(data.attachment) + 1))
    kinds = [price.tobytes() for price in data.price]
    is_shared = np.ones(data.opening.shape[1], dtype=bool)
    is_written = data.uses & (data.volume > 0)
    for writer in np.flatnonzero(is_written.any(axis=0)).tolist():
        rows = np.arange(ends[writer], ends[writer + 1])
        used = np.flatnonzero(is_written[:, writer]).tolist()
        for kind in dict.fromkeys(kinds[group] for group in used if len(rows)):
            groups = np.array([group for group in used if kinds[group] == kind])
            price = data.price[groups[0]][entry[rows]]
            yield Writer(rows, groups, data.volume[groups, writer], price, is_shared)


def _place(usd: Floats, writer: Writer, regions: int, groups: int) -> Floats:
    """Return USD/GB of copies to regions, (N,), as USD of the replicas of a writer's groups, (G * N,)."""
    placed = np.zeros((groups, regions))
    placed[writer.groups] = writer.volume[:, None] * usd
    return placed.ravel()


def _levels(writer: Writer, region: int) -> Iterator[tuple[float, Ints]]:
    """Yield the increase of each higher price of copies to a region, USD/GB, and the attachments below it."""
    price = writer.price[:, region]
    levels = np.unique(price)
    begin = 0 if writer.is_shared[region] else 1
    for level, step in zip(levels[begin:-1].tolist(), np.diff(levels)[begin:].tolist(), strict=True):
        yield step, writer.rows[price <= level]
    if len(levels) and np.isinf(levels[0]):
        yield np.inf, writer.rows[:0]
