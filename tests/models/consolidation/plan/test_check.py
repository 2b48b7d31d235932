"""The check of plans: every change of a row is a violation with its amount, or refused."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.consolidation import Consolidation, ConsolidationPlan, check
from planner_models.consolidation.designs import fit_rules
from tests.models.consolidation.fleets import machines, make


@pytest.fixture
def problem() -> Consolidation:
    return make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "helper_share": [2 / 16]},
        machines=machines(
            vcpus_min=[6.0, 8.0, 1.0],
            count=[2.0, 1.0, 2.0],
            split=["never", "even", "never"],
            group=["", "", "g"],
        ),
        rules={"kind": ["apart"], "group": ["g"], "domain": ["host"]},
    )


@pytest.fixture
def plan(problem: Consolidation) -> ConsolidationPlan:
    made = fit_rules.plan_best_fit(problem).plan
    assert made is not None
    assert not len(check(problem, made))
    return made


def limits_of(problem: Consolidation, plan: ConsolidationPlan) -> set[str]:
    return set(check(problem, plan).frame["limit"])


def test_another_machine_on_a_host_is_too_much(problem: Consolidation, plan: ConsolidationPlan) -> None:
    more = plan.placement.assign(machines=plan.placement["machines"] * 3)
    assert {"nodes", "machines"} <= limits_of(problem, replace(plan, placement=more))


def test_fewer_vcpus_are_no_machine(problem: Consolidation, plan: ConsolidationPlan) -> None:
    less = plan.placement.assign(vcpus=plan.placement["vcpus"] / 2)
    assert "shapes" in limits_of(problem, replace(plan, placement=less))


def test_helpers_need_their_threads(problem: Consolidation, plan: ConsolidationPlan) -> None:
    assert limits_of(problem, replace(plan, helpers=None)) == {"helpers"}


def test_members_of_a_group_are_apart(problem: Consolidation, plan: ConsolidationPlan) -> None:
    host = str(plan.fleet["host"].iloc[0])
    moved = plan.placement.assign(
        host=plan.placement["host"].where(plan.placement["machine"] != "m2", host),
        copy=range(1, len(plan.placement) + 1),
    )
    moved = moved.assign(copy=moved.groupby(["machine", "host"]).cumcount() + 1.0)
    assert "hosts" in limits_of(problem, replace(plan, placement=moved))


def test_prices_are_those_of_the_fleet(problem: Consolidation, plan: ConsolidationPlan) -> None:
    cheap = plan.purchases.assign(price_per_h=0.0)
    assert limits_of(problem, replace(plan, purchases=cheap)) == {"prices"}


def test_machines_that_are_missing_are_counted(problem: Consolidation, plan: ConsolidationPlan) -> None:
    fewer = plan.placement[plan.placement["machine"] != "m2"]
    violations = check(problem, replace(plan, placement=fewer)).frame
    assert violations[["where", "amount", "allowed"]].to_numpy().tolist() == [["m2", 0.0, 2.0]]
    listed = pd.DataFrame({"machine": ["m2"], "machines": [2.0]})
    assert not len(check(problem, replace(plan, placement=fewer, refused=listed)))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("machine", "m9", "placement row 1: 'm9' is no machine"),
        ("host", "h 9", "placement row 1: 'h 9' is no host of the fleet"),
        ("node", "7", "placement row 1: '7' is no node of host"),
    ],
)
def test_unknown_names_are_no_plan(
    problem: Consolidation, plan: ConsolidationPlan, column: str, value: str, message: str
) -> None:
    changed = plan.placement.copy()
    changed.loc[0, column] = value
    with pytest.raises(PlanRejected, match=message):
        check(problem, replace(plan, placement=changed))
