"""The plan of system `updates`: steps, and the changes of rules in each of them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.errors import InputError, PlanRejected
from planner_models.updates.plan.replay import ACTIONS, ADD, FLIP, REMOVE, SPLIT, SWAP, Network, Operations
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import MOST_FLOWS
from planner_models.updates.problem.tables import find_codes

KINDS: Final = ("install", "flip", "swap", "split", "delete", "drain")
DRAIN: Final = "drain"
S_PER_MS: Final = 1e-3

_STEP: Final = number("number of the step, from 1", at_least=1, whole=True)
STEPS: Final = Table(
    name="steps",
    about="a step; its changes take effect in any order, and all of them before the next step",
    columns={
        "step": _STEP,
        "kind": choice(
            "install: rules are added; flip: ingresses stamp the new version; swap: rules take "
            "the place of others; split: ingresses stamp a share; delete: rules are removed; drain: "
            "packets leave",
            KINDS,
        ),
        "start_s": number("start, s", at_least=0),
        "end_s": number("end, s", at_least=0),
        "stage": number(
            "number of the update that it belongs to, from 1, where classes take intermediate paths",
            at_least=1,
            whole=True,
            optional=True,
        ),
    },
    key=("step",),
    may_be_empty=True,
)
OPERATIONS: Final = Table(
    name="operations",
    about="a change of the rule of a class at a switch",
    columns={
        "step": _STEP,
        "switch": label("the switch"),
        "class": label("the class"),
        "action": choice(
            "add: the next rule; remove: the present one; swap: the next in place of the "
            "present; flip: packets that enter get the new version; split: a share of them does",
            ACTIONS,
        ),
        "parts": number(
            "of a split: rules in place of the present one, each for an equal part of its flows, until they "
            "have ended; absent: 1",
            at_least=1,
            at_most=MOST_FLOWS,
            whole=True,
            optional=True,
        ),
    },
    key=("step", "switch", "class"),
    may_be_empty=True,
)
RULES_HELD: Final = Table(
    name="tables",
    about="most rules that a switch holds during a step",
    columns={
        "step": _STEP,
        "switch": label("the switch"),
        "rules": number("rules", at_least=0, whole=True),
    },
    key=("step", "switch"),
    may_be_empty=True,
)
SHARES: Final = Table(
    name="shares",
    about="part of a class's packets that get the new version after a step",
    columns={
        "step": _STEP,
        "class": label("the class"),
        "share": number("part of the packets", at_least=0, at_most=1, share=True),
    },
    key=("step", "class"),
    may_be_empty=True,
)
PATHS: Final = Table(
    name="paths",
    about="a rule of a class that takes an intermediate path after a stage; other classes that a stage moves "
    "take their next path",
    columns={
        "stage": number("number of the stage, from 1", at_least=1, whole=True),
        "class": label("the class"),
        "switch": label("switch that holds the rule"),
        "next_hop": label("switch to which the rule sends packets"),
    },
    key=("stage", "class", "switch"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (STEPS, OPERATIONS, RULES_HELD, SHARES, PATHS)


@dataclass(frozen=True, kw_only=True, eq=False)
class UpdatePlan:
    """Steps of an update.

    steps       step, kind, start_s, end_s, stage?
    operations  step, switch, class, action, parts?
    tables      step, switch, rules: of steps with operations
    shares      step, class, share: of steps that split the packets of a class
    paths       stage, class, switch, next_hop: intermediate paths, see `stages`; None where there are none
    """

    steps: pd.DataFrame
    operations: pd.DataFrame
    tables: pd.DataFrame
    shares: pd.DataFrame
    paths: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)

    @property
    def parts(self) -> Floats:
        """(M,) rules into which each operation divides a rule; 1 for those that divide none."""
        if "parts" not in self.operations:
            return np.ones(len(self.operations))
        return self.operations["parts"].to_numpy(float)

    @cached_property
    def rounds(self) -> int:
        """Number of steps with operations."""
        return int(self.operations["step"].nunique())


class Step(NamedTuple):
    """One step, as a design makes it.

    kind    one of `KINDS`
    slot    (M,) slots whose rules change
    action  place in `ACTIONS`, one for all or (M,)
    wait_s  time after it until packets on the way have left; 0 for none
    share   of the classes whose packets are split, by class
    parts   rules into which a split divides each present rule, one for all or (M,)
    """

    kind: str
    slot: Ints
    action: int | Ints
    wait_s: float = 0.0
    share: Mapping[int, float] = {}
    parts: int | Ints = 1


def make_plan(problem: Update, steps: Sequence[Step]) -> UpdatePlan:
    """Return the plan of steps, with times from the switches' work; empty steps are left out."""
    slots = problem.slots
    rows: list[tuple[str, float, float]] = []
    made: list[tuple[Ints, ...]] = []
    shares: list[tuple[int, int, float]] = []
    time_s = 0.0
    for step in steps:
        if not len(step.slot):
            continue
        number_ = len(rows)
        end_s = time_s + work_s(problem, step.slot, step.parts)
        rows.append((step.kind, time_s, end_s))
        count = len(step.slot)
        action, parts = (
            np.broadcast_to(value, count).astype(np.int64) for value in (step.action, step.parts)
        )
        made.append((np.full(count, number_), step.slot, action, parts))
        shares += [(number_, class_id, share) for class_id, share in step.share.items()]
        time_s = end_s
        if step.wait_s > 0:
            rows.append((DRAIN, end_s, end_s + step.wait_s))
            time_s = end_s + step.wait_s
    if rows and rows[-1][0] == DRAIN:
        rows.pop()
    empty = np.zeros(0, dtype=np.int64)
    ops = _sorted(problem, Operations(*map(np.concatenate, zip([empty] * 4, *made, strict=True))))
    names = pd.Index(problem.switch_index), pd.Index(problem.class_index)
    frame = pd.DataFrame(rows, columns=["kind", "start_s", "end_s"])
    frame = frame.astype({"kind": "str", "start_s": float, "end_s": float})
    frame.insert(0, "step", np.arange(1.0, len(frame) + 1))
    return UpdatePlan(
        steps=frame,
        operations=pd.DataFrame(
            {
                "step": ops.step + 1.0,
                "switch": pd.Categorical.from_codes(slots.switch[ops.slot], names[0]).astype("str"),
                "class": pd.Categorical.from_codes(slots.owner[ops.slot], names[1]).astype("str"),
                "action": pd.Categorical.from_codes(ops.action, pd.Index(ACTIONS)).astype("str"),
                **({"parts": ops.parts.astype(float)} if (ops.parts > 1).any() else {}),
            }
        ),
        tables=_tabulate(problem, count_rules(problem, ops)),
        shares=pd.DataFrame(
            {
                "step": [row[0] + 1.0 for row in shares],
                "class": pd.array([names[1][row[1]] for row in shares], dtype="str"),
                "share": [float(row[2]) for row in shares],
            }
        ),
    )


