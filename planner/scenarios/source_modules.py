"""Files of a user's code: that of a module, and those that it imports from its own folder or package."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType


def source_files(module: ModuleType | None) -> list[Path]:
    """Return the file of a module and those that it imports from its folder or package, at any depth.

    The text of the files decides, so that imports within functions count. A notebook has no file: the modules
    in the current folder count that its names are of.
    """
    if module is None:
        return []
    file = _file_of(module)
    return files_with_imports(_notebook_files(module) if file is None else [file])


def files_with_imports(paths: Iterable[Path]) -> list[Path]:
    """Return Python files and those that they import from their folders or packages, at any depth."""
    pending = list(paths)
    files: set[Path] = set()
    while pending:
        path = pending.pop()
        if path not in files:
            files.add(path)
            pending += _imported_files(path)
    return sorted(files)


def _file_of(module: ModuleType | None) -> Path | None:
    """Return the text file of a module; None where it has none, such as a notebook or compiled code."""
    name = getattr(module, "__file__", None)
    path = Path(name).resolve() if name else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _notebook_files(module: ModuleType) -> Iterator[Path]:
    """Yield the files in the current folder of the modules that names of a notebook are of."""
    folder, installed = Path.cwd().resolve(), Path(sys.prefix).resolve()
    for value in list(vars(module).values()):
        source = (
            value if inspect.ismodule(value) else sys.modules.get(getattr(value, "__module__", None) or "")
        )
        path = _file_of(source)
        if path is not None and path.is_relative_to(folder) and not path.is_relative_to(installed):
            yield path


def _imported_files(path: Path) -> list[Path]:
    """Return the files that a file imports from its folder or package; none where it is no valid Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return []
    files: list[Path] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                files += _find_module(_roots(path), alias.name)
        elif isinstance(node, ast.ImportFrom):
            roots = (
                _roots(path) if node.level == 0 else [path.parents[min(node.level, len(path.parents)) - 1]]
            )
            base = node.module or ""
            for name in (base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)):
                files += _find_module(roots, name)
    return files


def _roots(path: Path) -> list[Path]:
    """Return the folders in which absolute imports of a file are looked for: its own, that of its package."""
    root = path.parent
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    return list(dict.fromkeys([path.parent, root]))


def _find_module(roots: list[Path], name: str) -> list[Path]:
    """Return the files of a module and of the packages that it is in; none where no folder has it."""
    steps = name.split(".") if name else []
    for root in roots:
        files: list[Path] = []
        for count in range(1, len(steps) + 1):
            base = root.joinpath(*steps[:count])
            found = [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
            files += found
            if not found and not base.is_dir():
                break
        if files:
            return files
    return []
