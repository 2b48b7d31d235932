"""Functions that worker processes run: the only place of the dashboard that runs planner."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from planner import clock
from planner.compile_events import observe_compiling
from planner.contract import progress
from planner.contract.drawing import Drawing
from planner.contract.elements import ElementReport
from planner.contract.metrics import Metric
from planner.contract.notes import notes_of
from planner.errors import SolverFailure
from planner.formatting import amount_or_number, phrase, sizes
from planner.parent_process import end_with_parent
from planner.reports import run_drawings, run_pages, run_tables, run_text
from planner.reports.document import Part, Table, Text, no_drawings
from planner.reports.run_tables import DesignFigures
from planner.runs.verdict import Sentence
from planner.scenarios.scenario import Scenario, without_failures
from planner_dashboard import comparisons
from planner_dashboard.question import Question

if TYPE_CHECKING:
    from planner.contract.system import System
    from planner.runs.run import Comparison, Run

OUT_OF_MEMORY: Final = (
    "the worker ran out of memory, or was ended: the question is too large for it. Choose fewer designs or a "
    "smaller problem, start the dashboard with more memory for each worker (--memory MB), or use planner "
    "compare, which has no such limit"
)
KEPT_MB: Final = 512.0
"""Resident memory that a worker may keep from its questions, beyond that of its start."""
MAX_ROWS: Final = 2_000
"""Rows of a plan's table that a page shows; the download has all of them."""

MAX_NAMES: Final = 20_000
"""Elements of a kind whose names a page offers."""

PROGRESS_S: Final = 0.2
"""Time between two reports of a search."""

RenderedParts = Sequence[tuple[Part, Sequence[str]]]
"""Parts of a page, each with its charts as JSON."""


