"""Shared by all tests: the search of hypothesis, comparisons of kernels, and the place of the real traces."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.kernel_comparison import KernelComparison

# whatever is imported and collected stays until the end: no garbage collection looks through it before
gc.disable()

# the same examples every time, so that a red run is red for a reason; HYPOTHESIS_PROFILE=deep looks further
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=30, database=None)
settings.register_profile(
    "deep", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option that lets all tests compare kernels."""
    text = "compare kernels in Python with compiled ones, in calls of all tests that run; doubles their time"
    parser.addoption("--compare-kernels", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Compare kernels where the option says so."""
    if config.option.compare_kernels:
        config.pluginmanager.register(KernelComparison(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest tests first; leave out those that repeat others, unless `-m` names them."""
    items.sort(key=_minutes, reverse=True)
    if "exhaustive" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


def pytest_collection_finish() -> None:
    """Keep what stays until the end, such as thousands of tests, from each later garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # what a test makes is mostly small and short-lived
    gc.enable()


def _minutes(item: pytest.Item) -> float:
    """Return the minutes that a slow test names, so that none of them begins when all others have ended."""
    marker = item.get_closest_marker("slow")
    return marker.kwargs.get("minutes", 0.0) if marker else 0.0


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Restore `__main__` after each test: a page that a test runs replaces it and leaves it replaced.

    A process that a later test starts by "spawn" would run the file of that page.
    """
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real traces; skips where PLANNER_TRACES names none."""
    named = os.environ.get("PLANNER_TRACES")
    if not named:
        pytest.skip("PLANNER_TRACES is not set: no real traces here")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"PLANNER_TRACES is {folder}, which is no folder")
    return folder
