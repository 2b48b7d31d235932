"""Group capacity: the number of groups that fit, for any table size, without a search.

Groups come in their order. A switch with tables of C entries overflows at the (C + 1)-th group that it
stores, so the first such group over all switches is the number of groups that fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.multicast.plan import table_limits
from planner_models.multicast.plan.plan import round_robin_partitions
from planner_models.multicast.problem import workloads
from planner_models.multicast.problem.addresses import Distribution, distribute_addresses
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import Wiring, fat_tree
from planner_models.multicast.problem.workloads import Spread

EDGE_SEVERAL_PORTS: Final = "edge, several ports"  # entries of edge switches that cannot be unicast entries


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
    groups: int,
    placement: workloads.Placement,
    sizes: workloads.Sizes,
    arrangement: int,
    largest: int,
    tenants: int = 3000,
    largest_tenant: int = 5000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return `groups_before_overflow` of the groups of section 4.1 on an AB fat tree."""
    half = k // 2
    host = np.arange(k * half * half)
    workload = workloads.generate_workload(
        hosts=len(host),
        tenants=tenants,
        largest_tenant=largest_tenant,
        groups=groups,
        placement=placement,
        sizes=sizes,
        arrangement=arrangement,
        seed=seed,
    )
    spread = workload.spread(host // half, host % half, k * half)
    held = distribute_addresses("ab", k, aggregation_copies)
    partition = np.arange(groups) % held.partitions
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
