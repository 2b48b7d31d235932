"""A next update that begins before the last one has ended: the rules that packets meet by then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Ints
from planner.contract.notes import add_note
from planner.errors import InputError
from planner.formatting import counted
from planner.io.table_files import find_tables, read_tables
from planner_models.updates.plan.check import evaluate
from planner_models.updates.plan.plan import (
    PLAN_TABLES,
    Stage,
    UpdatePlan,
    from_tables,
    read_operations,
    read_stages,
    stamped_classes,
)
from planner_models.updates.plan.replay import ENTERS_NEW, ENTERS_OLD
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import NEXT, OPTIONAL_TABLES, TABLES

RULE_COLUMNS = ["class", "switch", "next_hop", "share"]
OPTIONAL_PLAN_TABLES = ("tables", "shares", "paths")


def read(
    *,
    path: Annotated[Path, Field(description="folder with the tables of the update that is under way")],
    plan: Annotated[Path, Field(description="folder with the tables of its plan, or plan/ with them")],
    done: Annotated[
        int, Field(ge=0, le=10**9, description="steps of the plan that have been made, drains included")
    ],
    target: Annotated[Path, Field(description="folder with the table next: the rules that are wanted now")],
) -> Update:
    """Return the update from the state in which another one is after some steps, to other rules.

    raises  InputError for steps that the plan does not have, and where packets of a class meet both rules
    """
    problem = Update.from_tables(read_tables(TABLES, find_tables(TABLES, path, OPTIONAL_TABLES)))
    folder = plan / "plan" if (plan / "plan").is_dir() else plan
    tables = read_tables(PLAN_TABLES, find_tables(PLAN_TABLES, folder, OPTIONAL_PLAN_TABLES))
    wanted = read_tables((NEXT,), find_tables((NEXT,), target))[NEXT.name]
    return interrupt(problem, from_tables(problem, tables), done, wanted)


def interrupt(problem: Update, plan: UpdatePlan, done: int, target: pd.DataFrame) -> Update:
    """Return the update to the rules `target` from the state after some steps of a plan.

    Rules of the plan that no packet uses then are deleted first, which loses no packet; a note counts them.

    raises  InputError for steps that the plan does not have, and where packets of a class meet both rules
    """
    if done > len(plan.steps):
        raise InputError(f"done is {done}, the plan has {counted(len(plan.steps), 'steps')}")
    stage = [each for each in read_stages(problem, plan) if each.first_step <= done][-1]
    now, unused = _find_rules(stage, done - stage.first_step)
    if unused:
        rules = counted(unused, "rules")
        add_note(f"assumed: {rules} of the interrupted update that no packet uses are deleted")
    columns = [name for name in RULE_COLUMNS if name in target]
    return replace(problem, now=now, next=target[columns])


def _find_rules(stage: Stage, done: int) -> tuple[pd.DataFrame, int]:
    """Return the rules that packets meet after some steps of a stage, and the number of the others there."""
    problem, plan = stage.problem, stage.plan
    steps = plan.steps[plan.steps["step"] <= done]
    if not len(steps):
        return problem.now[RULE_COLUMNS], 0
    cut = UpdatePlan(
        steps=steps,
        operations=plan.operations[plan.operations["step"] <= done].reset_index(drop=True),
        tables=plan.tables,
        shares=plan.shares[plan.shares["step"] <= done].reset_index(drop=True),
    )
    state, slots = evaluate(problem, cut).state, problem.slots
    is_stamped = stamped_classes(problem, read_operations(problem, plan))
    is_new = _classes_on_next(problem, state.entry, is_stamped)
    uses_new = np.where(is_stamped[slots.owner], is_new[slots.owner], state.new)
    uses_old = np.where(is_stamped[slots.owner], ~is_new[slots.owner], state.old & ~state.new)
    rows = [
        _select(problem, problem.next, uses_new & slots.next.has_rule()),
        _select(problem, problem.now, uses_old & slots.now.has_rule()),
    ]
    there = state.old.astype(np.int64) + (state.new & ~slots.same)
    needed = (uses_new & slots.next.has_rule()) | (uses_old & slots.now.has_rule())
    return pd.concat(rows, ignore_index=True), int(np.maximum(there - needed, 0).sum())


def _classes_on_next(problem: Update, entry: Ints, is_stamped: Bools) -> Bools:
    """Return whether packets of each class enter with the new version, (C,)."""
    slots = problem.slots
    entering = problem.entering & is_stamped[slots.owner]
    count = len(problem.classes)
    new = np.bincount(slots.owner[entering & (entry == ENTERS_NEW)], minlength=count)
    old = np.bincount(slots.owner[entering & (entry == ENTERS_OLD)], minlength=count)
    total = np.bincount(slots.owner[entering], minlength=count)
    mixed = np.flatnonzero(((new > 0) & (old > 0)) | (new + old < total))
    if len(mixed):
        raise InputError(
            f"done: packets of class '{problem.class_index[mixed[0]]}' meet rules of both configurations "
            "after this step; take one before or after"
        )
    is_new: Bools = new > 0
    return is_new


def _select(problem: Update, rules: pd.DataFrame, mask: Bools) -> pd.DataFrame:
    """Return the rows of rules at the slots of a mask."""
    slots = problem.slots
    chosen = pd.MultiIndex.from_arrays(
        [problem.class_index[slots.owner[mask]], problem.switch_index[slots.switch[mask]]]
    )
    pairs = pd.MultiIndex.from_arrays([rules["class"], rules["switch"]])
    return rules.loc[pairs.isin(chosen), RULE_COLUMNS]
