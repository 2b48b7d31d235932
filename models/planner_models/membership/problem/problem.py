"""Problem of system `membership`: sites that fail, delays between them, and services with members there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import (
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.membership.problem.delays import DelayMatrix, find_delays
from planner_models.membership.problem.schema import (
    BYZANTINE,
    DEFAULT_MANAGERS,
    DEFINITIVE,
    HEARTBEAT,
    KINDS,
    LEASE,
    MAX_MEMBERS,
    MEMBER,
    NAME_BITS,
    NETWORK,
    NODE,
    OPTIONAL_TABLES,
    PHI,
    ROUND,
    STARTS,
    SWIM,
    TABLES,
    WITNESS,
    WITNESS_SITE,
)
from planner_models.membership.problem.tree import SiteTree, unavailability
from planner_models.networks.nodes import find_names

UNLIMITED_HOSTS: Final = MAX_MEMBERS
"""Members that a site without a number of hosts can have."""


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """Settings of one kind of failure detector, in s; None: no timeout of its own, no limit of load."""

    kind: str
    interval_s: float
    timeout_s: float
    capacity_per_s: float | None
    bytes: float
    is_usual: bool = True


USUAL: Final = {
    HEARTBEAT: Watcher(kind=HEARTBEAT, interval_s=0.1, timeout_s=1.0, capacity_per_s=None, bytes=100.0),
    LEASE: Watcher(kind=LEASE, interval_s=4.0 / 3, timeout_s=4.0, capacity_per_s=None, bytes=100.0),
    PHI: Watcher(kind=PHI, interval_s=1.0, timeout_s=8.0, capacity_per_s=None, bytes=100.0),
    SWIM: Watcher(kind=SWIM, interval_s=1.0, timeout_s=4.0, capacity_per_s=None, bytes=100.0),
    NETWORK: Watcher(kind=NETWORK, interval_s=0.01, timeout_s=1.0, capacity_per_s=None, bytes=610.0),
    NODE: Watcher(kind=NODE, interval_s=10.0, timeout_s=50.0, capacity_per_s=None, bytes=500.0),
    ROUND: Watcher(kind=ROUND, interval_s=1.0, timeout_s=1.0, capacity_per_s=None, bytes=100.0),
}
"""Defaults: etcd (100 and 1,000 ms), ZooKeeper (4 s, pings at a third of it), Akka, memberlist (probes every
second, suspicion of 4 s in groups of up to 10), Albatross (heartbeats of a host to its switch every 10 ms,
rules that end after 1 s), and Kubernetes (leases of nodes every 10 s, a grace of 50 s; 40 s before 1.32)."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of processes that find each other and spread news; see the table `gossip`."""

    members: int
    seeds: int = 3
    fan_out: int = 3
    interval_s: float = 0.2
    retransmit: int = 4
    joins_per_s: float = 1.0
    syncs_per_s: float = 100.0
    loss: float = 0.0
    start: str = STARTS[0]


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Bits of names of processes, and the use of epochs; see the table `naming`."""

    bits_of_epoch: int
    bits_of_app: int
    bits_of_local: int
    processes: float
    life_days: float
    partitions_per_month: float
    ports_per_cut: int
    retries: int


@dataclass(frozen=True, kw_only=True)
class Service:
    """One row of `services`, with defaults in place of blank cells.

    size    number of members where each has to vote: 2f+1, or 3t+1 with Byzantine members
    pair    number of members where reports are definitive: f+1
    """

    name: str
    protocol: str
    faults: int
    members: int | None
    managers: int
    failover_s: float
    down_cost_per_s: float
    commit_limit_ms: float | None
    price_limit: float | None
    decisions_per_s: float
    value_bytes: float
    targets: int | None

    @property
    def is_byzantine(self) -> bool:
        """Whether members may lie."""
        return self.protocol == BYZANTINE

    @property
    def size(self) -> int:
        """Members that vote."""
        return self.members or (3 * self.faults + 1 if self.is_byzantine else 2 * self.faults + 1)

    @property
    def pair(self) -> int:
        """Members where reports of failures are definitive; those that vote where members may lie."""
        return self.size if self.is_byzantine else self.faults + 1

    def quorum(self, members: int) -> int:
        """Return the members that must agree: more than half; two quorums share t + 1 where members lie."""
        return (members + self.faults) // 2 + 1 if self.is_byzantine else members // 2 + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Membership:
    """Sites with failures and delays, and services with members to place and watch.

    sites         site, kind, parent, fails_per_month, repair_s, price_per_month, hosts?, state?, ...
    delays        from, to, rtt_ms, p99_ms?, loss
    services      service, protocol, faults, members?, managers?, failover_s, down_cost_per_s, ...
    shared_risks  risk, site, fails_per_month, repair_s; None: no site fails together with others beside it
    pauses        site, per_month, mean_s; None: processes never pause
    watchers      kind, interval_ms, timeout_ms?, capacity_per_s?, bytes; None: the usual defaults
    current       service, site, role, count: members of today; None: there are none yet
    ports         switch, port, to, applications, epochs, ...: ports that fences are at; None: unknown
    events        at_s, site, what: recorded failures to replay; None: failures are drawn
    naming        bits_of_epoch, bits_of_app, bits_of_local, processes, ...: names of processes; None: unknown
    gossip        members, seeds, fan_out, interval_ms, ...: a group that gossips; None: all that are watched
    contacts      member, knows: whom processes of it know at first; None: as `gossip.start` says

    Below, S and L are the numbers of sites and of leaves, the sites without others in them.

    raises   InputError with every fault
    """

    sites: pd.DataFrame
    services: pd.DataFrame
    delays: pd.DataFrame | None = None
    shared_risks: pd.DataFrame | None = None
    pauses: pd.DataFrame | None = None
    watchers: pd.DataFrame | None = None
    current: pd.DataFrame | None = None
    ports: pd.DataFrame | None = None
    naming: pd.DataFrame | None = None
    events: pd.DataFrame | None = None
    gossip: pd.DataFrame | None = None
    contacts: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_tree(), *self._bad_names()]
        if not faults:
            faults += [*self._bad_rows(), *self._bad_services(), *self._missing_delays()]
            faults += [*self._bad_ports(), *self._bad_naming(), *self._bad_events(), *self._bad_group()]
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Membership:
        """Return the problem in its tables."""
        return cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of sites, of those that members can be at, and of services."""
        return {
            "sites": len(self.sites),
            "candidate sites": len(self.leaves),
            "services": len(self.services),
        }

    # --- sites ----------------------------------------------------------------------------

    @cached_property
    def site_index(self) -> pd.Index:
        """Index of the sites' names, which maps a name to its row."""
        index: pd.Index = pd.Index(self.sites["site"].astype(str))
        return index

    @cached_property
    def site_names(self) -> list[str]:
        """(S,) names of the sites."""
        return [str(name) for name in self.site_index]

    @cached_property
    def _parent(self) -> Ints:
        return find_names(self.site_index, self.sites["parent"])

    @cached_property
    def kind(self) -> Ints:
        """(S,) number of each site's kind in `KINDS`."""
        numbers = {name: number for number, name in enumerate(KINDS)}
        return np.array([numbers[str(kind)] for kind in self.sites["kind"]], dtype=np.int64)

    @cached_property
    def tree(self) -> SiteTree:
        """The tree of sites as arrays."""
        rate, repair = (self.sites[name].to_numpy(float) for name in ("fails_per_month", "repair_s"))
        risk_rows = self._risk_rows()
        risks = np.zeros((len(risk_rows), len(self.sites)), dtype=bool)
        for number, (rows, _, _) in enumerate(risk_rows.values()):
            risks[number, rows] = True
        risk_rate = np.array([rate for _, rate, _ in risk_rows.values()])
        risk_repair = np.array([seconds for _, _, seconds in risk_rows.values()])
        down = unavailability(rate, repair)
        down[self._is_marked] = 1.0
        return SiteTree(
            parent=self._parent,
            kind=self.kind,
            rate=rate,
            repair_s=repair,
            down=down,
            capacity=self._capacity(),
            risk_down=unavailability(risk_rate, risk_repair),
            risk_rate=risk_rate,
            risk_repair_s=risk_repair,
            risk_sites=risks,
        )

    def _risk_rows(self) -> dict[str, tuple[list[int], float, float]]:
        """Return rows of sites, events in a month and time to repair of each shared risk."""
        risks: dict[str, tuple[list[int], float, float]] = {}
        if self.shared_risks is None:
            return risks
        frame = self.shared_risks
        sites = find_names(self.site_index, frame["site"]).tolist()
        columns = (frame[name].to_numpy(float).tolist() for name in ("fails_per_month", "repair_s"))
        for risk, site, rate, repair in zip(frame["risk"].astype(str), sites, *columns, strict=True):
            risks.setdefault(risk, ([], rate, repair))[0].append(site)
        return risks

    @cached_property
    def risk_names(self) -> list[str]:
        """Names of the shared risks, in the order of the tree's rows."""
        return list(self._risk_rows())

    def _capacity(self) -> Ints:
        """Return the members that each site can have, (S,); 0 for sites with others in them."""
        usual = np.where(self.kind == KINDS.index("host"), 1.0, UNLIMITED_HOSTS)
        hosts = self.sites["hosts"].to_numpy(float) if "hosts" in self.sites else np.full(len(usual), np.nan)
        capacity = np.where(np.isnan(hosts), usual, np.minimum(hosts, UNLIMITED_HOSTS)).astype(np.int64)
        is_inner = np.zeros(len(usual), dtype=bool)
        is_inner[self._parent[self._parent >= 0]] = True
        return np.where(is_inner, 0, capacity)

    @cached_property
    def leaves(self) -> Ints:
        """(L,) rows of the sites without others in them."""
        return self.tree.leaves

    @cached_property
    def _is_marked(self) -> Bools:
        if "state" not in self.sites:
            return np.zeros(len(self.sites), dtype=bool)
        return np.asarray((self.sites["state"] == "lost").to_numpy(bool))

    @cached_property
    def is_lost(self) -> Bools:
        """(S,) whether a site, or one above it, is lost for good."""
        return np.array([bool(self._is_marked[list(path)].any()) for path in self.tree.paths])

    @cached_property
    def is_witness(self) -> Bools:
        """(S,) whether members at a site only vote: they store no data and never lead."""
        if "witness" not in self.sites:
            return np.zeros(len(self.sites), dtype=bool)
        return np.asarray((self.sites["witness"] == WITNESS_SITE).to_numpy(bool))

    @cached_property
    def price(self) -> Floats:
        """(S,) price of a member for a month."""
        return self.sites["price_per_month"].to_numpy(float)

    def site_above(self, site: int, kind: str) -> int:
        """Return the row of the site of a kind above a site, or of the one nearest to that kind."""
        path = self.tree.paths[site]
        upper = [other for other in path if self.kind[other] >= KINDS.index(kind)]
        return upper[0] if upper else path[-1]

    def row_of(self, site: str) -> int:
        """Return the row of a site; -1 for a name that is none."""
        return self._row_by_site.get(site, -1)

    @cached_property
    def _row_by_site(self) -> dict[str, int]:
        """Row of each site by its name."""
        return {str(name): row for row, name in enumerate(self.site_index)}

    def require(self, parameter: str, names: Iterable[str]) -> Ints:
        """Return the rows of sites; raise InputError for every name that is none."""
        requested = list(names)
        faults = [
            f"{parameter}: '{name}' is no site" + did_you_mean(name, self.site_index)
            for name in requested
            if name not in self.site_index
        ]
        if faults:
            raise InputError(*faults)
        return self.site_index.get_indexer(pd.Index(requested, dtype=object)).astype(np.int64)

    # --- delays and pauses ----------------------------------------------------------------

    @cached_property
    def delay_matrix(self) -> DelayMatrix:
        """Delays between all pairs of leaves."""
        return find_delays(self.delays, self.site_index, self.tree)

    @cached_property
    def leaf_number(self) -> Ints:
        """(S,) number of each site among the leaves; -1 for the others."""
        numbers = np.full(len(self.sites), -1, dtype=np.int64)
        numbers[self.leaves] = np.arange(len(self.leaves))
        return numbers

    @cached_property
    def site_pauses(self) -> list[list[tuple[float, float]]]:
        """(S,) pauses of a process at each site: number in a month and mean length, s."""
        rows: dict[int, tuple[float, float]] = {}
        if self.pauses is not None:
            sites = find_names(self.site_index, self.pauses["site"]).tolist()
            pauses = self.pauses[["per_month", "mean_s"]].to_numpy(float).tolist()
            rows = {
                site: (per_month, mean_s) for site, (per_month, mean_s) in zip(sites, pauses, strict=True)
            }
        return [[rows[site] for site in path if site in rows] for path in self.tree.paths]

    # --- services -------------------------------------------------------------------------

    @cached_property
    def service_list(self) -> list[Service]:
        """The services, with defaults in place of blank cells."""
        return [self._service(row) for row in range(len(self.services))]

    def _service(self, row: int) -> Service:
        cells = self.services.iloc[row]

        def cell(name: str) -> float | None:
            value = float(cells[name]) if name in self.services else float("nan")
            return None if np.isnan(value) else value

        members, managers, targets = cell("members"), cell("managers"), cell("targets")
        return Service(
            name=str(cells["service"]),
            protocol=str(cells["protocol"]),
            faults=int(cells["faults"]),
            members=None if members is None else int(members),
            managers=DEFAULT_MANAGERS if managers is None else int(managers),
            failover_s=float(cells["failover_s"]),
            down_cost_per_s=float(cells["down_cost_per_s"]),
            commit_limit_ms=cell("most_commit_ms"),
            price_limit=cell("most_price_per_month"),
            decisions_per_s=cell("decisions_per_s") or 0.0,
            value_bytes=cell("value_bytes") or 0.0,
            targets=None if targets is None else int(targets),
        )

    def watcher(self, kind: str) -> Watcher:
        """Return the settings of a kind of failure detector: those of the table, or its usual defaults."""
        usual = USUAL[kind]
        if self.watchers is None or kind not in set(self.watchers["kind"]):
            return usual
        row = self.watchers[self.watchers["kind"] == kind].iloc[0]
        blank = float("nan")
        timeout = float(row["timeout_ms"]) if "timeout_ms" in self.watchers else blank
        capacity = float(row["capacity_per_s"]) if "capacity_per_s" in self.watchers else blank
        return replace(
            usual,
            interval_s=float(row["interval_ms"]) / 1e3,
            timeout_s=usual.timeout_s if np.isnan(timeout) else timeout / 1e3,
            capacity_per_s=None if np.isnan(capacity) else capacity,
            bytes=float(row["bytes"]),
            is_usual=bool(np.isnan(timeout)),
        )

    def current_members(self, service: str) -> pd.DataFrame | None:
        """Return the rows of today's members of a service: service, site, role, count; None without any."""
        if self.current is None:
            return None
        rows = self.current[self.current["service"].astype(str) == service]
        if not len(rows):
            return None
        role = rows.get("role", "member")
        return rows.assign(role=role)[["service", "site", "role", "count"]].reset_index(drop=True)

    # --- groups ---------------------------------------------------------------------------

    @cached_property
    def group(self) -> Group:
        """The group that gossips; without a table those of the contacts, with usual settings.

        Without contacts all processes that services watch.

        source  memberlist: defaults (3 random others every 200 ms, 4 transmissions)
        """
        if self.gossip is None or not len(self.gossip):
            members = self._contact_count or self._watched_count
            return Group(members=max(members, 2))
        row = self.gossip.iloc[0]
        return Group(
            members=int(row["members"]),
            seeds=int(row["seeds"]),
            fan_out=int(row["fan_out"]),
            interval_s=float(row["interval_ms"]) / 1e3,
            retransmit=int(row["retransmit"]),
            joins_per_s=float(row["joins_per_s"]),
            syncs_per_s=float(row["syncs_per_s"]),
            loss=float(row.get("loss", 0.0)),
            start=str(row.get("start", "")) or STARTS[0],
        )

    @cached_property
    def _contact_count(self) -> int:
        """Processes that the table of contacts names."""
        if self.contacts is None:
            return 0
        return len({*self.contacts["member"].astype(str), *self.contacts["knows"].astype(str)})

    @property
    def _watched_count(self) -> int:
        """Processes that services watch: their targets, or their members."""
        return sum(max(item.targets or 0, item.size) for item in self.service_list)

    # --- fences ---------------------------------------------------------------------------

    @cached_property
    def name_bits(self) -> Naming | None:
        """The names of processes; None where they are unknown."""
        if self.naming is None or not len(self.naming):
            return None
        row = self.naming.iloc[0]
        return Naming(
            bits_of_epoch=int(row["bits_of_epoch"]),
            bits_of_app=int(row["bits_of_app"]),
            bits_of_local=int(row["bits_of_local"]),
            processes=float(row["processes"]),
            life_days=float(row["life_days"]),
            partitions_per_month=float(row["partitions_per_month"]),
            ports_per_cut=int(row["ports_per_cut"]),
            retries=int(row["retries"]),
        )

    @cached_property
    def switch_names(self) -> list[str]:
        """Names of the switches with ports, in the order of the table."""
        return [] if self.ports is None else list(dict.fromkeys(self.ports["switch"].astype(str)))

    # --- faults ---------------------------------------------------------------------------

    def _bad_tree(self) -> Iterator[str]:
        """Yield faults of parents: unknown names, circles, and a parent of a smaller kind."""
        where = file_name(self.sites, "sites")
        named = self.sites[self.sites["parent"].astype(str) != ""]
        yield from report_unknown_names(named, "sites", "parent", self.site_index, "no site of the table")
        parent = self._parent
        for site in range(len(parent)):
            seen, above = {site}, int(parent[site])
            while above >= 0 and above not in seen:
                seen.add(above)
                above = int(parent[above])
            if above >= 0:
                yield (
                    f"{where}: the sites above '{self.site_names[site]}' are a cycle; a site must not be in "
                    "itself"
                )
                return
        for site in np.flatnonzero(parent >= 0).tolist():
            if self.kind[parent[site]] <= self.kind[site]:
                above_kind = KINDS[int(self.kind[parent[site]])]
                yield (
                    f"{row_name(self.sites, 'sites', site)}: parent '{self.site_names[parent[site]]}' is a "
                    f"{above_kind}, must be of a larger kind than {KINDS[int(self.kind[site])]}"
                )

    def _bad_names(self) -> Iterator[str]:
        """Yield faults of sites and services that other tables name."""
        for table, columns in (
            ("shared_risks", ("site",)),
            ("delays", ("from", "to")),
            ("pauses", ("site",)),
            ("current", ("site",)),
            ("events", ("site",)),
        ):
            frame = getattr(self, table)
            for column in columns if frame is not None else ():
                yield from report_unknown_names(
                    frame, table, column, self.site_index, "no site of the table sites"
                )
        if self.current is not None:
            services = pd.Index(self.services["service"].astype(str))
            yield from report_unknown_names(
                self.current, "current", "service", services, "no service of the table services"
            )

    def _bad_rows(self) -> Iterator[str]:
        """Yield faults of risks with several rates, delays that contradict, and members at larger sites."""
        if self.shared_risks is not None:
            frame = self.shared_risks
            for name in ("fails_per_month", "repair_s"):
                first = frame.groupby("risk", sort=False)[name].transform("first")
                rows = np.flatnonzero((frame[name] != first).to_numpy())
                for row in rows[:1].tolist():
                    yield (
                        f"{row_name(frame, 'shared_risks', row)}: {name} is {frame[name].iloc[row]:g}, must "
                        f"be {first.iloc[row]:g} as in the other rows of risk '{frame['risk'].iloc[row]}'"
                    )
        if self.delays is not None and "p99_ms" in self.delays:
            below = (self.delays["p99_ms"] < self.delays["rtt_ms"]).to_numpy()
            for row in np.flatnonzero(below)[:1].tolist():
                yield (
                    f"{row_name(self.delays, 'delays', row)}: p99_ms is {self.delays['p99_ms'].iloc[row]:g}, "
                    f"must be at least the rtt_ms, {self.delays['rtt_ms'].iloc[row]:g}"
                )
        if self.current is not None:
            rows = find_names(self.site_index, self.current["site"])
            for row in np.flatnonzero(self.tree.capacity[rows] == 0)[:1].tolist():
                site = self.site_names[int(rows[row])]
                reason = "has other sites in it" if self.tree.children[int(rows[row])] else "has no hosts"
                where = row_name(self.current, "current", row)
                yield f"{where}: site '{site}' {reason}, members cannot be there"
            yield from self._bad_witnesses(rows)
        if not (self.tree.capacity > 0).any():
            yield f"{file_name(self.sites, 'sites')}: no site has hosts, one must have some"
        elif not ((self.tree.capacity > 0) & ~self.is_witness).any():
            yield (
                f"{file_name(self.sites, 'sites')}: all sites with hosts are for witnesses, one must be for "
                "members that store data"
            )

    def _bad_witnesses(self, rows: Ints) -> Iterator[str]:
        """Yield a fault of a leader or manager of today at a site of witnesses, and of a witness elsewhere.

        rows  of the sites of today's members
        """
        assert self.current is not None
        roles = self.current["role"] if "role" in self.current else ["member"] * len(rows)
        for row, (site, role) in enumerate(zip(rows.tolist(), roles, strict=True)):
            is_right = role in (MEMBER, WITNESS) if self.is_witness[site] else role != WITNESS
            if not is_right:
                rule = "is for witnesses" if self.is_witness[site] else "is not marked as for witnesses"
                yield (
                    f"{row_name(self.current, 'current', row)}: role is {role}, but site "
                    f"'{self.site_names[site]}' {rule}"
                )
                return

    def _bad_services(self) -> Iterator[str]:
        """Yield faults of the numbers of members and managers."""
        for row, service in enumerate(self.service_list):
            where = row_name(self.services, "services", row)
            if service.is_byzantine and service.size <= 3 * service.faults:
                yield (
                    f"{where}: members is {service.size}, must be more than {3 * service.faults} for "
                    f"{service.faults} Byzantine faults (n > 3t, Abraham and Dolev 2015, Theorem 1)"
                )
            elif service.size > MAX_MEMBERS:
                yield (
                    f"{where}: faults is {service.faults}, needs {service.size} members, there must be at "
                    f"most {MAX_MEMBERS}"
                )
            if service.protocol == DEFINITIVE and service.managers == 0:
                yield (
                    f"{where}: managers is 0, must be at least 1 where faults + 1 members rely on reports: "
                    "there would be two leaders"
                )
        if self.watchers is None:
            return
        for row in range(len(self.watchers)):
            kind = str(self.watchers["kind"].iloc[row])
            watcher = self.watcher(kind)
            if watcher.timeout_s < watcher.interval_s:
                yield (
                    f"{row_name(self.watchers, 'watchers', row)}: timeout_ms is {watcher.timeout_s * 1e3:g}, "
                    f"must be at least the interval_ms, {watcher.interval_s * 1e3:g}"
                )

    def _bad_ports(self) -> Iterator[str]:
        """Yield faults of ports: switches with several capacities, and counts that contradict."""
        if self.ports is None:
            return
        frame = self.ports
        for name in ("rule_capacity", "rule_ms"):
            first = frame.groupby("switch", sort=False)[name].transform("first")
            for row in np.flatnonzero((frame[name] != first).to_numpy())[:1].tolist():
                yield (
                    f"{row_name(frame, 'ports', row)}: {name} is {frame[name].iloc[row]:g}, must be "
                    f"{first.iloc[row]:g} as in the other rows of switch '{frame['switch'].iloc[row]}'"
                )
        for name in ("applications", "epochs"):
            over = (frame[name] > frame["processes"]).to_numpy()
            for row in np.flatnonzero(over)[:1].tolist():
                yield (
                    f"{row_name(frame, 'ports', row)}: {name} is {frame[name].iloc[row]:g}, must be at most "
                    f"the processes, {frame['processes'].iloc[row]:g}"
                )

    def _bad_events(self) -> Iterator[str]:
        """Yield faults of events: times that fall, and a site that returns without having failed."""
        if self.events is None:
            return
        at_s = self.events["at_s"].to_numpy(float)
        for row in (np.flatnonzero(np.diff(at_s) < 0) + 1)[:1].tolist():
            yield (
                f"{row_name(self.events, 'events', row)}: at_s is {at_s[row]:g}, must be at least that of "
                f"the row before, {at_s[row - 1]:g}"
            )
        is_out: set[str] = set()
        for row, (site, what) in enumerate(
            zip(self.events["site"].astype(str), self.events["what"], strict=True)
        ):
            if what == "up" and site not in is_out:
                where = row_name(self.events, "events", row)
                yield f"{where}: '{site}' is up already, a down or pause of it must be before"
                return
            if what in ("down", "pause"):
                is_out.add(site)
            elif what == "up":
                is_out.discard(site)

    def _bad_naming(self) -> Iterator[str]:
        """Yield faults of names: several rows, more bits than a name has, more applications than names."""
        naming = self.name_bits
        if self.naming is None or naming is None:
            return
        where = row_name(self.naming, "naming", 0)
        if len(self.naming) > 1:
            yield f"{file_name(self.naming, 'naming')}: has {len(self.naming)} rows, must have one"
        bits = naming.bits_of_epoch + naming.bits_of_app + naming.bits_of_local
        if bits > NAME_BITS:
            yield (
                f"{where}: bits_of_epoch, bits_of_app and bits_of_local are {bits} together, must be at most "
                f"{NAME_BITS} (Leners et al. 2015, Figure 7)"
            )
        limits = {"epochs": 2**naming.bits_of_epoch, "applications": 2**naming.bits_of_app}
        for name, limit in limits.items() if self.ports is not None else ():
            assert self.ports is not None
            largest = float(self.ports[name].max()) if len(self.ports) else 0.0
            if largest > limit:
                yield f"{where}: names have {limit} {name}, the table ports has a port with {largest:g}"

    def _bad_group(self) -> Iterator[str]:
        """Yield faults of the group: several rows, more seeds than members, contacts of other numbers."""
        named = self._contact_count
        if self.gossip is None or not len(self.gossip):
            has_targets = any(item.targets for item in self.service_list)
            if named and has_targets and named != self._watched_count:
                assert self.contacts is not None
                yield (
                    f"{file_name(self.contacts, 'contacts')}: names {named} processes, the services watch "
                    f"{self._watched_count:,}; say with members of the table gossip how many the group has"
                )
            return
        group = self.group
        where = row_name(self.gossip, "gossip", 0)
        if len(self.gossip) > 1:
            yield f"{file_name(self.gossip, 'gossip')}: has {len(self.gossip)} rows, must have one"
        for name in ("seeds", "fan_out"):
            if getattr(group, name) >= group.members:
                yield (
                    f"{where}: {name} is {getattr(group, name)}, must be less than the members, "
                    f"{group.members}"
                )
        if named and named != group.members:
            yield f"{where}: members is {group.members}, the table contacts names {named}"

    def _missing_delays(self) -> Iterator[str]:
        """Yield a fault for each pair of sites without a round-trip time."""
        matrix = self.delay_matrix
        where = file_name(self.delays, "delays") if self.delays is not None else "delays"
        faults = [
            f"{where}: no rtt_ms between '{self.site_names[first]}' and '{self.site_names[second]}'"
            for first, second in matrix.missing_pairs(self.leaves)
        ]
        yield from shorten_faults(faults, where, "missing")
