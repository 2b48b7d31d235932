"""Check of a plan by replaying it: every mixture of every step, tables, links, and times between steps."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints, Ints32, read_only
from planner.compiled import kernel, run_small_in_python
from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.updates.plan.flows import expiry_lives
from planner_models.updates.plan.plan import (
    UpdatePlan,
    as_network,
    count_rules,
    read_operations,
    read_shares,
    read_stages,
    stamped_classes,
    work_s,
)
from planner_models.updates.plan.replay import (
    ADD,
    FLIP,
    HOLES,
    LOOPS,
    MISSES,
    MIXES,
    REMOVE,
    SPLIT,
    SWAP,
    Changes,
    Operations,
    Outcome,
    Shares,
    State,
    replay,
    sample,
)
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import (
    GUARANTEES,
    NO_BLACK_HOLE,
    NO_LOOP,
    PER_FLOW,
    PER_PACKET,
    WAYPOINT,
)

SAMPLES: Final = 32
SAMPLE_SEED: Final = 0
ASKS: Final = {
    LOOPS: (NO_LOOP, NO_BLACK_HOLE, WAYPOINT, PER_PACKET, PER_FLOW),
    HOLES: (NO_BLACK_HOLE, WAYPOINT, PER_PACKET, PER_FLOW),
    MISSES: (WAYPOINT, PER_PACKET, PER_FLOW),
    MIXES: (PER_PACKET, PER_FLOW),
}
"""Guarantees that each kind of mixture breaks."""
NAMES: Final = {LOOPS: "loop", HOLES: "black_hole", MISSES: "waypoint", MIXES: "mixture"}
PLACES: Final = {LOOPS: 0, HOLES: 1, MIXES: 2, MISSES: 3}


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """Effects of a plan, replayed from its tables.

    ops         its operations by step and class
    starts, steps, classes  (G + 1,), (G,), (G,) groups: the operations of one class in one step
    outcome     what packets of each group can meet
    state       rules after the last step
    held        most rules of each switch by step
    start_s, end_s  of each step
    """

    problem: Update
    plan: UpdatePlan
    ops: Operations
    starts: Ints
    steps: Ints
    classes: Ints
    outcome: Outcome
    state: State
    held: dict[int, Ints]
    start_s: Floats
    end_s: Floats
    is_stamped: Bools

    def classes_that(self, bit: int) -> Bools:
        """Return the (C,) classes with packets that meet such a mixture in some step."""
        mask: Bools = np.zeros(len(self.problem.classes), dtype=bool)
        mask[self.classes[(self.outcome.bits & bit) > 0]] = True
        return mask

    @cached_property
    def asks(self) -> dict[int, Bools]:
        """(C,) classes whose guarantee rules out each kind of mixture."""
        level = self.problem.guarantee
        return {
            bit: np.isin(level, [GUARANTEES.index(name) for name in names]) for bit, names in ASKS.items()
        }

    @cached_property
    def unfinished(self) -> Ints:
        """Slots whose rule is not that of `next` at the end, or that still hold one of `now`."""
        slots = self.problem.slots
        has_goal = slots.next.has_rule()
        has_next = self.state.new | (slots.same & self.state.old)
        missing = has_goal & ~has_next
        remaining = self.state.old & ~(slots.same & ~self.state.new)
        unswitched = self.is_stamped[slots.owner] & self.problem.entering & (self.state.entry != 2)
        return np.flatnonzero(missing | remaining | unswitched)

    @cached_property
    def broken(self) -> Bools:
        """(C,) classes whose guarantee some mixture breaks, or whose rules are not those of `next`."""
        is_broken: Bools = np.zeros(len(self.problem.classes), dtype=bool)
        for bit in ASKS:
            is_broken |= self.classes_that(bit) & self.asks[bit]
        is_broken |= self.cut_flows
        is_broken[self.problem.slots.owner[self.unfinished]] = True
        is_broken[[class_id for _, class_id, _, _ in self.short_drains]] = True
        return is_broken

    @cached_property
    def cut_flows(self) -> Bools:
        """(C,) classes of which flows must keep their path, and that are changed while flows last."""
        needs = (self.problem.guarantee == GUARANTEES.index(PER_FLOW)) & self.problem.enters_now
        changed = np.zeros(len(needs), dtype=bool)
        changed[self.classes] = True
        keeps = np.zeros(len(needs), dtype=bool)
        for class_id in np.flatnonzero(needs & changed).tolist():
            keeps[class_id] = keeps_flows(self, class_id)
        is_cut: Bools = needs & changed & ~keeps
        return is_cut

    @cached_property
    def short_drains(self) -> list[tuple[int, int, float, float]]:
        """Steps that start before packets have left: step, class, time since the step before, time needed, s.

        Packets that entered before a change must have left before their class's rules change again, unless
        rules were only added before.
        """
        if not len(self.steps):
            return []
        order = np.lexsort((self.steps, self.classes))
        class_id, step = self.classes[order], self.steps[order]
        moves = np.logical_or.reduceat(self.ops.action != ADD, self.starts[:-1])[order]
        is_first = np.r_[True, class_id[1:] != class_id[:-1]]
        position = np.arange(len(order))
        # the last change of the same class before, that was more than an addition
        latest = np.maximum.accumulate(np.where(moves, position, -1))
        before = np.r_[-1, latest[:-1]]
        start = np.maximum.accumulate(np.where(is_first, position, 0))
        needs = self.problem.path_ms[class_id] * 1e-3
        gap = self.start_s[step] - self.end_s[step[before]]
        short = (before >= start) & falls_short(gap, needs, self.start_s[step])
        rows = zip(step[short], class_id[short], gap[short], needs[short], strict=True)
        return [
            (int(step_number), int(name), float(time_s), float(need))
            for step_number, name, time_s, need in rows
        ]

    @cached_property
    def loads(self) -> dict[int, Floats]:
        """(E,) largest load of each link during each step with operations, Mbit/s."""
        return _load_links(self)

    @cached_property
    def samples(self) -> tuple[Floats, Floats, Floats]:
        """(G,) shares of packets that loop, are lost, and use rules of both, over random orders."""
        slots = self.problem.slots
        return sample(
            as_network(self.problem),
            State.before(slots.now.has_rule()),
            Changes(self.ops, self.starts, self.is_stamped),
            Shares(slots.now.share, slots.next.share),
            SAMPLES,
            SAMPLE_SEED,
        )


_KNOWN: weakref.WeakKeyDictionary[UpdatePlan, tuple[Update, Evaluation]] = weakref.WeakKeyDictionary()


def evaluate(problem: Update, plan: UpdatePlan) -> Evaluation:
    """Return the effect of the plan; raises PlanRejected where it is none.

    That is where an operation changes a rule that is not there, or adds one that is there already.
    """
    cached = _KNOWN.get(plan)
    if cached is not None and cached[0] is problem:
        return cached[1]
    ops = read_operations(problem, plan)
    starts, steps, classes = ops.groups(problem.slots.owner)
    _require_possible(problem, ops)
    is_stamped = stamped_classes(problem, ops)
    state = State.before(problem.slots.now.has_rule())
    outcome = replay(as_network(problem), state, Changes(ops, starts, is_stamped), len(problem.links))
    ordered = plan.steps.sort_values("step", kind="stable")
    made = Evaluation(
        problem=problem,
        plan=plan,
        ops=ops,
        starts=starts,
        steps=steps,
        classes=classes,
        outcome=outcome,
        state=state,
        held=count_rules(problem, ops),
        start_s=ordered["start_s"].to_numpy(float),
        end_s=ordered["end_s"].to_numpy(float),
        is_stamped=is_stamped,
    )
    _require_shares(made)
    _KNOWN[plan] = problem, made
    return made


def _require_possible(problem: Update, ops: Operations) -> None:
    """Raise PlanRejected for an operation that cannot be: a rule that is not there, or one twice."""
    slots = problem.slots
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    order = np.lexsort((ops.step, ops.slot))
    old, new = has_now.copy(), np.zeros(len(has_now), dtype=bool)
    turn = _count_repeats(ops.slot[order])
    for turn_number in range(int(turn.max(initial=-1)) + 1):
        rows = order[turn == turn_number]
        slot, action = ops.slot[rows], ops.action[rows]
        only = problem.ingress[slots.owner[slot]] == slots.switch[slot]
        bad = (
            ((action == ADD) & (~has_next[slot] | new[slot]))
            | ((action == REMOVE) & ~old[slot])
            | ((action == SWAP) & ~(old[slot] & has_next[slot] & ~new[slot]))
            | (((action == FLIP) | (action == SPLIT)) & ~problem.entering[slot])
        )
        if bad.any():
            row = int(rows[np.argmax(bad)])
            slot_number = int(ops.slot[row])
            words = {
                ADD: "adds a rule that is there, or that next does not have",
                REMOVE: "removes a rule of now that is not there",
                SWAP: "swaps a rule that is not there, or for none",
                FLIP: "flips a switch where no packets of the class enter",
                SPLIT: "splits at a switch where no packets of the class enter",
            }[int(ops.action[row])]
            raise PlanRejected(
                f"operations: step {ops.step[row] + 1}, class "
                f"'{problem.class_index[slots.owner[slot_number]]}', "
                f"switch '{problem.switch_index[slots.switch[slot_number]]}': {words}"
            )
        in_place = (action == SWAP) | ((action == FLIP) & only & ~new[slot])
        new[slot] |= (
            (action == ADD) | (in_place & has_next[slot]) | ((action == SPLIT) & only & has_next[slot])
        )
        old[slot] &= ~((action == REMOVE) | in_place)


def _count_repeats(ordered: Ints) -> Ints:
    """Return the number of earlier occurrences of each value of an ordered array."""
    if not len(ordered):
        return ordered
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    since = np.flatnonzero(first)
    repeats: Ints = np.arange(len(ordered)) - np.repeat(since, np.diff(np.append(since, len(ordered))))
    return repeats


def _require_shares(evaluation: Evaluation) -> None:
    """Raise PlanRejected unless shares are those of classes that a step splits."""
    step, owner, _ = read_shares(evaluation.problem, evaluation.plan)
    is_split = np.zeros(len(evaluation.steps), dtype=bool)
    if len(evaluation.steps):
        is_split = np.logical_or.reduceat(evaluation.ops.action == SPLIT, evaluation.starts[:-1])
    split = set(zip(evaluation.steps[is_split].tolist(), evaluation.classes[is_split].tolist(), strict=True))
    listed = set(zip(step.tolist(), owner.tolist(), strict=True))
    for pair in sorted(split ^ listed)[:1]:
        what = "has a share but is not split" if pair in listed else "is split without a share"
        raise PlanRejected(
            f"shares: step {pair[0] + 1}, class '{evaluation.problem.class_index[pair[1]]}' {what}"
        )


def keeps_flows(evaluation: Evaluation, class_id: int) -> bool:
    """Return whether flows of a class keep their path: it is split until its flows have ended."""
    problem = evaluation.problem
    groups = np.flatnonzero(evaluation.classes == class_id)
    actions = [
        set(evaluation.ops.action[evaluation.starts[g] : evaluation.starts[g + 1]].tolist()) for g in groups
    ]
    split = next((index for index, each in enumerate(actions) if SPLIT in each), None)
    flip = next((index for index, each in enumerate(actions) if FLIP in each), None)
    if any(SWAP in each for each in actions) or split is None or flip is None or flip <= split:
        return False
    waited = (
        evaluation.start_s[evaluation.steps[groups[flip]]] - evaluation.end_s[evaluation.steps[groups[split]]]
    )
    inner = slice(evaluation.starts[groups[split]], evaluation.starts[groups[split] + 1])
    lives = expiry_lives(
        problem.flows[class_id], evaluation.ops.parts[inner][evaluation.ops.action[inner] == SPLIT]
    )
    if lives is None:
        return False
    needs = lives * problem.flow_life_s[class_id]
    return not falls_short(waited, needs, evaluation.start_s[evaluation.steps[groups[flip]]])


def _load_links(evaluation: Evaluation) -> dict[int, Floats]:
    """Return the largest load of each link during each step with operations.

    Packets that are stamped take one of two paths, each in its share. Those of a class with one ingress that
    is changed in place may all take any link that some mixture reaches. Other classes count with the larger
    load before and after.
    """
    problem = evaluation.problem
    loads = problem.link_loads[0].copy()
    if not problem.traffic_mbps.any() or not len(evaluation.steps):
        return {int(step): loads for step in np.unique(evaluation.steps)}
    every = np.arange(len(problem.classes))
    old, new = problem.class_loads(every)
    moved_share = np.zeros(len(every))
    moves = np.logical_or.reduceat(np.isin(evaluation.ops.action, [FLIP, SPLIT]), evaluation.starts[:-1])
    step_of, owner_of, share_of = read_shares(problem, evaluation.plan)
    last_group = np.full(len(every), -1)
    last_group[evaluation.classes] = np.arange(len(evaluation.classes))
    reach_start = np.searchsorted(evaluation.outcome.reach_group, np.arange(len(evaluation.steps) + 1))
    of_class = (last_group, problem.ingress, problem.traffic_mbps, reach_start, evaluation.outcome.reach_link)
    columns = [array for side in (old, new) for array in (side.indptr, side.indices, side.data)]
    moving = _Moving(*map(read_only, (*of_class, *columns)))
    held = np.full(len(every), -1)  # group in which classes were changed in place, until they are done
    loads_of: dict[int, Floats] = {}

    def of(classes: Ints, share: Floats) -> sp.csc_array:
        return sp.csc_array(
            old[:, classes] @ sp.diags_array(1 - share) + new[:, classes] @ sp.diags_array(share)
        )

    for step in np.unique(evaluation.steps).tolist():
        groups = np.flatnonzero(evaluation.steps == step)
        class_of = evaluation.classes[groups]
        # stamped packets move all at once from one share to the next
        stamped = class_of[evaluation.is_stamped[class_of] & moves[groups]]
        share = np.ones(len(every))
        here = step_of == step
        share[owner_of[here]] = share_of[here]
        before, after = of(stamped, moved_share[stamped]), of(stamped, share[stamped])
        rise = np.asarray(before.maximum(after).sum(axis=1) - before.sum(axis=1)).ravel()
        change = np.asarray(after.sum(axis=1) - before.sum(axis=1)).ravel()
        moved_share[stamped] = share[stamped]
        in_place = groups[~evaluation.is_stamped[class_of] & (problem.traffic_mbps[class_of] > 0)]
        _move_in_place(in_place, evaluation.classes[in_place], moving, held, rise, change)
        loads_of[step] = loads + rise
        loads = loads + change
    return loads_of


class _Moving(NamedTuple):
    """What the loads of classes that are changed in place follow from; C classes, G groups of changes.

    last_group   (C,) last group of each class
    ingress      (C,) only ingress of a class, or -1
    traffic      (C,) Mbit/s
    reach_start  (G + 1,) starts in `reach_link` of the links that packets of a group can take
    old_start, old_link, old_load  loads of classes before, Mbit/s, by columns; `new` the same after
    """

    last_group: Ints
    ingress: Ints
    traffic: Floats
    reach_start: Ints
    reach_link: Ints
    old_start: Ints32
    old_link: Ints32
    old_load: Floats
    new_start: Ints32
    new_link: Ints32
    new_load: Floats


@run_small_in_python(max_elements=2_000)
@kernel
def _move_in_place(
    groups: Ints, classes: Ints, moving: _Moving, held: Ints, rise: Floats, change: Floats
) -> None:
    """Add to the loads of links in a step, and after it, what groups (n,) of classes (n,) change, Mbit/s.

    held  (C,) group whose largest loads a class has now; -1: those before the update; written
    """
    load = np.zeros(len(rise))
    for index in range(len(groups)):
        group, class_id = groups[index], classes[index]
        if held[class_id] < 0:
            for entry in range(moving.old_start[class_id], moving.old_start[class_id + 1]):
                rise[moving.old_link[entry]] -= moving.old_load[entry]
                change[moving.old_link[entry]] -= moving.old_load[entry]
        else:
            _add_peak(held[class_id], class_id, moving, -1.0, rise, load)
            _add_peak(held[class_id], class_id, moving, -1.0, change, load)
        _add_peak(group, class_id, moving, 1.0, rise, load)
        if group == moving.last_group[class_id]:
            held[class_id] = -1
            for entry in range(moving.new_start[class_id], moving.new_start[class_id + 1]):
                change[moving.new_link[entry]] += moving.new_load[entry]
        else:
            held[class_id] = group
            _add_peak(group, class_id, moving, 1.0, change, load)


@kernel
def _add_peak(group: int, class_id: int, moving: _Moving, sign: float, total: Floats, load: Floats) -> None:
    """Add the largest loads of a class during a group of changes to those of all, with a sign.

    load  (E,) memory, zeros between calls
    """
    if moving.ingress[class_id] >= 0:
        for entry in range(moving.reach_start[group], moving.reach_start[group + 1]):
            total[moving.reach_link[entry]] += sign * moving.traffic[class_id]
        return
    for entry in range(moving.old_start[class_id], moving.old_start[class_id + 1]):
        load[moving.old_link[entry]] = moving.old_load[entry]
        total[moving.old_link[entry]] += sign * moving.old_load[entry]
    for entry in range(moving.new_start[class_id], moving.new_start[class_id + 1]):
        more = moving.new_load[entry] - load[moving.new_link[entry]]
        total[moving.new_link[entry]] += sign * max(more, 0.0)
    for entry in range(moving.old_start[class_id], moving.old_start[class_id + 1]):
        load[moving.old_link[entry]] = 0.0


def check(problem: Update, plan: UpdatePlan) -> Violations:
    """Return the constraint violations of the plan, by name.

    loop, black_hole, waypoint, mixture  packets of a class meet a mixture of rules that its guarantee rules
    out
    flows     a class of which flows must keep their path is changed before its flows have ended
    tables    a switch has more rules in a step than its table holds
    links     a link has more load in a step than its capacity, and than before and after the update
    drain     rules of a class change again before its packets have left
    versions  a rule must test the version of packets at a switch that cannot
    complete  a rule is not that of `next` in the end
    time      a step is shorter than its switches need for their changes

    PlanRejected where it is no plan: see `evaluate`.
    """
    violations = Violations()
    for stage in read_stages(problem, plan):
        evaluation = evaluate(stage.problem, stage.plan)
        broken = (
            _check_mixtures(evaluation)
            + _check_loads(stage.problem, evaluation)
            + _check_changes(stage.problem, evaluation)
            + _check_times(evaluation)
        )
        if plan.paths is not None and len(broken):
            later = f" after {stage.first_step} steps"
            broken = Violations(broken.frame.assign(where=broken.frame["where"] + later))
        violations += broken
    if plan.paths is not None:
        violations += _check_pauses(problem, plan)
    return violations


def _check_pauses(problem: Update, plan: UpdatePlan) -> Violations:
    """Return the stages that start before the one before has ended."""
    steps = plan.steps.sort_values("step", kind="stable")
    start, end = (steps[name].to_numpy(float) for name in ("start_s", "end_s"))
    first = np.array([stage.first_step for stage in read_stages(problem, plan)][1:], dtype=np.int64)
    early = first[falls_short(start[first], end[first - 1], end[first - 1])]
    return Violations.of(
        "time",
        where=[f"step {step + 1}" for step in early.tolist()],
        amount=start[early],
        allowed=end[early - 1],
        unit="s",
    )


def _check_loads(problem: Update, evaluation: Evaluation) -> Violations:
    """Return the tables and links that a step overfills."""
    over = [
        (step, int(switch), int(held[switch]))
        for step, held in evaluation.held.items()
        for switch in np.flatnonzero(held > problem.rule_capacity)
    ]
    violations = Violations.of(
        "tables",
        where=[f"{problem.switch_index[switch]} in step {step + 1}" for step, switch, _ in over],
        amount=[held for _, _, held in over],
        allowed=[problem.rule_capacity[switch] for _, switch, _ in over],
        unit="rules",
    )
    limit = problem.load_limit_mbps
    heavy = [
        (step, int(link), float(load[link]))
        for step, load in evaluation.loads.items()
        for link in np.flatnonzero(exceeds(load, limit))
    ]
    return violations + Violations.of(
        "links",
        where=[f"{problem.link_names[link]} in step {step + 1}" for step, link, _ in heavy],
        amount=[load for _, _, load in heavy],
        allowed=[limit[link] for _, link, _ in heavy],
        unit="Mbit/s",
    )


def _check_changes(problem: Update, evaluation: Evaluation) -> Violations:
    """Return rules that change too soon, flows that are cut, and what is missing or cannot be."""
    violations = Violations.of(
        "drain",
        where=[
            f"{problem.class_index[class_id]} before step {step + 1}"
            for step, class_id, _, _ in evaluation.short_drains
        ],
        amount=[gap for _, _, gap, _ in evaluation.short_drains],
        allowed=[need for _, _, _, need in evaluation.short_drains],
        unit="s",
    )
    cut = np.flatnonzero(evaluation.cut_flows)
    violations += Violations.of(
        "flows",
        where=[str(problem.class_index[class_id]) for class_id in cut.tolist()],
        amount=1.0,
        allowed=0.0,
        unit="class",
    )
    unfinished = evaluation.unfinished
    violations += Violations.of(
        "complete", where=_name_slots(problem, unfinished), amount=1.0, allowed=0.0, unit="rule"
    )
    blind = np.flatnonzero(problem.switches["matches_version"].to_numpy(float) == 0)
    needs = evaluation.ops.slot[
        (evaluation.ops.action == ADD) & evaluation.is_stamped[problem.slots.owner[evaluation.ops.slot]]
    ]
    needs = needs[np.isin(problem.slots.switch[needs], blind)]
    return violations + Violations.of(
        "versions", where=_name_slots(problem, needs), amount=1.0, allowed=0.0, unit="rule"
    )


def _name_slots(problem: Update, slot: Ints) -> list[str]:
    slots = problem.slots
    return [
        f"{problem.class_index[slots.owner[slot_number]]} at "
        f"{problem.switch_index[slots.switch[slot_number]]}"
        for slot_number in slot.tolist()
    ]


def _check_mixtures(evaluation: Evaluation) -> Violations:
    problem, violations = evaluation.problem, Violations()
    for bit, name in NAMES.items():
        groups = np.flatnonzero(
            ((evaluation.outcome.bits & bit) > 0) & evaluation.asks[bit][evaluation.classes]
        )
        if not len(groups):
            continue
        switches = evaluation.outcome.where[groups, PLACES[bit]]
        violations += Violations.of(
            name,
            where=[
                f"{problem.class_index[class_id]} at {problem.switch_index[switch]} in step {step + 1}"
                for class_id, switch, step in zip(
                    evaluation.classes[groups].tolist(),
                    switches.tolist(),
                    evaluation.steps[groups].tolist(),
                    strict=True,
                )
            ],
            amount=1.0,
            allowed=0.0,
            unit="mixture",
        )
    return violations


def _check_times(evaluation: Evaluation) -> Violations:
    rows = []
    for step in np.unique(evaluation.steps).tolist():
        of_step = evaluation.ops.step == step
        needed = work_s(evaluation.problem, evaluation.ops.slot[of_step], evaluation.ops.parts[of_step])
        available_s = float(evaluation.end_s[step] - evaluation.start_s[step])
        if falls_short(available_s, needed, evaluation.end_s[step]):
            rows.append((step, available_s, needed))
    return Violations.of(
        "time",
        where=[f"step {step + 1}" for step, _, _ in rows],
        amount=[time_s for _, time_s, _ in rows],
        allowed=[needed for _, _, needed in rows],
        unit="s",
    )
