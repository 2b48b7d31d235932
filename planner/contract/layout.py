"""Places of a network's nodes in a drawing, so that every picture of a network has the same layout.

Sources: Kamada and Kawai 1989 (small networks); de Silva and Tenenbaum 2004 (landmark multidimensional
scaling) and Fruchterman and Reingold 1991 (larger ones).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_EXACT: Final = 60
"""Nodes up to which every pair of nodes is placed by its distance."""
LANDMARKS: Final = 60
"""Nodes whose distances to all others place a larger network."""
MAX_FORCES: Final = 2e6
"""Pairs of nodes, times iterations, that forces are computed for."""
MAX_ITERATIONS: Final = 40


def place_nodes(nodes: pd.DataFrame, links: pd.DataFrame) -> pd.DataFrame:
    """Return the place of each node, columns x and y (y upwards), by the node's name.

    Args:
        nodes: node, and optionally x and y, which are kept, or latitude and longitude, which are projected.
        links: tail, head. Without places, nodes are placed by their distances in hops, the longest extent
            from left to right; the same network has the same places each time.
    """
    named = nodes.set_index("node")
    if _are_known(named, "x", "y"):
        return named[["x", "y"]].astype(float)
    if _are_known(named, "latitude", "longitude"):
        latitude = named["latitude"].astype(float)
        narrow = math.cos(math.radians(float(latitude.mean())))
        return pd.DataFrame({"x": named["longitude"].astype(float) * narrow, "y": latitude})
    index = pd.Index(named.index.astype(str))
    ends = np.stack([index.get_indexer(pd.Index(links[end].astype(str))) for end in ("tail", "head")])
    ends = np.unique(np.sort(ends, axis=0), axis=1).astype(np.int64)
    return pd.DataFrame(_lay_out(len(named), ends.tobytes()), index=named.index, columns=["x", "y"])


def _are_known(nodes: pd.DataFrame, *columns: str) -> bool:
    return len(nodes) > 0 and all(name in nodes and nodes[name].notna().all() for name in columns)


@functools.lru_cache(maxsize=32)
def _lay_out(count: int, ends: bytes) -> NDArray[np.float64]:
    """Return x and y of each node, shape (count, 2); `ends` has the nodes of each pair with a link."""
    pairs = np.frombuffer(ends, dtype=np.int64).reshape(2, -1)
    if count < 3:
        return np.column_stack([np.arange(count, dtype=float), np.zeros(count)])
    position = _place_all_pairs(count, pairs) if count <= MAX_EXACT else _place_by_landmarks(count, pairs)
    position = position - position.mean(axis=0)
    _, _, axes = np.linalg.svd(position, full_matrices=False)
    turned = position @ axes.T
    turned.setflags(write=False)
    return np.asarray(turned)


def _place_all_pairs(count: int, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    import networkx as nx

    graph = _graph(count, pairs)
    hops = _hops(count, pairs, None)
    distance = {node: dict(enumerate(hops[node].tolist())) for node in range(count)}
    layout = nx.kamada_kawai_layout(graph, dist=distance)
    return np.array([layout[node] for node in range(count)])


def _place_by_landmarks(count: int, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Place nodes by their distances to landmarks, then push them apart."""
    import networkx as nx

    landmarks = np.unique(np.linspace(0, count - 1, LANDMARKS).astype(int))
    square = _hops(count, pairs, landmarks).T ** 2
    centred = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    left_vectors, size, _ = np.linalg.svd(centred, full_matrices=False)
    position = left_vectors[:, :2] * np.sqrt(size[:2])
    position = np.asarray(position / (np.abs(position).max() or 1.0), dtype=float)
    position += 1e-3 * np.random.default_rng(1).standard_normal(position.shape)  # equal nodes apart
    iterations = min(MAX_ITERATIONS, int(MAX_FORCES / count**2))
    if not iterations:
        return position
    layout = nx.spring_layout(
        _graph(count, pairs), pos=dict(enumerate(position)), iterations=iterations, seed=1, method="force"
    )
    return np.array([layout[node] for node in range(count)])


def _graph(count: int, pairs: NDArray[np.int64]) -> Any:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(pairs.T.tolist())
    return graph


def _hops(count: int, pairs: NDArray[np.int64], start: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Return hops from each start, default all, to each node; two more than the largest where no path is."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import shortest_path

    graph = sp.csr_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(count, count))
    hops = shortest_path(graph, directed=False, unweighted=True, indices=start)
    largest = float(hops[np.isfinite(hops)].max(initial=1.0))
    return np.where(np.isfinite(hops), hops, largest + 2.0)
