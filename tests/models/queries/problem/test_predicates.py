"""Predicates: their entries decide as the text does, and those of the paper are as few as it prints."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.flowtables.problem.values import BadMatch
from planner_models.queries.problem.predicates import approximate, compile_predicate, read_predicate
from planner_models.queries.problem.problem import find_layout, read_fields

LAYOUT = find_layout(None)
TEXTS = (
    "",
    "srcip!=1.2.3.4 & srcport=80",
    "!(tp_dst=80 | tp_dst=443) & (ip_dst=90.*.70.60 | in_port=2)",
    "udp, tp_dst=53",
    "!udp | tp_dst=1:1000 & ip_src=10.0.0.0/8 & !(in_port=1 or in_port=2)",
    "not (inport=1 and tcp) || srcmac=02:00:00:00:00:01",
    "tp_src=80 & tp_src=81",
)


def _draw_headers(random: np.random.Generator, count: int) -> list[int]:
    """Return headers of values that the predicates name, and of others."""
    values = {
        "in_port": ["1", "2", "7"],
        "eth_src": ["02:00:00:00:00:01", "02:00:00:00:00:02"],
        "ip_src": ["1.2.3.4", "10.1.2.3", "11.0.0.1"],
        "ip_dst": ["90.80.70.60", "90.1.70.60", "90.1.70.61"],
        "ip_proto": ["6", "17"],
        "tp_src": ["80", "81"],
        "tp_dst": ["53", "80", "443", "999", "1001"],
    }
    return [
        LAYOUT.parse_header(" ".join(f"{name}={random.choice(own)}" for name, own in values.items()))
        for _ in range(count)
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_the_first_entry_decides_as_the_text_does(text: str) -> None:
    predicate = read_predicate(text, LAYOUT)
    entries = compile_predicate(predicate)
    assert entries[-1].mask == 0
    decided = set()
    for header in _draw_headers(np.random.default_rng(1), 200):
        first = next(entry for entry in entries if (header ^ entry.value) & entry.mask == 0)
        assert first.holds == predicate.holds(header)
        decided.add(first.holds)
    assert decided == ({True} if not text else {False} if "81" in text else {True, False})


def test_a_negated_field_takes_two_rules() -> None:
    entries = compile_predicate(read_predicate("srcip!=1.2.3.4 & srcport=80", LAYOUT))
    shown = [(LAYOUT.format_match(value, mask), holds) for value, mask, holds in entries]
    assert shown == [("ip_src=1.2.3.4 tp_src=80", False), ("tp_src=80", True), ("", False)]


def test_an_approximation_holds_all_headers_of_the_predicate() -> None:
    entries = compile_predicate(read_predicate("ip_dst=90.*.70.60", LAYOUT))
    mask = LAYOUT.full_mask(["ip_dst"])
    octet = (0xFF << 24) << LAYOUT.shift["ip_dst"]
    assert approximate(entries, lambda own: own) == entries
    by_prefix = approximate(entries, lambda own: own if own == mask else own & octet)
    assert [(LAYOUT.format_match(*entry[:2]), entry.holds) for entry in by_prefix] == [
        ("ip_dst=90.0.0.0/8", True),
        ("", False),
    ]
    assert approximate(entries, lambda own: 0 if own != mask else own) == [(0, 0, True)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("srcprt=80", "there is no field 'srcprt'"),
        ("tp_dst=80 &", "ends where a field is expected"),
        ("(tp_dst=80", "a bracket is not closed"),
        ("tp_dst=80)", "'\\)' is not expected there"),
        ("| tp_dst=80", "'\\|' has nothing before it"),
        ("tp_dst=70000", "70000 does not fit into the 16 bits of tp_dst"),
        ("ip_src", "'ip_src' has no value: write ip_src=VALUE"),
        ("in_port=2=", "is no field with a value"),
        ("!" * 60 + "udp", "more than 50"),
        ("ip_src=10.0.0.*/8", "no value of ip_src"),
    ],
)
def test_a_predicate_without_a_meaning_is_refused(text: str, rule: str) -> None:
    with pytest.raises(BadMatch, match=rule):
        read_predicate(text, LAYOUT)


def test_fields_have_prefixes_and_frenetic_names() -> None:
    mask = read_fields("[srcip/24], inport", LAYOUT)
    assert LAYOUT.format_mask(mask) == "in_port ip_src/24"
    with pytest.raises(BadMatch, match="prefix length '33' of ip_src must be from 1 to 32"):
        read_fields("ip_src/33", LAYOUT)


def test_hundreds_of_excluded_values_are_an_entry_each() -> None:
    entries = compile_predicate(
        read_predicate(" and ".join(f"tp_dst!={port}" for port in range(400)), LAYOUT)
    )
    assert [entry.holds for entry in entries] == [False] * 400 + [True]


def test_words_may_be_in_capitals() -> None:
    one, other = (
        read_predicate(text, LAYOUT) for text in ("tcp AND NOT tp_dst=80 OR udp", "tcp & !tp_dst=80 | udp")
    )
    assert one == other
