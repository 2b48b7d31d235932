"""The words of docstrings: verbs, no indirect questions, no private words."""

from __future__ import annotations

import pytest

from benchmarks import docstrings


@pytest.fixture(scope="module")
def found() -> docstrings.Statistics:
    return docstrings.measure()


def test_first_lines_are_no_indirect_questions(found: docstrings.Statistics) -> None:
    assert found.question_share <= 0.01, "\n".join(found.questions)


def test_functions_begin_with_a_verb(found: docstrings.Statistics) -> None:
    assert found.verb_share >= 0.60, "\n".join(found.others)


def test_no_private_words(found: docstrings.Statistics) -> None:
    assert not found.private_words, "\n".join(found.private_words)
