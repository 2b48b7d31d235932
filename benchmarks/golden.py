"""Golden records: digests of all that designs decide on shipped scenarios, and the differences of two.

    python -m benchmarks.golden record FILE [--scenario NAME ...] [--seed N ...] [--limit SECONDS]
    python -m benchmarks.golden compare FILE FILE

A refactoring is judged by it: record before and after, then compare. Each scenario runs in a process of its
own, reduced where it is large, with one thread and limits in CPU seconds. A record has, of each design and
seed: how the search ended, objective value, bound, metrics, violations and a digest of each table of the
plan; of each scenario, digests of the answers of compare and explain in JSON, without times, and of every
linear program that was built. Runs that end at the time limit depend on the machine: they are counted, and
not compared.

Exit code of `compare`: 0 where nothing differs, 1 where something does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

import planner
from benchmarks.common import machine
from benchmarks.reduced_scenarios import CHANGES
from planner import clock
from planner.backends.linear_program import LinearProgram
from planner.errors import PlannerError
from planner.options import Options
from planner.runs.evaluation import entries, evaluate
from planner.runs.run import Comparison
from planner.scenarios.shipped import scenario_names

TIMES: Final = frozenset({"seconds", "compile_s", "own_s"})
"""Keys of answers in JSON that differ from run to run."""
DIGITS: Final = 16
"""Hexadecimal digits of a digest."""
MAX_LINES: Final = 200
"""Differences that are printed."""


def digest_of(*parts: bytes) -> str:
    """Return the digest of some bytes, of which the number and the lengths count too."""
    total = hashlib.sha256()
    for piece in parts:
        total.update(len(piece).to_bytes(8, "little"))
        total.update(piece)
    return total.hexdigest()[:DIGITS]


def digest_frame(frame: pd.DataFrame) -> str:
    """Return the digest of a table: names, kinds and cells of its columns in order, numbers to the bit."""
    parts = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and not column.isna().any():
            values = column.to_numpy()
            parts += [str(name).encode(), values.dtype.kind.encode(), values.tobytes()]
        else:
            cells = ["" if pd.isna(cell) else repr(cell) for cell in column.tolist()]
            parts += [str(name).encode(), b"text", json.dumps(cells).encode()]
    return digest_of(*parts)


def digest_program(program: LinearProgram) -> str:
    """Return the digest of a linear program: arrays to the bit, in order; names do not count."""
    matrix = program.matrix
    arrays = [
        program.cost, matrix.indptr, matrix.indices, matrix.data, program.row_lower, program.row_upper,
        program.lower, program.upper,
    ]  # fmt: skip
    if program.integer is not None:
        arrays.append(program.integer)
    parts = [np.ascontiguousarray(array).tobytes() for array in arrays]
    return digest_of(program.sense.encode(), repr(float(program.offset)).encode(), *parts)


def without(value: Any, keys: Collection[str] = TIMES) -> Any:
    """Return a JSON value without some keys of its objects, at any depth; default: those of times."""
    if isinstance(value, dict):
        return {key: without(item, keys) for key, item in value.items() if key not in keys}
    return [without(item, keys) for item in value] if isinstance(value, list) else value


def digest_json(value: Any) -> str:
    """Return the digest of an answer in JSON, without times."""
    return digest_of(json.dumps(without(value), sort_keys=True, default=repr).encode())


def record_run(run: planner.Run) -> dict[str, Any]:
    """Return status, values and digests of a run, as plain data."""
    proof = run.proof
    tables = {} if run.plan is None else run.plan.to_tables()
    return {
        "status": run.status,
        "objective": proof.objective,
        "bound": proof.bound,
        "metrics": dict(run.metrics),
        "violations": digest_frame(run.violations.frame),
        "tables": {name: digest_frame(frame) for name, frame in tables.items()},
        **({"error": str(run.error)} if run.error else {}),
    }


def record_scenario(name: str, seeds: Sequence[int], limit_s: float) -> dict[str, Any]:
    """Return the record of a shipped scenario: of its problem or the first of its series."""
    programs: list[str] = []
    build = LinearProgram.__init__

    def count_program(program: LinearProgram, **values: Any) -> None:
        build(program, **values)
        programs.append(digest_program(program))

    scenario = planner.load(name, changes=CHANGES.get(name, {}))
    series = scenario.make_series() if scenario.make_series else [("", scenario.make_problem())]
    problem = next(iter(series))[1]
    record: dict[str, Any] = {"designs": {}}
    LinearProgram.__init__ = count_program  # type: ignore[method-assign, assignment]
    try:
        for seed in seeds:
            options = replace(scenario.options, threads=1, seed=seed, time_limit_s=limit_s)
            record |= record_seed(scenario, problem, seed, options, record["designs"])
    finally:
        LinearProgram.__init__ = build  # type: ignore[method-assign]
    return {**record, "programs": programs}


def record_seed(
    scenario: Any, problem: Any, seed: int, options: Options, designs: dict[str, Any]
) -> dict[str, str]:
    """Add the record of each design with a seed to `designs`; return digests of the answers in JSON."""
    with clock.count_cpu_seconds():
        runs = tuple(
            evaluate(scenario.system, problem, entry, options=options) for entry in entries(scenario)
        )
        comparison = Comparison(system=scenario.system, problem=problem, runs=runs)
        for run in runs:
            designs[f"{run.label}, seed {seed}"] = record_run(run)
        answers = {f"compare, seed {seed}": digest_json(comparison.to_dict())}
        if scenario.system.studies.what_if is not None:
            try:
                explained = planner.explain(problem, options=options).to_dict()
            except PlannerError as error:
                answers[f"explain, seed {seed}"] = f"{type(error).__name__}: {error}"
            else:
                answers[f"explain, seed {seed}"] = digest_json(explained)
    if any(run.status == "time limit" for run in runs):
        answers = dict.fromkeys(answers, CUT)
    return answers


CUT: Final = "time limit"
"""In place of what depends on how far a search came within its time limit."""


def revision() -> str:
    """Return the commit of the sources, with a mark where files were changed since."""
    result = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or "unknown"


def record_all(path: Path, names: Sequence[str], seeds: Sequence[int], limit_s: float, workers: int) -> None:
    """Write the record of scenarios into a file."""
    records: dict[str, Any] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
        jobs = {name: pool.submit(record_scenario, name, seeds, limit_s) for name in names}
        for name, job in jobs.items():
            started = time.perf_counter()
            records[name] = job.result()
            waited = time.perf_counter() - started
            print(f"{name:40}{len(records[name]['designs']):4} runs {waited:7.1f} s", flush=True)
    about = {"revision": revision(), "seeds": list(seeds), "limit_s": limit_s}
    path.write_text(json.dumps({"about": about, "scenarios": records}, indent=1, sort_keys=True) + "\n")
    print(f"{len(records)} scenarios of {about['revision']} in {path}; {machine()}")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each difference of two records of scenarios."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            yield name, "only in the second record" if old is None else "only in the first record"
            continue
        for label in sorted(old["designs"].keys() | new["designs"].keys()):
            yield from differences_of_runs(
                f"{name}, {label}", old["designs"].get(label), new["designs"].get(label)
            )
        yield from differences_of_answers(name, old, new)


def differences_of_runs(
    label: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> Iterator[tuple[str, str]]:
    """Yield the differences of two runs; none where both ended at the time limit."""
    if old is None or new is None:
        yield label, "only in the second record" if old is None else "only in the first record"
        return
    if old["status"] == new["status"] == CUT:
        return
    for key in ("status", "objective", "bound", "violations", "error"):
        if old.get(key) != new.get(key):
            yield label, f"{key}: {old.get(key)} -> {new.get(key)}"
    for key in ("metrics", "tables"):
        for entry in sorted(old[key].keys() | new[key].keys()):
            if old[key].get(entry) != new[key].get(entry):
                yield label, f"{key} {entry}: {old[key].get(entry)} -> {new[key].get(entry)}"


def differences_of_answers(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the answers in JSON and the linear programs that differ; none where a search was cut."""
    answers = [key for key in sorted(old.keys() | new.keys()) if key not in ("designs", "programs")]
    is_cut = CUT in [record.get(key) for record in (old, new) for key in answers]
    for key in answers:
        if old.get(key) != new.get(key) and CUT not in (old.get(key), new.get(key)):
            yield name, f"{key}: {old.get(key)} -> {new.get(key)}"
    if not is_cut and old["programs"] != new["programs"]:
        first, second = Counter(old["programs"]), Counter(new["programs"])
        if first == second:
            yield name, "linear programs: built in another order"
        else:
            gone, added = (first - second).total(), (second - first).total()
            yield name, f"linear programs: {gone} no longer built, {added} new"


