"""Faults across tables are found beside faulty cells, and depend on none of them."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.contract.fault_rounds import find_faults_across
from planner.contract.table import Table, label, number
from planner.errors import InputError

TABLE = Table(
    name="queries",
    about="",
    columns={
        "query": label("name"),
        "every_s": number("period", may_be_blank=True),
        "limit": number("packets", at_least=1, may_be_blank=True),
    },
)


def _refuse_periods(tables: dict[str, pd.DataFrame]) -> None:
    if tables["queries"]["every_s"].notna().any():
        raise InputError("every_s must be blank")


@pytest.mark.parametrize(("every_s", "faults"), [(None, []), (5.0, ["every_s must be blank"])])
def test_blank_cells_stay_blank(every_s: float | None, faults: list[str]) -> None:
    faulty = pd.DataFrame({"query": ["a"], "every_s": [every_s], "limit": [0.0]}).astype({"every_s": float})
    assert find_faults_across({"queries": TABLE}, {}, {"queries": faulty}, _refuse_periods) == faults
