"""Tables of a switch and its connections as arrays; the problem checks them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.flowtables.problem.actions import CONTROLLER, Step, read_steps
from planner_models.flowtables.problem.entries import Compiled, Rules, Searched, compile_rules, list_searched
from planner_models.flowtables.problem.fields import Layout, Words, make_layout
from planner_models.flowtables.problem.schema import COSTS

DEFAULT_COSTS: Final = {name: float(column.default or 0.0) for name, column in COSTS.columns.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class SwitchTables:
    """Tables of a problem of `flowtables`, see `FlowTables`, with their rows as arrays."""

    rules: pd.DataFrame
    flows: pd.DataFrame
    fields: pd.DataFrame | None = None
    costs: pd.DataFrame | None = None
    changes: pd.DataFrame | None = None
    installed: pd.DataFrame | None = None
    statistics: pd.DataFrame | None = None

    @property
    def is_evaluated(self) -> bool:
        """True where rules are entries of a cache, made by tables that are not in the problem."""
        return self.installed is not None

    @cached_property
    def change_times(self) -> Floats:
        """Times at which rules change, ascending, s."""
        if self.changes is None:
            return np.zeros(0)
        return np.unique(self.changes["time_s"].to_numpy(float))

    @cached_property
    def layout(self) -> Layout:
        """The header fields of packets and their places."""
        return make_layout(self.fields)

    @cached_property
    def whole_layout(self) -> Layout:
        """The same with registers after them."""
        return make_layout(self.fields, with_registers=True)

    @cached_property
    def matches(self) -> list[str]:
        """The matches of the rules; "" for all packets."""
        return [text if isinstance(text, str) else "" for text in self.rules["match"]]

    @cached_property
    def steps(self) -> list[list[Step]]:
        """The steps of each rule's action."""
        steps_of = {
            name: read_steps(name, self.whole_layout) for name in set(self.rules["action"].astype(str))
        }
        return [steps_of[name] for name in self.rules["action"].astype(str)]

    @cached_property
    def table_numbers(self) -> list[int]:
        """The numbers of the tables that have rules, in order; table 0 is always the first."""
        return sorted({0, *self.rules["table"].astype(int)})

    @cached_property
    def compiled(self) -> Compiled:
        """The entries of all rules and the names of their actions."""
        return compile_rules(self.rules, self.layout, self.whole_layout, self.steps, self.table_numbers)

    @cached_property
    def is_plain(self) -> bool:
        """True where the lookups of packets are the flow tables: no rule writes what another one reads."""
        return self.compiled.translated is None

    @property
    def entries(self) -> Rules:
        """The entries of all lookups."""
        return self.compiled.rules

    @property
    def actions(self) -> list[str]:
        """The names of actions; the first one is `drop`."""
        return self.compiled.actions

    @cached_property
    def searched(self) -> Searched:
        """The entries as a search of the switch meets them."""
        return list_searched(self.compiled, self.layout, self.whole_layout)

    @cached_property
    def is_punt(self) -> Bools:
        """(A,) whether packets of each action go to the controller, so that each of them is an upcall."""
        return np.array([CONTROLLER in name.split() for name in self.actions], dtype=bool)

    @cached_property
    def headers(self) -> Words:
        """(F, words) header of each connection."""
        cube_of: dict[str, int] = {}
        parse = self.layout.parse_header
        numbers = []
        for text in self.flows["header"]:
            if text not in cube_of:
                cube_of[text] = parse(self.layout.drop_unused(text)[0])
            numbers.append(cube_of[text])
        return self.layout.to_words(numbers)

    @cached_property
    def full_mask(self) -> Words:
        """(words,) mask of all bits of all fields."""
        full: Words = self.layout.to_words([self.layout.full_mask(self.layout.by_name)])[0]
        return full

    @cached_property
    def used_mask(self) -> Words:
        """(words,) mask of the bits that some rule matches, or some entry of a cache must match."""
        rules = self.entries
        masks = np.vstack([rules.mask, rules.needs, rules.always])
        used: Words = np.bitwise_or.reduce(masks, axis=0, initial=np.uint64(0))
        return used

    @cached_property
    def packets(self) -> Ints:
        """(F,) packets of each connection."""
        return self.flows["packets"].to_numpy(float).astype(np.int64)

    @cached_property
    def start_s(self) -> Floats | None:
        """(F,) time of the first packet of each connection, s; None where one has none."""
        if "start_s" not in self.flows or self.flows["start_s"].isna().any():
            return None
        return self.flows["start_s"].to_numpy(float)

    @property
    def duration_s(self) -> float:
        """Time from the first connection until the last one has expired, s; 0 where times are unknown."""
        if self.start_s is None or not len(self.start_s):
            return 0.0
        return float(np.ptp(self.start_s)) + self.cost("idle_s")

    def cost(self, name: str) -> float:
        """Return a value of the table `costs`."""
        if self.costs is None:
            return DEFAULT_COSTS[name]
        return float(self.costs[name].iloc[0])

    @cached_property
    def probe_us(self) -> float:
        """CPU time of one lookup, us."""
        return self.cost("probe_ns") / 1_000

    @cached_property
    def most_entries(self) -> int:
        """The entries that the cache may hold, by its limit and by the time to check them again."""
        each = self.cost("revalidate_us")
        by_time = int(1e6 * self.cost("revalidate_s") / each * (1 + 1e-12)) if each > 0 else len(self.flows)
        return min(int(self.cost("flow_limit")), by_time)
