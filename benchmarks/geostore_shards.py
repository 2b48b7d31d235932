"""Shards of an ordered keyspace: time and share of the bound, of runs and of partitions.

    python -m benchmarks.geostore_shards [--quick]

Goals, in user CPU seconds, for 1,000,000 ranges over 1,000 servers: runs within 1% of the bound, after splits
of hot ranges, 1 s; 3,000,000 transactions with 1.24 servers each, 60 s. `--quick` leaves out the latter but
for a tenth of it.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from benchmarks.common import machine
from planner.kernels import compile_all
from planner_models.geostore.shards import generators
from planner_models.geostore.shards.contiguous import best_runs
from planner_models.geostore.shards.designs import hashed, partitioned, split_ranges
from planner_models.geostore.shards.keyspace import Keyspace
from planner_models.geostore.shards.sharding import Sharding, measure

RUNS_GOAL_S, PARTITION_GOAL_S = 1.0, 60.0
RUNS_GOAL_SHARE: Final = 1.01
SERVERS_GOAL: Final = 1.24
PIECE: Final = 0.02


def user_s() -> float:
    """Return the user CPU seconds of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the user CPU seconds that it took."""
    start = user_s()
    result = run()
    return result, user_s() - start


def report(name: str, keyspace: Keyspace, sharding: Sharding, seconds: float) -> float | None:
    """Print the metrics of a sharding; return the servers of a transaction."""
    metrics = measure(keyspace, sharding)
    figures = [f"{metrics.share_of_bound:.4f} of the bound"]
    if metrics.servers_per_scan is not None:
        figures.append(f"{metrics.servers_per_scan:.2f} servers a scan")
    if metrics.servers_per_op is not None:
        figures.append(f"{metrics.servers_per_op:.3f} servers a transaction")
    print(f"{name:32s} {', '.join(figures)}, {seconds:.2f} s", flush=True)
    return metrics.servers_per_op


def main() -> None:
    """Print figures beside the goals; raise AssertionError where an answer misses its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the transactions")
    quick = parser.parse_args().quick
    print(machine())
    with compile_all():
        best_runs(generators.lognormal(ranges=100, servers=5))
        for generate in (generators.zipf, generators.lognormal):
            keyspace = generate()
            for piece in (0.2, PIECE):
                sharding, seconds = timed(partial(split_ranges, keyspace, piece=piece))
                name = f"{generate.__name__}, pieces of {piece:g} servers"
                report(name, keyspace, sharding, seconds)
            print(f"  {int((sharding.pieces - 1).sum())} splits; goal {RUNS_GOAL_SHARE} in {RUNS_GOAL_S} s")
            assert measure(keyspace, sharding).share_of_bound <= RUNS_GOAL_SHARE
    size = 10 if quick else 1
    keyspace = generators.hidden_order(
        ranges=1_000_000 // size, servers=1_000 // size, transactions=3_000_000 // size
    )
    report("hashed", keyspace, hashed(keyspace), 0.0)
    sharding, seconds = timed(lambda: partitioned(keyspace))
    servers = report("partitioned", keyspace, sharding, seconds)
    print(f"  goal {SERVERS_GOAL} servers in {PARTITION_GOAL_S / size:g} s")
    assert servers is not None
    assert servers <= SERVERS_GOAL


if __name__ == "__main__":
    main()