def work_s(problem: Update, slot: Ints, parts: int | Ints = 1) -> float:
    """Return the time in which switches change these slots, s; each writes its rules in turn.

    parts  rules into which each is divided, one for all or (M,)
    """
    slots = problem.slots
    written = slots.rules[slot] * parts
    entries = np.bincount(slots.switch[slot], weights=written, minlength=len(problem.switches))
    return float((entries * problem.rule_ms).max(initial=0.0)) * S_PER_MS


def _sorted(problem: Update, ops: Operations) -> Operations:
    order = np.lexsort((ops.slot, problem.slots.owner[ops.slot], ops.step))
    return Operations(*(array[order] for array in ops))


def _tabulate(problem: Update, held: dict[int, Ints]) -> pd.DataFrame:
    names = problem.switch_index.to_numpy(object)
    return pd.DataFrame(
        {
            "step": np.repeat(np.array(list(held), dtype=float) + 1, len(names)),
            "switch": pd.array(np.tile(names, len(held)), dtype="str"),
            "rules": np.concatenate([*held.values(), np.zeros(0)]).astype(float),
        }
    )


def count_rules(problem: Update, ops: Operations) -> dict[int, Ints]:
    """Return the most rules that each switch holds during each step with operations, (S,) by step.

    Within a step additions may come first. Steps without operations keep what they have. A divided rule keeps
    its parts until the rule changes again.
    """
    slots, switches = problem.slots, len(problem.switches)
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    held = problem.rules_now.astype(np.int64).copy()
    is_new = np.zeros(len(has_now), dtype=bool)
    divided = np.zeros(len(has_now), dtype=np.int64)  # rules of a slot beyond those of one part
    peaks: dict[int, Ints] = {}
    if not len(ops.step):
        return peaks
    starts = np.flatnonzero(np.r_[True, ops.step[1:] != ops.step[:-1]])
    for first, last in zip(starts, [*starts[1:], len(ops.step)], strict=True):
        slot, action = ops.slot[first:last], ops.action[first:last]
        is_only = problem.ingress[slots.owner[slot]] == slots.switch[slot]
        takes_place = (action == SWAP) | ((action == FLIP) & is_only & ~is_new[slot])
        arrives = (action == ADD) | ((action == SPLIT) & is_only & has_next[slot] & ~is_new[slot])
        adds = arrives | (takes_place & has_next[slot])
        removes = (action == REMOVE) | (takes_place & has_now[slot])
        weight = slots.rules[slot]
        is_divided = (action == SPLIT) & has_now[slot]
        more = weight * (ops.parts[first:last] - 1) * is_divided - divided[slot]
        # a rule that takes the place of another needs no space of its own
        extra = weight * (adds & ~(takes_place & has_now[slot])) + np.maximum(more, 0)
        peak = held + np.bincount(slots.switch[slot], weights=extra, minlength=switches).astype(np.int64)
        change = weight * (adds.astype(np.int64) - removes) + more
        held = held + np.bincount(slots.switch[slot], weights=change, minlength=switches).astype(np.int64)
        is_new[slot[adds]] = True
        divided[slot] += more
        peaks[int(ops.step[first])] = peak
    return peaks


