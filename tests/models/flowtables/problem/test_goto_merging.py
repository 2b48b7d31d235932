"""Merged tables: the same actions for all headers, and the fewest entries of all groups."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings

from planner_models.flowtables import SYSTEM, FlowTables
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.problem.generators import small
from planner_models.flowtables.problem.goto_merging import Paths, choose_merging, find_mergings, merge_groups
from planner_models.flowtables.problem.logical_networks import pipeline
from tests.models.flowtables.switches import every_word, make, switches

CHAIN = [
    (9, "a=1/1", "goto:1", 0), (8, "b=1", "goto:2", 0), (1, "", "out:1", 0), (5, "b=2/2", "goto:2", 1),
    (4, "c=1", "drop", 1), (3, "a=7", "out:2", 2), (2, "b=3", "goto:4", 2), (7, "c=2", "out:3", 4),
]  # fmt: skip


def require_same_actions(problem: FlowTables) -> None:
    """Require that all groupings of neighbours keep the action of all headers, and that the best is found."""
    words, count = every_word(problem), len(problem.table_numbers)
    before = [problem.actions[number] for number in classify(words, problem.entries)]
    fewest: dict[int, int] = {}
    for cuts in (cut for size in range(count) for cut in combinations(range(1, count), size)):
        groups = list(zip((0, *cuts), (cut - 1 for cut in (*cuts, count)), strict=True))
        merged = merge_groups(problem, groups)
        assert [merged.actions[number] for number in classify(words, merged.entries)] == before
        assert len(merged.table_numbers) >= 1
        fewest[len(groups)] = min(fewest.get(len(groups), 10**9), len(merged.rules))
    assert {merging.lookups: sum(merging.entries) for merging in find_mergings(problem)} == fewest


def test_all_groups_of_a_chain_keep_the_actions() -> None:
    require_same_actions(make(CHAIN))


@given(switches())
@settings(max_examples=10, deadline=None)
def test_all_groups_of_random_switches_keep_the_actions(problem: FlowTables) -> None:
    require_same_actions(problem)


def test_memory_leaves_out_large_tables() -> None:
    problem = small()
    all_of_them = find_mergings(problem)
    assert [item.lookups for item in all_of_them] == [1, 2]
    assert sum(all_of_them[0].entries) > sum(all_of_them[1].entries)
    assert find_mergings(problem, memory=sum(all_of_them[1].entries)) == all_of_them[1:]


def test_rules_with_the_same_match_count_once() -> None:
    """Of two rules with one match the second never matches; every design says what the check counts."""
    problem = make([(3, "a=0/2", "drop"), (2, "a=0/2", "out:1"), (1, "b=1", "drop")], ["a=0 b=0 c=0"])
    assert choose_merging(problem).entries == (3,)  # two matches, and one for packets that no rule matches
    for design in SYSTEM.designs:
        plan = design.run(problem).plan
        assert plan is not None
        assert not len(SYSTEM.plan.check(problem, plan)), design.name


def test_a_table_alone_is_never_too_large() -> None:
    rules = [(float(99 - index), f"a={index % 8} b={index // 8}", "drop", 0.0) for index in range(60)]
    problem = make([*rules, (1.0, "a=1", "drop", 1.0)], ["a=0 b=0 c=0"])
    paths = Paths(problem, max_entries=10)
    assert paths.count(0, 0) == 61
    assert paths.count(0, 1) is None


def test_a_pipeline_of_logical_datapaths_has_its_tables() -> None:
    problem = pipeline(datapaths=6, hosts=3, connections=50, seed=2)
    assert problem.table_numbers == list(range(15))
    best = find_mergings(problem)
    assert [item.lookups for item in best] == list(range(1, 16))
    assert sum(best[-1].entries) <= len(problem.entries.action) + 15
