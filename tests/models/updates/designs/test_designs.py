"""Designs of system `updates`: fewest rounds and batches against search, bounds, what more space brings."""

from __future__ import annotations

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import planner
from planner.backends.pyomo import from_pyomo
from planner.contract.proof import Status
from planner.errors import PlanRejected
from planner.options import Options
from planner_models.updates import SYSTEM, Update, check, formulation, measure
from planner_models.updates.designs.batch_search import Prices, find_needs
from planner_models.updates.designs.batches import build_program, find_shortage, find_stuck
from planner_models.updates.designs.congestion_free import build_model, find_shares
from planner_models.updates.designs.formulation import order_formulation, share_formulation
from planner_models.updates.designs.loop_free_order import find_rounds
from planner_models.updates.plan.flows import expiry_lives
from planner_models.updates.plan.plan import as_network, from_tables
from planner_models.updates.problem import generators
from planner_models.updates.problem.adjustments import adjust
from tests.models.updates.updates import fewest_batches, fewest_rounds, hops_of, updates

PROFILE = settings(max_examples=15, deadline=None, derandomize=True)


def rounds(problem: Update, name: str) -> float:
    plan = SYSTEM.design(name).run(problem).plan
    assert plan is not None
    assert not len(check(problem, plan).of_limits(["loop", "black_hole", "complete", "drain"]))
    return float(plan.rounds)


@pytest.mark.slow
@PROFILE
@given(problem=updates(most_switches=5))
def test_rounds_lie_between_the_bound_and_the_fewest_by_search(problem: Update) -> None:
    compare_with_every_order(problem)


@pytest.mark.exhaustive
@settings(max_examples=8, deadline=None, derandomize=True)
@given(problem=updates(most_switches=7, classes=1))
def test_rounds_of_seven_switches_lie_between_the_bound_and_the_fewest(problem: Update) -> None:
    compare_with_every_order(problem)


def compare_with_every_order(problem: Update) -> None:
    result = find_rounds(as_network(problem), problem.slots.changes)
    exact = SYSTEM.design("ordered_exact").run(problem)
    fewest = [fewest_rounds(problem, name) for name in problem.class_index]
    for index, value in enumerate(fewest):
        assert result.least[index] <= value <= result.most[index]
    assert rounds(problem, "ordered_exact") == max(fewest)
    assert exact.proof.status is Status.OPTIMAL
    assert rounds(problem, "ordered") >= max(fewest)
    assert rounds(problem, "decentral") >= max(fewest)


@PROFILE
@given(problem=updates(most_switches=14, classes=1, single=False))
def test_rounds_are_free_of_loops_and_no_later_change_fits(problem: Update) -> None:
    slots = problem.slots
    rounds = find_rounds(as_network(problem), slots.changes).of_slot
    names = problem.switch_index
    now, after = hops_of(problem.now, "c0"), hops_of(problem.next, "c0")

    def has_loop(number: int, extra: int = -1) -> bool:
        union = nx.DiGraph()
        for slot, index in enumerate(names[slots.switch].tolist()):
            if rounds[slot] >= number or slots.same[slot]:
                union.add_edges_from((index, hop) for hop in now[index])
            if 0 < rounds[slot] <= number or slot == extra:
                union.add_edges_from((index, hop) for hop in after[index])
        return not nx.is_directed_acyclic_graph(union)

    for number in range(1, int(rounds.max(initial=0)) + 1):
        assert not has_loop(number)
        assert all(has_loop(number, later) for later in np.flatnonzero(rounds > number).tolist())


@pytest.mark.slow
@PROFILE
@given(problem=updates(most_switches=5, classes=1, single=False))
def test_the_formal_order_has_the_fewest_rounds(problem: Update) -> None:
    if not problem.slots.changes.any():
        return
    changed = int((~problem.slots.same).sum())
    model = from_pyomo(order_formulation(problem, 0, changed))
    solution = planner.backends.solve(model, Options())
    assert solution.objective == pytest.approx(fewest_rounds(problem, problem.class_index[0]))


@pytest.mark.parametrize("switches", [5, 40])
def test_a_line_that_turns_around_takes_a_round_for_each_switch(switches: int) -> None:
    problem = generators.zigzag(switches=switches)
    decision = SYSTEM.design("ordered").run(problem)
    assert decision.proof.objective == switches - 1
    assert decision.proof.bound == switches - 1
    assert rounds(problem, "two_phase_changed") == 3


@pytest.mark.parametrize("switches", [5, 40])
def test_switches_that_no_packet_reaches_change_at_once(switches: int) -> None:
    """The line that turns around, with packets that enter at the first switch only."""
    decision = SYSTEM.design("ordered").run(generators.zigzag(switches=switches, first_only=True))
    assert decision.proof.objective == 2
    assert decision.proof.bound == 2
    assert decision.plan is not None
    assert not len(check(generators.zigzag(switches=switches, first_only=True), decision.plan))


