"""Rules that two plans differ in, against their tables."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.designs import (
    partitioned,
    partitioned_aggregated,
)
from planner_models.multicast.plan import (
    forwarding,
    table_changes,
)
from tests.models.multicast.fabrics import PLANNING, fat, tree


def test_a_plan_differs_from_itself_in_no_rule_and_from_nothing_in_all() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=25)
    plan = partitioned_aggregated.partition_and_share(problem).plan
    assert len(plan.meta_groups)
    assert not len(table_changes.compare_plans(problem, plan, plan))
    empty = SYSTEM.plan.from_tables(problem, {"partitions": plan.partitions.iloc[:0]})
    new = table_changes.compare_plans(problem, plan, empty).set_index("switch")
    taken = plan.entries.set_index("switch")["entries"]
    assert new["remove"].sum() == 0
    assert new["add"].to_dict() == taken[taken > 0].astype(int).to_dict()


def test_numbers_of_shared_entries_mean_nothing() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=25)
    plan = partitioned_aggregated.partition_and_share(problem).plan
    other = plan.meta_groups.assign(
        meta_group=plan.meta_groups["meta_group"].max() - plan.meta_groups["meta_group"]
    )
    assert not len(table_changes.compare_plans(problem, replace(plan, meta_groups=other), plan))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from(PLANNING), st.sampled_from(PLANNING))
def test_rules_turn_one_plan_into_the_other(seed: int, one: object, two: object) -> None:
    problem = fat(groups=15, table_size=6, seed=seed, placement="random")
    plans = [design.decide(problem).plan for design in (one, two)]  # type: ignore[attr-defined]
    found = table_changes.compare_plans(problem, plans[1], plans[0]).set_index("switch")
    entries = [plan.entries.set_index("switch")["entries"] for plan in plans]
    net = (found["add"] - found["remove"]).reindex(entries[0].index).fillna(0)
    assert (entries[0] + net == entries[1]).all()
    back = table_changes.compare_plans(problem, plans[0], plans[1]).set_index("switch")
    assert back["add"].to_dict() == found["remove"].to_dict()


def test_a_new_member_changes_the_switches_above_it() -> None:
    problem = fat(groups=10, table_size=40, seed=1)
    plan = partitioned.partition_addresses(problem).plan
    group = problem.groups["group"].iloc[0]
    inside = set(problem.members.loc[problem.members["group"] == group, "host"].astype(str))
    stranger = next(host for host in problem.hosts["host"] if host not in inside)
    members = pd.concat([problem.members.astype(str), pd.DataFrame({"group": [group], "host": [stranger]})])
    after = replace(problem, members=members.reset_index(drop=True))
    found = table_changes.compare_plans(
        after, partitioned.partition_addresses(after).plan, plan, before=problem
    )
    where = problem.hosts.set_index("host").loc[stranger]
    assert f"edge-{where['pod']:.0f}-{where['edge']:.0f}" in set(found["switch"])
    assert (found.loc[found["layer"] == "edge", ["add", "remove"]].sum(axis=1) <= 2).all()


def test_rules_of_a_tree() -> None:
    problem = Multicast.from_tables(tree())
    plans = [design.decide(problem).plan for design in PLANNING[:2]]
    tables = [forwarding.compile_tables(problem, plan) for plan in plans]
    found = table_changes.compare_plans(problem, plans[1], plans[0])
    assert found["add"].sum() - found["remove"].sum() == len(tables[1].rules) - len(tables[0].rules)
