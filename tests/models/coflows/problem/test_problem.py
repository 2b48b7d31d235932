"""Tables of a problem: faults by row and column, adjustments, and what they leave."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.coflows import CoflowsInTime
from planner_models.coflows.problem.adjustments import adjust
from planner_models.coflows.problem.generators import mapreduce
from tests.models.coflows.instances import problem_of

PROBLEM = problem_of({"one": 0.0, "two": 20.0}, [("one", "a", "b", 10.0), ("two", "b", "a", 10.0)])


def changed(table: str, **columns: Any) -> dict[str, pd.DataFrame]:
    """Return the tables of a problem with other columns in one."""
    tables = PROBLEM.to_tables()
    return {**tables, table: tables[table].assign(**columns)}


WRONG: dict[str, tuple[dict[str, pd.DataFrame], str]] = {
    "an unknown rack": (
        changed("flows", source_rack=["a", "x"]),
        "flows row 2: source_rack 'x' is no rack of the network",
    ),
    "an unknown coflow": (
        changed("flows", coflow=["one", "tow"]),
        "coflow 'tow' is no coflow; did you mean 'two'?",
    ),
    "a loop": (
        changed("flows", source_rack=["b", "b"]),
        "flows row 1: source_rack and target_rack are both 'b', must differ",
    ),
    "no flows": (
        changed("flows", coflow=["one", "one"]),
        "coflows row 2: coflow 'two' has no flows, must have one at least",
    ),
    "no data": (changed("flows", bytes=[0.0, 1.0]), "flows row 1: bytes is 0.0, must be greater than 0"),
    "an arrival before all": (
        changed("coflows", arrival_ms=[-1.0, 0.0]),
        "coflows row 1: arrival_ms is -1.0, must be at least 0",
    ),
    "a deadline at arrival": (
        changed("coflows", deadline_ms=[0.0, 5.0]),
        "coflows row 1: deadline_ms is 0.0, must be greater than 0",
    ),
    "no weight": (
        changed("coflows", weight=[1.0, 0.0]),
        "coflows row 2: weight is 0.0, must be greater than 0",
    ),
    "half a switch": (
        changed("switch", circuit_switches=[1.5]),
        "switch row 1: circuit_switches is 1.5, must be a whole number",
    ),
    "two rows of one switch": (
        {**PROBLEM.to_tables(), "switch": pd.DataFrame({"setup_ms": [1.0, 2.0]})},
        "switch: has 2 rows, must have one",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_faults_name_row_and_rule(case: str) -> None:
    tables, words = WRONG[case]
    with pytest.raises(InputError) as result:
        CoflowsInTime.from_tables(tables)
    assert words in str(result.value)


def test_adjustments_change_what_they_name() -> None:
    made = adjust(
        PROBLEM,
        scale=2.0,
        arrival_speed=4.0,
        setup_ms=3.0,
        circuit_switches=2,
        coflow_factors={"one": 3.0},
        demand_factors={"b->a": 0.5},
    )
    assert (made.bits / PROBLEM.bits).tolist() == [6.0, 1.0]
    assert made.arrival_ms.tolist() == [0.0, 5.0]
    assert (made.setup_ms, made.switches) == (3.0, 2)
    remaining_problem = adjust(PROBLEM, coflow_factors={"one": 0.0})
    assert remaining_problem.coflows["coflow"].tolist() == ["two"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"coflow_factors": {"tow": 2.0}}, "'tow' is no coflow; did you mean 'two'?"),
        ({"demand_factors": {"a->a": 2.0}}, "'a->a' is no pair of racks"),
        ({"fail_racks": ("z",)}, "'z' is no rack"),
        ({"coflow_factors": {"one": 0.0, "two": 0.0}}, "every flow is left out"),
    ],
)
def test_adjustments_refuse_unknown_names(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as result:
        adjust(PROBLEM, **values)
    assert words in str(result.value)


def test_the_preset_offers_its_load() -> None:
    problem = mapreduce(racks=10, coflows=200, load=0.4, seed=3)
    window = problem.arrival_ms.max()
    assert problem.bits.sum() / (window * 1e6 * 10) == pytest.approx(0.4, rel=0.2)
    assert mapreduce(seed=3).flows.equals(mapreduce(seed=3).flows)
