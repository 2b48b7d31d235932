"""Splits of hot ranges: no placement of undivided ranges has less load than the hottest of them."""

from __future__ import annotations

import numpy as np

from planner.arrays import Ints
from planner.errors import InputError
from planner_models.geostore.shards.keyspace import Keyspace

PIECE = 0.2
"""Most load of a piece, in mean loads of a server."""


def split_hot(keyspace: Keyspace, *, piece: float = PIECE) -> Ints:
    """Return the pieces of each range: the fewest with a load of `piece` mean server loads at most, each.

    A piece is thought to have an equal part of its range's load; a single hot key cannot be split.
    Yesquel moves data between nodes of its tree by transactions (section 3); it does not tell of splits.
    """
    if piece <= 0:
        raise InputError(f"split_hot: piece is {piece}, must be above 0")
    limit = piece * keyspace.kops.sum() / len(keyspace.server_kops)
    if limit == 0:
        return np.ones(len(keyspace.kops), dtype=np.int64)
    pieces: Ints = np.maximum(np.ceil(keyspace.kops / limit - 1e-9), 1).astype(np.int64)
    return pieces