def from_tables(problem: Update, tables: Mapping[str, pd.DataFrame]) -> UpdatePlan:
    """Return the plan in its tables, made here or elsewhere; `tables` and `shares` may be left out.

    raises  InputError with every fault of the tables; PlanRejected where they are no plan: see
    `read_operations`"""
    frames = validate_tables(PLAN_TABLES, tables, required=(STEPS.name, OPERATIONS.name))
    if "shares" not in frames:
        frames["shares"] = pd.DataFrame({"step": [], "class": pd.array([], dtype="str"), "share": []})
    plan = UpdatePlan(**{"tables": pd.DataFrame(), **frames})
    counted = tabulate_rules(problem, plan)
    if "tables" in frames:
        stated = frames["tables"].sort_values(["step", "switch"], ignore_index=True)
        ours = counted.sort_values(["step", "switch"], ignore_index=True)
        if len(stated) != len(ours) or not all(
            (stated[name].to_numpy() == ours[name].to_numpy()).all() for name in ours
        ):
            raise PlanRejected("tables: are not the rules that the operations leave at the switches")
    else:
        frames["tables"] = counted
    return UpdatePlan(**frames)


def tabulate_rules(problem: Update, plan: UpdatePlan) -> pd.DataFrame:
    """Return the most rules that each switch holds during each step, by the plan's operations, as a table."""
    held: dict[int, Ints] = {}
    for stage in read_stages(problem, plan):
        counted = count_rules(stage.problem, read_operations(stage.problem, stage.plan))
        held |= {stage.first_step + step: rules for step, rules in counted.items()}
    return _tabulate(problem, held)


class Stage(NamedTuple):
    """One of the updates of a plan, which follow one another; a plan without intermediate paths has one.

    problem     rules before and after it
    plan        its steps, from 1
    first_step  steps of the plan before it
    """

    problem: Update
    plan: UpdatePlan
    first_step: int


_STAGES: weakref.WeakKeyDictionary[UpdatePlan, tuple[Update, list[Stage]]] = weakref.WeakKeyDictionary()


def read_stages(problem: Update, plan: UpdatePlan) -> list[Stage]:
    """Return the updates of a plan in their order.

    After a stage, the classes that it changes have their path of the table `paths`, or else that of `next`.

    raises  PlanRejected for stages that are not numbered 1, 2, ... in the order of steps, and for a path of
            a class that its stage does not change, or that is no path
    """
    if plan.paths is None:
        return [Stage(problem, plan, 0)]
    cached = _STAGES.get(plan)
    if cached is not None and cached[0] is problem:
        return cached[1]
    steps = plan.steps.sort_values("step", kind="stable")
    stage_of = steps["stage"].to_numpy(float) if "stage" in steps else np.ones(len(steps))
    last = int(stage_of.max(initial=1.0))
    if (stage_of[:1] != 1).any() or not np.isin(np.diff(stage_of), (0, 1)).all():
        raise PlanRejected("steps: stages are not numbered 1, 2, ... in the order of steps")
    _require_changed(plan, dict(zip(steps["step"].tolist(), stage_of.tolist(), strict=True)))
    now, made = problem.now, []
    for number_ in range(1, last + 1):
        rows = np.flatnonzero(stage_of == number_)
        first = int(rows[0]) if len(rows) else 0
        own = _cut_stage(plan, steps.iloc[rows], first)
        after = problem.next if number_ == last else _configure(problem, plan, now, own, number_)
        try:
            update = make_stage(problem, now, after, set(own.operations["class"]))
        except InputError as error:
            raise PlanRejected(f"paths: stage {number_}: {error}") from None
        made.append(Stage(update, own, first))
        now = after
    _STAGES[plan] = problem, made
    return made


