"""Results in a store: an answer with its question, plans, a name and notes, which any server may open.

A result is a folder `results/ID` of the store: `result.json`, the plans as Parquet, and uploaded tables.
It holds data only, never code, and its scenario may read its own folder only; a plan is checked and measured
again when it is opened, and nothing is solved. A folder appears whole or not at all, so that several servers
may use one store.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.design import Decision
from planner.contract.plan import Violations
from planner.contract.proof import LevelProof, Proof, RankProof, Status
from planner.errors import InputError, PlannerError, SolverFailure
from planner.io.file_replacement import replace_folder
from planner.scenarios.confinement import copy_confined
from planner.version import __version__
from planner_dashboard import comparisons
from planner_dashboard.question import Question, form_fields, unchanged_scenario

if TYPE_CHECKING:
    from planner.runs.run import Comparison, Run
    from planner.scenarios.scenario import Scenario
    from planner_dashboard.worker import Answer

ID: Final = re.compile(r"[0-9a-f]{16}")
FOLDER, RECORD, TABLES, PLANS = "results", "result.json", "tables", "plans"
FORMAT: Final = 1
MAX_NAME, MAX_NOTES = 80, 2_000
"""Letters of a name and of notes."""
MAX_LISTED: Final = 200
MAX_RECORD_BYTES: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class StoredResult:
    """Description of a stored result, known without opening its plans."""

    id: str
    name: str
    notes: str
    saved: str
    version: str
    scenario: str
    verdict: str
    query: Mapping[str, list[str]]


def save(store: Path, folder: Path, question: Question, tables: Path, name: str, notes: str = "") -> str:
    """Keep a stored comparison in a store; return its id.

    folder  of the comparison
    tables  folder of the uploaded tables, where the question has some
    raises  InputError without a name, and where the store cannot be written
    """
    if not name.strip():
        raise InputError("name: is missing; a stored result has one")
    result = comparisons.load(folder)
    number = secrets.token_hex(8)
    record = {
        "format": FORMAT,
        "name": name.strip()[:MAX_NAME],
        "notes": notes.strip()[:MAX_NOTES],
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "verdict": result.titled().verdict,
        "query": _query(question),
        "designs": [_run_record(run) for run in result.runs],
    }
    with _explained(store, "cannot be written"), replace_folder(store / FOLDER / number) as partial:
        for index, run in enumerate(result.runs):
            if run.plan is not None:
                plan = partial / PLANS / str(index)
                plan.mkdir(parents=True)
                for table, frame in run.plan.to_tables().items():
                    frame.to_parquet(plan / f"{table}.parquet")
        if question.upload:
            shutil.copytree(tables, partial / TABLES)
        (partial / RECORD).write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
    return number


def list_results(store: Path) -> list[StoredResult]:
    """Return the results of a store, the newest first; damaged ones are left out.

    raises  InputError where the store is gone or cannot be read
    """
    with _explained(store, "cannot be read"):
        if not store.is_dir():
            raise InputError(f"store {store.name}: is not there any more")
        folder = store / FOLDER
        numbers = (
            [path.name for path in folder.iterdir() if ID.fullmatch(path.name)] if folder.is_dir() else []
        )
    results = []
    for number in numbers:
        try:
            results.append(find([store], number)[1])
        except PlannerError:
            continue
    return sorted(results, key=lambda result: result.saved, reverse=True)[:MAX_LISTED]


def find(stores: list[Path], number: str) -> tuple[Path, StoredResult]:
    """Return the folder of a stored result, and its record.

    raises  InputError for an id that is none, or that no store has, and for a record that is damaged
    """
    if not ID.fullmatch(number):
        raise InputError("result: is no stored result's number, 16 of the letters 0 to 9 and a to f")
    for store in stores:
        folder = store / FOLDER / number
        with _explained(store, "cannot be read"):
            text = _read_record(folder)
        if text is not None:
            record = _parsed(number, text)
            texts = {
                key: str(record.get(key, "")) for key in ("name", "notes", "saved", "version", "verdict")
            }
            query = record["query"]
            scenario = next(iter(query.get("scenario", [])), "")
            return folder, StoredResult(id=number, scenario=scenario, query=query, **texts)
    names = ", ".join(store.name for store in stores) or "none is open"
    raise InputError(f"result {number}: is in no store of this dashboard ({names})")


def question_of(stores: list[Path], number: str) -> Question:
    """Return the question of a stored result.

    raises  InputError as `find`, and where the scenario is not known here
    """
    question = Question.from_query(find(stores, number)[1].query)
    if question is None:
        raise InputError(f"result {number}: is damaged: it names no scenario")
    return question


def load(stores: list[Path], number: str, tables: Path, out: Path) -> Answer:
    """Return the answer of a stored result, with its plans checked and measured again.

    tables  the session's folder; uploaded tables of the result are copied into it
    out     folder for the comparison
    raises  InputError as `find`, and where plans are missing or are none of this problem
    """
    from planner_dashboard import worker

    folder, stored = find(stores, number)
    question = question_of(stores, number)
    record = _parsed(number, _read_record(folder) or "")
    folder_of_tables = tables
    if question.upload:
        folder_of_tables = tables / question.upload
        if not folder_of_tables.is_dir():
            _copy_tables(number, folder / TABLES, folder_of_tables)
    _check_changes(question, folder_of_tables)
    scenario = worker.load_scenario(question, folder_of_tables)
    try:
        result = _comparison(scenario, record, folder)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError(f"result {number}: is damaged: {error}") from None
    answer = worker.answer_of(result, scenario, question, folder_of_tables, out)
    words = f"stored {stored.saved[:10]} by planner {stored.version} as {stored.name!r}"
    return replace(answer, notes=[f"This result was {words}. Its plans were measured again.", *answer.notes])


def _copy_tables(number: str, source: Path, target: Path) -> None:
    """Copy the scenario and tables of a result; nothing but the result's own folder is read.

    raises  InputError for a scenario that names other files, and for links
    """
    try:
        with replace_folder(target) as partial:
            copy_confined(source, partial)
    except InputError as error:
        raise InputError(*(f"result {number}: {fault}" for fault in error.faults)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"result {number}: its tables cannot be read ({error})") from None


def _check_changes(question: Question, tables_folder: Path) -> None:
    """Check the changes of a stored question as those of an address: none of them names a file.

    raises  InputError with every unknown field and every invalid value
    """
    question.check(form_fields(unchanged_scenario(question.source(tables_folder))))


# --- records ------------------------------------------------------------------------------


def _query(question: Question) -> dict[str, list[str]]:
    return {
        key: [value] if isinstance(value, str) else list(value) for key, value in question.to_query().items()
    }


def _run_record(run: Run) -> dict[str, Any]:
    """Return the data of a run beyond its plan: its proof, its error, and metrics of signalling."""
    proof = {**asdict(run.proof), "status": run.proof.status.name}
    proof["ranks"] = [rank._asdict() for rank in run.proof.ranks]
    proof["levels"] = [level._asdict() for level in run.proof.levels]
    return {
        "label": run.label,
        "proof": proof,
        "omniscient": run.omniscient,
        "error": None if run.error is None else str(run.error),
        "metrics": dict(run.metrics),
    }


def _read_record(folder: Path) -> str | None:
    """Return the text of a result's record; None where there is none, or a link or pipe in its place."""
    path = folder / RECORD
    if folder.is_symlink() or path.is_symlink() or not path.is_file():
        return None
    if path.stat().st_size > MAX_RECORD_BYTES:
        raise InputError(f"result {folder.name}: is damaged: {RECORD} is too large")
    return path.read_text(encoding="utf-8", errors="replace")


