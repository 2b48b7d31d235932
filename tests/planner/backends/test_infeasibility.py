"""Infeasible models: the rows that conflict, by name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from planner.backends import solve
from planner.backends.infeasibility import explain
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.proof import Status
from planner.options import Options

INF = np.inf
CITIES = ("a", "b", "c", "d")


def network(*, whole: bool = False, demand: float = 5.0) -> LinearProgram:
    """A chain of three links with capacity for 4 each, and unrelated rows."""
    return LinearProgram.build(
        cost=[1.0, 1.0, 1.0],
        columns=[Columns("flow", 3, labels=lambda: ["a->b", "b->c", "c->d"])],
        rows=[
            Rows(
                "conserve",
                sp.csr_array([[1.0, 0, 0], [-1, 1, 0], [0, -1, 1], [0, 0, -1]]),
                lower=[demand, 0, 0, -demand],
                upper=[demand, 0, 0, -demand],
                labels=lambda: CITIES,
            ),
            Rows("capacity", sp.eye_array(3), upper=[9.0, 4.0, 9.0], labels=lambda: ["ab", "bc", "cd"]),
            Rows("idle", sp.csr_array([[1.0, 1.0, 1.0]]), upper=100.0),
        ],
        integer=whole,
    )


@pytest.mark.parametrize("whole", [False, True])
def test_an_irreducible_set_of_rows_is_named(whole: bool) -> None:
    model = network(whole=whole)
    reasons = solve(model).reasons
    assert "capacity[bc]" in reasons
    assert "idle" not in reasons
    rows = [model.row_names().index(name) for name in reasons]
    for left_out in rows:  # without any one of them there is no conflict
        selected = [row for row in rows if row != left_out]
        smaller = LinearProgram.build(
            cost=np.zeros(3),
            rows=[
                Rows(
                    "r",
                    model.matrix[selected],
                    lower=model.row_lower[selected],
                    upper=model.row_upper[selected],
                )
            ],
        )
        assert solve(smaller).status is Status.OPTIMAL


def test_integrality_alone_can_conflict() -> None:
    """Three pairs of three choices, at most one of each pair, and yet two: fine for halves only."""
    model = LinearProgram.build(
        cost=[1.0, 1.0, 1.0],
        rows=[
            Rows("pair", sp.csr_array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]]), upper=1.0),
            Rows("total", sp.csr_array([[1.0, 1.0, 1.0]]), lower=1.5),
            Rows("idle", sp.csr_array([[1.0, 1.0, 0.0]]), upper=9.0),
        ],
        upper=1.0,
        integer=True,
    )
    solution = solve(model)
    assert solution.status is Status.INFEASIBLE
    assert solution.reasons == ("pair[0]", "pair[1]", "pair[2]", "total")


@pytest.mark.parametrize("backend", ["highs", "ortools:cp-sat", "ortools:scip", "scip"])
def test_a_row_without_whole_values_is_named(backend: str) -> None:
    """CP-SAT calls such a model invalid, not infeasible."""
    model = LinearProgram.build(
        cost=[1.0, 1.0],
        rows=[Rows("odd", sp.csr_array([[2.0, -4.0]]), lower=3.0, upper=3.0)],
        upper=5.0,
        integer=True,
    )
    solution = solve(model, Options(backend=backend))
    assert solution.status is Status.INFEASIBLE
    assert solution.reasons == ("odd: no multiple of 2 from 3 to 3",)


def test_a_feasible_model_has_no_explanation() -> None:
    model = LinearProgram.build(cost=[1.0], rows=[Rows("r", sp.csr_array([[1.0]]), lower=1.0)])
    assert explain(model, seconds=10.0) is None


def test_limits_of_variables_are_named_too() -> None:
    model = LinearProgram.build(
        cost=[1.0, 1.0], rows=[Rows("need", sp.csr_array([[1.0, 1.0]]), lower=5.0)], upper=[2.0, 1.5]
    )
    assert solve(model).reasons == ("need", "x[0] <= 2", "x[1] <= 1.5")


def test_contradictory_limits_need_no_solver() -> None:
    crossed = LinearProgram.build(
        cost=[1.0],
        rows=[Rows("r", sp.csr_array([[1.0]]), lower=5.0, upper=4.0, labels=lambda: ["s"])],
        lower=2.0,
        upper=1.0,
    )
    assert solve(crossed).reasons == ("r[s]: 5 > 4", "x[0]: 2 > 1")
    empty = LinearProgram.build(cost=[1.0], rows=[Rows("r", sp.csr_array((1, 1)), lower=1.0)])
    assert solve(empty).reasons == ("r: 1 > 0",)


def test_many_names_are_shortened() -> None:
    model = LinearProgram.build(cost=np.ones(30), lower=2.0, upper=1.0)
    reasons = solve(model).reasons
    assert len(reasons) == 11
    assert reasons[0] == "x[0]: 2 > 1"
    assert reasons[-1] == "and 20 more"


def test_each_block_is_named_before_others_of_a_block() -> None:
    """Thirty rows x[i] <= 1 and one that asks for a sum of 31."""
    n = 30
    rows = [Rows("limit", sp.eye_array(n, format="csr"), upper=1.0)]
    rows.append(Rows("of the user", sp.csr_array(np.ones((1, n))), lower=n + 1.0))
    reasons = solve(LinearProgram.build(cost=np.zeros(n), rows=rows)).reasons
    assert reasons[:9] == tuple(f"limit[{i}]" for i in range(9))
    assert reasons[9:] == ("of the user", "and 21 more")


def test_without_time_nothing_is_claimed() -> None:
    assert explain(network(), seconds=0.0) == ()


def test_a_conflict_of_many_rows_is_found_whole() -> None:
    """x1 <= x2 <= ... <= x60 <= x1 - 1: each of the 60 rows takes part."""
    n = 60
    ring = np.eye(n) - np.roll(np.eye(n), 1, axis=1)
    model = LinearProgram.build(
        cost=np.zeros(n),
        rows=[Rows("order", sp.csr_array(ring), upper=np.r_[np.zeros(n - 1), -1.0])],
        upper=100.0,
    )
    reasons = solve(model, Options()).reasons
    assert reasons[0] == "order[0]"
    assert reasons[-1] == "and 50 more"
