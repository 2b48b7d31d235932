"""Parts that benchmarks share: arguments, the machine's load, and median times."""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import time
from collections.abc import Callable
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
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


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
