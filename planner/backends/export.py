"""Writes a model as an LP or MPS file that other solvers read as the same model.

Numbers keep every digit. Both formats keep the sense: LP by its first word, MPS by the section
OBJSENSE where it maximises. HiGHS, CPLEX, Gurobi, SCIP and OR-Tools know that section; GLPK refuses
it, and CBC ignores it with a message: use the LP file for those two. An offset is
carried by a variable `offset` that is fixed at 1, for readers disagree on constants. Rows without
limits are left out; a row with two different limits becomes two rows in LP, `.lo` and `.up`. Comments at the
top say what the objective is, and how a metric of plans follows from its value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Literal

import numpy as np

from planner.backends.linear_program import LinearProgram
from planner.errors import InputError, did_you_mean
from planner.io.file_replacement import replace_file

MAX_NAME_LENGTH = 200
"""Characters of a name; some readers take 255."""

TERMS_PER_LINE = 6
COMMENT_WIDTH = 100

RESERVED = frozenset(
    word
    for words in (
        "st such that subject to s.t. st. obj objective offset free inf infinity nan end lazy user cuts",
        "max maximize maximise maximum min minimize minimise minimum bound bounds bin binary binaries",
        "gen general generals int integer integers semi semis semi-continuous sec sin sos sos1 sos2",
        "name rows columns rhs ranges range objsense objname endata marker n e l g",
    )
    for word in words.split()
)
"""Keywords of readers, whatever their case."""


def write_model(
    model: LinearProgram, path: str | Path, file_format: Literal["lp", "mps"] | None = None
) -> None:
    """Write a model to an LP or MPS file; the path's suffix names the format where none is given.

    raises  InputError for another suffix or a path that cannot be written
    """
    path = Path(path)
    formats = {"lp": lp_lines, "mps": mps_lines}
    name = file_format or path.suffix.lower().removeprefix(".")
    if name not in formats:
        raise InputError(f"{path}: '{path.suffix}' names no format{did_you_mean(name, formats)}")
    try:
        with replace_file(path) as partial, partial.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(f"{line}\n" for line in formats[name](model))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def file_names(model: LinearProgram) -> tuple[list[str], list[str]]:
    """Return the names of columns and of rows in the files, in the model's order.

    `flow[Köln->Genève]` becomes `flow(Koln_Geneve)`: letters, digits and `_.()` only. Names that
    coincide are numbered in order, so equal models give equal files.
    """
    return _plain_names(model.column_names()), _plain_names(model.row_names())


def lp_lines(model: LinearProgram) -> Iterator[str]:
    """Yield the lines of the CPLEX LP format."""
    columns, rows = file_names(model)
    idle = columns[0] if columns else "offset"  # an expression needs a term
    yield from (f"\\ {line}" for line in _comments(model))
    yield "Maximize" if model.sense == "max" else "Minimize"
    yield from _expression("obj", _objective_terms(model, columns) or [(0.0, idle)])
    yield "Subject To"
    yield from _lp_rows(model, columns, rows, idle)
    yield "Bounds"
    for name, low, high in zip(columns, model.lower.tolist(), model.upper.tolist(), strict=True):
        yield from _lp_bounds(name, low, high)
    if model.offset or not columns:
        yield " offset = 1"
    if model.integer is not None:
        yield "General"
        yield from (f" {columns[j]}" for j in np.flatnonzero(model.integer).tolist())
    yield "End"


def _objective_terms(model: LinearProgram, columns: Sequence[str]) -> list[tuple[float, str]]:
    """Return the coefficients and names of the objective's variables, the fixed `offset` last."""
    terms = [(value, columns[j]) for j, value in enumerate(model.cost.tolist()) if value != 0.0]
    return [*terms, (model.offset, "offset")] if model.offset else terms


def _lp_rows(model: LinearProgram, columns: Sequence[str], rows: Sequence[str], idle: str) -> Iterator[str]:
    """Yield the lines of the rows; a row without terms has one of `idle`."""
    starts, indices = model.matrix.indptr.tolist(), model.matrix.indices.tolist()
    values = model.matrix.data.tolist()
    for i, (low, high) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        entries = slice(starts[i], starts[i + 1])
        terms = [(a, columns[j]) for a, j in zip(values[entries], indices[entries], strict=True)]
        for name, limit in _lp_limits(rows[i], low, high):
            yield from _expression(name, terms or [(0.0, idle)], limit)


def _comments(model: LinearProgram) -> Iterator[str]:
    """Yield the comment lines that describe the model and its objective."""
    yield _ascii(model.name)
    verb = "maximize" if model.sense == "max" else "minimize"
    text = model.objective_text
    if text is None:
        return
    yield from wrap(_ascii(f"objective: {verb} {text.about}"), COMMENT_WIDTH, subsequent_indent="  ")
    if text.formula:
        yield _ascii(f"metric: {text.formula}")


def _lp_limits(name: str, low: float, high: float) -> Iterator[tuple[str, str]]:
    """Yield the row's names and right-hand sides; two where it has two limits."""
    if low == high:
        yield name, f" = {low!r}"
        return
    two = np.isfinite(low) and np.isfinite(high)
    if np.isfinite(low):
        yield (f"{name}.lo" if two else name), f" >= {low!r}"
    if np.isfinite(high):
        yield (f"{name}.up" if two else name), f" <= {high!r}"


