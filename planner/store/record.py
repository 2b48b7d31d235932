"""Record of a run, as a store has it, and the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """One run. None for unknown.

    digest           identifies the run
    earlier_digests  digests under which it may have failed before its problem was known
    label            the design's label in the first scenario that requested it
    problem          digest of the problem's tables
    problem_key      digest of the problem's section and files, see `planner.sweeps.run_request`
    size             size of the problem
    status           how the search ended, e.g. "optimal", "time limit", "heuristic" or "failed"
    constraints      "met" or "violated", in truth; None without a plan
    exit_code        0 with a plan, otherwise that of the command line for this kind of end
    bound_scope      what the bound is limited to, where it does not cover all plans
    omniscient       whether the design observed the true problem
    violations       number of constraint violations in truth; None without a plan
    seconds          time of the decision, `compile_s` of compiling before it; `wall_s`: of all, with making
                     and checking
    finished         when, in UTC
    plan             digest of the plan's tables
    message          why it failed
    tables           the plan's tables as Parquet
    settings         every setting of the run, by dotted key
    messages         constraint violations, reasons for no plan, notes on the data: kind and text
    request          the whole request, as JSON
    """

    digest: str
    scenario: str
    label: str
    system: str
    design: str
    mechanism: str
    problem: str | None = None
    size: Mapping[str, int] | None = None
    status: str
    constraints: str | None = None
    exit_code: int
    objective: float | None = None
    objective_metric: str | None = None
    bound: float | None = None
    bound_scope: str | None = None
    gap: float | None = None
    omniscient: bool | None = None
    violations: int | None = None
    seconds: float | None = None
    compile_s: float | None = None
    wall_s: float | None = None
    backend: str | None = None
    versions: str = ""
    machine: str = ""
    finished: str = ""
    plan: str | None = None
    message: str | None = None
    earlier_digests: tuple[str, ...] = ()
    problem_key: str | None = None
    tables: Mapping[str, bytes] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[tuple[str, str]] = ()
    request: str = "{}"


DETAILS: Final = ("earlier_digests", "problem_key", "tables", "metrics", "settings", "messages", "request")
COLUMNS: Final = tuple(item.name for item in fields(Record) if item.name not in DETAILS)
REQUIRED_COLUMNS: Final = tuple(
    item.name for item in fields(Record) if MISSING is item.default is item.default_factory
)
FIGURES: Final = ("objective", "bound", "gap", "violations", "seconds", "compile_s", "wall_s")
TIMES: Final = ("seconds", "compile_s", "wall_s", "finished")


def column_of(metric: str) -> str:
    """Return the column of a metric: its name, or `metric.objective` where a run's column has that name."""
    return f"metric.{metric}" if metric in COLUMNS else metric