def make_stage(problem: Update, now: pd.DataFrame, after: pd.DataFrame, moved: set[str]) -> Update:
    """Return the update of one stage, from rules `now` to rules `after`, of the classes in `moved`.

    What links may carry is that of the whole update: no intermediate path may be an overload. Classes that
    the stage does not move need no waypoints in it.
    """
    classes = problem.classes
    stays = ~classes["class"].isin(moved)
    blank = {name: classes[name].mask(stays, "") for name in ("waypoints", "guarantee") if name in classes}
    update = replace(problem, now=now, next=after, classes=classes.assign(**blank))
    vars(update)["load_limit_mbps"] = problem.load_limit_mbps
    return update


def _require_changed(plan: UpdatePlan, stage_of_step: Mapping[float, float]) -> None:
    """Raise PlanRejected for a path of a class without an operation in its stage."""
    assert plan.paths is not None
    stages = plan.operations["step"].map(stage_of_step)
    changed = set(zip(stages.tolist(), plan.operations["class"].tolist(), strict=True))
    pairs = zip(plan.paths["stage"].tolist(), plan.paths["class"].tolist(), strict=True)
    for row, pair in enumerate(pairs):
        if pair not in changed:
            raise PlanRejected(f"paths row {row + 1}: stage {pair[0]:g} changes no rule of class '{pair[1]}'")


def _cut_stage(plan: UpdatePlan, steps: pd.DataFrame, first: int) -> UpdatePlan:
    """Return the steps of a stage as a plan of their own, numbered from 1."""
    numbers = set(steps["step"].tolist())

    def of_stage(frame: pd.DataFrame) -> pd.DataFrame:
        rows = frame[frame["step"].isin(numbers)]
        return rows.assign(step=rows["step"] - first).reset_index(drop=True)

    return UpdatePlan(
        steps=of_stage(steps).drop(columns="stage", errors="ignore"),
        operations=of_stage(plan.operations),
        tables=of_stage(plan.tables) if len(plan.tables) else plan.tables,
        shares=of_stage(plan.shares),
    )


def _configure(
    problem: Update, plan: UpdatePlan, now: pd.DataFrame, own: UpdatePlan, stage: int
) -> pd.DataFrame:
    """Return the rules after a stage, (class, switch, next_hop, share)."""
    assert plan.paths is not None
    changed = set(own.operations["class"])
    paths = plan.paths[plan.paths["stage"] == stage].drop(columns="stage").assign(share=1.0)
    directly = changed - set(paths["class"])
    parts = [now[~now["class"].isin(changed)], problem.next[problem.next["class"].isin(directly)], paths]
    return pd.concat([part[["class", "switch", "next_hop", "share"]] for part in parts], ignore_index=True)


def join_stages(plans: Sequence[UpdatePlan], paths: pd.DataFrame) -> UpdatePlan:
    """Return the plan of several updates, one after another, with their intermediate paths."""
    parts: dict[str, list[pd.DataFrame]] = {"steps": [], "operations": [], "tables": [], "shares": []}
    first, time_s = 0, 0.0
    for number_, plan in enumerate(plans, 1):
        for name, frames in parts.items():
            frame = getattr(plan, name)
            frames.append(frame.assign(step=frame["step"] + first))
        steps = parts["steps"][-1]
        shifted = steps.assign(start_s=steps["start_s"] + time_s, end_s=steps["end_s"] + time_s)
        parts["steps"][-1] = shifted.assign(stage=float(number_))
        first += len(plan.steps)
        time_s = float(shifted["end_s"].max()) if len(shifted) else time_s
    joined = {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}
    return UpdatePlan(**joined, paths=paths)


