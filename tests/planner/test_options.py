"""Options: what is left of a time limit, and whether a solver is chosen."""

from __future__ import annotations

import pytest

from planner import clock
from planner.options import Options


def test_what_is_left_of_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    options = Options(time_limit_s=10.0, gap=0.1)
    deadline = options.deadline()
    assert deadline == 110.0
    now[0] = 104.0
    assert options.until(deadline) == Options(time_limit_s=6.0, gap=0.1)
    now[0] = 120.0
    assert options.until(deadline).time_limit_s == 1e-3
    assert options.until(deadline, least_s=0.1).time_limit_s == 0.1
    assert options.share_time(0.5).time_limit_s == 5.0


def test_without_a_time_limit_nothing_ends() -> None:
    options = Options()
    assert options.deadline() is None
    assert options.until(None) is options
    assert options.share_time(0.5) is options


@pytest.mark.parametrize(
    ("options", "expected"),
    [(Options(), False), (Options(backend="scip"), True), (Options(algorithm="simplex"), True)],
)
def test_a_solver_is_chosen_by_backend_or_algorithm(options: Options, expected: bool) -> None:
    assert options.is_solver_chosen == expected
