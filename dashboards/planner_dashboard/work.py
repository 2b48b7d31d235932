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

from planner.drawing import NetworkMap
from planner.system import Metric, Section
from planner.table_files import find_tables
from planner_dashboard import uploads
from planner_dashboard.asked import Asked
from planner_dashboard.uploads import Sent

MOST_ROWS: Final = 2_000
"""Of a plan's table that a page shows; the download has all of them."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """One design's answer.

    broken   how many limits its plan breaks in truth, and in `violations` where
    charts   what its plan looks like: plotly figures as JSON
    links    the links of its map, as lists of failures name them
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
    charts: Sequence[str]
    links: Sequence[str]
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


def limit_memory(most_mb: int) -> None:
    """Give a new worker's memory an end, where it is not 0."""
    if most_mb:
        resource.setrlimit(resource.RLIMIT_DATA, (most_mb << 20, most_mb << 20))


def compare(asked: Asked, home: Path, out: Path, before: Path | None) -> Answer:
    """Run the designs that are asked for; `before` is the folder of the answer to compare to."""
    from planner import files, html, report, run

    start = time.perf_counter()
    scenario = asked.load(home)
    result = run.compare(scenario, designs=list(asked.designs) or None)
    shutil.rmtree(out, ignore_errors=True)
    files.save(scenario, result.runs, out)
    if asked.upload:  # what is downloaded brings its tables along
        for table in find_tables(scenario.system.tables, home, scenario.system.optional_tables).values():
            shutil.copy(table, out / table.name)
        (out / "scenario.toml").write_text(scenario.to_toml(home), encoding="utf-8")
    page = html.comparison_page(result, scenario)
    html.write(page, out / "report.html")
    # the report's charts are the page's: side by side first, then each design's
    together, *alone = ([figure.to_json() for figure in part.figures] for part in page.parts)
    return Answer(
        asked=asked,
        size=report.sizes(result.problem.size()),
        metrics=result.system.metrics,
        designs=[_design(one, drawn, before) for one, drawn in zip(result.runs, alone, strict=False)],
        charts=together,
        reference=None if result.reference is None else result.reference[0],
        shares={one.label: result.share_of_bound(one) for one in result.runs},
        folder=out,
        seconds=time.perf_counter() - start,
    )


def _design(one: Any, drawn: Sequence[str], before: Path | None) -> Design:
    from planner.changes import changes

    tables = {} if one.plan is None else one.plan.to_tables()
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
        charts=drawn,
        links=_links(one),
        tables={name: (frame.head(MOST_ROWS), len(frame)) for name, frame in tables.items()},
        changed={name: (frame.head(MOST_ROWS), len(frame)) for name, frame in changed.items()},
        explains=one.system.explain is not None and one.plan is not None,
    )


def _links(one: Any) -> Sequence[str]:
    if one.plan is None or one.system.draw is None:
        return ()
    for drawing in one.system.draw(one.problem, one.plan):
        if isinstance(drawing, NetworkMap):
            pairs = zip(drawing.links["tail"].astype(str), drawing.links["head"].astype(str), strict=True)
            return sorted({"<->".join(sorted(pair)) for pair in pairs})[:MOST_ROWS]
    return ()


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


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What coordination is worth in a system, measured anew: frames as `planner.coordination` has them."""

    designs: pd.DataFrame
    curves: pd.DataFrame
    sentences: Sequence[str]
    trouble: Sequence[str]


def measure(system: str, out: Path, progress: Path) -> Worth:
    """Measure a system's designs and their curves; `progress` tells how far that is."""
    from planner import coordination

    def advance(done: int, failed: int, total: int) -> None:  # noqa: ARG001
        partial = progress.with_suffix(".partial")
        partial.write_text(f"{done}/{total}")
        partial.replace(progress)

    try:
        (found,) = coordination.curves([system], out=out, workers=1, advance=advance)
    finally:
        progress.unlink(missing_ok=True)
    return Worth(
        designs=found.measured.frame,
        curves=found.frame,
        sentences=[*found.measured.sentences(), *found.sentences()],
        trouble=found.trouble(),
    )


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
    except BaseException:
        shutil.rmtree(folder)
        raise


def plain(answer: Answer) -> Answer:
    """The answer without its tables and charts, to compare to."""
    bare = [replace(design, charts=(), tables={}, changed={}) for design in answer.designs]
    return replace(answer, designs=bare, charts=())
