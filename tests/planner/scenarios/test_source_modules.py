"""Files of a user's code: what a file imports from its own folder or package, at any depth."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from planner.scenarios.source_modules import source_files

FILES = {
    "design.py": "import json\nimport beside_own\nimport numpy as np\n",
    "beside_own.py": "def late():\n    from deep_own import value\n    return value\n",
    "deep_own.py": "import design\nvalue = 1\n",  # a cycle
    "unrelated.py": "1 / 0\n",
    "pack_own/__init__.py": "",
    "pack_own/design.py": "from pack_own.part import inner\nfrom . import other\nfrom .. import nothing\n",
    "pack_own/part/__init__.py": "",
    "pack_own/part/inner.py": "",
    "pack_own/other.py": "this is no Python",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0].endswith("_own")]:
        del sys.modules[name]


def _module(path: Path) -> ModuleType:
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("design.py", ["beside_own.py", "deep_own.py", "design.py"]),
        (
            "pack_own/design.py",
            [
                f"pack_own/{name}.py"
                for name in ("__init__", "design", "other", "part/__init__", "part/inner")
            ],
        ),
    ],
)
def test_imports_from_the_own_folder_count(folder: Path, name: str, expected: list[str]) -> None:
    files = source_files(_module(folder / name))
    assert sorted(path.relative_to(folder).as_posix() for path in files) == expected


def test_a_notebook_has_the_files_of_the_current_folder_that_its_names_are_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    notebook = ModuleType("notebook")
    notebook.helper = importlib.import_module("beside_own")  # type: ignore[attr-defined]
    notebook.path = Path()  # type: ignore[attr-defined]
    assert [path.name for path in source_files(notebook)] == ["beside_own.py", "deep_own.py", "design.py"]
    assert source_files(None) == []
