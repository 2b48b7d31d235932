"""Compiled forwarding of packets: microflows first, then megaflows mask by mask, then userspace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import kernel
from planner_models.flowtables.plan.bit_index import BLOCK
from planner_models.flowtables.plan.lookup import add_mask, count_hit, find_entry, find_reusable, insert


class Microflows(NamedTuple):
    """A cache of headers before the search of masks, one header in each place.

    header  (m,) number of the header, -1 for none
    entry   (m,) its megaflow
    """

    header: Ints
    entry: Ints


class Held(NamedTuple):
    """State of the entries of a table, each (n,): action, time of the last packet, and of installation, s."""

    action: Ints32
    last_s: Floats
    since_s: Floats


PACKETS, MICROFLOW_HITS, PROBES, MISSES, UNCACHED, WRONG = range(6)
COUNTS = 6
"""Counts of packets in an array: all, found as microflows, masks searched, misses, misses without an entry,
and packets with another action than that of the rules."""


@kernel
def forward(
    packet: Any, time_s: Any, headers: Any, action: Any, requested: Any, rules: Any, index: Any, table: Any,
    held: Any, micro: Any, bit_weight: Any, reuse: Any, most_entries: Any, counts: Any,
) -> Any:  # fmt: skip
    """Forward packets in the order of time.

    packet, time_s  (n,) header of each packet, and its time
    headers         (H, words)
    action          (H,) by the rules as they are
    requested          (H, words) mask of a new entry
    reuse           whether a mask in use that keeps the action is taken before, the lightest first
    counts          (6,) is increased
    """
    buffer = np.zeros(BLOCK, np.uint64)
    for i in range(len(packet)):
        h = packet[i]
        counts[PACKETS] += 1
        slot = np.int64(-1)
        if len(micro.header):
            counts[PROBES] += 1
            slot = np.int64((np.uint64(h) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) % len(
                micro.header
            )
            if micro.header[slot] == h:
                e = micro.entry[slot]
                counts[MICROFLOW_HITS] += 1
                counts[WRONG] += held.action[e] != action[h]
                held.last_s[e] = time_s[i]
                continue
        entry, searched = find_entry(table, headers[h])
        position = searched - 1
        counts[PROBES] += searched
        if entry < 0:
            counts[MISSES] += 1
            if table.counts[0] >= most_entries:
                counts[UNCACHED] += 1
                continue
            position = find_reusable(table, headers[h], rules, index, buffer) if reuse else -1
            if position < 0:
                position = add_mask(table, requested[h], bit_weight)
            entry = insert(table, headers[h], table.order[position])
            held.action[entry] = action[h]
            held.since_s[entry] = time_s[i]
        counts[WRONG] += held.action[entry] != action[h]
        held.last_s[entry] = time_s[i]
        if slot >= 0:
            micro.header[slot] = h
            micro.entry[slot] = entry
        count_hit(table, position)
