"""Growing clusters: all learn of all, and what Algorithms 1 and 2 print is held against the text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner_models.membership.protocols.clusters import Clusters, Setting, discover, initialize, next_size
from planner_models.membership.protocols.discovery import start_graph, strong_diameter


def star(leaves: int) -> np.ndarray:
    edges = np.zeros((leaves + 1, leaves + 1), dtype=bool)
    edges[0, 1:] = edges[1:, 0] = True
    return edges


@pytest.mark.parametrize("start", ["random", "grid", "ring"])
@pytest.mark.parametrize("count", [2, 5, 40])
def test_all_learn_of_all(start: str, count: int) -> None:
    rng = np.random.default_rng(count)
    result, _ = discover(start_graph(count, start, rng), rng)
    assert result.rounds == len(result.messages)
    assert result.messages[-1] <= count


def test_a_graph_that_is_one_way_is_refused() -> None:
    with pytest.raises(ValueError, match="must be strongly connected"):
        discover(np.eye(4, k=1, dtype=bool), np.random.default_rng(0))


def test_merging_leaves_each_process_in_one_cluster() -> None:
    rng = np.random.default_rng(1)
    run = Clusters.single(start_graph(64, "random", rng), rng)
    for _ in range(4):
        initialize(run, "text")
        members = sorted(u for cluster in run.members.values() for u in cluster)
        assert members == list(range(64))
        assert all(run.centre[u] == centre for centre, us in run.members.items() for u in us)
        assert all(centre in us for centre, us in run.members.items())


def test_line_4_as_printed_does_not_reduce_a_star_by_a_constant_factor() -> None:
    """Line 4 prints that a cluster with several requests becomes a joiner; the text says joinee."""
    remaining = {}
    for reading in ("text", "printed"):
        run = Clusters.single(star(64), np.random.default_rng(0))
        initialize(run, reading)  # type: ignore[arg-type]
        remaining[reading] = len(run.members)
    assert remaining["text"] <= 2
    assert remaining["printed"] >= 64


def test_the_size_of_the_proof_does_not_grow() -> None:
    """The proof begins with log^2 n, Algorithm 1 with log^4 n: from the first, s d / log n is s."""
    log_n = math.log2(1e6)
    assert next_size(log_n**2, 0.5, log_n) == pytest.approx(log_n**2)
    assert next_size(log_n**4, 0.5, log_n) > 10 * log_n**4


@pytest.mark.parametrize(("power", "is_smaller"), [(16, False), (17, True)])
def test_the_first_size_is_below_n_above_65536_only(power: int, is_smaller: bool) -> None:
    assert (power**4 < 2**power) is is_smaller


def test_a_smaller_first_size_still_finds_all() -> None:
    rng = np.random.default_rng(0)
    result, _ = discover(start_graph(81, "grid", rng), rng, Setting(first_size=2.0))
    assert result.rounds > 0


def test_the_strong_diameter_is_that_of_shortest_paths() -> None:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import shortest_path

    rng = np.random.default_rng(2)
    for _ in range(5):
        edges = start_graph(30, "random", rng)
        assert strong_diameter(edges) == shortest_path(csr_matrix(edges), unweighted=True).max()
