"""The problem of system `brokering`: clients in places, clusters of CDNs, costs and scores."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError
from planner.tables import adopt, few, file_name, strangers, validate
from planner_models.brokering import geography, matching, regression, restrictions
from planner_models.brokering.groups import Groups
from planner_models.brokering.tables import TABLES, TERMS, UNITS

PerformancePer = Literal["client", "bit"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What costs are in, and what the broker weighs.

    currency            of costs and prices
    cost_per            what they are per: GB, TB, GiB, or Mbps-month
    performance_weight  wp in Fig. 3.10
    cost_weight         wc in Fig. 3.10, of the cost in currency per hour
    performance_per     "client": a client's score counts once, as printed; "bit": times its Mbit/s,
                        so that score and cost are weighted alike
    """

    currency: str = "USD"
    cost_per: str = "GB"
    performance_weight: float = 1.0
    cost_weight: float = 1.0
    performance_per: PerformancePer = "client"

    @property
    def units_per_mbps_hour(self) -> float:
        """What one Mbit/s comes to in an hour, in the unit that costs are per."""
        return UNITS[self.cost_per]


@dataclass(frozen=True, kw_only=True)
class Announced:
    """What CDNs tell a broker, and it them, before it decides.

    shares   whether the broker tells of its clients: bids are then by kind of client, else by location
    figures  how many an offer has, of performance, price and capacity; 0: nothing is announced
    """

    shares: bool
    figures: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Brokering:
    """Clients that a broker assigns to the clusters of CDNs.

    clients    location, isp, content, bitrate_kbps, clients; R rows
    locations  location, country, latitude, longitude; L rows
    clusters   cluster, cdn, location, capacity_mbps, bandwidth_cost, colocation_cost,
               background_mbps; C rows
    scores     location, cluster, score; None: all by distance
    contracts  cdn, region, price, commitment_mbps; None: all derived
    bids       location, cluster, score?, price?; None: every cluster is on offer everywhere
    pinned     location, isp, content, cdn, cluster: who is served only there; see `restrictions`
    forbidden  the same: who is never served there
    terms      currency and unit of costs, and the broker's weights

    What a broker believes is such a problem too, made by `believing`.
    InputError with every fault: a value out of range, an unknown location, cluster, CDN, country or
    region, two bids for the same pair, clients that no cluster is on offer to.
    """

    clients: pd.DataFrame
    locations: pd.DataFrame
    clusters: pd.DataFrame
    scores: pd.DataFrame | None = None
    contracts: pd.DataFrame | None = None
    bids: pd.DataFrame | None = None
    pinned: pd.DataFrame | None = None
    forbidden: pd.DataFrame | None = None
    terms: Terms = Terms()

    def __post_init__(self) -> None:
        faults = adopt(self, (table for table in TABLES if table.name != "terms"))
        if not faults:
            faults += self._unknown_names()
        if not faults:
            faults += self._without_an_offer()
        if not faults:
            faults += self._without_a_cluster()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Brokering:
        """The problem in those tables; the optional ones may be absent."""
        return cls(
            clients=tables["clients"],
            locations=tables["locations"],
            clusters=tables["clusters"],
            scores=tables.get("scores"),
            contracts=tables.get("contracts"),
            bids=tables.get("bids"),
            pinned=tables.get("pinned"),
            forbidden=tables.get("forbidden"),
            terms=_terms(tables["terms"]) if "terms" in tables else Terms(),
        )

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        given = {name: getattr(self, name) for name in ("clients", "locations", "clusters")}
        optional = {name: getattr(self, name) for name in ("scores", "contracts", "pinned", "forbidden")}
        given |= {name: frame for name, frame in optional.items() if frame is not None}
        if self._is_believed or self.bids is not None:
            given["bids"] = self._bids_table()
        terms = {
            "currency": self.terms.currency,
            "cost_per": self.terms.cost_per,
            "performance_weight": float(self.terms.performance_weight),
            "cost_weight": float(self.terms.cost_weight),
            "performance_per": self.terms.performance_per,
        }
        given["terms"] = pd.DataFrame([terms])
        return {name: frame.reset_index(drop=True) for name, frame in given.items()}

    def size(self) -> dict[str, int]:
        """Number of clients, locations, clusters and CDNs."""
        return {
            "clients": int(self.count.sum()),
            "locations": len(self.locations),
            "clusters": len(self.clusters),
            "cdns": len(self.cdn_names),
        }

    def weighing(self, **terms: Any) -> Brokering:
        """The same problem with other `terms`."""
        return self._twin(terms=Terms(**{**vars(self.terms), **terms}))

    def serving(self, count: NDArray[Any]) -> Brokering:
        """The same problem with other numbers of clients, (R,) whole."""
        twin = self._twin(clients=self.clients.assign(clients=np.asarray(count, dtype=float)))
        for name in ("count", "groups", "contract_price", "derived_price", "demand_mbps"):
            vars(twin).pop(name, None)
        return twin

    def with_clusters(self, **columns: Any) -> Brokering:
        """The same problem with other columns of `clusters`: capacity_mbps, background_mbps, costs."""
        twin = self._twin(clusters=self.clusters.assign(**columns))
        stale = {"capacity_mbps", "background_mbps", "free_mbps", "guessed_mbps"}
        if not set(columns) <= stale:
            stale |= {"unit_cost", "price", "contract_price", "bid_matrices"}
        for name in stale:
            vars(twin).pop(name, None)
        return twin

    def believing(
        self,
        *,
        offered: NDArray[np.bool_],
        score: NDArray[np.float64],
        price: NDArray[np.float64],
        capacity_mbps: NDArray[np.float64],
        background_mbps: NDArray[np.float64],
        announced: Announced | None = None,
    ) -> Brokering:
        """The problem of who believes those offers and capacities; arrays are shared, not copied.

        Contracts, and what is guessed of capacities, stay as they are.

        offered, score, price           (L, C); score and price matter only where offered
        capacity_mbps, background_mbps  (C,)
        announced                       what was told for it; None: as before
        """
        twin = self.with_clusters(capacity_mbps=capacity_mbps, background_mbps=background_mbps)
        return twin._twin(
            offered=offered,
            score=score,
            price=price,
            contract_price=self.contract_price,
            guessed_mbps=self.guessed_mbps,
            announced=announced or self.announced,
            _is_believed=True,
        )

    def _twin(self, **changes: Any) -> Brokering:
        # copies what is computed already, and does not validate 3 million rows again
        twin = copy.copy(self)
        vars(twin).update(changes)
        return twin

    # --- as arrays ------------------------------------------------------------------------

    _is_believed = False
    announced: ClassVar[Announced | None] = None  # of the market itself; believers have their own

    @cached_property
    def location(self) -> NDArray[np.int64]:
        """(R,) row of `locations` where each row of clients is."""
        return _places(self.location_places, self.clients["location"])

    @cached_property
    def bitrate_mbps(self) -> NDArray[np.float64]:
        """(R,) of each client."""
        return self.clients["bitrate_kbps"].to_numpy(float) / 1000

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """(R,) number of clients."""
        return self.clients["clients"].to_numpy(np.int64)

    @cached_property
    def groups(self) -> Groups:
        """Clients that differ in nothing that matters to the broker's objective."""
        return Groups.of(self.location, self.bitrate_mbps, self.count, self.shares.of_row)

    @cached_property
    def shares(self) -> restrictions.Shares:
        """Clients by the rules of `pinned` and `forbidden` that name them."""
        return restrictions.shares(self.clients, self.clusters, self.pinned, self.forbidden)

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """(G, C) True where a cluster may serve a group: on offer there, and no rule is against it."""
        groups = self.groups
        return self.shares.allowed(self.offered[groups.location], groups.share)

    @cached_property
    def demand_mbps(self) -> NDArray[np.float64]:
        """(L,) traffic that the clients of each location want."""
        traffic = self.bitrate_mbps * self.count
        return np.bincount(self.location, weights=traffic, minlength=len(self.locations)).astype(float)

    @cached_property
    def location_places(self) -> pd.Index:
        """Turns names of locations into rows."""
        places: pd.Index = pd.Index(self.locations["location"])
        return places

    @cached_property
    def cluster_places(self) -> pd.Index:
        """Turns names of clusters into rows."""
        places: pd.Index = pd.Index(self.clusters["cluster"])
        return places

    @cached_property
    def cluster_location(self) -> NDArray[np.int64]:
        """(C,) row of `locations` where each cluster is."""
        return _places(self.location_places, self.clusters["location"])

    @cached_property
    def cdn_names(self) -> list[str]:
        """The CDNs in the order of their first clusters."""
        return [str(name) for name in pd.unique(self.clusters["cdn"])]

    @cached_property
    def cdn(self) -> NDArray[np.int64]:
        """(C,) place in `cdn_names` of each cluster's CDN."""
        return _places(pd.Index(self.cdn_names), self.clusters["cdn"])

    @cached_property
    def capacity_mbps(self) -> NDArray[np.float64]:
        """(C,)"""
        return self.clusters["capacity_mbps"].to_numpy(float)

    @cached_property
    def background_mbps(self) -> NDArray[np.float64]:
        """(C,) traffic that is not this broker's."""
        return self.clusters["background_mbps"].to_numpy(float)

    @cached_property
    def free_mbps(self) -> NDArray[np.float64]:
        """(C,) capacity that the background leaves."""
        return np.clip(self.capacity_mbps - self.background_mbps, 0.0, None)

    @cached_property
    def guessed_mbps(self) -> NDArray[np.float64]:
        """(C,) the capacity that a broker takes each cluster to have without being told: its CDN's median."""
        by_cdn = self.clusters.groupby("cdn")["capacity_mbps"]
        return by_cdn.transform("median").to_numpy(float)

    @cached_property
    def unit_cost(self) -> NDArray[np.float64]:
        """(C,) what a cluster costs its CDN: bandwidth and co-location."""
        bandwidth, colocation = (
            self.clusters[name].to_numpy(float) for name in ("bandwidth_cost", "colocation_cost")
        )
        total: NDArray[np.float64] = bandwidth + colocation
        return total

    @cached_property
    def distance_km(self) -> NDArray[np.float64]:
        """(L, C) great circle from clients to clusters."""
        latitude = self.locations["latitude"].to_numpy(float)
        longitude = self.locations["longitude"].to_numpy(float)
        at = self.cluster_location
        return geography.distance_km(latitude, longitude, latitude[at], longitude[at])

    @cached_property
    def offered(self) -> NDArray[np.bool_]:
        """(L, C) True where a cluster is on offer to a location."""
        return self.bid_matrices[0]

    @cached_property
    def score(self) -> NDArray[np.float64]:
        """(L, C) smaller is better; what is missing by regression on distance, per location."""
        known = np.full((len(self.locations), len(self.clusters)), np.nan)
        if self.scores is not None:
            known[self._pairs(self.scores)] = self.scores["score"].to_numpy(float)
        announced = self.bid_matrices[1]
        whole = regression.complete(known, self.distance_km)
        return whole if announced is None else np.where(np.isnan(announced), whole, announced)

    @cached_property
    def price(self) -> NDArray[np.float64]:
        """(L, C) what the broker reckons with: the price of a bid, else the cluster's cost."""
        asked = self.bid_matrices[2]
        costs = np.broadcast_to(self.unit_cost, (len(self.locations), len(self.clusters)))
        return costs if asked is None else np.where(np.isnan(asked), costs, asked)

    @cached_property
    def bid_matrices(
        self,
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Each (L, C): on offer, score announced, price asked; NaN or None where there is none."""
        shape = (len(self.locations), len(self.clusters))
        if self.bids is None:
            return np.ones(shape, dtype=bool), None, None
        pairs = self._pairs(self.bids)
        offered = np.zeros(shape, dtype=bool)
        offered[pairs] = True
        told: list[NDArray[np.float64] | None] = []
        for column in ("score", "price"):
            if column not in self.bids:
                told.append(None)
                continue
            matrix = np.full(shape, np.nan)
            matrix[pairs] = self.bids[column].to_numpy(float)
            told.append(matrix)
        return offered, told[0], told[1]

    @cached_property
    def contract_price(self) -> NDArray[np.float64]:
        """(L, D) flat price of each CDN for the clients of each location.

        A CDN without a contract has its average cost if all clients were its own (3.5.1); one with
        contracts, but none where the clients are, has no price there: NaN.
        """
        price = np.full((len(self.locations), len(self.cdn_names)), np.nan)
        given = self.contracts
        with_any = set() if given is None else set(given["cdn"])
        derived = self.derived_price
        for place, name in enumerate(self.cdn_names):
            if given is None or name not in with_any:
                price[:, place] = derived[place]
                continue
            own = given[given["cdn"] == name].set_index("region")["price"]
            for region in (self._world, self._continent, self._country):
                found = own.reindex(region).to_numpy(float)
                price[:, place] = np.where(np.isnan(found), price[:, place], found)
        return price

    @cached_property
    def derived_price(self) -> NDArray[np.float64]:
        """(D,) average cost of each CDN if it were offered all of the clients."""
        first = matching.ranked(self.score, self.unit_cost, self.cdn, self.bid_matrices[0], bids=1)
        price = np.zeros(len(self.cdn_names))
        for place in range(len(price)):
            mine = np.flatnonzero(self.cdn == place)
            own = first[:, mine]
            served = own.any(axis=1) & (self.demand_mbps > 0)
            cost = self.unit_cost[mine][own.argmax(axis=1)]
            demand = self.demand_mbps[served]
            price[place] = (
                float(cost[served] @ demand / demand.sum())
                if demand.sum() > 0
                else float(self.unit_cost[mine].mean())
            )
        return price

    @property
    def commitment_mbps(self) -> NDArray[np.float64]:
        """(D,) traffic that is paid for in any case, by CDN."""
        if self.contracts is None:
            return np.zeros(len(self.cdn_names))
        by_cdn = self.contracts.groupby("cdn")["commitment_mbps"].sum()
        return by_cdn.reindex(self.cdn_names).fillna(0.0).to_numpy(float)

    @property
    def country(self) -> NDArray[np.object_]:
        """(L,) of each location."""
        return self.locations["country"].to_numpy(object)

    @property
    def _country(self) -> list[str]:
        # a country whose code is a continent's too (Namibia) cannot be told from it
        codes = geography.CONTINENTS
        return [name if name not in codes else "" for name in self.locations["country"]]

    @property
    def _continent(self) -> list[str]:
        return [geography.continents()[name] for name in self.locations["country"]]

    @property
    def _world(self) -> list[str]:
        return [geography.WORLD] * len(self.locations)

    def _pairs(self, frame: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _places(self.location_places, frame["location"]), _places(
            self.cluster_places, frame["cluster"]
        )

    def _bids_table(self) -> pd.DataFrame:
        place, cluster = np.nonzero(self.offered)
        columns = {
            "location": self.locations["location"].to_numpy()[place],
            "cluster": self.clusters["cluster"].to_numpy()[cluster],
            "score": self.score[place, cluster],
            "price": self.price[place, cluster],
        }
        return pd.DataFrame(columns)

    # --- validation -----------------------------------------------------------------------

    def _unknown_names(self) -> Iterator[str]:
        cdns = set(self.clusters["cdn"])
        known = {
            "location": set(self.locations["location"]),
            "cluster": set(self.clusters["cluster"]),
            "cdn": cdns,
            "country": set(geography.continents()),
            "region": {geography.WORLD, *geography.CONTINENTS, *geography.continents()},
        }
        what = {
            "location": "no location of the problem",
            "cluster": "no cluster of the problem",
            "cdn": "no CDN of the problem",
            "country": "no country's code (ISO 3166, two letters)",
            "region": "no region: a country's code, a continent's, or world",
        }
        named = {
            "clients": ("location",),
            "locations": ("country",),
            "clusters": ("location",),
            "scores": ("location", "cluster"),
            "contracts": ("cdn", "region"),
            "bids": ("location", "cluster"),
        }
        for table, columns in named.items():
            frame: pd.DataFrame | None = getattr(self, table)
            if frame is None:
                continue
            for column in columns:
                yield from strangers(frame, table, column, known[column], what[column])

    def _without_an_offer(self) -> Iterator[str]:
        if self.bids is None:
            return
        lost = np.flatnonzero((self.demand_mbps > 0) & ~self.offered.any(axis=1)).tolist()
        faults = [
            f"{file_name(self.bids, 'bids')}: no cluster is on offer to location "
            f"'{self.locations['location'].iloc[place]}', which has clients"
            for place in lost
        ]
        yield from few(faults, file_name(self.bids, "bids"), "are missing for locations with clients")

    def _without_a_cluster(self) -> Iterator[str]:
        for which in ("pinned", "forbidden"):
            table: pd.DataFrame | None = getattr(self, which)
            if table is not None:
                yield from restrictions.faults(which, table, self.clients, self.clusters)
        yield from restrictions.hopeless(
            self.shares, self.offered, self.clients, self.location, self.pinned, self.forbidden
        )


def _terms(frame: pd.DataFrame) -> Terms:
    frame = validate(TERMS, frame, where=frame.attrs.get("where"), first_row=frame.attrs.get("first_row", 1))
    if len(frame) != 1:
        raise InputError(f"{file_name(frame, 'terms')}: has {len(frame)} rows, must have one")
    row = frame.iloc[0]
    return Terms(
        currency=str(row["currency"]),
        cost_per=str(row["cost_per"]),
        performance_weight=float(row["performance_weight"]),
        cost_weight=float(row["cost_weight"]),
        performance_per="bit" if row["performance_per"] == "bit" else "client",
    )


def _places(index: pd.Index, names: pd.Series) -> NDArray[np.int64]:
    return index.get_indexer(pd.Index(names)).astype(np.int64)
