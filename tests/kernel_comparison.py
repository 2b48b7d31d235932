"""Plugin for `--compare-kernels`: kernels that Python may run give the same bits compiled, in all tests.

Small problems, random ones and amounts of many decades come by here; some calls of each size are compared.
The summary names kernels that Python may run and that no slow test calls with
small arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import pytest

from planner.kernels import kernels
from planner.testing.kernels import compare_with_python, name_of

CALLS: Final = 20
"""Calls that are compared, of each kernel and each size of its arguments, in each process."""
SENT: Final = "kernels"


class KernelComparison:
    """Compares calls in the process that runs the tests, and collects in the first one what was compared."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.marked: set[str] = set()
        self.compared: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        """Compare in all tests, and tell the first process which kernels were compared."""
        with compare_with_python(max_calls=CALLS) as counts:
            result = yield
        self.marked |= {name_of(kernel) for kernel in kernels if kernel.max_elements}
        self.compared |= counts.keys()
        output: Any = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[SENT] = sorted(self.marked), sorted(self.compared)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what another process has compared."""
        with contextlib.suppress(AttributeError, KeyError):  # of a process that crashed
            marked, compared = node.workeroutput[SENT]
            self.marked |= set(marked)
            self.compared |= set(compared)

    def missing(self) -> list[str]:
        """Return the kernels of our systems that Python may run and that were not compared."""
        ours = {name for name in self.marked if name.startswith(("planner.", "planner_models."))}
        return sorted(ours - self.compared)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how many kernels were compared, and which were not."""
        terminalreporter.write_line(f"kernels compared with Python: {len(self.compared)}")
        for name in self.missing():
            terminalreporter.write_line(f"kernel that Python may run, not compared: {name}")
