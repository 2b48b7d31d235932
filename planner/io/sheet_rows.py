"""Rows of users' sheets that are no data: units below the header, sums, notes, headers that occur again.

People write tables for people: what the rows mean is said here by their cells, and every row that is left
out, and every cell that is filled, is said by a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.columns import ColumnMatch, shorten_name
from planner.contract.table import Table
from planner.contract.units import find_units, plain, split_unit
from planner.formatting import counted

SUMS: Final = re.compile(r"(?:grand|sub)?total(?:s|e)?|sums?|summe|gesamt|overall")
"""Names of rows and columns of sums, without case and punctuation."""
NOTE_MARKS: Final = ("note", "source:", "*", "remark", "legend", "comment", "#", "as of", "last update")
NOTE_WORDS: Final = 3
"""Words from which a lone text directly below a table is a note."""
MARKED_UNIT: Final = re.compile(r"[(\[]?\s*(?P<unit>[^()\[\]]+?)\s*[)\]]?")
LIKE_NUMBER: Final = re.compile(r"[-+$€£¥(]?[.,]?\d|-+$|n/?a$|inf|∞", re.IGNORECASE)
"""The beginning of a cell with a number, or of a word in place of one."""
NO_UNITS: Final = frozenset({"-", "text", "string", "name", "%", "id", "n/a", "none", "number", "#"})
"""Texts in a row of units for columns that have none."""
RELATIVE_TOLERANCE: Final = 1e-6
LONGEST_TEXT: Final = 200


def is_sum(text: object) -> bool:
    """Return whether the name of a row or column says that it has sums, as `Total` or `Total (Gbps)`."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        return False
    stems = [text, *(stem for stem, _ in split_unit(text))]
    return any(SUMS.fullmatch(plain(stem)) is not None for stem in stems)


def add_units(
    names: Sequence[str], below: Sequence[str], first: Sequence[str] | None = None
) -> list[str] | None:
    """Return names of columns with the units that the row below them says; None where it is no row of units.

    below  texts of the row below the header
    first  texts of the row below that one, which has numbers where units are; None: not known
    """
    texts = [text.strip() for text in below[: len(names)]] + [""] * (len(names) - len(below))
    if any(text.strip() for text in below[len(names) :]):
        return None
    units = [_unit_text(text) if text else "" for text in texts]
    if not any(units) or any(unit is None for unit in units):
        return None
    if first is not None and not _are_amounts(first, [bool(unit) for unit in units]):
        return None
    if any(_contradicts(name, unit) for name, unit in zip(names, units, strict=True)):
        return None
    return [
        f"{name} ({unit})" if unit and not split_unit(name) else name
        for name, unit in zip(names, units, strict=True)
    ]


def _contradicts(name: str, unit: str | None) -> bool:
    """Return whether the name of a column says another unit than the row below it."""
    stated = {unit_ for _, units in split_unit(name) for unit_ in units}
    return bool(unit and stated) and stated.isdisjoint(find_units(unit or ""))


def _are_amounts(row: Sequence[str], has_unit: Sequence[bool]) -> bool:
    """Return whether a row has numbers, and else nothing, in the columns with a unit: `m` may be a node."""
    cells = [text.strip() for text, marked in zip(row, has_unit, strict=False) if marked]
    return any(cells) and all(LIKE_NUMBER.match(text) for text in cells if text)


def _unit_text(text: str) -> str | None:
    """Return the unit that a cell names, "" where it says that there is none; None for any other text."""
    if text.lower() in NO_UNITS:
        return "%" if text == "%" else ""
    match = MARKED_UNIT.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    return match["unit"] if match is not None and find_units(match["unit"]) else None


