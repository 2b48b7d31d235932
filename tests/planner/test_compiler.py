"""Compiled functions: cached code follows the functions and constants of other modules."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from planner.compiled import njit
from planner.compiler import digest_of

CALLER = """
from planner.compiled import njit
from {callee} import double, OFFSET

@njit(cache=True)
def call(x):
    return double(x) + OFFSET
"""
CALLEE = """
from planner.compiled import njit
from {inner} import factor

OFFSET = 1

@njit()
def double(x):
    return factor(x) * x
"""
INNER = """
from planner.compiled import njit

@njit(fastmath={{"nnan", "nsz", "contract"}})
def factor(x):
    return 2 if x in {{1, 2.5, 10}} else 3
"""


def write(folder: Path, name: str, **changes: tuple[str, str]) -> str:
    """Write three modules that call each other, some text of them replaced; return the caller's name."""
    names = {"callee": f"{name}_callee", "inner": f"{name}_inner"}
    for section, text in (("caller", CALLER), ("callee", CALLEE), ("inner", INNER)):
        old, new = changes.get(section, ("", ""))
        assert old in text
        (folder / f"{name}_{section}.py").write_text(text.replace(old, new).format(**names))
    return f"{name}_caller"


def load(folder: Path, name: str) -> ModuleType:
    """Import a module anew, with those that it calls."""
    for share in ("caller", "callee", "inner"):
        sys.modules.pop(f"{name}_{share}", None)
    importlib.invalidate_caches()
    return importlib.import_module(f"{name}_caller")


@pytest.mark.parametrize(
    "changes",
    [
        {"callee": ("OFFSET = 1", "OFFSET = 5")},
        {"callee": ("* x", "- x")},
        {"inner": ("return 2", "return 4")},
        {"inner": ('"nsz", ', "")},
    ],
)
def test_a_digest_changes_with_what_is_compiled_into_a_function(
    changes: dict[str, tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    digests = []
    for change in ({}, {}, changes):
        write(tmp_path, "chain", **change)
        digests.append(digest_of(load(tmp_path, "chain").call.py_func))
    assert digests[0] == digests[1]
    assert digests[2] != digests[0]


def test_a_digest_knows_functions_that_call_themselves() -> None:
    @njit()
    def fall(x):  # type: ignore[no-untyped-def]
        return 0 if x == 0 else fall(x - 1)

    assert digest_of(fall.py_func) == digest_of(fall.py_func)


@pytest.mark.slow
def test_cached_code_is_compiled_again_where_a_function_that_it_calls_has_changed(tmp_path: Path) -> None:
    def run(hash_seed: int) -> tuple[str, str]:
        code = f"import {name}; f = {name}.call; print(f(10), *f.stats.cache_hits.values())"
        command = [sys.executable, "-B", "-c", code]
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}  # the order of sets
        result_made = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=100
        )
        result, *hits = result_made.stdout.split()
        return result, "loaded" if hits else "compiled"

    name = write(tmp_path, "kept")
    assert run(1) == ("21", "compiled")
    assert run(2) == ("21", "loaded")
    changed = CALLEE.replace("* x", "+ x").format(inner="kept_inner")
    (tmp_path / "kept_callee.py").write_text(changed)  # of the same size
    assert run(3) == ("13", "compiled")
    assert run(4) == ("13", "loaded")


def test_a_slice_of_another_shape_is_an_error_with_a_fixed_text() -> None:
    """Numba would compile a text with both shapes into each function that assigns to a slice."""
    sources = {"array": np.ones(4), "matrix": np.ones((4, 2))}

    @njit()
    def assign(target: Any, source: Any) -> Any:
        target[0:3] = source
        return target

    for name, source in sources.items():
        with pytest.raises(ValueError, match=r"^cannot assign an array of another shape to a slice$"):
            assign(np.zeros((5, *source.shape[1:])), source)
        fits = assign(np.zeros((5, *source.shape[1:])), source[:3])
        assert fits.sum() == source[:3].sum(), name


def test_constants_of_one_type_share_compiled_code() -> None:
    @njit()
    def choose(values: Any, is_first: bool) -> float:
        return float(values[0] if is_first else values[-1])

    @njit()
    def call(values: Any) -> tuple[float, float]:
        return choose(values, True), choose(values, False)

    assert call(np.array([1.0, 2.0])) == (1.0, 2.0)
    assert len(choose.signatures) == 1


def test_operators_resolved_once_have_the_types_of_their_operands() -> None:
    @njit()
    def combine(values: Any, number: Any) -> Any:
        return values[0] + number, values / number, -number, values[1:], values[1] < number, 3 * number

    for kind in (np.int64, np.float64, np.float32, np.int64):
        for number in (kind(2), kind(3), kind(2)):
            values = np.array([1, 2, 3], dtype=kind)
            results = combine(values, number)
            for result, expected in zip(results, combine.py_func(values, number), strict=True):
                np.testing.assert_array_equal(result, expected)
                if isinstance(expected, np.ndarray):
                    assert result.dtype == expected.dtype
