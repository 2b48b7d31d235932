"""The graph of imports: all kinds of import count, and circles are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.imports import find_circles, import_graph, import_share, single_importers, source_files

FILES = {
    "planner/__init__.py": "import typing\nif typing.TYPE_CHECKING:\n    from planner.top import run\n",
    "planner/top.py": "import planner.middle\ndef run():\n    from planner.ground import value\n    value\n",
    "planner/middle.py": "from . import ground\n",
    "planner/ground.py": "value = 1\n",
    "models/planner_models/one/__init__.py": "",
    "models/planner_models/one/plan/__init__.py": "",
    "models/planner_models/one/plan/check.py": "from ..problem import P\nfrom planner.ground import value\n",
    "models/planner_models/one/problem.py": "class Problem: ...\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with the files of two packages."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_all_kinds_of_import_are_edges(tree: Path) -> None:
    graph = import_graph(source_files(tree))
    assert graph["planner"] == {"planner.top"}
    assert graph["planner.top"] == {"planner.middle", "planner.ground"}
    assert graph["planner.middle"] == {"planner.ground"}
    assert graph["planner_models.one.plan.check"] == {"planner_models.one.problem", "planner.ground"}
    assert find_circles(graph) == []


def test_a_circle_through_a_type_and_a_deferred_import_is_found(tree: Path) -> None:
    (tree / "planner/ground.py").write_text(
        "import typing\nif typing.TYPE_CHECKING:\n    import planner.top\n"
    )
    (tree / "models/planner_models/one/problem.py").write_text("def f():\n    from .plan import check\n")
    assert find_circles(import_graph(source_files(tree))) == [
        ["planner.ground", "planner.middle", "planner.top"],
        ["planner_models.one.plan.check", "planner_models.one.problem"],
    ]


def test_one_importer_and_the_share_of_import_lines(tree: Path) -> None:
    files = source_files(tree)
    single = single_importers(import_graph(files), files)
    assert single == {
        "planner.top": "planner",
        "planner.middle": "planner.top",
        "planner_models.one.problem": "planner_models.one.plan.check",
    }
    assert import_share(files) == pytest.approx(7 / 12)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_circles(import_graph(source_files())) == []
