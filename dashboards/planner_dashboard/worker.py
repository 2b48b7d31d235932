"""Functions that worker processes run: the only place of the dashboard that runs planner."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from planner.contract.drawing import NetworkMap
from planner.contract.metrics import Metric
from planner.contract.notes import notes_of
from planner.errors import SolverFailure
from planner.formatting import amount_or_number, phrase, sizes
from planner.io.table_files import find_tables
from planner.reports import run_pages
from planner.reports.document import Part, Text, no_figures
from planner.reports.run_pages import DesignFigures
from planner.scenarios.scenario import Entry, Scenario
from planner_dashboard import uploads
from planner_dashboard.question import Question
from planner_dashboard.uploads import UploadedFile

if TYPE_CHECKING:
    from planner.runs.run import Comparison, Run

OUT_OF_MEMORY: Final = (
    "the worker ran out of memory, or was ended: the question is too large for it. Choose fewer designs or a "
    "smaller problem, start the dashboard with more memory for each worker (--memory MB), or use planner "
    "compare, which has no such limit"
)
KEPT_MB: Final = 512.0
"""Memory that a worker may keep from its questions, beyond that of its start."""
MAX_ROWS: Final = 2_000
"""Rows of a plan's table that a page shows; the download has all of them."""

RenderedParts = Sequence[tuple[Part, Sequence[str]]]
"""Parts of a page, each with its charts as JSON."""


@dataclass(frozen=True, kw_only=True)
class DesignAnswer:
    """One design's answer.

    figures    its column in the tables of metrics
    headline   its headline figure with the unit, or why there is none
    then       its figure of the second rank, with words before it; "" for none
    losses     what users lose, and the constraints that its plan violates, with amounts; empty: nothing
    sentences  its verdict, what the design is, how its search ended, and what its plan violates
    charts     drawings of its plan: plotly figures as JSON
    links      the links of its map, as lists of failures name them
    tables     the first rows of its plan's tables, and their numbers of rows
    changes    differences from the baseline's plan, where there is one
    """

    figures: DesignFigures
    headline: str
    then: str
    losses: Sequence[str]
    sentences: Sequence[Text | str]
    charts: Sequence[str]
    links: Sequence[str]
    tables: Mapping[str, tuple[pd.DataFrame, int]]
    changes: Mapping[str, tuple[pd.DataFrame, int]]
    can_explain: bool

    @property
    def label(self) -> str:
        return self.figures.label


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question.

    notes      why designs have no plan, and what was converted or ignored of the data
    charts     plotly figures of the comparison as JSON
    references  the metrics whose proven bounds shares are taken of
    folder     of what can be downloaded
    seconds    wall time of the answer, without compiling
    compile_s  wall time of compiling kernels, once for each worker
    """

    question: Question
    system: str
    size: str
    verdict: str
    designs: Sequence[DesignAnswer]
    notes: Sequence[Text | str]
    charts: Sequence[str]
    references: Sequence[Metric]
    folder: Path
    seconds: float
    compile_s: float


def limit_memory(limit_mb: int) -> None:
    """Limit the memory of a new worker; 0 is no limit."""
    _memory["start_mb"] = _used_mb()
    if limit_mb:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_mb << 20, limit_mb << 20))


_memory: dict[str, float] = {}


def _used_mb() -> float:
    """Return the memory that the limit counts, MB; 0 where the system does not say."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize() / (1 << 20)
    except (OSError, IndexError, ValueError):
        return 0.0


class TasksUntilLarge(int):
    """The number of tasks of a worker: as many as it does before it keeps more than KEPT_MB of memory.

    Pebble asks before each task whether this number is larger than that of the tasks done. A worker that is
    replaced leaves its whole heap to the next question.
    """

    def __gt__(self, done: int) -> bool:
        return _used_mb() - _memory.get("start_mb", 0.0) < KEPT_MB

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


@lru_cache(maxsize=1)
def load_scenario(question: Question, tables: Path) -> Scenario:
    """Load the scenario of a question once for its answer and explanations; they share its problem."""
    scenario = question.load(tables)
    return replace(scenario, make_problem=cache(scenario.make_problem))


