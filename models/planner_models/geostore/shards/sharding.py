"""Sharding: the server of each range, with ranges split into pieces; its check, and its metrics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.arrays import Ints
from planner.errors import PlanRejected
from planner_models.geostore.shards.keyspace import NO_SERVER, Accesses, Keyspace


@dataclass(frozen=True, kw_only=True, eq=False)
class Sharding:
    """A plan: ranges, some of them split into pieces of equal load and size, and the server of each piece.

    pieces  (R,) pieces of each range, 1 where it is not split
    server  (P,) server of each piece, in order of keys
    """

    pieces: Ints
    server: Ints

    @property
    def first(self) -> Ints:
        """First piece of each range, shape (R + 1,)."""
        return np.concatenate([[0], np.cumsum(self.pieces)])


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Figures of a sharding.

    max_load         largest load over capacity; above 1, a server is overloaded
    share_of_bound   that load over its lower bound, with the pieces as they are
    servers_per_op   servers that a transaction touches, in the mean by rate; None without transactions
    servers_per_scan the same of scans
    messages_per_s   of transactions: 4 p - 2 each
    moved_gb         that is on another server today
    objective        a L + b messages + c moves
    """

    max_load: float
    share_of_bound: float
    servers_per_op: float | None
    servers_per_scan: float | None
    messages_per_s: float
    moved_gb: float
    objective: float


def split_keyspace(keyspace: Keyspace, pieces: Ints) -> Keyspace:
    """Return the keyspace whose ranges are the pieces: a transaction touches one piece of a range.

    That piece is chosen by the transaction's number, evenly; scans read all pieces between their ends.
    """
    first = np.concatenate([[0], np.cumsum(pieces)])
    owner = np.repeat(np.arange(len(pieces)), pieces)
    accesses = keyspace.transactions
    piece = first[accesses.touched] + accesses.owner % pieces[accesses.touched]
    scans = keyspace.scans
    return replace(
        keyspace,
        kops=keyspace.kops[owner] / pieces[owner],
        gb=keyspace.gb[owner] / pieces[owner],
        scans=np.column_stack([first[scans[:, 0]], first[scans[:, 1] + 1] - 1]),
        transactions=Accesses(first=accesses.first, touched=piece, per_s=accesses.per_s),
        today=None if keyspace.today is None else keyspace.today[owner],
    )


def check(keyspace: Keyspace, sharding: Sharding) -> None:
    """Raise PlanRejected where a sharding is none: pieces of each range, each on a server that there is."""
    if sharding.pieces.shape != keyspace.kops.shape or (sharding.pieces < 1).any():
        raise PlanRejected("shards: each range needs a piece or more")
    if len(sharding.server) != sharding.pieces.sum():
        raise PlanRejected(f"shards: {len(sharding.server)} servers of {sharding.pieces.sum()} pieces")
    wrong = np.flatnonzero((sharding.server < 0) | (sharding.server >= len(keyspace.server_kops)))
    if len(wrong):
        piece, count = wrong[0], len(keyspace.server_kops)
        raise PlanRejected(f"shards: piece {piece} is on server {sharding.server[piece]}, there are {count}")


def measure(keyspace: Keyspace, sharding: Sharding) -> Metrics:
    """Return the metrics of a sharding; PlanRejected where it is none."""
    check(keyspace, sharding)
    pieces = split_keyspace(keyspace, sharding.pieces)
    load = np.bincount(sharding.server, pieces.kops, len(pieces.server_kops)) / pieces.server_kops
    bound = load_bound(pieces)
    touched = count_servers(pieces.transactions, sharding.server)
    rate = pieces.transactions.per_s
    messages = float(rate @ (4 * touched - 2))
    moved = moved_gb(pieces, sharding.server)
    largest = float(load.max())
    weights = keyspace.weights
    return Metrics(
        max_load=largest,
        share_of_bound=largest / bound if bound > 0 else 1.0,
        servers_per_op=float(rate @ touched / rate.sum()) if rate.sum() else None,
        servers_per_scan=_mean_of_scans(pieces, sharding.server),
        messages_per_s=messages,
        moved_gb=moved,
        objective=weights.load * largest + weights.messages * messages + weights.move_gb * moved,
    )


def load_bound(keyspace: Keyspace) -> float:
    """Return a lower bound of the largest load over capacity, of all placements of undivided ranges.

    All load over all capacity; the largest range on the largest server; and of the k S' + 1 largest ranges,
    some k + 1 share one of S' servers of equal capacity.
    """
    total = float(keyspace.kops.sum() / keyspace.server_kops.sum())
    bound = max(total, float(keyspace.kops.max() / keyspace.server_kops.max()))
    servers = len(keyspace.server_kops)
    if keyspace.is_equal and len(keyspace.kops) > servers:
        size = min(len(keyspace.kops), 2 * servers)
        largest = np.sort(np.partition(keyspace.kops, len(keyspace.kops) - size)[-size:])[::-1]
        bound = max(bound, float((largest[servers - 1] + largest[servers]) / keyspace.server_kops[0]))
    return bound


def count_servers(accesses: Accesses, server: Ints) -> Ints:
    """Return the servers that each access touches, shape (T,)."""
    if len(accesses.touched) == 0:
        return np.zeros(len(accesses.per_s), dtype=np.int64)
    count = int(server.max()) + 1
    pair = np.sort(accesses.owner * count + server[accesses.touched])
    is_new = np.concatenate([[True], pair[1:] != pair[:-1]])
    return np.bincount(pair[is_new] // count, minlength=len(accesses.per_s))


def moved_gb(keyspace: Keyspace, server: Ints) -> float:
    """Return the data on a server other than today's, GB; ranges without one are no move."""
    if keyspace.today is None:
        return 0.0
    return float(keyspace.gb[(keyspace.today != NO_SERVER) & (keyspace.today != server)].sum())


def _mean_of_scans(keyspace: Keyspace, server: Ints) -> float | None:
    """Return the servers that a scan reads from, in the mean by rate."""
    total = keyspace.scan_per_s.sum()
    if total == 0:
        return None
    sizes = keyspace.scans[:, 1] - keyspace.scans[:, 0] + 1
    first = np.concatenate([[0], np.cumsum(sizes)])
    touched = np.arange(first[-1]) - np.repeat(first[:-1] - keyspace.scans[:, 0], sizes)
    accesses = Accesses(first=first, touched=touched, per_s=keyspace.scan_per_s)
    return float(keyspace.scan_per_s @ count_servers(accesses, server) / total)


def keep_in_place(keyspace: Keyspace, server: Ints) -> Ints:
    """Rename servers of equal capacity so that most data stays on today's server; loads stay as they are."""
    from scipy.optimize import linear_sum_assignment  # loads slowly

    if keyspace.today is None:
        return server
    count = len(keyspace.server_kops)
    is_placed = keyspace.today != NO_SERVER
    pair = server[is_placed] * count + keyspace.today[is_placed]
    stays = np.bincount(pair, keyspace.gb[is_placed], count * count).reshape(count, count)
    _, kind = np.unique(keyspace.server_kops, return_inverse=True)
    cost = np.where(kind[:, None] == kind[None, :], -stays, float(stays.sum()) + 1.0)
    name: Ints = linear_sum_assignment(cost)[1]
    return name[server]