def read_operations(problem: Update, plan: UpdatePlan) -> Operations:
    """Return the operations of a plan, by step and class.

    raises  PlanRejected for steps that are not numbered in order of time, operations of a step that there is
            none of or that drains, and of a class and switch without a rule
    """
    steps = plan.steps.sort_values("step", kind="stable")
    number_ = steps["step"].to_numpy(float)
    start, end = (steps[name].to_numpy(float) for name in ("start_s", "end_s"))
    if (number_ != np.arange(1, len(steps) + 1)).any():
        raise PlanRejected("steps: are not numbered 1, 2, ...")
    late = np.flatnonzero(end < start - 1e-9)
    if len(late):
        raise PlanRejected(f"steps: step {late[0] + 1} ends before it starts")
    early = np.flatnonzero(start[1:] < end[:-1] - 1e-9)
    if len(early):
        raise PlanRejected(f"steps: step {early[0] + 2} starts before step {early[0] + 1} ends")
    frame = plan.operations
    step = frame["step"].to_numpy(float).astype(np.int64) - 1
    kinds = steps["kind"].to_numpy(object)
    for row in np.flatnonzero((step < 0) | (step >= len(steps)))[:1].tolist():
        raise PlanRejected(f"operations row {row + 1}: there is no step {step[row] + 1}")
    for row in np.flatnonzero(kinds[step] == DRAIN)[:1].tolist():
        raise PlanRejected(f"operations row {row + 1}: step {step[row] + 1} drains, and changes no rule")
    idle = set(np.flatnonzero(kinds != DRAIN).tolist()) - set(step.tolist())
    if idle:
        raise PlanRejected(f"steps: step {min(idle) + 1} has no operation")
    slot = find_slots(problem, frame)
    for row in np.flatnonzero(slot < 0)[:1].tolist():
        raise PlanRejected(
            f"operations row {row + 1}: class '{frame['class'].iloc[row]}' has no rule at switch "
            f"'{frame['switch'].iloc[row]}', neither now nor next"
        )
    action = pd.Categorical(frame["action"], categories=list(ACTIONS)).codes.astype(np.int64)
    parts = plan.parts
    for row in np.flatnonzero((parts > 1) & (action != SPLIT))[:1].tolist():
        raise PlanRejected(
            f"operations row {row + 1}: parts is {parts[row]:g}, but action '{ACTIONS[action[row]]}' divides "
            "no rule; only 'split' does"
        )
    return _sorted(problem, Operations(step, slot, action, parts.astype(np.int64)))


def find_slots(problem: Update, frame: pd.DataFrame) -> Ints:
    """Return the slot of the class and switch of each row, shape (n,); -1 where there is none."""
    slots = problem.slots
    owner, switch = problem.codes(frame["class"], frame["switch"])
    key = slots.owner * len(problem.switches) + slots.switch
    keys_sought = owner * len(problem.switches) + switch
    index = np.minimum(np.searchsorted(key, keys_sought), max(len(key) - 1, 0))
    is_match = (owner >= 0) & (switch >= 0) & (key[index] == keys_sought)
    slots_found: Ints = np.where(is_match, index, -1).astype(np.int64)
    return slots_found


def read_shares(problem: Update, plan: UpdatePlan) -> tuple[Ints, Ints, Floats]:
    """Return steps, classes and shares of a plan, in order; raise PlanRejected for unknown ones."""
    frame = plan.shares
    owner = find_codes(frame["class"], problem.class_index) if len(frame) else np.zeros(0, dtype=np.int64)
    for row in np.flatnonzero(owner < 0)[:1].tolist():
        raise PlanRejected(f"shares row {row + 1}: class '{frame['class'].iloc[row]}' is none of the classes")
    step = frame["step"].to_numpy(float).astype(np.int64) - 1
    for row in np.flatnonzero(step >= len(plan.steps))[:1].tolist():
        raise PlanRejected(f"shares row {row + 1}: there is no step {step[row] + 1}")
    order = np.lexsort((owner, step))
    return step[order], owner[order], frame["share"].to_numpy(float)[order]


def stamped_classes(problem: Update, ops: Operations) -> Bools:
    """Return the (C,) classes whose packets are stamped with a version: those that a plan flips or splits."""
    is_stamped: Bools = np.zeros(len(problem.classes), dtype=bool)
    is_stamped[problem.slots.owner[ops.slot[(ops.action == FLIP) | (ops.action == SPLIT)]]] = True
    return is_stamped


def as_network(problem: Update) -> Network:
    """Return the arrays of a problem that the replay needs."""
    slots = problem.slots
    ways = problem.waypoints
    return Network(
        start=slots.start,
        owner=slots.owner,
        switch=slots.switch,
        same=slots.same,
        old_start=slots.now.start,
        old_hop=slots.now.hop,
        old_link=slots.now.link,
        new_start=slots.next.start,
        new_hop=slots.next.hop,
        new_link=slots.next.link,
        entering=problem.entering,
        ingress=problem.ingress,
        egress=problem.egress,
        ways=np.array([node for each in ways for node in each], dtype=np.int64),
        way_start=np.r_[0, np.cumsum([len(each) for each in ways])].astype(np.int64),
        switches=len(problem.switches),
    )
