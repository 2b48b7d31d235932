"""Forwarding at each moment of an update: traffic that loops, is lost, and loads links, change by change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.updates.plan.replay import ENTERS_OLD, FLIP, SPLIT, Network, change, uses

LEAST: float = 1e-9  # part of a class's packets; less is rounding


class Events(NamedTuple):
    """Changes by class and, within a class, by time; M of them.

    slot, action  (M,) as in `Operations`
    time_s        (M,) when the change takes effect
    share         (M,) part of the packets that get the new version, where the action splits them
    """

    slot: Ints
    action: Ints
    time_s: Floats
    share: Floats


class Scratch(NamedTuple):
    """Arrays that `_forward` uses.

    flow     (N,) packets at each slot
    waits    (N,) rules that lead to it and were not followed yet; -1 where no packet comes
    queue    (N,) slots in order
    slot_at  (S,) slot of the class at each switch; -1 for none
    """

    flow: Floats
    waits: Ints
    queue: Ints
    slot_at: Ints


class Course(NamedTuple):
    """Course of classes over time.

    loop, hole  (M,) part of the class's packets that loop, that are lost, after each change
    time_s, link, rise_mbps  (R,) changes of the load of links
    """

    loop: Floats
    hole: Floats
    time_s: Floats
    link: Ints
    rise_mbps: Floats


@inner
def _choose_rule(slot: int, stamp: int, old: Bools, new: Bools, is_stamped: bool) -> int:
    """Return the rule that packets of a stamp use at a switch: of `now` (0), of `next` (1), or none (-1)."""
    if uses(stamp, 0, old[slot], new[slot], is_stamped):
        return 0
    return 1 if uses(stamp, 1, old[slot], new[slot], is_stamped) else -1


@inner
def _forward(  # noqa: C901
    net: Network,
    class_id: int,
    old: Bools,
    new: Bools,
    shares: Floats,
    is_stamped: bool,
    doors: int,
    old_share: Floats,
    new_share: Floats,
    scratch: Scratch,
    load: Floats,
) -> tuple[float, float]:
    """Send one unit of a class's packets; return its looping and lost parts, and add to `load` of links.

    Switches are served in order of their rules; those that are left are on a cycle, or behind one. Packets
    that reach these count as looping, on every link there.
    """
    flow, waits, queue, slot_at = scratch.flow, scratch.waits, scratch.queue, scratch.slot_at
    low, high = net.start[class_id], net.start[class_id + 1]
    loop, hole = 0.0, 0.0
    for stamp in range(2):
        reached = 0
        for slot in range(low, high):
            flow[slot], waits[slot] = 0.0, -1
        for slot in range(low, high):
            sent = (shares[slot] if stamp == 1 else 1.0 - shares[slot]) / doors
            if not net.entering[slot] or sent <= 0.0:
                continue
            has_next = net.new_start[slot + 1] > net.new_start[slot]
            if stamp == 1 and not has_next:
                continue  # dropped where it enters
            if _choose_rule(slot, stamp, old, new, is_stamped) >= 0:
                flow[slot], waits[slot] = sent, 0
                queue[low + reached] = slot
                reached += 1
            elif has_next and net.old_start[slot + 1] > net.old_start[slot]:
                hole += sent
        settled = 0
        while settled < reached:  # all switches that packets reach, and how many rules lead to each
            slot = queue[low + settled]
            settled += 1
            rule = _choose_rule(slot, stamp, old, new, is_stamped)
            if rule < 0:
                continue
            start, hops = (net.old_start, net.old_hop) if rule == 0 else (net.new_start, net.new_hop)
            for entry in range(start[slot], start[slot + 1]):
                target = slot_at[hops[entry]]
                if hops[entry] == net.egress[class_id] or target < 0:
                    continue
                if waits[target] < 0:
                    waits[target] = 0
                    queue[low + reached] = target
                    reached += 1
                waits[target] += 1
        ready = 0
        for slot in range(low, high):
            if waits[slot] == 0:
                queue[low + ready] = slot
                ready += 1
        settled = 0
        while settled < ready:
            slot = queue[low + settled]
            settled += 1
            waits[slot] = -1
            rule = _choose_rule(slot, stamp, old, new, is_stamped)
            if rule < 0:
                hole += flow[slot]
                continue
            start = net.old_start if rule == 0 else net.new_start
            for entry in range(start[slot], start[slot + 1]):
                sent = flow[slot] * (old_share[entry] if rule == 0 else new_share[entry])
                load[net.old_link[entry] if rule == 0 else net.new_link[entry]] += sent
                hop = net.old_hop[entry] if rule == 0 else net.new_hop[entry]
                if hop == net.egress[class_id]:
                    continue
                target = slot_at[hop]
                if target < 0:
                    hole += sent
                    continue
                flow[target] += sent
                waits[target] -= 1
                if waits[target] == 0:
                    queue[low + ready] = target
                    ready += 1
        caught = 0.0
        for slot in range(low, high):
            if waits[slot] > 0:
                caught += flow[slot]
        if caught > LEAST:
            loop += caught
            for slot in range(low, high):
                if waits[slot] > 0:
                    rule = _choose_rule(slot, stamp, old, new, is_stamped)
                    start = net.old_start if rule == 0 else net.new_start
                    for entry in range(start[slot], start[slot + 1] if rule >= 0 else start[slot]):
                        load[net.old_link[entry] if rule == 0 else net.new_link[entry]] += caught
    return loop, hole


@run_small_in_python(max_elements=1_000)
@kernel
def play(  # noqa: C901
    net: Network,
    old: Bools,
    new: Bools,
    events: Events,
    starts: Ints,
    is_stamped: Bools,
    old_share: Floats,
    new_share: Floats,
    traffic_mbps: Floats,
    links: int,
) -> Course:
    """Return the events of the classes as rules change; `old` and `new` become the rules afterwards.

    starts  (G + 1,) first change of each class that changes
    """
    count = len(events.slot)
    loops, holes = np.zeros(count), np.zeros(count)
    shares, entry = np.zeros(len(net.switch)), np.full(len(net.switch), ENTERS_OLD)
    slots = len(net.switch)
    scratch = Scratch(
        np.zeros(slots),
        np.zeros(slots, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
        np.full(net.switches, -1),
    )
    slot_at = scratch.slot_at
    before, after = np.zeros(links), np.zeros(links)
    size = 0
    for group in range(len(starts) - 1):
        class_id = net.owner[events.slot[starts[group]]]
        low, high = net.start[class_id], net.start[class_id + 1]
        hops = net.old_start[high] - net.old_start[low] + net.new_start[high] - net.new_start[low]
        size += hops * (starts[group + 1] - starts[group])
    time, link, rise = np.empty(size), np.empty(size, dtype=np.int64), np.empty(size)
    count_found = 0
    for group in range(len(starts) - 1):
        class_id = net.owner[events.slot[starts[group]]]
        low, high, doors = net.start[class_id], net.start[class_id + 1], 0
        for slot in range(low, high):
            slot_at[net.switch[slot]] = slot
            doors += 1 if net.entering[slot] else 0
        doors = max(doors, 1)
        stamped = is_stamped[class_id]
        _forward(
            net,
            class_id,
            old,
            new,
            shares,
            stamped,
            doors,
            old_share,
            new_share,
            scratch,
            before,
        )
        for event in range(starts[group], starts[group + 1]):
            slot, action = events.slot[event], events.action[event]
            is_only = net.ingress[class_id] == net.switch[slot]
            has_next = net.new_start[slot + 1] > net.new_start[slot]
            old[slot], new[slot], entry[slot] = change(
                action, old[slot], new[slot], entry[slot], is_only, has_next
            )
            if action == SPLIT:
                shares[slot] = events.share[event]
            elif action == FLIP:
                shares[slot] = 1.0
            loops[event], holes[event] = _forward(
                net,
                class_id,
                old,
                new,
                shares,
                stamped,
                doors,
                old_share,
                new_share,
                scratch,
                after,
            )
            for other_slot in range(low, high):
                for side in range(2):
                    first = net.old_start[other_slot] if side == 0 else net.new_start[other_slot]
                    last = net.old_start[other_slot + 1] if side == 0 else net.new_start[other_slot + 1]
                    for hop in range(first, last):
                        edge = net.old_link[hop] if side == 0 else net.new_link[hop]
                        step = (min(after[edge], 1.0) - min(before[edge], 1.0)) * traffic_mbps[class_id]
                        if abs(step) > 0.0:
                            time[count_found], link[count_found], rise[count_found] = (
                                events.time_s[event],
                                edge,
                                step,
                            )
                            count_found += 1
                        before[edge] = after[edge]
            for other_slot in range(low, high):
                after[net.old_link[net.old_start[other_slot] : net.old_start[other_slot + 1]]] = 0.0
                after[net.new_link[net.new_start[other_slot] : net.new_start[other_slot + 1]]] = 0.0
        for slot in range(low, high):
            slot_at[net.switch[slot]] = -1
            before[net.old_link[net.old_start[slot] : net.old_start[slot + 1]]] = 0.0
            before[net.new_link[net.new_start[slot] : net.new_start[slot + 1]]] = 0.0
    return Course(loops, holes, time[:count_found], link[:count_found], rise[:count_found])