def _parsed(number: str, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    is_record = isinstance(record, dict) and isinstance(record.get("query"), dict)
    if not is_record or not isinstance(record.get("designs"), list):
        raise InputError(f"result {number}: is damaged: {RECORD} is no record of a result")
    if record.get("format") != FORMAT:
        raise InputError(
            f"result {number}: was stored by planner {record.get('version')}, which this one cannot read"
        )
    return dict(record)


def _comparison(scenario: Scenario, record: Mapping[str, Any], folder: Path) -> Comparison:
    """Return the comparison of a record with its plans."""
    from planner.runs.run import Comparison

    problem = scenario.make_problem()
    runs = [
        _run(scenario, problem, design, folder / PLANS / str(index))
        for index, design in enumerate(record["designs"])
    ]
    return Comparison(system=scenario.system, problem=problem, runs=tuple(runs))


def _run(scenario: Scenario, problem: Any, record: Mapping[str, Any], plan_folder: Path) -> Run:
    """Return a run with its plan read, checked and measured."""
    from planner.runs.run import Run
    from planner.scenarios.existing_plans import read_plan

    system, entry = scenario.system, scenario.entry(str(record["label"]))
    error = None if record["error"] is None else SolverFailure(str(record["error"]))
    _require_own(plan_folder)
    plan = read_plan(system, problem, plan_folder) if plan_folder.is_dir() else None
    values = dict(record["proof"])
    values["status"] = Status[values["status"]]
    values["ranks"] = tuple(RankProof(**rank) for rank in values["ranks"])
    values["levels"] = tuple(LevelProof(**level) for level in values["levels"])
    values["reasons"] = tuple(values["reasons"])
    values["notes"] = tuple(values.get("notes", ()))
    violations, metrics = Violations(), {}
    if plan is not None:
        violations = system.plan.check(problem, plan)
        # figures of signalling and of earlier plans are not part of the plan
        metrics = {**record["metrics"], **_known(system.plan.measure(problem, plan, None))}
    return Run(
        system=system,
        problem=problem,
        entry=entry,
        decision=None if error is not None else Decision(plan=plan, proof=Proof(**values)),
        plan=plan,
        violations=violations,
        metrics=metrics,
        options=scenario.options,
        omniscient=bool(record["omniscient"]),
        error=error,
    )


def _require_own(plan_folder: Path) -> None:
    """Raise ValueError where a plan's folder, or a file in it, is a link or a pipe."""
    paths = [plan_folder.parent, plan_folder, *(plan_folder.iterdir() if plan_folder.is_dir() else ())]
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
            raise ValueError(f"{path.name} is a link, a device or a pipe")


def _known(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: value for name, value in metrics.items() if value is not None}


@contextmanager
def _explained(store: Path, what: str) -> Iterator[None]:
    """Raise InputError in one line where the store's disk fails."""
    try:
        yield
    except OSError as error:
        raise InputError(f"store {store.name}: {what} ({error.strerror or error})") from None
