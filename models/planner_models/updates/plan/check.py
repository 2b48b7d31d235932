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
    Operations,
    Outcome,
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
        found: Bools = np.zeros(len(self.problem.classes), dtype=bool)
        found[self.classes[(self.outcome.bits & bit) > 0]] = True
        return found

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
        wanted = slots.next.has_rule()
        has_next = self.state.new | (slots.same & self.state.old)
        missing = wanted & ~has_next
        left = self.state.old & ~(slots.same & ~self.state.new)
        unswitched = self.is_stamped[slots.owner] & self.problem.entering & (self.state.entry != 2)
        return np.flatnonzero(missing | left | unswitched)

    @cached_property
    def broken(self) -> Bools:
        """(C,) classes whose guarantee some mixture breaks, or whose rules are not those of `next`."""
        found: Bools = np.zeros(len(self.problem.classes), dtype=bool)
        for bit in ASKS:
            found |= self.classes_that(bit) & self.asks[bit]
        found |= self.cut_flows
        found[self.problem.slots.owner[self.unfinished]] = True
        found[[one for _, one, _, _ in self.short_drains]] = True
        return found

    @cached_property
    def cut_flows(self) -> Bools:
        """(C,) classes of which flows must keep their path, and that are changed while flows last."""
        needs = (self.problem.guarantee == GUARANTEES.index(PER_FLOW)) & self.problem.enters_now
        changed = np.zeros(len(needs), dtype=bool)
        changed[self.classes] = True
        kept = np.zeros(len(needs), dtype=bool)
        for one in np.flatnonzero(needs & changed).tolist():
            kept[one] = keeps_flows(self, one)
        found: Bools = needs & changed & ~kept
        return found

    @cached_property
    def short_drains(self) -> list[tuple[int, int, float, float]]:
        """Steps that start before packets have left: step, class, time since the step before, time needed, s.

        Packets that entered before a change must have left before their class's rules change again, unless
        rules were only added before.
        """
        if not len(self.steps):
            return []
        order = np.lexsort((self.steps, self.classes))
        one, step = self.classes[order], self.steps[order]
        moves = np.logical_or.reduceat(self.ops.action != ADD, self.starts[:-1])[order]
        is_first = np.r_[True, one[1:] != one[:-1]]
        place = np.arange(len(order))
        # the last change of the same class before, that was more than an addition
        latest = np.maximum.accumulate(np.where(moves, place, -1))
        before = np.r_[-1, latest[:-1]]
        start = np.maximum.accumulate(np.where(is_first, place, 0))
        needs = self.problem.path_ms[one] * 1e-3
        gap = self.start_s[step] - self.end_s[step[before]]
        short = (before >= start) & falls_short(gap, needs, self.start_s[step])
        rows = zip(step[short], one[short], gap[short], needs[short], strict=True)
        return [(int(at), int(name), float(given), float(need)) for at, name, given, need in rows]

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
            self.ops,
            self.starts,
            self.is_stamped,
            slots.now.share,
            slots.next.share,
            SAMPLES,
            SAMPLE_SEED,
        )


_KNOWN: weakref.WeakKeyDictionary[UpdatePlan, tuple[Update, Evaluation]] = weakref.WeakKeyDictionary()


def evaluate(problem: Update, plan: UpdatePlan) -> Evaluation:
    """Return what the plan does; raises PlanRejected where it is none.

    That is where an operation changes a rule that is not there, or adds one that is there already.
    """
    known = _KNOWN.get(plan)
    if known is not None and known[0] is problem:
        return known[1]
    ops = read_operations(problem, plan)
    starts, steps, classes = ops.groups(problem.slots.owner)
    _require_possible(problem, ops)
    is_stamped = stamped_classes(problem, ops)
    state = State.before(problem.slots.now.has_rule())
    outcome = replay(as_network(problem), state, ops, starts, is_stamped, len(problem.links))
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
    for place in range(int(turn.max(initial=-1)) + 1):
        rows = order[turn == place]
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
            one = int(ops.slot[row])
            words = {
                ADD: "adds a rule that is there, or that next does not have",
                REMOVE: "removes a rule of now that is not there",
                SWAP: "swaps a rule that is not there, or for none",
                FLIP: "flips a switch where no packets of the class enter",
                SPLIT: "splits at a switch where no packets of the class enter",
            }[int(ops.action[row])]
            raise PlanRejected(
                f"operations: step {ops.step[row] + 1}, class '{problem.class_index[slots.owner[one]]}', "
                f"switch '{problem.switch_index[slots.switch[one]]}': {words}"
            )
        in_place = (action == SWAP) | ((action == FLIP) & only & ~new[slot])
        new[slot] |= (
            (action == ADD) | (in_place & has_next[slot]) | ((action == SPLIT) & only & has_next[slot])
        )
        old[slot] &= ~((action == REMOVE) | in_place)


def _count_repeats(ordered: Ints) -> Ints:
    """Return how often each value of an ordered array stood before it."""
    if not len(ordered):
        return ordered
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    since = np.flatnonzero(first)
    found: Ints = np.arange(len(ordered)) - np.repeat(since, np.diff(np.append(since, len(ordered))))
    return found


