"""Tables of a network to extend as arrays, with look-ups of their rows; the problem checks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, cast

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import FEASIBILITY
from planner_models import globe
from planner_models.capacity.problem.schema import MOST_MODULES
from planner_models.networks.classes import order_classes
from planner_models.networks.nodes import find_names

EARTH_RADIUS_KM: Final = 6371.0
KM_PER_MS: Final = 200.0  # light in fibre
FITS: Final = FEASIBILITY
"""Share of a state's demand that may be shed by rounding of a solver where all of it fits."""
LEAST_ROUNDING: Final = 1e-11
"""Least such share, which solvers of linear programs keep at their finest tolerance."""
Direction = Literal["undirected", "bidirected", "directed"]


def name_by_ends(tails: Iterable[str], heads: Iterable[str], direction: Direction) -> list[str]:
    """Return the names of links without one: tail<->head or tail->head, and #2 for the second of two."""
    sign = "->" if direction == "directed" else "<->"
    counts: dict[tuple[str, str], int] = {}
    names = []
    for tail, head in zip(tails, heads, strict=True):
        ends = (tail, head) if direction == "directed" else (min(tail, head), max(tail, head))
        counts[ends] = counts.get(ends, 0) + 1
        names.append(f"{tail}{sign}{head}" + (f"#{counts[ends]}" if counts[ends] > 1 else ""))
    return names


