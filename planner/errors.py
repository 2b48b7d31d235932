"""Errors that a user can act on, each with the exit code of the command line."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final


class PlannerError(Exception):
    """Base of every error that planner raises on purpose: one clear line, or several."""

    exit_code: ClassVar[int] = 1


class InputError(PlannerError):
    """Invalid input. `faults` has every fault found, one line each.

    A line names the place (file, row, field), the value, and the rule that it violates.
    """

    exit_code = 1

    def __init__(self, *faults: str) -> None:
        self.faults: tuple[str, ...] = faults
        super().__init__("\n".join(faults))


class PlanRejected(PlannerError):
    """A plan that is none for its problem, or violates a constraint that its design guarantees."""

    exit_code = 5


class DesignFailure(PlannerError):
    """A design of a user's own that raised an error, which is its cause."""

    exit_code = 6


class SolverFailure(PlannerError):
    """A solver that crashed, refused its licence, or called the model invalid."""

    exit_code = 6


RENAMED: Final[Mapping[str, str]] = {
    "sees": "information",
    "told": "data_units",
    "grain": "granularity",
    "grain_km": "granularity_km",
    "grain_groups": "granularity_groups",
    "grain_bytes": "granularity_bytes",
    "exchanged_bytes": "signalling_bytes",
    "bound_within": "bound_scope",
    "within": "bound_scope",
    "down_rate": "capacity_factors",
}
"""New names by the names that users wrote before version 0.2."""


MAX_COMPARED: Final = 2_000  # names that are compared to find the nearest


MAX_COMPARED_LETTERS: Final = 200  # of a name that is compared letter by letter

SHORT_NAME: Final = 4  # letters of a name in which one other letter makes another word


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest valid name, else the valid names if they are few.

    Only a close name is suggested: `capcity` is capacity, but `owner` is not power.
    """
    names: Sequence[str] = sorted(set(valid))
    if RENAMED.get(name) in names:
        return f"; it is now called '{RENAMED[name]}'"
    likely = [name_ for name_ in names if abs(len(name_) - len(name)) <= max(3, len(name))]
    by_letters: dict[str, str] = {}
    for candidate in likely[:MAX_COMPARED]:
        by_letters.setdefault(candidate.casefold(), candidate)
    similar = difflib.get_close_matches(name.casefold(), by_letters, n=3, cutoff=0.6)
    near = next((by_letters[letters] for letters in similar if is_close(name, letters)), None)
    if near is not None:
        return f"; did you mean '{near}'?"
    if 0 < len(names) <= 12:
        return f"; valid: {', '.join(names)}"
    return ""


def is_close(name: str, other: str) -> bool:
    """Return whether a name may be a misspelling of another, or another form of the same word.

    At most a quarter of the letters differ, or one; or 60% at the beginning and the end are the same, at
    least five, of which most begin the name: disjunct is disjoint. The first letter of a short name is
    seldom mistaken: cost is not host. Case counts for nothing, and neither do the characters between words.
    """
    first, two = ("".join(filter(str.isalnum, text.casefold())) for text in (name, other))
    longer = max(len(first), len(two))
    if longer > MAX_COMPARED_LETTERS:
        return False
    alike = _count_alike(first, two)
    ends_alike = min(_count_alike(first[::-1], two[::-1]), min(len(first), len(two)) - alike)
    if alike > ends_alike and alike + ends_alike >= max(5, 0.6 * longer):
        return True
    return (alike > 0 or longer > SHORT_NAME) and _count_edits(first, two) <= max(1, longer // 4)


def _count_alike(first: str, two: str) -> int:
    """Return the number of equal letters at the beginning of two texts."""
    return sum(itertools.accumulate(map(str.__eq__, first, two), min))


def _count_edits(first: str, two: str) -> int:
    """Return the edit distance: letters added, removed, replaced, or swapped with the next one.

    source  Damerau 1964; the variant that edits no part twice
    """
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(first, start=1):
        before, last, row = row, before, [i]
        for j, other in enumerate(two, start=1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and first[i - 2] == other:
                edits = min(edits, last[j - 2] + 1)
            row.append(edits)
    return row[-1]
