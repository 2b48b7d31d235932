"""Rebuilt trees against brute force, rules of two plans against their tables, choices of copies."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.run import evaluate
from planner.scenario import Entry
from planner_models.multicast import (
    SYSTEM,
    Channels,
    Multicast,
    check,
    designs,
    failures,
    forwarding,
    layout,
    repair,
    rules,
    select,
)
from tests.multicast.fabrics import PLANNING, fat, tree

# --- trees --------------------------------------------------------------------------------


def least(found: repair.Reach, pods: list[int]) -> float:
    """The least cost of a tree, by trying every choice of roots."""
    best = float("inf")
    for count in range(1, len(pods) + 1):
        for roots in combinations(range(len(found.core)), count):
            each = found.entries[np.ix_(list(roots), pods)].min(axis=0)
            best = min(best, repair.ROOT * count + found.core[list(roots)].sum() + each.sum())
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(2, 5), st.integers(0, 10**6))
def test_exact_trees_are_the_best_and_greedy_ones_no_better(pods: int, cores: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.choice([0.0, 1.0, np.inf], size=(cores, pods), p=[0.4, 0.2, 0.4])
    found = repair.Reach(entries=entries, core=rng.integers(0, 2, size=cores).astype(float))
    wanted = np.arange(pods)
    exact, simple = repair.optimum(found, wanted), repair.greedy(found, wanted)
    reached = [pod for pod in range(pods) if pod not in exact.missing]
    assert set(exact.missing) == set(np.flatnonzero(~np.isfinite(entries).any(axis=0)).tolist())
    assert simple.missing == exact.missing
    if not reached:
        assert exact.roots == ()
        return
    assert exact.cost == pytest.approx(least(found, reached))
    assert exact.gap <= 1e-6
    assert simple.bound - 1e-6 <= exact.cost <= simple.cost + 1e-6
    for done in (exact, simple):
        assert np.isfinite(entries[np.ix_(list(done.roots), reached)]).any(axis=0).all()


def test_one_failure_needs_a_new_root_and_no_entries() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=30, table_size=40, placement="random", seed=1)
    plan = designs.partitioned(problem).plan
    state = failures.alive(problem.wiring, switches=["aggregation-2-1"])
    made = repair.repaired(problem, plan, state)
    assert len(made.table)
    assert (made.table["roots"] == 1).all()
    assert (made.table[["entries", "missing"]] == 0).all(axis=None)
    assert made.gap == 0


def test_where_no_core_reaches_all_pods_several_do_or_entries_are_added() -> None:
    problem = fat(k=4, aggregation_copies=1, groups=20, table_size=40, placement="random", seed=1)
    plan = designs.partitioned(problem).plan
    # partition 0 is at core-0 alone, and below it at one switch of each pod
    held = problem.distribution(1)
    lost = [
        name
        for name, holds, pod in zip(
            problem.wiring.aggregations, held.aggregation[:, 0], problem.wiring.aggregation_pod, strict=True
        )
        if holds and pod == 1
    ]
    state = failures.alive(problem.wiring, switches=lost)
    alone = repair.repaired(problem, plan, state, strangers=False)
    helped = repair.repaired(problem, plan, state, strangers=True)
    assert (alone.table["missing"] > 0).any()
    assert (helped.table["missing"] == 0).all()
    assert (helped.table["entries"] > 0).any()
    greedy = repair.repaired(problem, plan, state, exact=False)
    assert greedy.table["cost"].sum() >= helped.table["cost"].sum()
    assert greedy.gap >= helped.gap - 1e-12
    assert helped.gap <= 1e-6


def test_rebuilt_roots_reach_their_pods_through_working_links() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=30, table_size=40, placement="random", seed=2)
    plan = designs.partitioned(problem).plan
    rng = np.random.default_rng(0)
    state = failures.alive(problem.wiring, switches=failures.draw(problem.wiring, 12, rng))
    made = repair.repaired(problem, plan, state).table.set_index("group")
    pod = problem.wiring.aggregation_pod
    for group, partition, copies in plan.partitions.itertuples(index=False):
        if group not in made.index:
            continue
        at = problem.groups["group"].tolist().index(group)
        pods = np.flatnonzero(problem.edges_in_pod[at])
        found = repair.reach(problem, int(copies), int(partition), state)
        tree_ = repair.optimum(found, pods)
        assert len(tree_.roots) == made.loc[group, "roots"]
        for there in set(pods.tolist()) - set(tree_.missing):
            assert any((state.up[:, root] & (pod == there)).any() for root in tree_.roots)


# --- rules --------------------------------------------------------------------------------


def test_a_plan_differs_from_itself_in_no_rule_and_from_nothing_in_all() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=25)
    plan = designs.partitioned_aggregated(problem).plan
    assert len(plan.meta_groups)
    assert not len(rules.changed(problem, plan, plan))
    empty = SYSTEM.plan_from_tables(problem, {"partitions": plan.partitions.iloc[:0]})
    new = rules.changed(problem, plan, empty).set_index("switch")
    taken = plan.entries.set_index("switch")["entries"]
    assert new["remove"].sum() == 0
    assert new["add"].to_dict() == taken[taken > 0].astype(int).to_dict()


def test_numbers_of_shared_entries_mean_nothing() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=25)
    plan = designs.partitioned_aggregated(problem).plan
    other = plan.meta_groups.assign(
        meta_group=plan.meta_groups["meta_group"].max() - plan.meta_groups["meta_group"]
    )
    assert not len(rules.changed(problem, replace(plan, meta_groups=other), plan))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from(PLANNING), st.sampled_from(PLANNING))
def test_rules_turn_one_plan_into_the_other(seed: int, one: object, two: object) -> None:
    problem = fat(groups=15, table_size=6, seed=seed, placement="random")
    plans = [design.decide(problem).plan for design in (one, two)]  # type: ignore[attr-defined]
    found = rules.changed(problem, plans[1], plans[0]).set_index("switch")
    entries = [plan.entries.set_index("switch")["entries"] for plan in plans]
    net = (found["add"] - found["remove"]).reindex(entries[0].index).fillna(0)
    assert (entries[0] + net == entries[1]).all()
    back = rules.changed(problem, plans[0], plans[1]).set_index("switch")
    assert back["add"].to_dict() == found["remove"].to_dict()


def test_a_new_member_changes_the_switches_above_it() -> None:
    problem = fat(groups=10, table_size=40, seed=1)
    plan = designs.partitioned(problem).plan
    group = problem.groups["group"].iloc[0]
    inside = set(problem.members.loc[problem.members["group"] == group, "host"].astype(str))
    stranger = next(host for host in problem.hosts["host"] if host not in inside)
    members = pd.concat([problem.members.astype(str), pd.DataFrame({"group": [group], "host": [stranger]})])
    after = replace(problem, members=members.reset_index(drop=True))
    found = rules.changed(after, designs.partitioned(after).plan, plan, before=problem)
    where = problem.hosts.set_index("host").loc[stranger]
    assert f"edge-{where['pod']:.0f}-{where['edge']:.0f}" in set(found["switch"])
    assert (found.loc[found["layer"] == "edge", ["add", "remove"]].sum(axis=1) <= 2).all()


def test_rules_of_a_tree() -> None:
    problem = Multicast.from_tables(tree())
    plans = [design.decide(problem).plan for design in PLANNING[:2]]
    tables = [forwarding.compiled(problem, plan) for plan in plans]
    found = rules.changed(problem, plans[1], plans[0])
    assert found["add"].sum() - found["remove"].sum() == len(tables[1].rules) - len(tables[0].rules)


# --- copies -------------------------------------------------------------------------------


def test_choices_are_counted_as_plans_are() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=20, placement="random")
    table = layout.choices(problem)
    assert table["aggregation_copies"].tolist() == [1, 2, 4]
    assert table["partitions"].tolist() == [16, 4, 1]
    for row in table.itertuples():
        partition = select.in_turn(problem, row.aggregation_copies)
        everything = Channels(
            partitions=pd.DataFrame(
                {
                    "group": problem.groups["group"],
                    "partition": partition.astype(float),
                    "copies": float(row.aggregation_copies),
                }
            ),
            meta_groups=pd.DataFrame({"switch": [], "meta_group": [], "group": []}),
            entries=pd.DataFrame(),
        )
        counted = SYSTEM.plan_from_tables(problem, {"partitions": everything.partitions}).entries
        most = counted.groupby("layer")["entries"].max()
        assert row.core_entries_max == most["core"]
        assert row.aggregation_entries_max == most["aggregation"]
        assert row.fits == (max(most["core"], most["aggregation"]) <= 20)
        assert row.spare_entries == 20 - max(most["core"], most["aggregation"])
        assert (row.groups_before_overflow == 60) == row.fits


def test_the_choice_is_the_best_of_all_that_fit_and_says_what_the_next_lacks() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=60, table_size=20, placement="random")
    table = layout.choices(problem)
    for size in range(1, 80, 6):
        fabric = problem.fabric.assign(core_entries=float(size), aggregation_entries=float(size))
        sized = replace(problem, fabric=fabric)
        choice = layout.choose(sized)
        need = table[["core_entries_max", "aggregation_entries_max"]].max(axis=1).to_numpy()
        able = table["aggregation_copies"].to_numpy()[need <= size]
        assert choice.chosen == (able.max() if len(able) else None)
        if choice.next_ is not None:
            needed = need[table["aggregation_copies"].to_numpy() == choice.next_][0]
            assert choice.short == needed - size
            larger = fabric.assign(core_entries=needed, aggregation_entries=needed)
            assert layout.choose(replace(problem, fabric=larger)).chosen == choice.next_
        roomy = layout.choose(sized, wish="groups")
        assert (roomy.chosen is None) == (choice.chosen is None)
        if roomy.chosen is not None:
            assert roomy.chosen <= choice.chosen
        assert choice.sentences()


def test_chosen_copies_is_a_design() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=60, table_size=40, placement="random")
    design = SYSTEM.design("chosen_copies")
    run = evaluate(SYSTEM, problem, Entry(label="c", design=design))
    assert not len(run.violations)
    assert set(run.plan.partitions["copies"]) == {float(layout.choose(problem).chosen)}
    assert not len(check(problem, run.plan))
    with pytest.raises(InputError, match="least_copies is 5, a pod has at most 4 copies"):
        design.decide(problem, least_copies=5)
    tight = fat(k=8, aggregation_copies=1, groups=60, table_size=3, placement="random")
    assert set(design.decide(tight, least_copies=2).plan.partitions["copies"]) == {2.0}
    other = Multicast.from_tables(tree())
    assert set(design.decide(other).plan.partitions["copies"]) == {2.0}