@dataclass(frozen=True, kw_only=True, eq=False)
class Modules:
    """Modules that can be bought for a link, one entry for each pair of a module and a link.

    name      (M,) of the module
    link      (M,) row of the link
    size      (M,) capacity, Mbit/s
    cost      (M,) cost of one at a price factor of 1, per-kilometre cost included
    limit     (M,) most of them; MOST_MODULES, which a plan can list, for any number
    leased    (M,) whether it is paid in each year in which it is there, and may be given back
    """

    name: list[str]
    link: Ints
    size: Floats
    cost: Floats
    limit: Floats
    leased: Bools

    def counts_in(self, years: int) -> Bools:
        """Return whether a module that is paid in one year counts in another, (Y, Y, M): [paid, counts]."""
        year = np.arange(years)
        stays = year[:, None, None] <= year[None, :, None]
        same = year[:, None, None] == year[None, :, None]
        return np.asarray(np.where(self.leased, same, stays))

    def in_force(self, counts: Floats) -> Floats:
        """Return the modules of each kind in each year, (Y, M), of those paid in each, (Y, M)."""
        return np.asarray(np.where(self.leased, counts, np.cumsum(counts, axis=0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class FailureStates:
    """The failures to survive.

    names      (S,) of the failures
    link_down  (S, L) whether a link is down, also because one of its ends is
    node_down  (S, N) whether a node is down
    probability  (S,) of each failure; None where it is unknown
    """

    names: list[str]
    link_down: Bools
    node_down: Bools
    probability: Floats | None


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanningTables:
    """Tables of a problem of `capacity`, see `CapacityPlanning`, with their rows as arrays."""

    nodes: pd.DataFrame
    links: pd.DataFrame
    modules: pd.DataFrame
    demands: pd.DataFrame
    candidates: pd.DataFrame | None = None
    classes: pd.DataFrame | None = None
    tunnels: pd.DataFrame | None = None
    failures: pd.DataFrame | None = None
    years: pd.DataFrame | None = None
    network: pd.DataFrame | None = None

    def _setting(self, column: str) -> Any:
        frame = self.network
        return None if frame is None or column not in frame or not len(frame) else frame[column].iloc[0]

    @property
    def direction(self) -> Direction:
        """Directions of traffic that share a link's capacity."""
        return cast("Direction", self._setting("direction") or "undirected")

    @property
    def states_direction(self) -> bool:
        """True where the table `network` says which directions share a link's capacity."""
        return self._setting("direction") is not None

    @property
    def one_module(self) -> bool:
        """True where a link may have at most one module."""
        return bool(self._setting("modules_per_link") == "one")

    @property
    def budget(self) -> float | None:
        """The most that purchases may cost; None for unlimited."""
        value = self._setting("budget")
        return None if value is None or np.isnan(value) else float(value)

    @cached_property
    def utilization_limit(self) -> Floats:
        """(1 + S,) largest utilization that links may have in each state; first without failures."""
        normal, failed = (
            1.0 if value is None or np.isnan(value) else float(value)
            for value in map(self._setting, ("max_utilization", "max_utilization_failed"))
        )
        return np.concatenate([[normal], np.full(len(self.states.names), failed)])

    @cached_property
    def lines(self) -> pd.DataFrame:
        """Links, then candidates with capacity 0, with the columns that both have."""
        parts = [self.links]
        if self.candidates is not None:
            parts.append(self.candidates.assign(capacity_mbps=0.0, installed_cost=0.0))
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def names(self) -> list[str]:
        """(L,) name of each link, as other tables refer to it."""
        derived = name_by_ends(self.lines["tail"], self.lines["head"], self.direction)
        if "link" not in self.lines:
            return derived
        pairs = zip(self.lines["link"], derived, strict=True)
        return [name if isinstance(name, str) else by_ends for name, by_ends in pairs]

    @cached_property
    def _line_rows(self) -> dict[str, int]:
        """Row of each link by its name, and by its name from the other end.

        Where no table says the direction, names of one direction are known too, as it may become "directed".
        """
        rows: dict[str, int] = {}
        if not self.states_direction:
            ends = self.lines["tail"], self.lines["head"]
            rows |= {name: row for row, name in enumerate(name_by_ends(*ends, "directed"))}
        if self.direction != "directed":
            for row, (tail, head) in enumerate(zip(self.lines["tail"], self.lines["head"], strict=True)):
                rows.setdefault(f"{head}<->{tail}", row)
                rows.setdefault(f"{tail}<->{head}", row)
        return rows | {name: row for row, name in enumerate(self.names)}

    def find_line(self, name: str) -> int:
        """Return the row of the link of that name, -1 where there is none."""
        return self._line_rows.get(str(name), -1)

    @cached_property
    def node_index(self) -> pd.Index:
        """Index of node names, which maps a name to its row."""
        index: pd.Index = pd.Index(self.nodes["node"])
        return index

    def find_nodes(self, names: pd.Series) -> Ints:
        """Return the row of each node; -1 where there is none."""
        return find_names(self.node_index, names)

    @cached_property
    def tail(self) -> Ints:
        """(L,) node where each link starts."""
        return self.find_nodes(self.lines["tail"])

    @cached_property
    def head(self) -> Ints:
        """(L,) node where each link ends."""
        return self.find_nodes(self.lines["head"])

    @cached_property
    def installed_mbps(self) -> Floats:
        """(L,) capacity that is there already, Mbit/s."""
        return self.lines["capacity_mbps"].to_numpy(float)

    @cached_property
    def length_km(self) -> Floats:
        """(L,) length of each link, km: as given, else of the great circle; NaN for unknown."""
        length_known = (
            self.lines["length_km"].to_numpy(float)
            if "length_km" in self.lines
            else np.full(len(self.lines), np.nan)
        )
        if {"latitude", "longitude"} <= set(self.nodes):
            coordinates = self.nodes[["latitude", "longitude"]].to_numpy(float)
            circle = np.array(
                [
                    globe.distance_km(
                        coordinates[first : first + 1, 0],
                        coordinates[first : first + 1, 1],
                        coordinates[other : other + 1, 0],
                        coordinates[other : other + 1, 1],
                        radius_km=EARTH_RADIUS_KM,
                    )[0, 0]
                    for first, other in zip(self.tail.tolist(), self.head.tolist(), strict=True)
                ]
            )
            length_known = np.where(np.isnan(length_known), circle, length_known)
        return length_known

    @cached_property
    def latency_ms(self) -> Floats:
        """(L,) one-way delay of each link, ms: as given, else that of light in fibre; NaN for unknown."""
        by_length: Floats = self.length_km / KM_PER_MS
        if "latency_ms" not in self.lines:
            return by_length
        specified = self.lines["latency_ms"].to_numpy(float)
        return np.where(np.isnan(specified), by_length, specified)

    @cached_property
    def setup_cost(self) -> Floats:
        """(L,) cost of the first module on a link, beside the module's own, at a price factor of 1."""
        per_km = self.lines["setup_cost_per_km"].to_numpy(float)
        more = np.where(per_km > 0, per_km * np.nan_to_num(self.length_km), 0.0)
        return self.lines["setup_cost"].to_numpy(float) + more

    @cached_property
    def routing_cost(self) -> Floats:
        """(L,) cost of each Mbit/s on a link in a year, at a price factor of 1."""
        return self.lines["routing_cost"].to_numpy(float)

    @cached_property
    def installed_cost(self) -> float:
        """Cost of the capacity that is there already."""
        return float(self.lines["installed_cost"].sum())

    @cached_property
    def source(self) -> Ints:
        """(D,) node where each demand starts."""
        return self.find_nodes(self.demands["source"])

    @cached_property
    def target(self) -> Ints:
        """(D,) node where each demand ends."""
        return self.find_nodes(self.demands["target"])

    @cached_property
    def rate_mbps(self) -> Floats:
        """(Y, D) rate of each demand in each year, Mbit/s; 0 before the year in which it begins."""
        rate = np.outer(self.demand_factor, self.demands["rate_mbps"].to_numpy(float))
        begin = np.full(len(self.demands), float(self.year_numbers[0]))
        if "year" in self.demands and self.years is not None:
            begin = self.demands["year"].fillna(self.year_numbers[0]).to_numpy(float)
        passed = np.array(self.year_numbers, dtype=float)[:, None] - begin
        growth = self.growth
        if growth.any():
            rate = rate * (1 + growth) ** np.maximum(passed, 0.0)
        begun: Floats = np.where(passed >= 0, rate, 0.0)
        return begun

    @cached_property
    def growth(self) -> Floats:
        """(D,) share by which each demand grows a year: its own, else that of its class, else 0."""
        growth = np.full(len(self.demands), np.nan)
        if "growth" in self.demands:
            growth = self.demands["growth"].to_numpy(float)
        if self.has_classes and "growth" in self.class_table:
            growth = np.where(
                np.isnan(growth), self.class_table["growth"].to_numpy(float)[self.class_of], growth
            )
        return np.asarray(np.nan_to_num(growth), dtype=float)

    @property
    def has_classes(self) -> bool:
        """True where demands have traffic classes."""
        return "class" in self.demands

    @cached_property
    def class_table(self) -> pd.DataFrame:
        """Class, priority and protected_share of each class, the highest priority first."""
        classes = order_classes(self.demands, self.classes)
        return classes if "protected_share" in classes else classes.assign(protected_share=1.0)

    @cached_property
    def class_of(self) -> Ints:
        """(D,) class of each demand, a row of `class_table`; 0 where there are none."""
        if not self.has_classes:
            return np.zeros(len(self.demands), dtype=np.int64)
        return find_names(pd.Index(self.class_table["class"].astype(str)), self.demands["class"])

    @cached_property
    def priority(self) -> Ints:
        """(D,) rank of each demand; 1 is the highest."""
        if not self.has_classes:
            return np.ones(len(self.demands), dtype=np.int64)
        return self.class_table["priority"].to_numpy(np.int64)[self.class_of]

    @cached_property
    def max_latency_ms(self) -> Floats:
        """(D,) largest one-way delay of each demand's routes, ms; inf for any."""
        if "max_latency_ms" not in self.demands:
            return np.full(len(self.demands), np.inf)
        limit = self.demands["max_latency_ms"].to_numpy(float)
        return np.where(np.isnan(limit), np.inf, limit)

    @cached_property
    def rounding_share(self) -> float:
        """Share of a state's demand that may be shed by rounding where all of it fits.

        Less than the usual where it would hide a demand that is small beside the others.
        """
        smallest = float(self.rate_mbps[self.rate_mbps > 0].min(initial=np.inf))
        offered = float(self.rate_mbps.sum(axis=1).max(initial=0.0))
        return min(FITS, max(smallest / max(offered, 1e-300) / 10, LEAST_ROUNDING))

    @cached_property
    def year_numbers(self) -> list[int]:
        """(Y,) the years; one, 0, where there is no table of years."""
        return [0] if self.years is None else self.years["year"].astype(int).tolist()

    @cached_property
    def demand_factor(self) -> Floats:
        """(Y,) factor of every demand."""
        return np.ones(1) if self.years is None else self.years["demand_factor"].to_numpy(float)

    @cached_property
    def price_factor(self) -> Floats:
        """(Y,) factor of every cost."""
        return np.ones(1) if self.years is None else self.years["price_factor"].to_numpy(float)

    @cached_property
    def options(self) -> Modules:
        """Modules by link, in the order of links."""
        frame = self.modules
        of = frame["link"].to_numpy(object) if "link" in frame else np.full(len(frame), "", dtype=object)
        max_count = (
            frame["max_count"].to_numpy(float) if "max_count" in frame else np.full(len(frame), np.nan)
        )
        rows = np.array([self.find_line(name) if name else -1 for name in of], dtype=np.int64)
        names = frame["module"].tolist()
        columns_of: dict[int, dict[str, int]] = {-1: {}}
        for column, line in enumerate(rows.tolist()):
            columns_of.setdefault(line, {})[names[column]] = column
        pairs = [
            (line, column)
            for line in range(len(self.lines))
            for column in sorted((columns_of[-1] | columns_of.get(line, {})).values())
        ]
        link, row = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        per_km = frame["cost_per_km"].to_numpy(float)[row]
        length = np.where(per_km > 0, np.nan_to_num(self.length_km[link]), 0.0)
        limit = np.where(np.isnan(max_count[row]), MOST_MODULES, max_count[row])
        return Modules(
            name=[names[row_number] for row_number in row.tolist()],
            link=link,
            size=frame["capacity_mbps"].to_numpy(float)[row],
            cost=frame["cost"].to_numpy(float)[row] + per_km * length,
            limit=np.minimum(limit, 1.0) if self.one_module else limit,
            leased=(frame["tenure"] == "leased").to_numpy(bool)[row]
            if "tenure" in frame
            else np.zeros(len(row), dtype=bool),
        )

    @cached_property
    def states(self) -> FailureStates:
        """The failures to survive, without the state in which nothing fails."""
        names = [] if self.failures is None else list(dict.fromkeys(self.failures["failure"]))
        link_down = np.zeros((len(names), len(self.lines)), dtype=bool)
        node_down = np.zeros((len(names), len(self.nodes)), dtype=bool)
        if self.failures is not None:
            row_of = {name: row for row, name in enumerate(names)}
            for failure, member in zip(self.failures["failure"], self.failures["member"], strict=True):
                row, line = row_of[failure], self.find_line(member)
                if line >= 0:
                    link_down[row, line] = True
                else:
                    node_down[row, self.node_index.get_loc(member)] = True
            link_down |= node_down[:, self.tail] | node_down[:, self.head]
        probability = None
        if self.failures is not None and "probability" in self.failures:
            probability = self.failures.groupby("failure", sort=False)["probability"].first().to_numpy(float)
        return FailureStates(names=names, link_down=link_down, node_down=node_down, probability=probability)

    @cached_property
    def is_usable(self) -> Bools:
        """(L,) whether a link has capacity or can get some."""
        usable: Bools = self.installed_mbps > 0
        usable[self.options.link[self.options.limit > 0]] = True
        return usable
