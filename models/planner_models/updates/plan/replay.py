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


class Group(NamedTuple):
    """One class in one step.

    slot_at  (S,) its slot at each switch; -1 for none
    op_at    (N,) change of each slot; -1 for none
    where    (4,) as in `Outcome`
    """

    class_id: int
    is_stamped: bool
    slot_at: Ints
    op_at: Ints
    where: Ints


class Memory(NamedTuple):
    """Memory of a search in depth; nodes are a switch, a stamp and flags.

    colour   (nodes,) 0 before a visit, 1 on the way, 2 after it
    stack, option, edge  (nodes + 1,) nodes on the way, and the rule and next hop that each comes to next
    seen     (nodes + 1,) nodes with a colour, in order
    reached  (E,) links that packets can take
    """

    colour: Ints
    stack: Ints
    option: Ints
    edge: Ints
    seen: Ints
    reached: Bools


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
def _search(net: Network, state: State, group: Group, blocked: int, memory: Memory) -> int:
    """Search the union of a class's states; return the packets' possible mixtures.

    A node is a switch, a stamp, and whether the packet has used a rule that only `now`, only `next` has.
    """
    bits, visited = 0, 0
    for slot in range(net.start[group.class_id], net.start[group.class_id + 1]):
        if not net.entering[slot] or net.switch[slot] == blocked:
            continue
        for stamp in range(2):
            root = net.switch[slot] * 8 + stamp * 4
            if memory.colour[root] == 0 and _enters(net, state, group, slot, stamp):
                found, visited = _search_from(net, state, group, blocked, memory, root, visited)
                bits |= found
    for index in range(visited):
        memory.colour[memory.seen[index]] = 0
    return bits


@inner
def _search_from(  # noqa: C901
    net: Network, state: State, group: Group, blocked: int, memory: Memory, root: int, visited: int
) -> tuple[int, int]:
    """Search in depth from a node; return the packets' possible mixtures, and the number of nodes seen."""
    colour, stack, option = memory.colour, memory.stack, memory.option
    bits, depth = 0, 1
    visited = _push(memory, 0, root, visited)
    while depth > 0:
        node = stack[depth - 1]
        switch, stamp, flags = node // 8, (node // 4) % 2, node % 4
        slot = group.slot_at[switch]
        if option[depth - 1] < 0:  # the first visit
            option[depth - 1] = 0
            if _is_hole(net, state, group, slot, stamp, depth == 1):
                bits |= HOLES
                group.where[1] = switch
        rule, index = _find_next_hop(net, state, group, slot, stamp, memory, depth - 1)
        if index < 0:
            colour[node] = 2
            depth -= 1
            continue
        hop = net.old_hop[index] if rule == 0 else net.new_hop[index]
        memory.reached[net.old_link[index] if rule == 0 else net.new_link[index]] = True
        after = flags if net.same[slot] else flags | (2 if rule == 0 else 1)
        if hop == blocked:
            continue
        if hop == net.egress[group.class_id]:
            if after == 3:
                bits |= _note_mixture(group, switch, blocked)
            continue
        target = hop * 8 + stamp * 4 + after
        if colour[target] == 0:
            visited = _push(memory, depth, target, visited)
            depth += 1
        elif colour[target] == 1:
            bits |= LOOPS
            group.where[0] = hop
        elif _is_hole(net, state, group, group.slot_at[hop], stamp, False):
            # perhaps seen as an entrance only, where a missing rule is allowed
            bits |= HOLES
            group.where[1] = hop
    return bits, visited


@inner
def _push(memory: Memory, depth: int, node: int, visited: int) -> int:
    """Put a node on the way; return the number of nodes seen."""
    memory.colour[node] = 1
    memory.stack[depth], memory.option[depth], memory.edge[depth] = node, -1, 0
    memory.seen[visited] = node
    return visited + 1


@inner
def _note_mixture(group: Group, switch: int, blocked: int) -> int:
    """Note the end of a packet with rules of both; return MISSES if a waypoint is blocked, else MIXES."""
    if blocked >= 0:
        group.where[3] = switch
        return MISSES
    group.where[2] = switch
    return MIXES


@inner
def _find_next_hop(
    net: Network, state: State, group: Group, slot: int, stamp: int, memory: Memory, top: int
) -> tuple[int, int]:
    """Return the rule and the index of the next hop that the search follows from its top; -1 for none."""
    option, edge = memory.option, memory.edge
    while slot >= 0 and option[top] < 4:
        phase, rule = option[top] // 2, option[top] % 2
        start = net.old_start if rule == 0 else net.new_start
        index = start[slot] + edge[top]
        if index < start[slot + 1] and (
            edge[top] > 0 or _has_option(net, state, group, slot, stamp, phase, rule)
        ):
            edge[top] += 1
            return rule, index
        option[top] += 1
        edge[top] = 0
    return -1, -1


