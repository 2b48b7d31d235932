"""Group capacity: the number of groups that fit, for any table size, without a search.

Groups come in their order. A switch with tables of C entries overflows at the (C + 1)-th group that it
stores, so the first such group over all switches is the number of groups that fit.

Layouts of the address space for given groups: number of partitions, and copies of each.

More copies survive more failures and spread load; fewer copies leave free entries for more groups.
Algorithm 1 admits as many layouts as k/2 has divisors, so all are tried, which is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.studies import Section
from planner_models.multicast.plan import table_limits
from planner_models.multicast.plan.plan import round_robin_partitions
from planner_models.multicast.problem import equations, workloads
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import Distribution, Wiring, distribute_addresses, fat_tree
from planner_models.multicast.problem.workloads import Spread

EDGE_SEVERAL_PORTS: Final = "edge, several ports"  # entries of edge switches that cannot be unicast entries
COLUMNS: Final = {  # of `list_choices`, and their names in an explanation
    "aggregation_copies": "ra",
    "core_copies": "rc",
    "partitions": "n",
    "failures_survived": "survives",
    "fits": "fits",
    "spare_entries": "spare",
    "core_entries_max": "core",
    "aggregation_entries_max": "aggr",
    "groups_before_overflow": "groups",
    "core_capacity": "eq_1",
    "pod_capacity": "eq_2",
}


def groups_before_overflow(
    spread: Spread, wires: Wiring, held: Distribution, partition: Ints, *, largest: int
) -> pd.DataFrame:
    """Return the groups that fit before a switch of each layer overflows, for 0 to `largest` entries.

    NaN where all groups fit. Columns: core, aggregation, edge, and edge switches that store only groups
    with several ports there, where others take unicast entries.
    """
    start, group, ports = spread.by_edge()
    below = spread.in_pods(wires.edge_pod, wires.edge_in_pod, wires.pods)
    by_layer = table_limits.entries_by_layer(below, (start, group), wires, held, partition)
    columns = {layer: _first_overflows(rows, largest, spread.groups) for layer, (rows, _) in by_layer.items()}
    several = np.bitwise_count(ports) > 1
    begin = np.concatenate([[0], np.cumsum(several)])[start]
    rows = sp.csr_array(
        (np.ones(int(several.sum())), group[several], begin), shape=(len(start) - 1, spread.groups)
    )
    columns[EDGE_SEVERAL_PORTS] = _first_overflows(rows, largest, spread.groups)
    return pd.DataFrame(columns, index=pd.RangeIndex(largest + 1, name="table_entries"))


def supported_groups(
    counts: pd.DataFrame, *, shared: Sequence[str] = (), unicast: bool = False
) -> pd.Series[float]:
    """Return the groups that fit for each table size, where switches of the layers in `shared` share entries.

    unicast  groups with one port at an edge switch take unicast entries there
    """
    # two tiers have no cores
    binding = [layer for layer in LAYERS if layer not in shared and layer in counts]
    if unicast and "edge" in binding:
        binding[binding.index("edge")] = EDGE_SEVERAL_PORTS
    return counts[binding].min(axis=1)


def problem_capacity(problem: Multicast, *, copies: int | None = None, largest: int) -> pd.DataFrame:
    """Return `groups_before_overflow` of a problem's groups in their order, with partitions in turn.

    copies  of each partition in a pod; default: the fabric's own
    """
    copies = problem.aggregation_copies if copies is None else copies
    partition = round_robin_partitions(problem, copies)
    return groups_before_overflow(
        problem.spread, problem.wiring, problem.distribution(copies), partition, largest=largest
    )


def workload_capacity(
    *,
    k: int,
    aggregation_copies: int,
    tenancy: workloads.Tenancy,
    arrangement: int,
    largest: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Return `groups_before_overflow` of the groups of section 4.1 on an AB fat tree."""
    half = k // 2
    host = np.arange(k * half * half)
    workload = workloads.generate_workload(
        hosts=len(host), tenancy=tenancy, arrangement=arrangement, seed=seed
    )
    spread = workload.spread(host // half, host % half, k * half)
    held = distribute_addresses("ab", k, aggregation_copies)
    partition = np.arange(tenancy.groups) % held.partitions
    return groups_before_overflow(spread, fat_tree("ab", k), held, partition, largest=largest)


def required_entries(problem: Multicast, *, copies: int | None = None) -> pd.DataFrame:
    """Return the entries that every switch needs if all groups are stored and none shares an entry.

    columns  switch, layer, needed, free, and groups: number that fit before it overflows, NaN where all do
    """
    copies = problem.aggregation_copies if copies is None else copies
    by_layer = table_limits.entries_by_layer(
        problem.below,
        problem.spread.by_edge()[:2],
        problem.wiring,
        problem.distribution(copies),
        round_robin_partitions(problem, copies),
    )
    frames = []
    for layer, (rows, row_of) in by_layer.items():
        count, free = np.diff(rows.indptr)[row_of], problem.free(layer)
        sorted_rows = rows.sorted_indices()
        index = np.minimum(sorted_rows.indptr[row_of] + free, max(0, len(sorted_rows.indices) - 1))
        over = count > free
        first = sorted_rows.indices[index] if len(sorted_rows.indices) else np.zeros(len(count))
        frames.append(
            pd.DataFrame(
                {
                    "switch": problem.wiring.switches[problem.wiring.layers == layer],
                    "layer": layer,
                    "needed": count,
                    "free": free,
                    "groups": np.where(over, first, np.nan),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _first_overflows(rows: sp.csr_array, largest: int, groups: int) -> Floats:
    """Return the groups that fit for each table size, shape (largest + 1,); NaN where all do."""
    sorted_rows = rows.sorted_indices()
    first = _scan_overflows(
        sorted_rows.indptr.astype(np.int64), sorted_rows.indices.astype(np.int64), largest, groups
    )
    return np.where(first < groups, first, np.nan).astype(float)


@run_small_in_python(max_elements=5_000)
@njit(cache=True, nogil=True)
def _scan_overflows(start: Ints, group: Ints, largest: int, groups: int) -> Ints:
    """Return for each table size the first group that is one too many at some switch."""
    first = np.full(largest + 1, groups, dtype=np.int64)
    for row in range(len(start) - 1):
        for nth in range(min(start[row + 1] - start[row], largest + 1)):
            first[nth] = min(first[nth], group[start[row] + nth])
    return first


@dataclass(frozen=True, kw_only=True, eq=False)
class LayoutChoice:
    """The chosen layout, and the next one with more copies.

    table            one row a layout that Algorithm 1 admits (see `list_choices`)
    chosen           ra; None where no layout holds all groups
    next_copies      ra of the next layout with more copies; None where there is none
    missing_entries  entries that the fullest switch of that layout lacks
    """

    table: pd.DataFrame
    chosen: int | None
    next_copies: int | None
    missing_entries: float | None

    def sentences(self) -> list[str]:
        """Return the choice in sentences for a user."""
        lines = []
        if self.chosen is None:
            lines.append("No choice of copies that Algorithm 1 admits holds these groups.")
        else:
            row = self.table.set_index("aggregation_copies").loc[self.chosen]
            lines.append(
                f"ra = {self.chosen}, rc = {row['core_copies']:.0f}, n = {row['partitions']:.0f} "
                f"survives {row['failures_survived']:.0f} failed aggregation "
                f"switch{'' if row['failures_survived'] == 1 else 'es'} of a pod, "
                f"with {row['spare_entries']:.0f} entries to spare in the fullest."
            )
        if self.next_copies is not None and self.missing_entries is not None:
            lines.append(
                f"The next choice, ra = {self.next_copies}, "
                + (
                    f"needs {self.missing_entries:.0f} more entries in its fullest switch."
                    if self.missing_entries > 0
                    else "fits too."
                )
            )
        return lines


def list_choices(problem: Multicast) -> pd.DataFrame:
    """Return every choice of n, rc, ra on the problem's fat tree, with partitions given out in turn.

    Columns: aggregation_copies, core_copies, partitions; failures_survived, aggregation switches of a
    pod that may fail before a partition is lost there; fits, whether core and aggregation tables hold
    all groups; spare_entries of the fullest switch (negative: lacking); *_entries_max;
    groups_before_overflow, number of groups, in their order, that fit before a table overflows (all where
    none does); core_capacity and pod_capacity, equations (1) and (2).

    raises  InputError for trees that are no fat trees
    """
    rows = []
    size = {layer: problem.table_size(layer) for layer in ("core", "aggregation")}
    for layout in equations.list_layouts(problem.k):
        copies = layout.aggregation_copies
        limits = table_limits.build_limits(problem, copies, layers=("core", "aggregation"))
        counts = np.diff(limits.uses.indptr)
        overflow = table_limits.first_overflow(limits)
        cores = len(np.unique(problem.distribution(copies).core, axis=0))
        spare = float((limits.free - counts).min())
        rows.append(
            (
                copies,
                layout.core_copies,
                layout.partitions,
                copies - 1,
                spare >= 0,
                spare,
                float(counts[:cores].max()),
                float(counts[cores:].max()),
                len(problem.groups) if overflow is None else overflow,
                equations.core_capacity(k=problem.k, table_size=size["core"], core_copies=layout.core_copies),
                equations.aggregation_capacity(
                    k=problem.k, table_size=size["aggregation"], aggregation_copies=copies
                ),
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def choose_layout(problem: Multicast, *, wish: str = "copies", least_copies: int = 1) -> LayoutChoice:
    """Return the layout with all groups in core and aggregation tables, with at least `least_copies`.

    wish  copies: the layout with the most copies; groups: with the most free entries

    Exact: all that Algorithm 1 admits are tried. Edge switches need the same entries with any layout.
    """
    table = list_choices(problem)
    able = table[table["fits"] & (table["aggregation_copies"] >= least_copies)]
    copies: int | None = None
    if len(able):
        by = "aggregation_copies" if wish == "copies" else "spare_entries"
        copies = int(able["aggregation_copies"].to_numpy()[int(able[by].to_numpy().argmax())])
    above = table[table["aggregation_copies"] > (least_copies - 1 if copies is None else copies)]
    if not len(above):
        return LayoutChoice(table=table, chosen=copies, next_copies=None, missing_entries=None)
    following = above.iloc[0]
    return LayoutChoice(
        table=table,
        chosen=copies,
        next_copies=int(following["aggregation_copies"]),
        missing_entries=max(0.0, -float(following["spare_entries"])),
    )


def describe_choice(choice: LayoutChoice) -> Section:
    """Return the layouts as a section of an explanation."""
    fits = choice.table["fits"].map({True: "yes", False: "no"})
    return Section(
        title="copies of each part of the addresses",
        frame=choice.table.assign(fits=fits).rename(columns=COLUMNS),
        units=dict.fromkeys(("spare", "core", "aggr"), "entries")
        | dict.fromkeys(("groups", "eq_1", "eq_2"), "groups"),
        note="survives: failed switches of a pod; spare: of the fullest switch; core, aggr: entries of the "
        "fullest; groups: that fit before a table overflows, without edge switches; eq_1, eq_2: groups that "
        "the core layer and the aggregation layer of a pod hold",
    )
