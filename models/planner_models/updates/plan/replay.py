"""Replay of a plan: what packets can meet in the mixtures of each step, by search in the union of its states.

Within a step every rule is changed at a time of its own. A packet passes a switch at one time, before or
after its change, so that the switches it can be sent to are those of either state: the union. A packet can
loop only if the union has a cycle, and is lost only where the union reaches a switch without a rule for it.
As a path that repeats no switch meets each change once, all that the search finds can happen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python

ADD: Final = 0
FLIP: Final = 1
REMOVE: Final = 2
SWAP: Final = 3
SPLIT: Final = 4
ACTIONS: Final = ("add", "flip", "remove", "swap", "split")
"""Changes of a rule of a class at a switch.

add     the rule of `next` is installed; it tests the version where the class is stamped
flip    packets that enter here are stamped with the new version; at a class's only ingress the rule of `next`
        takes the place of that of `now`
remove  the rule of `now` is deleted
swap    the rule of `next` takes the place of that of `now`
split   packets that enter here are stamped with either version, the new one for a share of them
"""

ENTERS_OLD, ENTERS_BOTH, ENTERS_NEW = 0, 1, 2

LOOPS: Final = 1
HOLES: Final = 2
MIXES: Final = 4
MISSES: Final = 8


class Operations(NamedTuple):
    """Changes of rules, ordered by step and class; M of them.

    step    (M,) number of the step, from 0
    slot    (M,) slot of the class and switch
    action  (M,) place in `ACTIONS`
    parts   (M,) rules into which a split divides the present rule; 1 for other actions
    """

    step: Ints
    slot: Ints
    action: Ints
    parts: Ints

    def groups(self, owner: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the changes of one class in one step: (G + 1,) their starts, (G,) steps and classes."""
        key = np.stack([self.step, owner[self.slot]])
        is_first = (
            np.r_[True, (key[:, 1:] != key[:, :-1]).any(axis=0)] if len(self.step) else np.zeros(0, bool)
        )
        first = np.flatnonzero(is_first)
        return np.append(first, len(self.step)).astype(np.int64), key[0, first], key[1, first]


class Outcome(NamedTuple):
    """Loops, losses and mixtures that packets can meet in each group of changes, G of them.

    bits   (G,) sum of LOOPS, HOLES, MIXES and MISSES
    where  (G, 4) switch at which a packet loops, is lost, ends with rules of both, misses a waypoint; or -1
    reach_group, reach_link  (R,) links that packets of a group can take
    """

    bits: Ints
    where: Ints
    reach_group: Ints
    reach_link: Ints


class State(NamedTuple):
    """Rules of all slots at a time.

    old, new  (N,) whether the rule of `now`, of `next`, is there
    entry     (N,) stamp of packets that enter: ENTERS_OLD, ENTERS_BOTH or ENTERS_NEW
    """

    old: Bools
    new: Bools
    entry: Ints

    @classmethod
    def before(cls, has_now: Bools) -> State:
        """Return the state before any change."""
        count = len(has_now)
        return cls(has_now.copy(), np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64))


class Network(NamedTuple):
    """The rules of a problem as arrays for searches: see `Slots` and `Update`.

    ways, way_start  waypoints of the classes, (C + 1,) starts
    """

    start: Ints
    owner: Ints
    switch: Ints
    same: Bools
    old_start: Ints
    old_hop: Ints
    old_link: Ints
    new_start: Ints
    new_hop: Ints
    new_link: Ints
    entering: Bools
    ingress: Ints
    egress: Ints
    ways: Ints
    way_start: Ints
    switches: int


class Changes(NamedTuple):
    """Changes in groups, each of one class in one step; G of them.

    starts      (G + 1,) first operation of each group
    is_stamped  (C,) whether packets of a class are stamped with a version
    """

    ops: Operations
    starts: Ints
    is_stamped: Bools


class Shares(NamedTuple):
    """Part of the packets on each next hop of `now` and of `next`."""

    old: Floats
    new: Floats


@kernel
def change(
    action: int, old: bool, new: bool, entry: int, is_only: bool, has_next: bool
) -> tuple[bool, bool, int]:
    """Return the state of a slot after an action.

    is_only   whether the slot is the only ingress of its class
    has_next  whether `next` has a rule there
    """
    if action == ADD:
        return old, True, entry
    if action == REMOVE:
        return False, new, entry
    if action == SWAP:
        return False, has_next, entry
    if action == SPLIT:
        return old, new or (is_only and has_next), ENTERS_BOTH
    if is_only and not new:
        return False, has_next, ENTERS_NEW
    return old, new, ENTERS_NEW


