"""Updates that begin while another one is under way."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import planner
from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models import updates
from planner_models.updates.plan.interruption import interrupt, read
from planner_models.updates.problem.generators import zigzag
from tests.models.updates.designs.test_intermediate_paths import EXCHANGE

COLUMNS = ["class", "switch", "next_hop"]


def rules(frame: pd.DataFrame) -> set[tuple[str, ...]]:
    return set(frame[COLUMNS].itertuples(index=False, name=None))


def test_after_each_step_of_a_two_phase_update() -> None:
    problem = zigzag(switches=6)
    plan = planner.solve(problem, design="two_phase_changed").plan
    kinds = plan.steps["kind"].tolist()
    for done in range(len(kinds) + 1):
        update = interrupt(problem, plan, done, problem.now)
        expected = problem.next if "flip" in kinds[:done] else problem.now
        assert rules(update.now) == rules(expected)
        assert rules(update.next) == rules(problem.now)
        back = planner.solve(update, design="two_phase_changed")
        assert back.metrics["broken_classes"] == 0


def test_in_place_every_switch_has_the_rule_of_its_own() -> None:
    problem = zigzag(switches=6)
    plan = planner.solve(problem, design="ordered").plan
    update = interrupt(problem, plan, 1, problem.next)
    changed = set(plan.operations.loc[plan.operations["step"] == 1, "switch"])
    for row in update.now.itertuples(index=False):
        source = problem.next if row.switch in changed else problem.now
        assert (row[0], row.switch, row.next_hop) in rules(source)
    assert planner.solve(update, design="ordered").metrics["rounds"] == plan.rounds - 1


def test_on_an_intermediate_path() -> None:
    plan = planner.solve(EXCHANGE, design="intermediate").plan
    first = plan.steps.loc[plan.steps["stage"] == 1]
    update = interrupt(EXCHANGE, plan, len(first), EXCHANGE.now)
    assert {("f1", "a", "e"), ("f1", "e", "d")} <= rules(update.now)
    assert rules(update.now) == {("f1", "a", "e"), ("f1", "e", "d"), ("f2", "a", "c"), ("f2", "c", "d")}


def test_rules_that_are_left_are_counted() -> None:
    problem = zigzag(switches=6)
    plan = planner.solve(problem, design="two_phase_changed").plan
    notes: list[str] = []
    with observe_notes(notes.append):
        interrupt(problem, plan, 1, problem.now)  # installed, and not used
    added = int((plan.operations["step"] == 1).sum())
    assert notes == [f"assumed: {added} rules of the interrupted update that no packet uses are deleted"]


def test_steps_that_the_plan_does_not_have() -> None:
    plan = planner.solve(EXCHANGE, design="intermediate").plan
    with pytest.raises(InputError, match="done is 99, the plan has 9 steps"):
        interrupt(EXCHANGE, plan, 99, EXCHANGE.now)


def test_shares_of_packets_are_refused() -> None:
    plan = planner.solve(EXCHANGE, design="congestion_free").plan
    split = plan.steps.index[plan.steps["kind"] == "split"][0] + 1
    with pytest.raises(InputError, match="meet rules of both configurations"):
        interrupt(EXCHANGE, plan, int(split), EXCHANGE.now)


def test_files(tmp_path: Path) -> None:
    run = planner.solve(EXCHANGE, design="intermediate")
    for folder, tables in (
        ("running", EXCHANGE.to_tables()),
        ("plan", run.plan.to_tables()),
        ("target", {"next": EXCHANGE.now}),
    ):
        (tmp_path / folder).mkdir()
        for name, frame in tables.items():
            frame.to_csv(tmp_path / folder / f"{name}.csv", index=False)
    update = read(path=tmp_path / "running", plan=tmp_path / "plan", done=4, target=tmp_path / "target")
    assert {("f1", "a", "e"), ("f1", "e", "d")} <= rules(update.now)
    assert updates.SYSTEM.problem.sources["interrupted"] is read
