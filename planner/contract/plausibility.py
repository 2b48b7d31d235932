"""Doubts about units of numbers: medians out of the usual range, sums out of proportion.

A doubt is a note, not a fault: a system declares what is usual, and data may well be unusual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from planner.contract.units import unit_of

if TYPE_CHECKING:
    from planner.contract.table import Table


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """Two columns, `table.column`, and the usual largest ratio of their sums."""

    column: str
    to: str
    at_most: float


def find_unusual(table: Table, frame: pd.DataFrame, where: str) -> Iterator[str]:
    """Yield a doubt for each column with a median above 0 outside the range that the table calls usual.

    The largest number that a column takes stands for no limit, and does not count.
    """
    for name, column in table.columns.items():
        usual = column.usual
        if usual is None or name not in frame:
            continue
        largest = column.at_most
        positive = frame[name][(frame[name] > 0) & (frame[name] != largest)]
        middle = float(positive.median()) if len(positive) else usual[0]
        if not usual[0] <= middle <= usual[1]:
            unit = unit_of(name)[1]
            words = f" {unit.symbol}" if unit else ""
            yield (
                f"warning: {where}: {name} has a median of {middle:,.6g}{words}, usual are "
                f"{usual[0]:,.9g} to {usual[1]:,.9g}; is its unit right?"
            )


def find_disproportions(
    proportions: Iterable[Proportion], tables: Mapping[str, pd.DataFrame]
) -> Iterator[str]:
    """Yield a doubt for each two columns with sums out of proportion."""
    for proportion in proportions:
        (table, column), (other, total_column) = proportion.column.split("."), proportion.to.split(".")
        if table not in tables or other not in tables:
            continue
        amount, total = float(tables[table][column].sum()), float(tables[other][total_column].sum())
        if total > 0 and amount / total > proportion.at_most:
            first, second = (tables[name].attrs.get("where", name) for name in (table, other))
            yield (
                f"warning: {first}: the sum of {column} is {amount / total:,.3g} times that of "
                f"{total_column} in "
                f"{second}; are both units right?"
            )
