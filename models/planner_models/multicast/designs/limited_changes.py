"""Greedy changes of a previous plan, within a limit on the table entries that are added and removed.

Switches first adapt the previous plan to joins and leaves by themselves (`adaptation`). Then the changes that
save the most traffic for each entry are made, as far as the limit allows: a group goes by unicast or gets
entries, or an edge switch shares its entries anew. An entry with other ports is removed and added.

Around failures, groups that lose traffic first move to partitions whose switches still reach their members,
or to unicast, which takes any way that works.

Traffic that groups lose by failures in each partition of the addresses, and moves that avoid it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner_models.multicast.designs.channelization import local_search
from planner_models.multicast.designs.partitioned import saved_mbps
from planner_models.multicast.designs.unicast_exchange import NO_ENTRY, EdgeTables
from planner_models.multicast.plan.adaptation import adapt_plan
from planner_models.multicast.plan.forwarding import compare_plans
from planner_models.multicast.plan.meta_groups import Masks, extra_mbps
from planner_models.multicast.plan.plan import Channels, build_plan, round_robin_partitions
from planner_models.multicast.plan.rerouting import lost_by_group, lost_by_partition
from planner_models.multicast.plan.switch_groups import (
    build_meta_groups,
    group_assignment,
    groups_at_edges,
    groups_in_pods,
    previous_entries,
)
from planner_models.multicast.plan.table_limits import build_limits, join_limits
from planner_models.multicast.problem.failures import WorkingLinks
from planner_models.multicast.problem.problem import Multicast
from planner_models.networks.nodes import find_names

MAX_PASSES: Final = 4
SHARE: Final = -1  # a move of a switch, in place of a group
NO_LIMIT: Final = 1 << 60
UNICAST: Final = -1  # in place of a partition


def change_plan(
    problem: Multicast,
    previous: Channels,
    fresh: Channels,
    most_changes: int,
    state: WorkingLinks | None = None,
) -> Channels:
    """Return a plan with at most `most_changes` entries added and removed, once switches have adapted.

    fresh  the plan without a limit, taken where it is within the limit and better
    state  links that work: plans lose the least traffic first, then they need the least
    """
    adapted = adapt_plan(problem, previous)
    plans = [_search(problem, adapted, most_changes, state, saves_entries=False)]
    if state is not None:
        plans.append(_search(problem, adapted, most_changes, state, saves_entries=True))
    changes = compare_plans(problem, fresh, adapted)[["add", "remove"]].to_numpy().sum()
    if changes <= most_changes:
        plans.append(fresh)
    return min(plans, key=lambda plan: _rate_plan(problem, plan, state))


def avoid_failures(problem: Multicast, plan: Channels, state: WorkingLinks) -> Channels:
    """Return the plan with groups that lose traffic by failures in other partitions, or by unicast."""
    search = _LimitedSearch(problem, plan, NO_LIMIT, state)
    search.avoid_failures(saves_entries=False)
    return search.plan()


def host_traffic_mbps(problem: Multicast, plan: Channels) -> float:
    """Return the host traffic of a plan with shared entries at edge switches."""
    return float(_LimitedSearch(problem, plan, 0).tables.total_mbps)


def _search(
    problem: Multicast, plan: Channels, limit: int, state: WorkingLinks | None, *, saves_entries: bool
) -> Channels:
    search = _LimitedSearch(problem, plan, limit, state)
    search.avoid_failures(saves_entries=saves_entries)
    search.run()
    return search.plan()


def _rate_plan(problem: Multicast, plan: Channels, state: WorkingLinks | None) -> tuple[float, float]:
    """Return the losses of a plan and the traffic that hosts send and receive, Mbit/s."""
    lost = 0.0 if state is None else round(float(lost_by_group(problem, plan, state).sum()), 6)
    return lost, host_traffic_mbps(problem, plan)


class _LimitedSearch:
    """Moves from an adapted plan, each with the entries that it changes.

    tables   entries of edge switches, and groups with entries
    spent    entries added and removed so far
    """

    def __init__(
        self, problem: Multicast, plan: Channels, most_changes: int, state: WorkingLinks | None = None
    ) -> None:
        self.problem, self.most, self.state = problem, most_changes, state
        copies = problem.aggregation_copies
        partition, held = group_assignment(problem, plan.partitions)
        self.partition = np.where(held > 0, partition, round_robin_partitions(problem, copies))
        limits = join_limits(
            build_limits(problem, copies, partition=self.partition, layers=("core", "aggregation")),
            build_limits(problem, copies, layers=("edge",)).without_free_entries(),
        )
        edge, group, _ = problem.at_edge
        start = np.searchsorted(edge, np.arange(problem.edge_count + 1))
        is_stored = held > 0
        stored = groups_at_edges(problem)
        entry = previous_entries(problem, stored, plan.meta_groups)
        own_entry = np.arange(len(edge)) - start[edge]
        entry = own_entry if entry is None else entry
        shares = np.zeros(problem.edge_count, dtype=bool)
        names = find_names(problem.wiring.edges, plan.meta_groups["switch"])
        shares[names[names >= 0]] = True
        self.shares = shares
        entry = np.where(is_stored[group], np.where(shares[edge], entry, own_entry), NO_ENTRY)
        self.tables = EdgeTables(problem=problem, limits=limits, kept=is_stored.copy(), entry=entry)
        self.first_kept, self.first_partition = is_stored, self.partition.copy()
        self.blocked = np.zeros(
            len(is_stored), dtype=bool
        )  # groups that lose traffic where they have entries
        self.start = start
        self.above = self._entries_above()
        self.first_above = self.above.copy()
        self.moved = np.zeros(len(is_stored), dtype=np.int64)  # entries above that changed, by group
        self.rules = [self._list_rules(switch) for switch in range(problem.edge_count)]
        self.changed = np.zeros(problem.edge_count, dtype=np.int64)
        self.spent = 0

    def run(self) -> None:
        """Make moves, those with the most traffic saved for each entry first."""
        for _ in range(MAX_PASSES):
            if self.spent >= self.most or not self._pass():
                return

    def avoid_failures(self, *, saves_entries: bool) -> None:
        """Move groups that lose traffic to other partitions or unicast, as far as the limit allows.

        Those that save the most for each entry that changes come first. A group goes where it loses least,
        and of equal places has entries; with `saves_entries`, where it saves the most for each entry.
        """
        if self.state is None:
            return
        losses = Losses.of(self.problem, self.partition, self.state)
        for index, group in enumerate(losses.groups.tolist()):
            if not self.tables.kept[group]:
                self._place_absent(losses, index)
        for _, index, options in losses.rank_moves(self.tables.kept, self.partition, saves_entries):
            for partition in options:
                if self._try_place(losses, index, partition):
                    break

    def _place_absent(self, losses: Losses, index: int) -> None:
        """Give a group without entries the partition where it would lose least."""
        group, best = int(losses.groups[index]), int(losses.lost[index].argmin())
        self.blocked[group] = losses.lost[index, best] > losses.by_unicast[index]
        better = losses.lost[index, best] < losses.lost[index, self.partition[group]]
        if better and self.tables.move(group, losses.rows.of(index, best)):
            self.partition[group] = best
            self.above[group] = losses.rows.count(index, best)

    def _try_place(self, losses: Losses, index: int, partition: int) -> bool:
        """Move a group to another partition, or to unicast, within the limit; return whether it was done."""
        group, rows = int(losses.groups[index]), losses.rows
        tables, pairs = self.tables, self.tables.pairs(group)
        if partition == UNICAST:
            before = tables.entry[pairs].copy()
            tables.entry[pairs] = NO_ENTRY
            tables.set_kept(group, stored=False)
            if self._settle(np.unique(tables.switch[pairs]), group):
                self.blocked[group] = True
                return True
            tables.entry[pairs] = before
            tables.set_kept(group, stored=True)
            return False
        old, above = int(self.partition[group]), int(self.above[group])
        if not tables.move(group, rows.of(index, partition)):
            return False
        self.partition[group], self.above[group] = partition, rows.count(index, partition)
        if self._settle(np.unique(tables.switch[pairs]), group):
            return True
        self.partition[group], self.above[group] = old, above
        tables.move(group, rows.of(index, old))
        return False

    def plan(self) -> Channels:
        """Return the plan of the present entries."""
        tables, problem = self.tables, self.problem
        stored = groups_at_edges(problem, tables.kept)
        entry = tables.entry[tables.kept[tables.group]]
        shares = np.array([self._is_sharing(switch) for switch in range(problem.edge_count)], dtype=bool)
        count = np.diff(stored.start)
        frame = build_meta_groups(problem, stored, np.repeat(shares & (count > 0), count), entry)
        return build_plan(
            problem, tables.kept, problem.aggregation_copies, partition=self.partition, meta_groups=frame
        )

    def _entries_above(self) -> Ints:
        """Return the entries of each group at cores and aggregation switches, (G,)."""
        problem = self.problem
        held = problem.distribution(problem.aggregation_copies)
        holders = count_holders(problem)
        group, pod, _ = groups_in_pods(problem)
        count = np.bincount(group, holders[pod, self.partition[group]], minlength=len(self.partition))
        across = np.diff(problem.below.start) > 1
        count += across * held.core.sum(axis=0)[self.partition]
        return count.astype(np.int64)

    def _rows(self, switch: int) -> tuple[Ints, Ints]:
        rows = np.arange(self.start[switch], self.start[switch + 1])
        rows = rows[self.tables.entry[rows] >= 0]
        return rows, self.tables.entry[rows]

    def _is_sharing(self, switch: int) -> bool:
        """Return whether the switch has shared entries: as before, or where groups share one."""
        rows, entry = self._rows(switch)
        return bool(self.shares[switch]) or len(np.unique(entry)) < len(rows)

    def _list_rules(self, switch: int) -> Counter[tuple[int, int]]:
        """Return the entries of the switch: group and partition, -1 for a shared one, and ports."""
        rows, entry = self._rows(switch)
        ports: Masks = self.tables.ports[rows]
        if not self._is_sharing(switch):
            group = self.tables.group[rows]
            address = group * (1 << 20) + self.partition[group]  # an address belongs to its partition
            return Counter(zip(address.tolist(), ports.tolist(), strict=True))
        slot = np.unique(entry, return_inverse=True)[1]
        union = np.zeros(int(slot.max(initial=-1)) + 1, dtype=np.uint64)
        np.bitwise_or.at(union, slot, ports)
        return Counter((SHARE, mask) for mask in union.tolist())

    def _pass(self) -> bool:
        """Try every move once; return whether one was made."""
        tables = self.tables
        pairs = np.diff(tables.first)
        gains = tables.drop_gains()
        absent = ~tables.kept
        saved = np.where(self.blocked, 0.0, saved_mbps(self.problem))
        estimate = np.where(absent, saved, gains) / (self.above + 2 * pairs)
        moves = [(float(estimate[group]), group, SHARE) for group in np.flatnonzero(estimate > 0).tolist()]
        moves += [
            (self._share_estimate(switch), SHARE, switch)
            for switch, (a, b) in enumerate(pairwise(self.start.tolist()))
            if b > a and self._is_sharing(switch)
        ]
        made = False
        for value, group, switch in sorted(moves, reverse=True):
            if value > 0 and self.spent < self.most:
                made |= self._try_group(group) if group != SHARE else self._try_sharing(switch)
        return made

    def _share_estimate(self, switch: int) -> float:
        """Return the most traffic that sharing anew may save, for each entry."""
        rows, entry = self._rows(switch)
        rate = self.tables.rate[self.tables.group[rows]]
        return extra_mbps(self.tables.ports[rows], rate, entry) / max(1, len(np.unique(entry)))

    def _account(self, switches: Ints) -> Ints:
        """Return the entries changed since the adapted plan at each of these switches."""
        changes = []
        for switch in switches.tolist():
            now, first = self._list_rules(switch), self.rules[switch]
            changes.append((now - first).total() + (first - now).total())
        return np.array(changes, dtype=np.int64)

    def _settle(self, switches: Ints, group: int | None) -> bool:
        """Book the entries that a move changed; return False, without booking, beyond the limit."""
        count = self._account(switches)
        spent = self.spent + int((count - self.changed[switches]).sum())
        moved = 0 if group is None else self._count_above(group)
        if group is not None:
            spent += moved - int(self.moved[group])
        if spent > self.most:
            return False
        self.spent, self.changed[switches] = spent, count
        if group is not None:
            self.moved[group] = moved
        return True

    def _count_above(self, group: int) -> int:
        """Return the entries of a group at cores and aggregation switches that changed."""
        was, is_kept = bool(self.first_kept[group]), bool(self.tables.kept[group])
        if was and is_kept and self.first_partition[group] == self.partition[group]:
            return 0
        return was * int(self.first_above[group]) + is_kept * int(self.above[group])

    def _try_group(self, group: int) -> bool:
        """Drop or add a group where that saves traffic within the limit; return whether it was done."""
        tables, pairs = self.tables, self.tables.pairs(group)
        before, had = tables.entry[pairs].copy(), bool(tables.kept[group])
        if not (tables.drop(group) if had else tables.add(group)):
            return False
        if self._settle(np.unique(tables.switch[pairs]), group):
            return True
        tables.entry[pairs] = before
        tables.set_kept(group, stored=had)
        return False

    def _try_sharing(self, switch: int) -> bool:
        """Share the entries of a switch anew where that saves traffic within the limit."""
        tables = self.tables
        rows, before = self._rows(switch)
        ports, rate = tables.ports[rows], tables.rate[tables.group[rows]]
        fresh = local_search.aggregate(ports, rate, table_size=int(tables.size[switch]))
        threshold = extra_mbps(ports, rate, before) * (1 - 1e-9)
        if extra_mbps(ports, rate, fresh) >= threshold:
            return False
        tables.entry[rows] = fresh
        if self._settle(np.array([switch]), None):
            return True
        tables.entry[rows] = before
        return False


@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """Groups that lose traffic in their partition, and their losses in any, Mbit/s.

    groups      rows of the groups
    lost        (groups, partitions) with entries
    by_unicast  (groups,)
    rows        entries above edge switches in any partition
    edges       (groups,) edge switches with members
    """

    groups: Ints
    lost: Floats
    by_unicast: Floats
    rows: RowsOfPartitions
    edges: Ints

    @classmethod
    def of(cls, problem: Multicast, partition: Ints, state: WorkingLinks) -> Losses:
        """Return the losses of groups that have their entries in these partitions, (G,)."""
        copies, everyone = problem.aggregation_copies, np.ones(len(partition), dtype=bool)
        plan = build_plan(problem, everyone, copies, partition=partition)
        groups = np.flatnonzero(lost_by_group(problem, plan, state) > 0)
        lost, by_unicast = lost_by_partition(problem, groups, state, copies=copies)
        return cls(
            groups=groups,
            lost=lost,
            by_unicast=by_unicast,
            rows=RowsOfPartitions(problem, groups),
            edges=np.diff(problem.spread.start)[groups],
        )

    def rank_moves(
        self, selected: Bools, partition: Ints, saves_entries: bool
    ) -> list[tuple[float, int, list[int]]]:
        """Return moves of the groups that are kept: the loss saved for each entry, place, partitions.

        Moves that save the most for each entry that may change come first. The partitions of each, or
        UNICAST, are in order of what the group loses there, with entries first; with `saves_entries`, in
        order of what it saves for each entry.
        """
        moves = []
        for index, group in enumerate(self.groups.tolist()):
            if not selected[group]:
                continue
            current = int(partition[group])
            here, edges, above = (
                self.lost[index, current],
                int(self.edges[index]),
                self.rows.count(index, current),
            )
            options = [
                (
                    float(self.lost[index, candidate]) - here,
                    above + self.rows.count(index, candidate) + 2 * edges,
                    candidate,
                )
                for candidate in np.flatnonzero(self.lost[index] < here).tolist()
            ]
            if self.by_unicast[index] < here:
                options.append((float(self.by_unicast[index]) - here, above + edges, UNICAST))
            if not options:
                continue
            if saves_entries:
                options.sort(key=lambda each: each[0] / each[1])
            else:
                options.sort(key=lambda each: (each[0], each[2] == UNICAST, each[1]))
            change, entries, _ = options[0]
            moves.append((change / entries, index, [option for _, _, option in options]))
        return sorted(moves)


def count_holders(problem: Multicast) -> Ints:
    """Return the aggregation switches of each pod that hold each partition, (pods, partitions)."""
    held = problem.distribution(problem.aggregation_copies)
    holders = np.zeros((problem.pods, held.partitions), dtype=np.int64)
    np.add.at(holders, problem.wiring.aggregation_pod, held.aggregation)
    return holders


class RowsOfPartitions:
    """Rows of the limits of cores and aggregation switches that some groups take in any partition."""

    def __init__(self, problem: Multicast, groups: Ints) -> None:
        self.problem = problem
        self.chosen = np.zeros(len(problem.groups), dtype=bool)
        self.chosen[groups] = True
        self.holders = count_holders(problem)
        self.cores = problem.distribution(problem.aggregation_copies).core.sum(axis=0)
        self.across = (np.diff(problem.below.start) > 1)[groups]
        group, pod, _ = groups_in_pods(problem)
        start = np.searchsorted(group, np.concatenate([groups, groups + 1])).reshape(2, -1)
        self.pods = [pod[a:b] for a, b in start.T.tolist()]
        self._uses: dict[int, sp.csc_array] = {}

    def of(self, row: int, partition: int) -> Ints:
        """Return the rows of a group, by its place among the groups."""
        if partition not in self._uses:
            where = np.full(len(self.problem.groups), partition)
            limits = build_limits(
                self.problem,
                self.problem.aggregation_copies,
                partition=where,
                layers=("core", "aggregation"),
            )
            self._uses[partition] = limits.of_groups(self.chosen).uses.tocsc()
        uses = self._uses[partition]
        return np.asarray(uses.indices[uses.indptr[row] : uses.indptr[row + 1]], dtype=np.int64)

    def count(self, row: int, partition: int) -> int:
        """Return the entries of a group at cores and aggregation switches."""
        inside = int(self.holders[self.pods[row], partition].sum())
        return inside + int(self.across[row]) * int(self.cores[partition])
