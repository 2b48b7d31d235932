"""What a controller believes of members and rates, and what becomes of plans made on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.options import Options
from planner.parameters import parameters_of
from planner.system import Design
from planner_models.multicast import SYSTEM, Multicast, adapt, designs
from planner_models.multicast.plan import from_tables
from planner_models.multicast.sees import told
from tests.multicast.fabrics import PLANNING, fat, tree

BLURS = ("age_s", "noise", "grain_groups")


def members(problem: Multicast) -> set[tuple[str, str]]:
    return set(problem.members.astype(str).itertuples(index=False, name=None))


def test_the_truth_is_the_problem_itself() -> None:
    problem = fat()
    assert told(problem, seed=3, turnover_per_s=9.0) is problem
    assert told(problem, grain_groups=1) is problem


def test_controllers_can_be_told_badly_and_switches_alone_cannot() -> None:
    for design in SYSTEM.designs:
        known = parameters_of(design.sees)
        if design.name == "per_switch":
            assert not known
        else:
            assert {*BLURS, "seed"} <= set(known)
            assert all(known[blur].default == 0 for blur in BLURS)


def test_age_changes_members_and_nothing_else() -> None:
    problem = fat()
    old = told(problem, age_s=60, seed=1)
    assert members(old) != members(problem)
    assert members(told(problem, age_s=60, seed=1)) == members(old)
    assert members(told(problem, age_s=60, seed=2)) != members(old)
    assert old.groups is problem.groups
    assert old.fabric is problem.fabric
    np.testing.assert_array_equal(old.member_counts, problem.member_counts)
    assert told(problem, age_s=60, turnover_per_s=0) is problem


def test_members_are_hosts_of_the_tenant_each_once() -> None:
    problem = fat(groups=200, seed=4)
    old = told(problem, age_s=1e6, seed=4)  # nobody has stayed
    rows = old.members.astype(str)
    assert not rows.duplicated().any()
    tenant_of = dict(zip(problem.groups["group"], problem.groups["tenant"], strict=True))
    assert problem.tenants is not None
    hosts = set(problem.tenants.astype(str).itertuples(index=False, name=None))
    assert {(tenant_of[group], host) for group, host in rows.itertuples(index=False, name=None)} <= hosts


def test_as_many_stay_as_the_turnover_says() -> None:
    problem = fat(k=8, groups=400, tenants=4, largest_tenant=120)
    old = told(problem, age_s=100, turnover_per_s=0.01, seed=5)
    stayed = len(members(old) & members(problem)) / len(problem.members)
    size = problem.member_counts
    whole = problem.groups["tenant"].map(problem.tenants["tenant"].value_counts()).to_numpy(float)
    keep = np.exp(-0.5)
    # who leaves may come back: of those drawn in his place, as large a part as of all who do not stay
    again = (1 - keep) * size / (whole - keep * size)
    expected = float((size * (keep + (1 - keep) * again)).sum() / size.sum())
    assert stayed == pytest.approx(expected, rel=0.03)


def test_age_needs_tenants() -> None:
    with pytest.raises(InputError, match="tenants: dynamics need this table"):
        told(Multicast.from_tables(tree()), age_s=60)


def test_noise_changes_rates_and_nothing_else() -> None:
    problem = fat(groups=2000, tenants=20)
    noisy = told(problem, noise=0.5, seed=1)
    change = np.log(noisy.rate_mbps / problem.rate_mbps)
    assert change.std() == pytest.approx(0.5, rel=0.1)
    assert change.mean() == pytest.approx(0, abs=0.05)
    assert noisy.members is problem.members
    assert noisy.groups["tenant"] is problem.groups["tenant"] or noisy.groups["tenant"].equals(
        problem.groups["tenant"]
    )
    assert problem.rate_mbps is not noisy.rate_mbps


def test_blocks_of_a_tenants_groups_send_the_same_and_as_much_as_before() -> None:
    problem = fat()
    coarse = told(problem, grain_groups=3)
    rates = problem.groups.assign(told=coarse.rate_mbps)
    for _, own in rates.groupby("tenant"):
        for first in range(0, len(own), 3):
            block = own.iloc[first : first + 3]
            np.testing.assert_allclose(block["told"], block["rate_mbps"].mean())
    whole = problem.groups.assign(told=told(problem, grain_groups=1000).rate_mbps).groupby("tenant")
    assert (whole["told"].nunique() == 1).all()
    assert coarse.rate_mbps.sum() == pytest.approx(problem.rate_mbps.sum())


def test_without_tenants_all_groups_are_one() -> None:
    problem = Multicast.from_tables(tree())
    assert np.unique(told(problem, grain_groups=1000).rate_mbps.round(9)).tolist() == [
        pytest.approx(problem.rate_mbps.mean(), abs=1e-8)
    ]


# --- plans made on a belief ---------------------------------------------------------------


def test_rates_that_were_measured_badly_leave_the_plan_as_it_is() -> None:
    problem = fat()
    believed = told(problem, noise=1.0)
    plan = designs.partitioned(believed).plan
    assert plan is not None
    assert adapt.enact(problem, believed, plan) is plan


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@given(
    st.integers(3, 14),
    st.sampled_from([0, 10, 100, 3000]),
    st.integers(0, 3),
    st.sampled_from(["near", "random"]),
)
@settings(max_examples=15, deadline=None)
def test_any_plan_goes_on_serves_everyone_and_keeps_the_tables(
    design: Design, table_size: int, age_s: int, seed: int, placement: str
) -> None:
    problem = fat(table_size=table_size, placement=placement, seed=seed)
    believed = told(problem, age_s=age_s, seed=seed)
    plan = design.decide(believed, options=Options()).plan
    after = SYSTEM.enact(problem, believed, plan)
    assert not len(SYSTEM.check(problem, after))
    assert set(after.partitions["group"]) <= set(plan.partitions["group"])
    worth = SYSTEM.measure(problem, after, None)
    assert worth["hardware_groups"] + worth["unicast_groups"] == len(problem.groups)
    assert worth["host_traffic_mbps"] >= designs.least_mbps(problem) * (1 - 1e-9)


def test_groups_keep_their_entries_and_new_ones_take_the_cheapest() -> None:
    problem = fat(table_size=5, sizes="uniform", seed=2)
    believed = told(problem, age_s=100, seed=2)
    plan = designs.partitioned_aggregated(believed).plan
    assert plan is not None
    after = adapt.enact(problem, believed, plan)

    def together(frame: object) -> dict[str, set[frozenset[str]]]:
        rows = frame.astype({"group": str, "switch": str})  # type: ignore[attr-defined]
        return {
            switch: {frozenset(entry["group"]) for _, entry in own.groupby("meta_group")}
            for switch, own in rows.groupby("switch")
        }

    before, now = together(plan.meta_groups), together(after.meta_groups)
    assert before
    stay = 0
    for switch, entries in before.items():
        for entry in entries:
            here = [other & entry for other in now.get(switch, set()) if other & entry]
            assert len(here) <= 1  # who shared an entry shares one still
            stay += len(here)
    assert stay > 0


def test_a_plan_that_shares_no_entries_goes_to_unicast_where_tables_overflow() -> None:
    problem = fat(table_size=6, seed=1)
    believed = told(problem, age_s=3000, seed=1)
    plan = designs.partitioned(believed).plan
    assert plan is not None
    as_told = from_tables(problem, {"partitions": plan.partitions})
    assert len(SYSTEM.check(problem, as_told))  # as it is, it would overflow
    after = adapt.enact(problem, believed, plan)
    assert len(after.partitions) < len(plan.partitions)
