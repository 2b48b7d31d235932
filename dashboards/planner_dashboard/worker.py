"""Functions that worker processes run: the only place of the dashboard that runs planner."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from planner.contract.drawing import NetworkMap
from planner.contract.metrics import Metric
from planner.formatting import sizes
from planner.io.table_files import find_tables
from planner.reports import run_pages
from planner.reports.document import Part, Text, no_figures
from planner.reports.run_pages import DesignFigures
from planner.scenarios.scenario import Scenario
from planner_dashboard import uploads
from planner_dashboard.question import Question
from planner_dashboard.uploads import UploadedFile

if TYPE_CHECKING:
    from planner.runs.run import Run

MAX_ROWS: Final = 2_000
"""Rows of a plan's table that a page shows; the download has all of them."""

RenderedParts = Sequence[tuple[Part, Sequence[str]]]
"""Parts of a page, each with its charts as JSON."""


@dataclass(frozen=True, kw_only=True)
class DesignAnswer:
    """One design's answer.

    sentences  what the design is, how its search ended, and the constraints that its plan violates
    charts     drawings of its plan: plotly figures as JSON
    links      the links of its map, as lists of failures name them
    tables     the first rows of its plan's tables, and their numbers of rows
    changes    differences from the baseline's plan, where there is one
    """

    label: str
    sentences: Sequence[Text | str]
    charts: Sequence[str]
    links: Sequence[str]
    tables: Mapping[str, tuple[pd.DataFrame, int]]
    changes: Mapping[str, tuple[pd.DataFrame, int]]
    can_explain: bool


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question.

    notes   failed designs, and constraints that plans violate
    charts  plotly figures of the comparison as JSON
    folder  of what can be downloaded
    """

    question: Question
    size: str
    metrics: Sequence[Metric]
    designs: Sequence[DesignAnswer]
    figures: Sequence[DesignFigures]
    notes: Sequence[Text | str]
    charts: Sequence[str]
    reference: Metric | None
    folder: Path
    seconds: float


def limit_memory(limit_mb: int) -> None:
    """Limit the memory of a new worker; 0 is no limit."""
    if limit_mb:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_mb << 20, limit_mb << 20))


@lru_cache(maxsize=1)
def load_scenario(question: Question, tables: Path) -> Scenario:
    """Load the scenario of a question once for its answer and explanations; they share its problem."""
    scenario = question.load(tables)
    return replace(scenario, make_problem=cache(scenario.make_problem))


def compare(question: Question, tables: Path, out: Path, baseline: Path | None) -> Answer:
    """Run the designs of a question.

    tables    folder of the uploaded tables
    out       folder for downloads
    baseline  folder of the answer to compare to
    """
    from planner.reports import html
    from planner.runs import files, run

    start = time.perf_counter()
    scenario = load_scenario(question, tables)
    result = run.compare(scenario, designs=list(question.designs) or None)
    shutil.rmtree(out, ignore_errors=True)
    files.save_runs(scenario, result.runs, out)
    if question.upload:  # the download includes its tables
        for table in find_tables(
            scenario.system.problem.tables, tables, scenario.system.problem.optional_tables
        ).values():
            shutil.copy(table, out / table.name)
        (out / "scenario.toml").write_text(scenario.to_toml(tables), encoding="utf-8")
    page = run_pages.comparison_page(result, scenario)
    html.write(page, out / "report.html")
    # the report begins with the comparison, then has a part for each design
    (comparison, charts), *plans = render(page.parts)
    return Answer(
        question=question,
        size=sizes(result.problem.size()),
        metrics=result.system.metrics,
        designs=[
            _design_answer(one, *rendered, baseline)
            for one, rendered in zip(result.runs, plans, strict=False)
        ],
        notes=comparison.notes,
        charts=charts,
        figures=run_pages.figures_of(result),
        reference=run_pages.reference_of(result),
        folder=out,
        seconds=time.perf_counter() - start,
    )


def render(parts: Sequence[Part]) -> RenderedParts:
    """Return parts that can be sent to a page's process, with their charts as JSON."""
    return [
        (replace(part, figures=no_figures, pictures=None), [figure.to_json() for figure in part.charts])
        for part in parts
    ]


