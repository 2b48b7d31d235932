"""Statistics of words: indirect questions, verb phrases and private words of docstrings, and private names.

    python -m benchmarks.docstrings [FOLDER...]      default: all source folders; --list shows each finding

Well-kept codebases of the field have indirect questions in 0 to 1% of their first lines, verb phrases in 31
to 73% of those of functions, and 6 private names per 1,000 functions; `tests/test_docstrings.py` holds ours
to such values.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.imports import statements

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("planner", "models", "dashboards", "benchmarks")
QUESTION: Final = re.compile(r"\b(what|how|whose)\b", re.IGNORECASE)
WHAT_IF: Final = re.compile(r"\bwhat[- ]if\b", re.IGNORECASE)
PRIVATE: Final = re.compile(
    r"\b(told|worth|room|hopes?|grown|bereaved|suitors?|merit|leash|believed)\b", re.IGNORECASE
)
PARTICIPLE: Final = re.compile(
    r"_*(\w+ed|told|known|grown|made|drawn|kept|held|found|given|taken|left|said|seen|sent|built|chosen|gone|shown"
    r"|spread|written|lost|met|paid|sold|spent|swept|thrown|won|worn)"
)
NAMES: Final = frozenset(
    (
        *("place", "places", "one", "found", "at", "own", "mine", "most", "least", "left"),
        *("known", "chosen", "wanted", "given", "kept", "part", "rest", "done", "whole"),
    )
)
"""Names of variables that say nothing of what they hold: index, result, item, limit, demand and so on do."""
PRIVATE_NAME: Final = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(NAMES))})(?!\w)")
VERBS: Final = frozenset((ROOT / "benchmarks" / "verbs.txt").read_text(encoding="utf-8").split())
"""Verbs that first lines begin with, in the imperative."""


@dataclass
class Statistics:
    """Counts over docstrings and names, and the findings, each with its location."""

    docstrings: int = 0
    functions: int = 0
    documented: int = 0
    verb_phrases: int = 0
    questions: list[str] = field(default_factory=list)
    private_words: list[str] = field(default_factory=list)
    private_names: list[str] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def question_share(self) -> float:
        """Share of docstrings with an indirect question in the first line."""
        return len(self.questions) / max(1, self.docstrings)

    @property
    def verb_share(self) -> float:
        """Share of functions with a docstring that begins with a verb."""
        return self.verb_phrases / max(1, self.documented)

    @property
    def private_names_per_1000(self) -> float:
        """Private names per 1,000 functions: each counts once in each function that stores it."""
        return 1000 * len(self.private_names) / max(1, self.functions)


def measure(folders: Iterable[str] = FOLDERS) -> Statistics:
    """Return the statistics of all Python files in the folders; properties count as values, not functions."""
    statistics = Statistics()
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        tree = ast.parse(text)
        for node in (tree, *statements(tree)):
            if isinstance(node, Definition):
                _count(statistics, path, node, lines)
    return statistics


Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.Module | ast.ClassDef | Function


def _count(statistics: Statistics, path: Path, node: Definition, lines: Sequence[str]) -> None:
    """Add a definition to the statistics.

    lines  of its file
    """
    location = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
    if isinstance(node, Function):
        statistics.functions += 1
        if PRIVATE_NAME.search("\n".join(lines[node.lineno - 1 : node.end_lineno])):
            names = sorted(_private_names(node))
            statistics.private_names += [f"{location}: {node.name}: {name}" for name in names]
        if PARTICIPLE.fullmatch(node.name):
            statistics.participles.append(f"{location}: {node.name}")
    text = ast.get_docstring(node)
    if not text:
        return
    first = text.strip().split("\n")[0]
    statistics.docstrings += 1
    if is_question(first):
        statistics.questions.append(f"{location}: {first}")
    if word := PRIVATE.search(text):
        statistics.private_words.append(f"{location}: {word[0]}: {first}")
    if isinstance(node, Function) and not any(
        "property" in ast.unparse(item) for item in node.decorator_list
    ):
        statistics.documented += 1
        if _is_verb_phrase(first):
            statistics.verb_phrases += 1
        else:
            statistics.others.append(f"{location}: {first}")


def _private_names(node: Function) -> set[str]:
    """Return the private names that a function stores as variables, arguments or attributes."""
    stored = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            stored.add(child.id)
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            stored.add(child.attr)
        elif isinstance(child, ast.arg):
            stored.add(child.arg)
    return stored & NAMES


def is_question(line: str) -> bool:
    """Return whether a first line has an indirect question: a noun says the same in fewer words."""
    words = line.split(" ")
    if QUESTION.search(WHAT_IF.sub("", line)):
        return True
    return _is_verb_phrase(line) and len(words) > 1 and words[1] in ("where", "which")


def _is_verb_phrase(line: str) -> bool:
    return line.split(" ")[0].strip("`.,:;").lower() in VERBS


def main() -> None:
    """Print the statistics, and on request each finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--list", action="store_true", dest="all")
    arguments = parser.parse_args()
    statistics = measure(arguments.folders)
    if arguments.all:
        for kind in ("questions", "private_words", "private_names", "participles", "others"):
            for line in getattr(statistics, kind):
                print(f"{kind}: {line}")
    print(f"{statistics.docstrings:,} docstrings: {statistics.question_share:.1%} with questions, goal 1%")
    print(f"{statistics.documented:,} functions: {statistics.verb_share:.1%} begin with a verb, goal 60%")
    print(f"{statistics.private_names_per_1000:.0f} private names per 1,000 functions, goal 20")
    print(f"{len(statistics.private_words)} docstrings with a private word, goal 0")
    print(f"{len(statistics.participles)} functions are bare participles")


if __name__ == "__main__":
    main()
