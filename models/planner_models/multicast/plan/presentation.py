"""Presentation of plans: tables and entries of switches by layer, and switches and groups as elements.

Traffic of groups with entries at switches, and on the links between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints, distinct
from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.errors import InputError, did_you_mean
from planner.formatting import counted, counted_of, number
from planner.options import Options
from planner_models.multicast.plan import metrics, table_limits
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.metrics import find_shared_entries
from planner_models.multicast.plan.overflow import flooded_mbps
from planner_models.multicast.plan.plan import Channels, round_robin_partitions
from planner_models.multicast.plan.rerouting import find_missed_members
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    group_assignment,
    groups_at_aggregations,
    groups_at_edges,
)
from planner_models.multicast.problem.drawing import SWITCH, fabric_map, has_links, list_nodes
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.problem import Multicast

GROUP: Final = "group"
SWITCH_ACTIONS: Final = (
    Action(name="Fail", state="failed", parameter="fail_switches", role="failure"),
    Action(
        name="Double its table",
        state="at double table size",
        parameter="entry_factors",
        value=2.0,
        role="upgrade",
    ),
    Action(name="Halve its table", state="at half table size", parameter="entry_factors", value=0.5),
)
GROUP_ACTIONS: Final = (
    Action(name="Double its rate", state="at double rate", parameter="rate_factors", value=2.0),
    Action(name="Leave it out", state="left out", parameter="rate_factors", value=0.0),
)


def draw(problem: Multicast, plan: Channels) -> Sequence[Drawing]:
    """Draw the table fill of switches by pod, then the distribution of entries by layer."""
    layers = plan.entries.groupby("layer", sort=False, observed=True)["entries"]
    return (
        draw_tables(problem, plan),
        Distribution(
            title="Table entries of switches by layer",
            values={str(layer): entries.reset_index(drop=True) for layer, entries in layers},
            what="entries",
        ),
    )


def draw_tables(problem: Multicast, plan: Channels) -> NetworkMap:
    """Return the map of the fabric, with table fill at switches and the load of groups on links."""
    wires = problem.wiring
    entries, (size, occupied) = plan_entries(problem, plan), problem.table_sizes
    used = entries + occupied
    fill = np.divide(100 * used, size, out=np.full(len(size), np.nan), where=size > 0)
    over = np.zeros(len(size))
    over[-problem.edge_count :] = metrics.host_links_mbps(problem, plan)[1].sum(axis=1)
    lost = lost_at_edges(problem, plan)
    words = [
        f"{number(count)} of {counted(limit, 'entries')}"
        + (f", overhead {number(extra)} Mbit/s to hosts that are no members" if extra > 0 else "")
        for count, limit, extra in zip(used, size, over, strict=True)
    ]
    lost_of = np.concatenate([np.zeros(len(size) - problem.edge_count), lost])
    nodes = list_nodes(problem)
    nodes = nodes.assign(value=fill[nodes.index], lost=lost_of[nodes.index])
    stored = counted_of(len(plan.partitions), len(problem.groups), "groups", "have")
    title = f"Table fill of switches: {stored} entries"
    if plan.headers is not None:  # which share entries where they are too short
        title += f" of their own, {len(plan.headers):,} have headers"
    if (pairs := plan.overflow_pairs(problem)) is not None:
        title += f", {len(distinct(pairs.group)):,} of them not everywhere"
    drawn = has_links(wires)
    return fabric_map(
        problem,
        nodes,
        pd.Series(words)[nodes.index],
        title=title,
        up_mbps=core_link_loads(problem, plan) if drawn else None,
        down_mbps=edge_link_loads(problem, plan) if drawn else None,
    )


def plan_entries(problem: Multicast, plan: Channels) -> Floats:
    """Return the table entries that a plan uses at each switch, (switches,)."""
    entries = plan.entries.set_index("switch")["entries"].reindex(problem.wiring.switches)
    return entries.to_numpy(float)


def lost_at_edges(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic that members at each edge switch miss, (edge switches,), Mbit/s."""
    if not problem.has_failures and plan.overflow is None:
        return np.zeros(problem.edge_count)
    missed = find_missed_members(problem, plan, working_links(problem)) if problem.has_failures else None
    lost = metrics.member_lost_mbps(problem, plan, missed)
    edge = problem.edge_of_host[problem.host_of]
    return np.bincount(edge, lost, minlength=problem.edge_count).astype(float)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupsAtSwitches:
    """Groups at the switches of one layer, one row for each pair that the plan stores.

    switch  counted within the layer
    group   row of the group
    ports   (rows,) links downwards that its packets take, also where only other groups of its entry are
    share   (rows,) part of its packets that pass this switch: several hold its partition
    sharing (rows,) groups of its entry, itself included
    """

    switch: Ints
    group: Ints
    ports: Ints
    share: Floats
    sharing: Ints

    def traffic_mbps(self, problem: Multicast) -> Floats:
        """Return the traffic that the switch sends down for each pair, (rows,)."""
        sent: Floats = problem.rate_mbps[self.group] * self.share * self.ports
        return sent

    def of_switch(self, switch: int) -> pd.DataFrame:
        """Return the rows of one switch."""
        is_here = self.switch == switch
        return pd.DataFrame({name: values[is_here] for name, values in vars(self).items()})


