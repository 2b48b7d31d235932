"""Wrong values of options are answered in plain words, with the exit code of a wrong command line."""

from __future__ import annotations

import pytest

from tests.commands import planner


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("recipes --resources full --decide-s x", "'--decide-s': 'x', must be a number"),
        ("recipes --measure --workers 1.5", "'--workers': '1.5', must be a whole number"),
        ("recipes --measure --workers 0", "'--workers': '0', must be greater than or equal to 1"),
    ],
)
def test_a_wrong_value_is_named_with_its_rule(words: str, line: str) -> None:
    result = planner(*words.split())
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith(f"Error: Invalid value for {line}\n")


def test_a_word_that_is_none_of_an_option_s_is_one_line() -> None:
    result = planner("recipes", "--resources", "foo")
    assert (result.code, result.out) == (1, "")
    assert result.err == "resources is 'foo', must be one of disjoint, partial, full\n"