def _lp_bounds(name: str, low: float, high: float) -> Iterator[str]:
    if low == high:
        yield f" {name} = {low!r}"
    elif (low, high) == (-np.inf, np.inf):
        yield f" {name} free"
    elif (low, high) != (0.0, np.inf):
        low_text = repr(low) if np.isfinite(low) else "-inf"
        yield f" {low_text} <= {name}" + (f" <= {high!r}" if np.isfinite(high) else "")


def _mps_kind(low: float, high: float) -> str:
    """Return the letter of a row with these limits."""
    return "E" if low == high else "L" if np.isfinite(high) else "G"


def mps_lines(model: LinearProgram) -> Iterator[str]:
    """Yield the lines of the free MPS format."""
    columns, rows = file_names(model)
    limited_rows = np.flatnonzero(np.isfinite(model.row_lower) | np.isfinite(model.row_upper)).tolist()
    limits = [(rows[i], float(model.row_lower[i]), float(model.row_upper[i])) for i in limited_rows]
    is_integer = [False] * len(columns) if model.integer is None else model.integer.tolist()
    yield from (f"* {line}" for line in _comments(model))
    yield f"NAME {_plain_names([model.name])[0]} FREE"
    if model.sense == "max":
        yield from ("OBJSENSE", "    MAX")
    yield "ROWS"
    yield " N obj"
    yield from (f" {_mps_kind(low, high)} {row}" for row, low, high in limits)
    yield "COLUMNS"
    yield from _mps_columns(model, columns, rows, set(limited_rows), is_integer)
    if model.offset:
        yield f" offset obj {model.offset!r}"
    yield from _mps_limits(limits)
    yield "BOUNDS"
    bounds = zip(columns, model.lower.tolist(), model.upper.tolist(), is_integer, strict=True)
    for name, low_limit, high_limit, is_column_integer in bounds:
        yield from _mps_bounds(name, low_limit, high_limit, is_column_integer)
    if model.offset:
        yield " FX BOUND offset 1"
    yield "ENDATA"


def _mps_limits(limits: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    """Yield the sections of right-hand sides and ranges of rows with their lower and upper limits."""
    yield "RHS"
    for row, low, high in limits:
        yield f" RHS {row} {high if np.isfinite(high) else low!r}"
    yield "RANGES"
    for row, low, high in limits:
        if low != high and np.isfinite(high - low):
            yield f" RANGE {row} {high - low!r}"


def _mps_columns(
    model: LinearProgram, columns: list[str], rows: list[str], limited_rows: set[int], is_integer: list[bool]
) -> Iterator[str]:
    by_column = model.matrix.tocsc()
    starts, indices = by_column.indptr.tolist(), by_column.indices.tolist()
    values = by_column.data.tolist()
    in_integers = False  # between the markers around integer variables
    for j, cost in enumerate(model.cost.tolist()):
        if is_integer[j] != in_integers:
            in_integers = is_integer[j]
            yield f" MARKER 'MARKER' '{'INTORG' if in_integers else 'INTEND'}'"
        yield f" {columns[j]} obj {cost!r}"  # also where 0: every column is named here
        entries = slice(starts[j], starts[j + 1])
        for i, value in zip(indices[entries], values[entries], strict=True):
            if i in limited_rows:
                yield f" {columns[j]} {rows[i]} {value!r}"
    if in_integers:
        yield " MARKER 'MARKER' 'INTEND'"


def _mps_bounds(name: str, low: float, high: float, is_integer: bool) -> Iterator[str]:
    """Yield the limits of a variable; state them where the defaults of readers differ."""
    if low == high:
        yield f" FX BOUND {name} {low!r}"
    elif (low, high) == (-np.inf, np.inf):
        yield f" FR BOUND {name}"
    elif (low, high) != (0.0, np.inf) or is_integer:
        yield f" MI BOUND {name}" if low == -np.inf else f" LO BOUND {name} {low!r}"
        yield f" PL BOUND {name}" if high == np.inf else f" UP BOUND {name} {high!r}"


def _expression(name: str, terms: Iterable[tuple[float, str]], limit: str = "") -> Iterator[str]:
    words = (f"{'-' if value < 0 else '+'} {abs(value)!r} {variable}" for value, variable in terms)
    lines = list(iter(lambda: " ".join(islice(words, TERMS_PER_LINE)), ""))
    lines[0] = f" {name}: {lines[0]}"
    lines[1:] = [f"   {line}" for line in lines[1:]]
    lines[-1] += limit
    yield from lines


def _plain_names(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    return [_unique_name(_safe_name(name), taken) for name in names]


def _safe_name(name: str) -> str:
    """Return a name of ASCII letters, digits and `_.()` that no reader takes for anything else."""
    text = re.sub(r"[^A-Za-z0-9_.()]+", "_", _ascii(name).replace("[", "(").replace("]", ")"))[
        :MAX_NAME_LENGTH
    ]
    # A name that starts as a number (3x, .5, e5, inflow, nano) or is a keyword would be misread.
    if not re.match(r"(?!e\d|inf|nan)[a-z_]", text, re.IGNORECASE) or text.lower() in RESERVED:
        text = f"n_{text}"
    return text


def _ascii(name: str) -> str:
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().replace("\n", " ")


def _unique_name(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    # `.lo` and `.up` are for the halves of rows; case-blind, for some readers are.
    while candidate.lower() in taken or candidate.lower().endswith((".lo", ".up")):
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate.lower())
    return candidate
