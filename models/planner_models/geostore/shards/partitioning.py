"""Free placement: few servers for each transaction, by a hypergraph partitioner.

Ranges are nodes, transactions are edges with their rates, servers are blocks. The connectivity metric, the
sum of f_t (p_t - 1), is that of the messages of transactions but for constants. Mt-KaHyPar (Gottesbueren et
al., ALENEX 2021) reduces it within a largest load.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InputError
from planner.extras import needed_by
from planner_models.geostore.shards.keyspace import Keyspace

IMBALANCE: Final = 0.03
"""Largest load of a server over its share."""
WEIGHT_SCALE: Final = 1_000
"""Weights of the partitioner are integers: the mean of what is above 0 becomes this."""
LARGE: Final = 50_000
"""Rows of transactions from which on the preset for many blocks is used, which is ten times as fast."""


def partition(keyspace: Keyspace, *, imbalance: float = IMBALANCE, seed: int = 0) -> Ints:
    """Return the server of each range, with few servers for each transaction.

    imbalance  of the largest load over a server's share; a range above it is on a server of its own
    seed       gives the same plan again below `LARGE` rows; above, only in a new process
    raises     MissingPackage where the partitioner is not installed
    """
    if imbalance < 0:
        raise InputError(f"partitioned: imbalance is {imbalance}, must be 0 or above")
    with needed_by("sharding 'partitioned'"):
        import mtkahypar

    servers, accesses = len(keyspace.server_kops), keyspace.transactions
    if servers == 1 or len(accesses.per_s) == 0:
        raise InputError("partitioned: needs transactions, and more than one server")
    mtkahypar.set_seed(seed)
    library = mtkahypar.initialize(1, False)
    presets = mtkahypar.PresetType
    is_large = len(accesses.touched) >= LARGE
    context = library.context_from_preset(presets.LARGE_K if is_large else presets.DETERMINISTIC)
    context.set_partitioning_parameters(servers, imbalance, mtkahypar.Objective.KM1)
    context.logging = False
    weight = to_integers(keyspace.kops)
    if not keyspace.is_equal:
        share = (1 + imbalance) * weight.sum() * keyspace.server_kops / keyspace.server_kops.sum()
        context.set_individual_target_block_weights(np.ceil(share).astype(np.int64).tolist())
    edges = np.split(accesses.touched, accesses.first[1:-1])
    graph = library.create_hypergraph(
        context,
        len(weight),
        len(edges),
        [edge.tolist() for edge in edges],
        weight.tolist(),
        to_integers(accesses.per_s).tolist(),
    )
    return np.array(graph.partition(context).get_partition(), dtype=np.int64)


def to_integers(values: Floats) -> Ints:
    """Return weights as integers of 1 at least, in proportion to values."""
    positive = values[values > 0]
    if len(positive) and (values == positive[0]).all():
        return np.ones(len(values), dtype=np.int64)
    scale = WEIGHT_SCALE / positive.mean() if len(positive) else 0.0
    integers: Ints = np.maximum(1, np.rint(values * scale)).astype(np.int64)
    return integers
