"""The problem of system `brokering`: clients by location, clusters of CDNs, costs and scores.

Client groups count clients together that are alike to the broker's objective.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import file_name, report_unknown_names, row_name, shorten_faults, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models import geonames
from planner_models.brokering.problem import geography, missing_values, restrictions, volume_limits
from planner_models.brokering.problem.schema import MOST_CLIENTS, OPTIONAL, TABLES
from planner_models.brokering.problem.terms import Terms
from planner_models.networks.nodes import find_names

REQUIRED_TABLES = ("clients", "locations", "clusters")
OPTIONAL_TABLES = ("scores", "contracts", "limits", "bids", "pinned", "forbidden")
NAMING_COLUMNS: Final = {
    "clients": ("location",),
    "locations": ("country",),
    "clusters": ("location",),
    "scores": ("location", "cluster"),
    "contracts": ("cdn", "region"),
    "limits": ("cdn", "region"),
    "bids": ("location", "cluster"),
}
RULES: Final = {
    "location": "no location of the problem",
    "cluster": "no cluster of the problem",
    "cdn": "no CDN of the problem",
    "country": "no country's code (ISO 3166, two letters)",
    "region": "no region: a country's code, a continent's, or world",
}


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """The messages that make an observation: announcements of broker and CDNs to each other.

    by_client  whether the broker shares its clients: bids are then by kind of client, else by location
    score      whether CDNs announce the performance of several clusters
    price      whether CDNs announce the price of each cluster
    capacity   whether CDNs announce capacities
    """

    by_client: bool
    score: bool
    price: bool
    capacity: bool

    @property
    def figures(self) -> int:
        """Number of figures in a bid; 0: nothing is announced."""
        return self.score + self.price + self.capacity


@dataclass(frozen=True, kw_only=True, eq=False)
class Brokering:
    """Clients that a broker assigns to the clusters of CDNs.

    clients    location, isp, content, bitrate_kbps, clients; R rows
    locations  location, country, latitude, longitude; L rows
    clusters   cluster, cdn, location, capacity_mbps, bandwidth_cost, colocation_cost,
               background_mbps; C rows
    scores     location, cluster, score; None: all by distance
    contracts  cdn, region, price, commitment_mbps; None: all derived
    limits     cdn, region, min_mbps?, max_mbps?, min_share?, max_share?; None: no CDN has a limit
    bids       location, cluster, score?, price?; None: every cluster is on offer everywhere
    pinned     location, isp, content, cdn, cluster: clients that only these clusters serve
    forbidden  the same: clusters that never serve these clients; see `restrictions`
    terms      currency and unit of costs, and the broker's weights

    An observation of a broker is such a problem too, made by `with_observation`.
    InputError with every fault: a value out of range, an unknown location, cluster, CDN, country or
    region, two bids for the same pair. Clients that no cluster is on offer to are no fault: they are shed.
    """

    clients: pd.DataFrame
    locations: pd.DataFrame
    clusters: pd.DataFrame
    scores: pd.DataFrame | None = None
    contracts: pd.DataFrame | None = None
    limits: pd.DataFrame | None = None
    bids: pd.DataFrame | None = None
    pinned: pd.DataFrame | None = None
    forbidden: pd.DataFrame | None = None
    terms: Terms = field(default_factory=Terms)

    def __post_init__(self) -> None:
        for faults in map(list, self._find_faults()):
            if faults:
                raise InputError(*faults)

    def _find_faults(self) -> Iterator[Iterable[str]]:
        """Yield the faults of each check; each relies on those before it."""
        yield validate_fields(self, (table for table in TABLES if table.name != "terms"))
        yield too_many_clients(self.clients)
        yield unknown_names(vars(self))
        rules = {"pinned": self.pinned, "forbidden": self.forbidden}
        yield restrictions.unmatched_rules(rules, self.clients, self.clusters)
        yield volume_limits.find_faults(self.limits)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Brokering:
        """Return the problem in those tables; the optional ones may be absent.

        Each is a data frame, a list of records, or a mapping from columns to arrays.
        """
        tables = take_tables(TABLES, tables, optional=OPTIONAL)
        return cls(
            **{name: tables[name] for name in REQUIRED_TABLES},
            **{name: tables.get(name) for name in OPTIONAL_TABLES},  # type: ignore[arg-type]
            terms=Terms.from_table(tables["terms"]) if "terms" in tables else Terms(),
        )

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        names = (*REQUIRED_TABLES, *(name for name in OPTIONAL_TABLES if name != "bids"))
        tables = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self._is_observed or self.bids is not None:
            tables["bids"] = self._bids_table()
        tables["terms"] = self.terms.to_table()
        return {name: frame.reset_index(drop=True) for name, frame in tables.items()}

    def size(self) -> dict[str, int]:
        """Return the number of clients, locations, clusters and CDNs."""
        return {
            "clients": int(self.count.sum()),
            "locations": len(self.locations),
            "clusters": len(self.clusters),
            "CDNs": len(self.cdn_names),
        }

    def with_terms(self, **terms: Any) -> Brokering:
        """Return the same problem with other `terms`."""
        return self._copy_with(terms=Terms(**{**vars(self.terms), **terms}))

    def with_pinned(self, pinned: pd.DataFrame | None) -> Brokering:
        """Return the same problem with other rules, which may name clusters that are lost."""
        problem = self._copy_with(pinned=pinned)
        for name in ("groups", "restriction_classes"):
            vars(problem).pop(name, None)
        return problem

    def with_client_counts(self, count: NDArray[Any]) -> Brokering:
        """Return the same problem with other numbers of clients, (R,) whole."""
        problem = self._copy_with(clients=self.clients.assign(clients=np.asarray(count, dtype=float)))
        stale = (
            "count",
            "groups",
            "contract_price",
            "contract_terms",
            "derived_price",
            "demand_mbps",
            "volume_limits",
        )
        for name in stale:
            vars(problem).pop(name, None)
        return problem

    def with_clusters(self, **columns: Any) -> Brokering:
        """Return the same problem with other columns of `clusters`: capacity_mbps, background_mbps, costs."""
        problem = self._copy_with(clusters=self.clusters.assign(**columns))
        stale = {"capacity_mbps", "background_mbps", "residual_mbps", "guessed_capacity_mbps"}
        if not set(columns) <= stale:
            stale |= {"unit_cost", "price", "contract_price", "contract_terms", "bid_matrices"}
        for name in stale:
            vars(problem).pop(name, None)
        return problem

    def with_observation(
        self,
        *,
        offered: Bools,
        score: Floats,
        price: Floats,
        capacity_mbps: Floats,
        background_mbps: Floats,
        announcement: Announcement | None = None,
    ) -> Brokering:
        """Return the problem as observed with those offers and capacities; arrays are shared, not copied.

        Contracts and guessed capacities stay as they are.

        offered, score, price           (L, C); score and price matter only where offered
        capacity_mbps, background_mbps  (C,)
        announcement                    the messages behind it; None: as before
        """
        problem = self.with_clusters(capacity_mbps=capacity_mbps, background_mbps=background_mbps)
        return problem._copy_with(
            offered=offered,
            score=score,
            price=price,
            contract_price=self.contract_price,
            contract_terms=self.contract_terms,
            guessed_capacity_mbps=self.guessed_capacity_mbps,
            announcement=announcement or self.announcement,
            _is_observed=True,
        )

    def with_earlier(self, earlier: Brokering) -> Brokering:
        """Return the problem as two control planes observe it: one as it is, the other as it was."""
        return self._copy_with(earlier=earlier)

    def _copy_with(self, **changes: Any) -> Brokering:
        # copies what is computed already, and does not validate 3 million rows again
        problem = copy.copy(self)
        vars(problem).update(changes)
        return problem

    # --- as arrays ------------------------------------------------------------------------

    _is_observed = False
    announcement: ClassVar[Announcement | None] = None  # of the true problem; observations have their own
    earlier: ClassVar[Brokering | None] = None  # of an observation by split control: the market as it was

    @cached_property
    def location(self) -> Ints:
        """(R,) row of `locations` of each row of clients."""
        return _rows_of(self.location_index, self.clients["location"])

    @cached_property
    def bitrate_mbps(self) -> Floats:
        """(R,) of each client."""
        return self.clients["bitrate_kbps"].to_numpy(float) / 1000

    @cached_property
    def count(self) -> Ints:
        """(R,) number of clients."""
        return self.clients["clients"].to_numpy(np.int64)

    @cached_property
    def groups(self) -> ClientGroups:
        """Clients that are alike to the broker's objective, counted together."""
        return ClientGroups.of(self.location, self.bitrate_mbps, self.count, self.restriction_classes.of_row)

    @cached_property
    def restriction_classes(self) -> restrictions.RestrictionClasses:
        """Clients by the rules of `pinned` and `forbidden` that name them."""
        return restrictions.classify_clients(self.clients, self.clusters, self.pinned, self.forbidden)

    @property
    def allowed(self) -> Bools:
        """(G, C) True where a cluster may serve a group: on offer there, and no rule is against it."""
        groups = self.groups
        return self.restriction_classes.allowed(self.offered[groups.location], groups.restriction_class)

    @cached_property
    def demand_mbps(self) -> Floats:
        """(L,) traffic demand of the clients of each location."""
        traffic = self.bitrate_mbps * self.count
        return np.bincount(self.location, weights=traffic, minlength=len(self.locations)).astype(float)

    def priced_bitrate_mbps(self, location: Ints, bitrate_mbps: Floats) -> Floats:
        """Return the bitrate by which the broker's objective weighs the costs of clients, shape as given.

        It is their own, or the mean of all clients of their location, as the terms say.
        """
        if self.terms.performance_per != "location":
            return bitrate_mbps
        clients = np.bincount(self.location, weights=self.count, minlength=len(self.locations))
        mean: Floats = self.demand_mbps / np.maximum(clients, 1)
        return mean[location]

    @cached_property
    def location_index(self) -> pd.Index:
        """Rows of `locations` by name."""
        index: pd.Index = pd.Index(self.locations["location"])
        return index

    @cached_property
    def cluster_index(self) -> pd.Index:
        """Rows of `clusters` by name."""
        index: pd.Index = pd.Index(self.clusters["cluster"])
        return index

    @cached_property
    def cluster_location(self) -> Ints:
        """(C,) row of `locations` of each cluster."""
        return _rows_of(self.location_index, self.clusters["location"])

    @cached_property
    def cdn_names(self) -> list[str]:
        """CDNs in the order of their first clusters."""
        return [str(name) for name in pd.unique(self.clusters["cdn"])]

    @cached_property
    def cdn(self) -> Ints:
        """(C,) place of each cluster's CDN in `cdn_names`."""
        return _rows_of(pd.Index(self.cdn_names), self.clusters["cdn"])

    @cached_property
    def capacity_mbps(self) -> Floats:
        """(C,) capacity of each cluster."""
        return self.clusters["capacity_mbps"].to_numpy(float)

    @cached_property
    def background_mbps(self) -> Floats:
        """(C,) traffic that is not this broker's."""
        return self.clusters["background_mbps"].to_numpy(float)

    @cached_property
    def residual_mbps(self) -> Floats:
        """(C,) capacity that background traffic leaves."""
        return np.clip(self.capacity_mbps - self.background_mbps, 0.0, None)

    @cached_property
    def guessed_capacity_mbps(self) -> Floats:
        """(C,) capacity for its clients that a broker assumes where none is announced.

        It is the median over the CDN's clusters, of what background traffic leaves.
        """
        by_cdn = pd.Series(self.residual_mbps).groupby(self.cdn)
        return by_cdn.transform("median").to_numpy(float)

    @cached_property
    def unit_cost(self) -> Floats:
        """(C,) cost of each cluster to its CDN: bandwidth and co-location."""
        bandwidth, colocation = (
            self.clusters[name].to_numpy(float) for name in ("bandwidth_cost", "colocation_cost")
        )
        total: Floats = bandwidth + colocation
        return total

    @cached_property
    def volume_limits(self) -> volume_limits.VolumeLimits:
        """Limits of the traffic that CDNs carry for regions, in Mbit/s."""
        return volume_limits.VolumeLimits.of(
            self.limits, self.cdn_names, self.country.tolist(), self.demand_mbps
        )

    @cached_property
    def distance_km(self) -> Floats:
        """(L, C) great circle from clients to clusters."""
        latitude = self.locations["latitude"].to_numpy(float)
        longitude = self.locations["longitude"].to_numpy(float)
        location = self.cluster_location
        return geography.distance_km(latitude, longitude, latitude[location], longitude[location])

    @cached_property
    def offered(self) -> Bools:
        """(L, C) True where a cluster is on offer to a location."""
        return self.bid_matrices[0]

    @cached_property
    def score(self) -> Floats:
        """(L, C) smaller is better; missing scores by regression on distance, per location."""
        measured = np.full((len(self.locations), len(self.clusters)), np.nan)
        if self.scores is not None:
            measured[self.locate_pairs(self.scores)] = self.scores["score"].to_numpy(float)
        announced = self.bid_matrices[1]
        complete = missing_values.fill_missing_scores(measured, self.distance_km)
        return complete if announced is None else np.where(np.isnan(announced), complete, announced)

    @cached_property
    def price(self) -> Floats:
        """(L, C) price in the broker's objective: that of a bid, else the cluster's cost."""
        bid = self.bid_matrices[2]
        costs = np.broadcast_to(self.unit_cost, (len(self.locations), len(self.clusters)))
        return costs if bid is None else np.where(np.isnan(bid), costs, bid)

    @cached_property
    def bid_matrices(self) -> tuple[Bools, Floats | None, Floats | None]:
        """Three of (L, C): on offer, announced score, price of the bid; NaN or None where there is none."""
        shape = (len(self.locations), len(self.clusters))
        if self.bids is None:
            return np.ones(shape, dtype=bool), None, None
        pairs = self.locate_pairs(self.bids)
        offered = np.zeros(shape, dtype=bool)
        offered[pairs] = True
        figures: list[Floats | None] = [None, None]
        for index, column in enumerate(("score", "price")):
            if column in self.bids:
                matrix = np.full(shape, np.nan)
                matrix[pairs] = self.bids[column].to_numpy(float)
                figures[index] = matrix
        return offered, figures[0], figures[1]

    @cached_property
    def contract_price(self) -> Floats:
        """(L, D) flat price of each CDN for the clients of each location; NaN where it has none."""
        price = np.append(self.contract_terms["price"].to_numpy(float), np.nan)  # -1: no contract
        covered: Floats = price[self.contract_of]
        return covered

    @cached_property
    def contract_of(self) -> Ints:
        """(L, D) row of `contract_terms` that holds for each location and CDN; -1: none."""
        countries = self.locations["country"].tolist()
        return missing_values.find_contracts(self.contracts, self.cdn_names, countries)

    @cached_property
    def contract_terms(self) -> pd.DataFrame:
        """Terms of each contract: cdn, region, price, commitment_mbps; K rows.

        CDNs without a contract follow, in region world at their derived prices.
        """
        columns = ["cdn", "region", "price", "commitment_mbps"]
        listed = pd.DataFrame(columns=columns) if self.contracts is None else self.contracts[columns]
        owners = set(listed["cdn"])
        without = [cdn for cdn, name in enumerate(self.cdn_names) if name not in owners]
        derived = pd.DataFrame(
            {
                "cdn": [self.cdn_names[cdn] for cdn in without],
                "region": geography.WORLD,
                "price": self.derived_price[without] if without else [],
                "commitment_mbps": 0.0,
            }
        )
        return pd.concat([table for table in (listed, derived) if len(table)], ignore_index=True)

    @cached_property
    def derived_price(self) -> Floats:
        """(D,) average cost of each CDN if it served all clients."""
        return missing_values.derived_prices(
            self.score, self.unit_cost, self.cdn, self.bid_matrices[0], self.demand_mbps
        )

    @property
    def country(self) -> NDArray[np.object_]:
        """(L,) of each location."""
        return self.locations["country"].to_numpy(object)

    def locate_pairs(self, frame: pd.DataFrame) -> tuple[Ints, Ints]:
        """Return the rows of `locations` and `clusters` that each row of a table names; -1: unknown."""
        return (
            _rows_of(self.location_index, frame["location"]),
            _rows_of(self.cluster_index, frame["cluster"]),
        )

    def _bids_table(self) -> pd.DataFrame:
        location, cluster = np.nonzero(self.offered)
        columns = {
            "location": self.locations["location"].to_numpy()[location],
            "cluster": self.clusters["cluster"].to_numpy()[cluster],
            "score": self.score[location, cluster],
            "price": self.price[location, cluster],
        }
        return pd.DataFrame(columns)


