"""A plan among other members: switches adapt at once, before a controller decides again.

The controller's choices stay: the groups with entries, their partition of the addresses, and the groups that
share an entry. Switches learn of joins and leaves themselves. A group that is new at a switch takes a free
entry; where none is free and the plan shares entries, it joins the one that it makes least more costly;
otherwise the switch refuses it, and the group goes by unicast. So every member is served.

Shared entries of one switch as groups change: the changed group goes to its cheapest entry.

The cost is tracked from change to change without a recount. Congestion is linear.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.errors import InputError
from planner_models.multicast.plan import table_limits
from planner_models.multicast.plan.headers import BIER, BIER_FIXED_BYTES, DEFAULT_RULE, ELMO, POD, read_trees
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    build_meta_groups,
    groups_at,
    previous_entries,
)
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import find_rows

NO_ENTRY = -1  # of a group without members at the switch


def adapt_plan(problem: Multicast, plan: Channels, *, before: Multicast | None = None) -> Channels:
    """Return the plan as switches carry it on among the members of `problem`.

    All groups of the plan must have the same number of copies; groups that are gone are left out.

    before  the problem of the plan, whose rates switches know; default: unknown. Then at a switch without
            shared entries groups are there in their order, as far as its table holds them
    """
    row = find_rows(problem.group_names, plan.partitions["group"])
    there = row >= 0
    if not there.any():
        nobody = np.zeros(len(problem.groups), dtype=bool)
        return build_plan(problem, nobody, problem.aggregation_copies)
    admitted = np.zeros(len(problem.groups), dtype=bool)
    partition = np.zeros(len(problem.groups), dtype=np.int64)
    admitted[row[there]] = True
    partition[row[there]] = plan.partitions["partition"].to_numpy(np.int64)[there]
    (copies,) = set(plan.partitions["copies"].astype(int))
    layer_of = problem.wiring.layers[find_rows(problem.wiring.switches, plan.meta_groups["switch"])]
    sharing = [layer for layer in LAYERS if layer in layer_of]
    others = [name for name in LAYERS if name not in sharing]
    limits = table_limits.join_limits(
        table_limits.build_limits(problem, copies, partition=partition, layers=others),
        table_limits.build_limits(
            problem, copies, partition=partition, layers=sharing
        ).without_free_entries(),
    )
    admitted[admitted] = table_limits.admit_in_order(limits.of_groups(admitted))
    frames = []
    for layer in sharing:
        now = groups_at(layer, problem, admitted, partition, copies)
        first = None if before is None else groups_at(layer, before, admitted, partition, copies)
        rates = (problem if before is None else before).rate_mbps
        frames.append(_place_new_groups(problem, rates[now.group], now, first, plan))
    shared = pd.concat(frames, ignore_index=True) if frames else None
    return build_plan(problem, admitted, copies, partition=partition, meta_groups=shared)


def adapt_headers(problem: Multicast, plan: Channels) -> Channels:
    """Return a plan with headers among the members of `problem`: sources learn of their groups' switches.

    Elmo: a switch that is new in a group uses the default rule of its layer. BIER: its bit is set; groups
    that the table of an edge switch cannot hold go by unicast.
    """
    assert plan.headers is not None
    assert plan.header_rules is not None
    row = find_rows(problem.group_names, plan.headers["group"])
    scheme = np.full(len(problem.groups), "", dtype=object)
    scheme[row[row >= 0]] = plan.headers["scheme"].astype(str).to_numpy()[row >= 0]
    # a design gives all groups strings of one length, and packets too
    strings = plan.headers.loc[plan.headers["scheme"] == BIER, "header_bytes"]
    size = float(strings.iloc[0]) if len(strings) else BIER_FIXED_BYTES + 1.0
    packet = float(plan.headers["packet_bytes"].iloc[0])
    limits = table_limits.build_limits(problem, problem.aggregation_copies, layers=("edge",))
    by_bits = scheme == BIER
    admitted = table_limits.admit_in_order(limits, order=np.flatnonzero(by_bits))
    scheme[by_bits & ~admitted] = ""
    frames = []
    pods = pd.Index([f"{POD}{pod}" for pod in range(problem.pods)])
    several, across = (np.diff(each.start) > 1 for each in (problem.spread, problem.below))
    elmo = scheme == ELMO
    for each, names, is_selected in (
        (problem.spread, problem.wiring.edges, (elmo & several) | (scheme == BIER)),
        (problem.below, pods, elmo & across),
    ):
        group = np.repeat(np.arange(len(is_selected)), np.diff(each.start))
        here = is_selected[group]
        frame = pd.DataFrame(
            {
                "group": problem.group_names[group[here]].astype(str),
                "switch": names[each.edge[here]].astype(str),
                "set": each.edge[here] // int(8 * (size - BIER_FIXED_BYTES)),
                "by_bits": scheme[group[here]] == BIER,
            }
        )
        frames.append(frame)
    rules = pd.concat(frames, ignore_index=True)
    old = plan.header_rules.astype({"group": str, "switch": str})
    rules = rules.merge(old, on=["group", "switch"], how="left")
    rules["rule"] = np.where(rules["by_bits"], rules["set"], rules["rule"].fillna(DEFAULT_RULE)).astype(float)
    rules = rules[["group", "switch", "rule"]]
    sent = np.flatnonzero(scheme != "")
    table = pd.DataFrame(
        {
            "group": problem.group_names[sent].astype(str),
            "scheme": scheme[sent].astype(str),
            "header_bytes": np.where(scheme[sent] == BIER, size, 1.0),
            "packet_bytes": packet,
        }
    )
    table["header_bytes"] = read_trees(problem, table, rules).needed_bytes[sent].astype(float)
    nobody = np.zeros(len(problem.groups), dtype=bool)
    return build_plan(problem, nobody, problem.aggregation_copies, headers=table, header_rules=rules)


def _place_new_groups(
    problem: Multicast, rates: Floats, now: StoredGroups, before: StoredGroups | None, plan: Channels
) -> pd.DataFrame:
    """Return the table meta_groups of a layer: of the switches that shared entries, or have to now."""
    old = previous_entries(problem, now, plan.meta_groups)
    assert old is not None  # the plan shares entries in this layer
    count = len(problem.groups)
    was_here = (
        None
        if before is None
        else np.isin(now.switch * count + now.group, before.switch * count + before.group)
    )
    meta: Ints = np.zeros(len(now.group), dtype=np.int64)
    shares = np.zeros(len(now.group), dtype=bool)
    for switch, size in enumerate(problem.free(now.layer).tolist()):
        rows = slice(int(now.start[switch]), int(now.start[switch + 1]))
        entries = old[rows]
        if (entries < 0).all():
            if len(entries) <= size:
                continue
            # each group that was here has its own entry
            here = np.arange(len(entries)) < size if was_here is None else was_here[rows]
            entries = np.where(here, np.cumsum(here) - 1, -1)
        assignment = insert_new_groups(now.ports[rows], rates[rows], entries, table_size=size)
        meta[rows] = np.unique(assignment, return_inverse=True)[1]
        shares[rows] = True
    return build_meta_groups(problem, now, shares, meta)


@dataclass(kw_only=True, eq=False)
class EntryTracker:
    """One switch with changing groups.

    masks, rates   (groups,) ports with members of each group, 0 for none, and its traffic
    table_size     entries of the switch
    meta           (groups,) the entry of each group, -1 for none

    rules          rules changed so far: entries whose ports changed, groups that changed their entry
    """

    masks: Masks
    rates: Floats
    table_size: int
    meta: Ints
    rules: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._require_table()
        self.masks, self.rates = self.masks.copy(), self.rates.astype(float)
        self._place(self.meta.astype(np.int64))
        if len(np.unique(self.meta[self.meta >= 0])) > self.table_size:
            raise InputError(f"the groups have more entries than the table's {self.table_size}")

    def _require_table(self) -> None:
        """Raise InputError for a table without entries."""
        if self.table_size < 1:
            raise InputError(f"table size is {self.table_size}, must be at least 1")

    @property
    def wanted_mbps(self) -> float:
        """Traffic to ports with members, over all groups."""
        return self._wanted

    @property
    def extra_mbps(self) -> float:
        """Traffic to ports without members, tracked from change to change."""
        return self._total - self._wanted

    @property
    def entries(self) -> int:
        """Entries in use."""
        return int((self._members > 0).sum())

    @property
    def assigned(self) -> Ints:
        """The entry of each group, shape (groups,), -1 for none."""
        return self._meta.copy()

    # --- changes --------------------------------------------------------------------------

    def join(self, group: int, port: int) -> None:
        """Add a member of the group at the port. InputError where it has one."""
        bit = self._port_bit(group, port, has=False)
        self._change(group, self.masks[group] | bit, float(self.rates[group]))

    def leave(self, group: int, port: int) -> None:
        """Remove the member of the group at the port. InputError where it has none."""
        bit = self._port_bit(group, port, has=True)
        self._change(group, self.masks[group] & ~bit, float(self.rates[group]))

    def set_ports(self, group: int, mask: np.uint64) -> None:
        """Set the ports with members of the group, 0 for none: a new group, or one that ends."""
        self._change(group, mask, float(self.rates[group]))

    def set_rate(self, group: int, mbps: float) -> None:
        """Set the rate of the group."""
        if not mbps > 0:
            raise InputError(f"rate is {mbps}, must be greater than 0")
        self._change(group, self.masks[group], mbps)

    # --- bookkeeping ----------------------------------------------------------------------

    def _port_bit(self, group: int, port: int, *, has: bool) -> np.uint64:
        """Return the bit of the port; InputError unless the group has a member there, or has none."""
        if not 0 <= group < len(self.masks) or not 0 <= port < 64:
            raise InputError(f"group {group}, port {port}: no such group or port")
        bit = np.uint64(1) << np.uint64(port)
        if bool(self.masks[group] & bit) != has:
            raise InputError(f"group {group} has {'no' if has else 'a'} member at port {port} already")
        return bit

    def _place(self, meta: Ints) -> None:
        """Take over the entries of all groups, and recount everything."""
        self._meta = meta.copy()
        size = max(self.table_size, int(meta.max(initial=0)) + 1)
        self._wants = np.zeros((size, 64), dtype=np.int64)  # groups of an entry with members at a port
        self._load, self._members = np.zeros(size), np.zeros(size, dtype=np.int64)
        here = np.flatnonzero(meta >= 0)
        np.add.at(self._wants, meta[here], _unpack_ports(self.masks[here]))
        np.add.at(self._load, meta[here], self.rates[here])
        np.add.at(self._members, meta[here], 1)
        self._union = _pack_ports(self._wants > 0)
        self._total = float(self._load @ np.bitwise_count(self._union))
        self._wanted = float(self.rates @ np.bitwise_count(self.masks))

    def _change(self, group: int, mask: np.uint64, rate: float) -> None:
        """Change ports and rate of the group, and move it to its cheapest entry."""
        entry = int(self._meta[group])
        if entry >= 0:
            self._remove(group, entry)
        self._wanted += rate * int(np.bitwise_count(mask)) - float(self.rates[group]) * int(
            np.bitwise_count(self.masks[group])
        )
        self.masks[group], self.rates[group] = mask, rate
        to = self._cheapest_entry(mask, rate, entry) if mask else NO_ENTRY
        if to >= 0:
            self._add(group, to)
        self._meta[group] = to
        self.rules += to != entry  # the rewriting rule of its packets

    def _cheapest_entry(self, mask: np.uint64, rate: float, current: int) -> int:
        """Return the entry where the group costs least; its present one, if that is as cheap."""
        larger = np.bitwise_count(self._union | mask)
        new = np.bitwise_count(mask & ~self._union)
        price = rate * larger + self._load * new
        if (self._members > 0).sum() >= self.table_size:
            price = np.where(self._members > 0, price, np.inf)
        best = int(np.argmin(price))
        return current if current >= 0 and price[current] <= price[best] * (1 + 1e-12) else best

    def _remove(self, group: int, entry: int) -> None:
        """Take the group out of an entry."""
        size = int(np.bitwise_count(self._union[entry]))
        self._total -= float(self._load[entry]) * size
        self._members[entry] -= 1
        self._load[entry] = self._load[entry] - self.rates[group] if self._members[entry] else 0.0
        self._wants[entry] -= _unpack_ports(self.masks[group : group + 1])[0]
        self._update_union(entry)

    def _add(self, group: int, entry: int) -> None:
        """Put the group into an entry."""
        self._total -= float(self._load[entry]) * int(np.bitwise_count(self._union[entry]))
        self._members[entry] += 1
        self._load[entry] += self.rates[group]
        self._wants[entry] += _unpack_ports(self.masks[group : group + 1])[0]
        self._update_union(entry)

    def _update_union(self, entry: int) -> None:
        """Recompute the ports of an entry, and add its traffic to the total."""
        union = _pack_ports(self._wants[entry : entry + 1] > 0)[0]
        self.rules += union != self._union[entry]
        self._union[entry] = union
        self._total += float(self._load[entry]) * int(np.bitwise_count(union))


def insert_new_groups(masks: Masks, rates: Floats, meta: Ints, *, table_size: int) -> Ints:
    """Return the entries where groups without one (-1 in `meta`) join the cheapest, one after the other."""
    before = renumber(meta)
    if before.max(initial=NO_ENTRY) >= table_size:
        before[before >= table_size] = NO_ENTRY
    at_first = np.where(before >= 0, masks, np.uint64(0))
    tracker = EntryTracker(masks=at_first, rates=rates, meta=before, table_size=table_size)
    for group in np.flatnonzero(before < 0).tolist():
        tracker.set_ports(group, masks[group])
    return tracker.assigned


def renumber(meta: Ints) -> Ints:
    """Return the same entries numbered from 0 without gaps; -1 stays."""
    entries_used = np.unique(meta[meta >= 0])
    return np.asarray(np.where(meta >= 0, np.searchsorted(entries_used, meta), NO_ENTRY), dtype=np.int64)


def _unpack_ports(masks: Masks) -> Ints:
    """Return 1 where a port is in the mask, shape (masks, 64)."""
    return ((masks[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(np.int64)


def _pack_ports(ports: Bools) -> Masks:
    """Return the masks of rows of ports."""
    return np.asarray((ports * (np.uint64(1) << np.arange(64, dtype=np.uint64))).sum(axis=1), dtype=np.uint64)
