"""Functions that are compiled when they are first called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODULE = """
import sys
from planner.compiled import kernel, inner

@inner
def double(x):
    return 2 * x

@kernel
def add_doubled(x, y):
    return x + double(y)
"""

OTHER = """
from lazy import add_doubled, double
from planner.compiled import kernel

@kernel
def call(x):
    return add_doubled(x, double(x))
"""

CHECKS = """
import sys
import lazy, other
from planner import clock
assert "numba" not in sys.modules, "loaded before a kernel is called"
first = lazy.add_doubled
before = clock.paused_s()
assert lazy.add_doubled.__name__ == "add_doubled"
assert lazy.add_doubled.py_func.__doc__ is None
assert other.call(1) == 5
assert "numba" in sys.modules
assert clock.paused_s() - before > 0.05, "the clock stands still while Numba is loaded"
assert first(1, 2) == 5

assert lazy.add_doubled is first
assert len(first.signatures) == 1
assert not hasattr(first, "__len__")
"""


def test_numba_is_loaded_with_the_first_kernel_that_is_called(tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text(MODULE)
    (tmp_path / "other.py").write_text(OTHER)
    subprocess.run([sys.executable, "-c", CHECKS], cwd=tmp_path, check=True, timeout=100)
