"""Small random keyspaces, and all placements of their ranges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from planner_models.geostore.shards.keyspace import Accesses, Keyspace, Weights


def small_keyspace(seed: int, *, ranges: int = 6, servers: int = 3, is_equal: bool = False) -> Keyspace:
    """Return a keyspace with transactions, scans and today's servers."""
    random = np.random.default_rng(seed)
    touched = [np.sort(random.choice(ranges, random.integers(1, 4), replace=False)) for _ in range(5)]
    scans = np.sort(random.integers(0, ranges, (3, 2)), axis=1)
    return Keyspace(
        kops=random.integers(0, 20, ranges).astype(float),
        gb=random.integers(1, 5, ranges).astype(float),
        server_kops=np.full(servers, 20.0) if is_equal else random.integers(5, 40, servers).astype(float),
        scans=scans,
        scan_per_s=np.ones(3),
        transactions=Accesses(
            first=np.cumsum([0, *map(len, touched)]),
            touched=np.concatenate(touched),
            per_s=random.integers(1, 5, 5).astype(float),
        ),
        today=random.integers(-1, servers, ranges),
        weights=Weights(load=float(random.integers(0, 30)), messages=0.3, move_gb=0.5),
    )


def all_placements(keyspace: Keyspace) -> Iterator[np.ndarray]:
    """Yield each placement of undivided ranges."""
    servers = range(len(keyspace.server_kops))
    for server in itertools.product(servers, repeat=len(keyspace.kops)):
        yield np.array(server)


def all_runs(keyspace: Keyspace) -> Iterator[np.ndarray]:
    """Yield each placement of runs, given to servers in order; runs may be empty."""
    count, servers = len(keyspace.kops), len(keyspace.server_kops)
    for cuts in itertools.combinations_with_replacement(range(count + 1), servers - 1):
        yield np.repeat(np.arange(servers), np.diff([0, *cuts, count]))
