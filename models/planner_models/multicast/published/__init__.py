"""Reproduction targets of system `multicast`, declared in `data/published/multicast.toml`.

Section 3: capacities, address distribution and the cost of rerouting, by formula and by example.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.multicast.plan import meta_groups, rerouting
from planner_models.multicast.problem import equations, failures, topology
from planner_models.multicast.problem.problem import list_hosts
from planner_models.multicast.published.figures_4_to_6 import (
    find_figure_5a,
    find_figure_5b,
    find_figure_5c,
    find_figure_6,
    find_section_4_1,
)
from planner_models.multicast.published.figures_7_and_8 import find_figure_7, find_figure_8, find_table_2

PORTS: Final = (4, 8, 12, 16, 24, 48)


def find_section_3(study: Study) -> TargetValues:  # noqa: ARG001 - needs no run
    """Return our values for the numbers and formulas of section 3."""
    figure_2 = topology.distribute_addresses("ab", 8, 2)
    practice = topology.distribute_addresses("ab", 48, 3)
    figure_3 = np.array([3, 12, 12, 3], dtype=np.uint64)  # groups 000 to 011, by receivers
    return TargetValues(
        values={
            "mcast_f2_core_cap": equations.core_capacity(k=8, table_size=1, core_copies=4),
            "mcast_f2_aggr_cap": equations.aggregation_capacity(k=8, table_size=1, aggregation_copies=2),
            "mcast_f2_prefix_bits": float(np.log2(figure_2.partitions)),
            "mcast_practice_n": float(practice.partitions),
            "mcast_practice_rc": float(practice.core.sum(axis=0)[0]),
            "mcast_practice_core_cap": equations.core_capacity(k=48, table_size=1000, core_copies=9),
            "mcast_practice_aggr_cap": equations.aggregation_capacity(
                k=48, table_size=1000, aggregation_copies=3
            ),
            "mcast_f3_before": float(len(figure_3)),
            "mcast_f3_after": float(meta_groups.merge_equal_sets(figure_3).max() + 1),
            "mcast_reroute_hops": _count_detour_hops("ab"),
            "mcast_reroute_hops_rare": _count_detour_hops("standard"),
            "mcast_vlan_tags": all(rerouting.rerouting_cost(k).identifiers == 3 * k / 2 for k in PORTS),
            "mcast_vlan_bits": all(
                2 ** rerouting.rerouting_cost(k).identifier_bits
                >= 3 * k / 2
                > 2 ** (rerouting.rerouting_cost(k).identifier_bits - 1)
                for k in PORTS
            ),
            "mcast_unicast_edge": all(rerouting.rerouting_cost(k).edge_rules == k / 2 for k in PORTS),
            "mcast_unicast_aggr": all(
                rerouting.rerouting_cost(k).aggregation_rules == 3 * k / 2 for k in PORTS
            ),
            **_check_tree_sizes(),
            **_check_algorithm_1(),
            "mcast_eq3": all(_holds_equation_3(k, 6, spread) for k in PORTS for spread in (1, 2)),
            "mcast_eq4": all(
                _holds_equation_4(k, copies, spread) for k in PORTS for copies in (1, 2) for spread in (1, 2)
            ),
            "mcast_eq5": all(
                _holds_equation_5(cores, spread) for cores in (10, 60, 600) for spread in (1, 2, 3)
            ),
        },
        notes={
            "mcast_f3_after": "four groups at two port sets, entries for equal sets merged",
            "mcast_reroute_hops_rare": "in the standard tree, where one failure needs it already",
        },
    )


def _check_tree_sizes() -> dict[str, float | bool | None]:
    """Return whether the trees that we build have the sizes of the formulas."""
    wires = {k: topology.fat_tree("ab", k) for k in PORTS}
    return {
        "mcast_fat_hosts": all(len(list_hosts(k)) == k**3 / 4 for k in PORTS),
        "mcast_fat_cores": all(len(each.cores) == k**2 / 4 for k, each in wires.items()),
        "mcast_fat_pods": all(each.pods == k for k, each in wires.items()),
        "mcast_fat_aggr": all(len(each.aggregations) == k * k / 2 for k, each in wires.items()),
        "mcast_fat_edge": all(len(each.edges) == k * k / 2 for k, each in wires.items()),
    }


def _check_algorithm_1() -> dict[str, float | bool | None]:
    """Return whether our address distributions satisfy equations and Algorithm 1, for every layout."""
    holds = dict.fromkeys(("eq1", "eq2", "np", "r", "core_per_aggr", "n", "ra", "div"), True)
    for k in PORTS:
        wires = topology.fat_tree("ab", k)
        for cut in equations.list_layouts(k):
            n, rc, ra = cut.partitions, cut.core_copies, cut.aggregation_copies
            held = topology.distribute_addresses("ab", k, ra)
            first = held.aggregation[: k // 2]  # the first pod, of type A
            per_switch = 2 * n * ra / k
            # C groups for each distinct set of partitions of a switch
            sets = len(np.unique(first, axis=0))
            below = wires.up.astype(int) @ held.core.astype(int)  # cores of each partition at each switch
            holds["eq1"] &= n * 7 == equations.core_capacity(k=k, table_size=7, core_copies=rc)
            holds["eq2"] &= sets * 7 == equations.aggregation_capacity(
                k=k, table_size=7, aggregation_copies=ra
            )
            holds["np"] &= bool((held.aggregation.sum(axis=1) == per_switch).all())
            holds["r"] &= bool((first.argmax(axis=1) == np.arange(k // 2) // ra * per_switch).all())
            holds["core_per_aggr"] &= bool((below[held.aggregation] == rc / ra).all())
            holds["n"] &= n * rc == k**2 / 4
            holds["ra"] &= ra**2 == rc
            holds["div"] &= k % (2 * ra) == 0
    names = {"eq1": "mcast_eq1", "eq2": "mcast_eq2", "n": "mcast_alg1_req_n", "ra": "mcast_alg1_req_ra"}
    names |= {"div": "mcast_alg1_req_div", "np": "mcast_alg1_np", "r": "mcast_alg1_r"}
    names |= {"core_per_aggr": "mcast_alg1_core_per_aggr"}
    return {names[name]: value for name, value in holds.items()}


def _holds_equation_3(k: int, size: int, spread: int) -> bool:
    """Return whether groups at `spread` edge switches each, in turn, fill a pod as equation (3) says."""
    taken = np.zeros(k // 2, dtype=int)
    groups = 0
    while (taken[(groups * spread + np.arange(spread)) % (k // 2)] < size).all():
        taken[(groups * spread + np.arange(spread)) % (k // 2)] += 1
        groups += 1
    return groups == equations.edge_capacity(k=k, table_size=size, edges_per_pod=spread)


def _holds_equation_4(k: int, copies: int, spread: int) -> bool:
    """Return whether the layer with fewer groups limits a pod; where it shares entries, the other one."""
    layers = (
        equations.aggregation_capacity(k=k, table_size=6, aggregation_copies=copies),
        equations.edge_capacity(k=k, table_size=6, edges_per_pod=spread),
    )
    pod: dict[str, Any] = {
        "k": k,
        "table_size": 6.0,
        "aggregation_copies": copies,
        "edges_per_pod": float(spread),
    }
    alone, sharing = (equations.pod_capacity(**pod, aggregated=shared) for shared in (False, True))
    return alone == min(layers) and sharing == max(layers)


def _holds_equation_5(cores: int, spread: int) -> bool:
    """Return whether cores, or eight pods of 30 groups, limit the groups; half of them span pods."""
    groups = 0
    while (groups + 1) * 0.5 <= cores and (groups + 1) * spread <= 8 * 30:
        groups += 1
    capacity = equations.system_capacity(
        core_groups=cores, share_across_pods=0.5, pod_groups=30, pods=8, pods_per_group=spread
    )
    return groups == int(capacity)


def _count_detour_hops(kind: topology.Kind) -> float:
    """Return the hops around one failed aggregation switch, from a core into its pod."""
    wires = topology.fat_tree(kind, 8)
    state = failures.find_working_links(wires, switches=["aggregation-0-0"])
    detours = rerouting.find_detours(wires, topology.distribute_addresses(kind, 8, 2), 0, state)
    return float(detours.hops[:, 0].max())


TARGETS: Final = read_targets(
    "multicast",
    {
        "section_4_1": find_section_4_1,
        "figure_5a": find_figure_5a,
        "figure_5b": find_figure_5b,
        "figure_5c": find_figure_5c,
        "figure_6": find_figure_6,
        "section_3": find_section_3,
        "figure_7": find_figure_7,
        "table_2": find_table_2,
        "figure_8": find_figure_8,
    },
)