@inner
def _after(net: Network, state: State, group: Group, slot: int, phase: int) -> tuple[bool, bool, int]:
    """Return the state of a slot before (0) or after (1) the step's change of it."""
    old, new, entry = state.old[slot], state.new[slot], state.entry[slot]
    if phase == 0 or group.op_at[slot] < 0:
        return old, new, entry
    is_only = net.ingress[group.class_id] == net.switch[slot]
    has_next = net.new_start[slot + 1] > net.new_start[slot]
    return change(group.op_at[slot], old, new, entry, is_only, has_next)


@inner
def _is_stamped_as(stamp: int, entry: int) -> bool:
    """Return whether packets that enter may get a stamp."""
    return entry != ENTERS_NEW if stamp == 0 else entry != ENTERS_OLD


@inner
def _enters(net: Network, state: State, group: Group, slot: int, stamp: int) -> bool:
    if stamp == 1 and net.new_start[slot + 1] == net.new_start[slot]:
        return False  # the ingress drops packets that the next configuration does not forward
    for phase in range(2 if group.op_at[slot] >= 0 else 1):
        _, _, entry = _after(net, state, group, slot, phase)
        if _is_stamped_as(stamp, entry):
            return True
    return False


@inner
def _has_option(
    net: Network, state: State, group: Group, slot: int, stamp: int, phase: int, rule: int
) -> bool:
    if phase == 1 and group.op_at[slot] < 0:
        return False
    old, new, entry = _after(net, state, group, slot, phase)
    if net.ingress[group.class_id] == net.switch[slot] and not _is_stamped_as(stamp, entry):
        return False  # no packet of this stamp enters in this state
    return uses(stamp, rule, old, new, group.is_stamped)


@inner
def _is_hole(net: Network, state: State, group: Group, slot: int, stamp: int, is_entry: bool) -> bool:
    """Return whether a packet can be lost at a switch; where it enters, only if now and next forward it."""
    if slot < 0:
        return True
    if is_entry and not (
        net.old_start[slot + 1] > net.old_start[slot] and net.new_start[slot + 1] > net.new_start[slot]
    ):
        return False
    is_only = net.ingress[group.class_id] == net.switch[slot]
    for phase in range(2 if group.op_at[slot] >= 0 else 1):
        old, new, entry = _after(net, state, group, slot, phase)
        if is_entry and is_only and not _is_stamped_as(stamp, entry):
            continue
        if not uses(stamp, 0, old, new, group.is_stamped) and not uses(stamp, 1, old, new, group.is_stamped):
            return True
    return False


@inner
def _begin_group(
    net: Network, changes: Changes, number: int, slot_at: Ints, op_at: Ints, where: Ints
) -> Group:
    """Return a group of changes, with its slots and changes filled in."""
    ops, starts = changes.ops, changes.starts
    class_id = net.owner[ops.slot[starts[number]]]
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        slot_at[net.switch[slot]] = slot
    for operation in range(starts[number], starts[number + 1]):
        op_at[ops.slot[operation]] = ops.action[operation]
    return Group(class_id, changes.is_stamped[class_id], slot_at, op_at, where)


@inner
def _end_group(net: Network, state: State, changes: Changes, number: int, group: Group) -> None:
    """Make the changes of a group, and clear its slots and changes."""
    slots = changes.ops.slot[changes.starts[number] : changes.starts[number + 1]]
    for slot in slots:
        state.old[slot], state.new[slot], state.entry[slot] = _after(net, state, group, slot, 1)
    for slot in slots:
        group.op_at[slot] = -1
    for slot in range(net.start[group.class_id], net.start[group.class_id + 1]):
        group.slot_at[net.switch[slot]] = -1


@run_small_in_python(max_elements=5_000)
@kernel
def replay(net: Network, state: State, changes: Changes, links: int) -> Outcome:
    """Return the packets' possible mixtures in each group of changes; `state` becomes that after all."""
    ops, starts = changes.ops, changes.starts
    groups = len(starts) - 1
    bits, where = np.zeros(groups, dtype=np.int64), np.full((groups, 4), -1)
    nodes = net.switches * 8
    memory = Memory(
        np.zeros(nodes, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.empty(nodes + 1, dtype=np.int64),
        np.zeros(links, dtype=np.bool_),
    )
    op_at, slot_at = np.full(len(net.switch), -1), np.full(net.switches, -1)
    size = 0
    for number in range(groups):
        class_id = net.owner[ops.slot[starts[number]]]
        low, high = net.start[class_id], net.start[class_id + 1]
        size += net.old_start[high] - net.old_start[low] + net.new_start[high] - net.new_start[low]
    reach_group, reach_link, count = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), 0
    for number in range(groups):
        group = _begin_group(net, changes, number, slot_at, op_at, where[number])
        mixtures = _search(net, state, group, -1, memory)
        first, count = count, _list_reached(net, group.class_id, memory.reached, reach_link, count)
        reach_group[first:count] = number
        if mixtures & MIXES:
            mixtures |= _find_misses(net, state, group, memory)
        bits[number] = mixtures
        _end_group(net, state, changes, number, group)
    return Outcome(bits, where, reach_group[:count], reach_link[:count])


