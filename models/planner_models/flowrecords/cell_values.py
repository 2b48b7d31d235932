"""Values of cells: integers, times and addresses from their bytes, by compiled loops.

Each loop returns the first row that it cannot read, or -1; the caller says what is wrong with it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.compiled import inner, kernel, run_small_in_python

Bytes = NDArray[np.uint8]

MAX_DIGITS: Final = 19
"""Digits of an integer; those of 19 digits must be below 9 x 10^18, so that 64 bits hold them."""
ZERO, NINE, POINT, DASH, COLON, PLUS = ord("0"), ord("9"), ord("."), ord("-"), ord(":"), ord("+")
LETTER_T, LETTER_Z, SPACE = ord("T"), ord("Z"), ord(" ")
GROUPS: Final = 8
NONE: Final = -1


@inner
def signed(value: Any) -> Any:
    """Return a small unsigned integer as a signed one, so that differences may be negative."""
    return np.int64(value)


@inner
def _integer(text: Bytes, begin: int, end: int) -> Any:
    """Return the integer in text[begin:end], at least 0; -1 where it is none."""
    if end <= begin or end - begin > MAX_DIGITS:
        return NONE
    if end - begin == MAX_DIGITS and text[begin] == NINE:
        return NONE
    value = 0
    for position in range(begin, end):
        digit = signed(text[position]) - ZERO
        if digit < 0 or digit > 9:
            return NONE
        value = value * 10 + digit
    return value


@run_small_in_python(max_elements=20_000)
@kernel
def read_integers(text: Bytes, begins: Ints32, ends: Ints32, is_dotted: bool, values: Ints) -> int:
    """Read an integer from each cell, -1 for an absent or empty one; return the first wrong row, or -1.

    is_dotted  whether `type.code`, as of ICMP, is read as type x 256 + code
    """
    for row in range(len(begins)):
        begin, end = begins[row], ends[row]
        if end <= begin:
            values[row] = NONE
            continue
        value = _integer(text, begin, end)
        if value < 0 and is_dotted:
            for position in range(begin, end):
                if text[position] == POINT:
                    first = _integer(text, begin, position)
                    second = _integer(text, position + 1, end)
                    if 0 <= first <= 255 and 0 <= second <= 255:
                        value = first * 256 + second
                    break
        if value < 0:
            return row
        values[row] = value
    return -1


@inner
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Return the days from 1970 to a date of the Gregorian calendar."""
    if month <= 2:
        year -= 1
    era = year // 400
    year_of_era = year - era * 400
    shifted = month - 3 if month > 2 else month + 9
    day_of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@inner
def _days_of_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@inner
def _fraction(text: Bytes, begin: int, end: int) -> Any:
    """Return the decimal fraction of the digits text[begin:end]; -1 where they are no digits."""
    value, scale = 0.0, 1.0
    if end - begin > MAX_DIGITS:
        return -1.0
    for position in range(begin, end):
        digit = signed(text[position]) - ZERO
        if digit < 0 or digit > 9:
            return -1.0
        value = value * 10.0 + digit
        scale *= 10.0
    return value / scale