@kernel
def uses(stamp: int, rule: int, old: bool, new: bool, is_stamped: bool) -> bool:
    """Return whether a packet of a stamp uses the rule of `now` (0) or of `next` (1) at a switch.

    Rules of `next` of a stamped class test the version and come first; those of `now` take all other packets.
    """
    if stamp == 1:
        return new if rule == 1 else old and not new
    if rule == 0:
        return old
    return new and not is_stamped


@inner
def _search(  # noqa: C901
    net: Network,
    class_id: int,
    state: State,
    op_at: Ints,
    slot_at: Ints,
    is_stamped: bool,
    blocked: int,
    colour: Ints,
    stack: Ints,
    option: Ints,
    edge: Ints,
    seen: Ints,
    reached: Bools,
    where: Ints,
) -> tuple[int, int]:
    """Search the union of a class's states; return the packets' possible mixtures, and the nodes seen.

    A node is a switch, a stamp, and whether the packet has used a rule that only `now`, only `next` has.
    """
    bits, visited = 0, 0
    egress = net.egress[class_id]
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        if not net.entering[slot] or net.switch[slot] == blocked:
            continue
        for stamp in range(2):
            enters = _enters(net, class_id, slot, state, op_at, stamp)
            root = net.switch[slot] * 8 + stamp * 4
            if not enters or colour[root] != 0:
                continue
            stack[0], option[0], edge[0], depth = root, -1, 0, 1
            colour[root] = 1
            seen[visited] = root
            visited += 1
            while depth > 0:
                node = stack[depth - 1]
                switch, b, flags = node // 8, (node // 4) % 2, node % 4
                here = slot_at[switch]
                if option[depth - 1] < 0:  # the first visit
                    option[depth - 1], edge[depth - 1] = 0, 0
                    if _is_hole(net, class_id, here, state, op_at, b, is_stamped, depth == 1):
                        bits |= HOLES
                        where[1] = switch
                moved = False
                while here >= 0 and option[depth - 1] < 4:
                    o = option[depth - 1]
                    phase, rule = o // 2, o % 2
                    starts = net.old_start if rule == 0 else net.new_start
                    if edge[depth - 1] == 0 and not _has_option(
                        net, class_id, here, state, op_at, b, is_stamped, phase, rule
                    ):
                        option[depth - 1] += 1
                        continue
                    index = starts[here] + edge[depth - 1]
                    if index >= starts[here + 1]:
                        option[depth - 1] += 1
                        edge[depth - 1] = 0
                        continue
                    edge[depth - 1] += 1
                    hop = net.old_hop[index] if rule == 0 else net.new_hop[index]
                    reached[net.old_link[index] if rule == 0 else net.new_link[index]] = True
                    after = flags if net.same[here] else flags | (2 if rule == 0 else 1)
                    if hop == blocked:
                        continue
                    if hop == egress:
                        if after == 3:
                            if blocked >= 0:
                                bits |= MISSES
                                where[3] = switch
                            else:
                                bits |= MIXES
                                where[2] = switch
                        continue
                    target = hop * 8 + b * 4 + after
                    if colour[target] == 1:
                        bits |= LOOPS
                        where[0] = hop
                    elif (
                        colour[target] == 2
                    ):  # perhaps seen as an entrance only, where a missing rule is allowed
                        if _is_hole(net, class_id, slot_at[hop], state, op_at, b, is_stamped, False):
                            bits |= HOLES
                            where[1] = hop
                    elif colour[target] == 0:
                        colour[target] = 1
                        seen[visited] = target
                        visited += 1
                        stack[depth], option[depth], edge[depth] = target, -1, 0
                        depth += 1
                        moved = True
                        break
                if not moved:
                    colour[node] = 2
                    depth -= 1
    for index in range(visited):
        colour[seen[index]] = 0
    return bits, visited


@inner
def _after(
    net: Network, class_id: int, slot: int, state: State, op_at: Ints, phase: int
) -> tuple[bool, bool, int]:
    """Return the state of a slot before (0) or after (1) the step's change of it."""
    old, new, entry = state.old[slot], state.new[slot], state.entry[slot]
    if phase == 0 or op_at[slot] < 0:
        return old, new, entry
    is_only = net.ingress[class_id] == net.switch[slot]
    has_next = net.new_start[slot + 1] > net.new_start[slot]
    return change(op_at[slot], old, new, entry, is_only, has_next)


