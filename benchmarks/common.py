"""Parts that benchmarks share: arguments, the machine's load, and median times."""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any


def parser_of(text: str | None, quick: str = "fewer and smaller cases") -> argparse.ArgumentParser:
    """Return a parser with a module's docstring as its help, and with `--quick`."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def machine() -> str:
    """Return cores and load, as `2 cores, load 0.5`."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return int(connection.getsockname()[1])


def median_time(
    work: Callable[[], Any],
    repeats: int = 3,
    *,
    warm: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Any]:
    """Return the median seconds of some calls and the last result; `warm`: after one call that compiles."""
    if warm:
        work()
    seconds, result = [], None
    for _ in range(repeats):
        start = clock()
        result = work()
        seconds.append(clock() - start)
    return statistics.median(seconds), result


def time_beside_bound(
    problem: Any, designs: Sequence[Any], check: Callable[[Any, Any], Any], *, gap: float, tolerance: float
) -> tuple[float, list[tuple[float, float]]]:
    """Return the bound of the first design, and the objective and processor seconds of each.

    Asserts that plans pass the check, that the first design is within `gap` of its bound, and that no
    design is more than `tolerance` above it, both relative.
    """
    results, bound = [], None
    for design in designs:
        start = time.process_time()
        decision = design.decide(problem)
        seconds = time.process_time() - start
        objective = decision.proof.objective
        assert decision.plan is not None
        assert objective is not None
        assert not len(check(problem, decision.plan))
        if bound is None:
            bound = decision.proof.bound
            assert bound is not None
            assert objective >= (1 - gap) * bound
        assert objective <= bound * (1 + tolerance)
        results.append((objective, seconds))
    assert bound is not None
    return bound, results
