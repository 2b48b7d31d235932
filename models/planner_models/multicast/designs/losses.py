"""Traffic that groups lose by failures in each partition of the addresses, and moves that avoid it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner_models.multicast.plan.plan import build_plan
from planner_models.multicast.plan.rerouting import lost_by_group, lost_by_partition
from planner_models.multicast.plan.switch_groups import groups_in_pods
from planner_models.multicast.plan.table_limits import build_limits
from planner_models.multicast.problem.failures import WorkingLinks
from planner_models.multicast.problem.problem import Multicast

UNICAST: Final = -1  # in place of a partition


@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """Groups that lose traffic in their partition, and what they lose in any, Mbit/s.

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
        self, kept: Bools, partition: Ints, saves_entries: bool
    ) -> list[tuple[float, int, list[int]]]:
        """Return moves of the groups that are kept: the loss saved for each entry, place, partitions.

        Moves that save the most for each entry that may change come first. The partitions of each, or
        UNICAST, are in order of what the group loses there, with entries first; with `saves_entries`, in
        order of what it saves for each entry.
        """
        moves = []
        for place, group in enumerate(self.groups.tolist()):
            if not kept[group]:
                continue
            mine = int(partition[group])
            here, edges, above = self.lost[place, mine], int(self.edges[place]), self.rows.count(place, mine)
            options = [
                (float(self.lost[place, one]) - here, above + self.rows.count(place, one) + 2 * edges, one)
                for one in np.flatnonzero(self.lost[place] < here).tolist()
            ]
            if self.by_unicast[place] < here:
                options.append((float(self.by_unicast[place]) - here, above + edges, UNICAST))
            if not options:
                continue
            if saves_entries:
                options.sort(key=lambda each: each[0] / each[1])
            else:
                options.sort(key=lambda each: (each[0], each[2] == UNICAST, each[1]))
            change, entries, _ = options[0]
            moves.append((change / entries, place, [one for _, _, one in options]))
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

    def of(self, place: int, partition: int) -> Ints:
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
        return np.asarray(uses.indices[uses.indptr[place] : uses.indptr[place + 1]], dtype=np.int64)

    def count(self, place: int, partition: int) -> int:
        """Return the entries of a group at cores and aggregation switches."""
        inside = int(self.holders[self.pods[place], partition].sum())
        return inside + int(self.across[place]) * int(self.cores[partition])
