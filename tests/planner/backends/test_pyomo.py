"""Pyomo: models written in it, solvers behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from planner.backends import pyomo, solve
from planner.backends.linear_program import LinearProgram
from planner.backends.standard_form import from_pyomo
from planner.contract.proof import Status
from planner.errors import InputError, SolverFailure
from planner.options import Options

EVERYWHERE = ("highs", "ortools", "pyomo:highs", "pyomo:appsi_highs")


def transport(sense: int = pyo.minimize, *, need: float = 4.0, full: bool = False) -> pyo.ConcreteModel:
    m = pyo.ConcreteModel("transport")
    m.V = pyo.Set(initialize=["köln", "a b"])
    m.ship = pyo.Var(m.V, bounds=(0, 3), domain=pyo.Integers if full else pyo.Reals)
    m.unused = pyo.Var()
    m.fixed = pyo.Var(initialize=2.0)
    m.fixed.fix()
    m.need = pyo.Constraint(expr=m.ship["köln"] + m.ship["a b"] >= need)
    m.range = pyo.Constraint(m.V, rule=lambda m, v: (-1, m.ship[v] - m.fixed, 2.5))
    m.off = pyo.Constraint(expr=m.ship["köln"] <= -100)
    m.off.deactivate()
    m.inner = pyo.Block()
    m.inner.share = pyo.Var(domain=pyo.Binary)
    m.inner.same = pyo.Constraint(expr=m.inner.share == 1)
    sign = 1 if sense == pyo.minimize else -1
    m.cost = pyo.Objective(expr=sign * (2 * m.ship["köln"] + 3 * m.ship["a b"] + m.fixed), sense=sense)
    return m


@pytest.mark.parametrize("backend", EVERYWHERE)
@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
@pytest.mark.parametrize("whole", [False, True])
def test_a_model_is_solved_and_keeps_the_values(backend: str, sense: int, whole: bool) -> None:
    m = transport(sense, full=whole)
    solution = pyomo.solve_model(m, Options(backend=backend))
    expected = 11.0 if sense == pyo.minimize else -11.0
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(expected)
    assert solution.bound == pytest.approx(expected)
    assert solution.x is None
    assert m.ship["köln"].value == pytest.approx(3.0)
    assert m.ship["a b"].value == pytest.approx(1.0)
    assert m.fixed.value == 2.0


@pytest.mark.parametrize("backend", EVERYWHERE)
def test_an_infeasible_model_is_explained(backend: str) -> None:
    solution = pyomo.solve_model(transport(need=7.0), Options(backend=backend))
    assert solution.status is Status.INFEASIBLE
    assert solution.reasons == ("need", "ship[köln] <= 3", "ship[a b] <= 3")
    assert solution.objective is None


@pytest.mark.parametrize("backend", EVERYWHERE)
@pytest.mark.parametrize("domain", [pyo.Reals, pyo.Integers])
def test_unbounded_and_infeasible_models_are_distinguished(backend: str, domain: Any) -> None:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(domain=domain, bounds=(0, None)), pyo.Var(domain=domain, bounds=(0, None))
    m.c = pyo.Constraint(expr=m.x - m.y >= 0)
    m.o = pyo.Objective(expr=-2 * m.x + m.y)
    assert pyomo.solve_model(m, Options(backend=backend)).status is Status.UNBOUNDED
    m.d = pyo.Constraint(expr=m.x - m.y <= -1)
    assert pyomo.solve_model(m, Options(backend=backend)).status is Status.INFEASIBLE


def test_arrays_keep_pyomos_names_and_limits() -> None:
    arrays = from_pyomo(transport())
    assert arrays.column_names() == ["ship[köln]", "ship[a b]", "unused", "inner.share"]
    assert arrays.row_names() == ["need", "range[köln]", "range[a b]", "inner.same"]
    assert arrays.matrix.toarray().tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert arrays.row_lower.tolist() == [4, 1, 1, 1]
    assert arrays.row_upper.tolist() == [np.inf, 4.5, 4.5, 1]
    assert arrays.cost.tolist() == [2, 3, 0, 0]
    assert arrays.offset == 2
    assert arrays.lower.tolist() == [0, 0, -np.inf, 0]
    assert arrays.integer is not None
    assert arrays.integer.tolist() == [False, False, False, True]


def test_models_that_are_not_linear_are_refused() -> None:
    m = transport()
    m.square = pyo.Constraint(expr=m.ship["köln"] ** 2 <= 4)
    with pytest.raises(ValueError, match="model 'transport' is not linear"):
        from_pyomo(m)
    m = transport()
    m.cost.deactivate()
    with pytest.raises(ValueError, match="model 'transport' has 0 active objectives, must be 1"):
        from_pyomo(m)


def test_options_have_the_names_of_each_solver() -> None:
    options = Options(backend="pyomo:x", time_limit_s=1.5, gap=0.1, threads=2, seed=3)
    assert pyomo.keywords("highs", options) == {
        "time_limit": 1.5,
        "mip_rel_gap": 0.1,
        "threads": 2,
        "random_seed": 3,
    }
    assert pyomo.keywords("cbc", options) == {"sec": 1.5, "ratioGap": 0.1, "threads": 2, "randomCbcSeed": 3}
    assert pyomo.keywords("glpk", options) == {"tmlim": 2, "mipgap": 0.1, "seed": 3}  # whole seconds
    assert pyomo.keywords("ipopt", Options(time_limit_s=1.5, threads=2)) == {"max_cpu_time": 1.5}
    assert pyomo.keywords("highs", Options(algorithm="pdlp")) == {"solver": "pdlp"}


class Fake:
    """Stands in for a solver that is not installed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.options: dict[str, Any] = {}
        self.error = error

    def available(self, **_: Any) -> bool:
        return True

    def version(self) -> tuple[int, ...]:
        return (1, 2, 3, 4)

    def solve(self, *_: Any, **__: Any) -> Any:
        assert self.error is not None
        raise self.error


