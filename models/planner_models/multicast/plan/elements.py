"""Elements of a problem of system `multicast`: switches and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner_models.multicast.plan import drawing, metrics, table_limits
from planner_models.multicast.plan.drawing import lost_at_edges, plan_entries
from planner_models.multicast.plan.plan import Channels, round_robin_partitions
from planner_models.multicast.plan.rerouting import find_missed_members
from planner_models.multicast.plan.switch_groups import group_assignment
from planner_models.multicast.problem.drawing import SWITCH
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


def list_switches(problem: Multicast) -> list[str]:
    """Return the names of all switches."""
    return [str(name) for name in problem.wiring.switches]


def list_groups(problem: Multicast) -> list[str]:
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
    stored = drawing.list_groups(problem, plan, layer)
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
        Fact(label="Groups with an entry", value=float(len(own_groups)), unit="groups"),
        Fact(label="Traffic sent down", value=float(traffic.sum()), unit="Mbit/s"),
        Fact(label="Host traffic that a larger table may save, at most", value=saved, unit="Mbit/s"),
        Fact(label="Layer", value=layer),
    ]
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
        return "with table entries"
    names = [] if plan.headers is None else plan.headers["group"].astype(str).tolist()
    return "by a header in its packets" if str(problem.group_names[group]) in names else "by unicast"


def _report_holders(problem: Multicast, plan: Channels, group: int) -> Section:
    """Report the switches that hold a group, layer by layer."""
    parts = []
    for layer in problem.wiring.layer_names:
        stored = drawing.list_groups(problem, plan, layer)
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

    That of the groups by unicast that need an entry there, and the overhead of shared entries there.
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
    ElementKind(name=GROUP, names=list_groups, actions=GROUP_ACTIONS, describe=describe_group),
)
