"""Tables of the document model as a page shows them."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas as pd
from streamlit.testing.v1 import AppTest


class _Reader(HTMLParser):
    """Reads the tables of `rendering.table_html`: rows of cells, each with whether it is a header."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[tuple[str, bool]]]] = []
        self.in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table" and ("class", "planner-table") in attrs:
            self.tables.append([])
        elif self.tables and tag == "tr":
            self.tables[-1].append([])
        elif self.tables and tag in ("th", "td"):
            self.tables[-1][-1].append(("", tag == "th"))
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self.in_cell = False

    def handle_data(self, data: str) -> None:
        if self.tables and self.in_cell:
            text, is_header = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = text + data, is_header


def shown_tables(app: AppTest) -> list[pd.DataFrame]:
    """Return the tables of a page; row headers are their index, where they have any."""
    reader = _Reader()
    for item in app.get("html"):
        reader.feed(str(item.proto.body))
    return [_frame(*rows) for rows in reader.tables]


def _frame(head: list[tuple[str, bool]], *rows: list[tuple[str, bool]]) -> pd.DataFrame:
    names = [text for text, _ in head]
    headers = 1 if rows and rows[0][0][1] else 0
    frame = pd.DataFrame([[text for text, _ in row] for row in rows], columns=names)
    if not headers:
        return frame
    return frame.iloc[:, 1:].set_axis([row[0][0] for row in rows])