def _rows_of(index: pd.Index, names: pd.Series) -> Ints:
    return find_names(index, names)


def too_many_clients(clients: pd.DataFrame) -> Iterator[str]:
    """Yield a fault where the clients of all rows together are more than can be counted."""
    total = float(clients["clients"].sum())
    if total > MOST_CLIENTS:
        yield f"clients: has {total:,.0f} clients in all rows, must have at most {MOST_CLIENTS:,}"


def unknown_names(tables: Mapping[str, pd.DataFrame | None]) -> Iterator[str]:
    """Yield the faults of names in the problem's tables that are no location, cluster, CDN or region."""
    countries = set(geonames.continent_by_country())
    locations, clusters = tables["locations"], tables["clusters"]
    assert locations is not None
    assert clusters is not None
    names_of = {
        "location": set(locations["location"]),
        "cluster": set(clusters["cluster"]),
        "cdn": set(clusters["cdn"]),
        "country": countries,
        "region": {*geography.REGION_NAMES, *geography.CONTINENTS, *countries},
    }
    for table, columns in NAMING_COLUMNS.items():
        frame = tables[table]
        if frame is not None:
            for column in columns:
                yield from report_unknown_names(frame, table, column, names_of[column], RULES[column])
    for table in ("contracts", "limits"):
        yield from _unclear_regions(locations, tables.get(table), table)


