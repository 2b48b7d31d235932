"""Columns that tell too little alone: a quantity without a unit, or a unit without a name of ours.

The unit is that of each cell, of a column of units, of the layout, or the only one that the titles and the
names of the sheet and the file say. A quantity that a table requires is the only column in a unit of its
dimension.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from planner.contract.columns import ColumnMatch, shorten_name
from planner.contract.table import Table
from planner.contract.units import (
    AMOUNTS,
    LONGEST_NAME,
    Unit,
    find_units,
    is_per_unit,
    plain,
    split_unit,
    unit_of,
)

WORD: Final = re.compile(r"[A-Za-zµμ]+(?:/[A-Za-z]+)?")
UNIT_COLUMN: Final = re.compile(r"(?:.*[\W_])?(?:units?|uom|einheit|unité|unidad|unità)\W*", re.IGNORECASE)
"""Names of columns with the unit of each row, as `Unit` and `Speed unit`."""
WORD_BEFORE_UNIT: Final = re.compile(r"[^\W_]+[\W_]+(?:of[\W_]+)?[^\W_]")
SHORTEST_UNIT: Final = 3
"""Letters of a unit in a title at least: `m` and `GB` are words too."""


def guess_column(table: Table, match: ColumnMatch) -> dict[str, str]:
    """Return the given name of the one quantity that a table lacks, by our name, where only one can be it.

    All other required columns must be there, and one column only be in a unit of its dimension. A name that
    is a unit alone, as `Mbps`, may be an optional quantity too.
    """
    missing = [ours for ours in table.required_columns if ours not in match.names]
    if not missing:
        return _guess_optional(table, match)
    unit = unit_of(missing[0])[1] if len(missing) == 1 else None
    if unit is None or len(table.required_columns) < 2 or unit.dimension not in (*AMOUNTS, "requests"):
        return {}
    names = names_of_dimension(match.ignored, missing[0])
    return {missing[0]: names[0]} if len(names) == 1 else {}


def _guess_optional(table: Table, match: ColumnMatch) -> dict[str, str]:
    """Return the column that is named by a unit alone, by the one optional quantity of its dimension."""
    guess: dict[str, str] = {}
    for dimension in AMOUNTS:
        quantities = _quantities_of(table, dimension)
        if len(quantities) != 1 or quantities[0] in match.names:
            continue
        names = [name for name in match.ignored if any(not stem for stem, _ in split_unit(name))]
        fitting = names_of_dimension(names, quantities[0])
        if len(fitting) == 1:
            guess[quantities[0]] = fitting[0]
    return guess


def _quantities_of(table: Table, dimension: str) -> list[str]:
    """Return the columns of a dimension, without those that are a part or a direction of another one.

    `traffic_in_mbps` is a direction of `traffic_mbps`.
    """
    stems = {
        ours: stem
        for ours, (stem, unit) in ((ours, unit_of(ours)) for ours in table.columns)
        if unit is not None and unit.dimension == dimension
    }
    return [
        ours
        for ours, stem in stems.items()
        if not any(other and stem.startswith(f"{other}_") for other in stems.values())
    ]


def names_of_dimension(names: Sequence[str], ours: str) -> list[str]:
    """Return the names of columns in a unit of the dimension of one of ours."""
    unit = unit_of(ours)[1]
    is_per = is_per_unit(unit_of(ours)[0])
    fitting = []
    for name in names:
        for stem, units in split_unit(name):
            if (
                len(units) == 1
                and unit is not None
                and units[0].dimension == unit.dimension
                and is_per_unit(stem) == is_per
            ):
                fitting.append(name)
                break
    return fitting


def find_context_unit(texts: Sequence[str], dimension: str) -> Unit | None:
    """Return the only unit of a dimension that texts such as titles name; None where none or several do."""
    units: dict[str, Unit] = {}
    for text in texts:
        for word in WORD.findall(text[:LONGEST_NAME].replace("_", " ")):
            found = find_units(word) if len(word) >= SHORTEST_UNIT else ()
            units |= {unit.symbol: unit for unit in found if len(found) == 1 and unit.dimension == dimension}
    return next(iter(units.values())) if len(units) == 1 else None


def find_row_units(amounts: Mapping[str, str], unused: Sequence[str], frame: pd.DataFrame) -> dict[str, str]:
    """Return the only column with the unit of each row, by our name of the amount.

    Of several such columns, one is of an amount whose name it begins with, as `Speed unit` of `Speed`.

    amounts  given names of the amounts that name no unit, by our names
    unused   given names of other columns
    """
    columns = [name for name in unused if name in frame and UNIT_COLUMN.fullmatch(name[:LONGEST_NAME])]
    row_units = {}
    for ours, amount in amounts.items():
        unit = unit_of(ours)[1]
        fitting = [name for name in columns if unit and _are_units(frame[name], unit.dimension)]
        selected = _unit_columns_of(amount, fitting, is_alone=len(amounts) == 1)
        if len(selected) == 1:
            row_units[ours] = selected[0]
    return row_units


def _unit_columns_of(amount: str, columns: Sequence[str], *, is_alone: bool) -> list[str]:
    """Return the columns that begin with the name of an amount; of the only amount, else those named Unit."""
    begins = [name for name in columns if plain(name).startswith(plain(amount))]
    bare = [name for name in columns if not WORD_BEFORE_UNIT.match(name)]
    return begins or (bare if is_alone else [])


def _are_units(cells: pd.Series, dimension: str) -> bool:
    """Return whether cells name units of a dimension, each of them one, where they are not blank."""
    texts = cells.dropna().unique()
    return len(texts) > 0 and all(
        isinstance(text, str) and [unit.dimension for unit in find_units(text[:LONGEST_NAME])] == [dimension]
        for text in texts
    )


def join_row_units(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return cells with their unit behind each amount, such as `100 Mbps`, which are then read as texts.

    columns  those of units, by the columns of the amounts
    """
    joined = {
        amount: pd.Series(
            [
                cell if pd.isna(cell) or pd.isna(unit) else f"{str(cell).removesuffix('.0')} {unit}"
                for cell, unit in zip(frame[amount], frame[column], strict=True)
            ],
            index=frame.index,
            dtype=object,
        )
        for amount, column in columns.items()
    }
    return frame.assign(**joined)


def describe_guess(guess: Mapping[str, str]) -> list[str]:
    """Return a note for each column that is taken for one of ours as the only one of its dimension."""
    return [
        f"assumed: column '{shorten_name(name)}' is {ours}, as the only one in such a unit"
        for ours, name in guess.items()
    ]