@inner
def _decimal_s(text: Bytes, begin: int, end: int, per_s: int) -> Any:
    """Return a time written as a number of units of which `per_s` are a second; -1 where it is none."""
    point = begin
    while point < end and text[point] != POINT:
        point += 1
    units = _integer(text, begin, point)
    if units < 0:
        return -1.0
    fraction = 0.0
    if point < end:
        fraction = _fraction(text, point + 1, end)
        if fraction < 0:
            return -1.0
    return (units // per_s) + ((units % per_s) + fraction) / per_s


@run_small_in_python(max_elements=20_000)
@kernel
def read_times(  # noqa: C901
    text: Bytes, begins: Ints32, ends: Ints32, per_s: int, times_s: Floats, has_zone: Bools
) -> int:
    """Read a time from each cell; return the first wrong row, or -1.

    per_s     units of a second, for cells that are numbers
    times_s   (R,) seconds since 1970, nan for an absent or empty cell; as written where it has no zone
    has_zone  (R,) whether the time is in UTC: a number, or a text with its zone
    """
    for row in range(len(begins)):
        begin, end = signed(begins[row]), signed(ends[row])
        if end <= begin:
            times_s[row] = np.nan
            has_zone[row] = True
            continue
        if end - begin < 5 or text[begin + 4] != DASH:
            times_s[row] = _decimal_s(text, begin, end, per_s)
            has_zone[row] = True
            if times_s[row] < 0:
                return row
            continue
        if end - begin < 19 or text[begin + 7] != DASH:
            return row
        if text[begin + 13] != COLON or text[begin + 16] != COLON:
            return row
        if text[begin + 10] != LETTER_T and text[begin + 10] != SPACE:
            return row
        year = _integer(text, begin, begin + 4)
        month = _integer(text, begin + 5, begin + 7)
        day = _integer(text, begin + 8, begin + 10)
        hour = _integer(text, begin + 11, begin + 13)
        minute = _integer(text, begin + 14, begin + 16)
        second = _integer(text, begin + 17, begin + 19)
        if year < 1970 or month < 1 or month > 12 or day < 1 or day > _days_of_month(year, month):
            return row
        if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 60:
            return row
        position = begin + 19
        fraction = 0.0
        if position < end and text[position] == POINT:
            point = position + 1
            position = point
            while position < end and ZERO <= text[position] <= NINE:
                position += 1
            fraction = _fraction(text, point, position)
            if fraction < 0:
                return row
        offset_s = 0
        has_zone[row] = position < end
        if position < end and text[position] == LETTER_Z:
            position += 1
        elif position < end and (text[position] == PLUS or text[position] == DASH):
            sign = 1 if text[position] == PLUS else -1
            hours = _integer(text, position + 1, min(position + 3, end))
            behind = position + 3
            if behind < end and text[behind] == COLON:
                behind += 1
            minutes = 0
            if behind < end:
                minutes = _integer(text, behind, min(behind + 2, end))
                behind += 2
            if hours < 0 or hours > 14 or minutes < 0 or minutes > 59:
                return row
            offset_s = sign * (hours * 3600 + minutes * 60)
            position = behind
        if position != end:
            return row
        seconds = _days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
        times_s[row] = (seconds - offset_s) + fraction
    return -1


@inner
def _ipv4(text: Bytes, begin: int, end: int) -> Any:
    """Return the IPv4 address in text[begin:end]; -1 where it is none."""
    value, numbers, digits, current = 0, 0, 0, 0
    for position in range(begin, end + 1):
        letter = signed(text[position]) if position < end else POINT
        if letter == POINT:
            if digits == 0 or current > 255:
                return NONE
            value = value * 256 + current
            numbers += 1
            digits, current = 0, 0
        elif ZERO <= letter <= NINE and digits < 3:
            current = current * 10 + letter - ZERO
            digits += 1
        else:
            return NONE
    return value if numbers == 4 else NONE


@inner
def _hex_digit(letter: int) -> int:
    if ZERO <= letter <= NINE:
        return letter - ZERO
    lower = letter | 32
    return lower - 87 if 97 <= lower <= 102 else NONE


@inner
def _ipv6(text: Bytes, begin: int, end: int, groups: Ints) -> bool:  # noqa: C901
    """Read the IPv6 address in text[begin:end] into its eight groups; return whether it is one."""
    count, gap, position = 0, -1, begin
    while position < end:
        if text[position] == COLON:
            if position + 1 < end and text[position + 1] == COLON:
                if gap >= 0:
                    return False
                gap = count
                position += 2
                continue
            if position == begin or position + 1 == end or text[position - 1] == COLON:
                return False
            position += 1
            continue
        if count == GROUPS:
            return False
        first, value = position, 0
        while position < end and text[position] != COLON and text[position] != POINT:
            digit = _hex_digit(signed(text[position]))
            if digit < 0 or position - first == 4:
                return False
            value = value * 16 + digit
            position += 1
        if position < end and text[position] == POINT:
            tail = _ipv4(text, first, end)
            if tail < 0 or count > GROUPS - 2:
                return False
            groups[count], groups[count + 1] = tail >> 16, tail & 0xFFFF
            count += 2
            position = end
        else:
            groups[count] = value
            count += 1
    if gap < 0:
        return count == GROUPS
    if count >= GROUPS:
        return False
    moved = count - gap
    for index in range(moved):
        groups[GROUPS - 1 - index] = groups[count - 1 - index]
    for index in range(gap, GROUPS - moved):
        groups[index] = 0
    return True


@run_small_in_python(max_elements=20_000)
@kernel
def read_addresses(text: Bytes, begins: Ints32, ends: Ints32, high: Ints, low: Ints) -> int:
    """Read an IPv4 or IPv6 address from each cell as two halves; return the first wrong row, or -1."""
    groups = np.zeros(GROUPS, dtype=np.int64)
    for row in range(len(begins)):
        begin, end = signed(begins[row]), signed(ends[row])
        number = _ipv4(text, begin, end) if end > begin else NONE
        if number >= 0:
            groups[:] = 0
            groups[5], groups[6], groups[7] = 0xFFFF, number >> 16, number & 0xFFFF
        elif end <= begin or not _ipv6(text, begin, end, groups):
            return row
        high[row] = ((groups[0] - 0x8000) << 48) | (groups[1] << 32) | (groups[2] << 16) | groups[3]
        low[row] = ((groups[4] - 0x8000) << 48) | (groups[5] << 32) | (groups[6] << 16) | groups[7]
    return -1
