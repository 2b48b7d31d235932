"""Histories of Eiger's protocol: user CPU seconds to draw, simulate and check them.

    python -m benchmarks.geostore_protocol [--quick]

Goal: 10,000 histories of 120 operations over three datacenters in 20 user CPU seconds. All of them must be
causal; with Fig. 5 as printed 99% of the busy ones must return an empty value.
"""

from __future__ import annotations

import argparse
import resource
from typing import Final

from benchmarks.common import machine
from planner.kernels import compile_all
from planner_models.geostore.protocol.checker import IS_EMPTY, check_history
from planner_models.geostore.protocol.history import run_many
from planner_models.geostore.protocol.workloads import Mix, draw_operations, full_cluster

HISTORIES: Final = 10_000
GOAL_S: Final = 20.0
BATCH: Final = 500
"""Histories that are in memory at a time."""
PRINTED: Final = 1_500
BUSY_OPERATIONS: Final = 40
"""Operations of each client in the runs of Fig. 5."""
BUSY: Final = Mix(batches=0.1, transactions=0.5, adds=0.05, keys=4)


def user_s() -> float:
    """Return the user CPU seconds of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def run_histories(
    count: int, *, mix: Mix, operations: int = 20, think_ms: float = 1.0, is_printed: bool = False
) -> tuple[int, int]:
    """Return the histories that breach a rule, and those that return an empty value."""
    cluster = full_cluster()
    breaches, empty = 0, 0
    for seed in range(0, count, BATCH):
        size = min(BATCH, count - seed)
        batches = draw_operations(cluster, histories=size, operations=operations, mix=mix, seed=seed)
        for history in run_many(cluster, batches, think_ms=think_ms, is_printed=is_printed, seed=seed):
            finding = check_history(cluster, history)
            breaches += not finding.is_valid
            empty += int(finding.count[IS_EMPTY] > 0)
    return breaches, empty


def main() -> None:
    """Print times beside the goal; raise AssertionError where the checker disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the histories")
    share = 10 if parser.parse_args().quick else 1
    print(machine())
    with compile_all():
        start = user_s()
        run_histories(1, mix=Mix())
        print(f"compiling, or loading compiled code: {user_s() - start:.1f} s")
        start = user_s()
        breaches, _ = run_histories(HISTORIES // share, mix=Mix())
        seconds = user_s() - start
        print(f"{HISTORIES // share} histories: {seconds:.1f} s, goal {GOAL_S / share:g} s")
        assert breaches == 0
        for is_printed in (True, False):
            start = user_s()
            _, empty = run_histories(
                PRINTED // share, mix=BUSY, operations=BUSY_OPERATIONS, think_ms=0.1, is_printed=is_printed
            )
            name = "as printed" if is_printed else "repaired"
            print(f"Fig. 5 {name}: {empty} of {PRINTED // share} empty, {user_s() - start:.1f} s")
            assert empty > 0.99 * PRINTED // share if is_printed else empty == 0


if __name__ == "__main__":
    main()
