"""Presenter of results: reports register theirs, results ask for it, and neither imports the other.

This module loads nothing: importing planner registers a presenter, which is loaded when a result is shown.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as checkers of types know it; importing typing takes longer than all of this

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, Protocol

    from plotly import graph_objects as go

    from planner.reports.document import Page

    class Presenter(Protocol):
        """Functions that show results."""

        def page_of(self, result: Any) -> Page:
            """Return the page that terminal, HTML and dashboard show."""

        def document_of(self, result: Any) -> Page:
            """Return the page that a report tells."""

        def charts_of(self, page: Page) -> dict[str, go.Figure]:
            """Return the charts of a page by their titles, in order."""

        def write_report(self, page: Page, path: Path) -> None:
            """Write a page in the format of the file's ending."""

        def fragment_of(self, page: Page) -> str:
            """Return a page as HTML within another page."""


_loaders: list[Callable[[], Presenter]] = []


def register_presenter(load: Callable[[], Presenter]) -> None:
    """Let results be shown by the presenter that `load` returns, in place of any other."""
    _loaders[:] = [load]


def find_presenter() -> Presenter:
    """Return the presenter of results."""
    return _loaders[0]()