def list_groups(problem: Multicast, plan: Channels, layer: str) -> GroupsAtSwitches:
    """Return the groups at the switches of a layer.

    Packets take each switch that holds the group's partition equally often; a core reaches every pod with
    members over a link, up from the sender's pod and down to the others.
    """
    partition, copies = group_assignment(problem, plan.partitions)
    if layer == "core":
        return _list_at_cores(problem, partition, copies)
    parts = []
    for stored, share, masks, sharing in _stored_parts(problem, plan, layer, partition, copies):
        ports = np.bitwise_count(masks).astype(np.int64)
        parts.append((stored.switch, stored.group, ports, share, sharing))
    nothing = np.zeros(0, dtype=np.int64)
    parts.append((nothing, nothing, nothing, np.zeros(0), nothing))
    switch, group, ports, share, sharing = (np.concatenate(column) for column in zip(*parts, strict=True))
    return GroupsAtSwitches(switch=switch, group=group, ports=ports, share=share, sharing=sharing)


def _stored_parts(
    problem: Multicast, plan: Channels, layer: str, partition: Ints, copies: Ints
) -> Iterator[tuple[StoredGroups, Floats, Masks, Ints]]:
    """Yield stored groups of edge or aggregation switches with share, ports as bits, and groups of entry."""
    wires = problem.wiring
    for ra in distinct(copies[copies > 0]).tolist():
        if layer == "edge":
            stored = groups_at_edges(problem, copies == ra)
            share = np.ones(len(stored.group))
        else:
            held = problem.distribution(ra)
            stored = groups_at_aggregations(problem, partition, held, copies == ra)
            holders = np.zeros((wires.pods, held.partitions))
            np.add.at(holders, wires.aggregation_pod, held.aggregation)
            share = 1.0 / holders[wires.aggregation_pod[stored.switch], partition[stored.group]]
        masks: Masks = stored.ports.copy()
        sharing = np.ones(len(masks), dtype=np.int64)
        shared = find_shared_entries(problem, plan, stored)
        masks[shared.pair] = shared.ports[shared.entry]
        sharing[shared.pair] = np.bincount(shared.entry, minlength=1)[shared.entry]
        yield stored, share, masks, sharing


def _list_at_cores(problem: Multicast, partition: Ints, copies: Ints) -> GroupsAtSwitches:
    """Return the groups at cores: those of their partitions with members in several pods."""
    pods = np.diff(problem.below.start)
    parts = []
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        across = np.flatnonzero((copies == ra) & (pods > 1))
        which, core = np.nonzero(held.core.T[partition[across]])
        holders = held.core.sum(axis=0)
        group = across[which]
        parts.append((core, group, 1.0 / holders[partition[group]]))
    nothing = np.zeros(0, dtype=np.int64)
    parts.append((nothing, nothing, np.zeros(0)))
    switch, group, share = (np.concatenate(column) for column in zip(*parts, strict=True))
    ones = np.ones(len(group), dtype=np.int64)
    return GroupsAtSwitches(switch=switch, group=group, ports=pods[group], share=share, sharing=ones)