def drop_other_rows(
    table: Table, frame: pd.DataFrame, match: ColumnMatch, first_row: int, *, can_merge: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of a table that are data, with names that merged cells leave blank, and notes.

    frame      cells as the file has them, under its names; the index counts rows from 0
    can_merge  whether cells may be merged, as in workbooks
    """
    present = [ours for ours in table.required_columns if ours in match.names]
    filled_columns = [ours for ours in present if not table.columns[ours].nullable]
    required = list(dict.fromkeys(match.names[ours] for ours in filled_columns))
    labels = [name for name in required if any(table.columns[ours].is_label for ours in filled_columns
                                               if match.names[ours] == name)]  # fmt: skip
    if len(required) < 2 or not labels or frame.empty:
        return frame, []
    is_present = pd.DataFrame({name: _present(frame[name]) for name in frame})
    count = is_present.to_numpy().sum(axis=1)
    is_complete: NDArray[np.bool_] = np.all(is_present[required].to_numpy(bool), axis=1)
    if is_complete[count > 0].all() and not _has_sum(frame, labels) and not _repeats(frame, required).any():
        return frame, []
    notes: list[str] = []
    is_other = _repeats(frame, required)
    if is_other.any():
        notes.append(f"left out {_name_rows(is_other, first_row)}, where the header occurs again")
    is_sum_row = ~is_other & _find_sums(table, frame, match, labels, is_present, is_complete)
    if is_sum_row.any():
        notes.append(f"left out {_name_rows(is_sum_row, first_row)}, of sums")
    is_note = ~is_other & ~is_sum_row & _find_notes(frame, count, is_complete & ~is_sum_row)
    if is_note.any():
        notes.append(f"left out {_name_rows(is_note, first_row)}, of notes below the table")
    kept = frame.loc[~(is_other | is_sum_row | is_note)]
    kept, filled = _fill_merged(kept, labels, required) if can_merge else (kept, 0)
    if filled:
        notes.append(
            f"assumed: {counted(filled, 'blank cells')} of '{shorten_name(labels[0])}' have the name above, "
            "as merged cells do"
        )
    return kept, notes


def _present(cells: pd.Series) -> NDArray[np.bool_]:
    """Return a mask of the cells that are not blank."""
    is_present = cells.notna().to_numpy()
    if cells.dtype == object:
        is_blank = cells.map(lambda cell: isinstance(cell, str) and not cell.strip()).to_numpy(bool)
        is_present = is_present & ~is_blank
    return np.asarray(is_present, dtype=bool)


def _name_rows(is_row: NDArray[np.bool_], first_row: int) -> str:
    rows = [first_row + int(row) for row in np.flatnonzero(is_row)]
    return f"row {list_rows(rows)}" if len(rows) == 1 else f"rows {list_rows(rows)}"


def list_rows(rows: Sequence[int]) -> str:
    """Return the numbers of the first three rows, and the count of the others."""
    return ", ".join(map(str, rows[:3])) + (f" and {len(rows) - 3:,} more" if len(rows) > 3 else "")


def _has_sum(frame: pd.DataFrame, labels: Sequence[str]) -> bool:
    """Return whether one of the last rows has a name of sums."""
    return any(is_sum(cell) for name in labels for cell in frame[name].tail(50).tolist())


def _repeats(frame: pd.DataFrame, required: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask of the rows that repeat the header."""
    is_again = np.ones(len(frame), dtype=bool)
    for name in required:
        cells = frame[name]
        if pd.api.types.is_numeric_dtype(cells):
            return np.zeros(len(frame), dtype=bool)
        is_again &= cells.isin([name, name.rpartition(" (")[0]]).to_numpy(bool)
    return is_again


def _find_sums(
    table: Table,
    frame: pd.DataFrame,
    match: ColumnMatch,
    labels: Sequence[str],
    is_present: pd.DataFrame,
    is_complete: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return a mask of the rows that are sums of others: by a name such as Total, or by their value."""
    rows = np.zeros(len(frame), dtype=bool)
    numbers = [name for ours, name in match.names.items() if not table.columns[ours].is_label]
    named = is_present[list(labels)].to_numpy()
    texts = [name for name in frame if frame[name].dtype == object or name in labels]
    likely = ~is_complete | _named_sum(frame, labels)
    for row in np.flatnonzero(likely & is_present.to_numpy().any(axis=1)).tolist():
        says_sum = any(is_sum(frame[name].iloc[row]) for name in texts)
        if says_sum and not is_complete[row]:
            rows[row] = True
        elif not named[row].any() or (says_sum and len(labels) == 1):
            above = is_complete & (np.arange(len(frame)) < row) & ~rows
            rows[row] = _are_sums(frame, numbers, row, above)
    return rows


def _named_sum(frame: pd.DataFrame, labels: Sequence[str]) -> NDArray[np.bool_]:
    rows = np.zeros(len(frame), dtype=bool)
    for name in labels:
        rows |= frame[name].map(is_sum).to_numpy(bool)
    return rows


def _are_sums(frame: pd.DataFrame, numbers: Iterable[str], row: int, above: NDArray[np.bool_]) -> bool:
    """Return whether each number of a row is the sum of those above; it has one at least."""
    count = 0
    for name in numbers:
        value = _number(frame[name].iloc[row])
        if value is None:
            continue
        total = sum(
            number for cell in frame[name].to_numpy(object)[above] if (number := _number(cell)) is not None
        )
        if abs(total - value) > RELATIVE_TOLERANCE * max(abs(total), abs(value)):
            return False
        count += 1
    return count > 0


def _number(cell: Any) -> float | None:
    """Return a cell as a finite number; None for any other cell."""
    if isinstance(cell, bool) or cell is None:
        return None
    try:
        value = float(str(cell).replace(",", "")) if isinstance(cell, str) and len(cell) < 40 else float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


def _find_notes(
    frame: pd.DataFrame, count: NDArray[np.bool_], is_complete: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a mask of the notes below the last row of data: rows with a text alone."""
    complete = np.flatnonzero(is_complete)
    notes = np.zeros(len(frame), dtype=bool)
    if not len(complete):
        return notes
    is_apart = False
    for row in range(int(complete[-1]) + 1, len(frame)):
        if count[row] == 0:
            is_apart = True
            continue
        cells = [cell for cell in frame.iloc[row].tolist() if _is_text(cell)]
        if count[row] != 1 or len(cells) != 1:
            continue
        text = cells[0].strip().lower()
        notes[row] = is_apart or text.startswith(NOTE_MARKS) or len(text.split()) >= NOTE_WORDS
    return notes


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str) and bool(cell.strip()) and _number(cell) is None


def _fill_merged(
    frame: pd.DataFrame, labels: Sequence[str], required: Sequence[str]
) -> tuple[pd.DataFrame, int]:
    """Return the rows with the name above in place of a blank first name, and the number of those cells."""
    first = labels[0]
    others = [name for name in required if name != first]
    if not others or len(labels) < 2 or frame.empty:
        return frame, 0
    is_blank = ~_present(frame[first])
    has_others = np.all([_present(frame[name]) for name in others], axis=0)
    open_rows = is_blank & has_others
    if not open_rows.any() or is_blank[0] or (is_blank & ~has_others & _any_present(frame)).any():
        return frame, 0
    cells = frame[first].astype(object).where(~is_blank)
    return frame.assign(**{first: cells.where(~open_rows, cells.ffill())}), int(open_rows.sum())


def _any_present(frame: pd.DataFrame) -> NDArray[np.bool_]:
    columns = [_present(frame[name]) for name in frame]
    return np.asarray(np.any(columns, axis=0), dtype=bool)
