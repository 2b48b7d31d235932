"""Conformance tests with every value of parameters find false bounds, false plans and unclear refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner.testing.searches import search_cases
from tests.planner.runs.toy_system import Admitted, Link, toy

PROBLEM = Link(offered_mbps=4.0, capacity_mbps=3.0)
ASKED: list[tuple[str, bool]] = []


def send(sent_mbps: float, bound: float) -> Decision[Any]:
    proof = Proof(status=Status.FEASIBLE, objective=sent_mbps, bound=bound, metric="delivered_mbps")
    return Decision(plan=Admitted(sent_mbps), proof=proof)


def honest(
    problem: Link, *, method: Literal["plain", "fast"] = "plain", is_checked: bool = False
) -> Decision[Any]:
    """Send what the link carries; the fast method needs a check."""
    ASKED.append((method, is_checked))
    if method == "fast" and not is_checked:
        raise InputError("method is 'fast', but is_checked is false: it must be true")
    return send(3.0, 3.0)


def false_bound(problem: Link, *, method: Literal["plain", "fast"] = "plain") -> Decision[Any]:
    """Prove too little by one of two methods."""
    return send(2.0, 2.0 if method == "fast" else 3.0)


def too_much(problem: Link, *, rounds: int = 1) -> Decision[Any]:
    """Overload the link after two rounds."""
    return send(3.0 if rounds < 2 else 4.0, 4.0)


def unclear(problem: Link, *, is_checked: bool = False) -> Decision[Any]:
    """Refuse in two lines."""
    if is_checked:
        raise InputError("is_checked\nis true")
    return send(3.0, 3.0)


def failing(problem: Link, *, parts: int = 1) -> Decision[Any]:
    """Divide by zero for two parts."""
    return send(3.0 / (2 - parts), 3.0)


def failures_of(decide: Callable[..., Decision[Any]]) -> list[str]:
    """Return the lines of the tests that fail."""
    lines = []
    for name, run in search_cases(toy(lambda: PROBLEM, decide), {}, Options(), variants=0):
        try:
            run()
        except AssertionError as error:
            lines.append(f"{name}: {error}")
    return lines


@pytest.mark.parametrize(
    ("decide", "line"),
    [
        (false_bound, "delivered_mbps 3.0 beats the bound delivered_mbps 2.0 of own(method=fast"),
        (too_much, "own with every value: own(rounds=2): PlanRejected"),
        (unclear, "own(is_checked=True): refused by no clear line"),
        (failing, "own(parts=2): ZeroDivisionError"),
    ],
)
def test_false_claims_of_one_value_are_found(decide: Callable[..., Decision[Any]], line: str) -> None:
    failures = failures_of(decide)
    assert any(line in failure for failure in failures), failures


def test_a_value_that_is_refused_alone_is_tried_with_others() -> None:
    ASKED.clear()
    assert failures_of(honest) == []
    assert {("plain", False), ("plain", True), ("fast", False), ("fast", True)} == set(ASKED)
