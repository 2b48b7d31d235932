"""Cost of sweeps: overhead of store and scheduler, parallel workers, warm starts, charts of a million runs.

python -m benchmarks.sweeps [--quick] [overhead] [workers] [warm] [million]
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, parser_of
from planner.scenarios.scenario import from_document, load
from planner.store.record import Record
from planner.store.store import Store
from planner.sweeps import sweep, worker
from planner.sweeps.grid import lay_out

TINY_SCENARIO: dict[str, Any] = {
    "system": "traffic",
    "problem": {"source": "generate", "preset": "fat_tree", "k": 4},
    "designs": {"ecmp": {}, "shortest_path": {}},
}
BUSY_SCENARIO: dict[str, Any] = {
    "system": "traffic",
    "problem": {"source": "topohub", "name": "sndlib/germany50", "peak_utilization": 1.2},
    "designs": {"optimum": {"objective": "total"}},
}


def overhead(quick: bool) -> None:
    """Measure the wall time per run beyond the worker's own time for it, without start-up."""
    count = 200 if quick else 1000
    scenario = from_document(TINY_SCENARIO, name="tiny", folder=Path())
    grid = lay_out([scenario], axes={"problem.seed": list(range(count // 2))})
    print(f"\n{count:,} tiny runs, one worker ({machine()})")
    for plans in (True, False):
        grid = lay_out([scenario], axes={"problem.seed": list(range(count // 2))}, plans=plans)
        result, progress = run_sweep(grid, workers=1)
        began, ended = progress[len(progress) // 10], progress[-1]
        runs = ended[1] - began[1]
        own_s = result.runs["wall_s"].iloc[began[1] :].mean()
        wall = (ended[0] - began[0]) / runs
        parent = (ended[2] - began[2]) / runs
        assert (result.runs["status"] == "feasible").all()
        print(
            f"  {'with' if plans else 'without'} plans: {wall * 1e3:.1f} ms a run, of which "
            f"{own_s * 1e3:.1f} ms in the run: overhead {(wall - own_s) * 1e3:.1f} ms "
            f"(processor time of the sweep's own process: {parent * 1e3:.1f} ms)"
        )


def workers(quick: bool) -> None:
    """Measure the speed-up of two workers over one, on runs that keep a core busy."""
    count = 8 if quick else 40
    scenario = from_document(BUSY_SCENARIO, name="busy", folder=Path())
    grid = lay_out(
        [scenario],
        axes={
            "designs.optimum.information.seed": list(range(count)),
            "designs.optimum.information.noise": [0.1],
        },
    )
    print(f"\n{count} runs that keep a core busy ({machine()})")
    seconds, metrics = {}, {}
    for number in (1, 2):
        result, progress = run_sweep(grid, workers=number)
        # from the first result of each on: what a worker needs to start is the same for all
        first = progress[2 * number]
        seconds[number] = (progress[-1][0] - first[0]) / (progress[-1][1] - first[1])
        metrics[number] = result.runs["max_utilization"].to_numpy()
        print(f"  {number} worker{'s' * (number > 1)}: {seconds[number] * 1e3:.0f} ms a run")
    assert np.array_equal(metrics[1], metrics[2])
    print(f"  ratio {seconds[1] / seconds[2]:.2f}")


def warm(quick: bool) -> None:
    """Compare warm runs with cold ones: equal objectives, seconds of all decisions but the first."""
    print(f"\nwarm starts, seconds of all decisions after the first ({machine()})")
    scales = [0.8, 0.9, 1.0, 1.1, 1.2] if quick else [round(0.5 + 0.05 * step, 2) for step in range(20)]
    name, label, scaled = "traffic/germany50", "optimum", {"problem.scale": scales}
    cases: list[dict[str, list[Any]]] = [
        scaled,
        {**scaled, "designs.optimum.objective": ["utilization"]},
        {**scaled, "designs.optimum.objective": ["total"]},
        {**scaled, "designs.optimum.paths": [4]},
        {"designs.optimum.information.noise": [scale / 10 for scale in scales]},
    ]
    for axes in cases:
        records: dict[bool, list[Record]] = {}
        for is_warm in (False, True):
            grid = lay_out([load(name)], axes=axes, designs=[label], warm=is_warm, plans=False)
            records[is_warm] = worker.run_requests([point.request for point in grid.points])
        cold, hot = records[False], records[True]
        for run_, other in zip(cold, hot, strict=True):
            assert run_.status == other.status == "optimal"
            assert run_.objective is not None
            assert other.objective is not None
            assert abs(run_.objective - other.objective) <= 1e-6 * max(1.0, abs(run_.objective))
        cold_s, warm_s = (sum(record.seconds or 0.0 for record in runs[1:]) for runs in (cold, hot))
        axis_sizes = ", ".join(f"{key.split('.', 1)[1]} {len(values)}" for key, values in axes.items())
        times = f"{cold_s:.2f} s cold, {warm_s:.2f} s warm, ratio {cold_s / warm_s:.1f}"
        print(f"  {name} {label}, {axis_sizes}: {times}")


def million(quick: bool) -> None:
    """Measure filters and charts of a large store, medians of five."""
    count = 50_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="sweeps-") as folder:
        started = time.perf_counter()
        size = fill_store(Path(folder), count) / 2**20
        seconds = time.perf_counter() - started
        print(f"\na store of {count:,} runs ({machine()}): written in {seconds:.0f} s, {size:.0f} MiB")
        with Store(folder) as reader:
            for where in (
                "system = traffic and design = design0",
                "system = traffic and design in (design0, design1, design2)",
                "system = traffic and problem.scale <= 0.5 and status = optimal",
                "problem.seed = 7",
                "m0 < 0.01",
                "system = traffic",
                None,
            ):
                chart = functools.partial(
                    reader.chart, "m1", by="problem.scale", series="design", where=where
                )
                print(f"  chart of {reader.count(where):9,} runs: {median_times(chart)}   {where or 'all'}")
            first = functools.partial(reader.runs, "status = optimal", limit=50)
            print(f"  the first 50 of a filter, whole rows: {median_times(first)}")


def fill_store(folder: Path, count: int) -> int:
    """Write a store of synthetic runs; return the bytes of its file."""
    rng = np.random.default_rng(1)
    with Store(folder, write=True) as store:
        for start in range(0, count, 10_000):
            store.add([synthetic(number, rng) for number in range(start, min(count, start + 10_000))])
        return store.file.stat().st_size


def synthetic(number: int, rng: np.random.Generator) -> Record:
    """Return a record of one of three systems, eight designs and twenty scales, with eight metrics."""
    system, design = ("traffic", "circuits", "brokering")[number % 3], f"design{number // 3 % 8}"
    figures = rng.random(8)
    return Record(
        digest=f"{number * 2654435761 % 2**64:016x}",
        scenario=f"{system}/some",
        label=design,
        system=system,
        design=design,
        mechanism="none",
        problem=f"{number // 8:016x}",
        size={"nodes": 50, "links": 176},
        status="optimal" if number % 5 else "feasible",
        exit_code=0,
        objective=figures[0],
        objective_metric="m0",
        bound=1.0,
        gap=1 - figures[0],
        omniscient=True,
        violations=0,
        seconds=0.1,
        wall_s=0.2,
        backend="highs 1.13.1 simplex",
        versions="planner 0.1.0",
        machine="somewhere",
        finished="2026-01-01T00:00:00.000+00:00",
        metrics={f"m{index}": float(value) for index, value in enumerate(figures)},
        settings={
            "problem.scale": number // 24 % 20 / 10,
            "problem.seed": number // 480,
            "parameters.paths": design[-1],
            "solver.threads": 1,
        },
        request='{"system": "traffic"}' * 10,
    )


def run_sweep(grid: Any, workers: int) -> tuple[sweep.Sweep, list[tuple[float, int, float]]]:
    """Run a sweep into a fresh store; return wall time, runs done and process time at each progress."""
    progress: list[tuple[float, int, float]] = []

    def note_progress(completed: int, failed: int, total: int) -> None:  # noqa: ARG001
        progress.append((time.perf_counter(), completed, time.process_time()))

    with tempfile.TemporaryDirectory(prefix="sweeps-") as folder:
        result = sweep.run_grid(grid, folder, workers=workers, advance=note_progress)
        assert len(result.runs) == len(grid)  # reads the store, while it exists
    return result, progress


def median_times(work: Callable[[], Any]) -> str:
    """Return the median times of five calls, as `0.120 s (0.080 s of processor time)`."""
    wall, processor = [], []
    for _ in range(5):
        began = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - began[0])
        processor.append(time.process_time() - began[1])
    return f"{statistics.median(wall):.3f} s ({statistics.median(processor):.3f} s of processor time)"


PARTS = {"overhead": overhead, "workers": workers, "warm": warm, "million": million}


def main() -> None:
    """Run the parts that are named, or all."""
    parser = parser_of(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    arguments = parser.parse_args()
    for name in arguments.parts or PARTS:
        PARTS[name](arguments.quick)


if __name__ == "__main__":
    main()
