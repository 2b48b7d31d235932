"""Check of updates: every mixture against enumeration, times, tables, and what is no plan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError, PlanRejected
from planner_models.updates import SYSTEM, Update, UpdatePlan, check
from planner_models.updates.designs.what_if import find_mixture
from planner_models.updates.plan.check import evaluate
from planner_models.updates.plan.plan import Step, from_tables, make_plan
from planner_models.updates.plan.replay import ADD, HOLES, LOOPS, MIXES, REMOVE, SWAP
from planner_models.updates.problem import generators
from tests.models.updates.updates import in_place_mixtures, updates, walk_all


def in_random_rounds(problem: Update, seed: int) -> UpdatePlan:
    """Return a plan in place in up to three random rounds, whatever it breaks."""
    slots = problem.slots
    changed = np.flatnonzero(~slots.same)
    turn = np.random.default_rng(seed).integers(3, size=len(changed))
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    action = np.where(has_now & has_next, SWAP, np.where(has_next, ADD, REMOVE))
    steps = [Step("swap", changed[turn == index], action[changed[turn == index]], 1.0) for index in range(3)]
    return make_plan(problem, steps)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(problem=updates(), seed=st.integers(0, 1000))
def test_the_union_finds_exactly_the_mixtures_that_enumeration_finds(problem: Update, seed: int) -> None:
    plan = in_random_rounds(problem, seed)
    evaluation = evaluate(problem, plan)
    bits = {
        (int(s), int(c)): int(b)
        for s, c, b in zip(evaluation.steps, evaluation.classes, evaluation.outcome.bits, strict=True)
    }
    numbers = {int(step): index for index, step in enumerate(sorted(plan.operations["step"].unique()))}
    order = sorted({int(step) for step in evaluation.steps})
    for index, name in enumerate(problem.class_index):
        met: dict[int, set[str]] = {}
        for step, is_next in in_place_mixtures(problem, plan, name):
            met.setdefault(step, set()).update(walk_all(problem, name, is_next))
        for step, kinds in met.items():
            result = bits[order[numbers[step]], index]
            assert bool(result & LOOPS) == ("loop" in kinds)
            if "loop" not in kinds:
                assert bool(result & HOLES) == ("lost" in kinds)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(problem=updates(), seed=st.integers(0, 1000))
def test_mixtures_that_are_named_exist_and_random_orders_meet_no_others(problem: Update, seed: int) -> None:
    evaluation = evaluate(problem, in_random_rounds(problem, seed))
    loops, holes, mixes = evaluation.samples
    for group in range(len(evaluation.steps)):
        for kind, share in ((LOOPS, loops), (HOLES, holes), (MIXES, mixes)):
            possible = bool(evaluation.outcome.bits[group] & kind)
            if kind != MIXES or not evaluation.outcome.bits[group] & LOOPS:
                assert (find_mixture(evaluation, group, kind) is not None) == possible
                assert possible or share[group] == 0


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(problem=updates(classes=3))
def test_two_phases_never_mix(problem: Update) -> None:
    for name in ("two_phase", "two_phase_changed", "extension_first", "batches", "congestion_free"):
        decision = SYSTEM.design(name).run(problem)
        assert decision.plan is not None
        evaluation = evaluate(problem, decision.plan)
        assert not evaluation.outcome.bits.any(), name
        assert not np.concatenate(evaluation.samples).any()
        assert not len(check(problem, decision.plan))


def test_the_loop_of_the_diamond_is_named() -> None:
    problem = generators.small()
    decision = SYSTEM.design("one_shot").run(problem)
    assert decision.plan is not None
    evaluation = evaluate(problem, decision.plan)
    group = int(np.flatnonzero((evaluation.outcome.bits & LOOPS) > 0)[0])
    mixture = find_mixture(evaluation, group, LOOPS)
    assert mixture is not None
    assert mixture.way[0] == mixture.way[-1]
    assert {"b", "c"} <= set(mixture.way)
    assert "packets loop along" in mixture.describe()


def two_phase(problem: Update) -> UpdatePlan:
    plan = SYSTEM.design("two_phase_changed").run(problem).plan
    assert plan is not None
    return plan


def test_rules_deleted_before_packets_have_left_are_found() -> None:
    problem = generators.small()
    plan = two_phase(problem)
    tables = plan.to_tables()
    steps = tables["steps"].copy()
    early = steps["kind"] == "delete"
    gone = float((steps["end_s"] - steps["start_s"])[steps["kind"] == "drain"].iloc[0])
    steps.loc[steps["kind"] == "drain", "end_s"] -= gone
    steps.loc[early, ["start_s", "end_s"]] -= gone
    hasty = from_tables(problem, {**tables, "steps": steps})
    violations = check(problem, hasty)
    assert set(violations.frame["limit"]) >= {"drain"}
    with pytest.raises(InputError, match="drain_s is 0, must be at least"):
        SYSTEM.design("two_phase").run(problem, parameters={"drain_s": 0.0})


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("operations", "class", "nobody", "has no rule at switch"),
        ("operations", "action", "remove", "removes a rule"),
        ("operations", "step", 99.0, "there is no step 99"),
        ("steps", "end_s", 50.0, "starts before step 1 ends"),
        ("tables", "rules", 77.0, "are not the rules that the operations leave"),
    ],
)
def test_what_is_no_plan_is_refused(table: str, column: str, value: object, words: str) -> None:
    problem = generators.small()
    tables = {name: frame.copy() for name, frame in two_phase(problem).to_tables().items()}
    values = tables[table][column].astype(object)
    values.iloc[0] = value
    tables[table][column] = values.astype(tables[table][column].dtype)
    if table != "tables":  # found from the operations where a plan does not say it
        del tables["tables"]
    with pytest.raises(PlanRejected, match=words):
        evaluate(problem, from_tables(problem, tables))


def test_tables_hold_old_and_new_rules_during_two_phases() -> None:
    """Foster et al. 2013, IV.A: internal switches hold the rules of both; ingresses replace theirs."""
    problem = generators.zigzag(switches=6)
    held = two_phase(problem).tables
    middle = held[held["switch"].isin(["s2", "s3"]) & (held["step"] == 1)]
    assert middle["rules"].tolist() == [2.0, 2.0]
    assert isinstance(held, pd.DataFrame)
