"""The plan of system `updates`: steps, and the changes of rules in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner.errors import PlanRejected
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
PLAN_TABLES: Final = (STEPS, OPERATIONS, RULES_HELD, SHARES)


@dataclass(frozen=True, kw_only=True, eq=False)
class UpdatePlan:
    """Steps of an update.

    steps       step, kind, start_s, end_s
    operations  step, switch, class, action, parts?
    tables      step, switch, rules: of steps with operations
    shares      step, class, share: of steps that split the packets of a class
    """

    steps: pd.DataFrame
    operations: pd.DataFrame
    tables: pd.DataFrame
    shares: pd.DataFrame

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
    ops = read_operations(problem, plan)
    counted = _tabulate(problem, count_rules(problem, ops))
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
