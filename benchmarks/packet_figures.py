"""Figures 4, 7, 10 and 11 of Sen et al. 2013 by packets, a seed at a time: values, their errors, CPU seconds.

    python -m benchmarks.packet_figures FIGURE [--k K] [--seconds S] [--seeds N]   print, of any size
    python -m benchmarks.packet_figures FIGURE --store SEED   a seed, of the full size by default, into
                                                              packet_figures.csv
    python -m benchmarks.packet_figures FIGURE --ship         means of its seeds into data/reproduction
    python -m benchmarks.packet_figures figure_4 --settings   effect of settings that the paper does not print

`planner reproduce traffic/FIGURE` runs the same seeds one after the other. Here each is a process of its own,
as all of them together take hours of one core.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from benchmarks.common import machine
from benchmarks.verdicts import update_shipped
from planner.contract.simulation import SimulationResult
from planner.contract.targets import TargetValues
from planner.runs.reproduction import Reproduction, find_targets, judge, read_published
from planner.runs.shipped_verdicts import rows_of
from planner_models.traffic.published.packet_figures import (
    FIGURES,
    WARM_UP_SHARE,
    Size,
    compare_runs,
    run_design,
    simulate,
    summarize,
    throughput,
)

SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "as they are": {},
    "replies hashed to one path": {"acks": "hashed"},
    "3 repeated replies": {"duplicate_acks": 3},
    "100 repeated replies": {"duplicate_acks": 100},
    "timeout of 1 ms": {"least_timeout_ms": 1.0},
    "timeout of 200 ms": {"least_timeout_ms": 200.0},
    "first window of 10": {"first_window": 10},
    "largest window of 120": {"largest_window": 120},
    "hosts with queues of 100": {"host_queue_packets": 100},
}
"""What the paper does not print, and values that others take."""
STORE = Path(__file__).with_suffix(".csv")
RUNS_FOLDER: Final = Path("out") / "packet_figures"
"""Where the runs of a seed that ended are kept, so that one that is stopped goes on."""
COLUMNS = ["figure", "k", "seconds", "seed", "cpu_s", "name", "value"]


def time_seed(figure: str, size: Size, seed: int, folder: Path | None = None) -> pd.DataFrame:
    """Return a row for each value of a seed, with the CPU seconds of all its runs.

    With a folder, a run that ended there before is read from it, and each that ends is written to it.
    """
    runs, cpu_s = {}, 0.0
    for label in FIGURES[figure].runs:
        stem = f"{figure}-k{size.k}-{size.seconds:g}s-seed{seed}-{label.replace(' ', '_')}"
        result, took_s = time_run(figure, size, seed, label, None if folder is None else folder / stem)
        runs[label], cpu_s = result, cpu_s + took_s
    head = {"figure": figure, "k": size.k, "seconds": size.seconds, "seed": seed, "cpu_s": round(cpu_s, 1)}
    values = compare_runs(figure, runs)
    return pd.DataFrame([{**head, "name": name, "value": value} for name, value in values.items()])


def time_run(
    figure: str, size: Size, seed: int, label: str, stem: Path | None
) -> tuple[SimulationResult, float]:
    """Return a run and its CPU seconds, read from files that begin with `stem` where it ended before."""
    if stem is not None and (facts_file := stem.with_name(f"{stem.name}.json")).exists():
        facts = json.loads(facts_file.read_text(encoding="utf-8"))
        flows = pd.read_parquet(stem.with_name(f"{stem.name}.parquet"))
        read = SimulationResult(metrics=facts["metrics"], tables={"flows": flows}, rounds=pd.DataFrame())
        return read, facts["cpu_s"]
    start = time.process_time()
    result = run_design(figure, size, seed, label)
    cpu_s = time.process_time() - start
    if stem is not None:
        stem.parent.mkdir(parents=True, exist_ok=True)
        result.tables["flows"].to_parquet(stem.with_name(f"{stem.name}.parquet"))
        facts = {"metrics": dict(result.metrics), "cpu_s": cpu_s}
        facts_file.write_text(json.dumps(facts), encoding="utf-8")
    return result, cpu_s


def read_store() -> pd.DataFrame:
    """Return the values of stored seeds."""
    return pd.read_csv(STORE) if STORE.exists() else pd.DataFrame(columns=COLUMNS)


def store_seed(figure: str, size: Size, seed: int) -> None:
    """Run a seed of a figure, or the runs of it that are not in `RUNS_FOLDER`, and store its values."""
    rows, stored = time_seed(figure, size, seed, RUNS_FOLDER), read_store()
    same = select_seeds(stored, figure, size)
    is_same = stored.index.isin(same.index[same["seed"] == seed])
    rows = rows if stored.empty else pd.concat([stored[~is_same], rows], ignore_index=True)
    rows.sort_values(["figure", "k", "seconds", "seed"], kind="stable").to_csv(
        STORE, index=False, lineterminator="\n"
    )


def select_seeds(rows: pd.DataFrame, figure: str, size: Size) -> pd.DataFrame:
    """Return the rows of a figure at a size."""
    is_ours = (rows["figure"] == figure) & (rows["k"] == size.k) & (rows["seconds"] == size.seconds)
    return rows[is_ours]


def summarize_rows(figure: str, size: Size, rows: pd.DataFrame) -> TargetValues:
    """Return the means of rows over seeds."""
    seeds = [
        dict(zip(of_seed["name"].tolist(), of_seed["value"].tolist(), strict=True))
        for _, of_seed in rows.groupby("seed")
    ]
    return summarize(figure, size, seeds)


def ship(figure: str) -> None:
    """Write the means of the stored seeds of a figure into the values that ship, and the README."""
    size = FIGURES[figure].full
    rows = select_seeds(read_store(), figure, size)
    seeds = sorted(set(rows["seed"]))
    if seeds != list(range(1, 1 + size.seeds)):
        raise SystemExit(f"{figure}: seeds {seeds} are stored, of {size.seeds}")
    ((system, target),) = find_targets([f"traffic/{figure}"])
    values = summarize_rows(figure, size, rows)
    result = Reproduction(
        system=system,
        target=target,
        rows=tuple(judge(system, target, values)),
        seconds=float(rows.groupby("seed")["cpu_s"].first().sum()),
    )
    update_shipped({result.name: rows_of(result, "full")})
    print(result.verdict)


def print_settings(figure: str, size: Size) -> None:
    """Print the throughput of each design under other settings, Mbit/s of a host, means over seeds."""
    start, shape = time.process_time(), FIGURES[figure]
    rows: dict[str, dict[str, float]] = {}
    for label, settings in SETTINGS.items():
        means = dict.fromkeys(shape.runs, 0.0)
        for seed in range(1, 1 + size.seeds):
            problem = shape.problem(size.k, seed)
            timing = {"until_s": size.seconds, "warm_up_s": WARM_UP_SHARE * size.seconds, "seed": seed}
            for name, parameters in shape.runs.items():
                result = simulate(problem, {**shape.settings, **timing, **parameters, **settings})
                means[name] += throughput(result) / len(problem.demands) / size.seeds
        rows[label] = means
    print(pd.DataFrame(rows).T.to_string(float_format=lambda value: f"{value:.0f}"))
    print(f"{size}; {time.process_time() - start:.0f} CPU s; {machine()}")


def print_values(figure: str, size: Size) -> None:
    """Print the values of a figure at a size beside those of the paper."""
    rows = pd.concat([time_seed(figure, size, seed) for seed in range(1, 1 + size.seeds)])
    values, published = summarize_rows(figure, size, rows), read_published("traffic")
    table = pd.DataFrame(
        [
            (row, published[row]["value"], ours, values.notes.get(row, ""))
            for row, ours in values.values.items()
        ],
        columns=["row", "paper", "ours", "note"],
    )
    with pd.option_context("display.width", 200, "display.max_colwidth", 60):
        print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
        print(values.curves[0].frame.to_string(index=False, float_format=lambda value: f"{value:.0f}"))
    print(f"{rows.groupby('seed')['cpu_s'].first().tolist()} CPU s; {machine()}")


def main() -> None:
    """Print, store or ship the values of a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("figure", choices=list(FIGURES))
    parser.add_argument("--k", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--store", type=int, metavar="SEED")
    parser.add_argument("--ship", action="store_true")
    parser.add_argument("--settings", action="store_true")
    arguments = parser.parse_args()
    options = {name: getattr(arguments, name) for name in ("k", "seconds", "seeds")}
    changes = {name: value for name, value in options.items() if value is not None}
    size = replace(FIGURES[arguments.figure].full, **changes)
    if arguments.settings:
        print_settings(arguments.figure, size)
    elif arguments.ship:
        ship(arguments.figure)
    elif arguments.store is not None:
        store_seed(arguments.figure, size, arguments.store)
    else:
        print_values(arguments.figure, size)


if __name__ == "__main__":
    main()