def _require_shares(done: Evaluation) -> None:
    """Raise PlanRejected unless shares are those of classes that a step splits."""
    step, owner, _ = read_shares(done.problem, done.plan)
    is_split = np.zeros(len(done.steps), dtype=bool)
    if len(done.steps):
        is_split = np.logical_or.reduceat(done.ops.action == SPLIT, done.starts[:-1])
    split = set(zip(done.steps[is_split].tolist(), done.classes[is_split].tolist(), strict=True))
    listed = set(zip(step.tolist(), owner.tolist(), strict=True))
    for one in sorted(split ^ listed)[:1]:
        what = "has a share but is not split" if one in listed else "is split without a share"
        raise PlanRejected(f"shares: step {one[0] + 1}, class '{done.problem.class_index[one[1]]}' {what}")


def keeps_flows(done: Evaluation, one: int) -> bool:
    """Return whether flows of a class keep their path: it is split until its flows have ended."""
    problem = done.problem
    groups = np.flatnonzero(done.classes == one)
    actions = [set(done.ops.action[done.starts[g] : done.starts[g + 1]].tolist()) for g in groups]
    split = next((place for place, each in enumerate(actions) if SPLIT in each), None)
    flip = next((place for place, each in enumerate(actions) if FLIP in each), None)
    if any(SWAP in each for each in actions) or split is None or flip is None or flip <= split:
        return False
    waited = done.start_s[done.steps[groups[flip]]] - done.end_s[done.steps[groups[split]]]
    inner = slice(done.starts[groups[split]], done.starts[groups[split] + 1])
    lives = expiry_lives(problem.flows[one], done.ops.parts[inner][done.ops.action[inner] == SPLIT])
    if lives is None:
        return False
    needs = lives * problem.flow_life_s[one]
    return not falls_short(waited, needs, done.start_s[done.steps[groups[flip]]])


def _load_links(done: Evaluation) -> dict[int, Floats]:
    """Return the largest load of each link during each step with operations.

    Packets that are stamped take one of two paths, each in its share. Those of a class with one ingress that
    is changed in place may all take any link that some mixture reaches. Other classes count with the larger
    load before and after.
    """
    problem = done.problem
    loads = problem.link_loads[0].copy()
    if not problem.traffic_mbps.any() or not len(done.steps):
        return {int(step): loads for step in np.unique(done.steps)}
    every = np.arange(len(problem.classes))
    old, new = problem.class_loads(every)
    part = np.zeros(len(every))
    moves = np.logical_or.reduceat(np.isin(done.ops.action, [FLIP, SPLIT]), done.starts[:-1])
    step_of, owner_of, share_of = read_shares(problem, done.plan)
    last_group = np.full(len(every), -1)
    last_group[done.classes] = np.arange(len(done.classes))
    reach_start = np.searchsorted(done.outcome.reach_group, np.arange(len(done.steps) + 1))
    of_class = (last_group, problem.ingress, problem.traffic_mbps, reach_start, done.outcome.reach_link)
    columns = [array for side in (old, new) for array in (side.indptr, side.indices, side.data)]
    moving = _Moving(*map(read_only, (*of_class, *columns)))
    held = np.full(len(every), -1)  # group in which classes were changed in place, until they are done
    found: dict[int, Floats] = {}

    def of(classes: Ints, share: Floats) -> sp.csc_array:
        return sp.csc_array(
            old[:, classes] @ sp.diags_array(1 - share) + new[:, classes] @ sp.diags_array(share)
        )

    for step in np.unique(done.steps).tolist():
        groups = np.flatnonzero(done.steps == step)
        one = done.classes[groups]
        # stamped packets move all at once from one share to the next
        stamped = one[done.is_stamped[one] & moves[groups]]
        share = np.ones(len(every))
        here = step_of == step
        share[owner_of[here]] = share_of[here]
        before, after = of(stamped, part[stamped]), of(stamped, share[stamped])
        rise = np.asarray(before.maximum(after).sum(axis=1) - before.sum(axis=1)).ravel()
        change = np.asarray(after.sum(axis=1) - before.sum(axis=1)).ravel()
        part[stamped] = share[stamped]
        in_place = groups[~done.is_stamped[one] & (problem.traffic_mbps[one] > 0)]
        _move_in_place(in_place, done.classes[in_place], moving, held, rise, change)
        found[step] = loads + rise
        loads = loads + change
    return found


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
    for place in range(len(groups)):
        group, one = groups[place], classes[place]
        if held[one] < 0:
            for entry in range(moving.old_start[one], moving.old_start[one + 1]):
                rise[moving.old_link[entry]] -= moving.old_load[entry]
                change[moving.old_link[entry]] -= moving.old_load[entry]
        else:
            _add_peak(held[one], one, moving, -1.0, rise, load)
            _add_peak(held[one], one, moving, -1.0, change, load)
        _add_peak(group, one, moving, 1.0, rise, load)
        if group == moving.last_group[one]:
            held[one] = -1
            for entry in range(moving.new_start[one], moving.new_start[one + 1]):
                change[moving.new_link[entry]] += moving.new_load[entry]
        else:
            held[one] = group
            _add_peak(group, one, moving, 1.0, change, load)


