"""Bad tables of a month, and what their messages say."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner_models.contracts import Loads, Month, check
from planner_models.contracts.plan.plan import from_tables
from planner_models.contracts.problem.adjustments import adjust
from planner_models.contracts.problem.problem import PERCENTILE
from tests.models.contracts.months import make

TRAFFIC = pd.DataFrame({"window": [1.0, 2.0], "region": "EU", "traffic_mbps": [5.0, 6.0]})
ROW = {"cdn": "x", "region": "EU", "billing": "peak", "price_per_mbps": 1.0, "capacity_mbps": 9.0}


def contracts(**changes: object) -> pd.DataFrame:
    return pd.DataFrame([ROW | changes])


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"contracts": contracts(billing="90th")},
            "contracts row 1: billing is '90th', must be one of mean, 95th percentile, peak",
        ),
        (
            {"contracts": contracts(region="EV")},
            "contracts row 1: region 'EV' has no traffic; valid: EU",
        ),
        (
            {"contracts": contracts(min_share=0.6, max_share=0.5)},
            "contracts row 1: min_share is 0.6, must be at most max_share 0.5",
        ),
        (
            {"contracts": pd.concat([contracts(min_share=0.6), contracts(cdn="y", min_share=0.6)])},
            "contracts: min_share adds up to 1.2 in region 'EU', must be at most 1",
        ),
        (
            {"tiers": pd.DataFrame([{"cdn": "z", "region": "EU", "above_mbps": 3.0, "price_per_mbps": 0.5}])},
            "tiers row 1: there is no contract of cdn 'z' in region 'EU'",
        ),
        (
            {"traffic": TRAFFIC.assign(traffic_mbps=0.0)},
            "traffic: every traffic_mbps is 0, one must be greater",
        ),
        (
            {"traffic": TRAFFIC.assign(window=[1.5, 2.0])},
            "traffic row 1: window is 1.5, must be a whole number",
        ),
    ],
)  # fmt: skip
def test_faults_name_row_field_and_rule(tables: dict[str, pd.DataFrame], message: str) -> None:
    inputs = {"traffic": TRAFFIC, "contracts": contracts(), **tables}
    with pytest.raises(InputError) as error:
        Month.from_tables(inputs)
    assert any(fault.startswith(message) for fault in error.value.faults), error.value.faults


def test_windows_that_are_not_billed_are_at_most_one_in_twenty() -> None:
    counts = {
        windows: make([1.0] * windows, [("x", PERCENTILE, 1.0, 2.0, 0.0)]).free_windows
        for windows in (1, 19, 20, 39, 40, 8640)
    }
    assert counts == {1: 0, 19: 0, 20: 1, 39: 1, 40: 2, 8640: 432}


def test_limits_that_a_plan_breaks_are_named() -> None:
    problem = make([10.0, 10.0], [("x", PERCENTILE, 1.0, 8.0, 0.0), ("y", PERCENTILE, 1.0, 9.0, 0.0)])
    problem = problem.with_contracts(min_share=[0.0, 0.2], max_share=[1.0, 0.5])
    rows = [
        (1.0, "x", "world", 9.0),
        (1.0, "y", "world", 1.0),
        (2.0, "x", "world", 1.0),
        (2.0, "y", "world", 6.0),
    ]
    plan = Loads(loads=pd.DataFrame(rows, columns=["window", "cdn", "region", "load_mbps"]))
    result = check(problem, plan).frame
    assert result[["limit", "where"]].to_numpy().tolist() == [
        ["capacity", "x, window 1"],
        ["max_share", "y, window 2"],
        ["min_share", "y, window 1"],
        ["served", "world, window 2"],
    ]
    with pytest.raises(PlanRejected, match="loads row 1: there is no contract of cdn 'z' in region 'world'"):
        from_tables(problem, {"loads": plan.loads.assign(cdn=["z", "y", "x", "y"])})
    with pytest.raises(PlanRejected, match="loads row 3: there is no window 3 in traffic; they are 1 to 2"):
        from_tables(problem, {"loads": plan.loads.assign(window=[1.0, 1.0, 3.0, 2.0])})


def test_adjustments() -> None:
    problem = make(
        [10.0], [("x", PERCENTILE, 1.0, 8.0, 2.0), ("y", PERCENTILE, 2.0, 9.0, 0.0)], [("x", 5.0, 0.5)]
    )
    changed = adjust(problem, scale=2.0, commitment_scale=0.5, capacity_scale=3.0, price_factors={"x": 2.0})
    assert changed.traffic_mbps.tolist() == [[20.0]]
    assert changed.column("commitment_mbps").tolist() == [1.0, 0.0]
    assert changed.column("capacity_mbps").tolist() == [24.0, 27.0]
    assert [prices.tolist() for _, prices in changed.price_steps] == [[2.0, 1.0], [2.0]]
    assert adjust(problem, fail_cdns=("y",)).column("capacity_mbps").tolist() == [8.0, 0.0]
    with pytest.raises(InputError, match="fail_cdns: 'z' is no CDN"):
        adjust(problem, fail_cdns=("z",))