def edge_link_loads(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic from aggregation to edge switches, (aggregation switches, edge switches), Mbit/s."""
    wires = problem.wiring
    partition, copies = group_assignment(problem, plan.partitions)
    first = np.searchsorted(wires.edge_pod, wires.aggregation_pod)
    load = np.zeros((len(wires.aggregations), problem.edge_count))
    for stored, share, masks, _ in _stored_parts(problem, plan, "aggregation", partition, copies):
        rate, switch = problem.rate_mbps[stored.group] * share, stored.switch
        for port in range(int(wires.edge_in_pod.max()) + 1):
            uses = np.flatnonzero(masks & np.uint64(1 << port))
            sums = np.bincount(switch[uses], rate[uses], minlength=len(load))
            sends = np.flatnonzero(sums)
            load[sends, first[sends] + port] += sums[sends]
    if (pairs := plan.overflow_pairs(problem)) is not None:
        load += pairs.flood().to_edges_mbps
    return load


def core_link_loads(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic between cores and aggregation switches, either way, Mbit/s.

    Shape (aggregation switches, cores). A core takes the switches of a pod that hold the partition equally.
    """
    wires = problem.wiring
    partition, copies = group_assignment(problem, plan.partitions)
    below = problem.below
    pods_of = np.diff(below.start)
    group = np.repeat(np.arange(len(pods_of)), pods_of)
    load = np.zeros(wires.up.shape)
    starts = np.searchsorted(wires.aggregation_pod, np.arange(wires.pods))
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        here = (copies == ra)[group] & (pods_of > 1)[group]
        cell = partition[group[here]] * wires.pods + below.edge[here].astype(np.int64)
        rates = np.bincount(cell, problem.rate_mbps[group[here]], minlength=held.partitions * wires.pods)
        rates = rates.reshape(held.partitions, wires.pods)
        for partition_row in np.flatnonzero(rates.any(axis=1)).tolist():
            cores = np.flatnonzero(held.core[:, partition_row])
            links = (wires.up[:, cores] & held.aggregation[:, partition_row][:, None]).astype(float)
            count = np.add.reduceat(links, starts)[wires.aggregation_pod]
            load[:, cores] += np.divide(
                links * rates[partition_row][wires.aggregation_pod][:, None] / len(cores),
                count,
                out=np.zeros_like(links),
                where=count > 0,
            )
    return load


def list_switches(problem: Multicast) -> list[str]:
    """Return the names of all switches."""
    return [str(name) for name in problem.wiring.switches]


def name_groups(problem: Multicast) -> list[str]:
    """Return the names of all groups."""
    return [str(name) for name in problem.group_names]


def _require(index: pd.Index, name: str, what: str) -> int:
    """Return the row of a name; raise InputError with the nearest where there is none."""
    row = int(index.get_indexer(pd.Index([name]))[0])
    if row < 0:
        raise InputError(f"{name}: no such {what}" + did_you_mean(name, index))
    return row


def describe_switch(problem: Multicast, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the table of a switch, the groups that it stores, and those that it cannot."""
    row = _require(problem.wiring.switches, name, SWITCH)
    plan: Channels = decided.plan
    layer = str(problem.wiring.layers[row])
    switch_row = row - int(np.argmax(problem.wiring.layers == layer))
    size, occupied = (float(values[row]) for values in problem.table_sizes)
    stored = list_groups(problem, plan, layer)
    own_groups = stored.of_switch(switch_row)
    traffic = stored.traffic_mbps(problem)[stored.switch == switch_row]
    saved = float(saved_by_tables(problem, plan)[row])
    entries = float(plan_entries(problem, plan)[row])
    fill = 100 * (entries + occupied) / size if size else None
    facts = [
        Fact(label="Table fill", value=fill, unit="%"),
        Fact(label="Entries of this plan", value=entries, unit="entries"),
        Fact(label="Entries of others", value=occupied, unit="entries"),
        Fact(label="Table size", value=size, unit="entries"),
        Fact(label="Groups that it forwards", value=float(len(own_groups)), unit="groups"),
        Fact(label="Traffic sent down", value=float(traffic.sum()), unit="Mbit/s"),
        Fact(label="Host traffic that a larger table may save, at most", value=saved, unit="Mbit/s"),
        Fact(label="Layer", value=layer),
    ]
    facts += _report_overflow(problem, plan, row)
    if layer == "edge":
        extra = metrics.host_links_mbps(problem, plan)[1][switch_row].sum()
        facts.append(Fact(label="Overhead to hosts", value=float(extra), unit="Mbit/s"))
    if problem.has_failures:
        if name in problem.failed_names:
            facts.insert(0, Fact(label="State", value="failed"))
        if layer == "edge":
            lost = float(lost_at_edges(problem, plan)[switch_row])
            facts.insert(1, Fact(label="Traffic that members miss", value=lost, unit="Mbit/s"))
    users = pd.DataFrame(
        {
            "group": problem.group_names[own_groups["group"]].astype(str),
            "rate": problem.rate_mbps[own_groups["group"]],
            "links_down": own_groups["ports"].to_numpy(),
            "groups_of_its_entry": own_groups["sharing"].to_numpy(),
            "traffic": traffic,
        }
    ).sort_values("traffic", ascending=False, kind="stable", ignore_index=True)
    units = {"rate": "Mbit/s", "traffic": "Mbit/s"}
    note = "several switches may hold a group: each passes its part of the packets" if layer != "edge" else ""
    return ElementReport(
        facts=tuple(facts),
        sections=(Section(title="Groups that use it", frame=users, units=units, note=note),),
    )


def _report_overflow(problem: Multicast, plan: Channels, switch: int) -> list[Fact]:
    """Report the groups that a switch has no entry for, and the load of its processor."""
    pairs = plan.overflow_pairs(problem)
    if pairs is None:
        return []
    here = pairs.switch == switch
    facts = [Fact(label="Groups that it floods", value=float((here & pairs.floods).sum()), unit="groups")]
    if not pairs.floods.all():
        count, load = float((here & ~pairs.floods).sum()), float(pairs.processor_mbps[switch])
        facts += [
            Fact(label="Groups that its processor forwards", value=count, unit="groups"),
            Fact(label="Load of its processor", value=load, unit="Mbit/s"),
            Fact(label="Dropped by its processor", value=load * float(pairs.dropped[switch]), unit="Mbit/s"),
        ]
    return facts


def describe_group(problem: Multicast, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the sending of a group, the entries that it takes, and its members."""
    row = _require(problem.group_names, name, GROUP)
    plan: Channels = decided.plan
    partition, copies = group_assignment(problem, plan.partitions)
    rate, members = float(problem.rate_mbps[row]), int(problem.member_counts[row])
    has_entries = bool(copies[row] > 0)
    facts = [
        Fact(label="Sent", value=_way(problem, plan, row, has_entries=has_entries)),
        Fact(label="Rate", value=rate, unit="Mbit/s"),
        Fact(label="Members", value=float(members), unit="hosts"),
        Fact(label="Pods with members", value=float((problem.edges_in_pod[row] > 0).sum()), unit="pods"),
    ]
    sections = []
    if has_entries:
        facts.append(Fact(label="Address partition", value=float(partition[row])))
        sections.append(_report_holders(problem, plan, row))
    else:
        saved = rate * (members - 1)
        facts.append(Fact(label="Host traffic that entries would save", value=saved, unit="Mbit/s"))
    is_member = problem.group_of == row
    hosts = problem.host_of[is_member]
    frame = pd.DataFrame(
        {
            "host": problem.hosts["host"].astype(str).to_numpy()[hosts],
            "switch": problem.wiring.edges.astype(str)[problem.edge_of_host[hosts]],
        }
    )
    if problem.has_failures:
        missed = find_missed_members(problem, plan, working_links(problem))[is_member]
        facts.append(Fact(label="Members that miss it", value=float(missed.sum()), unit="hosts"))
        frame["gets_it"] = np.where(missed, "no", "yes")
    sections.append(Section(title="Members", frame=frame))
    return ElementReport(facts=tuple(facts), sections=tuple(sections))


def _way(problem: Multicast, plan: Channels, group: int, *, has_entries: bool) -> str:
    """Return the form in which a group is sent, as text."""
    if has_entries:
        pairs = plan.overflow_pairs(problem)
        here = np.zeros(0, dtype=bool) if pairs is None else pairs.group == group
        if pairs is None or not here.any():
            return "with table entries"
        way = "flooded" if pairs.floods[here].all() else "forwarded by the processors"
        return f"with table entries; {way} at {counted(int(here.sum()), 'switches')} without one"
    names = [] if plan.headers is None else plan.headers["group"].astype(str).tolist()
    return "by a header in its packets" if str(problem.group_names[group]) in names else "by unicast"


def _report_holders(problem: Multicast, plan: Channels, group: int) -> Section:
    """Report the switches that hold a group, layer by layer."""
    parts = []
    for layer in problem.wiring.layer_names:
        stored = list_groups(problem, plan, layer)
        is_holder = stored.group == group
        names = problem.wiring.switches[problem.wiring.layers == layer]
        parts.append(
            pd.DataFrame(
                {
                    "switch": names[stored.switch[is_holder]].astype(str),
                    "layer": layer,
                    "links_down": stored.ports[is_holder],
                    "groups_of_its_entry": stored.sharing[is_holder],
                    "traffic": stored.traffic_mbps(problem)[is_holder],
                }
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    return Section(title="Switches that hold it", frame=frame, units={"traffic": "Mbit/s"})


def saved_by_tables(problem: Multicast, plan: Channels) -> Floats:
    """Return the host traffic that an unlimited table of each switch saves at most, (switches,), Mbit/s.

    That of the groups by unicast that need an entry there, the overhead of shared entries there, and what it
    floods.
    """
    partition, copies = group_assignment(problem, plan.partitions)
    stored = copies > 0
    ra = int(copies.max()) or problem.aggregation_copies
    # a group without entries has no partition in the plan: the one it would have in turn
    partition = np.where(stored, partition, round_robin_partitions(problem, ra))
    by_unicast = np.where(stored, 0.0, problem.rate_mbps * (problem.member_counts - 1))
    entries = table_limits.entries_by_layer(
        problem.below, problem.spread.by_edge()[:2], problem.wiring, problem.distribution(ra), partition
    )
    in_order = [entries[layer] for layer in problem.wiring.layer_names]
    saved = np.concatenate([(uses @ by_unicast)[row] for uses, row in in_order])
    if (pairs := plan.overflow_pairs(problem)) is not None:
        extra = flooded_mbps(problem, pairs.partition, pairs.copies, pairs.switch, pairs.group)
        saved += np.bincount(pairs.switch, extra * pairs.floods, minlength=len(saved))
    else:
        saved[-problem.edge_count :] += metrics.host_links_mbps(problem, plan)[1].sum(axis=1)
    return np.asarray(saved, dtype=np.float64)


def rank_switches(
    problem: Multicast,
    decided: Decided,
    action: Action,  # noqa: ARG001
    options: Options,  # noqa: ARG001
) -> Mapping[str, float | None]:
    """Return the switches with larger tables that may save host traffic, each with the most it may save."""
    saved = saved_by_tables(problem, decided.plan)
    names = problem.wiring.switches
    order = np.argsort(-saved, kind="stable")
    return {str(names[row]): float(saved[row]) for row in order if saved[row] > 0}


ELEMENTS: Final = (
    ElementKind(
        name=SWITCH,
        names=list_switches,
        actions=SWITCH_ACTIONS,
        describe=describe_switch,
        ranking=rank_switches,
    ),
    ElementKind(name=GROUP, names=name_groups, actions=GROUP_ACTIONS, describe=describe_group),
)