@kernel
def _add_peak(group: int, one: int, moving: _Moving, sign: float, total: Floats, load: Floats) -> None:
    """Add the largest loads of a class during a group of changes to those of all, with a sign.

    load  (E,) memory, zeros between calls
    """
    if moving.ingress[one] >= 0:
        for place in range(moving.reach_start[group], moving.reach_start[group + 1]):
            total[moving.reach_link[place]] += sign * moving.traffic[one]
        return
    for entry in range(moving.old_start[one], moving.old_start[one + 1]):
        load[moving.old_link[entry]] = moving.old_load[entry]
        total[moving.old_link[entry]] += sign * moving.old_load[entry]
    for entry in range(moving.new_start[one], moving.new_start[one + 1]):
        more = moving.new_load[entry] - load[moving.new_link[entry]]
        total[moving.new_link[entry]] += sign * max(more, 0.0)
    for entry in range(moving.old_start[one], moving.old_start[one + 1]):
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
    done = evaluate(problem, plan)
    found = _check_mixtures(done)
    over = [
        (step, int(switch), int(held[switch]))
        for step, held in done.held.items()
        for switch in np.flatnonzero(held > problem.rule_capacity)
    ]
    found += Violations.of(
        "tables",
        where=[f"{problem.switch_index[switch]} in step {step + 1}" for step, switch, _ in over],
        amount=[held for _, _, held in over],
        allowed=[problem.rule_capacity[switch] for _, switch, _ in over],
        unit="rules",
    )
    limit = problem.load_limit_mbps
    heavy = [
        (step, int(link), float(load[link]))
        for step, load in done.loads.items()
        for link in np.flatnonzero(exceeds(load, limit))
    ]
    found += Violations.of(
        "links",
        where=[f"{problem.link_names[link]} in step {step + 1}" for step, link, _ in heavy],
        amount=[load for _, _, load in heavy],
        allowed=[limit[link] for _, link, _ in heavy],
        unit="Mbit/s",
    )
    found += Violations.of(
        "drain",
        where=[f"{problem.class_index[one]} before step {step + 1}" for step, one, _, _ in done.short_drains],
        amount=[gap for _, _, gap, _ in done.short_drains],
        allowed=[need for _, _, _, need in done.short_drains],
        unit="s",
    )
    cut = np.flatnonzero(done.cut_flows)
    found += Violations.of(
        "flows",
        where=[str(problem.class_index[one]) for one in cut.tolist()],
        amount=1.0,
        allowed=0.0,
        unit="class",
    )
    rest = done.unfinished
    found += Violations.of("complete", where=_name_slots(problem, rest), amount=1.0, allowed=0.0, unit="rule")
    blind = np.flatnonzero(problem.switches["matches_version"].to_numpy(float) == 0)
    needs = done.ops.slot[(done.ops.action == ADD) & done.is_stamped[problem.slots.owner[done.ops.slot]]]
    needs = needs[np.isin(problem.slots.switch[needs], blind)]
    found += Violations.of(
        "versions", where=_name_slots(problem, needs), amount=1.0, allowed=0.0, unit="rule"
    )
    return found + _check_times(done)


def _name_slots(problem: Update, slot: Ints) -> list[str]:
    slots = problem.slots
    return [
        f"{problem.class_index[slots.owner[one]]} at {problem.switch_index[slots.switch[one]]}"
        for one in slot.tolist()
    ]


def _check_mixtures(done: Evaluation) -> Violations:
    problem, found = done.problem, Violations()
    for bit, name in NAMES.items():
        groups = np.flatnonzero(((done.outcome.bits & bit) > 0) & done.asks[bit][done.classes])
        if not len(groups):
            continue
        at = done.outcome.where[groups, PLACES[bit]]
        found += Violations.of(
            name,
            where=[
                f"{problem.class_index[one]} at {problem.switch_index[switch]} in step {step + 1}"
                for one, switch, step in zip(
                    done.classes[groups].tolist(), at.tolist(), done.steps[groups].tolist(), strict=True
                )
            ],
            amount=1.0,
            allowed=0.0,
            unit="mixture",
        )
    return found


def _check_times(done: Evaluation) -> Violations:
    rows = []
    for step in np.unique(done.steps).tolist():
        mine = done.ops.step == step
        needed = work_s(done.problem, done.ops.slot[mine], done.ops.parts[mine])
        given = float(done.end_s[step] - done.start_s[step])
        if falls_short(given, needed, done.end_s[step]):
            rows.append((step, given, needed))
    return Violations.of(
        "time",
        where=[f"step {step + 1}" for step, _, _ in rows],
        amount=[given for _, given, _ in rows],
        allowed=[needed for _, _, needed in rows],
        unit="s",
    )
