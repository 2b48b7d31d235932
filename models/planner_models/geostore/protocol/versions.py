"""Versions of a location: validity by earliest valid time, last writer wins, pending columns, counters.

The value visible at a logical time is the one with the newest stamp among those with an EVT up to it. A list
holds the versions that some time sees, newest first: its EVTs and its stamps both fall.
"""

from __future__ import annotations

from planner_models.geostore.protocol.state import (
    AMOUNT,
    CLIENT,
    CONTAINED,
    DATACENTER,
    DEPENDS_FIRST,
    DEPENDS_LAST,
    EVT,
    FIRST,
    FIRST_PENDING,
    HOME,
    IS_COUNTER,
    KEY,
    NEWEST,
    NEXT_PENDING,
    NEXT_VERSION,
    NODE,
    NONE,
    OPERATION,
    OWNER,
    PENDING_SINCE,
    PREVIOUS_ADD,
    STAMP,
    SUM,
    State,
    step,
)


@step
def copy_of(s: State, datacenter: int, item: int) -> int:
    """Return the number of an item's copy in a datacenter."""
    return datacenter * s.item_count + item


@step
def location_of(s: State, datacenter: int, item: int) -> int:
    """Return the number of an item's key in a datacenter."""
    return int(datacenter * s.keys + s.table[s.items + item, KEY])


@step
def home_of(s: State, datacenter: int, item: int) -> int:
    """Return the datacenter that serves an item's key to a datacenter: itself where it has a replica."""
    return int(s.table[s.locations + location_of(s, datacenter, item), HOME])


@step
def owner_of(s: State, datacenter: int, item: int) -> int:
    """Return the server that owns an item's key in a datacenter."""
    return int(s.table[s.locations + location_of(s, datacenter, item), OWNER])


@step
def is_present(s: State, datacenter: int, item: int) -> bool:
    """Return whether a datacenter has a replica of an item's key."""
    return bool(s.table[s.locations + location_of(s, datacenter, item), HOME] == datacenter)


@step
def is_counter(s: State, item: int) -> bool:
    """Return whether an item's key is a counter."""
    return bool(s.table[s.locations + location_of(s, 0, item), IS_COUNTER])


@step
def origin_of(s: State, operation: int) -> int:
    """Return the datacenter that accepts an operation: that of its client."""
    return int(s.table[s.clients + s.table[s.operations + operation, CLIENT], DATACENTER])


@step
def insert_version(s: State, datacenter: int, item: int) -> None:
    """Insert a version by its EVT and stamp, and drop those that no time sees any more."""
    location, copy = location_of(s, datacenter, item), copy_of(s, datacenter, item)
    stamp, evt = s.table[s.items + item, STAMP], s.table[s.copies + copy, EVT]
    base = datacenter * s.item_count
    above, below = NONE, s.table[s.locations + location, NEWEST]
    while (
        below != NONE
        and s.table[s.copies + base + below, EVT] > evt
        and s.table[s.items + below, STAMP] > stamp
    ):
        above, below = below, s.table[s.copies + base + below, NEXT_VERSION]
    while below != NONE and s.table[s.copies + base + below, EVT] > evt:
        below = s.table[s.copies + base + below, NEXT_VERSION]  # an older stamp that became visible later
    if below != NONE and s.table[s.items + below, STAMP] > stamp:
        return
    s.table[s.copies + copy, NEXT_VERSION] = below
    if above == NONE:
        s.table[s.locations + location, NEWEST] = item
    else:
        s.table[s.copies + base + above, NEXT_VERSION] = item


@step
def version_at(s: State, datacenter: int, item: int, time: int) -> int:
    """Return the version of an item's key that is visible at a logical time; NONE before the first."""
    base = datacenter * s.item_count
    version = s.table[s.locations + location_of(s, datacenter, item), NEWEST]
    while version != NONE and s.table[s.copies + base + version, EVT] > time:
        version = s.table[s.copies + base + version, NEXT_VERSION]
    return int(version)


