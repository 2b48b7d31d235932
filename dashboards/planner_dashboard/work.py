"""What worker processes do: the only place of the dashboard that runs planner."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.drawing import Drawing
from planner.errors import PlannerError
from planner.system import Metric, Section
from planner.tables import find_tables
from planner_dashboard import uploads
from planner_dashboard.asked import Asked
from planner_dashboard.uploads import Sent

MOST_ROWS: Final = 2_000
"""Of a plan's table that a page shows; the download has all of them."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """One design's answer.

    broken   how many limits its plan breaks in truth, and in `violations` where

    tables   the first rows of its plan's tables, and how many rows there are
    changed  what differs from the plan before, where there is one
    """

    label: str
    mechanism: str
    status: str
    gap: float | None
    seconds: float | None
    metrics: Mapping[str, float | None]
    broken: int
    violations: Sequence[str]
    trouble: str
    drawings: Sequence[Drawing]
    tables: Mapping[str, tuple[pd.DataFrame, int]]
    changed: Mapping[str, tuple[pd.DataFrame, int]]
    explains: bool


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a question. `charts` are plotly figures as JSON, `folder` holds what can be downloaded."""

    asked: Asked
    size: str
    metrics: Sequence[Metric]
    designs: Sequence[Design]
    charts: Sequence[str]
    reference: str | None
    shares: Mapping[str, float | None]
    folder: Path
    seconds: float


def warm(memory_mb: int) -> None:
    """Make a new worker ready: what all questions need is loaded, and its memory has an end."""
    import planner.charts
    import planner.html
    import planner.run  # noqa: F401 - loaded for later
    from planner.catalogue import find_system, system_names

    for name in system_names():
        find_system(name)
    if memory_mb:
        limit = memory_mb << 20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def compare(asked: Asked, home: Path, out: Path, before: Path | None) -> Answer:
    """Run the designs that are asked for; `before` is the folder of the answer to compare to."""
    from planner import charts, files, html, report, run

    start = time.perf_counter()
    scenario = asked.load(home)
    result = run.compare(scenario, designs=list(asked.designs) or None)
    shutil.rmtree(out, ignore_errors=True)
    files.save(scenario, result.runs, out)
    if asked.upload:  # what is downloaded brings its tables along
        for table in find_tables(scenario.system.tables, home, scenario.system.optional_tables).values():
            shutil.copy(table, out / table.name)
        (out / "scenario.toml").write_text(scenario.to_toml(home), encoding="utf-8")
    html.write(html.comparison_page(result, scenario), out / "report.html")
    return Answer(
        asked=asked,
        size=report.sizes(result.problem.size()),
        metrics=result.system.metrics,
        designs=[_design(one, before) for one in result.runs],
        charts=[figure.to_json() for figure in charts.comparison(result)],
        reference=None if result.reference is None else result.reference[0],
        shares={one.label: result.share_of_bound(one) for one in result.runs},
        folder=out,
        seconds=time.perf_counter() - start,
    )


def _design(one: Any, before: Path | None) -> Design:
    from planner.changes import changes

    tables = {} if one.plan is None else one.plan.to_tables()
    drawings: Sequence[Drawing] = ()
    if one.plan is not None and one.system.draw is not None:
        drawings = tuple(one.system.draw(one.problem, one.plan))
    changed: Mapping[str, pd.DataFrame] = {}
    if before is not None and one.plan is not None:
        earlier = {
            path.stem: pd.read_parquet(path)
            for path in sorted((before / one.label / "plan").glob("*.parquet"))
        }
        changed = changes(one.system, earlier, tables)
    trouble = str(one.error) if one.error else "; ".join(one.proof.reasons) if one.plan is None else ""
    return Design(
        label=one.label,
        mechanism=str(one.entry.design.mechanism),
        status="failed" if one.error else str(one.proof.status),
        gap=one.proof.gap,
        seconds=one.proof.seconds,
        metrics=dict(one.metrics),
        broken=len(one.violations),
        violations=one.violations.sentences(),
        trouble=trouble,
        drawings=drawings,
        tables={name: (frame.head(MOST_ROWS), len(frame)) for name, frame in tables.items()},
        changed={name: (frame.head(MOST_ROWS), len(frame)) for name, frame in changed.items()},
        explains=one.system.explain is not None and one.plan is not None,
    )


def explain(asked: Asked, home: Path, label: str) -> tuple[Sequence[str], Sequence[Section]]:
    """What limits one design's plan, and which upgrade pays."""
    from planner.explain import explain as ask

    found = ask(asked.load(home), design=label).explanation
    return ((), ()) if found is None else (found.sentences, found.sections)


def reproduce(name: str, quick: bool) -> tuple[Sequence[Mapping[str, Any]], Sequence[str], str]:
    """The rows, charts and trouble of a target."""
    from planner import charts
    from planner import reproduce as reproduction

    ((system, target),) = reproduction.find_targets([name])
    done = reproduction.reproduce(system, target, quick=quick)
    rows = [row.to_dict() for row in done.rows]
    figures = [charts.chart(drawing).to_json() for drawing in done.curves]
    return rows, figures, "" if done.error is None else str(done.error)


def upload(system: str, given: Sequence[Sent], home: Path) -> tuple[str, str]:
    """Keep uploaded tables with the scenario that solves them; returns their digest and size.

    raises  InputError with every fault; then nothing is kept
    """
    import tomli_w

    from planner import report
    from planner.scenario import load

    folder, digest = uploads.keep(system, given, home)
    document = {"system": system, "problem": {"source": "tables", "path": "."}}
    (folder / "scenario.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    try:
        return digest, report.sizes(load(folder / "scenario.toml").make_problem().size())
    except PlannerError:
        shutil.rmtree(folder)
        raise


def plain(answer: Answer) -> Answer:
    """The answer without its tables and drawings, to compare to."""
    bare = [replace(design, drawings=(), tables={}, changed={}) for design in answer.designs]
    return replace(answer, designs=bare, charts=())