def compare(
    question: Question, tables: Path, out: Path, baseline: Path | None, activity: Path | None = None
) -> Answer:
    """Run the designs of a question.

    tables    folder of the uploaded tables
    out       folder for downloads
    baseline  folder of the answer to compare to
    activity  file for the words that a page shows while this takes long; beside it, in a file `.found`, are
              the verdicts on finished designs, which a page shows where there is no answer
    """
    from planner.reports import html
    from planner.runs import files, run

    start = time.perf_counter()
    scenario = load_scenario(question, tables)
    labels = list(question.designs) or None
    compile_s = _compile(scenario, run.entries(scenario, labels), activity)
    result = _run_designs(scenario, labels, None if activity is None else activity.with_suffix(".found"))
    shutil.rmtree(out, ignore_errors=True)
    files.save_runs(scenario, result.runs, out)
    if question.upload:  # the download includes its tables
        for table in find_tables(
            scenario.system.problem.tables, tables, scenario.system.problem.optional_tables
        ).values():
            shutil.copy(table.path, out / table.path.name)
        (out / "scenario.toml").write_text(scenario.to_toml(tables), encoding="utf-8")
    page = run_pages.comparison_page(result, scenario)
    html.write(page, out / "report.html")
    designs = []
    # the page ends with a part for each design, and one for the scenario
    parts = page.parts[-1 - len(result.runs) : -1]
    for one, figures, part in zip(result.runs, run_pages.figures_of(result), parts, strict=True):
        own_s = compile_s[one.label] + (figures.compile_s or 0.0)
        designs.append(_design_answer(one, replace(figures, compile_s=own_s), part, baseline))
    all_s = sum(one.figures.compile_s or 0.0 for one in designs)
    return Answer(
        question=question,
        system=result.system.name,
        size=sizes(result.problem.size()),
        verdict=result.verdict,
        designs=designs,
        notes=[
            *(line for one in result.runs if one.plan is None for line in run_pages.trouble(one)),
            *notes_of(result.problem),
        ],
        charts=[figure.to_json() for figure in page.parts[0].charts],
        references=run_pages.references_of(result),
        folder=out,
        seconds=time.perf_counter() - start - all_s,
        compile_s=all_s,
    )


def _run_designs(scenario: Scenario, labels: list[str] | None, found: Path | None) -> Comparison:
    """Run designs; one that runs out of memory fails alone, and verdicts are written as they are found."""
    from planner.runs import run

    runs: list[Run] = []
    for entry in run.entries(scenario, labels):
        try:
            runs += run.compare(scenario, designs=[entry.label]).runs
        except MemoryError:
            problem, error = scenario.make_problem(), SolverFailure(OUT_OF_MEMORY)
            runs.append(run.Run(system=scenario.system, problem=problem, entry=entry, error=error))
        if found is not None:
            found.write_text("\n".join(one.verdict for one in runs if one.error is None), encoding="utf-8")
    return run.Comparison(system=scenario.system, problem=scenario.make_problem(), runs=tuple(runs))


def _compile(scenario: Scenario, entries: Sequence[Entry], activity: Path | None) -> dict[str, float]:
    """Compile or load the kernels of designs; return the seconds that each takes, by its label."""
    from planner.runs import compilation, run

    def show(_: str) -> None:
        if activity is not None:
            activity.write_text("compiling (once)")

    with compilation.observe_compiling(show):
        seconds = {one.label: run.prepare(scenario.system, one, scenario.options) for one in entries}
    if activity is not None:
        activity.unlink(missing_ok=True)
    return seconds


def render(parts: Sequence[Part]) -> RenderedParts:
    """Return parts that can be sent to a page's process, with their charts as JSON."""
    return [
        (replace(part, figures=no_figures, pictures=None), [figure.to_json() for figure in part.charts])
        for part in parts
    ]


def _design_answer(one: Run, figures: DesignFigures, part: Part, baseline: Path | None) -> DesignAnswer:
    from planner.runs.plan_diff import compare_plans
    from planner.runs.verdict import headline_values

    tables = {} if one.plan is None else one.plan.to_tables()
    differences: Mapping[str, pd.DataFrame] = {}
    if baseline is not None and one.plan is not None:
        earlier = {
            path.stem: pd.read_parquet(path)
            for path in sorted((baseline / one.label / "plan").glob("*.parquet"))
        }
        differences = compare_plans(one.system, earlier, tables)
    ranked = zip(one.system.ranks, headline_values(one), strict=False)
    shown = [amount_or_number(value, metric.unit) for metric, value in ranked]
    return DesignAnswer(
        figures=figures,
        headline=shown[0] if shown else one.status,
        then=" ".join([one.system.plan.headline.then_words, *shown[1:]]) if shown[1:] else "",
        losses=_losses(one),
        sentences=part.sentences,
        charts=[figure.to_json() for figure in part.charts],
        links=_map_links(one),
        tables={name: (frame.head(MAX_ROWS), len(frame)) for name, frame in tables.items()},
        changes={name: (frame.head(MAX_ROWS), len(frame)) for name, frame in differences.items()},
        can_explain=one.system.studies.what_if is not None and one.plan is not None,
    )


def _losses(one: Run) -> list[str]:
    """Return what users lose by a plan, and the places that violate constraints, with the worst of each."""
    verbs = one.system.plan.headline.losses
    lost = [
        phrase(verbs[name], amount_or_number(value, one.system.metric(name).unit))
        for name, value in one.constraints.lost.items()
    ]
    return [
        *lost,
        *(
            f"{sizes({limit.words: limit.places})}, by at most {amount_or_number(limit.worst, limit.unit)}"
            for limit in one.constraints.violated
        ),
    ]


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
    done = reproduction.run_target(system, target, quick=is_quick)
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
    designs = [replace(design, charts=(), tables={}, changes={}) for design in answer.designs]
    return replace(answer, designs=designs, charts=())
