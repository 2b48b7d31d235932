"""Problem of system `updates`: the forwarding rules of a network now, and those that it should have next.

Faults of the tables of a problem that no rule of a single column finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Ints
from planner.contract.tables import (
    SHOWN_ROWS,
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.formatting import amount
from planner.io.in_memory import take_tables
from planner_models.networks.node_lists import parse_nodes
from planner_models.updates.problem.schema import (
    NO_BLACK_HOLE,
    OPTIONAL_TABLES,
    PER_FLOW,
    PER_PACKET,
    TABLES,
    WAYPOINT,
)
from planner_models.updates.problem.slots import LOOP, SOUND, find_unsound
from planner_models.updates.problem.tables import UpdateTables

CONFIGURATIONS = ("now", "next")
MOST_LINES = 10  # of unknown names in links and classes, beyond which those in rules are left out


@dataclass(frozen=True, kw_only=True, eq=False)
class Update(UpdateTables):
    """Forwarding rules of C classes of packets on S switches before and after an update.

    switches   switch, rule_capacity?, rule_ms, matches_version
    links      from, to, capacity_mbps?, delay_ms
    classes    class, ingress?, egress, traffic_mbps, flow_life_s?, flows?, waypoints?, guarantee?
    now, next  class, switch, next_hop, share; a switch without a row holds no rule of the class
    rules      class, switch, rules: entries in the table; None: one for each rule

    raises  InputError with every fault: unknown names, shares that do not add up to 1, a loop or a dead end
            of `now` or `next` themselves, a table too small for one of them, guarantees that cannot hold
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        for check in (find_unknown_names, find_bad_rules, find_bad_plans):
            if not faults:
                faults += check(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Update:
        """Return the problem in the tables switches, links, classes, now, next and, optionally, rules."""
        return cls(**take_tables(TABLES, tables, OPTIONAL_TABLES))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of switches, links, classes, and of rules that change."""
        return {
            "switches": len(self.switches),
            "links": len(self.links),
            "classes": len(self.classes),
            "changed classes": int(self.slots.changes.sum()),
            "changed rules": int((~self.slots.same).sum()),
        }

    def reverse(self) -> Update:
        """Return the update from `next` back to `now`."""
        return replace(self, now=self.next, next=self.now)

    # --- as arrays ------------------------------------------------------------------------

    def class_loads(self, classes: Ints) -> tuple[sp.csc_array, sp.csc_array]:
        """Return the (E, K) load of links by some classes before and after the update, Mbit/s."""
        slots, matrices = self.slots, []
        column = np.full(len(self.classes), -1)
        column[classes] = np.arange(len(classes))
        for configuration, share in zip((slots.now, slots.next), self.hop_shares, strict=True):
            owner = np.repeat(slots.owner, np.diff(configuration.start))
            is_used = (column[owner] >= 0) & (share > 0)
            load = share[is_used] * self.traffic_mbps[owner[is_used]]
            shape = (len(self.links), len(classes))
            matrices.append(
                sp.csc_array((load, (configuration.link[is_used], column[owner[is_used]])), shape=shape)
            )
        return matrices[0], matrices[1]


def find_unknown_names(problem: UpdateTables) -> list[str]:
    """Return a fault for each unknown switch and class, and for each rule without a link."""
    switches, classes = problem.switch_index, problem.class_index
    no_switch, no_class = "no switch of the table switches", "no class of the table classes"
    faults: list[str] = []
    for column in ("from", "to"):
        faults += report_unknown_names(problem.links, "links", column, switches, no_switch)
    faults += report_unknown_names(problem.classes, "classes", "egress", switches, no_switch)
    if "ingress" in problem.classes:
        names = pd.Index([*switches, ""])
        faults += report_unknown_names(problem.classes, "classes", "ingress", names, no_switch)
    faults += _find_unknown_waypoints(problem)
    if len(faults) > MOST_LINES:  # a wrong table of switches: rules would only repeat it
        return faults
    for name in CONFIGURATIONS:
        frame = getattr(problem, name)
        faults += report_unknown_names(frame, name, "class", classes, no_class)
        for column in ("switch", "next_hop"):
            faults += report_unknown_names(frame, name, column, switches, no_switch)
    if problem.rules is not None:
        faults += report_unknown_names(problem.rules, "rules", "class", classes, no_class)
        faults += report_unknown_names(problem.rules, "rules", "switch", switches, no_switch)
    if faults:
        return faults
    for name in CONFIGURATIONS:
        frame = getattr(problem, name)
        missing = np.flatnonzero(problem.rows(name).link < 0)
        lines = [
            f"{row_name(frame, name, row)}: there is no link from '{frame['switch'].iloc[row]}' to "
            f"'{frame['next_hop'].iloc[row]}'" + _opposite_hint(problem.links, frame.iloc[row])
            for row in missing[:SHOWN_ROWS].tolist()
        ]
        faults += shorten_faults(lines, file_name(frame, name), "without a link", count=len(missing))
    return faults


def _opposite_hint(links: pd.DataFrame, rule: pd.Series) -> str:
    """Return a hint where links have the link of a rule in the other direction only."""
    is_opposite = (links["from"] == rule["next_hop"]) & (links["to"] == rule["switch"])
    return "; there is one in the other direction, and each needs a row" if is_opposite.any() else ""


def _find_unknown_waypoints(problem: UpdateTables) -> list[str]:
    if "waypoints" not in problem.classes:
        return []
    names, lines = set(problem.switch_index), []
    for row, text in enumerate(problem.classes["waypoints"].fillna("").astype(str)):
        unknown = [name for name in parse_nodes(text) if name not in names] if text else []
        if unknown:
            lines.append(
                f"{row_name(problem.classes, 'classes', row)}: waypoint '{unknown[0]}' is no switch of the "
                "table switches" + did_you_mean(unknown[0], problem.switch_index)
            )
    return shorten_faults(lines, file_name(problem.classes, "classes"), "with an unknown waypoint")


def find_bad_rules(problem: UpdateTables) -> list[str]:
    """Return a fault for each rule at an egress, wrong share, class without a path, loop, and dead end."""
    faults: list[str] = []
    for name in CONFIGURATIONS:
        frame, rows = getattr(problem, name), problem.rows(name)
        rows_at_egress = np.flatnonzero(problem.egress[rows.owner] == rows.switch)
        lines = [
            f"{row_name(frame, name, row)}: switch '{frame['switch'].iloc[row]}' is the egress of class "
            f"'{frame['class'].iloc[row]}', where its packets leave"
            for row in rows_at_egress[:SHOWN_ROWS].tolist()
        ]
        faults += shorten_faults(
            lines, file_name(frame, name), "at the egress of their class", count=len(rows_at_egress)
        )
        faults += _find_bad_shares(problem, name)
    if faults:
        return faults
    slots = problem.slots
    without = np.flatnonzero(slots.start[1:] == slots.start[:-1])
    lines = [
        f"{row_name(problem.classes, 'classes', row)}: class '{problem.class_index[row]}' has a path neither "
        "in now nor in next"
        for row in without.tolist()
    ]
    faults += shorten_faults(lines, file_name(problem.classes, "classes"), "without a path")
    for name in CONFIGURATIONS:
        faults += _find_loops(problem, name)
    return faults


def _find_bad_shares(problem: UpdateTables, name: str) -> list[str]:
    frame, rows = getattr(problem, name), problem.rows(name)
    if not len(frame):
        return []
    key = rows.owner * len(problem.switches) + rows.switch
    unique, first, inverse, counts = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    total = np.bincount(inverse, weights=rows.share, minlength=len(unique))
    bad = np.flatnonzero(np.abs(total - 1) > 1e-6)
    lines = [
        f"{row_name(frame, name, int(first[index]))}: shares of class "
        f"'{frame['class'].iloc[first[index]]}' at "
        f"switch '{frame['switch'].iloc[first[index]]}' add up to {total[index]:g}, must be 1"
        + (f"; it has {counts[index]} rows" if counts[index] > 1 else "")
        for index in bad[:SHOWN_ROWS].tolist()
    ]
    what = "of a class and switch with shares that do not add up to 1"
    return shorten_faults(lines, file_name(frame, name), what, count=len(bad))


def _find_loops(problem: UpdateTables, name: str) -> list[str]:
    slots, where = problem.slots, file_name(getattr(problem, name), name)
    configuration = slots.now if name == "now" else slots.next
    has_rule = configuration.has_rule()
    any_rule = np.zeros(len(problem.classes), dtype=bool)
    any_rule[slots.owner[has_rule]] = True
    at_ingress = np.zeros(len(problem.classes), dtype=bool)
    at_ingress[slots.owner[has_rule & (slots.switch == problem.ingress[slots.owner])]] = True
    lines = [
        f"{where}: class '{problem.class_index[row]}' has rules, but none at its ingress "
        f"'{problem.switch_index[problem.ingress[row]]}'"
        for row in np.flatnonzero(any_rule & ~at_ingress & (problem.ingress >= 0)).tolist()
    ]
    fault, nodes = find_unsound(
        slots.start,
        slots.switch,
        configuration.start,
        configuration.hop,
        problem.ingress,
        problem.egress,
        len(problem.switches),
    )
    for row in np.flatnonzero(fault != SOUND).tolist():
        switch = problem.switch_index[nodes[row]]
        words = f"loops through '{switch}'" if fault[row] == LOOP else f"ends at '{switch}', without a rule"
        lines.append(f"{where}: class '{problem.class_index[row]}' {words}, before any update")
    return shorten_faults(lines, where, "of classes without a path")


def find_bad_plans(problem: UpdateTables) -> list[str]:
    """Return a fault for each table too small for a configuration, and for guarantees that cannot hold."""
    faults: list[str] = []
    switches = problem.switches
    for name, held in (("now", problem.rules_now), ("next", problem.rules_next)):
        over = np.flatnonzero(held > problem.rule_capacity)
        lines = [
            f"{row_name(switches, 'switches', row)}: rule_capacity is {problem.rule_capacity[row]:g}, but "
            f"{name} alone needs {amount(int(held[row]), 'rules')} at '{problem.switch_index[row]}'"
            for row in over.tolist()
        ]
        faults += shorten_faults(lines, file_name(switches, "switches"), f"too small for {name}")
    return [*faults, *_find_bad_guarantees(problem)]


def _find_bad_guarantees(problem: UpdateTables) -> list[str]:
    frame = problem.classes
    texts = frame["guarantee"].fillna("").tolist() if "guarantee" in frame else [""] * len(frame)
    faults = [_find_bad_guarantee(problem, row, guarantee) for row, guarantee in enumerate(texts)]
    lines = [f"{row_name(frame, 'classes', row)}: {fault}" for row, fault in enumerate(faults) if fault]
    return shorten_faults(lines, file_name(frame, "classes"), "with guarantees that cannot hold")


def _find_bad_guarantee(problem: UpdateTables, row: int, guarantee: str) -> str:
    """Return why the guarantee of a class cannot hold; nothing where it can."""
    name, life_s = problem.class_index[row], problem.classes.get("flow_life_s")
    if guarantee in (NO_BLACK_HOLE, WAYPOINT) and (loss := _find_loss(problem, row)):
        return f"guarantee of class '{name}' is {guarantee}, but {loss}; use {PER_PACKET}"
    if guarantee == PER_FLOW and (life_s is None or not np.isfinite(float(life_s.iloc[row]))):
        return f"guarantee of class '{name}' is per_flow, which needs flow_life_s"
    if guarantee == WAYPOINT and not problem.waypoints[row]:
        return f"guarantee of class '{name}' is waypoint, but it has no waypoints"
    for waypoint in problem.waypoints[row]:
        if not _passes(problem, row, waypoint):
            switch = problem.switch_index[waypoint]
            return f"waypoint '{switch}' of class '{name}' is on no path of it, neither now nor next"
    return ""


def _find_loss(problem: UpdateTables, row: int) -> str:
    """Return why packets of a class are lost whatever the order of the update; nothing where they are not."""
    if not (problem.enters_now[row] and problem.enters_next[row]):
        table = "next" if problem.enters_now[row] else "now"
        return f"it has no path in {table}: its packets are lost without the update too"
    if problem.loses_ingress[row]:
        return "packets enter at a switch whose rule ends"
    return ""


def _passes(problem: UpdateTables, row: int, switch: int) -> bool:
    """Return whether packets of a class pass a switch, now or next."""
    slots = problem.slots
    slot_range = slice(slots.start[row], slots.start[row + 1])
    for configuration, share in zip((slots.now, slots.next), problem.hop_shares, strict=True):
        inner = slice(configuration.start[slot_range.start], configuration.start[slot_range.stop])
        entered = problem.entering[slot_range] & configuration.has_rule()[slot_range]
        if (configuration.hop[inner][share[inner] > 0] == switch).any() or (
            slots.switch[slot_range][entered] == switch
        ).any():
            return True
    return False
