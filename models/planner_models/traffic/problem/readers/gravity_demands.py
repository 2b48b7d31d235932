"""Gravity demands: synthetic demands between the nodes of a network, from a seed."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from planner.arrays import Bools, Floats

Seed: TypeAlias = Annotated[int, Field(ge=0, description="seed of the gravity matrix")]
Pairs: TypeAlias = Annotated[
    int | None, Field(gt=0, description="number of demands, the largest; default: all")
]

MASS_SIGMA: Final = 1.0  # standard deviation of the logarithm of a node's mass, per unit of degree


def gravity_demands(
    *, nodes: int, tail: NDArray[np.intp], head: NDArray[np.intp], seed: int, populated: Bools | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Draw demands in proportion to masses of their ends: (source, target, share), shares add up to 1.

    A node's mass is its degree times a lognormal factor, separate for sending and receiving. A pair
    has a demand where links lead from one node to the other.

    tail, head  (links,) the nodes of each directed link
    populated   (nodes,) nodes that send and receive; default: all
    """
    rng = np.random.default_rng(seed)
    degree = np.bincount(tail, minlength=nodes) + np.bincount(head, minlength=nodes)
    mass = np.where(True if populated is None else populated, degree, 0)
    sent = mass * rng.lognormal(sigma=MASS_SIGMA, size=nodes)
    received = mass * rng.lognormal(sigma=MASS_SIGMA, size=nodes)
    matrix = np.outer(sent, received)
    np.fill_diagonal(matrix, 0)
    links = csr_array((np.ones(len(tail)), (tail, head)), shape=(nodes, nodes))
    components, _ = connected_components(links, connection="strong")
    if components > 1:
        matrix[np.isinf(dijkstra(links, unweighted=True))] = 0
    source, target = np.nonzero(matrix)
    rate = matrix[source, target]
    return source, target, rate / rate.sum() if len(rate) else rate


def keep_largest(rate: Floats, pairs: int | None) -> NDArray[np.intp]:
    """Return the positions of the `pairs` largest rates (of equal ones the first), ascending; None: all."""
    if pairs is None or pairs >= len(rate):
        return np.arange(len(rate))
    return np.sort(np.argsort(-rate, kind="stable")[:pairs])
