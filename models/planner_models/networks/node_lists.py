"""Lists of nodes as operators write them, `A > B > C` or a JSON list, and the links along them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd

from planner.contract.tables import SHOWN_ROWS, file_name, row_name, shorten_faults
from planner.errors import InputError, did_you_mean
from planner.io.json_texts import parse_json

_ARROW: Final = re.compile(r"->|→|>")


def parse_list(text: str) -> list[Any] | None:
    """Return the elements of a JSON list; None for any other text."""
    try:
        content = parse_json("list", text)
    except InputError:
        return None
    return content if isinstance(content, list) else None


def parse_nodes(text: str) -> list[str]:
    """Return the names in `A > B > C`, `A -> B -> C` or `["A", "B", "C"]`."""
    text = text.strip()
    names = parse_list(text)  # None also for a name that begins with a bracket
    if names is not None and all(isinstance(name, str | int | float) for name in names):
        return [str(name) for name in names]
    return [name.strip() for name in _ARROW.split(text)]


def parse_numbers(text: str) -> list[int] | None:
    """Return the whole numbers in `1, 2` or `[1, 2]`; None where it is none of them."""
    parts = text.strip().removeprefix("[").removesuffix("]").split(",")
    try:
        return [int(piece) for piece in parts]
    except ValueError:
        return None


class RowFaults:
    """Faults of the rows of one table, at most one for each row; the first rows are listed."""

    def __init__(self, frame: pd.DataFrame, table: str) -> None:
        self.frame, self.table = frame, table
        self.lines: dict[int, str] = {}

    def add(self, row: int, text: str) -> None:
        """Add a fault of a row, counted from 0, where it has none yet."""
        self.lines.setdefault(row, f"{row_name(self.frame, self.table, row)}: {text}")

    def add_unknown_node(self, row: int, name: str, column: str, names: Sequence[str]) -> None:
        """Add the fault that a name is no node, with the nearest one for the first rows."""
        near = did_you_mean(name, names) if len(self.lines) < SHOWN_ROWS else ""
        self.add(row, f"{column} '{name}' is no node of the network{near}")

    def report(self) -> list[str]:
        """Return the faults in the order of the rows."""
        lines = [self.lines[row] for row in sorted(self.lines)]
        return shorten_faults(lines, file_name(self.frame, self.table), "with faults")


class LinkNames:
    """All links of a network by their ends and numbers, those that are down too."""

    def __init__(
        self,
        ends: Iterable[tuple[int, int, int]],
        down: Iterable[tuple[int, int, int]] = (),
    ) -> None:
        """Take the tail, the head and the number of each link, in order, and those of links that are down."""
        self._first: dict[tuple[int, int], int] = {}
        self._numbered: dict[tuple[int, int, int], int] = {}
        for link, end_pair in enumerate(ends):
            self._numbered[end_pair] = link
        for (tail, head, _), link in sorted(self._numbered.items()):
            self._first.setdefault((tail, head), link)
        for tail, head, nth in down:
            self._first.setdefault((tail, head), -1)
            self._numbered.setdefault((tail, head, nth), -1)

    def find_any(self, tail: int, head: int) -> int | None:
        """Return the first link that is up from tail to head, -1 where all are down; None for no link."""
        return self._first.get((tail, head))

    def find(self, tail: int, head: int, parallel: int) -> int | None:
        """Return the link with these ends and this number, -1 where it is down; None for no link."""
        return self._numbered.get((tail, head, parallel))

    def missing_step(self, names: Sequence[str], nodes: Sequence[int]) -> str | None:
        """Return the fault of the first step of a path without a link; None where all have one."""
        for step, ends in enumerate(itertools.pairwise(nodes)):
            if ends not in self._first:
                hint = "; there is one in the other direction" if ends[::-1] in self._first else ""
                return f"path goes {names[step]} > {names[step + 1]}, where there is no link{hint}"
        return None
