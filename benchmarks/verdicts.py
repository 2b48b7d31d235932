"""Number of reproduced published values: the table in the README, and the counts that tests require.

python -m benchmarks.verdicts           every target in full, into README.md (almost an hour)
python -m benchmarks.verdicts --quick   every target quickly, into README.md and tests/verdicts.csv
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common import machine, parser_of
from planner.runs import reproduction
from planner.runs.reproduction import Verdict

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- verdicts: made by python -m benchmarks.verdicts -->", "<!-- end of verdicts -->"


def count_verdicts(name: str, *, quick: bool) -> dict[str, Any]:
    """Run a target and return the number of its values with each verdict."""
    ((system, target),) = reproduction.find_targets([name])
    one = reproduction.run_target(system, target, quick=quick)
    if one.error is not None:
        raise one.error
    print(f"{one.name:40} {one.seconds:8.1f} s  {one.counts()}", flush=True)
    return {"target": one.name, **one.counts()}


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
        table = pd.DataFrame(list(pool.map(partial(count_verdicts, quick=quick), names)))
    if quick:
        table.to_csv(ROOT / "tests" / "verdicts.csv", index=False)
    write_readme(table, "quick" if quick else "complete")


if __name__ == "__main__":
    main()
