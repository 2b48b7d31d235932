"""Matches in text: values, prefixes, ranges; and headers in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flowtables.problem.fields import FIVE_TUPLE, Layout
from planner_models.flowtables.problem.values import BadMatch, split_range

LAYOUT = Layout(FIVE_TUPLE)


@given(st.integers(0, 1023), st.integers(0, 1023))
def test_ranges_become_few_disjoint_prefixes(first: int, last: int) -> None:
    first, last = sorted((first, last))
    covered: list[int] = []
    cubes = split_range(first, last, 10)
    for value, mask in cubes:
        covered += [number for number in range(1024) if (number ^ value) & mask == 0]
    assert sorted(covered) == list(range(first, last + 1))
    assert len(cubes) <= 2 * 10 - 2


@given(st.integers(0, 2**104 - 1), st.integers(0, 2**104 - 1))
def test_matches_are_read_as_they_are_written(value: int, mask: int) -> None:
    mask <<= 24  # the last word ends with 24 bits of no field
    value = (value << 24) & mask
    assert LAYOUT.parse(LAYOUT.format_match(value, mask)) == [(value, mask)]
    words = LAYOUT.to_words([value, mask])
    assert LAYOUT.to_numbers(words) == [value, mask]


def test_fields_do_not_cross_words() -> None:
    layout = Layout(
        [("x", 40, "l2", False), ("y", 40, "l3", True), ("z", 128, "l3", True), ("p", 8, "l4", False)]
    )
    assert [(field.word, field.offset) for field in layout.fields] == [(0, 0), (1, 0), (2, 0), (4, 0)]
    assert layout.words == 5
    [(value, mask)] = layout.parse("z=2001:db8::/32 p=3")
    words = layout.to_words([value, mask])
    assert words[0].tolist() == [0, 0, 0x20010DB800000000, 0, 3 << 56]
    assert np.bitwise_count(words[1]).sum() == 40


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("tcp_dst=80:443", 8),
        ("tcp tp_src=1024:65535 tp_dst=1024:65535", 36),
        ("", 1),
        ("ip_src=10.0.0.0/8", 1),
    ],
)
def test_ranges_multiply_entries(text: str, entries: int) -> None:
    assert len(LAYOUT.parse(text)) == entries


def test_ranges_that_make_too_many_entries_are_counted_not_made() -> None:
    """62^2 * 30^2 prefixes: of 32 bits without both ends, and of 16 bits."""
    text = "ip_src=1:4294967294 ip_dst=1:4294967294 tp_src=1:65534 tp_dst=1:65534"
    with pytest.raises(BadMatch, match="its ranges make 3,459,600 entries, must be at most 10,000"):
        LAYOUT.parse(text)
    assert len(LAYOUT.parse("ip_src=1:4294967294 ip_dst=1:4294967294")) == 62**2


@pytest.mark.parametrize("text", ["tp_src={}", "ip_src=1.2.3.4/{}", "ip_src=0/{}", "tp_dst=1:{}"])
def test_a_number_of_thousands_of_digits_is_refused(text: str) -> None:
    with pytest.raises(BadMatch, match="has a number of 5,000 digits"):
        LAYOUT.parse(text.format("9" * 5000))
