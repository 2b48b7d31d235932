"""Building a LinearProgram: shapes, limits, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from planner.backends.linear_program import Columns, LinearProgram, Rows

INF = np.inf


def two_blocks() -> LinearProgram:
    return LinearProgram.build(
        cost=[1.0, 2.0, 3.0],
        columns=[
            Columns("flow", 2, labels=lambda: ["berlin->munich", "munich->berlin"]),
            Columns("share", 1),
        ],
        rows=[
            Rows("balance", sp.coo_array([[1.0, -1.0, 0.0]]), lower=0.0, upper=0.0),
            Rows("capacity", sp.csc_array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]), upper=[5.0, 6.0]),
        ],
        upper=[INF, 4.0, 1.0],
        offset=0.5,
    )


def test_blocks_are_stacked_in_order() -> None:
    model = two_blocks()
    assert model.shape == (3, 3)
    assert model.matrix.toarray().tolist() == [[1, -1, 0], [1, 0, 2], [0, 1, 0]]
    assert model.matrix.indices.dtype == model.matrix.indptr.dtype == np.int32
    assert model.row_lower.tolist() == [0, -INF, -INF]
    assert model.row_upper.tolist() == [0, 5, 6]
    assert model.lower.tolist() == [0, 0, 0]
    assert model.upper.tolist() == [INF, 4, 1]
    assert model.integer is None
    assert not model.is_integer


def test_names_join_block_and_label() -> None:
    model = two_blocks()
    assert model.column_names() == ["flow[berlin->munich]", "flow[munich->berlin]", "share"]
    assert model.row_names() == ["balance", "capacity[0]", "capacity[1]"]
    assert [model.row_name(i) for i in range(3)] == model.row_names()
    assert [model.column_name(j) for j in range(3)] == model.column_names()
    with pytest.raises(IndexError, match="index 3 lies in no block"):
        model.row_name(3)


def test_names_are_made_on_demand() -> None:
    asked: list[str] = []

    def labels(name: str) -> Callable[[], list[str]]:
        return lambda: asked.append(name) or ["a"]  # type: ignore[func-returns-value]

    model = LinearProgram.build(
        cost=[1.0, 1.0],
        columns=[Columns("x", 1, labels=labels("x")), Columns("y", 1, labels=labels("y"))],
        rows=[Rows("r", sp.csr_array([[1.0, 1.0]]), lower=1.0, labels=labels("r"))],
    )
    assert asked == []
    assert model.column_name(1) == "y[a]"
    assert asked == ["y"]
    assert model.column_names() == ["x[a]", "y[a]"]
    assert asked == ["y", "x"]


def test_a_wrong_number_of_labels_is_found_on_demand() -> None:
    model = LinearProgram.build(cost=[1.0, 1.0], columns=[Columns("x", 2, labels=lambda: ["a"])])
    with pytest.raises(ValueError, match="block 'x' has 2 members, but 1 labels"):
        model.column_names()


def test_variables_without_columns_are_x() -> None:
    assert LinearProgram.build(cost=[1.0]).column_names() == ["x[0]"]


def test_duplicate_entries_add_up_and_inputs_stay() -> None:
    inputs = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    model = LinearProgram.build(cost=[0.0, 0.0], rows=[Rows("r", inputs)])
    assert model.matrix.toarray().tolist() == [[0, 3]]
    assert inputs.data.tolist() == [1, 2]


def test_huge_limits_are_none_and_rounding_is_joined() -> None:
    model = LinearProgram.build(
        cost=[0.0, 0.0], lower=[-1e30, 0.1 + 0.2], upper=[1e20, 0.3], rows=[Rows("r", sp.eye_array(2))]
    )
    assert model.lower.tolist() == [-INF, 0.3]
    assert model.upper.tolist() == [INF, 0.3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sense": "maximize"}, "sense is 'maximize', must be 'min' or 'max'"),
        ({"cost": [[1.0, 2.0]]}, r"cost has shape \(1, 2\), must be \(n,\)"),
        ({"cost": [1.0, np.nan]}, "cost: entry 1 is nan, must be finite"),
        ({"cost": [INF, 0.0]}, "cost: entry 0 is inf, must be finite"),
        ({"offset": np.nan}, "offset is nan, must be finite"),
        ({"lower": [0.0]}, r"variables: lower has shape \(1,\), must be a number or \(2,\)"),
        ({"upper": np.nan}, "variables: upper is NaN"),
        ({"upper": [1.0, np.nan]}, "variables: upper is NaN at 1"),
        ({"lower": INF}, "variables: lower limit 0 is inf"),
        ({"upper": [0.0, -INF]}, "variables: upper limit 1 is -inf"),
        ({"integer": [1, 0]}, "integer has type int64, must be bool"),
        ({"integer": [True]}, r"integer has shape \(1,\), must be a bool or \(2,\)"),
        ({"columns": [Columns("a", 1)]}, "columns name 1 variables, but cost has 2"),
        ({"columns": [Columns("a", 1), Columns("a", 1)]}, "columns: block name 'a' is used twice"),
        ({"columns": [Columns("", 2)]}, "columns: block name '' is empty"),
        ({"columns": [Columns("a", 3), Columns("b", -1)]}, "columns 'b': count is -1, must be at least 0"),
        ({"rows": [Rows("r", np.eye(2))]}, "rows 'r': matrix is ndarray, must be sparse"),
        ({"rows": [Rows("r", sp.eye_array(3))]}, r"rows 'r': matrix has shape \(3, 3\), must be \(k, 2\)"),
        ({"rows": [Rows("r", sp.csr_array([[np.nan, 1]]))]}, "rows 'r': matrix: entry 0 is nan"),
        ({"rows": [Rows("r", sp.eye_array(2), lower=[1.0])]}, r"rows 'r': lower has shape \(1,\)"),
        ({"rows": [Rows("r", sp.eye_array(2))] * 2}, "rows: block name 'r' is used twice"),
    ],
)
def test_wrong_input_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearProgram.build(**{"cost": [1.0, 2.0], **changes})


def test_a_mask_without_whole_variables_is_no_mask() -> None:
    assert LinearProgram.build(cost=[1.0, 2.0], integer=False).integer is None
    model = LinearProgram.build(cost=[1.0, 2.0], integer=True)
    assert model.integer is not None
    assert model.integer.tolist() == [True, True]


@pytest.mark.parametrize(
    ("x", "worst"),
    [
        ([1.0, 1.0, 0.0], 0.0),
        ([2.0, 1.0, 0.0], 1.0),  # balance
        ([0.0, 0.0, -0.5], 0.5),  # lower
        ([5.0, 5.0, 0.0], 1.0),  # upper of the second
        ([4.0, 4.0, 1.0], 1.0),  # capacity
    ],
)
def test_violation_is_the_largest_of_all_limits(x: list[float], worst: float) -> None:
    assert two_blocks().violation(x) == pytest.approx(worst)


def test_violation_includes_integrality() -> None:
    model = LinearProgram.build(cost=[1.0, 1.0], integer=[True, False])
    assert model.violation([0.75, 0.5]) == pytest.approx(0.25)
    assert LinearProgram.build(cost=[]).violation([]) == 0.0


def test_objective_counts_the_offset() -> None:
    assert two_blocks().objective_of([1.0, 1.0, 1.0]) == pytest.approx(6.5)
    with pytest.raises(ValueError, match=r"x has shape \(2,\), must be \(3,\)"):
        two_blocks().objective_of([1.0, 1.0])


def test_limits_of_whole_variables_are_rounded_inwards() -> None:
    model = LinearProgram.build(
        cost=np.zeros(4),
        lower=[-4.5, 0.2, 0.9999999, 0.5],
        upper=[7.5, 0.8, INF, 2.5],
        integer=[True, True, True, False],
    )
    assert model.lower.tolist() == [-4, 0.2, 1, 0.5]  # none between 0.2 and 0.8: left to be named
    assert model.upper.tolist() == [7, 0.8, INF, 2.5]


def test_joined_programs_keep_their_rows_names_and_objectives() -> None:
    full = LinearProgram.build(cost=[1.0], rows=[Rows("least", sp.eye_array(1), lower=0.5)], integer=True)
    both = LinearProgram.join({"north": two_blocks(), "south": full})
    assert both.shape == (4, 4)
    assert both.matrix.toarray()[:3, :3].tolist() == two_blocks().matrix.toarray().tolist()
    assert both.matrix.toarray()[3].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert both.objective_of([1.0, 1.0, 0.0, 1.0]) == 3.0 + 0.5 + 1.0
    assert both.column_names() == [
        "north flow[berlin->munich]",
        "north flow[munich->berlin]",
        "north share",
        "south x[0]",
    ]
    assert both.row_names()[-1] == "south least"
    assert both.integer is not None
    assert both.integer.tolist() == [False, False, False, True]
    with pytest.raises(ValueError, match="one sense"):
        LinearProgram.join({})


def test_merged_programs_have_one_block_of_each_name() -> None:
    one, other = two_blocks(), two_blocks()
    merged = LinearProgram.merge({"east": one, "west": other}, first="share")
    assert merged.column_names() == [
        "share[east 0]",
        "share[west 0]",
        "flow[east berlin->munich]",
        "flow[east munich->berlin]",
        "flow[west berlin->munich]",
        "flow[west munich->berlin]",
    ]
    assert merged.row_names()[:2] == ["balance[east 0]", "balance[west 0]"]
    joined = LinearProgram.join({"east": one, "west": other})
    x = np.arange(6.0)
    order = [2, 5, 0, 1, 3, 4]  # columns of the merged program in the joined one
    in_merged = x[order]
    assert merged.objective_of(in_merged) == joined.objective_of(x)
    assert sorted(merged.matrix @ in_merged) == sorted(joined.matrix @ x)
    assert merged.upper.tolist() == joined.upper[order].tolist()
