"""Tables of an update as arrays, with look-ups of their rows; the problem checks them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.networks.node_lists import parse_nodes
from planner_models.networks.nodes import find_names
from planner_models.updates.problem.schema import GUARANTEES, NO_BLACK_HOLE, PER_PACKET
from planner_models.updates.problem.slots import Layout, Rows, Slots, make_slots, measure_paths


def _limits(frame: pd.DataFrame, column: str) -> Floats:
    if column not in frame:
        return np.full(len(frame), np.inf)
    return frame[column].fillna(np.inf).to_numpy(float)


def find_codes(values: pd.Series, index: pd.Index) -> Ints:
    """Return the place of each name in an index, shape (n,); -1 for names that it does not have."""
    coded = values if isinstance(values.dtype, pd.CategoricalDtype) else values.astype("category")
    code_rows = index.get_indexer(pd.Index(coded.cat.categories.astype(str)))
    codes: Ints = np.append(code_rows, -1)[coded.cat.codes.to_numpy()].astype(np.int64)
    return codes


@dataclass(frozen=True, kw_only=True, eq=False)
class UpdateTables:
    """Tables of a problem of `updates`, see `Update`, with their rows as arrays."""

    switches: pd.DataFrame
    links: pd.DataFrame
    classes: pd.DataFrame
    now: pd.DataFrame
    next: pd.DataFrame
    rules: pd.DataFrame | None = None

    @cached_property
    def switch_index(self) -> pd.Index:
        """Names of the switches, in order."""
        return pd.Index(self.switches["switch"].astype(str))

    @cached_property
    def class_index(self) -> pd.Index:
        """Names of the classes, in order."""
        return pd.Index(self.classes["class"].astype(str))

    @cached_property
    def ingress(self) -> Ints:
        """(C,) switch where packets of each class enter; -1 for every switch with a rule, now or next."""
        if "ingress" not in self.classes:
            return np.full(len(self.classes), -1)
        return find_names(self.switch_index, self.classes["ingress"])

    @cached_property
    def egress(self) -> Ints:
        """(C,) switch where packets of each class leave."""
        return find_names(self.switch_index, self.classes["egress"])

    @cached_property
    def guarantee(self) -> Ints:
        """(C,) place of each class's guarantee in `GUARANTEES`."""
        count = len(self.classes)
        texts = self.classes["guarantee"].fillna("") if "guarantee" in self.classes else [""] * count
        codes = np.array([GUARANTEES.index(name) if name else -1 for name in texts], dtype=np.int64)
        usual = np.where(
            self.enters_now & self.enters_next & ~self.loses_ingress,
            GUARANTEES.index(NO_BLACK_HOLE),
            GUARANTEES.index(PER_PACKET),
        )
        return np.where(codes < 0, usual, codes).astype(np.int64)

    @cached_property
    def loses_ingress(self) -> Bools:
        """(C,) whether packets of a class enter at a switch that has no rule of it after the update."""
        lost: Bools = np.zeros(len(self.classes), dtype=bool)
        lost[self.slots.owner[self.entering & ~self.slots.next.has_rule()]] = True
        return lost

    @cached_property
    def waypoints(self) -> list[tuple[int, ...]]:
        """Switches that packets of each class must pass."""
        if "waypoints" not in self.classes:
            return [()] * len(self.classes)
        row_of = {name: row for row, name in enumerate(self.switch_index)}
        return [
            tuple(row_of[name] for name in parse_nodes(text)) if text else ()
            for text in self.classes["waypoints"].fillna("").astype(str)
        ]

    @cached_property
    def traffic_mbps(self) -> Floats:
        """(C,) traffic of each class, Mbit/s."""
        return self.classes["traffic_mbps"].to_numpy(float)

    @cached_property
    def flows(self) -> Floats:
        """(C,) flows of each class at a time; 1 where none are given."""
        if "flows" not in self.classes:
            return np.ones(len(self.classes))
        counts: Floats = np.floor(self.classes["flows"].fillna(1.0).to_numpy(float))
        return counts

    @cached_property
    def flow_life_s(self) -> Floats:
        """(C,) mean life of the flows of each class, s; NaN where it is not given."""
        if "flow_life_s" not in self.classes:
            return np.full(len(self.classes), np.nan)
        return self.classes["flow_life_s"].to_numpy(float)

    @cached_property
    def rule_capacity(self) -> Floats:
        """(S,) most rules of each switch; inf without a limit."""
        return _limits(self.switches, "rule_capacity")

    @cached_property
    def rule_ms(self) -> Floats:
        """(S,) time that a change of one rule takes, ms."""
        return self.switches["rule_ms"].to_numpy(float)

    @cached_property
    def capacity_mbps(self) -> Floats:
        """(E,) capacity of each link, Mbit/s; inf without a limit."""
        return _limits(self.links, "capacity_mbps")

    @cached_property
    def delay_ms(self) -> Floats:
        """(E,) delay of each link, ms."""
        return self.links["delay_ms"].to_numpy(float)

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """(E,) switches where each link starts and ends."""
        start, end = (find_names(self.switch_index, self.links[name]) for name in ("from", "to"))
        return start, end

    @cached_property
    def link_names(self) -> list[str]:
        """Names of the links, such as `a > b`."""
        return [
            f"{start} > {end}"
            for start, end in zip(self.links["from"].astype(str), self.links["to"].astype(str), strict=True)
        ]

    @cached_property
    def slots(self) -> Slots:
        """The rules of both configurations as arrays."""
        switches = len(self.switches)
        entries: dict[int, int] = {}
        if self.rules is not None and len(self.rules):
            owner, switch = self.codes(self.rules["class"], self.rules["switch"])
            entries = dict(
                zip((owner * switches + switch).tolist(), self.rules["rules"].astype(int), strict=True)
            )
        return make_slots(len(self.classes), switches, self.rows("now"), self.rows("next"), entries)

    def codes(self, owner: pd.Series, switch: pd.Series) -> tuple[Ints, Ints]:
        """Return the numbers of classes and switches in columns of names; -1 for unknown ones."""
        return find_codes(owner, self.class_index), find_codes(switch, self.switch_index)

    def rows(self, name: str) -> Rows:
        """Return a table of rules, `now` or `next`, by number; -1 for unknown names."""
        frame: pd.DataFrame = getattr(self, name)
        owner, switch = self.codes(frame["class"], frame["switch"])
        hop = find_codes(frame["next_hop"], self.switch_index)
        start, end = self.ends
        key = start * len(self.switches) + end
        order = np.argsort(key, kind="stable")
        keys_sought = switch * len(self.switches) + hop
        index = np.searchsorted(key[order], keys_sought)
        link = np.full(len(frame), -1)
        inside = np.flatnonzero(index < len(key))
        rows = order[index[inside]]
        match = (key[rows] == keys_sought[inside]) & (switch[inside] >= 0) & (hop[inside] >= 0)
        link[inside[match]] = rows[match]
        return Rows(owner, switch, hop, link.astype(np.int64), frame["share"].to_numpy(float))

    @cached_property
    def enters_now(self) -> Bools:
        """(C,) whether packets of a class are forwarded before the update."""
        return self._enters(self.slots.now.has_rule())

    @cached_property
    def enters_next(self) -> Bools:
        """(C,) whether packets of a class are forwarded after the update."""
        return self._enters(self.slots.next.has_rule())

    def _enters(self, has_rule: Bools) -> Bools:
        entered: Bools = np.zeros(len(self.classes), dtype=bool)
        entered[self.slots.owner[has_rule & self.entering]] = True
        return entered

    @cached_property
    def entering(self) -> Bools:
        """(N,) slots at which packets of their class enter.

        Without an ingress that is every switch with a rule, now or next: where a rule begins, packets are
        lost before the update, and arrive after it; where one ends, the other way round.
        """
        slots = self.slots
        ingress = self.ingress[slots.owner]
        entering: Bools = (ingress < 0) | (slots.switch == ingress)
        return entering

    @cached_property
    def rules_now(self) -> Ints:
        """(S,) rules that each switch holds before the update."""
        return self._count_rules(self.slots.now.has_rule())

    @cached_property
    def rules_next(self) -> Ints:
        """(S,) rules that each switch holds after the update."""
        return self._count_rules(self.slots.next.has_rule())

    def _count_rules(self, held: Bools) -> Ints:
        slots = self.slots
        total = np.bincount(slots.switch[held], weights=slots.rules[held], minlength=len(self.switches))
        return total.astype(np.int64)

    @cached_property
    def _paths(self) -> tuple[Floats, Floats, Floats]:
        """(C,) longest delay of a packet, ms; share of the class's packets on each next hop, now and next."""
        slots, delays, loads = self.slots, [], []
        layout = Layout(slots.start, slots.switch, self.entering, self.egress, len(self.switches))
        for configuration in (slots.now, slots.next):
            load = np.zeros(len(configuration.hop))
            delays.append(measure_paths(layout, configuration, self.delay_ms, load))
            loads.append(load)
        return np.maximum(*delays), loads[0], loads[1]

    @property
    def path_ms(self) -> Floats:
        """(C,) longest delay of a packet of each class, before or after the update, ms."""
        return self._paths[0]

    @property
    def hop_shares(self) -> tuple[Floats, Floats]:
        """Share of its class's packets on each next hop of `slots.now` and `slots.next`."""
        return self._paths[1:]

    @cached_property
    def link_loads(self) -> tuple[Floats, Floats]:
        """(E,) load of each link before and after the update, Mbit/s."""
        slots = self.slots
        before, after = (
            np.zeros(len(self.links))
            + np.bincount(
                configuration.link,
                weights=share * self.traffic_mbps[np.repeat(slots.owner, np.diff(configuration.start))],
                minlength=len(self.links),
            )
            for configuration, share in zip((slots.now, slots.next), self.hop_shares, strict=True)
        )
        return before, after

    @cached_property
    def load_limit_mbps(self) -> Floats:
        """(E,) load that is no overload: the capacity, or the load before or after where it is larger."""
        limit: Floats = np.maximum(self.capacity_mbps, np.maximum(*self.link_loads))
        return limit
