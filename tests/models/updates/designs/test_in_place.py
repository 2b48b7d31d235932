"""Each class's own guarantee decides the rounds in place: against every order, and by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.proof import Status
from planner_models.updates import SYSTEM, Update, check
from tests.models.updates.updates import hops_of, updates, walk_all

PROFILE = settings(max_examples=20, deadline=None, derandomize=True)


def build(
    now: str, after: str, *, guarantee: str = "", ingress: str = "", waypoints: str = "", egress: str = "d"
) -> Update:
    """Return the update of one class whose rules are such as `a>b b>d`."""
    rules = {
        name: pd.DataFrame(
            [("x", *rule.split(">")) for rule in text.split()], columns=["class", "switch", "next_hop"]
        )
        for name, text in (("now", now), ("next", after))
    }
    ends = {tuple(rule.split(">")) for rule in (now + " " + after).split()}
    names = sorted({end for pair in ends for end in pair})
    row = {"class": "x", "ingress": ingress, "egress": egress, "guarantee": guarantee, "waypoints": waypoints}
    return Update(
        switches=pd.DataFrame({"switch": names}),
        links=pd.DataFrame(sorted(ends), columns=["from", "to"]),
        classes=pd.DataFrame([row]),
        **rules,
    )


def fewest(problem: Update, name: str, may_lose: bool) -> int:
    """Return the fewest rounds of a class over all orders, by walks of packets in every mixture."""
    now, after = hops_of(problem.now, name), hops_of(problem.next, name)
    changed = sorted(
        index for index in {*now, *after} if sorted(now.get(index, [])) != sorted(after.get(index, []))
    )
    bad = {"loop"} if may_lose else {"loop", "lost"}
    best = {frozenset[str](): 0}
    for size in range(len(changed)):
        for result in [item for item in best if len(item) == size]:
            remainder = [index for index in changed if index not in result]
            for count in range(1, len(remainder) + 1):
                for turn in itertools.combinations(remainder, count):
                    larger = result | frozenset(turn)
                    if best.get(larger, 99) <= best[result] + 1:
                        continue
                    mixtures = itertools.product([False, True], repeat=count)
                    fixed = dict.fromkeys(result, True)
                    if not any(
                        walk_all(problem, name, {**fixed, **dict(zip(turn, selected, strict=True))}) & bad
                        for selected in mixtures
                    ):
                        best[larger] = best[result] + 1
    return best[frozenset(changed)]


@pytest.mark.slow
@PROFILE
@given(problem=updates(most_switches=5, classes=1), guarantee=st.sampled_from(["none", "no_loop"]))
def test_weaker_guarantees_need_fewer_rounds(problem: Update, guarantee: str) -> None:
    problem = replace(problem, classes=problem.classes.assign(guarantee=guarantee))
    if not problem.slots.changes.any():
        return
    upper = 1 if guarantee == "none" else fewest(problem, "c0", may_lose=True)
    decision = SYSTEM.design("ordered_exact").run(problem)
    assert decision.plan.rounds == upper
    assert decision.proof.status is Status.OPTIMAL
    assert not set(check(problem, decision.plan).frame["limit"]) & {"loop", "black_hole"}
    greedy = SYSTEM.design("ordered").run(problem)
    assert greedy.proof.bound is not None
    assert greedy.proof.bound <= upper <= greedy.plan.rounds
    assert not set(check(problem, greedy.plan).frame["limit"]) & {"loop", "black_hole"}


@pytest.mark.slow
@PROFILE
@given(problem=updates(most_switches=6, classes=2))
def test_neighbours_neither_loop_nor_lose_packets(problem: Update) -> None:
    plan = SYSTEM.design("decentral").run(problem).plan
    violations = check(problem, plan).frame
    assert not set(violations["limit"]) & {"loop", "black_hole", "complete"}


def test_a_class_without_a_guarantee_changes_at_once() -> None:
    problem = build("a>b b>c", "b>a a>c", guarantee="none", egress="c")
    for name in ("ordered", "ordered_exact"):
        decision = SYSTEM.design(name).run(problem)
        assert decision.plan.rounds == 1
        assert decision.proof.status is Status.OPTIMAL


def test_rules_that_end_do_so_from_upstream_down() -> None:
    """Switch a sends to b: where both rules end, that of a ends first."""
    problem = build("a>b b>d e>d", "e>d")
    plan = SYSTEM.design("decentral").run(problem).plan
    assert plan.operations.set_index("switch")["step"].to_dict() == {"a": 1.0, "b": 2.0}
    assert not len(check(problem, plan))


def test_paths_without_rules_of_both_are_searched() -> None:
    """One swap at a moves all packets, once c has its rule: no packet uses rules of both."""
    problem = build("a>b b>d", "a>c c>d", guarantee="per_packet", ingress="a")
    decision = SYSTEM.design("ordered_exact").run(problem)
    assert not len(check(problem, decision.plan))
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan.rounds == 3


def test_a_plan_that_breaks_a_guarantee_is_not_optimal() -> None:
    """Switches a and b both change, and packets pass both: in any order some use rules of both."""
    problem = build("a>b b>d", "a>c c>b b>e e>d", guarantee="per_packet", ingress="a")
    for name in ("ordered", "ordered_exact"):
        proof = SYSTEM.design(name).run(problem).proof
        assert proof.status is Status.FEASIBLE
        assert proof.bound is None
        assert proof.reasons == ("the plan breaks the guarantee of class 'x' (per_packet)",)


def test_waypoints_are_kept_where_an_order_does() -> None:
    """Packets pass w before and after: b must turn to d only once a sends to c, which leads over w."""
    problem = build("a>b b>w w>d c>w", "a>c c>w w>d b>d", guarantee="waypoint", ingress="a", waypoints="w")
    decision = SYSTEM.design("ordered_exact").run(problem)
    assert not len(check(problem, decision.plan))
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan.rounds == 2


@pytest.mark.parametrize("name", ["ordered", "ordered_exact"])
@PROFILE
@given(updates())
def test_at_a_time_limit_classes_change_as_their_neighbours_are_ready(name: str, problem: Update) -> None:
    cut = SYSTEM.design(name).run(problem, options=Options(time_limit_s=1e-9))
    full = SYSTEM.design(name).run(problem)
    assert not {"loop", "black_hole", "complete"} & set(check(problem, cut.plan).frame["limit"])
    if cut.proof.bound is not None and full.proof.bound is not None:
        assert cut.proof.bound <= full.proof.bound <= full.plan.rounds


def test_the_rules_of_one_class_alone_make_the_same_packets() -> None:
    """A class is replayed without the others: its waypoint is kept in as many rounds as alone."""
    alone = build("a>b b>w w>d c>w", "a>c c>w w>d b>d", guarantee="waypoint", ingress="a", waypoints="w")
    classes = pd.concat([alone.classes.assign(**{"class": name}) for name in ("v", "x")], ignore_index=True)
    rules = {
        side: pd.concat(
            [getattr(alone, side).assign(**{"class": name}) for name in ("v", "x")], ignore_index=True
        )
        for side in ("now", "next")
    }
    decision = SYSTEM.design("ordered_exact").run(replace(alone, classes=classes, **rules))
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan.rounds == 2


@pytest.mark.parametrize("name", ["two_phase", "two_phase_changed", "batches"])
def test_packets_that_enter_at_new_switches_are_stamped(name: str) -> None:
    """A blank ingress is every switch with a rule, now or next: packets that enter at b are stamped, too."""
    problem = build("a>d", "a>b b>d")
    plan = SYSTEM.design(name).run(problem).plan
    assert not len(check(problem, plan))
    flips = plan.operations[plan.operations["action"] == "flip"]
    assert set(flips["switch"]) == {"a", "b"}
    without = replace(plan, operations=plan.operations.drop(flips[flips["switch"] == "b"].index))
    assert "complete" in set(check(problem, without).frame["limit"])


def test_advice_says_that_intermediate_paths_are_not_tried() -> None:
    """Two classes that exchange full paths have a way over e: the sentence claims no more than it tried."""
    ends = ["a>b", "b>d", "a>c", "c>d", "a>e", "e>d"]
    rules = {
        "now": [("f1", "a", "b"), ("f1", "b", "d"), ("f2", "a", "c"), ("f2", "c", "d")],
        "next": [("f1", "a", "c"), ("f1", "c", "d"), ("f2", "a", "b"), ("f2", "b", "d")],
    }
    problem = Update(
        switches=pd.DataFrame({"switch": list("abcde")}),
        links=pd.DataFrame([end.split(">") for end in ends], columns=["from", "to"]).assign(capacity_mbps=10),
        classes=pd.DataFrame(
            {"class": ["f1", "f2"], "ingress": "a", "egress": "d", "traffic_mbps": [10.0, 10.0]}
        ),
        **{name: pd.DataFrame(rows, columns=["class", "switch", "next_hop"]) for name, rows in rules.items()},
    )
    proof = SYSTEM.design("optimum").run(problem).proof
    assert proof.reasons
    assert all("without intermediate paths" in reason for reason in proof.reasons)
    assert proof.bound is None
