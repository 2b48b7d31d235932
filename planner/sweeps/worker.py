"""Runs in a worker process: each problem is made once for all its designs, each run ends in a record."""

from __future__ import annotations

import io
import logging
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from planner.backends.basis_cache import BasisCache, use_cache
from planner.contract.notes import notes_of
from planner.contract.tables import digest
from planner.errors import PlannerError, SolverFailure
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.runs.warm_start import evaluate_from, start_of
from planner.scenarios.scenario import Scenario
from planner.store.record import Record
from planner.sweeps.run_request import Request, run_digest, settings_of, versions_of

log = logging.getLogger(__name__)

MAX_PROBLEMS: Final = 2  # kept in memory
MAX_DECISIONS: Final = 16  # kept for warm starts
BUG_EXIT_CODE: Final = 70  # of internal errors


def run_requests(requests: Sequence[Request]) -> list[Record]:
    """Run each request; return its record, in order. A failure of one affects no other."""
    with RUN_LOCK:
        return [_run_request(request) for request in requests]


def failure_record(request: Request, message: str, *, exit_code: int, problem: str | None = None) -> Record:
    """Return the record of a run that failed, under the digest of its problem where that is known."""
    lines = [line for line in message.splitlines() if line.strip()] or ["no reason known"]
    return Record(
        **_common_fields(request, request.load(), problem),
        status="failed",
        exit_code=exit_code,
        message=lines[0],
        messages=[("error", line) for line in lines],
    )


def _run_request(request: Request) -> Record:
    started = time.perf_counter()
    if request.versions != versions_of(request.system):
        raise SolverFailure(
            f"the worker on {platform.node()} has {versions_of(request.system)}, the sweep "
            f"{request.versions}: install the same"
        )
    scenario = request.load()
    loaded: _LoadedProblem | None = None
    try:
        loaded = _cached_problem(request, scenario)
        run = _evaluate(request, scenario, loaded)
    except PlannerError as error:
        message, exit_code = str(error), error.exit_code
    except MemoryError:
        message = "out of memory: the problem is too large for this worker"
        exit_code = SolverFailure.exit_code
    except Exception as error:
        log.exception("%s: %s", request.scenario, request.label)
        text = " ".join(str(error).split())
        message, exit_code = f"internal error: {type(error).__name__}: {text}", BUG_EXIT_CODE
    else:
        return _success_record(request, scenario, loaded, run, time.perf_counter() - started)
    return failure_record(request, message, exit_code=exit_code, problem=loaded.digest if loaded else None)


# --- problems and decisions in memory -----------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _LoadedProblem:
    problem: Any
    digest: str


RUN_LOCK = threading.Lock()  # one run at a time uses the solvers and caches, whatever the worker's threads
_problem_cache: OrderedDict[str, _LoadedProblem] = OrderedDict()
# starts by scenario and label
_decision_cache: OrderedDict[str, Run] = OrderedDict()
_basis_cache = BasisCache()


def _cached_problem(request: Request, scenario: Scenario) -> _LoadedProblem:
    if request.problem_key in _problem_cache:
        _problem_cache.move_to_end(request.problem_key)
        return _problem_cache[request.problem_key]
    while len(_problem_cache) >= MAX_PROBLEMS:  # first, so that there are never more in memory
        _problem_cache.popitem(last=False)
    problem = scenario.make_problem()
    _problem_cache[request.problem_key] = _LoadedProblem(problem=problem, digest=digest(problem.to_tables()))
    return _problem_cache[request.problem_key]


def _evaluate(request: Request, scenario: Scenario, loaded: _LoadedProblem) -> Run:
    entry, options = scenario.designs[0], scenario.options
    if not request.warm:
        return evaluate(scenario.system, loaded.problem, entry, options=options)
    key = f"{request.scenario}\n{request.label}"
    with use_cache(_basis_cache):
        run = evaluate_from(_decision_cache.get(key), scenario.system, loaded.problem, entry, options=options)
    _decision_cache[key] = start_of(run)
    _decision_cache.move_to_end(key)
    while len(_decision_cache) > MAX_DECISIONS:
        _decision_cache.popitem(last=False)
    return run


# --- records ------------------------------------------------------------------------------


def _common_fields(request: Request, scenario: Scenario, problem: str | None) -> dict[str, Any]:
    entry = scenario.designs[0]
    digests = [  # by the problem, where that is known, and by its key
        run_digest(
            request.system, base, entry, scenario.options, versions=request.versions, warm=request.warm
        )
        for base in (problem, request.problem_key)
        if base is not None
    ]
    return {
        "digest": digests[0],
        "earlier_digests": tuple(digests[1:]),
        "scenario": request.scenario,
        "label": request.label,
        "system": request.system,
        "design": entry.design.name,
        "mechanism": str(entry.design.mechanism),
        "problem": problem,
        "problem_key": request.problem_key,
        "versions": request.versions,
        "machine": platform.node(),
        "finished": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "settings": settings_of(request.problem, entry, scenario.options),
        "request": request.to_json(),
    }


def _messages_of(run: Run, problem: Any) -> list[tuple[str, str]]:
    """Return reasons of a run's proof, notes on its problem and its violations, each with its kind."""
    messages = [("reason", reason) for reason in run.proof.reasons]
    messages += [("note", note) for note in notes_of(problem)]
    if run.plan is not None:
        messages += [("violation", sentence) for sentence in run.violations.sentences()]
    return messages


def _success_record(
    request: Request, scenario: Scenario, loaded: _LoadedProblem, run: Run, wall_s: float
) -> Record:
    proof = run.proof
    tables = run.plan.to_tables() if run.plan is not None and request.plans else None
    return Record(
        **_common_fields(request, scenario, loaded.digest),
        size=loaded.problem.size(),
        status=run.status,
        constraints=None if run.plan is None else "met" if run.constraints.met else "violated",
        exit_code=run.exit_code,
        objective=proof.objective,
        objective_metric=proof.metric,
        bound=proof.bound,
        bound_scope=proof.bound_scope,
        gap=proof.gap,
        omniscient=run.omniscient,
        violations=len(run.violations) if run.plan is not None else None,
        seconds=proof.seconds,
        compile_s=proof.compile_s,
        wall_s=wall_s,
        backend=proof.backend,
        plan=None if tables is None else digest(tables),
        tables={} if tables is None else {name: _to_parquet(frame) for name, frame in tables.items()},
        metrics=dict(run.metrics),
        messages=_messages_of(run, loaded.problem),
    )


def _to_parquet(frame: Any) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()
