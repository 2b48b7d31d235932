"""The words of docstrings and names: verbs, no indirect questions, no private words."""

from __future__ import annotations

import pytest

from benchmarks import docstrings


@pytest.fixture(scope="module")
def statistics() -> docstrings.Statistics:
    return docstrings.measure()


@pytest.mark.parametrize(
    ("line", "is_question"),
    [
        ("Return what is left of each link.", True),
        ("Return the links whose load exceeds their capacity.", True),
        ("Return which links fail.", True),
        ("Return whether a link fails.", False),
        ("Return the residual capacity of each link, shape (L,).", False),
        ("Return the links for what-if questions.", False),
    ],
)
def test_questions_are_recognized_anywhere_in_a_line(line: str, is_question: bool) -> None:
    assert docstrings.is_question(line) == is_question


def test_first_lines_have_few_indirect_questions(statistics: docstrings.Statistics) -> None:
    assert statistics.question_share <= 0.01, "\n".join(statistics.questions)


def test_functions_begin_with_a_verb(statistics: docstrings.Statistics) -> None:
    assert statistics.verb_share >= 0.60, "\n".join(statistics.others)


def test_functions_store_few_private_names(statistics: docstrings.Statistics) -> None:
    assert statistics.private_names_per_1000 <= 20, "\n".join(statistics.private_names)


def test_no_private_words(statistics: docstrings.Statistics) -> None:
    assert not statistics.private_words, "\n".join(statistics.private_words)