@dataclass(frozen=True, kw_only=True)
class DesignAnswer:
    """One design's answer.

    figures   its column in the tables of metrics
    title     of the design, for people
    headline  its headline figure with the unit, or why there is none
    then      its figure of the second rank, with words before it; "" for none
    losses    what users lose, and the constraints that its plan violates, with amounts; empty: nothing
    picture   the picture of its plan; None without a plan, or where the system draws none
    """

    figures: DesignFigures
    title: str
    headline: str
    then: str
    losses: Sequence[str]
    picture: Drawing | None
    has_plan: bool
    can_explain: bool

    @property
    def label(self) -> str:
        return self.figures.label


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question.

    sentences   of the verdict, the best design first, then what users lose by it
    best        label of the best design; "" where none has a plan
    notes       why designs have no plan, and what was converted or ignored of the data
    references  the metrics whose proven bounds shares are taken of
    groups      figures by group of what is served, such as traffic classes; none without groups
    whole       the picture of the problem without the failures of the question; None where there are none
    elements    names of the elements that a user may change, by their kind
    folder      of the stored comparison
    seconds     wall time of the answer, without compiling
    compile_s   wall time of compiling kernels, once for each worker
    stored      time at which the server stored it, ISO 8601 in UTC; "" where it was just solved
    """

    question: Question
    system: str
    size: str
    sentences: Sequence[Sentence]
    best: str
    designs: Sequence[DesignAnswer]
    notes: Sequence[Text | str]
    references: Sequence[Metric]
    whole: Drawing | None
    elements: Mapping[str, Sequence[str]]
    folder: Path
    seconds: float
    compile_s: float
    groups: Sequence[Table] = ()
    stored: str = ""

    @property
    def verdict(self) -> str:
        """The sentences of the verdict as one text."""
        return " ".join(sentence.text for sentence in self.sentences)

    def design(self, label: str) -> DesignAnswer | None:
        """Return the answer of a design; None where it was not asked for."""
        return next((design for design in self.designs if design.label == label), None)


@dataclass(frozen=True, kw_only=True)
class DesignDetails:
    """Parts of a design's plan that a page shows on request.

    sentences  its verdict, what the design is, how its search ended, and what its plan violates
    charts     drawings of its plan but the first: plotly figures as JSON
    tables     the first rows of its plan's tables, and their numbers of rows
    changes    differences from the plan before, where there is one
    """

    sentences: Sequence[Text | str]
    charts: Sequence[str]
    tables: Mapping[str, tuple[pd.DataFrame, int]]
    changes: Mapping[str, tuple[pd.DataFrame, int]]


def begin(limit_mb: int) -> None:
    """Limit the memory of a new worker, and let it end with the dashboard, also where that is killed.

    Its parent is the process that forks workers, which lives as long as any of them.
    """
    end_with_parent(os.getppid())
    threading.Thread(target=_end_with_dashboard, name="dashboard watchdog", daemon=True).start()
    limit_memory(limit_mb)


def _end_with_dashboard() -> None:
    dashboard = multiprocessing.parent_process()
    if dashboard is not None:
        dashboard.join()
        os._exit(1)


def limit_memory(limit_mb: int) -> None:
    """Limit the memory of a new worker; 0 is no limit."""
    _memory["start_mb"] = _resident_mb()
    if limit_mb:
        resource.setrlimit(resource.RLIMIT_DATA, (limit_mb << 20, limit_mb << 20))


_memory: dict[str, float] = {}


def _resident_mb() -> float:
    """Return the resident memory, MB; 0 where the system does not say.

    Address space does not count: the allocator of Arrow reserves a gigabyte and hardly uses it.
    """
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)
    except (OSError, IndexError, ValueError):
        return 0.0


class TasksUntilLarge(int):
    """The number of tasks of a worker: as many as it does before it keeps more than KEPT_MB of memory.

    Pebble asks before each task whether this number is larger than that of the tasks done. A worker that is
    replaced leaves its whole heap to the next question.
    """

    def __gt__(self, count: int) -> bool:
        return _resident_mb() - _memory.get("start_mb", 0.0) < KEPT_MB

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


@lru_cache(maxsize=1)
def load_scenario(question: Question, tables: Path) -> Scenario:
    """Load the scenario of a question once for its answer and explanations; they share its problem."""
    scenario = question.load(tables)
    return replace(scenario, make_problem=cache(scenario.make_problem))


def compare(question: Question, tables: Path, out: Path, activity: Path | None = None) -> Answer:
    """Run the designs of a question, and store the comparison for requests of a page.

    tables    folder of the uploaded tables
    out       folder of the stored comparison
    activity  file for the words that a page shows while this takes long; beside it, in a file `.found`, are
              the verdicts on finished designs, which a page shows where there is no answer
    """
    start = clock.wall_now()
    scenario = load_scenario(question, tables)
    result = _run_designs(scenario, list(question.designs) or None, activity)
    answer = answer_of(result, scenario, question, tables, out)
    return replace(answer, seconds=clock.wall_now() - start)


def answer_of(result: Comparison, scenario: Scenario, question: Question, tables: Path, out: Path) -> Answer:
    """Store a comparison, and return the answer that a page shows."""
    from planner.runs import verdict

    comparisons.store(result, scenario, question, tables, out)
    designs = [
        _design_answer(run, figures)
        for run, figures in zip(result.runs, run_tables.figures_of(result), strict=True)
    ]
    best = verdict.best_run(result.runs)
    titled = result.titled().runs
    unfailed = without_failures(scenario)
    full_problem = None if unfailed is None else unfailed.make_problem()
    return Answer(
        question=question,
        system=result.system.name,
        size=sizes(result.problem.size()),
        sentences=verdict.comparison_sentences(titled),
        best="" if best is None else best.label,
        designs=designs,
        notes=[
            *(line for run in titled if run.plan is None for line in run_text.trouble(run)),
            *notes_of(result.problem),
        ],
        references=run_tables.references_of(result),
        groups=run_tables.breakdown_tables(titled),
        whole=None if full_problem is None else run_drawings.draw_problem(result.system, full_problem),
        elements=_element_names(result.system, result.problem if full_problem is None else full_problem),
        folder=out,
        seconds=0.0,
        compile_s=sum(design.figures.compile_s or 0.0 for design in designs),
    )


def _element_names(system: System, problem: Any) -> dict[str, Sequence[str]]:
    """Return the names of all elements by kind; of a kind with very many, none: pictures select them."""
    names_of = {kind.name: kind.names(problem) for kind in system.problem.elements}
    return {kind: tuple(names) if len(names) <= MAX_NAMES else () for kind, names in names_of.items()}


def _first(draw: Callable[..., Sequence[Drawing]] | None, *arguments: Any) -> Drawing | None:
    """Return the first drawing; None where there is none."""
    return next(iter(draw(*arguments)), None) if draw else None


def _run_designs(scenario: Scenario, labels: list[str] | None, activity: Path | None) -> Comparison:
    """Run designs; one that runs out of memory fails alone, and verdicts are written as they are found."""
    from planner.runs import evaluation
    from planner.runs.run import Comparison, Run

    runs: list[Run] = []
    runs += [evaluation.evaluate(scenario.system, scenario.make_problem(), plan) for plan in scenario.plans]
    for entry in evaluation.entries(scenario, labels):
        if entry in scenario.plans:
            continue
        with _show_progress(scenario.system, entry.title, activity):
            try:
                runs += evaluation.compare(replace(scenario, plans=()), designs=[entry.label]).runs
            except MemoryError:
                problem, error = scenario.make_problem(), SolverFailure(OUT_OF_MEMORY)
                runs.append(Run(system=scenario.system, problem=problem, entry=entry, error=error))
        if activity is not None:
            verdicts = "\n".join(run.titled().verdict for run in runs if run.error is None)
            activity.with_suffix(".found").write_text(verdicts, encoding="utf-8")
    return Comparison(system=scenario.system, problem=scenario.make_problem(), runs=tuple(runs))


@contextmanager
def _show_progress(system: System, label: str, activity: Path | None) -> Iterator[None]:
    """Write the incumbent and the bound of a design to a file while its search runs."""
    if activity is None:
        yield
        return
    activity.write_text(f"solving with {label}", encoding="utf-8")
    written, kernels = 0.0, 0

    def write(words: str) -> None:
        nonlocal written
        now = time.monotonic()
        if now >= written + PROGRESS_S:
            written = now
            activity.write_text(f"solving with {label}: {words}", encoding="utf-8")

    def count_kernel(_: str) -> None:
        nonlocal kernels
        kernels += 1
        write(f"compiling (once), {sizes({'kernels': kernels})}")

    show_state = progress.observe(lambda state: write(_progress_words(system, state)))
    with show_state, observe_compiling(count_kernel):
        yield
    activity.unlink(missing_ok=True)


def _progress_words(system: System, state: progress.Progress) -> str:
    """Return an incumbent and its bound in words: `38.1 Gbit/s found, at most 38.6 Gbit/s is possible`."""
    metric = system.metric(state.metric)
    extreme = "most" if metric.better == "more" else "least"
    words = []
    if state.objective is not None:
        words.append(f"{amount_or_number(state.objective, metric.unit)} found")
    if state.bound is not None:
        words.append(f"at {extreme} {amount_or_number(state.bound, metric.unit)} possible")
    return ", ".join([metric.words, *words])


def render(parts: Sequence[Part]) -> RenderedParts:
    """Return parts that can be sent to a page's process, with their charts as JSON."""
    return [
        (
            replace(section, drawings=no_drawings, figures=None, pictures=None),
            [figure.to_json() for figure in section.charts],
        )
        for section in parts
    ]