@pytest.mark.slow
def test_rounds_filled_greedily_may_be_more_than_needed() -> None:
    problem = planner.load("updates/greedy_order").make_problem()
    assert isinstance(problem, Update)
    assert fewest_rounds(problem, problem.class_index[0]) == 3
    assert rounds(problem, "ordered") == 4
    exact = SYSTEM.design("ordered_exact").run(problem).proof
    assert exact.objective == exact.bound == 3


def pairs(count: int, seed: int, **given: float) -> Update:
    return generators.reweigh(name="sndlib/abilene", classes="pairs", count=count, seed=seed, **given)


@pytest.mark.parametrize("seed", range(4))
def test_batches_against_every_assignment_and_the_formal_model(seed: int) -> None:
    problem = pairs(9, seed, headroom=0.25)
    needs = find_needs(problem)
    fewest = fewest_batches(needs.during.toarray(), needs.after.toarray(), needs.free)
    decision = SYSTEM.design("batches_exact").run(problem)
    assert decision.plan is not None
    if fewest is None:
        assert measure(problem, decision.plan, None)["overflow_rules"] > 0
        return
    assert decision.proof.objective == fewest
    assert decision.proof.bound == fewest
    joint = find_needs(problem, links=True)
    fewest = fewest_batches(joint.during.toarray(), joint.after.toarray(), joint.free)
    solution = planner.backends.solve(from_pyomo(formulation(problem)), Options())
    assert solution.objective == pytest.approx(fewest)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_prices_bound_the_excess_of_the_linear_program(batches: int) -> None:
    problem = pairs(40, 3, headroom=0.02)
    needs = find_needs(problem)
    bound = Prices(needs, batches).improve(300)
    solution = planner.backends.solve(build_program(needs, batches), Options())
    assert solution.objective is not None
    assert bound <= solution.objective + 1e-9


def test_stuck_classes_are_in_no_batch() -> None:
    """Against the fewest batches by brute force: none exist where classes are stuck."""
    is_stuck = []
    for seed in range(12):
        needs = find_needs(pairs(5, seed, headroom=0.0))
        is_stuck.append(len(find_stuck(needs)) > 0)
        if is_stuck[-1]:
            assert fewest_batches(needs.during.toarray(), needs.after.toarray(), needs.free) is None
    assert any(is_stuck)
    assert not all(is_stuck)


def test_space_for_stuck_classes_is_named_and_is_enough() -> None:
    """The reason names classes, a switch, and a size with which the same design finds batches."""
    count = 0
    for seed in range(4):
        problem = pairs(5, seed, headroom=0.0)
        proof = SYSTEM.design("batches").run(problem).proof
        needs = find_needs(problem)
        stuck = problem.class_index[needs.classes[find_stuck(needs)]]
        assert bool(proof.reasons) == (len(stuck) > 0)
        if not proof.reasons:
            continue
        count += 1
        assert "tables lack space" in proof.reasons[0]
        assert f"'{stuck[0]}'" in proof.reasons[0]
        more = find_shortage(needs)
        larger = needs._replace(free=needs.free + more)
        assert not len(find_stuck(larger))
        result = fewest_batches(larger.during.toarray(), larger.after.toarray(), larger.free)
        if "would be enough" in proof.reasons[1]:
            assert result is not None
            switch = problem.switch_index[np.flatnonzero(np.isfinite(problem.rule_capacity))[more.argmax()]]
        assert f"rules at {switch} (" in proof.reasons[1]
    assert count