class Factory:
    def __init__(self, solver: Fake) -> None:
        self.solver = solver

    def __contains__(self, _: str) -> bool:
        return True

    def __call__(self, _: str) -> Fake:
        return self.solver


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(solver: Fake) -> Fake:
        monkeypatch.setattr("planner.backends.pyomo.pyo.SolverFactory", Factory(solver))
        pyomo._is_available.cache_clear()
        return solver

    yield install
    pyomo._is_available.cache_clear()


ONE = LinearProgram.build(cost=[1.0])


def test_options_of_an_unknown_solver_are_refused(fake: Any) -> None:
    fake(Fake())
    with pytest.raises(InputError) as refusal:
        solve(ONE, Options(backend="pyomo:obscure", gap=0.1, seed=1))
    assert refusal.value.faults == (
        "pyomo:obscure takes no 'gap': leave it unset",
        "pyomo:obscure takes no 'seed': leave it unset",
    )
    with pytest.raises(InputError, match="pyomo:ipopt takes no 'seed'"):
        solve(ONE, Options(backend="pyomo:ipopt", seed=1))


def test_a_solver_without_licence_is_a_failure(fake: Any) -> None:
    solver = fake(Fake(RuntimeError("no licence\n  found")))
    with pytest.raises(SolverFailure, match=r"gurobi 1\.2\.3 failed: no licence found$"):
        solve(ONE, Options(backend="pyomo:gurobi", time_limit_s=3.0))
    assert solver.options == {"TimeLimit": 3.0}


def test_an_unknown_solver_names_those_found() -> None:
    with pytest.raises(InputError, match=r"^pyomo finds no solver 'zzz'; valid: .*highs"):
        solve(ONE, Options(backend="pyomo:zzz"))


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    pyomo.solve_model(transport(), Options(backend="pyomo:highs", threads=2))
    pyomo.solve_model(transport(need=7.0), Options(backend="pyomo:highs", threads=1))
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == ""