@inner
def _is_stamped_as(stamp: int, entry: int) -> bool:
    """Return whether packets that enter may get a stamp."""
    return entry != ENTERS_NEW if stamp == 0 else entry != ENTERS_OLD


@inner
def _enters(net: Network, class_id: int, slot: int, state: State, op_at: Ints, stamp: int) -> bool:
    if stamp == 1 and net.new_start[slot + 1] == net.new_start[slot]:
        return False  # the ingress drops packets that the next configuration does not forward
    for phase in range(2 if op_at[slot] >= 0 else 1):
        _, _, entry = _after(net, class_id, slot, state, op_at, phase)
        if _is_stamped_as(stamp, entry):
            return True
    return False


@inner
def _has_option(
    net: Network,
    class_id: int,
    slot: int,
    state: State,
    op_at: Ints,
    stamp: int,
    is_stamped: bool,
    phase: int,
    rule: int,
) -> bool:
    if phase == 1 and op_at[slot] < 0:
        return False
    old, new, entry = _after(net, class_id, slot, state, op_at, phase)
    if net.ingress[class_id] == net.switch[slot] and not _is_stamped_as(stamp, entry):
        return False  # no packet of this stamp enters in this state
    return uses(stamp, rule, old, new, is_stamped)


@inner
def _is_hole(
    net: Network,
    class_id: int,
    slot: int,
    state: State,
    op_at: Ints,
    stamp: int,
    is_stamped: bool,
    is_entry: bool,
) -> bool:
    """Return whether a packet can be lost at a switch; where it enters, only if now and next forward it."""
    if slot < 0:
        return True
    if is_entry and not (
        net.old_start[slot + 1] > net.old_start[slot] and net.new_start[slot + 1] > net.new_start[slot]
    ):
        return False
    is_only = net.ingress[class_id] == net.switch[slot]
    for phase in range(2 if op_at[slot] >= 0 else 1):
        old, new, entry = _after(net, class_id, slot, state, op_at, phase)
        if is_entry and is_only and not _is_stamped_as(stamp, entry):
            continue
        if not uses(stamp, 0, old, new, is_stamped) and not uses(stamp, 1, old, new, is_stamped):
            return True
    return False


@run_small_in_python(max_elements=5_000)
@kernel
def replay(net: Network, state: State, changes: Changes, links: int) -> Outcome:  # noqa: C901
    """Return the packets' possible mixtures in each group of changes; `state` becomes that after all."""
    ops, starts, is_stamped = changes
    groups = len(starts) - 1
    bits, where = np.zeros(groups, dtype=np.int64), np.full((groups, 4), -1)
    nodes = net.switches * 8
    colour = np.zeros(nodes, dtype=np.int64)
    stack, option = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes + 1, dtype=np.int64)
    edge, seen = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes + 1, dtype=np.int64)
    op_at, slot_at = np.full(len(net.switch), -1), np.full(net.switches, -1)
    reached = np.zeros(links, dtype=np.bool_)
    size = 0
    for group in range(groups):
        class_id = net.owner[ops.slot[starts[group]]]
        low, high = net.start[class_id], net.start[class_id + 1]
        size += net.old_start[high] - net.old_start[low] + net.new_start[high] - net.new_start[low]
    reach_group, reach_link, count = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), 0
    for group in range(groups):
        class_id = net.owner[ops.slot[starts[group]]]
        low, high = net.start[class_id], net.start[class_id + 1]
        for slot in range(low, high):
            slot_at[net.switch[slot]] = slot
        for operation in range(starts[group], starts[group + 1]):
            op_at[ops.slot[operation]] = ops.action[operation]
        met, _ = _search(
            net,
            class_id,
            state,
            op_at,
            slot_at,
            is_stamped[class_id],
            -1,
            colour,
            stack,
            option,
            edge,
            seen,
            reached,
            where[group],
        )
        for slot in range(low, high):  # the links that were reached, each once
            for entry in range(net.old_start[slot], net.old_start[slot + 1]):
                if reached[net.old_link[entry]]:
                    reach_group[count], reach_link[count] = group, net.old_link[entry]
                    reached[net.old_link[entry]] = False
                    count += 1
            for entry in range(net.new_start[slot], net.new_start[slot + 1]):
                if reached[net.new_link[entry]]:
                    reach_group[count], reach_link[count] = group, net.new_link[entry]
                    reached[net.new_link[entry]] = False
                    count += 1
        if met & MIXES:
            for way in range(net.way_start[class_id], net.way_start[class_id + 1]):
                missed, _ = _search(
                    net,
                    class_id,
                    state,
                    op_at,
                    slot_at,
                    is_stamped[class_id],
                    net.ways[way],
                    colour,
                    stack,
                    option,
                    edge,
                    seen,
                    reached,
                    where[group],
                )
                met |= missed & MISSES
            for slot in range(low, high):
                reached[net.old_link[net.old_start[slot] : net.old_start[slot + 1]]] = False
                reached[net.new_link[net.new_start[slot] : net.new_start[slot + 1]]] = False
        bits[group] = met
        for operation in range(starts[group], starts[group + 1]):
            slot = ops.slot[operation]
            state.old[slot], state.new[slot], state.entry[slot] = _after(net, class_id, slot, state, op_at, 1)
        for operation in range(starts[group], starts[group + 1]):
            op_at[ops.slot[operation]] = -1
        for slot in range(low, high):
            slot_at[net.switch[slot]] = -1
    return Outcome(bits, where, reach_group[:count], reach_link[:count])


