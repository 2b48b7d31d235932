"""The tests mirror the source tree: each test file is named after the module or package that it tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MIRRORS = {
    "tests/planner": "planner",
    "tests/models": "models/planner_models",
    "tests/dashboards": "dashboards/planner_dashboard",
    "tests/benchmarks": "benchmarks",
}
TOPICS = {"bounds", "browser", "corruptions", "open_vswitch", "operator_tables"}
"""What tests of a whole package are about, besides its modules, such as a comparison with another program."""


@pytest.mark.parametrize(("tests", "source"), MIRRORS.items())
def test_every_test_file_has_its_module(tests: str, source: str) -> None:
    """Package `x` is tested by `test_x.py`, in its own folder or beside it; some topics concern a package."""
    strangers = []
    for path in (ROOT / tests).rglob("test_*.py"):
        folder = path.parent.relative_to(ROOT / tests)
        name = path.stem.removeprefix("test_")
        module = ROOT / source / folder / name
        of_its_package = name == (ROOT / source / folder).resolve().name
        is_topic = name in TOPICS and (ROOT / source / folder).is_dir()
        if not (module.with_suffix(".py").is_file() or module.is_dir() or of_its_package or is_topic):
            strangers.append(str(path.relative_to(ROOT)))
    assert not strangers
