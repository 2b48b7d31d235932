"""Statistics of docstrings and names: indirect questions, verb phrases, private words, bare participles.

    python -m benchmarks.docstrings [FOLDER...]      default: all source folders; --list shows each finding

Seven well-kept codebases of the field have indirect questions in 0 to 1% of their first lines, and verb
phrases in 31 to 73% of those of functions; `tests/test_docstrings.py` holds ours to such figures.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("planner", "models", "dashboards", "benchmarks")
QUESTION: Final = re.compile(r"(What|Who|Whose|Whom|Where|How|Which|When|Whether|Why)\b")
PRIVATE: Final = re.compile(
    r"\b(told|worth|room|hopes?|grown|bereaved|suitors?|merit|leash|believed)\b", re.IGNORECASE
)
PARTICIPLE: Final = re.compile(
    r"_*(\w+ed|told|known|grown|made|drawn|kept|held|found|given|taken|left|said|seen|sent|built|chosen|gone|shown"
    r"|spread|written|lost|met|paid|sold|spent|swept|thrown|won|worn)"
)
VERBS: Final = frozenset((ROOT / "benchmarks" / "verbs.txt").read_text(encoding="utf-8").split())
"""Verbs that first lines begin with, in the imperative."""


@dataclass
class Statistics:
    """Counts over docstrings, and what was found, each with its place."""

    docstrings: int = 0
    functions: int = 0
    verb_phrases: int = 0
    questions: list[str] = field(default_factory=list)
    private_words: list[str] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def question_share(self) -> float:
        """Share of docstrings whose first line is an indirect question."""
        return len(self.questions) / max(1, self.docstrings)

    @property
    def verb_share(self) -> float:
        """Share of functions with a docstring whose first line begins with a verb."""
        return self.verb_phrases / max(1, self.functions)


def measure(folders: Iterable[str] = FOLDERS) -> Statistics:
    """Return the statistics of all Python files in the folders; properties count as values, not functions."""
    found = Statistics()
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in _definitions(path):
            _count(found, path, node)
    return found


Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.Module | ast.ClassDef | Function


def _definitions(path: Path) -> Iterator[Definition]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Definition):
            yield node


def _count(found: Statistics, path: Path, node: Definition) -> None:
    place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
    if isinstance(node, Function) and PARTICIPLE.fullmatch(node.name):
        found.participles.append(f"{place}: {node.name}")
    text = ast.get_docstring(node)
    if not text:
        return
    first = text.strip().split("\n")[0]
    found.docstrings += 1
    if QUESTION.match(first):
        found.questions.append(f"{place}: {first}")
    if word := PRIVATE.search(text):
        found.private_words.append(f"{place}: {word[0]}: {first}")
    if isinstance(node, Function) and not any("property" in ast.unparse(one) for one in node.decorator_list):
        found.functions += 1
        if _is_verb_phrase(first):
            found.verb_phrases += 1
        else:
            found.others.append(f"{place}: {first}")


def _is_verb_phrase(line: str) -> bool:
    return line.split(" ")[0].strip("`.,:;").lower() in VERBS


def main() -> None:
    """Print the statistics, and on request each finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--list", action="store_true", dest="all")
    given = parser.parse_args()
    found = measure(given.folders)
    if given.all:
        for kind in ("questions", "private_words", "participles", "others"):
            for line in getattr(found, kind):
                print(f"{kind}: {line}")
    print(f"{found.docstrings:,} docstrings: {found.question_share:.1%} are indirect questions, goal 1%")
    print(f"{found.functions:,} functions: {found.verb_share:.1%} begin with a verb, goal 60%")
    print(f"{len(found.private_words)} docstrings with a private word, goal 0")
    print(f"{len(found.participles)} functions are bare participles")


if __name__ == "__main__":
    main()