def _design_answer(run: Run, figures: DesignFigures) -> DesignAnswer:
    from planner.runs.verdict import headline_values

    system = run.system
    ranked = zip(system.ranks, headline_values(run), strict=False)
    shown = [amount_or_number(value, metric.unit) for metric, value in ranked]
    return DesignAnswer(
        figures=figures,
        title=run.entry.title,
        headline=shown[0] if shown else run.status,
        then=" ".join([system.plan.headline.then_words, *shown[1:]]) if shown[1:] else "",
        losses=_losses(run),
        picture=None if run.plan is None else _first(system.plan.draw, run.problem, run.plan),
        has_plan=run.plan is not None,
        can_explain=system.studies.what_if is not None and run.plan is not None,
    )


def _losses(run: Run) -> list[str]:
    """Return the users' losses by a plan, and the violated constraints, with the worst of each."""
    verbs = run.system.plan.headline.losses
    lost = [
        phrase(verbs[name], amount_or_number(value, run.system.metric(name).unit))
        for name, value in run.constraints.lost.items()
    ]
    return [
        *lost,
        *(
            f"{sizes({limit.words: limit.places})}, by at most {amount_or_number(limit.worst, limit.unit)}"
            for limit in run.constraints.violated
        ),
    ]


def details(folder: Path, label: str, before: Path | None) -> DesignDetails:
    """Return the view of a design's plan in a stored comparison for a page.

    before  folder of the comparison whose plan of the same design is the plan before; None for none
    """
    from planner.runs.plan_diff import compare_plans

    run_ = comparisons.load(folder)[label]
    from planner.reports import charts as plots

    section = run_pages.plan_part(run_.titled(), is_alone=True)
    drawings = section.drawings()[1:]  # the page shows the first one above
    tables = {} if run_.plan is None else run_.plan.to_tables()
    differences: Mapping[str, pd.DataFrame] = {}
    if before is not None and run_.plan is not None:
        earlier = next((run.plan for run in comparisons.load(before) if run.label == label), None)
        if earlier is not None:
            differences = compare_plans(run_.system, earlier.to_tables(), tables)
    return DesignDetails(
        sentences=section.sentences,
        charts=[plots.chart(drawing).to_json() for drawing in drawings],
        tables={name: (frame.head(MAX_ROWS), len(frame)) for name, frame in tables.items()},
        changes={name: (frame.head(MAX_ROWS), len(frame)) for name, frame in differences.items()},
    )


