"""Which switches hold which partition of the addresses: Algorithm 1, for AB and standard fat trees."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["ab", "standard"]


def type_b(kind: Kind, k: int) -> NDArray[np.bool_]:
    """(k,) the pods whose aggregation switches connect across the blocks of cores."""
    return np.asarray((np.arange(k) % 2 == 1) & (kind == "ab"), dtype=bool)


def cores_of(kind: Kind, k: int) -> NDArray[np.int64]:
    """(k, k/2, k/2) the cores that each aggregation switch of each pod connects to."""
    half = k // 2
    grid = np.arange(half**2).reshape(half, half)
    return np.stack([grid.T if b else grid for b in type_b(kind, k)])


def core_partition(k: int, copies: int) -> NDArray[np.int64]:
    """(k^2/4,) the partition that each core holds; `copies` is ra."""
    half = k // 2
    count = half // copies  # partitions in each aggregation switch
    block, place = np.divmod(np.arange(half**2), half)
    return np.asarray(block // copies * count + place // copies, dtype=np.int64)


def aggregation_partitions(kind: Kind, k: int, copies: int) -> NDArray[np.bool_]:
    """(k, k/2, n) whether an aggregation switch holds a partition: that of any core it connects to."""
    half = k // 2
    held = np.zeros((k, half, (half // copies) ** 2), dtype=bool)
    partition = core_partition(k, copies)[cores_of(kind, k)]
    pod, switch, _ = np.indices(partition.shape)
    held[pod, switch, partition] = True
    return held
