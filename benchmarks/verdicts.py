"""How many published values are reproduced: the table in the README, and the counts that tests hold.

python -m benchmarks.verdicts           every target whole, into README.md (most of an hour)
python -m benchmarks.verdicts --quick   every target quickly, into README.md and tests/verdicts.csv
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from planner import reproduce
from planner.reproduce import Verdict

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- verdicts: made by python -m benchmarks.verdicts -->", "<!-- end of verdicts -->"


def run(name: str, *, quick: bool) -> dict[str, Any]:
    """How many of a target's values have each verdict."""
    ((system, target),) = reproduce.find_targets([name])
    one = reproduce.reproduce(system, target, quick=quick)
    if one.error is not None:
        raise one.error
    print(f"{one.name:40} {one.seconds:8.1f} s  {one.counts()}", flush=True)
    return {"target": one.name, **one.counts()}


def into_readme(table: pd.DataFrame, how: str) -> None:
    """The counts by system, between the marks."""
    by_system = table.groupby(table["target"].str.partition("/")[0], sort=False).sum(numeric_only=True)
    by_system.loc["all"] = by_system.sum()
    heads = [str(verdict) for verdict in Verdict]
    lines = ["| system | " + " | ".join(heads) + " |", "|---" + "|--:" * len(heads) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(by_system.loc[name, head]) for head in heads) + " |"
        for name in by_system.index
    ]
    lines += ["", f"Counts of {how} runs."]
    path = ROOT / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


def main() -> None:
    """Run all targets and write the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    names = [f"{system.name}/{target.name}" for system, target in reproduce.find_targets()]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        table = pd.DataFrame(list(pool.map(partial(run, quick=quick), names)))
    if quick:
        table.to_csv(ROOT / "tests" / "verdicts.csv", index=False)
    into_readme(table, "quick" if quick else "complete")


if __name__ == "__main__":
    main()
