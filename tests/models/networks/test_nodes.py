"""Rows of nodes by name: few are looked up as many are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.contract.tables import TEXT
from planner_models.networks import nodes


@pytest.mark.parametrize("few_rows", [0, 1_000])
@pytest.mark.parametrize("dtype", [TEXT, object, "category"])
def test_names_are_found_in_any_column_of_texts(
    few_rows: int, dtype: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "FEW_ROWS", few_rows)
    index = pd.Index(pd.Series(["a", "7", "é"], dtype=TEXT))
    rows = nodes.find_names(index, pd.Series(["é", "x", "7", "a", "A", "é"], dtype=dtype))  # type: ignore[call-overload]
    assert rows.dtype == np.int64
    assert rows.tolist() == [2, -1, 1, 0, -1, 2]
    assert nodes.find_names(index, pd.Series([7, 8])).tolist() == [1, -1]
    assert nodes.find_names(index, pd.Series([], dtype=TEXT)).tolist() == []
