"""Cells of delimited text and of JSON objects: where each field of each record begins and ends.

Compiled loops over the bytes of a block find the fields that are read, and skip all others.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints, Ints32
from planner.compiled import inner, kernel, run_small_in_python

Bytes = NDArray[np.uint8]

COMPLETE: Final = 0
CUT: Final = 1
BROKEN: Final = 2
"""Results of a scan: all is read, the last object goes on behind the block, or the text is no JSON."""
QUOTE, BACKSLASH, COMMA, COLON = ord('"'), ord("\\"), ord(","), ord(":")
OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = ord("{"), ord("}"), ord("["), ord("]")
SPACE: Final = ord(" ")
LETTER_N: Final = ord("n")


@run_small_in_python(max_elements=20_000)
@kernel
def split_rows(  # noqa: C901
    text: Bytes,
    begins: Ints,
    ends: Ints,
    delimiter: int,
    slots: Ints,
    cell_begins: Ints32,
    cell_ends: Ints32,
) -> int:
    """Find the cells of rows of delimited text; return the first row of another width, or -1.

    begins, ends  (R,) limits of the rows in `text`
    slots         (C,) column of the result for each column of the text; -1 for those that are not read
    cell_begins, cell_ends  (S, R) limits of the cells, without spaces and quotes; results
    """
    for row in range(len(begins)):
        position = begins[row]
        end = ends[row]
        column = 0
        while True:
            while position < end and text[position] == SPACE:
                position += 1
            if position < end and text[position] == QUOTE:
                first = position + 1
                position = first
                while position < end and text[position] != QUOTE:
                    position += 1
                last = position
                while position < end and text[position] != delimiter:
                    position += 1
            else:
                first = position
                while position < end and text[position] != delimiter:
                    position += 1
                last = position
                while last > first and text[last - 1] == SPACE:
                    last -= 1
            if column < len(slots) and slots[column] >= 0:
                cell_begins[slots[column], row] = first
                cell_ends[slots[column], row] = last
            column += 1
            if position >= end:
                break
            position += 1
        if column != len(slots):
            return row
    return -1


@inner
def _skip_space(text: Bytes, position: int) -> int:
    while position < len(text) and text[position] <= SPACE:
        position += 1
    return position


@inner
def _end_of_text(text: Bytes, position: int) -> int:
    """Return the position of the quote that ends a text, or the length of all where it is cut."""
    while position < len(text) and text[position] != QUOTE:
        position += 2 if text[position] == BACKSLASH else 1
    return min(position, len(text))


@inner
def _end_of_nested(text: Bytes, position: int) -> int:
    """Return the position behind a list or an object that begins at `position`, or the length of all."""
    depth = 0
    while position < len(text):
        letter = text[position]
        if letter == QUOTE:
            position = _end_of_text(text, position + 1)
        elif letter in (OPEN_BRACE, OPEN_BRACKET):
            depth += 1
        elif letter in (CLOSE_BRACE, CLOSE_BRACKET):
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return len(text)


@inner
def _find_key(text: Bytes, begin: int, end: int, keys: Bytes, key_ends: Ints) -> int:
    """Return the key that is text[begin:end], or -1."""
    key_begin = 0
    for key in range(len(key_ends)):
        key_end = key_ends[key]
        if key_end - key_begin == end - begin:
            same = True
            for offset in range(end - begin):
                if text[begin + offset] != keys[key_begin + offset]:
                    same = False
                    break
            if same:
                return key
        key_begin = key_end
    return -1


@inner
def _scan_object(  # noqa: C901
    text: Bytes,
    position: int,
    keys: Bytes,
    key_ends: Ints,
    key_slots: Ints,
    cell_begins: Ints32,
    cell_ends: Ints32,
    row: int,
) -> tuple[int, int]:
    """Find the values of one object whose brace is at `position`; return the position behind it and a result.

    Where the text is no JSON the position is that of the first wrong byte.
    """
    length = len(text)
    position = _skip_space(text, position + 1)
    if position < length and text[position] == CLOSE_BRACE:
        return position + 1, COMPLETE
    while True:
        if position >= length:
            return position, CUT
        if text[position] != QUOTE:
            return position, BROKEN
        key_begin = position + 1
        key_end = _end_of_text(text, key_begin)
        position = _skip_space(text, key_end + 1)
        if position >= length:
            return position, CUT
        if text[position] != COLON:
            return position, BROKEN
        position = _skip_space(text, position + 1)
        if position >= length:
            return position, CUT
        letter = text[position]
        first = position
        if letter == QUOTE:
            first = position + 1
            last = _end_of_text(text, first)
            position = last + 1
        elif letter in (OPEN_BRACE, OPEN_BRACKET):
            position = _end_of_nested(text, position)
            last = position
        else:
            while position < length and text[position] != COMMA and text[position] > SPACE:
                if text[position] == CLOSE_BRACE:
                    break
                position += 1
            last = position
            if last == first:
                return position, BROKEN
        key = _find_key(text, key_begin, key_end, keys, key_ends)
        if key >= 0 and letter != LETTER_N:
            cell_begins[key_slots[key], row] = first
            cell_ends[key_slots[key], row] = last
        position = _skip_space(text, position)
        if position >= length:
            return position, CUT
        if text[position] == CLOSE_BRACE:
            return position + 1, COMPLETE
        if text[position] != COMMA:
            return position, BROKEN
        position = _skip_space(text, position + 1)


@run_small_in_python(max_elements=20_000)
@kernel
def scan_objects(
    text: Bytes,
    position: int,
    keys: Bytes,
    key_ends: Ints,
    key_slots: Ints,
    cell_begins: Ints32,
    cell_ends: Ints32,
) -> tuple[int, int, int]:
    """Find the values of JSON objects from `position` on, one behind another or in a list.

    keys       names of the keys that are read, one behind another; key_ends (K,) where each ends
    key_slots  (K,) column of the result for each key
    cell_begins, cell_ends  (S, R) limits of the values, -1 where an object has none; results

    returns  number of objects read, at most R; the position behind them, or that of the first wrong byte; and
             COMPLETE, CUT or BROKEN
    """
    rows = 0
    while rows < cell_begins.shape[1]:
        while position < len(text) and (
            text[position] <= SPACE
            or text[position] == COMMA
            or text[position] == OPEN_BRACKET
            or text[position] == CLOSE_BRACKET
        ):
            position += 1
        if position >= len(text):
            return rows, position, COMPLETE
        if text[position] != OPEN_BRACE:
            return rows, position, BROKEN
        for slot in range(len(cell_begins)):
            cell_begins[slot, rows] = -1
            cell_ends[slot, rows] = -1
        behind, result = _scan_object(text, position, keys, key_ends, key_slots, cell_begins, cell_ends, rows)
        if result == CUT:
            return rows, position, CUT
        if result == BROKEN:
            return rows, behind, BROKEN
        position = behind
        rows += 1
    return rows, position, COMPLETE
