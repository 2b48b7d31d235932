"""Observations of members and rates: age, noise and granularity change what they should, and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.design import Design, Mechanism
from planner.contract.parameters import parameters_of
from planner.contract.signalling import Signalling
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast import SYSTEM, Multicast, information
from planner_models.multicast.designs import partitioned, partitioned_aggregated
from planner_models.multicast.information import count_controller, count_joins, observe_groups
from planner_models.multicast.plan.plan import from_tables
from tests.models.multicast.fabrics import PLANNING, fat, tree

DEGRADATIONS = ("age_s", "noise", "granularity_groups")
NAMES = ["below one edge switch", "in one pod", "in two pods"]


def members(problem: Multicast) -> set[tuple[str, str]]:
    return set(problem.members.astype(str).itertuples(index=False, name=None))


def test_the_truth_is_the_problem_itself() -> None:
    problem = fat()
    assert observe_groups(problem, seed=3, turnover_per_s=9.0) is problem
    assert observe_groups(problem, granularity_groups=1) is problem


def test_controllers_have_degradations_and_switches_alone_have_none() -> None:
    for design in SYSTEM.designs:
        names = parameters_of(design.observe)
        if design.mechanism is Mechanism.NONE:
            assert not names
        else:
            assert {*DEGRADATIONS, "seed"} <= set(names)
            assert all(names[degradation].default == 0 for degradation in DEGRADATIONS)


def test_age_changes_members_and_nothing_else() -> None:
    problem = fat()
    old = observe_groups(problem, age_s=60, seed=1)
    assert members(old) != members(problem)
    assert members(observe_groups(problem, age_s=60, seed=1)) == members(old)
    assert members(observe_groups(problem, age_s=60, seed=2)) != members(old)
    assert old.groups is problem.groups
    assert old.fabric is problem.fabric
    np.testing.assert_array_equal(old.member_counts, problem.member_counts)
    assert observe_groups(problem, age_s=60, turnover_per_s=0) is problem


def test_members_are_hosts_of_the_tenant_each_once() -> None:
    problem = fat(groups=200, seed=4)
    old = observe_groups(problem, age_s=1e6, seed=4)  # nobody has stayed
    rows = old.members.astype(str)
    assert not rows.duplicated().any()
    tenant_of = dict(zip(problem.groups["group"], problem.groups["tenant"], strict=True))
    assert problem.tenants is not None
    hosts = set(problem.tenants.astype(str).itertuples(index=False, name=None))
    assert {(tenant_of[group], host) for group, host in rows.itertuples(index=False, name=None)} <= hosts


def test_as_many_stay_as_the_turnover_says() -> None:
    problem = fat(k=8, groups=400, tenants=4, largest_tenant=120)
    old = observe_groups(problem, age_s=100, turnover_per_s=0.01, seed=5)
    stayed = len(members(old) & members(problem)) / len(problem.members)
    size = problem.member_counts
    full = problem.groups["tenant"].map(problem.tenants["tenant"].value_counts()).to_numpy(float)
    keep = np.exp(-0.5)
    # who leaves may come back: of those drawn in his place, as large a part as of all who do not stay
    again = (1 - keep) * size / (full - keep * size)
    expected = float((size * (keep + (1 - keep) * again)).sum() / size.sum())
    assert stayed == pytest.approx(expected, rel=0.03)


def test_age_needs_tenants() -> None:
    with pytest.raises(InputError, match="tenants: dynamics need this table"):
        observe_groups(Multicast.from_tables(tree()), age_s=60)


def test_noise_changes_rates_and_nothing_else() -> None:
    problem = fat(groups=2000, tenants=20)
    noisy = observe_groups(problem, noise=0.5, seed=1)
    change = np.log(noisy.rate_mbps / problem.rate_mbps)
    assert change.std() == pytest.approx(0.5, rel=0.1)
    assert change.mean() == pytest.approx(0, abs=0.05)
    assert noisy.members is problem.members
    assert noisy.groups["tenant"] is problem.groups["tenant"] or noisy.groups["tenant"].equals(
        problem.groups["tenant"]
    )
    assert problem.rate_mbps is not noisy.rate_mbps


def test_granularity_averages_blocks_of_a_tenant_and_keeps_the_sum() -> None:
    problem = fat()
    coarse = observe_groups(problem, granularity_groups=3)
    rates = problem.groups.assign(told=coarse.rate_mbps)
    for _, own_values in rates.groupby("tenant"):
        for first in range(0, len(own_values), 3):
            block = own_values.iloc[first : first + 3]
            np.testing.assert_allclose(block["told"], block["rate_mbps"].mean())
    full = problem.groups.assign(told=observe_groups(problem, granularity_groups=1000).rate_mbps).groupby(
        "tenant"
    )
    assert (full["told"].max() == full["told"].min()).all()
    assert coarse.rate_mbps.sum() == pytest.approx(problem.rate_mbps.sum())


def test_without_tenants_all_groups_are_one() -> None:
    problem = Multicast.from_tables(tree())
    assert np.unique(observe_groups(problem, granularity_groups=1000).rate_mbps.round(9)).tolist() == [
        pytest.approx(problem.rate_mbps.mean(), abs=1e-8)
    ]


def test_rates_that_were_measured_badly_leave_the_plan_as_it_is() -> None:
    problem = fat()
    observed = observe_groups(problem, noise=1.0)
    plan = partitioned.partition_addresses(observed).plan
    assert plan is not None
    assert information.realize(problem, observed, plan) is plan


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@given(
    st.integers(0, 14),
    st.sampled_from([0, 10, 100, 3000]),
    st.integers(0, 3),
    st.sampled_from(["near", "random"]),
)
@settings(max_examples=15, deadline=None)
def test_any_plan_goes_on_serves_everyone_and_keeps_the_tables(
    design: Design, table_size: int, age_s: int, seed: int, placement: str
) -> None:
    problem = fat(table_size=table_size, placement=placement, seed=seed)
    observed = observe_groups(problem, age_s=age_s, seed=seed)
    plan = design.run(observed, options=Options()).plan
    after = SYSTEM.plan.realize(problem, observed, plan)
    assert not len(SYSTEM.plan.check(problem, after))
    assert set(after.partitions["group"]) <= set(plan.partitions["group"])
    traffic = SYSTEM.plan.measure(problem, after, None)
    ways = ("groups_with_entries", "groups_by_unicast", "groups_by_header")
    assert sum(traffic[way] for way in ways) == len(problem.groups)
    lower = float(problem.rate_mbps @ (1 + problem.member_counts))
    if plan.headers is None and plan.overflow is None:  # the bound is one of plans with entries only
        lower = partitioned.bound_mbps(problem)
    assert traffic["host_traffic_mbps"] + traffic["lost_mbps"] >= lower * (1 - 1e-9)


def test_groups_keep_their_entries_and_new_ones_take_the_cheapest() -> None:
    problem = fat(table_size=5, sizes="uniform", seed=2)
    observed = observe_groups(problem, age_s=100, seed=2)
    plan = partitioned_aggregated.partition_and_share(observed).plan
    assert plan is not None
    after = information.realize(problem, observed, plan)

    def together(frame: object) -> dict[str, set[frozenset[str]]]:
        rows = frame.astype({"group": str, "switch": str})  # type: ignore[attr-defined]
        return {
            switch: {frozenset(entry["group"]) for _, entry in own_values.groupby("meta_group")}
            for switch, own_values in rows.groupby("switch")
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
    observed = observe_groups(problem, age_s=3000, seed=1)
    plan = partitioned.partition_addresses(observed).plan
    assert plan is not None
    as_told = from_tables(problem, {"partitions": plan.partitions})
    assert len(SYSTEM.plan.check(problem, as_told))  # as it is, it would overflow
    after = information.realize(problem, observed, plan)
    assert len(after.partitions) < len(plan.partitions)


def problem(*, tenants: bool = False) -> Multicast:
    """Return 16 hosts of 4-port switches: h0, h1 below one edge switch, h2 in their pod, h4 in the next."""
    groups = pd.DataFrame({"group": NAMES, "rate_mbps": 1.0})
    members = [(NAMES[0], "h0"), (NAMES[0], "h1"), (NAMES[1], "h0"), (NAMES[1], "h2"), (NAMES[2], "h0")]
    members.append((NAMES[2], "h4"))
    more = {}
    if tenants:
        groups["tenant"] = ["t0", "t0", "t1"]
        more["tenants"] = pd.DataFrame(
            [(tenant, f"h{i}") for tenant in ("t0", "t1") for i in range(5)], columns=["tenant", "host"]
        )
    fabric = {"kind": "ab", "k": 4, "partitions": 4, "core_copies": 1, "aggregation_copies": 1}
    entries = {f"{layer}_entries": 10 for layer in ("core", "aggregation", "edge")}
    return Multicast.from_tables(
        {
            "fabric": pd.DataFrame([fabric | entries]),
            "groups": groups,
            "members": pd.DataFrame(members, columns=["group", "host"]),
            **more,
        }
    )


def test_joins_go_up_to_every_switch_that_may_get_the_group() -> None:
    plan = partitioned.store_everywhere(problem()).plan
    assert plan is not None
    # four hosts speak; three edge switches to two each; two pods to four cores
    rows = 6 + (2 + 2) * 2 + 2 * 4
    assert count_joins(problem(), plan) == Signalling(messages=4 + 3 * 2 + 2 * 4, bytes=rows * 4)


def test_a_controller_gets_members_and_rates_and_answers_with_rules_and_addresses() -> None:
    plan = partitioned.partition_addresses(problem(), choose="arrival").plan
    assert plan is not None
    # entries: 5 at three edge switches, 3 at as many aggregation switches, 1 at a core
    reports, addresses, rules = 6 * 4 + 3 * 12, 3 * 8, 9 * 12
    assert count_controller(problem(), plan) == Signalling(
        messages=4 + 3 + 7, bytes=reports + addresses + rules
    )


def test_a_tenant_is_answered_once() -> None:
    here = problem(tenants=True)
    plan = partitioned.partition_addresses(here, choose="arrival").plan
    assert plan is not None
    assert count_controller(here, plan).messages == 4 + 2 + 7


def test_shared_entries_are_rewritten_above_and_below() -> None:
    here = problem()
    apart = partitioned.partition_addresses(here, choose="arrival").plan
    assert apart is not None
    shared = pd.DataFrame({"switch": "edge-0-0", "meta_group": [0.0, 0.0, 1.0], "group": NAMES})
    plan = from_tables(here, {"partitions": apart.partitions, "meta_groups": shared})
    assert not len(SYSTEM.plan.check(here, plan))
    # one entry less; one aggregation switch above for two of them, and both hosts below have 3 and 1 groups
    assert count_controller(here, plan) == Signalling(
        messages=count_controller(here, apart).messages + 2,
        bytes=count_controller(here, apart).bytes - 12 + (2 + 4) * 8,
    )


def test_entries_shared_in_the_middle_are_rewritten_by_cores_and_edge_switches() -> None:
    here = problem()
    apart = partitioned.partition_addresses(here, choose="arrival").plan
    assert apart is not None
    # the group in two pods is at this switch of the first: a core above, one edge switch below
    shared = pd.DataFrame({"switch": ["aggregation-0-1"], "meta_group": [0.0], "group": [NAMES[2]]})
    plan = from_tables(here, {"partitions": apart.partitions, "meta_groups": shared})
    assert not len(SYSTEM.plan.check(here, plan))
    assert count_controller(here, plan) == Signalling(
        messages=count_controller(here, apart).messages, bytes=count_controller(here, apart).bytes + 2 * 8
    )


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
@pytest.mark.parametrize("kind", ["fat", "tree"])
def test_every_design_counts_on_every_fabric(design: object, kind: str) -> None:
    here = fat() if kind == "fat" else Multicast.from_tables(tree())
    plan = design.run(here, options=Options()).plan  # type: ignore[attr-defined]
    if plan is None:
        return
    told = design.signalling(here, plan)  # type: ignore[attr-defined]
    speaking = len(set(here.members["host"]))
    assert told.messages > speaking
    assert told.bytes > 4 * len(here.members)
