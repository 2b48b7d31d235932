"""The page of each kind of result, and the charts of a page by their titles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.coordination.design_space import DesignSpace, Recommendation
from planner.coordination.recipes import Measured
from planner.reports import catalogue_pages, element_pages, run_pages, study_pages
from planner.runs.alternatives import Alternatives
from planner.runs.diff import PlanChange
from planner.runs.files import Checked
from planner.runs.reproduction import Reproduction, Reproductions, Targets
from planner.runs.rolling import Rolled
from planner.runs.run import Comparison, Run
from planner.runs.simulate import SimulatedDesigns
from planner.runs.what_if import Explained
from planner.sweeps.failure_list import Failures
from planner.sweeps.sweep import Sweep
from planner.sweeps.upgrade_list import Upgrades

if TYPE_CHECKING:
    from pathlib import Path

    from plotly import graph_objects as go

    from planner.reports.document import Page
    from planner.runs.result import Result


def page_of(result: Result) -> Page:  # noqa: C901 - one case a kind
    """Return the page of a result."""
    match result:
        case Run():
            return run_pages.comparison_page(result.alone())
        case Alternatives():
            return run_pages.alternatives_page(result)
        case Comparison():
            return run_pages.comparison_page(result, result.scenario)
        case PlanChange():
            return run_pages.plan_change_page(result)
        case Explained():
            return run_pages.explained_page(result)
        case Failures():
            return element_pages.failures_page(result)
        case Upgrades():
            return element_pages.upgrades_page(result)
        case Rolled():
            return run_pages.windows_page(result.system, result.windows)
        case SimulatedDesigns():
            return run_pages.simulation_page(result)
        case Checked():
            return run_pages.checked_page(result)
        case Reproduction():
            return study_pages.reproduction_page([result])
        case Reproductions():
            return study_pages.reproduction_page(result.targets)
        case Targets():
            return study_pages.targets_page(result.targets)
        case Sweep():
            return catalogue_pages.sweep_page(result)
        case DesignSpace():
            return study_pages.design_space_page(result.reviews)
        case Recommendation():
            return study_pages.advice_page(result)
        case Measured():
            return study_pages.coordination_page(result.systems, result.curves)
    raise TypeError(f"{type(result).__name__} has no page")


def document_of(result: Result) -> Page:
    """Return the page of a result for a report, in titles where its kind has them."""
    match result:
        case Run():
            return run_pages.document_page(result.alone())
        case Comparison():
            return run_pages.document_page(result, result.scenario)
    return page_of(result)


def charts_of(page: Page) -> dict[str, go.Figure]:
    """Return the charts of a page by their titles, in order."""
    figures = [figure for section in page.parts for figure in section.charts]
    return {_title(figure, count): figure for count, figure in enumerate(figures, start=1)}


def write_report(page: Page, path: Path) -> None:
    """Write a page in the format of the file's ending.

    raises  InputError for another ending, and where the file cannot be written
    """
    from planner.reports import report_files

    report_files.write(page, path)


def fragment_of(page: Page) -> str:
    """Return a page as HTML within another page."""
    from planner.reports import html

    return html.fragment(page)


def _title(figure: go.Figure, count: int) -> str:
    return re.sub(r"<[^>]*>", " ", str(figure.layout.title.text or f"chart {count}"))
