"""Address distribution on the three kinds of fat tree: the switches that hold each partition.

Cores form a square of k/2 by k/2. An aggregation switch of a pod connects to a line of it: a row in
every pod (standard), a row or a column in turn (AB), or a line with its own slope (PortLand).
Algorithm 1 cuts the square into blocks of ra by ra, which rows and columns meet in equal shares;
sloped lines meet residues instead of blocks in equal shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.arrays import Bools, Ints

Kind = Literal["ab", "standard", "portland"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """Switches that hold each partition.

    core         (cores, n) bool
    aggregation  (aggregation switches, n) bool, pod by pod
    """

    core: Bools
    aggregation: Bools

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return int(self.core.shape[1])


def connected_cores(kind: Kind, k: int) -> Ints:
    """Return the cores that each aggregation switch of each pod connects to, shape (k, k/2, k/2).

    PortLand: switch a of pod p connects to the cores (i, j) with i + p j = a, modulo k/2.

    source  section 3.1.2; the trees of Fig. 1 for 4-port switches
    """
    half = k // 2
    grid = np.arange(half**2).reshape(half, half)
    if kind == "portland":
        column = np.arange(half)
        row = (column[None, :, None] - np.arange(k)[:, None, None] * column[None, None, :]) % half
        return np.asarray(grid[row, column], dtype=np.int64)
    return np.stack([grid.T if kind == "ab" and pod % 2 else grid for pod in range(k)])


def core_partition(k: int, copies: int, kind: Kind = "ab") -> Ints:
    """Return the partition that each core holds, shape (k^2/4,); `copies` is ra."""
    half = k // 2
    count = half // copies  # partitions in each aggregation switch
    row, column = np.divmod(np.arange(half**2), half)
    if kind == "portland":
        return np.asarray(row % count * count + column % count, dtype=np.int64)
    return np.asarray(row // copies * count + column // copies, dtype=np.int64)


def aggregation_partitions(kind: Kind, k: int, copies: int) -> Bools:
    """Return whether each aggregation switch holds each partition, shape (k, k/2, n).

    A switch holds the partitions of the cores that it connects to.
    """
    half = k // 2
    held = np.zeros((k, half, (half // copies) ** 2), dtype=bool)
    partition = core_partition(k, copies, kind)[connected_cores(kind, k)]
    pod, switch, _ = np.indices(partition.shape)
    held[pod, switch, partition] = True
    return held


def distribute_addresses(kind: Kind, k: int, copies: int) -> Distribution:
    """Return the distribution of Algorithm 1, or its like for standard and PortLand trees.

    rc = ra^2 and n = (k / 2 ra)^2.
    """
    held = aggregation_partitions(kind, k, copies)
    count = held.shape[2]
    return Distribution(
        core=core_partition(k, copies, kind)[:, None] == np.arange(count),
        aggregation=held.reshape(-1, count),
    )
