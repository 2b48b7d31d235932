"""Problem of system `updates`: the forwarding rules of a network now, and those that it should have next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Ints
from planner.contract.tables import collect_tables, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.updates.problem import validation
from planner_models.updates.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.updates.problem.tables import UpdateTables


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
        for check in (validation.find_unknown_names, validation.find_bad_rules, validation.find_bad_plans):
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
