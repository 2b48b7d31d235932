"""First use of each system: an empty kernel cache, then a full one, each run in a fresh process.

    python -m benchmarks.first_use [--system S]...

Each system decides its smallest scenario by one design or a few. `seconds` and `compiling` are those that the
runs report, added up over the designs; the processor's user time is that of the whole process, imports
included, and depends least on what else the machine does. Python's own compiled modules are on disk, as after
any earlier command. Where a pack of kernels was built (`planner doctor --pack`), the first run loads it.

Asserted: both runs of a system have the same objective values and headline figures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.common import machine
from planner.kernel_packs import PACK

SCENARIOS: Final = {
    "brokering": ("brokering/own_data",),
    "capacity": ("capacity/own_data",),
    "geostore": ("geostore/own_data", "--designs", "optimum,near_users"),
    "cdnrouting": ("cdnrouting/own_data", "--designs", "joint,separate"),
    "membership": ("membership/own_data",),
    "queries": ("queries/own_data",),
    "rotors": ("rotors/own_data", "--designs", "two_hop,direct"),
    "consolidation": ("consolidation/own_data", "--designs", "patterns,best_fit"),
    "contracts": ("contracts/own_data",),
    "fairshare": ("fairshare/own_data", "--designs", "optimum,fq"),
    "analytics": ("analytics/own_data",),
    "flowtables": ("flowtables/own_data", "--designs", "merged,all"),
    "updates": ("updates/diamond", "--designs", "ordered,two_phase_changed"),
    "topology": ("topology/own_data",),
    "circuits": ("circuits/exact_8", "--designs", "solstice,eclipse"),
    "circuitflows": ("circuitflows/own_data",),
    "coflows": ("coflows/own_data",),
    "livevideo": ("livevideo/table_4_3", "--designs", "vdn", "--set", "problem.videos=50"),
    "multicast": ("multicast/own_tree",),
    "traffic": ("traffic/abilene",),
}
"""Arguments of `planner compare`."""
FIRST_ANSWER_S: Final = 5.0
SHORT_ANSWER_S: Final = 3.0
MAX_RATIO: Final = 3.0
"""Limits of the first run: its user time, that of nine systems of ten, and its seconds as a multiple of those
of the second."""


KEPT_VARIABLES: Final = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


@dataclass(frozen=True, kw_only=True)
class Use:
    """A run of a scenario in a fresh process: wall and user seconds, and the reports of its designs."""

    wall_s: float
    user_s: float
    seconds: float
    compile_s: float
    values: dict[str, tuple[float | None, float | None]]


def run_scenario(arguments: tuple[str, ...], cache: str) -> Use:
    """Run a scenario in a fresh process with kernels in `cache`."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    result = subprocess.run(
        [sys.executable, "-m", "planner", "compare", *arguments, "--json"],
        env={**KEPT_VARIABLES, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{arguments[0]}: {result.stderr[-500:]}"
    wall_s = time.perf_counter() - start
    user_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    answer: dict[str, Any] = json.loads(result.stdout)
    runs, headline = answer["runs"], answer["headline"]["metric"]
    return Use(
        wall_s=wall_s,
        user_s=user_s,
        seconds=sum(run["seconds"] for run in runs),
        compile_s=sum(run["compile_s"] or 0.0 for run in runs),
        values={run["design"]: (run["objective"], run["metrics"].get(headline)) for run in runs},
    )


def check_same(system: str, first: Use, second: Use) -> None:
    """Check that two runs have the same objective values and headline figures."""
    assert first.values.keys() == second.values.keys()
    for design, values in first.values.items():
        for value, other in zip(values, second.values[design], strict=True):
            same = value == other or (
                value is not None
                and other is not None
                and math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
            )
            assert same, f"{system}, {design}: {value} at first, then {other}"


def main() -> None:
    """Print a row for each run of each system."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", action="append", choices=SCENARIOS, help="only this one; repeatable")
    arguments = parser.parse_args()
    pack = "a pack of kernels" if PACK.exists() else "no pack of kernels"
    print(f"{machine()}; {pack}")
    print(f"{'system':14}{'run':8}{'wall s':>8}{'user s':>8}{'compiling s':>13}{'seconds':>9}")
    with tempfile.TemporaryDirectory(prefix="kernels-") as cache:
        run_scenario(SCENARIOS["traffic"], cache)  # writes Python's compiled modules
    firsts = []
    for system in arguments.system or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="kernels-") as cache:
            uses = {name: run_scenario(SCENARIOS[system], cache) for name in ("first", "second")}
        for name, use in uses.items():
            print(
                f"{system:14}{name:8}{use.wall_s:8.1f}{use.user_s:8.1f}{use.compile_s:13.2f}{use.seconds:9.3f}",
                flush=True,
            )
        check_same(system, uses["first"], uses["second"])
        ratio, user_s = uses["first"].seconds / uses["second"].seconds, uses["first"].user_s
        firsts.append(user_s)
        print(
            f"{'':14}{'within' if user_s <= FIRST_ANSWER_S else 'OVER'} {FIRST_ANSWER_S:g} s of user time; "
            f"seconds {ratio:.1f} times as long, {'within' if ratio <= MAX_RATIO else 'OVER'} {MAX_RATIO:g}"
        )
    within_3 = sum(user_s <= SHORT_ANSWER_S for user_s in firsts)
    print(f"{within_3} of {len(firsts)} first runs within {SHORT_ANSWER_S:g} s of user time; {machine()}")


if __name__ == "__main__":
    main()
