"""How many published values are reproduced: the table in the README, and the counts that tests hold.

python -m benchmarks.verdicts           every target whole, into README.md (tens of minutes)
python -m benchmarks.verdicts --quick   every target quickly, into tests/verdicts.csv
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pandas as pd

from planner import reproduce
from planner.reproduce import Reproduction, Verdict

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- verdicts: made by python -m benchmarks.verdicts -->", "<!-- end of verdicts -->"


def counts(done: list[Reproduction]) -> pd.DataFrame:
    """A row for each target: how many of its values have each verdict."""
    return pd.DataFrame([{"target": one.name, **one.counts()} for one in done])


def into_readme(table: pd.DataFrame) -> None:
    """The counts by system, between the marks."""
    by_system = table.groupby(table["target"].str.partition("/")[0], sort=False).sum(numeric_only=True)
    by_system.loc["all"] = by_system.sum()
    heads = [str(verdict) for verdict in Verdict]
    lines = ["| system | " + " | ".join(heads) + " |", "|---" + "|--:" * len(heads) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(by_system.loc[name, head]) for head in heads) + " |"
        for name in by_system.index
    ]
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
    done = []
    for system, target in reproduce.find_targets():
        one = reproduce.reproduce(system, target, quick=quick)
        if one.error is not None:
            raise one.error
        print(f"{one.name:40} {one.seconds:8.1f} s  {one.counts()}", flush=True)
        done.append(one)
    if quick:
        counts(done).to_csv(ROOT / "tests" / "verdicts.csv", index=False)
    else:
        into_readme(counts(done))


if __name__ == "__main__":
    main()
