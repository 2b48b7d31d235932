"""Kernels by the time that compiling them takes in first answers, beside another version of planner.

    python -m benchmarks.compile_times [--system S]... [--beside PYTHON] [--rows N]

The scenarios are those of `benchmarks.first_use`, each in a fresh process with an empty kernel cache. CPU
seconds of a kernel include Numba's own functions that it calls, and no other kernels. A kernel that Python
runs takes none. With `--beside`, the Python of an environment where another version is installed answers
the same questions.

Asserted: each kernel of the table was compiled by one of the versions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.common import machine
from benchmarks.first_use import KEPT_VARIABLES, SCENARIOS

CHILD: Final = """
import atexit, collections, json, os, runpy, sys, time
from numba.core import event

seconds, running = collections.Counter(), []

class Listener(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}"
        if name.startswith("numba.") and running:
            name = running[-1][0]
        running.append([name, time.process_time(), 0.0])

    def on_end(self, event):
        name, start, inner = running.pop()
        total = time.process_time() - start
        seconds[name] += total - inner
        if running:
            running[-1][2] += total

def write():
    if seconds:  # of the process that decides
        with open(os.environ["COMPILE_TIMES"], "w") as file:
            json.dump(seconds, file)

event.register("numba:compile", Listener())
atexit.register(write)
runpy.run_module("planner", run_name="__main__", alter_sys=True)
"""
"""Runs a command of planner; needs nothing of this version."""


def time_kernels(python: str, arguments: tuple[str, ...]) -> Counter[str]:
    """Return the CPU seconds of compiling each kernel in the first answer of a scenario."""
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        times = Path(folder, "times.json")
        result = subprocess.run(
            [python, "-c", CHILD, "compare", *arguments, "--json"],
            env={
                **KEPT_VARIABLES,
                "NUMBA_CACHE_DIR": str(Path(folder, "cache")),
                "COMPILE_TIMES": str(times),
            },
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{arguments[0]}: {result.stderr[-500:]}"
        return Counter(json.loads(times.read_text()) if times.exists() else {})


def main() -> None:
    """Print a row for each of the dearest kernels, and the sums of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", action="append", choices=SCENARIOS, help="only this one; repeatable")
    parser.add_argument("--beside", metavar="PYTHON", help="of an environment with another version")
    parser.add_argument("--rows", type=int, default=40)
    arguments = parser.parse_args()
    pythons = [sys.executable, *([str(Path(arguments.beside).absolute())] if arguments.beside else [])]
    columns: list[Counter[str]] = [Counter() for _ in pythons]
    print(machine(), flush=True)
    for system in arguments.system or SCENARIOS:
        for column, python in zip(columns, pythons, strict=True):
            times = time_kernels(python, SCENARIOS[system])
            column.update(times)
            print(f"{system:14}{sum(times.values()):8.2f} CPU s, {len(times)} kernels", flush=True)
    names = sorted(set().union(*columns), key=lambda name: -max(column[name] for column in columns))
    print(f"{'kernel':90}" + "".join(f"{name:>9}" for name in ("now", "before")[: len(columns)]))
    for name in names[: arguments.rows]:
        assert any(column[name] > 0 for column in columns)
        print(
            f"{name.removeprefix('planner_models.'):90}"
            + "".join(f"{column[name]:9.2f}" for column in columns)
        )
    print(f"{'all':90}" + "".join(f"{sum(column.values()):9.2f}" for column in columns))
    print(machine())


if __name__ == "__main__":
    main()