def _design_answer(one: Run, part: Part, charts: Sequence[str], baseline: Path | None) -> DesignAnswer:
    from planner.runs.plan_diff import compare_plans

    tables = {} if one.plan is None else one.plan.to_tables()
    differences: Mapping[str, pd.DataFrame] = {}
    if baseline is not None and one.plan is not None:
        earlier = {
            path.stem: pd.read_parquet(path)
            for path in sorted((baseline / one.label / "plan").glob("*.parquet"))
        }
        differences = compare_plans(one.system, earlier, tables)
    return DesignAnswer(
        label=one.label,
        sentences=part.sentences,
        charts=charts,
        links=_map_links(one),
        tables={name: (frame.head(MAX_ROWS), len(frame)) for name, frame in tables.items()},
        changes={name: (frame.head(MAX_ROWS), len(frame)) for name, frame in differences.items()},
        can_explain=one.system.studies.what_if is not None and one.plan is not None,
    )


def _map_links(one: Run) -> Sequence[str]:
    if one.plan is None or one.system.plan.draw is None:
        return ()
    for drawing in one.system.plan.draw(one.problem, one.plan):
        if isinstance(drawing, NetworkMap):
            pairs = zip(drawing.links["tail"].astype(str), drawing.links["head"].astype(str), strict=True)
            return sorted({"<->".join(sorted(pair)) for pair in pairs})[:MAX_ROWS]
    return ()


def explain(question: Question, tables: Path, label: str) -> Part:
    """Return what limits one design's plan, and which upgrade pays."""
    from planner.runs import what_if

    explained = what_if.explain(load_scenario(question, tables), design=label)
    return run_pages.explained_page(explained).parts[0]


def reproduce(name: str, is_quick: bool) -> RenderedParts:
    """Run a target; return its published values beside ours, and its verdicts."""
    from planner.reports import study_pages
    from planner.runs import reproduction

    ((system, target),) = reproduction.find_targets([name])
    done = reproduction.reproduce(system, target, quick=is_quick)
    return render([study_pages.reproduction_part(done), study_pages.verdicts_part([done])])


@dataclass(frozen=True, kw_only=True)
class SystemMeasurement:
    """The measured value of coordination in one system; fields as in `Measurement` and `Curves`."""

    designs: pd.DataFrame
    curves: pd.DataFrame
    bound: float | None
    failed_designs: Mapping[str, str]
    failed_runs: Mapping[str, str]


def measure(system: str, out: Path, progress: Path) -> SystemMeasurement:
    """Measure a system's designs and their curves; write the numbers of done and all runs to `progress`."""
    from planner.coordination import measurement

    def advance(done: int, failed: int, total: int) -> None:  # noqa: ARG001
        partial = progress.with_suffix(".partial")
        partial.write_text(f"{done}/{total}")
        partial.replace(progress)

    try:
        (found,) = measurement.curves([system], out=out, workers=1, advance=advance)
    finally:
        progress.unlink(missing_ok=True)
    return SystemMeasurement(
        designs=found.measured.frame,
        curves=found.frame,
        bound=found.measured.bound,
        failed_designs=dict(found.measured.failed),
        failed_runs=dict(found.failed),
    )


def upload(system: str, files: Sequence[UploadedFile], folder: Path) -> tuple[str, str]:
    """Store uploaded tables with the scenario that solves them; return their digest and size.

    raises  InputError with every fault; then nothing is stored
    """
    import tomli_w

    from planner.scenarios.scenario import load

    own, digest = uploads.store_tables(system, files, folder)
    document = {"system": system, "problem": {"source": "tables", "path": "."}}
    (own / "scenario.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    try:
        return digest, sizes(load(own / "scenario.toml").make_problem().size())
    except BaseException:
        shutil.rmtree(own)
        raise


def without_content(answer: Answer) -> Answer:
    """Return the answer without tables and charts, as a baseline needs it."""
    designs: list[Any] = [replace(design, charts=(), tables={}, changes={}) for design in answer.designs]
    return replace(answer, designs=designs, charts=())
