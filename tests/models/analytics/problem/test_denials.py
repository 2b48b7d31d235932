"""Errors of rules of regions, each one line that names the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.analytics import Analytics
from planner_models.analytics.designs.what_if import tabulate_denied
from tests.models.analytics.problems import tables

RULES = ["region", "cube", "query", "to", "finest"]
NONE_ALLOWED = pd.DataFrame({"site": ["s0"], "query": ["q0"], "level": ["none"]})
PINNED = pd.DataFrame({"site": ["s0"], "query": ["q0"], "level": ["1 s"]})


def rules(*rows: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    return {"laws": pd.DataFrame(rows, columns=RULES)}


def retention(*rows: tuple[Any, ...]) -> dict[str, pd.DataFrame]:
    return {"retention": pd.DataFrame(rows, columns=["region", "cube", "at_most_h", "at_least_h"])}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (rules(("eu", "", "", "", "")), "laws row 1: region 'eu' is the region of no site"),
        (rules(("a", "d", "", "", "")), "laws row 1: cube 'd' is no cube"),
        (rules(("a", "", "q9", "", "")), "laws row 1: query 'q9' is no query"),
        (rules(("a", "", "", "z", "")), "laws row 1: to 'z' is the region of no site, point of"),
        (rules(("a", "", "", "a", "")), "laws row 1: to is 'a', must be another region than"),
        (rules(("a", "", "", "", "7 s")), "laws row 1: finest: query 'q0' has no level '7 s'"),
        (rules(("a", "", "", "", "none")), "laws row 1: finest is 'none', which sends no data"),
        (
            rules(("a", "", "q0", "", "5 s"), ("a", "c", "", "b", "")),
            "laws row 1: lets level '5 s' of query 'q0' leave region 'a', but laws row 2",
        ),
        (
            rules(("a", "", "q0", "", "5 s")) | {"pinned": PINNED},
            "pinned row 1: site 's0' must send level '1 s' of query 'q0', but laws row 1 lets",
        ),
        (
            rules(("a", "", "q0", "", "")) | {"forbidden": NONE_ALLOWED},
            "forbidden row 1: site 's0' must send data of query 'q0', but laws row 1 lets nothing of",
        ),
        (
            {"central": pd.DataFrame({"region": ["a", "b"]})},
            "central: has 2 rows, must have one",
        ),
        (
            retention(("a", "", 2.0, np.nan), ("a", "c", np.nan, 3.0)),
            "retention row 2: cube 'c' must be kept for at least 3 hours in region 'a', but retention row 1 ",
        ),
        (
            retention(("a", "c", 2.0, 3.0)),
            "retention row 1: cube 'c' must be kept for at least 3 hours in region 'a', but at most for 2",
        ),
        (retention(("a", "", np.nan, 3.0)), "retention row 1: at_least_h needs stored_bytes_per_record or"),
        (retention(("a", "", -1.0, np.nan)), "retention row 1: at_most_h is -1.0, must be at least 0"),
    ],
)
def test_faults_name_the_rows(more: dict[str, pd.DataFrame], message: str) -> None:
    made = tables(sites=2)
    made["sites"]["region"] = ["a", "b"]
    made["central"] = pd.DataFrame({"region": ["b"]})
    made |= more
    with pytest.raises(InputError) as error:
        Analytics.from_tables(made)
    assert any(fault.startswith(message) for fault in error.value.faults), error.value.faults


def test_what_must_be_stored_needs_storage() -> None:
    """Two minutes of 100 cells of 10 bytes are 2,000 bytes at the end of the second one."""
    made = tables(sites=1, intervals=3)
    made["sites"] = made["sites"].assign(region="a", storage_gb=1.9e-6)
    made["cubes"] = made["cubes"].assign(stored_bytes_per_cell=10.0)
    made |= retention(("a", "", np.nan, 2 / 60))
    with pytest.raises(InputError) as error:
        Analytics.from_tables(made)
    (fault,) = error.value.faults
    assert fault == (
        "retention row 1: site 's0' must store 2e-06 GB at the end of interval 2, but sites row 1 has "
        "storage_gb 1.9e-06"
    )


def test_denied_answers_are_tabulated_with_their_value_and_rule() -> None:
    made = tables(sites=2, intervals=2, combine=("coarsest", "sum", "worst"))
    made["sites"]["region"] = ["a", "b"]
    made |= rules(("a", "", "q0", "", ""), ("a", "", "q1", "", ""))
    frame = tabulate_denied(Analytics.from_tables(made))
    assert frame["query"].tolist() == ["q0", "q1"]
    assert frame["sites"].tolist() == [2, 1]
    assert frame["lost_usd"].tolist() == [2.0, 1.0]
    assert frame["rule"].tolist() == [f"laws row {row} lets nothing leave region 'a'" for row in (1, 2)]
