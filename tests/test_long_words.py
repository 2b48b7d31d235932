"""Patterns that look for words in text of users pass a long word once, not again from each of its letters."""

from __future__ import annotations

import re

import pytest

from planner_models.consolidation.problem.readers.prometheus import LABEL
from planner_models.consolidation.problem.readers.quantities import FORM
from planner_models.flowtables.problem.evaluation.names import DOWN, SHOWN
from planner_models.flowtables.problem.evaluation.reading import OWN_FIELDS
from planner_models.queries.problem.predicates import FIELD_NAME
from planner_models.traffic.designs.tunnel_lists import JUNOS_HOP

LETTERS = 400_000
"""Of a word: from each of its letters, they would be passed 80 thousand million times."""
PATTERNS = {
    "label of Prometheus": (LABEL, 'up{job="node"}', ("job", "node")),
    "field of OpenFlow": (OWN_FIELDS, "ip, conj_id=3", ("conj_id", "3", "")),
    "port": (SHOWN, "\n 1(eth0): addr:02:00", ("1", "eth0")),
    "port that is down": (DOWN, " 1(eth0): addr:02:00\n state: LINK_DOWN", "1"),
    "field of a query": (FIELD_NAME, "1, ip_src = 10.0.0.1", "ip_src"),
    "hop of a tunnel": (JUNOS_HOP, "10.1.1.1 S", "10.1.1.1"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_long_word_is_passed_once(name: str) -> None:
    pattern, text, found = PATTERNS[name]
    assert pattern.findall(text) == [found]
    for character in ("a", "1", " ", "\n", "_", "x ", "%", "1\n"):
        assert not pattern.findall(character * (LETTERS // len(character)))


@pytest.mark.parametrize(("text", "number"), [("1.5Gi", "1.5"), (".5", ".5"), ("2e3m", "2e3"), ("7.", "7.")])
def test_a_quantity_of_many_digits_is_passed_once(text: str, number: str) -> None:
    match = FORM.fullmatch(text)
    assert match is not None
    assert match[1] == number
    assert not FORM.fullmatch("1" * LETTERS + "?")
    assert isinstance(FORM, re.Pattern)
