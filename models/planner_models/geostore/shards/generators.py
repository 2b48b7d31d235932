"""Keyspaces: popularity by Zipf's law or lognormal, and transactions over ranges close in a hidden order."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.geostore.shards.keyspace import Accesses, Keyspace, Weights

SCANS = 10_000


def zipf(
    *, ranges: int = 1_000_000, servers: int = 1_000, exponent: float = 0.99, scan: int = 20, seed: int = 0
) -> Keyspace:
    """Return ranges with popularity by Zipf's law, in random order, and scans of some ranges."""
    random = np.random.default_rng(seed)
    kops = random.permutation(1.0 / np.arange(1, ranges + 1) ** exponent)
    return _keyspace(kops, servers, scan, random)


def lognormal(
    *, ranges: int = 1_000_000, servers: int = 1_000, sigma: float = 1.0, scan: int = 20, seed: int = 0
) -> Keyspace:
    """Return ranges with lognormal popularity, and scans of some ranges."""
    random = np.random.default_rng(seed)
    return _keyspace(random.lognormal(0.0, sigma, ranges), servers, scan, random)


def _keyspace(kops: Floats, servers: int, scan: int, random: np.random.Generator) -> Keyspace:
    """Return ranges of 1 GB, equal servers at half their capacity, and scans that start anywhere."""
    start = random.integers(0, max(1, len(kops) - scan + 1), SCANS)
    capacity = 2 * kops.sum() / servers
    return Keyspace(
        kops=kops,
        gb=np.ones(len(kops)),
        server_kops=np.full(servers, capacity),
        scans=np.column_stack([start, np.minimum(start + scan, len(kops)) - 1]),
        scan_per_s=np.ones(SCANS),
    )


def hidden_order(
    *,
    ranges: int = 100_000,
    servers: int = 64,
    transactions: int = 300_000,
    reach: int = 5,
    noise: float = 0.1,
    messages: float = 1.0,
    seed: int = 0,
) -> Keyspace:
    """Return transactions of three ranges that are close in an order other than that of the keys.

    reach     of two of the ranges from the first, in the hidden order
    noise     share of these that are anywhere instead
    messages  weight of a transaction's message per second
    """
    random = np.random.default_rng(seed)
    center = random.integers(0, ranges, transactions)
    near = center[:, None] + random.integers(-reach, reach + 1, (transactions, 2))
    anywhere = random.integers(0, ranges, (transactions, 2))
    other = np.where(random.random((transactions, 2)) < noise, anywhere, near) % ranges
    touched = np.sort(random.permutation(ranges)[np.column_stack([center, other])], axis=1)
    is_new = np.column_stack([np.ones(transactions, dtype=bool), np.diff(touched, axis=1) > 0])
    first = np.concatenate([[0], np.cumsum(is_new.sum(axis=1))])
    accesses = Accesses(first=first, touched=touched[is_new], per_s=np.ones(transactions))
    kops = np.bincount(accesses.touched, minlength=ranges) / 1_000
    return Keyspace(
        kops=kops,
        gb=np.ones(ranges),
        server_kops=np.full(servers, 2 * kops.sum() / servers),
        transactions=accesses,
        weights=Weights(load=1.0, messages=messages / max(1, transactions)),
    )


def hidden_runs(keyspace_order: Ints, servers: int) -> Ints:
    """Return the servers of ranges as runs of equal length in an order of them."""
    server = np.empty(len(keyspace_order), dtype=np.int64)
    server[keyspace_order] = np.arange(len(keyspace_order)) * servers // len(keyspace_order)
    return server
