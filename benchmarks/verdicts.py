"""Our values of all published ones: the shipped ones, and the table in the README.

python -m benchmarks.verdicts --quick     every target quickly, into data/reproduction and README.md; those
                                          for which a quick run is too short keep the values that ship
python -m benchmarks.verdicts TARGET ...  these in full, into data/reproduction and README.md
                                          (circuitflows/table_2_2 circuitflows/one_ring: ten minutes)
python -m benchmarks.verdicts             every target in full (an hour and a half); prints the counts
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.common import machine, parser_of
from planner.runs import reproduction
from planner.runs.reproduction import Reproduction, Verdict
from planner.runs.shipped_verdicts import load_shipped, read_rows, rows_of, write_shipped

ROOT = Path(__file__).parents[1]
VALUES = ROOT / "data" / "reproduction" / "values.csv"
BEGIN, END = "<!-- verdicts: made by python -m benchmarks.verdicts -->", "<!-- end of verdicts -->"


def run(name: str, *, quick: bool) -> tuple[dict[str, object], list[dict[str, str]], bool]:
    """Run a target; return its counts by verdict, the rows that ship, and whether the run was too short."""
    ((system, target),) = reproduction.find_targets([name])
    result = reproduction.run_target(system, target, quick=quick)
    if result.error is not None:
        raise result.error
    print(f"{result.name:40} {result.seconds:8.1f} s  {result.counts()}", flush=True)
    is_short = any(row.verdict is Verdict.SHORTENED for row in result.rows)
    return {"target": result.name, **result.counts()}, rows_of(result, "quick" if quick else "full"), is_short


def write_readme(targets: Iterable[Reproduction], full: Sequence[str]) -> None:
    """Write the counts of the shipped values, by system, into the README, between its two comments."""
    table = pd.DataFrame([{"target": target.name, **target.counts()} for target in targets])
    by_system = table.groupby(table["target"].str.partition("/")[0], sort=False).sum(numeric_only=True)
    by_system.loc["all"] = by_system.sum()
    verdicts = [str(verdict) for verdict in Verdict if verdict is not Verdict.SHORTENED]
    lines = ["| system | " + " | ".join(verdicts) + " |", "|---" + "|--:" * len(verdicts) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(by_system.loc[name, verdict]) for verdict in verdicts) + " |"
        for name in by_system.index
    ]
    long = ", ".join(f"`{name}`" for name in full)
    lines += ["", f"Counts of quick runs, and of full ones where a quick run is too short: {long}."]
    path = ROOT / "README.md"
    before, _, remaining = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = remaining.partition(END)
    path.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


def update_shipped(rows: dict[str, list[dict[str, str]]]) -> None:
    """Write new rows of some targets into the values that ship, and the counts of all into the README."""
    names = [f"{system.name}/{target.name}" for system, target in reproduction.find_targets()]
    merged = {**read_rows(VALUES), **rows}
    write_shipped(
        itertools.chain.from_iterable(merged[name] for name in names), f"{date.today():%Y-%m-%d}", VALUES
    )
    load_shipped.cache_clear()
    shipped = load_shipped()
    write_readme(
        (shipped_run.reproduction for shipped_run in shipped.values()),
        [name for name, shipped_run in shipped.items() if shipped_run.run == "full"],
    )


def main() -> None:
    """Run targets, and write their values."""
    parser = parser_of(__doc__)
    parser.add_argument("targets", nargs="*", default=[], help="targets to run in full")
    arguments = parser.parse_args()
    print(machine())
    targets = reproduction.find_targets(arguments.targets or reproduction.ALL)
    names = [f"{system.name}/{target.name}" for system, target in targets]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        made = list(pool.map(partial(run, quick=arguments.quick), names))
    if arguments.quick or arguments.targets:
        update_shipped({name: rows for name, (_, rows, short) in zip(names, made, strict=True) if not short})
    else:
        print(pd.DataFrame([counts for counts, _, _ in made]).to_string(index=False))


if __name__ == "__main__":
    main()
