"""Problem of system `geostore`: groups of data, the regions that may hold them, and who reads and writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import (
    collect_tables,
    describe_rows,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.contract.units import MONTH_S
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.geostore.problem.key_ranges import KeyTables, read_keyspace, report_key_ranges
from planner_models.geostore.problem.routes import (
    asymmetric_share,
    find_too_fast,
    relay_cost,
    relay_ms,
)
from planner_models.geostore.problem.schema import (
    COLOCATED,
    DEFAULT_PROTOCOL,
    OPTIONAL_TABLES,
    STRONG,
    TABLES,
)
from planner_models.geostore.shards.keyspace import Keyspace
from planner_models.networks.nodes import find_names

BYTES_PER_GB = 1e9
WEAK = ("eventual", "causal")
MAX_SHOWN = 4
"""Groups of a cycle that a warning names."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class Geostore:
    """Groups of data that regions hold, and the users who read and write them.

    regions    region, storage_usd_gb_month, put_usd, get_usd, server_usd_month, server_kops, ...
    links      source, target, rtt_ms, usd_per_gb
    groups     group, size_gb, object_bytes, class, invariant, survive, failures, limits in ms
    access     group, region, reads_per_s, writes_per_s, keys_per_op, columns_per_key, ...
    depends    group, on, share, per_write; None: groups do not depend on each other
    protocol   one row; None: the defaults
    placed, pinned, forbidden  group, region; None: none
    ranges, scans, transactions, servers  an ordered keyspace in one datacenter; None: none

    Below, N, G and A are the numbers of regions, groups and rows of `access`; arrays refer to them by row.

    raises   InputError with every fault
    """

    regions: pd.DataFrame
    links: pd.DataFrame
    groups: pd.DataFrame
    access: pd.DataFrame
    depends: pd.DataFrame | None = None
    protocol: pd.DataFrame | None = None
    placed: pd.DataFrame | None = None
    pinned: pd.DataFrame | None = None
    forbidden: pd.DataFrame | None = None
    ranges: pd.DataFrame | None = None
    scans: pd.DataFrame | None = None
    transactions: pd.DataFrame | None = None
    servers: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_names(), *report_key_ranges(self._key_tables)]
        if not faults:
            faults += [*self._bad_servers(), *self._bad_links(), *self._bad_groups(), *self._bad_depends()]
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Geostore:
        """Return the problem in its tables; one region needs no links."""
        taken = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        if "links" not in taken:
            if len(taken["regions"]) > 1:
                where = file_name(taken["regions"], "regions")
                raise InputError(
                    f"links: is missing, must have the round-trip time of each pair of the "
                    f"{len(taken['regions'])} regions of {where}"
                )
            taken["links"] = pd.DataFrame({"source": [], "target": [], "rtt_ms": [], "usd_per_gb": []})
        problem = cls(**taken)
        problem.warn()
        return problem

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of regions, groups and users, and of dependencies."""
        return {
            "regions": len(self.regions),
            "groups": len(self.groups),
            "users": len(self.access),
            "dependencies": 0 if self.depends is None else len(self.depends),
        }

    def require(self, parameter: str, names: Iterable[str], index: pd.Index, noun: str) -> Ints:
        """Return the rows of names in an index; raise InputError for every name that is not in it."""
        requested = list(names)
        faults = [
            f"{parameter}: '{name}' is no {noun}" + did_you_mean(name, index)
            for name in requested
            if name not in index
        ]
        if faults:
            raise InputError(*faults)
        return index.get_indexer(pd.Index(requested, dtype=object)).astype(np.int64)

    def with_protocol(self, **values: float | str) -> Geostore:
        """Return the problem with other values in the table `protocol`."""
        frame = self.protocol if self.protocol is not None and len(self.protocol) else pd.DataFrame(index=[0])
        return replace(self, protocol=frame.assign(**values))

    def with_rates(self, reads: Floats, writes: Floats) -> Geostore:
        """Return the problem with other operations a second of each row of `access`, (A,)."""
        return replace(self, access=self.access.assign(reads_per_s=reads, writes_per_s=writes))

    # --- regions ----------------------------------------------------------------------------

    @cached_property
    def region_index(self) -> pd.Index:
        """Index of the regions' names, which maps a name to its row."""
        index: pd.Index = pd.Index(self.regions["region"])
        return index

    def price(self, column: str) -> Floats:
        """Return a column of regions as floats, (N,)."""
        return self.regions[column].to_numpy(float)

    @cached_property
    def capacity(self) -> Floats:
        """(N,) operations a second that the servers of a region carry at most; inf without `most_servers`."""
        if "most_servers" not in self.regions:
            return np.full(len(self.regions), np.inf)
        number = self.price("most_servers")
        return np.where(np.isnan(number), np.inf, 1000.0 * self.price("server_kops") * number)

    @cached_property
    def is_limited(self) -> Bools:
        """(N,) whether a region has a largest number of servers."""
        return np.isfinite(self.capacity)

    @property
    def refused_usd(self) -> float:
        """Penalty of an operation a second that servers refuse for a month, USD."""
        return self.term("refused_usd_per_million") * MONTH_S / 1e6

    @cached_property
    def provider(self) -> Ints:
        """(N,) number of each region's provider; all 0 without the column."""
        if "provider" not in self.regions:
            return np.zeros(len(self.regions), dtype=np.int64)
        return pd.factorize(self.regions["provider"])[0].astype(np.int64)

    @cached_property
    def rtt_ms(self) -> Floats:
        """(N, N) round-trip times; within a region the local one, unless links have it."""
        times = self._matrix("rtt_ms", np.nan)
        within = np.diagonal(times).copy()
        np.fill_diagonal(times, np.where(np.isnan(within), self.local_rtt_ms, within))
        return relay_ms(times) if self.fill == "relay" else times

    @cached_property
    def usd_per_gb(self) -> Floats:
        """(N, N) price of traffic; 0 within a region."""
        prices = self._matrix("usd_per_gb", np.nan)
        np.fill_diagonal(prices, 0.0)
        return relay_cost(prices, self._matrix("rtt_ms", np.nan)) if np.isnan(prices).any() else prices

    def _matrix(self, column: str, missing: float) -> Floats:
        matrix = np.full((len(self.regions), len(self.regions)), missing)
        matrix[self._link_ends] = self.links[column].to_numpy(float)
        return matrix

    @cached_property
    def _link_ends(self) -> tuple[Ints, Ints]:
        return (
            find_names(self.region_index, self.links["source"]),
            find_names(self.region_index, self.links["target"]),
        )

    # --- groups and users -------------------------------------------------------------------

    @cached_property
    def group_index(self) -> pd.Index:
        """Index of the groups' names."""
        index: pd.Index = pd.Index(self.groups["group"])
        return index

    @cached_property
    def group_class(self) -> list[str]:
        """(G,) consistency of each group; eventual without the column."""
        if "class" not in self.groups:
            return ["eventual"] * len(self.groups)
        return [str(name) for name in self.groups["class"]]

    @cached_property
    def has_invariant(self) -> Bools:
        """(G,) whether a rule over all data of the group must hold at any time."""
        if "invariant" not in self.groups:
            return np.zeros(len(self.groups), dtype=bool)
        return np.asarray(self.groups["invariant"] == "yes")

    @cached_property
    def is_strong(self) -> Bools:
        """(G,) whether a group must be strongly consistent: it asks for that, or has an invariant."""
        return np.array([name in STRONG for name in self.group_class], dtype=bool) | self.has_invariant

    @cached_property
    def survive(self) -> list[str]:
        """(G,) largest loss that the data must survive."""
        if "survive" not in self.groups:
            return ["none"] * len(self.groups)
        return [str(name) for name in self.groups["survive"]]

    @cached_property
    def failures(self) -> Ints:
        """(G,) regions with a replica that may fail at once: as stated, or 1 to survive a region."""
        stated = self.groups["failures"].to_numpy(float).astype(np.int64)
        lost = np.array([name in ("region", "provider") for name in self.survive], dtype=np.int64)
        return np.maximum(stated, lost)

    def limit_ms(self, column: str) -> Floats:
        """Return a limit of each group, (G,), ms; inf for none."""
        if column not in self.groups:
            return np.full(len(self.groups), np.inf)
        values = self.groups[column].to_numpy(float)
        return np.where(np.isnan(values), np.inf, values)

    @cached_property
    def page_limit_ms(self) -> Floats:
        """(A,) limit of the pages of each row of access, ms: of the operations that it has; inf for none."""
        limits = [
            np.where(self.use(rate) > 0, self.limit_ms(column)[self.user_group], np.inf)
            for column, rate in (("read_ms", "reads_per_s"), ("write_ms", "writes_per_s"))
        ]
        return np.minimum(*limits)

    def active_users(self, group: int) -> Ints:
        """Return the rows of access of a group with operations."""
        users = self.users_of[group]
        return users[self.requests_per_s[users] > 0]

    @cached_property
    def user_group(self) -> Ints:
        """(A,) group of each row of access."""
        return find_names(self.group_index, self.access["group"])

    @cached_property
    def user_region(self) -> Ints:
        """(A,) region of each row of access."""
        return find_names(self.region_index, self.access["region"])

    @cached_property
    def users_of(self) -> list[Ints]:
        """(G) rows of access of each group."""
        order = np.argsort(self.user_group, kind="stable")
        ends = np.cumsum(np.bincount(self.user_group, minlength=len(self.groups)))
        return np.split(order, ends[:-1])

    def use(self, column: str) -> Floats:
        """Return a column of access as floats, (A,)."""
        return self.access[column].to_numpy(float)

    @cached_property
    def requests_per_s(self) -> Floats:
        """(A,) operations a second."""
        return self.use("reads_per_s") + self.use("writes_per_s")

    @cached_property
    def latency_ms(self) -> Floats:
        """(A, N) time of a page of each row of access with each region, ms.

        With colocated front ends a page takes a round trip to the datacenter, and its operations are local;
        with front ends in every region each operation takes a round trip.
        """
        trip = self.rtt_ms[self.user_region]
        operations = self.use("operations_per_page")[:, None]
        if self.is_colocated:
            return np.asarray(trip + operations * (self.service_ms + self.local_rtt_ms))
        return np.asarray(operations * (trip + self.service_ms))

    @cached_property
    def copy_ms(self) -> Floats:
        """(N, N) time until a write in one region is visible in another: half a trip, and local work."""
        time = self.rtt_ms / 2 + self.local_rtt_ms + self.service_ms
        np.fill_diagonal(time, 0.0)
        return time

    @cached_property
    def depend_ends(self) -> tuple[Ints, Ints]:
        """Groups that depend, and those that they depend on, (D,) each."""
        if self.depends is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return (
            find_names(self.group_index, self.depends["group"]),
            find_names(self.group_index, self.depends["on"]),
        )

    @cached_property
    def causal_edges(self) -> tuple[Ints, Ints]:
        """Groups, and those that they depend on, where both are causal: strong groups need no checks."""
        group, on = self.depend_ends
        is_checked = ~self.is_strong[group] & ~self.is_strong[on]
        return group[is_checked], on[is_checked]

    @cached_property
    def components(self) -> list[Ints]:
        """Groups that depend on each other, directly or over others; each in the order of its groups."""
        count = len(self.groups)
        group, on = self.causal_edges
        graph = sp.csr_array((np.ones(len(group)), (group, on)), shape=(count, count))
        _, label = connected_components(graph, directed=False)
        order = np.argsort(label, kind="stable")
        return np.split(order, np.cumsum(np.bincount(label))[:-1])

    @cached_property
    def component_of(self) -> Ints:
        """(G,) component of each group."""
        label = np.zeros(len(self.groups), dtype=np.int64)
        for number, members in enumerate(self.components):
            label[members] = number
        return label

    def _pairs(self, frame: pd.DataFrame | None) -> Bools:
        matrix = np.zeros((len(self.groups), len(self.regions)), dtype=bool)
        if frame is not None:
            rows = find_names(self.group_index, frame["group"])
            matrix[rows, find_names(self.region_index, frame["region"])] = True
        return matrix

    @cached_property
    def is_pinned(self) -> Bools:
        """(G, N) whether a group must have a replica in a region."""
        return self._pairs(self.pinned)

    @cached_property
    def is_forbidden(self) -> Bools:
        """(G, N) whether a group must not have a replica in a region."""
        return self._pairs(self.forbidden)

    @cached_property
    def is_placed(self) -> Bools:
        """(G, N) whether a group has a replica in a region already."""
        return self._pairs(self.placed)

    @cached_property
    def keyspace(self) -> Keyspace | None:
        """The ordered keyspace of the tables ranges, servers, scans and transactions; None for none."""
        return read_keyspace(
            self._key_tables,
            message_weight=self.term("message_weight"),
            move_weight=self.term("move_weight"),
        )

    @property
    def _key_tables(self) -> KeyTables:
        return KeyTables(self.ranges, self.servers, self.scans, self.transactions)

    # --- protocol ---------------------------------------------------------------------------

    def _term(self, name: str) -> float | str:
        if self.protocol is None or not len(self.protocol) or name not in self.protocol:
            return DEFAULT_PROTOCOL[name]
        value: float | str = self.protocol[name].iloc[0]
        return value

    def term(self, name: str) -> float:
        """Return a number of the table `protocol`, or its default."""
        return float(self._term(name))

    @property
    def fill(self) -> str:
        """Replacement of missing links: "error" for none, or "relay"."""
        return str(self._term("fill"))

    @property
    def checks(self) -> str:
        """Place of checks of dependent writes: closure, remote or cheapest."""
        return str(self._term("checks"))

    @property
    def is_colocated(self) -> bool:
        """Whether front-end servers are in the datacenters."""
        return self._term("frontends") == COLOCATED

    @property
    def local_rtt_ms(self) -> float:
        """Round-trip time within a datacenter."""
        return self.term("local_rtt_ms")

    @property
    def service_ms(self) -> float:
        """Time of a server for an operation."""
        return self.term("service_ms")

    # --- validation -------------------------------------------------------------------------

    def _bad_names(self) -> Iterator[str]:
        """Yield faults of names that are in no other table."""
        regions, groups = self.region_index, self.group_index
        for end in ("source", "target"):
            yield from report_unknown_names(self.links, "links", end, regions, "no region")
        for table in ("access", "placed", "pinned", "forbidden"):
            frame = getattr(self, table)
            if frame is not None:
                yield from report_unknown_names(frame, table, "group", groups, "no group")
                yield from report_unknown_names(frame, table, "region", regions, "no region")
        if self.depends is not None:
            for end in ("group", "on"):
                yield from report_unknown_names(self.depends, "depends", end, groups, "no group")
        if self.protocol is not None and len(self.protocol) > 1:
            yield f"{file_name(self.protocol, 'protocol')}: has {len(self.protocol)} rows, must have one"

    def _bad_servers(self) -> Iterator[str]:
        """Yield a fault for each region that may have fewer servers than it must have."""
        if "most_servers" not in self.regions:
            return
        number, minimum = self.price("most_servers"), self.price("least_servers")
        yield from describe_rows(
            np.flatnonzero(number < minimum),
            lambda row: (
                f"{row_name(self.regions, 'regions', row)}: most_servers is {number[row]:g}, "
                f"must be at least least_servers, which is {minimum[row]:g}"
            ),
            file_name(self.regions, "regions"),
            "with such a number",
        )

    def _bad_links(self) -> Iterator[str]:
        """Yield a fault for each pair of regions without a way."""
        times = self._matrix("rtt_ms", np.nan)
        np.fill_diagonal(times, 0.0)
        is_relay = self.fill == "relay"
        missing = np.argwhere(~np.isfinite(relay_ms(times)) if is_relay else np.isnan(times))
        where = file_name(self.links, "links")
        names = self.region_index
        hint = "no way over other regions" if is_relay else "no row; or set fill of protocol to relay"
        faults = [
            f"{where}: has {hint} from region '{names[source]}' to '{names[target]}'"
            for source, target in missing[:10].tolist()
        ]
        yield from shorten_faults(faults, where, "missing", count=len(missing))

    def _bad_groups(self) -> Iterator[str]:
        """Yield faults of goals that contradict each other or that no placement can reach."""
        used = np.bincount(self.user_group, weights=self.requests_per_s, minlength=len(self.groups))
        rules = (
            (used <= 0, lambda _: "has no access, one row of access must have operations"),
            (
                self.has_invariant & np.array([name in WEAK for name in self.group_class]),
                lambda row: f"has an invariant, which class {self.group_class[row]} cannot keep",
            ),
            (self._regions_left() <= self.failures, self._say_failures),
            (
                self.is_strong & (self._regions_left() < 2 * self.failures + 1),
                lambda row: (
                    f"must survive {self.failures[row]} failures with strong consistency, which needs "
                    f"{2 * self.failures[row] + 1} regions; {self._regions_left()[row]} may hold it"
                ),
            ),
            (self._cannot_survive("zone"), lambda _: "must survive a zone, but no region has two zones"),
            (
                self._cannot_survive("provider"),
                lambda row: (
                    "must survive a provider, which needs regions of "
                    + ("three, as it is strongly consistent" if self.is_strong[row] else "two")
                ),
            ),
            ((self.is_pinned & self.is_forbidden).any(axis=1), self._say_pinned),
        )
        for is_bad, describe in rules:
            yield from describe_rows(
                np.flatnonzero(is_bad),
                lambda row, describe=describe: (  # type: ignore[misc]
                    f"{row_name(self.groups, 'groups', row)}: group '{self.group_index[row]}' {describe(row)}"
                ),
                file_name(self.groups, "groups"),
                "with such a fault",
            )

    def _regions_left(self) -> Ints:
        return np.asarray((~self.is_forbidden).sum(axis=1), dtype=np.int64)

    def _say_failures(self, row: int) -> str:
        count = int(self._regions_left()[row])
        if not count:
            return "is forbidden in every region"
        return f"must survive {self.failures[row]} failures, but only {count} regions may hold it"

    def _say_pinned(self, row: int) -> str:
        region = self.region_index[int(np.argmax(self.is_pinned[row] & self.is_forbidden[row]))]
        return f"is pinned to region '{region}', and forbidden there"

    def _cannot_survive(self, what: str) -> Bools:
        allowed = ~self.is_forbidden
        must = np.array([name == what for name in self.survive])
        if what == "zone":
            has_zones = (allowed & (self.price("zones") >= 2)).any(axis=1)
            return np.asarray(must & ~has_zones & (allowed.sum(axis=1) < 2))
        needed = np.where(self.is_strong, 3, 2)
        several = np.array([len(np.unique(self.provider[row])) for row in allowed])
        return np.asarray(must & (several < needed))

    def _bad_depends(self) -> Iterator[str]:
        """Yield faults of dependencies: of a group on itself, and on groups that causality does not cover."""
        if self.depends is None:
            return
        group, on = self.depend_ends
        where = file_name(self.depends, "depends")

        def name(row: int) -> str:
            return row_name(self.depends, "depends", row)  # type: ignore[arg-type]

        yield from describe_rows(
            np.flatnonzero(group == on),
            lambda row: f"{name(row)}: group '{self.group_index[group[row]]}' depends on itself",
            where,
            "with such a dependency",
        )
        is_eventual = np.array([kind == "eventual" for kind in self.group_class])
        yield from describe_rows(
            np.flatnonzero(is_eventual[on] | is_eventual[group]),
            lambda row: (
                f"{name(row)}: group "
                f"'{self.group_index[on[row] if is_eventual[on[row]] else group[row]]}' is "
                "eventual, which keeps no order; must be causal or stronger"
            ),
            where,
            "with an eventual group",
        )

    def _cycles(self) -> list[Ints]:
        """Return the causal groups that depend on each other in cycles, those of each cycle together."""
        count = len(self.groups)
        group, on = self.causal_edges
        graph = sp.csr_array((np.ones(len(group)), (group, on)), shape=(count, count))
        number, label = connected_components(graph, directed=True, connection="strong")
        return [
            np.flatnonzero(label == row)
            for row in np.flatnonzero(np.bincount(label, minlength=number) > 1).tolist()
        ]

    def warn(self) -> None:
        """Log cycles of dependencies, and round-trip times that are faster than light or asymmetric."""
        for cycle in self._cycles()[:3]:
            shown = ", ".join(str(self.group_index[row]) for row in cycle[:MAX_SHOWN])
            more = f" and {len(cycle) - MAX_SHOWN} others" if len(cycle) > MAX_SHOWN else ""
            log.warning("depends: groups %s%s depend on each other in a cycle: one component", shown, more)
        names = self.region_index
        if "latitude" in self.regions and "longitude" in self.regions:
            position = self.regions[["latitude", "longitude"]].to_numpy(float)
            for source, target, km in find_too_fast(self.rtt_ms, position)[:3]:
                log.warning(
                    "links: %s to %s, %.0f km, takes %.3g ms, which is faster than light in fibre",
                    names[source],
                    names[target],
                    km,
                    self.rtt_ms[source, target],
                )
        share = asymmetric_share(self.rtt_ms)
        if share > 0:
            log.warning(
                "links: round-trip times of %.1f%% of pairs differ by direction by over 20%%", 100 * share
            )
