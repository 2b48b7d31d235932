"""What is kept of a run, and what its parts are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """One run as it is kept. None for unknown.

    digest       its name
    former       names under which it may have failed before its problem was known
    label        the design's label in the scenario that asked first
    problem      digest of the problem's tables; `asked` is that of the request for it
    size         how large the problem is
    status       as a proof has it, or "failed"
    exit_code    0 with a plan, otherwise what the command line returns for its kind
    bound_within what the bound is limited to, where not to all plans
    omniscient   the design believed the true problem
    violations   how many limits the plan breaks in truth; None without a plan
    seconds      of the decision; `wall_s` of everything: making the problem, checks and measures
    finished     when, in UTC
    plan         digest of the plan's tables, `tables` those as Parquet
    message      why it failed
    settings     what was asked, by dotted key
    messages     what is broken, or why there is no plan: kind and text
    request      all that was asked, as JSON
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
    exit_code: int
    objective: float | None = None
    objective_metric: str | None = None
    bound: float | None = None
    bound_within: str | None = None
    gap: float | None = None
    omniscient: bool | None = None
    violations: int | None = None
    seconds: float | None = None
    wall_s: float | None = None
    backend: str | None = None
    versions: str = ""
    machine: str = ""
    finished: str = ""
    plan: str | None = None
    message: str | None = None
    former: tuple[str, ...] = ()
    asked: str | None = None
    tables: Mapping[str, bytes] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[tuple[str, str]] = ()
    request: str = "{}"


ASIDE: Final = ("former", "asked", "tables", "metrics", "settings", "messages", "request")
COLUMNS: Final = tuple(one.name for one in fields(Record) if one.name not in ASIDE)
ALWAYS_KNOWN: Final = ("digest", "scenario", "label", "system", "design", "mechanism", "status", "exit_code")
FIGURES: Final = ("objective", "bound", "gap", "violations", "seconds", "wall_s")
TIMES: Final = ("seconds", "wall_s", "finished")


def column_of(metric: str) -> str:
    """What a metric is called among a run's columns: `metric.objective`, where its own name is taken."""
    return f"metric.{metric}" if metric in COLUMNS else metric