def charts(folder: Path) -> list[str]:
    """Return the charts of a stored comparison: plotly figures as JSON."""
    page = run_pages.document_page(comparisons.load(folder))
    return [figure.to_json() for figure in page.parts[0].charts]


def describe(folder: Path, label: str, kind_name: str, name: str) -> ElementReport | None:
    """Return the use of an element by a plan of a stored comparison; None if there is none."""
    return _describe(comparisons.load(folder)[label], kind_name, name)


def _describe(run: Run, kind_name: str, name: str) -> ElementReport | None:
    from planner.runs.what_if import decided_of

    kind = next(kind for kind in run.system.problem.elements if kind.name == kind_name)
    if kind.describe is None or run.plan is None or name not in kind.names(run.problem):
        return None
    observed = run.entry.design.observe(run.problem, **run.entry.information)
    return kind.describe(observed, decided_of(run, observed), name, run.options)


@dataclass(frozen=True, kw_only=True)
class RestoredElement:
    """A failed element as it is without its failure.

    metrics  of the plan with it
    report   on its use by that plan; None where there is none
    """

    metrics: Mapping[str, float | None]
    report: ElementReport | None


def describe_restored(
    folder: Path | None, question: Question, label: str, kind_name: str, name: str, tables: Path
) -> RestoredElement:
    """Return the use of an element by the plan of a question in which it has not failed.

    folder  of the stored comparison of that question, if there is one; else the design runs
    """
    if folder is None:
        from planner.runs import evaluation

        run = evaluation.compare(load_scenario(question, tables), designs=[label])[label]
    else:
        run = comparisons.load(folder)[label]
    return RestoredElement(metrics=dict(run.metrics), report=_describe(run, kind_name, name))


def explain(question: Question, tables: Path, label: str) -> Part:
    """Return the limits of one design's plan, and the upgrades that pay; the page names both already."""
    from planner.runs import what_if

    explained = what_if.explain(load_scenario(question, tables), design=label)
    part = run_pages.explained_page(replace(explained, run=explained.run.titled())).parts[0]
    return part if explained.explanation is None else replace(part, sentences=part.sentences[1:])


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

    def advance(completed: int, failed: int, total: int) -> None:  # noqa: ARG001
        partial = progress.with_suffix(".partial")
        partial.write_text(f"{completed}/{total}")
        partial.replace(progress)

    try:
        (curves,) = measurement.curves([system], out=out, workers=1, advance=advance)
    finally:
        progress.unlink(missing_ok=True)
    return SystemMeasurement(
        designs=curves.measured.frame,
        curves=curves.frame,
        bound=curves.measured.bound,
        failed_designs=dict(curves.measured.failed),
        failed_runs=dict(curves.failed),
    )
