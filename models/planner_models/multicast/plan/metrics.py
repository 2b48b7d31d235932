"""Metrics of a plan of system `multicast`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, distinct
from planner.compiled import njit, run_small_in_python
from planner.contract.metrics import Metric, less
from planner_models.multicast.plan import adaptation, rerouting
from planner_models.multicast.plan.forwarding import compare_plans, compile_tables
from planner_models.multicast.plan.headers import IN_TABLE
from planner_models.multicast.plan.link_traffic import Trees, measure_headers, nothing
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.overflow import Overflow
from planner_models.multicast.plan.plan import Channels, count_entries
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    group_assignment,
    groups_at_aggregations,
    groups_at_edges,
    rank_keys,
)
from planner_models.multicast.problem import failures
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import find_rows

EQUATION_6: Final = "equation (6) with linear cost"


METRICS: Final = (
    less(
        "host_traffic_mbps",
        "Mbit/s",
        "traffic that hosts send and receive: groups with entries are sent once, others (also those that a "
        "full table refuses) once a member",
    ),
    less(
        "lost_mbps",
        "Mbit/s",
        "traffic that members miss while switches reroute around failures, or that their processors drop",
    ),
    Metric(name="groups_with_entries", unit="groups", better="more", about="groups with table entries"),
    less("groups_by_unicast", "groups", "groups sent to each member by unicast"),
    Metric(
        name="groups_by_header", unit="groups", better="more", about="groups whose packets carry their tree"
    ),
    less("groups_flooded", "groups", "groups that a switch without an entry for them floods"),
    less("groups_by_processor", "groups", "groups that the processor of a switch forwards, without an entry"),
    less("processor_mbps_max", "Mbit/s", "traffic that the busiest processor of a switch has to forward"),
    less("overloaded_processors", "switches", "switches whose processor drops a part of this"),
    less("overhead_mbps", "Mbit/s", "traffic to hosts that are no members of its group", EQUATION_6),
    less("overhead_share", "", "divided by the wanted traffic of groups with entries", "section 4.2"),
    less(
        "busiest_overhead_share", "", "the share on the 1% of host links with the most traffic", "section 4.2"
    ),
    less(
        "edge_link_overhead_mbps",
        "Mbit/s",
        "traffic from aggregation to edge switches that have no member of its group",
        EQUATION_6,
    ),
    less("edge_link_overhead_share", "", "the same, divided by the traffic of groups with members there"),
    less(
        "link_traffic_mbps",
        "Mbit/s",
        "traffic on all links, headers included, of sources at the first edge switch of their group",
    ),
    less("header_mbps", "Mbit/s", "headers that carry the trees of groups, on all links"),
    less("header_bytes_max", "bytes", "longest of these headers"),
    less(
        "redundant_share",
        "",
        "copies on links beyond one on each link of a group's tree, by traffic, divided by that one",
    ),
    *(less(f"{layer}_entries_max", "entries", f"entries of the fullest {layer} switch") for layer in LAYERS),
    *(less(f"{layer}_entries_mean", "entries", f"entries of {layer} switches, mean") for layer in LAYERS),
    less(
        "edge_multiport_entries",
        "entries",
        "entries of the fullest edge switch with several ports; others could be unicast entries",
        "section 4.2",
    ),
    less(
        "unreachable_share",
        "",
        "share of a group's members without packets while switches reroute locally around failures",
        "section 4.4",
    ),
    less(
        "route_stretch",
        "times",
        "links that packets take meanwhile, divided by those without failures; mean of groups",
        "section 4.4",
    ),
    less("rebuilt_roots", "cores", "cores of rebuilt trees, mean of groups in several pods", "section 3.3.2"),
    less("rebuilt_entries", "entries", "entries to add for rebuilt trees of all groups", "section 3.3.2"),
    less("rules_changed", "rules", "groups added, removed or moved since the last plan"),
    less(
        "entries_changed",
        "entries",
        "table entries added and removed since the last plan, once switches adapted it to joins and leaves",
    ),
)


def measure(problem: Multicast, plan: Channels, previous: Channels | None) -> dict[str, float | None]:
    """Return every metric of the plan, from the true problem and the plan's tables alone.

    Groups that a full table refuses go by unicast, in any plan; tables count entries as they are planned.
    """
    by_layer = plan.entries.groupby("layer")["entries"]
    refused = find_refused_groups(problem, plan)
    if refused.any():
        plan = without_groups(problem, plan, refused)
    stored = has_entries(problem, plan)
    rate, members = problem.rate_mbps, problem.member_counts
    at_edges = find_edge_entries(problem, plan)
    offered, extra = host_links_mbps(problem, plan, at_edges)
    links, more = edge_links_mbps(problem, plan)
    trees, sent = Trees.of(problem), plan.header_trees(problem)
    by_header = np.zeros(len(stored), dtype=bool) if sent is None else sent.sent
    by_unicast = ~stored & ~by_header
    unicast = float((2 * rate * members)[by_unicast].sum())
    headers = nothing(problem) if sent is None else measure_headers(problem, trees, sent)
    to_others = float(rate[by_header] @ (headers.to_hosts - members)[by_header])
    from_headers = float(rate[by_header] @ (headers.from_source + headers.to_hosts)[by_header])
    at_hosts = float(rate[stored].sum()) + float(offered.sum() + extra.sum())
    links_used = np.where(stored, trees.table_links, trees.unicast_links).astype(float)
    links_used[by_header] = headers.links[by_header]
    pairs = plan.overflow_pairs(problem)
    flooding = None if pairs is None else pairs.flood()
    shared = float(extra.sum() + more.sum()) + (0.0 if flooding is None else flooding.to_pods_mbps)
    lower, copies = float(rate @ trees.least_links), float(rate @ links_used) + shared
    header_mbps = float(rate @ headers.header_share)
    return {
        "host_traffic_mbps": at_hosts + unicast + from_headers,
        "groups_with_entries": float(stored.sum()),
        "groups_by_unicast": float(by_unicast.sum()),
        "groups_by_header": float(by_header.sum()),
        **_measure_overflow(pairs),
        "overhead_mbps": float(extra.sum()) + to_others,
        "overhead_share": _share(
            extra.sum() + to_others, offered.sum() + float(rate[by_header] @ members[by_header])
        ),
        "busiest_overhead_share": _busiest(extra, offered),
        "edge_link_overhead_mbps": float(more.sum()),
        "edge_link_overhead_share": _share(more.sum(), links.sum()),
        "link_traffic_mbps": copies + header_mbps,
        "header_mbps": header_mbps,
        "header_bytes_max": 0.0 if sent is None else float(sent.needed_bytes.max(initial=0)),
        "redundant_share": _share(copies - lower, lower),
        **{f"{layer}_entries_max": by_layer.max().get(layer) for layer in LAYERS},
        **{f"{layer}_entries_mean": by_layer.mean().get(layer) for layer in LAYERS},
        "edge_multiport_entries": float(count_several_ports(problem, plan, at_edges).max()),
        **_with_failures(problem, plan, pairs),
        "rules_changed": None if previous is None else float(_count_changed(plan, previous)),
        "entries_changed": None if previous is None else _count_changed_entries(problem, plan, previous),
    }


def find_refused_groups(problem: Multicast, plan: Channels) -> Bools:
    """Return the groups that a full table refuses, (G,): entries fill it in the order of their numbers.

    An entry of its own has its group's number, a shared one its meta-group's.
    """
    refused = np.zeros(len(problem.groups), dtype=bool)
    table = count_entries(problem, plan.partitions, plan.meta_groups, overflow=plan.overflow)
    needed = table["entries"].to_numpy()
    over = np.flatnonzero(needed > problem.free_entries)
    if not len(over):
        return refused
    tables = compile_tables(problem, plan)
    rules = tables.rules[tables.rules["switch"].isin(over)]
    address = rules["address"].to_numpy()
    rules = rules.assign(number=np.where(address < 0, -1 - address, address)).sort_values(
        ["switch", "number"]
    )
    nth = rules.groupby("switch").cumcount().to_numpy()
    left_out = rules[nth >= problem.free_entries[rules["switch"]]]
    own_address = left_out["address"].to_numpy()
    refused[own_address[own_address >= 0]] = True
    shared = tables.local.merge(left_out[["switch", "address"]], on=["switch", "address"])
    refused[shared["group"].to_numpy()] = True
    return refused


def without_groups(problem: Multicast, plan: Channels, groups: Bools) -> Channels:
    """Return the plan where these groups, (G,), go by unicast."""
    partitions, shared = (
        frame[~groups[find_rows(problem.group_names, frame["group"])]].reset_index(drop=True)
        for frame in (plan.partitions, plan.meta_groups)
    )
    overflow = plan.overflow
    if overflow is not None:
        stay = ~groups[find_rows(problem.group_names, overflow["group"])]
        overflow = overflow[stay].reset_index(drop=True)
    entries = count_entries(problem, partitions, shared, plan.header_trees(problem), overflow)
    return replace(plan, partitions=partitions, meta_groups=shared, entries=entries, overflow=overflow)


def _measure_overflow(pairs: Overflow | None) -> dict[str, float | None]:
    """Return the metrics of groups that switches forward without an entry."""
    if pairs is None:
        names = ("groups_flooded", "groups_by_processor", "processor_mbps_max", "overloaded_processors")
        return dict.fromkeys(names, 0.0)
    return {
        "groups_flooded": float(len(distinct(pairs.group[pairs.floods]))),
        "groups_by_processor": float(len(distinct(pairs.group[~pairs.floods]))),
        "processor_mbps_max": float(pairs.processor_mbps.max()),
        "overloaded_processors": float((pairs.dropped > 0).sum()),
    }


def member_lost_mbps(problem: Multicast, plan: Channels, missed: Bools | None = None) -> Floats:
    """Return the traffic that each member misses, (members,), Mbit/s: by failures, and by processors.

    missed  (members,) those without packets through failures; default: none
    """
    pairs = plan.overflow_pairs(problem)
    lost = np.zeros(len(problem.group_of)) if pairs is None else pairs.member_losses()
    if missed is not None:
        lost = np.where(missed, 1.0, lost)
    return np.asarray(lost * problem.rate_mbps[problem.group_of])


def _with_failures(problem: Multicast, plan: Channels, pairs: Overflow | None) -> dict[str, float | None]:
    """Return the metrics of rerouting and rebuilding, None where nothing has failed, and the lost traffic."""
    names = ("lost_mbps", "unreachable_share", "route_stretch", "rebuilt_roots", "rebuilt_entries")
    if not problem.has_failures:
        lost = 0.0 if pairs is None else float(member_lost_mbps(problem, plan).sum())
        return dict.fromkeys(names) | {"lost_mbps": lost}
    state = failures.working_links(problem)
    reached = rerouting.reroute_groups(problem, plan, state)
    missed = rerouting.find_missed_members(problem, plan, state, rerouted=reached)
    lost = float(member_lost_mbps(problem, plan, missed).sum())
    if not len(plan.partitions):
        return dict.fromkeys(names) | {"lost_mbps": lost}
    trees = rerouting.repair_trees(problem, plan, state, exact=False).table
    got = np.isfinite(reached.stretch)
    values = (
        lost,
        float(reached.unreachable.mean()),
        float(reached.stretch[got].mean()) if got.any() else None,
        float(trees["roots"].mean()) if len(trees) else None,
        float(trees["entries"].sum()),
    )
    return dict(zip(names, values, strict=True))


def _share(amount: float, total: float) -> float | None:
    """Return part / whole; None where the whole is 0."""
    return float(amount / total) if total > 0 else None


def _busiest(extra: Floats, useful: Floats) -> float | None:
    """Return the overhead of the 1% of links with the most traffic, at least one link."""
    extra, useful = extra.ravel(), useful.ravel()
    total = extra + useful
    top = np.argsort(-total, kind="stable")[: max(1, int((total > 0).sum()) // 100)]
    return _share(extra[top].sum(), useful[top].sum())


def _count_changed(plan: Channels, previous: Channels) -> int:
    """Return the number of groups added, removed or moved between two plans."""
    rows = [
        pd.MultiIndex.from_frame(each.partitions[["group", "partition", "copies"]].astype({"group": str}))
        for each in (plan, previous)
    ]
    entries = [_own_entries(each) for each in (plan, previous)]
    return len(rows[0].symmetric_difference(rows[1])) + len(entries[0].symmetric_difference(entries[1]))


def _count_changed_entries(problem: Multicast, plan: Channels, previous: Channels) -> float | None:
    """Return the entries added and removed.

    None where the previous plan has other partitions, headers, or groups that switches forward without entry.
    """
    copies = set(previous.partitions["copies"].astype(int)) | {problem.aggregation_copies}
    if previous.headers is not None or previous.overflow is not None or len(copies) > 1:
        return None
    before = adaptation.adapt_plan(problem, previous)
    return float(compare_plans(problem, plan, before)[["add", "remove"]].to_numpy().sum())


def _own_entries(plan: Channels) -> pd.MultiIndex:
    """Return group and switch of the table entries of groups that headers carry."""
    rules = plan.header_rules
    if rules is None:
        return pd.MultiIndex.from_arrays([[], []])
    return pd.MultiIndex.from_frame(rules.loc[rules["rule"] == IN_TABLE, ["group", "switch"]].astype(str))


class SharedEntries(NamedTuple):
    """Shared entries of one layer.

    pair    row of `StoredGroups` of each group that shares an entry
    entry   (pairs,) its entry
    switch  (entries,) switch of each, counted within its layer
    ports   (entries,) ports of any group of the entry, as bits
    """

    pair: Ints
    entry: Ints
    switch: Ints
    ports: Masks


def find_shared_entries(problem: Multicast, plan: Channels, stored: StoredGroups) -> SharedEntries:
    """Return the plan's shared entries of the layer with groups `stored`."""
    wires, shared, groups = problem.wiring, plan.meta_groups, len(problem.groups)
    names = wires.edges if stored.layer == "edge" else wires.aggregations
    pairs = stored.switch * groups + stored.group
    keys_sought = find_rows(names, shared["switch"]) * groups + find_rows(
        problem.group_names, shared["group"]
    )
    pair = np.minimum(np.searchsorted(pairs, keys_sought), max(len(pairs) - 1, 0))
    is_match = pairs[pair] == keys_sought if len(pairs) else np.zeros(len(keys_sought), dtype=bool)
    pair, meta = pair[is_match], shared["meta_group"].to_numpy(np.int64)[is_match]
    if not len(pair):
        nothing = np.zeros(0, dtype=np.int64)
        return SharedEntries(nothing, nothing, nothing, np.zeros(0, dtype=np.uint64))
    width = int(meta.max()) + 1
    key, entry = rank_keys(stored.switch[pair] * width + meta, len(names) * width)
    ports = np.zeros(len(key), dtype=np.uint64)
    np.bitwise_or.at(ports, entry, stored.ports[pair])
    return SharedEntries(pair, entry, key // width, ports)


class EdgeEntries(NamedTuple):
    """Groups that edge switches store, and the entries that they share."""

    stored: StoredGroups
    shared: SharedEntries


def find_edge_entries(problem: Multicast, plan: Channels) -> EdgeEntries:
    """Return the plan's groups with entries at edge switches, and their shared entries."""
    stored = groups_at_edges(problem, has_entries(problem, plan))
    return EdgeEntries(stored, find_shared_entries(problem, plan, stored))


def host_links_mbps(
    problem: Multicast, plan: Channels, at_edges: EdgeEntries | None = None
) -> tuple[Floats, Floats]:
    """Return the traffic of groups with entries to each host, wanted and extra, (edge switches, ports).

    at_edges  entries of the plan at edge switches; found here by default
    """
    stored, shared = at_edges or find_edge_entries(problem, plan)
    extra = shared.ports[shared.entry] & ~stored.ports[shared.pair]
    rates, switch = problem.rate_mbps[stored.group], stored.switch
    shape = (problem.edge_count, problem.ports)
    useful = sum_by_port(np.zeros(shape), switch, rates, stored.ports)
    others = sum_by_port(np.zeros(shape), switch[shared.pair], rates[shared.pair], extra)
    if (pairs := plan.overflow_pairs(problem)) is not None:
        flooding = pairs.flood()
        others = sum_by_port(others, flooding.edge, flooding.rate_mbps, flooding.ports)
    return useful, others


@run_small_in_python(max_elements=10_000)
@njit(cache=True, nogil=True)
def sum_by_port(total: Floats, switch: Ints, rates: Floats, masks: Masks) -> Floats:
    """Return total, (switches, ports), with the rates of all ports of each mask added.

    switch, rates, masks  (pairs,)
    """
    for pair in range(len(switch)):
        mask = masks[pair]
        for port in range(total.shape[1]):
            if mask & (np.uint64(1) << np.uint64(port)):
                total[switch[pair], port] += rates[pair]
    return total


def edge_links_mbps(problem: Multicast, plan: Channels) -> tuple[Floats, Floats]:
    """Return the traffic to edge switches below, wanted and extra, (aggregation switches,).

    A group takes one of the switches that hold its partition in a pod; each has its equal part.
    """
    wires = problem.wiring
    partition, copies = group_assignment(problem, plan.partitions)
    useful, extra = np.zeros((2, len(wires.aggregations)))
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        stored = groups_at_aggregations(problem, partition, held, copies == ra)
        switch = stored.switch
        holders = np.zeros((wires.pods, held.partitions))
        np.add.at(holders, wires.aggregation_pod, held.aggregation)
        share = 1.0 / holders[wires.aggregation_pod[switch], partition[stored.group]]
        rates = problem.rate_mbps[stored.group] * share
        useful += np.bincount(switch, rates * np.bitwise_count(stored.ports), minlength=len(useful))
        pair, entry, _, ports = find_shared_entries(problem, plan, stored)
        more = np.bitwise_count(ports[entry] & ~stored.ports[pair])
        extra += np.bincount(switch[pair], rates[pair] * more, minlength=len(extra))
    if (pairs := plan.overflow_pairs(problem)) is not None:
        extra += pairs.flood().to_edges_mbps.sum(axis=1)
    return useful, extra


def count_several_ports(problem: Multicast, plan: Channels, at_edges: EdgeEntries | None = None) -> Ints:
    """Return the entries with several ports, (edge switches,); others could be unicast entries.

    at_edges  entries of the plan at edge switches; found here by default
    """
    stored, shared = at_edges or find_edge_entries(problem, plan)
    shares = np.zeros(problem.edge_count, dtype=bool)
    shares[shared.switch] = True
    is_separate = ~shares[stored.switch] & (np.bitwise_count(stored.ports) > 1)
    switches = np.concatenate([stored.switch[is_separate], shared.switch[np.bitwise_count(shared.ports) > 1]])
    return np.asarray(np.bincount(switches, minlength=problem.edge_count), dtype=np.int64)


def has_entries(problem: Multicast, plan: Channels) -> Bools:
    """Return whether each group has table entries, (G,)."""
    return group_assignment(problem, plan.partitions)[1] > 0
