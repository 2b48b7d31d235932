"""Losses: slots restart every machine, replayed by other code; a share that is kept free does not."""

from __future__ import annotations

from collections import Counter

import pytest

from planner_models.consolidation import Consolidation, ConsolidationPlan, check, measure
from planner_models.consolidation.designs import fit_rules, patterns
from planner_models.consolidation.problem.generators import awkward
from tests.models.consolidation.fleets import machines, make, random_fleet


def restarts(problem: Consolidation, plan: ConsolidationPlan, domain: str) -> bool:
    """Return whether the slots outside of each lost domain are as many as the machines in it, by shape."""
    label = {}
    for row in plan.fleet.itertuples():
        for number in range(int(row.hosts)):
            label[str(row.host), number] = f"{row.host} {number}" if domain == "host" else str(row.zone)
    inside: Counter[tuple[str, str]] = Counter()
    outside: Counter[tuple[str, str]] = Counter()
    hosts = dict(zip(plan.fleet["host"], plan.fleet["hosts"], strict=True))
    for frame, total, column in ((plan.placement, inside, "machines"), (plan.slots, outside, "slots")):
        rows = frame.drop_duplicates(["machine", "host", "copy"]) if frame is not None else ()
        for row in rows.itertuples() if frame is not None else ():  # type: ignore[union-attr]
            for number in range(int(hosts[row.host])):
                total[label[str(row.host), number], str(row.machine)] += int(getattr(row, column))
    slots: Counter[str] = Counter()
    for (_, machine), number in outside.items():
        slots[machine] += number
    return all(
        slots[machine] - outside[name, machine] >= number for (name, machine), number in inside.items()
    )


@pytest.mark.parametrize("domain", ["host", "zone"])
@pytest.mark.parametrize("seed", range(4))
def test_slots_cover_every_loss(seed: int, domain: str) -> None:
    problem = random_fleet(seed, losses=domain, largest=20)
    plan = patterns.plan(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert restarts(problem, plan, domain)
    assert measure(problem, plan, None)["restart_share"] == 1.0


def test_a_third_kept_free_is_no_slot() -> None:
    problem = awkward(machines=300, shapes=8, zones=3, losses=1, network=False, seed=1)
    share = fit_rules.plan_percentage(problem).plan
    slots = patterns.plan(problem).plan
    assert share is not None
    assert slots is not None
    assert measure(problem, slots, None)["restart_share"] == 1.0
    assert measure(problem, share, None)["restart_share"] < 0.95  # type: ignore[operator]


def test_equal_zones_need_the_demand_over_one_zone_less() -> None:
    """Three zones: units are half as many again, and no survivor moves."""
    problem = make(
        machines=machines(vcpus_min=[8.0], count=[40.0]),
        zones={"zone": ["x", "y", "z"]},
        survive={"domain": ["zone"]},
    )
    decision = patterns.plan(problem)
    assert decision.proof.objective == pytest.approx(30.0)
    assert decision.proof.gap == pytest.approx(0.0)


def test_a_plan_without_slots_is_reported_with_its_losses() -> None:
    problem = make(
        machines=machines(vcpus_min=[8.0], count=[4.0]),
        zones={"zone": ["x", "y"], "most": [1.0, 1.0]},
        survive={"domain": ["host"]},
    )
    plan = fit_rules.plan_best_fit(problem).plan
    assert plan is not None
    violations = check(problem, plan)
    assert set(violations.frame["limit"]) == {"restart"}
    assert violations.frame["amount"].tolist() == [2.0, 2.0]
