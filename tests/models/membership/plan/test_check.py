"""The check of plans: what is no plan is refused, and what breaks a limit is named with its amount."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.membership import MembershipPlan, check
from planner_models.membership.designs import planned
from planner_models.membership.problem.generators import small


@pytest.fixture(scope="module")
def plan() -> MembershipPlan:
    decision = planned.plan(small())
    assert decision.plan is not None
    return decision.plan


def with_cell(frame: pd.DataFrame, row: int, name: str, value: str | float) -> pd.DataFrame:
    changed = frame.astype(object)
    changed.loc[row, name] = value
    return changed


@pytest.mark.parametrize(
    ("table", "name", "value", "message"),
    [
        ("members", "site", "cloud", "'cloud' has other sites in it"),
        ("members", "site", "eats a", "'eats a' is no site; did you mean 'east a'?"),
        ("members", "role", "member", "has 0 leaders, must have one"),
        ("members", "service", "stor", "'stor' is no service"),
        ("protocol", "n", 5.0, "its members are 3"),
        ("protocol", "quorum", 4.0, "must be at most 3"),
        ("protocol", "commit_ms", 3.0, "the delays make it"),
    ],
)
def test_contradictions_are_rejected(
    plan: MembershipPlan, table: str, name: str, value: str | float, message: str
) -> None:
    changed = replace(plan, **{table: with_cell(getattr(plan, table), 0, name, value)})
    with pytest.raises(PlanRejected, match=message.replace("?", r"\?")):
        check(small(), changed)


def test_violations_have_amounts(plan: MembershipPlan) -> None:
    protocol = plan.protocol.assign(quorum=1.0, commit_ms=0.0)
    found = check(small(), replace(plan, protocol=protocol)).frame.set_index("limit")
    assert found.loc["quorums", "amount"] == 1.0
    watch = plan.watch.assign(timeout_ms=50.0)
    found = check(small(), replace(plan, watch=watch)).frame.set_index("limit")
    assert found.loc["timeout", "amount"] == pytest.approx(50.0)
    cheap = replace(small(), services=small().services.assign(most_price_per_month=10.0))
    assert set(check(cheap, plan).frame["limit"]) == {"price"}


def test_hosts_are_counted(plan: MembershipPlan) -> None:
    crowded = plan.members.assign(count=[1.0, *[4.0] * (len(plan.members) - 1)])
    count = float(crowded["count"].sum())
    protocol = plan.protocol.assign(n=count, quorum=count // 2 + 1, commit_ms=plan.protocol["commit_ms"])
    with pytest.raises(PlanRejected, match="commit_ms"):
        check(small(), replace(plan, members=crowded, protocol=protocol.assign(commit_ms=7.0)))
