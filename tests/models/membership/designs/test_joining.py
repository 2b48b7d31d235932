"""Groups that find each other: protocols beside plain simulations, their bounds, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner_models.membership import Membership, check, measure
from planner_models.membership.designs import detectors, joining
from planner_models.membership.problem.generators import gossip_row, regions, small

PROTOCOLS = [
    joining.plan_flooding,
    joining.plan_name_dropper,
    joining.plan_clusters,
    joining.plan_rendezvous,
    detectors.plan_swim,
]


def with_contacts(rows: list[tuple[str, str]], members: float) -> Membership:
    return replace(
        small(),
        gossip=gossip_row(members=members, seeds=1.0, fan_out=2.0),
        contacts=pd.DataFrame(rows, columns=["member", "knows"]),
    )


@pytest.mark.parametrize("decide", PROTOCOLS)
@pytest.mark.parametrize("start", ["random", "grid", "ring"])
def test_all_protocols_keep_the_bound_of_rounds(decide: object, start: str) -> None:
    base = regions(group=60)
    assert base.gossip is not None
    problem = replace(base, gossip=base.gossip.assign(start=start))
    plan = decide(problem).plan  # type: ignore[operator]
    assert "joins" not in set(check(problem, plan).frame["limit"])
    metrics = measure(problem, plan, None)
    rounds, busiest = metrics["join_rounds"], metrics["join_busiest"]
    assert rounds is not None
    assert busiest is not None
    assert (busiest + 1) ** rounds >= 60
    assert metrics["join_s"] == pytest.approx(
        rounds * 0.2 + (10 / (3 * 20) if decide is detectors.plan_swim else 0)
    )


def test_contacts_that_lead_nowhere_are_refused() -> None:
    one_way = with_contacts([("a", "b"), ("b", "c")], 3.0)
    reasons = joining.plan_clusters(one_way).proof.reasons
    assert "contacts: edges: 3 groups of members cannot reach each other" in reasons[0]
    assert joining.plan_flooding(one_way).plan is not None
    apart = with_contacts([("a", "b"), ("c", "d")], 4.0)
    assert "2 groups of members do not know each other" in joining.plan_flooding(apart).proof.reasons[0]


def test_large_groups_are_not_simulated() -> None:
    problem = replace(small(), gossip=gossip_row(members=20_000.0), contacts=None)
    assert "simulated for at most 10,000" in joining.plan_flooding(problem).proof.reasons[0]
    plan = joining.plan_rendezvous(problem, degree=10).plan
    assert plan is not None
    assert measure(problem, plan, None)["join_rounds"] == 10  # 2 x ceil(log10 20,000)


def test_more_joins_than_seeds_can_serve_are_a_violation() -> None:
    problem = regions(group=60, joins_per_s=100.0)
    plan = detectors.plan_swim(problem).plan
    assert plan is not None
    found = check(problem, plan).frame.set_index("limit")
    assert (found.loc["joins", "amount"], found.loc["joins", "allowed"]) == (100.0, 60.0)


def test_without_seeds_no_process_joins() -> None:
    problem = regions(group=60)
    plan = detectors.plan_swim(problem).plan
    assert plan is not None
    assert plan.seeds is not None
    alone = replace(plan, seeds=plan.seeds.iloc[:0])
    assert measure(problem, alone, None)["join_s"] is None
    assert check(problem, alone).frame.set_index("limit").loc["joins", "allowed"] == 0.0


def test_fewer_rounds_than_any_group_needs_are_rejected() -> None:
    problem = regions(group=60)
    plan = joining.plan_flooding(problem).plan
    assert plan is not None
    assert plan.gossip is not None
    wrong = replace(plan, gossip=plan.gossip.assign(rounds=1.0, busiest=5.0))
    with pytest.raises(PlanRejected, match="60 processes need 3"):
        check(problem, wrong)
    with pytest.raises(PlanRejected, match="a plan has both of them, or none"):
        check(problem, replace(plan, seeds=None))


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ({"seeds": 0.0}, "seeds is 0.0, must be at least 1"),
        ({"seeds": 60.0}, "seeds is 60, must be less than the members, 60"),
        ({"loss": 1.0}, "loss is 1.0, must be at most"),
        ({"fan_out": 70.0}, "fan_out is 70, must be less than the members"),
    ],
)
def test_wrong_groups_are_refused(cells: dict[str, float], text: str) -> None:
    with pytest.raises(InputError, match=text):
        replace(small(), gossip=gossip_row(members=60.0, **cells), contacts=None)


def test_contacts_of_another_number_are_refused() -> None:
    with pytest.raises(InputError, match="members is 9, the table contacts names 3"):
        with_contacts([("a", "b"), ("b", "c")], 9.0)


def test_runs_with_one_seed_are_equal() -> None:
    problem = regions(group=60)
    first, again = (joining.plan_clusters(problem, seed=3).plan for _ in range(2))
    assert first is not None
    assert again is not None
    pd.testing.assert_frame_equal(first.gossip, again.gossip)  # type: ignore[arg-type]
    assert np.isfinite(first.gossip["messages"].to_numpy(float)).all()  # type: ignore[index]
