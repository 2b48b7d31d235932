"""Demand matrices of research repositories: numbers in a text or NumPy file, in the order of the nodes.

A file has one matrix, in n rows or in one of n * n numbers, or several, one for each step. Pickled files are
refused: reading one runs whatever code is in it.
"""

from __future__ import annotations

import math
import re
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Final

import numpy as np

from planner.arrays import Floats
from planner.contract.notes import add_note
from planner.errors import InputError
from planner.io.text_files import read_text, require_file

PICKLES: Final = (".pkl", ".pickle", ".p", ".pt", ".pth", ".joblib")
MAX_BYTES: Final = 1 << 28
"""Bytes of a file of matrices."""
MAX_ROW_BYTES: Final = 1 << 26
"""Bytes of a row of a text: all pairs of a network of a thousand nodes."""
DAMAGED: Final = (zipfile.BadZipFile, zlib.error, SyntaxError, tokenize.TokenError, TypeError)
"""What libraries raise for damaged archives and headers."""
NUMBER: Final = re.compile(r"[^\s,;]+")


def read_matrix(path: Path, nodes: int, step: int | None = None) -> Floats:
    """Return the rate of each pair of nodes, shape (nodes, nodes), in the unit of the file.

    step    number of the matrix, from 0, in a file of several; default: the one with the most traffic
    raises  InputError for pickled files, for numbers that are none, and for other sizes
    """
    require_file(path)
    if path.stat().st_size > MAX_BYTES:
        size = f"{path.stat().st_size >> 20:,} MiB"
        raise InputError(f"{path.name}: has {size}, must have at most {MAX_BYTES >> 20:,} as a matrix")
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise InputError(
            f"{path.name}: refused for safety: a pickled file runs code as it is read; where you trust it, "
            "convert it: python -c \"import pickle, numpy; numpy.save('tm.npy', "
            f"numpy.asarray(pickle.load(open('{path.name}', 'rb')), dtype=float))\""
        )
    values = _read_numpy(path) if suffix in (".npy", ".npz") else _read_text(path)
    matrices = _shape(values, nodes, path.name)
    if not np.isfinite(matrices).all() or (matrices < 0).any():
        index = np.argwhere(~np.isfinite(matrices) | (matrices < 0))[0].tolist()
        where = f"step {index[0]}, " if len(matrices) > 1 else ""
        raise InputError(
            f"{path.name}: {where}row {index[1] + 1}, column {index[2] + 1} is {matrices[tuple(index)]:g}, "
            "must be a finite number of at least 0"
        )
    return _choose_step(matrices, step, path.name)


def _choose_step(matrices: Floats, step: int | None, file: str) -> Floats:
    """Return one of several matrices; without a number that with the most traffic, which is said."""
    if step is not None:
        if not 0 <= step < len(matrices):
            raise InputError(f"{file}: has {len(matrices):,} matrices; step is {step}, must be below that")
        selected: Floats = matrices[step]
        return selected
    largest = int(matrices.sum(axis=(1, 2)).argmax())
    if len(matrices) > 1:
        add_note(
            f"assumed: {file}: of {len(matrices):,} matrices, the one with the most traffic: step {largest}; "
            "step sets another one"
        )
    chosen: Floats = matrices[largest]
    return chosen


def _read_numpy(path: Path) -> Floats:
    """Return the array of a NumPy file; raise InputError for objects, which are pickles."""
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as stream:
                return _read_array(stream, path.name)
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise InputError(f"{path.name}: has {len(names)} arrays, must have 1")
            with archive.open(names[0]) as stream:
                return _read_array(stream, path.name)
    except InputError:
        raise
    except (ValueError, OSError, EOFError, RuntimeError, NotImplementedError, *DAMAGED) as error:
        raise InputError(f"{path.name}: is no NumPy file ({' '.join(str(error).split())[:120]})") from None


def _read_array(stream: IO[bytes], file: str) -> Floats:
    """Return the numbers of an array in NumPy's format; its size is checked before they are read."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(stream)
    if version not in readers:
        raise InputError(f"{file}: is NumPy format {version[0]}.{version[1]}, must be 1.0 or 2.0")
    shape, is_fortran, kind = readers[version](stream)
    if kind.hasobject:
        raise InputError(
            f"{file}: refused for safety: holds objects of Python, which are pickled; save numbers: "
            "numpy.save('tm.npy', numpy.asarray(matrix, dtype=float))"
        )
    if kind.kind not in "iuf":
        raise InputError(f"{file}: holds {kind}, must hold numbers")
    size = math.prod(shape) * kind.itemsize
    if size > MAX_BYTES:
        raise InputError(f"{file}: holds {size >> 20:,} MiB, must hold at most {MAX_BYTES >> 20:,}")
    content = stream.read(size)
    if len(content) < size:
        raise InputError(f"{file}: ends after {len(content):,} of {size:,} bytes; is it whole?")
    array = np.frombuffer(content, dtype=kind).reshape(shape, order="F" if is_fortran else "C")
    return array.astype(np.float64)


def _read_text(path: Path) -> Floats:
    """Return the numbers of a text, rows of equal length, separated by spaces, commas or semicolons."""
    rows: list[list[float]] = []
    text = read_text(path, max_line_bytes=MAX_ROW_BYTES)
    for number, line in enumerate(text.split("\n"), start=1):
        words = NUMBER.findall(line.partition("#")[0])
        if not words:
            continue
        try:
            row = [float(word) for word in words]
        except ValueError:
            bad = next(word for word in words if not _is_number(word))
            raise InputError(f"{path.name} row {number}: is '{bad[:60]}', must be a number") from None
        if rows and len(row) != len(rows[0]):
            raise InputError(f"{path.name} row {number}: has {len(row):,} numbers, not {len(rows[0]):,}")
        rows.append(row)
    if not rows:
        raise InputError(f"{path.name}: is empty, must have numbers")
    return np.array(rows)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _shape(values: Floats, nodes: int, file: str) -> Floats:
    """Return values as matrices, shape (steps, nodes, nodes)."""
    if values.ndim <= 3 and values.shape[-2:] == (nodes, nodes):
        return values.reshape(-1, nodes, nodes)
    if values.ndim <= 2 and values.ndim > 0 and values.shape[-1] == nodes * nodes and values.size:
        return values.reshape(-1, nodes, nodes)
    shape = " x ".join(f"{length:,}" for length in values.shape) or "one number"
    raise InputError(
        f"{file}: is {shape}, must be {nodes:,} x {nodes:,}, one for each node of the network, "
        f"or rows of {nodes * nodes:,} numbers, one for each step"
    )