@inner
def _list_reached(net: Network, class_id: int, reached: Bools, links: Ints, count: int) -> int:
    """List the links that packets of a class have reached, each once, and clear them; return their number."""
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        for entry in range(net.old_start[slot], net.old_start[slot + 1]):
            if reached[net.old_link[entry]]:
                links[count] = net.old_link[entry]
                reached[net.old_link[entry]] = False
                count += 1
        for entry in range(net.new_start[slot], net.new_start[slot + 1]):
            if reached[net.new_link[entry]]:
                links[count] = net.new_link[entry]
                reached[net.new_link[entry]] = False
                count += 1
    return count


@inner
def _find_misses(net: Network, state: State, group: Group, memory: Memory) -> int:
    """Return MISSES where packets with rules of both can miss a waypoint of the class, else 0."""
    misses, class_id = 0, group.class_id
    for way in range(net.way_start[class_id], net.way_start[class_id + 1]):
        misses |= _search(net, state, group, net.ways[way], memory) & MISSES
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        memory.reached[net.old_link[net.old_start[slot] : net.old_start[slot + 1]]] = False
        memory.reached[net.new_link[net.new_start[slot] : net.new_start[slot + 1]]] = False
    return misses


@run_small_in_python(max_elements=4_000)
@kernel
def sample(
    net: Network, state: State, changes: Changes, shares: Shares, samples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return shares of packets of each group that loop, are lost, and use rules of both, over random orders.

    In each sample every change of the group is done with the same random probability, and one packet is sent.
    """
    np.random.seed(seed)  # noqa: NPY002
    ops, starts = changes.ops, changes.starts
    groups = len(starts) - 1
    loops, holes, mixes = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    is_applied = np.zeros(len(net.switch), dtype=np.int64)
    op_at, slot_at = np.full(len(net.switch), -1), np.full(net.switches, -1)
    doors, no_switch = np.empty(len(net.switch), dtype=np.int64), np.full(4, -1)
    for number in range(groups):
        group = _begin_group(net, changes, number, slot_at, op_at, no_switch)
        count = 0
        for slot in range(net.start[group.class_id], net.start[group.class_id + 1]):
            if net.entering[slot]:
                doors[count] = slot
                count += 1
        for _ in range(samples if count else 0):
            chance = np.random.random()  # noqa: NPY002
            for operation in range(starts[number], starts[number + 1]):
                is_applied[ops.slot[operation]] = 1 if np.random.random() < chance else 0  # noqa: NPY002
            door = doors[np.random.randint(count)]  # noqa: NPY002
            met = _send(net, state, group, shares, is_applied, door)
            loops[number] += met & LOOPS > 0
            holes[number] += met & HOLES > 0
            mixes[number] += met & MIXES > 0
        for operation in range(starts[number], starts[number + 1]):
            is_applied[ops.slot[operation]] = 0
        _end_group(net, state, changes, number, group)
    return loops / samples, holes / samples, mixes / samples


@inner
def _send(net: Network, state: State, group: Group, shares: Shares, is_applied: Ints, door: int) -> int:
    """Send one packet from a slot where it enters; return what it meets, a sum of LOOPS, HOLES and MIXES.

    is_applied  (N,) 1 for slots whose change is done
    """
    _, _, entry = _after(net, state, group, door, is_applied[door])
    stamp = 0 if entry == ENTERS_OLD else 1
    if entry == ENTERS_BOTH and np.random.random() < 0.5:  # noqa: NPY002
        stamp = 0
    if stamp == 1 and net.new_start[door + 1] == net.new_start[door]:
        return 0  # dropped where it enters
    slot, flags, end = door, 0, LOOPS
    for step in range(2 * net.switches + 2):
        old, new, _ = _after(net, state, group, slot, is_applied[slot])
        if uses(stamp, 0, old, new, group.is_stamped):
            rule = 0
        elif uses(stamp, 1, old, new, group.is_stamped):
            rule = 1
        else:
            end = HOLES if step > 0 else 0
            break
        index = _draw_next_hop(net, shares, slot, rule)
        if not net.same[slot]:
            flags |= 2 if rule == 0 else 1
        hop = net.old_hop[index] if rule == 0 else net.new_hop[index]
        if hop == net.egress[group.class_id]:
            end = 0
            break
        slot = group.slot_at[hop]
        if slot < 0:
            end = HOLES
            break
    return end | (MIXES if flags == 3 else 0)


@inner
def _draw_next_hop(net: Network, shares: Shares, slot: int, rule: int) -> int:
    """Return the index of a next hop that a random packet takes by the rule of `now` (0) or of `next` (1)."""
    start, share = (net.old_start, shares.old) if rule == 0 else (net.new_start, shares.new)
    index, last = int(start[slot]), start[slot + 1] - 1
    remaining = np.random.random()  # noqa: NPY002
    while index < last:
        remaining -= share[index]
        if remaining < 0:
            break
        index += 1
    return index
