"""Statuses of commercial solvers beside those that their own packages name, and recorded answers."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from planner import backends
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.registry import find_backend
from planner.backends.statuses import AMBIGUOUS, CPLEX, GUROBI, XPRESS, StatusTable
from planner.contract.proof import Status
from planner.errors import InputError, SolverFailure
from planner.options import Options
from planner.testing import check_backend
from tests.commercial_solvers import PACKAGES

RECORDED = (
    # numbers and names of gurobipy 13.0, cplex 22.2 and xpress 9.9
    (GUROBI, {"OPTIMAL": 2, "INFEASIBLE": 3, "INF_OR_UNBD": 4, "UNBOUNDED": 5, "TIME_LIMIT": 9,
              "INTERRUPTED": 11, "NUMERIC": 12, "SUBOPTIMAL": 13}),
    (CPLEX, {"optimal": 1, "unbounded": 2, "infeasible": 3, "infeasible_or_unbounded": 4,
             "abort_time_limit": 11, "MIP_optimal": 101, "MIP_optimal_tolerance": 102, "MIP_infeasible": 103,
             "MIP_time_limit_feasible": 107, "MIP_time_limit_infeasible": 108, "MIP_unbounded": 118,
             "MIP_infeasible_or_unbounded": 119}),
    (XPRESS, {"NOTFOUND": 0, "OPTIMAL": 1, "FEASIBLE": 2, "INFEASIBLE": 3, "UNBOUNDED": 4}),
)  # fmt: skip


@pytest.mark.parametrize(("table", "names"), RECORDED, ids=["gurobi", "cplex", "xpress"])
def test_each_status_means_what_its_name_says(table: StatusTable, names: dict[str, int]) -> None:
    for name, code in names.items():
        plain = name.lower().removeprefix("mip_")
        if plain.startswith("optimal"):
            assert table[code] is Status.OPTIMAL
        elif plain == "infeasible":
            assert table[code] is Status.INFEASIBLE
        elif "unb" in plain:
            assert table[code] == AMBIGUOUS
        else:
            assert table[code] is Status.UNDECIDED


def test_no_other_status_proves_anything() -> None:
    for table in (GUROBI, CPLEX, XPRESS):
        assert sum(status is Status.INFEASIBLE for status in table.values()) <= 2
        assert Status.FEASIBLE not in table.values()
        assert Status.UNBOUNDED not in table.values()


@pytest.fixture(params=PACKAGES)
def installed(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    pytest.importorskip(PACKAGES[name], reason="the commercial solver is not installed")
    return name


def test_a_commercial_solver_passes_the_kit(installed: str) -> None:
    check_backend(installed)


def test_a_program_beyond_the_licence_is_an_error_in_one_line(installed: str) -> None:
    """Without a licence of its own each takes small programs only."""
    count = 20_000
    rows = [Rows("least", sp.eye_array(count, format="csr"), lower=1.0)]
    model = LinearProgram.build(cost=np.ones(count), rows=rows)
    failure = ""
    try:
        objective = backends.solve(model, Options(backend=installed)).objective
    except SolverFailure as error:
        failure = str(error)
    assert failure.startswith(f"{installed} ") if failure else objective == pytest.approx(count)
    assert "\n" not in failure


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"planner.backends.{name}", raising=False)
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(InputError, match=rf"pip install 'coordination-planner\[{name}\]'"):
        find_backend(name).load()
