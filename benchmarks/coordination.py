"""What coordination is worth in every system, and what is left of it where what is told is worse.

python -m benchmarks.coordination [--system S]... [--out STORE] [--workers N]

Writes data/coordination/designs.csv and curves.csv, with planner's version: what the dashboard and
`planner.coordination.shipped` show. Systems that are not measured keep their rows. With a store a run
that was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import pandas as pd

from planner import __version__, coordination

FOLDER = Path(__file__).parents[1] / "data" / "coordination"
TOLERANCE = 1e-6


def held(one: coordination.Curves) -> None:
    """What must be true of any measurement."""
    name = one.system.name
    shares = one.measured.frame["share"]
    assert not one.measured.failed, one.measured.failed
    assert one.measured.bound is not None, f"{name}: no bound is proven"
    assert shares.iloc[0] == 0, f"{name}: the first design is where shares start"
    assert (shares <= 1 + TOLERANCE).all(), f"{name}: a plan is better than the bound"
    known = one.frame["share"].dropna()
    assert (known <= 1 + TOLERANCE).all(), f"{name}: a plan is better than the bound"
    counts = one.frame.groupby(["parameter", "design"])["value"].nunique()
    assert one.system.coordination is not None
    for blur in one.system.coordination.blurs:
        tried = counts.loc[[blur.parameter]]
        assert (tried == len(blur.values)).all(), f"{name}: {blur.parameter} has gaps"
    assert one.frame["performance"].notna().all(), one.failed


def kept(path: Path, fresh: pd.DataFrame) -> pd.DataFrame:
    """The fresh rows, and those of other systems that the file has, by system."""
    fresh = fresh.map(lambda value: f"{value:.7g}" if isinstance(value, float) else value)
    fresh = fresh.assign(version=__version__)
    if path.exists():
        old = pd.read_csv(path, keep_default_na=False, dtype=str)
        old = old[~old["system"].isin(fresh["system"])]
        fresh = pd.concat([fresh.astype(object), old], ignore_index=True)
    return fresh.sort_values("system", kind="stable", ignore_index=True)


def main() -> None:
    """Measure, check, write and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", action="append", help="only this one; repeatable")
    parser.add_argument("--out", type=Path, help="a store that keeps the runs")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    begun = time.monotonic()
    found = coordination.curves(given.system, out=given.out, workers=given.workers)
    FOLDER.mkdir(exist_ok=True)
    frames = {
        "designs": pd.concat([one.measured.frame for one in found], ignore_index=True),
        "curves": pd.concat([one.frame for one in found], ignore_index=True),
    }
    for one in found:
        held(one)
        for sentence in (*one.measured.sentences(), *one.sentences()):
            print(f"- {sentence}")
    for name, frame in frames.items():
        path = FOLDER / f"{name}.csv"
        kept(path, frame).to_csv(path, index=False, lineterminator="\n")
        print(f"wrote {len(frame):,} rows to {path}")
    print(f"{time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