@step
def is_covered(s: State, datacenter: int, item: int) -> bool:
    """Return whether the current value of an item's key is newer than the item."""
    newest = s.table[s.locations + location_of(s, datacenter, item), NEWEST]
    return bool(newest != NONE and s.table[s.items + newest, STAMP] > s.table[s.items + item, STAMP])


@step
def mark_pending(s: State, datacenter: int, item: int, stamp: int) -> None:
    """Write the pending value of a transaction's item, prepared at a logical time (section 5.2)."""
    location, copy = location_of(s, datacenter, item), copy_of(s, datacenter, item)
    s.table[s.copies + copy, PENDING_SINCE] = stamp
    s.table[s.copies + copy, NEXT_PENDING] = s.table[s.locations + location, FIRST_PENDING]
    s.table[s.locations + location, FIRST_PENDING] = item


@step
def clear_pending(s: State, datacenter: int, item: int) -> None:
    """Remove the pending value of a transaction's item."""
    location, base = location_of(s, datacenter, item), datacenter * s.item_count
    following = s.table[s.copies + base + item, NEXT_PENDING]
    if s.table[s.locations + location, FIRST_PENDING] == item:
        s.table[s.locations + location, FIRST_PENDING] = following
    else:
        other = s.table[s.locations + location, FIRST_PENDING]
        while s.table[s.copies + base + other, NEXT_PENDING] != item:
            other = s.table[s.copies + base + other, NEXT_PENDING]
        s.table[s.copies + base + other, NEXT_PENDING] = following
    s.table[s.copies + base + item, PENDING_SINCE] = 0


@step
def add_version(s: State, datacenter: int, item: int) -> None:
    """Merge an add with the counter's current value, and keep its nearest dependencies (section 3.3).

    Of each datacenter the counter contains at most one dependency. Those of other datacenters that the add
    depends on are covered by it, and dropped.
    """
    location, copy = location_of(s, datacenter, item), copy_of(s, datacenter, item)
    base = datacenter * s.item_count
    newest = s.table[s.locations + location, NEWEST]
    s.table[s.copies + copy, SUM] = s.table[s.items + item, AMOUNT]
    if newest != NONE:
        s.table[s.copies + copy, SUM] += s.table[s.copies + base + newest, SUM]
    for origin in range(s.datacenters):
        s.table[s.copies + copy, CONTAINED + origin] = (
            NONE if newest == NONE else s.table[s.copies + base + newest, CONTAINED + origin]
        )
    operation = s.table[s.items + item, OPERATION]
    for row in range(
        s.table[s.operations + operation, DEPENDS_FIRST], s.table[s.operations + operation, DEPENDS_LAST]
    ):
        drop_contained(s, copy, s.depends[row])
    drop_contained(s, copy, s.table[s.items + item, PREVIOUS_ADD])
    s.table[s.copies + copy, CONTAINED + origin_of(s, operation)] = item
    s.table[s.copies + copy, NEXT_VERSION] = newest
    s.table[s.locations + location, NEWEST] = item


@step
def drop_contained(s: State, copy: int, item: int) -> None:
    """Drop a dependency that a counter contains, where it is this item."""
    for origin in range(s.datacenters):
        if item != NONE and s.table[s.copies + copy, CONTAINED + origin] == item:
            s.table[s.copies + copy, CONTAINED + origin] = NONE


@step
def is_of_part(s: State, datacenter: int, item: int, node: int) -> bool:
    """Return whether a node owns an item's key in its datacenter."""
    return owner_of(s, datacenter, item) == node


@step
def is_first_at_node(s: State, operation: int, item: int) -> bool:
    """Return whether no earlier item of the operation is at the item's node."""
    for other in range(s.table[s.operations + operation, FIRST], item):
        if s.table[s.items + other, NODE] == s.table[s.items + item, NODE]:
            return False
    return True
