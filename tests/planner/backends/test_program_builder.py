"""Programs from named variables and constraints: the same matrices as dense arithmetic, and clear errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import backends
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.errors import InputError
from planner.options import Options

UNITS = np.eye(17)  # each variable as a vector: the oracle of every expression
RNG = np.random.default_rng(5)
A, B, C = RNG.random((2, 3)), RNG.random((4, 5)), RNG.random((3, 4))
SPARSE = sp.csr_array(np.where(A > 0.5, A, 0.0))
GROUPS = np.array([1, 1, 0])
SPREAD = np.array([0, 0, 3, 3])


class Values(NamedTuple):
    """Variables, or their vectors, which have one more axis: x (3, 4), q (4,) and y ()."""

    x: Any
    q: Any
    y: Any


def expressions() -> list[tuple[str, Callable[[Values], Any], Callable[[Values], Any]]]:
    """Return expressions of variables, and the same of their vectors."""

    def tensor(matrix: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("re,ekn->rkn", matrix, values))

    def by_group(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([values[2], values[0] + values[1]])

    return [
        ("sum of an axis", lambda v: v.x.sum(axis=1), lambda v: v.x.sum(axis=1)),
        ("sum of axes", lambda v: v.x.sum(axis=(0, -1)), lambda v: v.x.sum(axis=(0, 1))),
        ("sum of all", lambda v: (C * v.x - v.q).sum(), lambda v: (C[..., None] * v.x - v.q).sum((0, 1))),
        ("broadcast", lambda v: C * v.x - v.q, lambda v: C[..., None] * v.x - v.q),
        ("single", lambda v: (v.x + v.y).sum(axis=0), lambda v: (v.x + v.y).sum(axis=0)),
        ("quotient", lambda v: v.x * C / 3 - v.q / C, lambda v: v.x * C[..., None] / 3 - v.q / C[..., None]),
        ("dense matrix", lambda v: A @ v.x, lambda v: tensor(A, v.x)),
        ("sparse matrix", lambda v: SPARSE @ v.x, lambda v: tensor(SPARSE.toarray(), v.x)),
        ("matrix of one axis", lambda v: B.T @ v.q - 2 * v.y, lambda v: B.T @ v.q - 2 * v.y),
        ("matrix behind", lambda v: v.x @ B, lambda v: np.einsum("ken,er->krn", v.x, B)),
        (
            "matrices on both sides",
            lambda v: (A @ v.x) @ B,
            lambda v: np.einsum("re,ekn,kf->rfn", A, v.x, B),
        ),
        ("product of a matrix", lambda v: 2 * (A @ v.x) - v.q, lambda v: 2 * tensor(A, v.x) - v.q),
        (
            "sum of a product",
            lambda v: (A @ v.x - v.q).sum(axis=1),
            lambda v: (tensor(A, v.x) - v.q).sum(axis=1),
        ),
        ("members", lambda v: (A @ v.x)[1:, [0, 2]] * 3, lambda v: 3 * tensor(A, v.x)[1:, [0, 2]]),
        (
            "members of a sum",
            lambda v: (v.x.sum(axis=1) + v.q.sum())[[2, 0]],
            lambda v: (v.x.sum(axis=1) + v.q.sum(axis=0))[[2, 0]],
        ),
        ("groups", lambda v: (C * v.x).sum_by(GROUPS, 2), lambda v: by_group(C[..., None] * v.x)),
        (
            "groups of a product",
            lambda v: (SPARSE.T @ (A @ v.x)).sum_by(GROUPS, 2),
            lambda v: by_group(tensor(SPARSE.toarray().T @ A, v.x)),
        ),
        (
            "empty groups",
            lambda v: v.q.sum_by(SPREAD, 4),
            lambda v: np.stack([v.q[0] + v.q[1], 0 * v.q[0], 0 * v.q[0], v.q[2] + v.q[3]]),
        ),
        (
            "transposed",
            lambda v: v.x.T[::2] - v.q[:2, None],
            lambda v: v.x.transpose(1, 0, 2)[::2] - v.q[:2, None],
        ),
        ("reshaped", lambda v: v.x.reshape(2, 6)[1], lambda v: v.x.reshape(2, 6, 17)[1]),
        ("sum of a list", lambda v: sum([v.x[0], -v.q, v.x[2]]), lambda v: v.x[0] - v.q + v.x[2]),
        ("the same variable twice", lambda v: 2 * v.x[0] + 3 * v.x[0], lambda v: 5 * v.x[0]),
        ("none", lambda v: Expression.zero(2) + v.y * 0, lambda v: 0 * v.x[:2, 0]),
    ]


@pytest.mark.parametrize(
    ("make", "oracle"), [row[1:] for row in expressions()], ids=[row[0] for row in expressions()]
)
def test_expressions_have_the_coefficients_of_dense_arithmetic(
    make: Callable[..., Any], oracle: Callable[..., Any]
) -> None:
    m = ProgramBuilder()
    x, q, y = m.variables("x", (3, 4)), m.variables("q", 4), m.variables("y")
    made = make(Values(x, q, y))
    block = m.constrain("rows", made, upper=1.0)
    expected = oracle(Values(UNITS[:12].reshape(3, 4, 17), UNITS[12:16], UNITS[16]))
    assert block.shape == made.shape == expected.shape[:-1]
    program = m.build()
    assert program.matrix.has_canonical_format
    np.testing.assert_allclose(program.matrix.toarray().reshape(expected.shape), expected)


def shipping() -> ProgramBuilder:
    m = ProgramBuilder(sense="minimize", name="shipping", offset=2.0)
    ship = m.variables("ship", (2, 3), upper=[[5.0], [7.0]], cost=[[1, 2, 3], [3, 2, 1]])
    is_open = m.variables("open", 2, upper=1, cost=4, integer=True, labels=lambda: ["berlin", "munich"])
    m.constrain("capacity", ship.sum(axis=1) - 9 * is_open, upper=0, labels=lambda: ["berlin", "munich"])
    m.constrain("demand", ship.sum(axis=0), lower=[1, 2, 3])
    return m


def test_program_is_that_of_stacked_rows() -> None:
    capacity = np.array([[1, 1, 1, 0, 0, 0, -9, 0], [0, 0, 0, 1, 1, 1, 0, -9]])
    demand = np.hstack([np.eye(3), np.eye(3), np.zeros((3, 2))])
    expected = LinearProgram.build(
        cost=[1, 2, 3, 3, 2, 1, 4, 4],
        rows=[
            Rows("capacity", sp.csr_array(capacity), upper=0),
            Rows("demand", sp.csr_array(demand), lower=[1, 2, 3]),
        ],
        columns=[Columns("ship", 6), Columns("open", 2)],
        upper=[5, 5, 5, 7, 7, 7, 1, 1],
        integer=np.arange(8) >= 6,
        offset=2.0,
    )
    program = shipping().build()
    for field in ("cost", "row_lower", "row_upper", "lower", "upper", "integer"):
        np.testing.assert_array_equal(getattr(program, field), getattr(expected, field))
    np.testing.assert_array_equal(program.matrix.toarray(), expected.matrix.toarray())
    assert program.matrix.indices.dtype == np.int32
    assert (program.sense, program.offset, program.name) == ("min", 2.0, "shipping")


def test_members_have_names() -> None:
    program = shipping().build()
    assert program.column_names()[:4] == ["ship[0,0]", "ship[0,1]", "ship[0,2]", "ship[1,0]"]
    assert program.column_names()[-1] == "open[munich]"
    assert program.row_names() == ["capacity[berlin]", "capacity[munich]"] + [
        f"demand[{i}]" for i in range(3)
    ]


def test_values_and_duals_have_shapes() -> None:
    m = shipping()
    demand = m.constrain("again", m["ship"].sum(axis=0), lower=0.5)
    solution = backends.solve(m.build(), Options(backend="highs"))
    assert solution.x is not None
    np.testing.assert_allclose(m["ship"].values(solution.x).sum(axis=0), [1, 2, 3])
    assert float(m["open"]["munich"].values(solution.x)) == pytest.approx(1.0)
    np.testing.assert_array_equal(demand.values(np.arange(8.0)), [5.0, 6.0, 7.0])


def test_rows_are_added_to_a_built_program() -> None:
    program = shipping().build().describe("the cost")
    m = ProgramBuilder.extend(program)
    extra = m.variables("extra", cost=1.0)
    m.constrain("mine", m["ship"][1, 2] + m["open"]["berlin"] - extra, equal=3.0)
    more = m.build()
    assert more.shape == (program.shape[0] + 1, program.shape[1] + 1)
    assert more.row_names() == [*program.row_names(), "mine"]
    assert more.column_names() == [*program.column_names(), "extra"]
    assert more.matrix[[5]].toarray().tolist() == [[0, 0, 0, 0, 0, 1, 1, 0, -1]]
    np.testing.assert_array_equal(more.matrix[:5, :8].toarray(), program.matrix.toarray())
    assert more.objective_text == program.objective_text
    assert program.shape == (5, 8)


def test_names_explain_infeasibility() -> None:
    m = shipping()
    m.constrain("nothing", m["ship"].sum(), upper=1.0)
    solution = backends.solve(m.build(), Options(backend="highs"))
    assert {reason.split("[")[0] for reason in solution.reasons} == {"demand", "nothing"}


def test_empty_programs_are_built() -> None:
    program = ProgramBuilder(sense="maximize").build()
    assert (program.shape, program.sense) == ((0, 0), "max")
    m = ProgramBuilder()
    x = m.variables("x", (0, 3))
    m.constrain("none", x.sum(axis=1), upper=1.0)
    m.constrain("sums", x.sum(axis=0), upper=1.0)
    assert m.build().shape == (3, 0)


def test_page_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "howto" / "programs.md").read_text(encoding="utf-8")
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), {})
    printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]
    assert capsys.readouterr().out == printed + "89.0\n"
    assert "It prints `89.0`" in page


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m["shp"], "no variables 'shp'; did you mean 'ship'?"),
        (lambda m: m["open"]["munch"], "variables 'open': no label 'munch'; did you mean 'munich'?"),
        (lambda m: m["open"][1:]["munich"], "no label 'munich': labels belong to a whole block of variables"),
        (lambda m: m.variables("ship", 2), "variables 'ship': the name is used twice"),
        (lambda m: m.variables("", 2), "variables '': the name is empty"),
        (lambda m: m.constrain("demand", m["ship"]), "constraint 'demand': the name is used twice"),
        (
            lambda m: m.variables("z", 3, upper=[1, 2]),
            "variables 'z': upper has shape (2,), must be a number or fit (3,)",
        ),
        (
            lambda m: m.variables("z", 3, integer=1),
            "variables 'z': integer has type int64, must be bool",
        ),
        (
            lambda m: m.constrain("c", m["ship"].sum(axis=1), upper=[1, 2, 3]),
            "constraint 'c': upper has shape (3,), must be a number or fit (2,)",
        ),
        (lambda m: m.constrain("c", 3.0), "constraint 'c': float is no expression of variables"),
        (lambda m: m["ship"] + m["open"], "shapes (2, 3) + (2,) do not fit"),
        (lambda m: m["ship"] * np.ones(2), "shapes (2,) * (2, 3) do not fit"),
        (lambda m: m["open"] - 1, "-1 is no expression of variables: numbers are limits of a constraint"),
        (lambda m: m["open"] * m["open"], "a product of two expressions is not linear"),
        (lambda m: A @ m["ship"], "matrix of shape (2, 3) @ expression of shape (2, 3): lengths differ"),
        (lambda m: m["ship"] @ A, "expression of shape (2, 3) @ matrix of shape (2, 3): lengths differ"),
        (lambda m: m["ship"].sum_by(GROUPS, 2), "groups have shape (3,), must be (2,)"),
    ],
)
def test_errors_are_one_clear_line(act: Callable[[ProgramBuilder], Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        act(shipping())
    assert str(caught.value) == message


def test_sense_is_a_word() -> None:
    with pytest.raises(InputError, match="sense is 'min'; valid: maximize, minimize"):
        ProgramBuilder(sense="min")  # type: ignore[arg-type]
