"""The guide follows the screen: each label that it names is one of the pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import planner_dashboard
from planner.scenarios.catalogue import find_system, system_names

ROOT = Path(__file__).parents[2]
SOURCES = Path(planner_dashboard.__file__).parent
LABEL = re.compile(r"(?<![*\w])\*([A-Z][^*]{2,60})\*(?!\*)")
PAGES = ("dashboard", "share", "through_time", "own_data")


def shown_labels() -> set[str]:
    """Return the texts of the pages' sources, and the names of actions on elements of all systems."""
    texts = {
        node.value
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    kinds = [kind for name in system_names() for kind in find_system(name).problem.elements]
    return texts | {action.name for kind in kinds for action in kind.actions}


@pytest.mark.parametrize("page", PAGES)
def test_each_label_of_the_guide_is_on_a_page(page: str) -> None:
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    labels = {" ".join(label.split()) for label in LABEL.findall(text)}
    assert labels or page in ("through_time", "own_data")
    assert labels <= shown_labels()
