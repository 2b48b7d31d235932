"""A mixture of a step in words: the way of a packet, and the switches that have changed."""

from __future__ import annotations

from typing import NamedTuple

from planner_models.updates.plan.check import Evaluation
from planner_models.updates.plan.replay import ENTERS_NEW, ENTERS_OLD, HOLES, LOOPS, MIXES, change, uses

MOST_SHOWN = 12  # switches of a way that are listed


class Mixture(NamedTuple):
    """A mixture that a packet meets.

    way      switches that it passes; of a loop, the last one is there before
    changed  switches on the way whose rule is changed already
    kind     LOOPS, HOLES or MIXES
    """

    way: list[str]
    changed: list[str]
    kind: int

    def describe(self) -> str:
        """Return the mixture in words."""
        way = " > ".join(self.way if len(self.way) <= MOST_SHOWN else [*self.way[: MOST_SHOWN - 1], "..."])
        end = {LOOPS: "loop", HOLES: "are lost", MIXES: "use rules of both"}[self.kind]
        when = (
            f"once {' and '.join(self.changed[:4])} changed" if self.changed else "before any of them changed"
        )
        more = " and others" if len(self.changed) > 4 else ""
        return f"packets {end} along {way} {when.replace(' changed', more + ' changed')}"


def find_mixture(evaluation: Evaluation, group: int, kind: int) -> Mixture | None:  # noqa: C901
    """Return a way of a packet that loops, is lost, or uses rules of both; None where there is none.

    A search over simple ways that shares no code with the replay but the meaning of changes; it is meant for
    the few groups that are shown.
    """
    problem, slots = evaluation.problem, evaluation.problem.slots
    class_id, step = int(evaluation.classes[group]), int(evaluation.steps[group])
    class_slots = range(int(slots.start[class_id]), int(slots.start[class_id + 1]))
    slot_of = {int(slots.switch[slot]): slot for slot in class_slots}
    has_now = slots.now.has_rule()
    state = {slot: (bool(has_now[slot]), False, ENTERS_OLD) for slot in class_slots}
    turn: dict[int, int] = {}
    for slot, action, when in zip(
        evaluation.ops.slot.tolist(),
        evaluation.ops.action.tolist(),
        evaluation.ops.step.tolist(),
        strict=True,
    ):
        if slots.owner[slot] != class_id or when > step:
            continue
        if when == step:
            turn[slot] = action
        else:
            state[slot] = _change(evaluation, class_id, slot, action, state[slot])
    stamped = bool(evaluation.is_stamped[class_id])
    steps_left = [200_000]

    def follow(slot: int, stamp: int, way: list[int], late: dict[int, bool], used: int) -> Mixture | None:
        steps_left[0] -= 1
        if steps_left[0] < 0:
            return None
        for changed in (False, True) if slot in turn else (False,):
            old, new, entry = (
                _change(evaluation, class_id, slot, turn[slot], state[slot]) if changed else state[slot]
            )
            if len(way) == 1 and (
                (stamp == 0 and entry == ENTERS_NEW) or (stamp == 1 and entry == ENTERS_OLD)
            ):
                continue
            now_late = {**late, slot: changed}
            rules = [rule for rule in (0, 1) if uses(stamp, rule, old, new, stamped)]
            if not rules and len(way) > 1 and kind == HOLES:
                return _name(evaluation, way, now_late, turn, kind)
            for rule in rules:
                configuration = slots.now if rule == 0 else slots.next
                flags = used if slots.same[slot] else used | (2 if rule == 0 else 1)
                for hop_index in range(int(configuration.start[slot]), int(configuration.start[slot + 1])):
                    hop = int(configuration.hop[hop_index])
                    result = step_to(hop, stamp, way, now_late, flags)
                    if result is not None:
                        return result
        return None

    def step_to(hop: int, stamp: int, way: list[int], late: dict[int, bool], used: int) -> Mixture | None:
        if hop == problem.egress[class_id]:
            return _name(evaluation, [*way, hop], late, turn, kind) if kind == MIXES and used == 3 else None
        if hop in way:
            return _name(evaluation, [*way, hop], late, turn, kind) if kind == LOOPS else None
        if hop not in slot_of:
            return _name(evaluation, [*way, hop], late, turn, kind) if kind == HOLES else None
        return follow(slot_of[hop], stamp, [*way, hop], late, used)

    for slot in class_slots:
        if problem.entering[slot]:
            for stamp in (0, 1) if slots.next.has_rule()[slot] else (0,):
                mixture = follow(slot, stamp, [int(slots.switch[slot])], {}, 0)
                if mixture is not None:
                    return mixture
    return None


def _change(
    evaluation: Evaluation, class_id: int, slot: int, action: int, state: tuple[bool, bool, int]
) -> tuple[bool, bool, int]:
    slots, problem = evaluation.problem.slots, evaluation.problem
    is_only = bool(problem.ingress[class_id] == slots.switch[slot])
    return change(action, *state, is_only, bool(slots.next.has_rule()[slot]))


def _name(
    evaluation: Evaluation, way: list[int], late: dict[int, bool], turn: dict[int, int], kind: int
) -> Mixture:
    names, slots = evaluation.problem.switch_index, evaluation.problem.slots
    changed = [names[slots.switch[slot]] for slot, is_late in late.items() if is_late and slot in turn]
    if kind == LOOPS:
        way = way[way.index(way[-1]) :]
    return Mixture([str(names[node]) for node in way], [str(name) for name in changed], kind)
