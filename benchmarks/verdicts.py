"""Our values of all published ones: what ships with planner, and the table in the README.

python -m benchmarks.verdicts           every target in full, into README.md (almost an hour)
python -m benchmarks.verdicts --quick   every target quickly, into data/reproduction and README.md
"""

from __future__ import annotations

import itertools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common import machine, parser_of
from planner.runs import reproduction
from planner.runs.reproduction import Verdict
from planner.runs.shipped_verdicts import rows_of, write_shipped

ROOT = Path(__file__).parents[1]
VALUES = ROOT / "data" / "reproduction" / "values.csv"
BEGIN, END = "<!-- verdicts: made by python -m benchmarks.verdicts -->", "<!-- end of verdicts -->"


def run(name: str, *, quick: bool) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Run a target; return the number of its values with each verdict, and the rows that ship."""
    ((system, target),) = reproduction.find_targets([name])
    one = reproduction.run_target(system, target, quick=quick)
    if one.error is not None:
        raise one.error
    print(f"{one.name:40} {one.seconds:8.1f} s  {one.counts()}", flush=True)
    return {"target": one.name, **one.counts()}, rows_of(one)


def write_readme(table: pd.DataFrame, kind: str) -> None:
    """Write the counts by system into the README, between its two comments."""
    by_system = table.groupby(table["target"].str.partition("/")[0], sort=False).sum(numeric_only=True)
    by_system.loc["all"] = by_system.sum()
    verdicts = [str(verdict) for verdict in Verdict]
    lines = ["| system | " + " | ".join(verdicts) + " |", "|---" + "|--:" * len(verdicts) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(by_system.loc[name, verdict]) for verdict in verdicts) + " |"
        for name in by_system.index
    ]
    lines += ["", f"Counts of {kind} runs."]
    path = ROOT / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


def main() -> None:
    """Run all targets and write the counts."""
    quick = parser_of(__doc__).parse_args().quick
    print(machine())
    names = [f"{system.name}/{target.name}" for system, target in reproduction.find_targets()]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        counts, rows = zip(*pool.map(partial(run, quick=quick), names), strict=True)
    if quick:
        write_shipped(itertools.chain(*rows), f"{date.today():%Y-%m-%d}", VALUES)
    write_readme(pd.DataFrame(list(counts)), "quick" if quick else "complete")


if __name__ == "__main__":
    main()