def test_more_space_never_takes_more_batches() -> None:
    result = []
    for headroom in (0.05, 0.1, 0.2, 0.4, 1.0):
        problem = adjust(pairs(60, 1), table_headroom=headroom)
        decision = SYSTEM.design("batches_exact").run(problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        result.append(measure(problem, decision.plan, None)["batches"])
    assert result == sorted(result, reverse=True)
    assert result[-1] == 1


@pytest.mark.parametrize(("slack", "seed"), [(0.05, 1), (0.1, 2), (0.3, 3)])
def test_shares_without_overload_against_the_formal_model(slack: float, seed: int) -> None:
    problem = pairs(20, seed, slack=slack)
    for moves in (2, 3):
        formal = planner.backends.solve(from_pyomo(share_formulation(problem, moves)), Options())
        fast = planner.backends.solve(build_model(problem, most_moves=moves), Options())
        assert fast.objective == pytest.approx(formal.objective, abs=1e-7)
    shares = find_shares(problem, 12, Options())
    assert shares.excess <= 1e-7
    decision = SYSTEM.design("congestion_free").run(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    result = SYSTEM.design("optimum").run(problem)
    if result.proof.bound is not None and result.proof.objective is not None:
        assert len(shares.share) - 1 <= result.proof.objective or shares.least >= 2


@pytest.mark.slow
@PROFILE
@given(problem=updates(classes=3))
def test_an_update_back_takes_as_many_rounds(problem: Update) -> None:
    if not (problem.enters_now & problem.enters_next & ~problem.loses_ingress).all():
        return
    back = adjust(problem, back=True)
    if (back.entering == problem.entering).all() and not back.loses_ingress.any():
        assert rounds(problem, "ordered_exact") == rounds(back, "ordered_exact")


def test_flows_keep_their_replica() -> None:
    problem = generators.server_move(ingresses=4, flows=1000)
    decision = SYSTEM.design("per_flow").run(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    harmonic = (1 / np.arange(1, problem.classes["flows"].max() + 1)).sum()
    seconds = measure(problem, decision.plan, None)["seconds"]
    assert seconds is not None
    assert seconds > 10.0 * harmonic
    hasty = SYSTEM.design("two_phase_changed").run(problem)
    assert hasty.plan is not None
    assert set(check(problem, hasty.plan).frame["limit"]) == {"flows"}


@pytest.mark.parametrize("space", [3, 7, 40])
def test_old_rules_are_divided_so_that_the_update_ends_soonest(space: int) -> None:
    """Against every number of rules of two classes that share an ingress, by the check alone."""
    moved = generators.server_move(ingresses=2, flows=20, flow_life_s=1.0)
    names = moved.switches["switch"]
    problem = replace(
        moved,
        classes=moved.classes.assign(ingress="edge1", flows=[6.0, 4.0]),
        now=moved.now.assign(switch=moved.now["switch"].replace("edge2", "edge1")),
        next=moved.next.assign(switch=moved.next["switch"].replace("edge2", "edge1")),
        switches=moved.switches.assign(rule_capacity=np.where(names == "edge1", float(space), np.nan)),
    )
    decision = SYSTEM.design("per_flow").run(problem)
    plan = decision.plan
    assert plan is not None
    tables = plan.to_tables()
    steps, operations = tables["steps"], tables["operations"].assign(parts=1.0)
    length = np.array(steps["end_s"] - steps["start_s"])
    is_split = operations["action"] == "split"
    split = int(operations["step"][is_split].iloc[0])
    lower = np.inf
    for parts in itertools.product(range(1, 7), range(1, 5)):
        operations.loc[is_split, "parts"] = np.array(parts, dtype=float)
        waits = [expiry_lives(flows, np.array([share])) for flows, share in zip((6, 4), parts, strict=True)]
        length[split - 1], length[split] = sum(parts) * 2.5e-3, max(wait or 1e9 for wait in waits)
        end = np.cumsum(length)
        timed = steps.assign(end_s=end, start_s=end - length)
        other = from_tables(problem, {"steps": timed, "operations": operations, "shares": plan.shares})
        if end[-1] < lower and not len(check(problem, other)):
            lower = float(end[-1])
    if np.isfinite(lower):
        assert not len(check(problem, plan))
        assert decision.proof.status is Status.OPTIMAL
        assert decision.proof.objective == pytest.approx(lower)
    else:
        assert set(check(problem, plan).frame["limit"]) == {"tables"}


def test_a_rule_that_many_flows_match_does_not_expire() -> None:
    problem = generators.server_move(ingresses=2, flows=100)
    plan = SYSTEM.design("per_flow").run(problem).plan
    assert plan is not None
    tables = {name: frame for name, frame in plan.to_tables().items() if name != "tables"}
    coarse = {**tables, "operations": tables["operations"].assign(parts=1.0)}
    assert set(check(problem, from_tables(problem, coarse)).frame["limit"]) == {"flows"}
    wrong = {**tables, "operations": tables["operations"].assign(parts=2.0)}
    with pytest.raises(PlanRejected, match="divides no rule; only 'split' does"):
        from_tables(problem, wrong)


@pytest.mark.parametrize("seed", [1, 2])
def test_more_space_than_a_plan_needs_keeps_its_batches(seed: int) -> None:
    problem = adjust(pairs(60, seed, slack=0.05), table_headroom=0.05)
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.proof.objective is not None
    for link in range(0, len(problem.links), 5):
        wide = problem.capacity_mbps * np.where(np.arange(len(problem.links)) == link, 2.0, 1.0)
        wider = replace(problem, links=problem.links.assign(capacity_mbps=wide))
        again = SYSTEM.design("optimum").run(wider, previous=decision)
        assert again.plan is not None
        assert not len(check(wider, again.plan).of_limits(again.guarantees))
        assert again.proof.objective is not None
        assert again.proof.objective <= decision.proof.objective
