"""One run in a worker: its problem is made once for all its designs, and its end is always a record."""

from __future__ import annotations

import io
import logging
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from planner.backends.memory import Bases, remembering
from planner.errors import PlannerError, SolverFailure
from planner.proof import Status
from planner.record import Record
from planner.request import Request, run_digest, settings_of, versions_of
from planner.run import Run, evaluate
from planner.scenario import Entry, Scenario
from planner.tables import digest

log = logging.getLogger(__name__)

KEPT: Final = 2  # problems that a worker keeps at hand
KEPT_LAST: Final = 16  # decisions, for runs that start warm
BUG: Final = 70  # exit code of what is no fault of the input


def perform(requests: Sequence[Request]) -> list[Record]:
    """A record for each request, in order; no failure of one is that of another."""
    with _alone:
        return [_one(request) for request in requests]


def failed(request: Request, message: str, *, exit_code: int, problem: str | None = None) -> Record:
    """The record of a run that has no result, under the best name that it can have."""
    scenario = request.load()
    return _failed(request, scenario, message, exit_code=exit_code, problem=problem)


def _one(request: Request) -> Record:
    started = time.perf_counter()
    if request.versions != versions_of(request.system):
        raise SolverFailure(
            f"the worker on {platform.node()} has {versions_of(request.system)}, the sweep "
            f"{request.versions}: install the same"
        )
    scenario = request.load()
    made: _Made | None = None
    try:
        made = _problem(request, scenario)
        run = _evaluated(request, scenario, made)
    except PlannerError as error:
        message, exit_code = str(error), error.exit_code
    except MemoryError:
        message, exit_code = (
            "out of memory: the problem is too large for this worker",
            SolverFailure.exit_code,
        )
    except Exception as error:
        log.exception("%s: %s", request.scenario, request.label)
        text = " ".join(str(error).split())
        message, exit_code = f"internal error: {type(error).__name__}: {text}", BUG
    else:
        return _done(request, scenario, made, run, time.perf_counter() - started)
    return _failed(request, scenario, message, exit_code=exit_code, problem=made.digest if made else None)


# --- problems and decisions at hand -------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Made:
    problem: Any
    digest: str


_alone = threading.Lock()  # solvers and what is at hand are for one run, however many threads a worker has
_problems: OrderedDict[str, _Made] = OrderedDict()
# by scenario and label; `problem` holds the problem's size, and `plan` nothing
_last: OrderedDict[str, Run] = OrderedDict()
_bases = Bases()


def _problem(request: Request, scenario: Scenario) -> _Made:
    if request.asked in _problems:
        _problems.move_to_end(request.asked)
        return _problems[request.asked]
    while len(_problems) >= KEPT:  # before, so that no more than those are ever there
        _problems.popitem(last=False)
    problem = scenario.make_problem()
    _problems[request.asked] = _Made(problem=problem, digest=digest(problem.to_tables()))
    return _problems[request.asked]


def _evaluated(request: Request, scenario: Scenario, made: _Made) -> Run:
    entry, options = scenario.designs[0], scenario.options
    if not request.warm:
        return evaluate(scenario.system, made.problem, entry, options=options)
    key = f"{request.scenario}\n{request.label}"
    with remembering(_bases):
        run = _from_neighbour(scenario, made, _last.get(key)) or evaluate(
            scenario.system, made.problem, entry, options=options
        )
    _last[key] = replace(run, problem=made.problem.size(), plan=None, metrics={})
    _last.move_to_end(key)
    while len(_last) > KEPT_LAST:
        _last.popitem(last=False)
    return run


def _from_neighbour(scenario: Scenario, made: _Made, last: Run | None) -> Run | None:
    """The run as decided with a neighbour's decision at hand, where both are proven optimal.

    Proven within the gap that was asked for, it is an answer as good as any; a heuristic's, which may
    depend on where it starts, is none.
    """
    if last is None or last.proof.status is not Status.OPTIMAL or last.problem != made.problem.size():
        return None
    try:
        run = evaluate(
            scenario.system, made.problem, scenario.designs[0], options=scenario.options, previous=last
        )
    except Exception:  # a neighbour's plan may not fit this problem
        return None
    return run if run.proof.status is Status.OPTIMAL else None


# --- records ------------------------------------------------------------------------------


def _names(request: Request, entry: Entry, scenario: Scenario, problem: str | None) -> list[str]:
    """Digests of the run: by its problem, where that is known, and by the request for it."""
    return [
        run_digest(
            request.system,
            base,
            entry,
            scenario.options,
            versions=request.versions,
            warm=request.warm,
        )
        for base in (problem, request.asked)
        if base is not None
    ]


def _begun(request: Request, scenario: Scenario, problem: str | None) -> dict[str, Any]:
    entry = scenario.designs[0]
    names = _names(request, entry, scenario, problem)
    return {
        "digest": names[0],
        "former": tuple(names[1:]),
        "scenario": request.scenario,
        "label": request.label,
        "system": request.system,
        "design": entry.design.name,
        "mechanism": str(entry.design.mechanism),
        "problem": problem,
        "asked": request.asked,
        "versions": request.versions,
        "machine": platform.node(),
        "finished": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "settings": settings_of(request.problem, entry, scenario.options),
        "request": request.text(),
    }


def _failed(
    request: Request, scenario: Scenario, message: str, *, exit_code: int, problem: str | None
) -> Record:
    lines = [line for line in message.splitlines() if line.strip()] or ["no reason known"]
    return Record(
        **_begun(request, scenario, problem),
        status="failed",
        exit_code=exit_code,
        message=lines[0],
        messages=[("error", line) for line in lines],
    )


def _done(request: Request, scenario: Scenario, made: _Made, run: Run, wall_s: float) -> Record:
    proof = run.proof
    tables = run.plan.to_tables() if run.plan is not None and request.plans else None
    messages = [("reason", reason) for reason in proof.reasons]
    if run.plan is not None:
        messages += [("violation", sentence) for sentence in run.violations.sentences()]
    return Record(
        **_begun(request, scenario, made.digest),
        size=made.problem.size(),
        status=str(proof.status),
        exit_code=run.exit_code,
        objective=proof.objective,
        objective_metric=proof.metric,
        bound=proof.bound,
        bound_within=proof.within,
        gap=proof.gap,
        omniscient=run.omniscient,
        violations=len(run.violations) if run.plan is not None else None,
        seconds=proof.seconds,
        wall_s=wall_s,
        backend=proof.backend,
        plan=None if tables is None else digest(tables),
        tables={} if tables is None else {name: _parquet(frame) for name, frame in tables.items()},
        metrics=dict(run.metrics),
        messages=messages,
    )


def _parquet(frame: Any) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()