def _unclear_regions(locations: pd.DataFrame, frame: pd.DataFrame | None, table: str) -> Iterator[str]:
    """Yield an error for each region with the code of both a continent and a country with locations."""
    if frame is None:
        return
    present = set(locations["country"])
    faults = []
    for row, code in enumerate(frame["region"].astype(str)):
        country = geography.COUNTRIES_BESIDE_CONTINENTS.get(code)
        if country is not None and code in present:
            continent = geography.CONTINENTS[code]
            faults.append(
                f"{row_name(frame, table, row)}: region '{code}' is {country}, which has "
                f"locations, or {continent}: write {country} or {continent}"
            )
    yield from shorten_faults(faults, file_name(frame, table), "of such regions")


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientGroups:
    """G groups of clients of one location, bitrate and restriction class, whatever content they want.

    location           (G,) row of `locations`
    bitrate_mbps       (G,) of each client
    restriction_class  (G,) row of the problem's `restriction_classes`
    count              (G,) clients, all above 0
    of_row             (R,) the group of each row of clients; -1 for rows without clients
    """

    location: Ints
    bitrate_mbps: Floats
    restriction_class: Ints
    count: Ints
    of_row: Ints

    @classmethod
    def of(cls, location: Ints, bitrate_mbps: Floats, count: Ints, restriction_class: Ints) -> ClientGroups:
        """Return the groups of rows of clients, each argument (R,)."""
        levels, level = np.unique(bitrate_mbps, return_inverse=True)
        kinds = int(restriction_class.max(initial=0)) + 1
        key = (location * np.int64(len(levels)) + level.ravel()) * kinds + restriction_class
        group_keys, group = np.unique(np.where(count > 0, key, -1), return_inverse=True)
        group = group.ravel()
        if len(group_keys) and group_keys[0] == -1:
            group_keys, group = group_keys[1:], group - 1
        clients = np.zeros(len(group_keys), dtype=np.int64)
        used = group >= 0
        np.add.at(clients, group[used], count[used])
        location_row, level = np.divmod(group_keys // kinds, max(len(levels), 1))
        return cls(
            location=location_row,
            bitrate_mbps=levels[level],
            restriction_class=group_keys % kinds,
            count=clients,
            of_row=group.astype(np.int64),
        )
