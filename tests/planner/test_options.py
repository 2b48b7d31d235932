"""Options: shares of a time limit, and whether a solver is chosen."""

from __future__ import annotations

import pytest

from planner.options import Options


def test_a_share_of_a_time_limit() -> None:
    assert Options(time_limit_s=10.0).share_time(0.5).time_limit_s == 5.0
    options = Options()
    assert options.share_time(0.5) is options


@pytest.mark.parametrize(
    ("options", "expected"),
    [(Options(), False), (Options(backend="scip"), True), (Options(algorithm="simplex"), True)],
)
def test_a_solver_is_chosen_by_backend_or_algorithm(options: Options, expected: bool) -> None:
    assert options.is_solver_chosen == expected
