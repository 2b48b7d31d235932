"""LP and MPS files: other solvers read the same model from them."""

from __future__ import annotations

import re
from pathlib import Path

import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from ortools.linear_solver.python.model_builder_helper import (
    ModelBuilderHelper,
    ModelSolverHelper,
    SolveStatus,
)

from planner.backends import solve
from planner.backends.export import file_names, write_model
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import InputError

INF = np.inf
ODD = ["köln -> genève", "a b", "a_b", "e5", "free", "3x", "", "x\ny", "[1]", "日本", "Inf", "a b", "-", "st"]


def awkward(sense: str = "max") -> LinearProgram:
    """Every kind of row and limit, an offset, odd names."""
    return LinearProgram.build(
        sense="max" if sense == "max" else "min",
        cost=[1.0, 2.0, -1.0, 0.1, 0.0],
        offset=7.25,
        columns=[Columns("flow", 3, labels=lambda: ODD[:3]), Columns("e12", 1), Columns("inf", 1)],
        rows=[
            Rows("obj", sp.csr_array([[1.0, 1, 0, 0, 0]]), upper=4.0),
            Rows(
                "cap",
                sp.csr_array([[0, 1.0, 1, 1 / 3, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]),
                lower=[1.0, 2.0, -1.0, -INF],
                upper=[3.0, 2.0, 1.0, INF],
            ),
            Rows("end", sp.csr_array([[-1.0, -1, -1, -1, 0]]), lower=-8.0),
        ],
        lower=[0.0, -20.0, -5.0, 2.0, -INF],
        upper=[3.0, 2.0, -1.0, INF, INF],
        integer=[True, False, True, False, False],
        name="größe: 1",
    )


def by_highs(path: Path) -> tuple[float, int]:
    """Optimum and number of variables as HiGHS reads them."""
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    assert reader.readModel(str(path)) == highspy.HighsStatus.kOk
    reader.run()
    assert reader.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(reader.getInfo().objective_function_value), reader.getNumCol()


def by_ortools(path: Path) -> float:
    builder, solver = ModelBuilderHelper(), ModelSolverHelper("scip")
    assert builder.import_from_mps_file(str(path))
    solver.solve(builder)
    assert solver.status() == SolveStatus.OPTIMAL
    return float(solver.objective_value())


@pytest.mark.parametrize("sense", ["min", "max"])
def test_other_solvers_find_the_same_optimum(sense: str, tmp_path: Path) -> None:
    model = awkward(sense)
    optimum = solve(model).objective
    for suffix in (".lp", ".mps"):
        write_model(model, tmp_path / f"model{suffix}")
        read, variables = by_highs(tmp_path / f"model{suffix}")
        assert read == pytest.approx(optimum)
        assert variables == 6  # one for the offset
    assert by_ortools(tmp_path / "model.mps") == pytest.approx(optimum)


@given(seed=st.integers(0, 10**6))
def test_random_models_survive_both_formats(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    matrix = np.round(rng.normal(size=(rows, columns)), int(rng.integers(0, 17)))
    activity = matrix @ np.round(rng.normal(size=columns))
    model = LinearProgram.build(
        sense="min" if rng.random() < 0.5 else "max",
        cost=rng.normal(size=columns) * (rng.random(columns) < 0.8),
        offset=float(rng.integers(-1, 2)),
        rows=[
            Rows(
                "r",
                sp.csr_array(matrix),
                lower=np.where(rng.random(rows) < 0.6, activity - 1.0, -INF),
                upper=np.where(rng.random(rows) < 0.6, activity + rng.random(rows), INF),
            )
        ],
        lower=-rng.integers(4, 7, columns).astype(float),
        upper=rng.choice([-1.0, 0.0, 7.5], columns),
        integer=rng.random(columns) < 0.4,
    )
    solution = solve(model)
    if solution.status is not Status.OPTIMAL:
        return
    folder = tmp_path_factory.mktemp("models")
    for suffix in (".lp", ".mps"):
        write_model(model, folder / f"model{suffix}")
        assert by_highs(folder / f"model{suffix}")[0] == pytest.approx(solution.objective, rel=1e-5, abs=1e-5)
    assert by_ortools(folder / "model.mps") == pytest.approx(solution.objective, rel=1e-5, abs=1e-5)


def test_whole_variables_without_limits_stay_so(tmp_path: Path) -> None:
    """Some readers take whole variables of MPS files for 0/1 ones."""
    model = LinearProgram.build(cost=[1.0], rows=[Rows("r", sp.csr_array([[2.0]]), lower=9.0)], integer=True)
    for suffix in (".lp", ".mps"):
        write_model(model, tmp_path / f"model{suffix}")
        assert by_highs(tmp_path / f"model{suffix}") == (5.0, 1)
    assert by_ortools(tmp_path / "model.mps") == 5.0


def test_names_are_plain_unique_and_readable() -> None:
    model = LinearProgram.build(
        cost=np.zeros(len(ODD) + 2),
        columns=[
            Columns("flow", len(ODD), labels=lambda: ODD),
            Columns("e5", 1),
            Columns("inflow", 1, labels=lambda: ["0"]),
        ],
        rows=[
            Rows("row.lo", sp.csr_array((1, len(ODD) + 2)), upper=1.0),
            Rows("x" * 300, sp.csr_array((2, len(ODD) + 2)), upper=1.0),
        ],
    )
    columns, rows = file_names(model)
    assert columns[:3] == ["flow(koln_geneve)", "flow(a_b)", "flow(a_b)_2"]
    assert columns[-2:] == ["n_e5", "n_inflow(0)"]
    assert rows[0] == "row.lo_2"  # `.lo` is for one half of a range
    assert max(len(name) for name in rows) <= 210
    for names in (columns, rows):
        assert len({name.lower() for name in names}) == len(names)
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.()]*", name) for name in names)
    assert file_names(model) == (columns, rows)


@given(labels=st.lists(st.text(max_size=12), min_size=1, max_size=6), block=st.text(min_size=1, max_size=8))
def test_any_names_are_read_back(
    labels: list[str], block: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    count = len(labels)
    model = LinearProgram.build(
        cost=np.arange(1.0, count + 1),
        columns=[Columns(block, count, labels=lambda: labels)],
        rows=[Rows(block, sp.eye_array(count), lower=1.0, upper=2.0, labels=lambda: labels)],
        name=block,
    )
    optimum = count * (count + 1) / 2
    folder = tmp_path_factory.mktemp("names")
    for suffix in (".lp", ".mps"):
        write_model(model, folder / f"model{suffix}")
        assert by_highs(folder / f"model{suffix}") == (optimum, count)
    assert by_ortools(folder / "model.mps") == optimum


@pytest.mark.parametrize("model", [LinearProgram.build(cost=[]), LinearProgram.build(cost=[0.0])])
def test_nearly_empty_models_are_written(model: LinearProgram, tmp_path: Path) -> None:
    for suffix in (".lp", ".mps"):
        write_model(model, tmp_path / f"model{suffix}")
        reader = highspy.Highs()
        reader.setOptionValue("output_flag", False)
        assert reader.readModel(str(tmp_path / f"model{suffix}")) == highspy.HighsStatus.kOk


def test_equal_models_give_equal_files(tmp_path: Path) -> None:
    write_model(awkward(), tmp_path / "a.lp")
    write_model(awkward(), str(tmp_path / "b.lp"))
    assert (tmp_path / "a.lp").read_bytes() == (tmp_path / "b.lp").read_bytes()


def test_paths_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.txt: '\.txt' names no format; valid: lp, mps"):
        write_model(awkward(), tmp_path / "model.txt")
    write_model(awkward(), tmp_path / "model.txt", file_format="mps")
    assert by_ortools(tmp_path / "model.txt") == pytest.approx(solve(awkward()).objective)
    with pytest.raises(InputError, match=r"model\.lp: cannot be written: No such file"):
        write_model(awkward(), tmp_path / "nowhere" / "model.lp")