@run_small_in_python(max_elements=4_000)
@kernel
def sample(  # noqa: C901
    net: Network, state: State, changes: Changes, shares: Shares, samples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return shares of packets of each group that loop, are lost, and use rules of both, over random orders.

    In each sample every change of the group is done with the same random probability, and one packet is sent.
    """
    ops, starts, is_stamped = changes
    old_share, new_share = shares
    np.random.seed(seed)  # noqa: NPY002
    groups = len(starts) - 1
    loops, holes, mixes = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    is_applied = np.zeros(len(net.switch), dtype=np.int64)
    op_at, slot_at = np.full(len(net.switch), -1), np.full(net.switches, -1)
    doors = np.empty(len(net.switch), dtype=np.int64)
    for group in range(groups):
        class_id = net.owner[ops.slot[starts[group]]]
        low, high, count = net.start[class_id], net.start[class_id + 1], 0
        for slot in range(low, high):
            slot_at[net.switch[slot]] = slot
            if net.entering[slot]:
                doors[count] = slot
                count += 1
        for operation in range(starts[group], starts[group + 1]):
            op_at[ops.slot[operation]] = ops.action[operation]
        for _ in range(samples if count else 0):
            chance = np.random.random()  # noqa: NPY002
            for operation in range(starts[group], starts[group + 1]):
                is_applied[ops.slot[operation]] = 1 if np.random.random() < chance else 0  # noqa: NPY002
            here = doors[np.random.randint(count)]  # noqa: NPY002
            _, _, entry = _after(net, class_id, here, state, op_at, is_applied[here])
            stamp = 0 if entry == ENTERS_OLD else 1
            if entry == ENTERS_BOTH and np.random.random() < 0.5:  # noqa: NPY002
                stamp = 0
            if stamp == 1 and net.new_start[here + 1] == net.new_start[here]:
                continue  # dropped where it enters
            flags = 0
            for step in range(2 * net.switches + 2):
                old, new, _ = _after(net, class_id, here, state, op_at, is_applied[here])
                rule = -1
                for candidate in range(2):
                    if uses(stamp, candidate, old, new, is_stamped[class_id]):
                        rule = candidate
                        break
                if rule < 0:
                    if step > 0:
                        holes[group] += 1
                    break
                first = net.old_start[here] if rule == 0 else net.new_start[here]
                last = (net.old_start[here + 1] if rule == 0 else net.new_start[here + 1]) - 1
                remaining = np.random.random()  # noqa: NPY002
                while first < last:
                    remaining -= old_share[first] if rule == 0 else new_share[first]
                    if remaining < 0:
                        break
                    first += 1
                if not net.same[here]:
                    flags |= 2 if rule == 0 else 1
                hop = net.old_hop[first] if rule == 0 else net.new_hop[first]
                if hop == net.egress[class_id]:
                    break
                here = slot_at[hop]
                if here < 0:
                    holes[group] += 1
                    break
                if step == 2 * net.switches + 1:
                    loops[group] += 1
            mixes[group] += flags == 3
        for operation in range(starts[group], starts[group + 1]):
            slot = ops.slot[operation]
            state.old[slot], state.new[slot], state.entry[slot] = _after(net, class_id, slot, state, op_at, 1)
            op_at[slot] = -1
            is_applied[slot] = 0
        for slot in range(low, high):
            slot_at[net.switch[slot]] = -1
    return loops / samples, holes / samples, mixes / samples
