"""Rules of composed programs against what each program does to every packet."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.updates.published import OTHER, Rule, Table, approximate, compose, exclude, match

VALUES = ("1", "2", OTHER)
PACKETS = [dict(zip("xy", each, strict=True)) for each in itertools.product(VALUES, repeat=2)]
RULES = st.builds(
    Rule,
    st.dictionaries(st.sampled_from("xy"), st.sampled_from(VALUES[:2])).map(
        lambda field: frozenset(field.items())
    ),
    st.frozensets(st.sampled_from("ab"), min_size=1),
)
TABLES = st.lists(RULES, max_size=3).map(tuple)
PROFILE = settings(max_examples=60, deadline=None, derandomize=True)


def actions(table: Table, packet: dict[str, str]) -> frozenset[str]:
    for pattern, result in table:
        if all(packet[field] == value for field, value in pattern):
            return result
    return frozenset()


@PROFILE
@given(one=TABLES, other=TABLES)
def test_a_composition_does_what_both_do(one: Table, other: Table) -> None:
    both = compose(one, other)
    assert all(actions(both, each) == actions(one, each) | actions(other, each) for each in PACKETS)
    assert len(both) <= (len(one) + 1) * (len(other) + 1) - 1


@PROFILE
@given(table=TABLES, without=TABLES)
def test_what_is_excluded_gets_no_action(table: Table, without: Table) -> None:
    remainder = exclude(table, without)
    for packet in PACKETS:
        is_out = bool(actions(without, packet))
        assert actions(remainder, packet) == (frozenset() if is_out else actions(table, packet))


def test_programs_of_the_paper() -> None:
    repeater = (*match(["forward 2"], inport="1"), *match(["forward 1"], inport="2"))
    monitor = match(["count"], inport="2", srcport="80")
    first = {item.pattern: item.actions for item in compose(repeater, monitor)}
    assert len(first) == 3
    assert first[frozenset({("inport", "2"), ("srcport", "80")})] == {"forward 1", "count"}
    assert approximate("90.80.70.60", prefixes=False, wildcards=False) == "90.80.70.60"
    assert approximate("*.80.70.60", prefixes=True, wildcards=False) == "*.*.*.*"
