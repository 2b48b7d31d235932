"""Plans made on an observation, carried on among the true members."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.design import Design
from planner.options import Options
from planner_models.multicast import SYSTEM
from planner_models.multicast.designs import partitioned, partitioned_aggregated
from planner_models.multicast.information import realize
from planner_models.multicast.information.observe import observe_groups
from planner_models.multicast.plan.plan import from_tables
from tests.models.multicast.fabrics import PLANNING, fat


def test_rates_that_were_measured_badly_leave_the_plan_as_it_is() -> None:
    problem = fat()
    observed = observe_groups(problem, noise=1.0)
    plan = partitioned.partition_addresses(observed).plan
    assert plan is not None
    assert realize.realize(problem, observed, plan) is plan


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
    if plan.headers is None:  # the bound is one of plans without headers
        lower = partitioned.bound_mbps(problem)
    assert traffic["host_traffic_mbps"] >= lower * (1 - 1e-9)


def test_groups_keep_their_entries_and_new_ones_take_the_cheapest() -> None:
    problem = fat(table_size=5, sizes="uniform", seed=2)
    observed = observe_groups(problem, age_s=100, seed=2)
    plan = partitioned_aggregated.partition_and_share(observed).plan
    assert plan is not None
    after = realize.realize(problem, observed, plan)

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
    after = realize.realize(problem, observed, plan)
    assert len(after.partitions) < len(plan.partitions)
