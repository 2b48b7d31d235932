"""Words in place of numbers in cells of users' files: blanks by many names, and no limit.

Each is said by a note. What has no number in a column that needs one stays, and the table's rules refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from planner.contract.cell_units import ABSENT, is_unlimited
from planner.contract.table import Column, Table
from planner.contract.units import unit_of
from planner.formatting import counted
from planner.io.matrices import NO_AMOUNT, can_be_matrix


def read_words(table: Table, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return cells under our names with words as blanks or numbers, and notes.

    Where a table has amounts from a source to a target, a row with a word for none in place of the amount
    is left out.
    """
    notes: list[str] = []
    changed: dict[str, pd.Series] = {}
    amounts = table.required_columns[2] if can_be_matrix(table) else ""
    for name, column in table.columns.items():
        if name not in frame:
            continue
        if column.spellings and not isinstance(frame[name].dtype, pd.CategoricalDtype):
            changed |= _spell(name, column.spellings, frame[name], notes)
        elif column.kind == "number":
            cells, said = _read_numbers(name, column, frame[name], is_amount=name == amounts)
            notes += said
            if cells is not frame[name]:
                changed[name] = cells
    frame = frame.assign(**changed) if changed else frame
    if amounts in changed:
        frame, said = _drop_blank_amounts(frame, amounts, changed[amounts])
        notes += said
    return _drop_incomplete(table, frame, notes), notes


def _spell(
    name: str, spellings: Mapping[str, str], cells: pd.Series, notes: list[str]
) -> dict[str, pd.Series]:
    """Return a column of words of ours for those that others write; add a note that says so."""
    present = [cell for cell in cells.dropna().unique().tolist() if isinstance(cell, str)]
    changes = {
        cell: word
        for cell in present
        if (word := spellings.get(" ".join(cell.lower().split()))) is not None and word != cell
    }
    if not changes:
        return {}
    listed = ", ".join(f"'{cell}' as {word}" for cell, word in list(changes.items())[:3])
    notes.append(f"read words of {name}: {listed}" + (" and more" if len(changes) > 3 else ""))
    return {name: cells.map(lambda cell: changes.get(cell, cell))}


def _read_numbers(
    name: str, column: Column, cells: pd.Series, *, is_amount: bool
) -> tuple[pd.Series, list[str]]:
    """Return a column of numbers with words for blanks blank, and with the largest number for no limit."""
    notes: list[str] = []
    texts = {
        row: cell.strip().lower()
        for row, cell in enumerate(cells.tolist())
        if isinstance(cell, str)
    } if not pd.api.types.is_numeric_dtype(cells) else {}  # fmt: skip
    unlimited = [row for row, text in texts.items() if is_unlimited(text)]
    is_limit = column.at_most is not None and unit_of(name)[1] is not None
    absent = [row for row, text in texts.items() if text in ABSENT or (is_amount and text in NO_AMOUNT)]
    if absent and (is_amount or not column.required or column.nullable):
        cells = cells.astype(object)
        notes += _note_absent(name, cells, {row: texts[row] for row in absent}, is_amount=is_amount)
        cells.iloc[absent] = None
    if unlimited and is_limit:
        cells = cells.astype(object)
        first = str(cells.iloc[unlimited[0]]).strip()
        cells.iloc[unlimited] = column.at_most
        notes.append(
            f"read {counted(len(unlimited), 'cells')} of {name}, such as '{first}', as no limit: "
            f"{column.at_most:,.15g}, the largest number"
        )
    return cells, notes


def _note_absent(name: str, cells: pd.Series, absent: Mapping[int, str], *, is_amount: bool) -> Iterator[str]:
    """Yield the note on cells that say that there is no number; of amounts, on those that may be unknown.

    absent  their texts in small letters, by row
    """
    unknown = [text for text in absent.values() if text not in NO_AMOUNT]
    if not is_amount:
        first = str(cells.iloc[next(iter(absent))]).strip()
        yield f"read {counted(len(absent), 'cells')} of {name}, such as '{first}', as blank"
    elif unknown:
        yield (
            f"warning: {counted(len(unknown), 'rows')} without a number in {name}, such as "
            f"'{unknown[0]}', read as no traffic"
        )


def _drop_blank_amounts(frame: pd.DataFrame, amount: str, cells: pd.Series) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows that have an amount, where words said that others have none."""
    is_blank = cells.isna().to_numpy(bool)
    if not is_blank.any() or is_blank.all():
        return frame, []
    return frame.loc[~is_blank], [
        f"left out {counted(int(is_blank.sum()), 'rows')} without a number in {amount}"
    ]


def _drop_incomplete(table: Table, frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the table with defaults in blank cells, and without optional columns that cannot have any."""
    for name, column in table.columns.items():
        if name not in frame or column.required or column.nullable:
            continue
        is_blank = frame[name].isna()
        count = int(is_blank.sum())
        if count == len(frame):
            frame = frame.drop(columns=name)  # such as a column of a template that is not filled in
            continue
        if not count or column.kind != "number":
            continue
        if column.default is not None:
            frame = frame.assign(**{name: frame[name].where(~is_blank, column.default)})
            notes.append(
                f"assumed: {counted(count, 'blank cells')} of {name} are {column.default:g}, the default"
            )
        else:
            frame = frame.drop(columns=name)
            notes.append(
                f"warning: {name} is left out, as {count} of {counted(len(is_blank), 'cells')} are blank; "
                "fill them to use it"
            )
    return frame
