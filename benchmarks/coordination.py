"""Value of coordination in every system, with true information and with worse information.

python -m benchmarks.coordination [--system S]... [--out STORE] [--workers N]

Writes data/coordination/designs.csv and curves.csv, with planner's version, for the dashboard and
`planner.coordination.measurement.load_release`. Systems that are not measured keep their rows. With a store,
a stopped measurement continues.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pandas as pd

from benchmarks.common import machine
from planner.coordination import measurement
from planner.version import __version__

FOLDER = Path(__file__).parents[1] / "data" / "coordination"
TOLERANCE = 1e-6


def check(one: measurement.Curves) -> None:
    """Check invariants of any measurement; raise AssertionError."""
    name = one.system.name
    shares = one.measured.frame["share"]
    assert not one.measured.failed, one.measured.failed
    assert one.measured.bound is not None, f"{name}: no bound is proven"
    assert shares.iloc[0] == 0, f"{name}: shares must start at the first design"
    assert (shares <= 1 + TOLERANCE).all(), f"{name}: a plan is better than the bound"
    finite = one.frame["share"].dropna()
    assert (finite <= 1 + TOLERANCE).all(), f"{name}: a plan is better than the bound"
    counts = one.frame.groupby(["parameter", "design"])["value"].nunique()
    assert one.system.studies.coordination is not None
    for degradation in one.system.studies.coordination.degradations:
        counted = counts.loc[[degradation.parameter]]
        assert (counted == len(degradation.values)).all(), f"{name}: {degradation.parameter} has gaps"
    assert one.frame["performance"].notna().all(), one.failed


def merge(path: Path, fresh: pd.DataFrame) -> pd.DataFrame:
    """Return the fresh rows and the file's rows of other systems, in order of systems."""
    fresh = fresh.map(lambda value: f"{value:.7g}" if isinstance(value, float) else value)
    fresh = fresh.assign(version=__version__)
    if path.exists():
        old = pd.read_csv(path, keep_default_na=False, dtype=str)
        old = old[~old["system"].isin(fresh["system"])]
        fresh = pd.concat([fresh.astype(object), old], ignore_index=True)
    return fresh.sort_values("system", kind="stable", ignore_index=True)


def main() -> None:
    """Measure systems, check and write the results, and print them in sentences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", action="append", help="measure only this one; repeatable")
    parser.add_argument("--out", type=Path, help="store of the runs")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print(machine(), flush=True)
    start = time.monotonic()
    curves = measurement.curves(arguments.system, out=arguments.out, workers=arguments.workers)
    FOLDER.mkdir(exist_ok=True)
    frames = {
        "designs": pd.concat([curve.measured.frame for curve in curves], ignore_index=True),
        "curves": pd.concat([curve.frame for curve in curves], ignore_index=True),
    }
    for curve in curves:
        check(curve)
        for sentence in (*curve.measured.sentences(), *curve.sentences()):
            print(f"- {sentence}")
    for name, frame in frames.items():
        path = FOLDER / f"{name}.csv"
        merge(path, frame).to_csv(path, index=False, lineterminator="\n")
        print(f"wrote {len(frame):,} rows to {path}")
    print(f"{time.monotonic() - start:.0f} s, {machine()}")


if __name__ == "__main__":
    main()
