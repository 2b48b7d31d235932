"""Messages and bytes, counted by hand."""

from __future__ import annotations

import planner
from tests.models.coflows.instances import problem_of

PROBLEM = problem_of({"one": 0.0, "two": 20.0}, [("one", "a", "b", 10.0), ("two", "b", "a", 10.0)])


def test_circuits_and_priorities_are_counted() -> None:
    sunflow = planner.solve(PROBLEM, design="sunflow").metrics
    # a report of each coflow, and a message for each circuit
    assert (sunflow["messages"], sunflow["signalling_bytes"]) == (2 + 2, 2 * 16 + 2 * 4 + 2 * 24)
    sebf = planner.solve(PROBLEM, design="sebf").metrics
    # both racks get priorities at each arrival
    assert (sebf["messages"], sebf["signalling_bytes"]) == (2 + 2 * 2, 2 * 16 + 2 * 4 + 2 * 2 * 12)
    aalo = planner.solve(PROBLEM, design="aalo").metrics
    assert (aalo["messages"], aalo["signalling_bytes"]) == (2 * 2 * 2, 2 * 2 * 2 * 12)
