"""Rules of both configurations as arrays: one slot for each class and switch that has a rule in either."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python


class Configuration(NamedTuple):
    """Next hops of slots, as a sparse matrix by rows; slots without a rule have none.

    start  (N + 1,) first next hop of each slot
    hop    (H,) switch
    link   (H,) link to it
    share  (H,) part of the packets
    """

    start: Ints
    hop: Ints
    link: Ints
    share: Floats

    def has_rule(self) -> Bools:
        """Return the (N,) slots that have a rule."""
        mask: Bools = np.diff(self.start) > 0
        return mask


class Slots(NamedTuple):
    """All slots, ordered by class and switch; N of them.

    start    (C + 1,) first slot of each class
    owner    (N,) class
    switch   (N,) switch
    rules    (N,) entries that the class takes there
    now, next  next hops before and after
    same     (N,) whether both have the same rule
    changes  (C,) whether a class has a slot whose rule changes
    """

    start: Ints
    owner: Ints
    switch: Ints
    rules: Ints
    now: Configuration
    next: Configuration
    same: Bools
    changes: Bools

    def of(self, classes: Ints) -> Ints:
        """Return the slots of some classes, class by class."""
        if not len(classes):
            return np.zeros(0, dtype=np.int64)
        counts = self.start[classes + 1] - self.start[classes]
        first = np.repeat(self.start[classes] - np.r_[0, np.cumsum(counts)[:-1]], counts)
        slots_found: Ints = first + np.arange(int(counts.sum()))
        return slots_found


class Rows(NamedTuple):
    """Rows of a table of rules by number: class, switch, next hop, link to it, and share."""

    owner: Ints
    switch: Ints
    hop: Ints
    link: Ints
    share: Floats


def make_slots(classes: int, switches: int, now: Rows, after: Rows, rules: dict[int, int]) -> Slots:
    """Return the slots of two tables of rules.

    rules  entries by class * switches + switch, where not 1
    """
    keys = [part_rules.owner * switches + part_rules.switch for part_rules in (now, after)]
    every = np.unique(np.concatenate(keys))
    configurations = [
        _configure(every, key, part_rules) for key, part_rules in zip(keys, (now, after), strict=True)
    ]
    owner, switch = np.divmod(every, switches) if len(every) else (every, every)
    count = np.ones(len(every), dtype=np.int64)
    for key, value in rules.items():
        index = int(np.searchsorted(every, key))
        if index < len(every) and every[index] == key:
            count[index] = value
    same = _find_same(configurations[0], configurations[1])
    changes = np.zeros(classes, dtype=bool)
    changes[owner[~same]] = True
    return Slots(
        start=np.searchsorted(owner, np.arange(classes + 1)).astype(np.int64),
        owner=owner.astype(np.int64),
        switch=switch.astype(np.int64),
        rules=count,
        now=configurations[0],
        next=configurations[1],
        same=same,
        changes=changes,
    )


def _configure(every: Ints, key: Ints, rows: Rows) -> Configuration:
    order = np.lexsort((rows.hop, key))
    start = np.searchsorted(key[order], every, side="left")
    return Configuration(
        start=np.append(start, len(key)).astype(np.int64),
        hop=rows.hop[order],
        link=rows.link[order],
        share=rows.share[order],
    )


@run_small_in_python(max_elements=2_000)
@kernel
def _find_same(now: Configuration, after: Configuration) -> Bools:
    """Return the slots with the same next hops and shares in both configurations."""
    count = len(now.start) - 1
    same = np.zeros(count, dtype=np.bool_)
    for slot in range(count):
        first, second = now.start[slot], after.start[slot]
        size = now.start[slot + 1] - first
        if size != after.start[slot + 1] - second:
            continue
        same[slot] = True
        for index in range(size):
            apart = abs(now.share[first + index] - after.share[second + index])
            if now.hop[first + index] != after.hop[second + index] or apart > 1e-9:
                same[slot] = False
                break
    return same


SOUND = 0
LOOP = 1
DEAD_END = 2


@run_small_in_python(max_elements=2_000)
@kernel
def find_unsound(  # noqa: C901
    start: Ints, switch: Ints, first: Ints, hop: Ints, ingress: Ints, egress: Ints, switches: int
) -> tuple[Ints, Ints]:
    """Return for each class whether packets loop or end elsewhere than at the egress, and at which switch.

    start    (C + 1,) first slot of each class
    switch   (N,) switch of each slot
    first    (N + 1,) first next hop of each slot
    ingress  (C,) switch, -1 for every switch with a rule
    """
    classes = len(start) - 1
    fault, where = np.zeros(classes, dtype=np.int64), np.full(classes, -1)
    slot_at = np.full(switches, -1)
    colour = np.zeros(switches, dtype=np.int64)  # 1 on the way, 2 done
    stack, edge = np.empty(switches + 1, dtype=np.int64), np.empty(switches + 1, dtype=np.int64)
    for class_id in range(classes):
        low, high = start[class_id], start[class_id + 1]
        for slot in range(low, high):
            slot_at[switch[slot]] = slot if first[slot + 1] > first[slot] else -1
        for slot in range(low, high):
            root = switch[slot]
            if (
                slot_at[root] < 0
                or (ingress[class_id] >= 0 and root != ingress[class_id])
                or colour[root] == 2
            ):
                continue
            stack[0], edge[0], depth = root, first[slot_at[root]], 1
            colour[root] = 1
            while depth > 0 and fault[class_id] == SOUND:
                node = stack[depth - 1]
                if edge[depth - 1] == first[slot_at[node] + 1]:
                    colour[node] = 2
                    depth -= 1
                    continue
                target = hop[edge[depth - 1]]
                edge[depth - 1] += 1
                if target == egress[class_id] or colour[target] == 2:
                    continue
                if slot_at[target] < 0:
                    fault[class_id], where[class_id] = DEAD_END, target
                elif colour[target] == 1:
                    fault[class_id], where[class_id] = LOOP, target
                else:
                    colour[target] = 1
                    stack[depth], edge[depth] = target, first[slot_at[target]]
                    depth += 1
            if fault[class_id] != SOUND:
                break
        for slot in range(low, high):
            slot_at[switch[slot]] = -1
            colour[switch[slot]] = 0
    return fault, where


class Layout(NamedTuple):
    """Slots of classes, and where their packets enter and leave.

    start, switch  as in `Slots`
    entering       (N,) whether packets enter at a slot
    egress         (C,) switch
    switches       number of switches
    """

    start: Ints
    switch: Ints
    entering: Bools
    egress: Ints
    switches: int


@run_small_in_python(max_elements=2_000)
@kernel
def measure_paths(layout: Layout, configuration: Configuration, delay: Floats, load: Floats) -> Floats:
    """Return the longest delay of packets of each class, and fill the share of its packets on each next hop.

    The configuration must be sound. Packets enter in equal parts at the slots `entering`.

    load        (H,) share of the class's packets, to be filled
    """
    start, switch, entering = layout.start, layout.switch, layout.entering
    switches, first = layout.switches, configuration.start
    classes = len(start) - 1
    longest = np.zeros(classes)
    slot_at = np.full(switches, -1)
    colour = np.zeros(switches, dtype=np.int64)
    time, amount = np.zeros(switches), np.zeros(switches)
    order, edge = np.empty(switches, dtype=np.int64), np.empty(switches + 1, dtype=np.int64)
    stack = np.empty(switches + 1, dtype=np.int64)
    search = Search(slot_at, colour, stack, edge, order)
    for class_id in range(classes):
        low, high = start[class_id], start[class_id + 1]
        count, settled = 0, 0
        for slot in range(low, high):
            slot_at[switch[slot]] = slot if first[slot + 1] > first[slot] else -1
            count += entering[slot]
        for slot in range(low, high):
            root = switch[slot]
            if entering[slot] and slot_at[root] >= 0 and colour[root] != 2:
                settled = _sort_from(configuration, search, root, layout.egress[class_id], settled)
        for index in range(settled - 1, -1, -1):
            node = order[index]
            slot = slot_at[node]
            if entering[slot]:
                amount[node] += 1.0 / count
            for way in range(first[slot], first[slot + 1]):
                load[way] = amount[node] * configuration.share[way]
                target = configuration.hop[way]
                later = time[node] + delay[configuration.link[way]]
                if target == layout.egress[class_id]:
                    longest[class_id] = max(longest[class_id], later)
                else:
                    amount[target] += load[way]
                    time[target] = max(time[target], later)
        for slot in range(low, high):
            slot_at[switch[slot]] = -1
            colour[switch[slot]] = 0
            time[switch[slot]] = 0.0
            amount[switch[slot]] = 0.0
    return longest


class Search(NamedTuple):
    """Memory of a search in depth among the switches of a class.

    slot_at  (S,) its slot at each switch, -1 without a rule
    colour   (S,) 2 for switches that the search has come to
    stack, edge  (S + 1,) switches on the way, and the next hop that each comes to next
    order    (S,) switches, each after those that it sends to
    """

    slot_at: Ints
    colour: Ints
    stack: Ints
    edge: Ints
    order: Ints


@inner
def _sort_from(configuration: Configuration, search: Search, root: int, egress: int, settled: int) -> int:
    """List the switches that packets reach from one, each after its next hops; return how many are listed."""
    first, colour, stack, edge = configuration.start, search.colour, search.stack, search.edge
    stack[0], edge[0], depth = root, first[search.slot_at[root]], 1
    colour[root] = 2
    while depth > 0:
        node = stack[depth - 1]
        if edge[depth - 1] == first[search.slot_at[node] + 1]:
            search.order[settled] = node
            settled += 1
            depth -= 1
            continue
        target = configuration.hop[edge[depth - 1]]
        edge[depth - 1] += 1
        if target != egress and colour[target] != 2:
            colour[target] = 2
            stack[depth], edge[depth] = target, first[search.slot_at[target]]
            depth += 1
    return settled