def compare(first: Path, second: Path) -> int:
    """Print the differences of two records; return the exit code."""
    old, new = (json.loads(path.read_text()) for path in (first, second))
    for record, other in ((old, "first"), (new, "second")):
        print(f"{other}: {record['about']['revision']}, {len(record['scenarios'])} scenarios")
    if {**old["about"], "revision": ""} != {**new["about"], "revision": ""}:
        print("seeds or limits of the two records differ: they cannot be compared")
        return 2
    differences_found = list(differences(old["scenarios"], new["scenarios"]))
    for location, text in differences_found[:MAX_LINES]:
        print(f"{location}: {text}")
    if len(differences_found) > MAX_LINES:
        print(f"and {len(differences_found) - MAX_LINES} more")
    runs = [
        run["status"] for record in (old, new) for scenario in record["scenarios"].values()
        for run in scenario["designs"].values()
    ]  # fmt: skip
    print(
        f"{len(differences_found)} differences; {runs.count(CUT)} of {len(runs)} runs ended at the time limit"
    )
    return 1 if differences_found else 0


def main() -> None:
    """Record, or compare two records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record", help="record all shipped scenarios")
    recording.add_argument("file", type=Path)
    recording.add_argument("--scenario", action="append", choices=scenario_names(), metavar="NAME")
    recording.add_argument("--seed", action="append", type=int, metavar="N", help="repeatable; default: 1")
    recording.add_argument("--limit", type=float, default=10.0, help="CPU seconds of each design")
    recording.add_argument("--workers", type=int, default=2)
    comparing = actions.add_parser("compare", help="list what differs between two records")
    comparing.add_argument("files", type=Path, nargs=2, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.action == "compare":
        sys.exit(compare(*arguments.files))
    names = arguments.scenario or scenario_names()
    record_all(arguments.file, names, arguments.seed or [1], arguments.limit, arguments.workers)


if __name__ == "__main__":
    main()
