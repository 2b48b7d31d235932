"""Value of coordination in every system, with true information and with worse information.

python -m benchmarks.coordination [--system S]... [--draws N] [--only-designs] [--out STORE] [--workers N]
python -m benchmarks.coordination --pictures

Writes data/coordination/designs.csv and curves.csv, with planner's version, for the dashboard and
`planner.coordination.measurement.load_release`. Systems that are not measured keep their rows. With a store,
a stopped measurement continues. `--only-designs` keeps the rows of curves.csv. `--pictures` measures nothing:
it draws the pictures of the README from both files.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.common import machine
from planner.coordination import measurement
from planner.version import __version__

FOLDER = Path(__file__).parents[1] / "data" / "coordination"
PICTURES = FOLDER.parent / "pictures"
TOLERANCE = 1e-6


def check_designs(measured: measurement.Measurement) -> None:
    """Check invariants of measured designs; raise AssertionError."""
    name = measured.system.name
    shares = measured.frame["share"]
    assert not measured.failed, measured.failed
    assert measured.bound is not None, f"{name}: no bound is proven"
    assert shares.iloc[0] == 0, f"{name}: shares must start at the first design"
    assert (measured.frame["share_high"].fillna(shares) <= 1 + TOLERANCE).all(), (
        f"{name}: better than the bound"
    )


def check(measured: measurement.Curves) -> None:
    """Check invariants of any measured curves; raise AssertionError."""
    name = measured.system.name
    finite = measured.frame["share_high"].dropna()
    assert (finite <= 1 + TOLERANCE).all(), f"{name}: a plan is better than the bound"
    counts = measured.frame.groupby(["parameter", "design"])["value"].nunique()
    assert measured.system.studies.coordination is not None
    for degradation in measured.system.studies.coordination.degradations:
        counted = counts.loc[[degradation.parameter]]
        assert (counted == len(degradation.values)).all(), f"{name}: {degradation.parameter} has gaps"
    assert measured.frame["performance"].notna().all(), measured.failed


def merge(path: Path, fresh: pd.DataFrame) -> pd.DataFrame:
    """Return the fresh rows and the file's rows of other systems, in order of systems."""
    fresh = fresh.map(lambda value: f"{value:.7g}" if isinstance(value, float) else value)
    fresh = fresh.assign(version=__version__)
    if path.exists():
        old = pd.read_csv(path, keep_default_na=False, dtype=str)
        old = old[~old["system"].isin(fresh["system"])]
        fresh = pd.concat([fresh.astype(object), old], ignore_index=True)
    return fresh.sort_values("system", kind="stable", ignore_index=True)


def draw_pictures() -> None:
    """Draw the shares of all designs, and their curves over the age of information."""
    from planner.reports import charts

    designs, curves = measurement.load_release()
    charts.save_picture(charts.coordination(designs), PICTURES / "coordination.svg")
    charts.save_picture(charts.curves(curves, "age"), PICTURES / "age.svg")


def main() -> None:
    """Measure systems, check and write the results, and print them in sentences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", action="append", help="measure only this one; repeatable")
    parser.add_argument("--draws", type=int, default=10, help="seeds of each instance")
    parser.add_argument("--only-designs", action="store_true", help="no curves of worse information")
    parser.add_argument("--out", type=Path, help="store of the runs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pictures", action="store_true", help="draw the pictures of the README, and end")
    arguments = parser.parse_args()
    if arguments.pictures:
        draw_pictures()
        return
    print(machine(), flush=True)
    start = time.monotonic()
    inputs: dict[str, Any] = {
        "out": arguments.out,
        "draws": arguments.draws,
        "workers": arguments.workers,
    }
    FOLDER.mkdir(exist_ok=True)
    curves = [] if arguments.only_designs else measurement.curves(arguments.system, **inputs)
    measured = [curve.measured for curve in curves] or measurement.measure(arguments.system, **inputs)
    for system in measured:
        check_designs(system)
        for sentence in system.sentences():
            print(f"- {sentence}")
    for curve in curves:
        check(curve)
        for sentence in curve.sentences():
            print(f"- {sentence}")
    frames = {"designs": pd.concat([system.frame for system in measured], ignore_index=True)}
    if curves:
        frames["curves"] = pd.concat([curve.frame for curve in curves], ignore_index=True)
    for name, frame in frames.items():
        path = FOLDER / f"{name}.csv"
        merge(path, frame).to_csv(path, index=False, lineterminator="\n")
        print(f"wrote {len(frame):,} rows to {path}")
    print(f"{time.monotonic() - start:.0f} s, {machine()}")


if __name__ == "__main__":
    main()
