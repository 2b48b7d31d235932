"""Graph of all imports of the source: circles, modules with one importer, share of import lines.

    python -m benchmarks.imports      fails where modules import each other in a circle; --list shows modules
                                      that one other module imports

Imports for types only and imports within functions count as all others do: a reader follows them too, and two
modules that name each other are one idea in two files.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ROOTS: Final = {"planner": "planner", "planner_models": "models", "planner_dashboard": "dashboards"}
"""Packages, and the folder that holds each one below the root of the repository."""

Graph = Mapping[str, frozenset[str]]
"""Modules, and the modules that each one imports."""


def source_files(root: Path = ROOT) -> dict[str, Path]:
    """Return the file of each module by its dotted name; a package is its `__init__` file."""
    files = {}
    for package, folder in ROOTS.items():
        base = root / folder if folder != package else root
        for path in sorted((base / package).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def import_graph(files: Mapping[str, Path]) -> Graph:
    """Return the modules that each module names in its imports, wherever they stand in its file."""
    return {
        name: frozenset(_imported_modules(name, path, files)) - {name} for name, path in sorted(files.items())
    }


def find_circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of two and more modules, the largest first.

    source  Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1972
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    circles = []
    for start in graph:
        if start in order:
            continue
        path = [(start, iter(sorted(graph[start])))]
        order[start] = lowest[start] = len(order)
        open_modules.append(start)
        while path:
            module, imported = path[-1]
            for target in imported:
                if target not in order:
                    order[target] = lowest[target] = len(order)
                    open_modules.append(target)
                    path.append((target, iter(sorted(graph[target]))))
                    break
                if target in open_modules:
                    lowest[module] = min(lowest[module], order[target])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[module])
                if lowest[module] == order[module]:
                    first = open_modules.index(module)
                    circles.append(sorted(open_modules[first:]))
                    del open_modules[first:]
    return sorted(
        (circle for circle in circles if len(circle) > 1), key=lambda circle: (-len(circle), circle)
    )


def single_importers(graph: Graph, files: Mapping[str, Path]) -> dict[str, str]:
    """Return the modules, packages excepted, that one other module imports, and that importer."""
    importers: dict[str, set[str]] = {name: set() for name in graph}
    for name, imported in graph.items():
        for target in imported:
            importers[target].add(name)
    return {
        name: next(iter(users))
        for name, users in importers.items()
        if len(users) == 1 and files[name].name != "__init__.py"
    }


def import_share(files: Mapping[str, Path]) -> float:
    """Return the share of all lines of the files that are lines of import statements."""
    lines = total = 0
    for path in files.values():
        text = path.read_text(encoding="utf-8")
        total += text.count("\n")
        imports = (
            node for node in statements(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)
        )
        lines += sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
    return lines / total if total else 0.0


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield all statements of a module, those within others too, without a visit of expressions."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())


def _imported_modules(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of `files` that the imports of a module name."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                if f"{source}.{alias.name}" in files:
                    yield f"{source}.{alias.name}"
                elif source in files:
                    yield source


def main() -> int:
    """Print the figures, and all circles; return 1 where there is a circle."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="list the modules with one importer")
    listed = parser.parse_args().list
    files = source_files()
    graph = import_graph(files)
    single = single_importers(graph, files)
    circles = find_circles(graph)
    if listed:
        for name, importer in sorted(single.items()):
            print(f"{name}  <-  {importer}")
    modules = sum(path.name != "__init__.py" for path in files.values())
    print(f"{len(files)} files, {modules} modules besides packages, {len(single)} with one importer")
    print(f"{import_share(files):.1%} of lines are imports; {len(circles)} circles of imports")
    for circle in circles:
        print(f"circle of {len(circle)} modules:", *circle, sep="\n    ")
    return 1 if circles else 0


if __name__ == "__main__":
    sys.exit(main())
