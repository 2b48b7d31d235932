"""Problem of system `contracts`: traffic of each window of a month, and contracts with CDNs to carry it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.notes import make_with_notes
from planner.contract.table import MAX_WINDOW, Table, choice, label, number, window
from planner.contract.tables import (
    collect_tables,
    describe_rows,
    file_name,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.contracts.problem.bills import (
    BOTH,
    IN,
    LARGER,
    METERED,
    OUT,
    Meter,
    find_bills,
    find_faults_of_bills,
    find_meters,
    find_parts,
)
from planner_models.contracts.problem.volumes import in_rates, take_off_credit
from planner_models.networks.percentile_bills import count_unbilled

MEAN, PERCENTILE, PEAK = "mean", "95th percentile", "peak"
BILLING: Final = (MEAN, PERCENTILE, PEAK)
BILLING_WORDS: Final = {
    MEAN: (
        *("average", "avg", "flat", "volume", "per gb", "usage", "mittelwert", "durchschnitt", "volumen"),
        *("moyenne", "media", "promedio"),
    ),
    PERCENTILE: (
        *("95th", "p95", "95", "95%", "95/5", "95th pct", "burstable", "percentile", "95 percentile"),
        *("95. perzentil", "95-perzentil", "perzentil", "95e centile", "95e percentile", "percentil 95"),
    ),
    PEAK: ("max", "maximum", "peak rate", "100th percentile", "spitze", "pic", "pico", "máximo"),
}
"""Words of others for what is billed."""
METERED_WORDS: Final = {
    OUT: ("outbound", "egress", "download", "tx", "to clients"),
    IN: ("inbound", "ingress", "upload", "rx", "from clients"),
    BOTH: ("in+out", "total", "sum", "both", "aggregate", "agg"),
    LARGER: ("max", "max in/out", "larger of in and out", "higher", "greater"),
}
"""Words of others for what is metered."""
MOST_WINDOWS: Final = 100_000
MOST_CONTRACTS: Final = 1_000
MOST_MBPS: Final = 1e9
LEAST_MBPS: Final = 1e-3
MOST_PRICE: Final = 1e6
LEAST_PRICE: Final = 1e-6
MOST_GB: Final = 1e15
MOST_CREDIT: Final = 1e12
OTHER_PRICES: Final = (
    *("price_per", "cost_per", "rate_per", "usd_per", "eur_per", "preis_per", "prix_per", "precio_per"),
)
CDN_NAMES: Final = (
    *("provider", "vendor", "supplier", "carrier", "network", "anbieter", "lieferant", "fournisseur"),
    *("proveedor", "fornitore"),
)
REGION_NAMES: Final = (
    *("country", "market", "geography", "geo", "location", "territory", "gebiet", "markt", "land"),
    *("région", "pays", "región", "país"),
)
OTHER_VOLUMES: Final = ("from", "over", "threshold", "tier")

TRAFFIC: Final = Table(
    name="traffic",
    other_names=(
        *("samples", "5-min samples", "usage", "demand", "volumes", "measurements", "utilization"),
        *("verkehr", "messwerte", "trafic", "tráfico", "mesures"),
    ),
    about="traffic of the clients of a region in one window; all windows have the same length",
    columns={
        "window": window(
            "number of the window, such as 1, 2, 3, or its time; a window without rows is left out",
            other_names=(
                *("time", "timestamp", "date", "datetime", "date time", "start", "interval", "period"),
                *("zeit", "zeitstempel", "zeitpunkt", "datum", "horodatage", "fecha"),
            ),
        ),
        "region": label("region of the clients, such as a country", other_names=REGION_NAMES),
        "traffic_mbps": number(
            "traffic that CDNs must carry, Mbit/s",
            at_least=0,
            at_most=MOST_MBPS,
            least=LEAST_MBPS,
            optional=True,
            may_be_blank=True,
            other_names=("rate", "load", "bandwidth"),
        ),
        "traffic_in_mbps": number(
            "traffic from the clients to the CDNs, Mbit/s, which follows the split of traffic_mbps to them",
            at_least=0,
            at_most=MOST_MBPS,
            least=LEAST_MBPS,
            optional=True,
        ),
        "traffic_gb": number(
            "in place of traffic_mbps, data in the window, GB",
            at_least=0,
            at_most=MOST_GB,
            optional=True,
            may_be_blank=True,
            counts_by_1024=True,
            other_names=("volume", "data", "usage"),
        ),
    },
    key=("window", "region"),
)
CONTRACTS: Final = Table(
    name="contracts",
    other_names=(
        *("terms", "prices", "price list", "agreements", "cdns", "rates", "rate card", "tariffs", "vendors"),
        *("verträge", "preise", "tarife", "contrats", "tarifs", "contratos", "tarifas"),
    ),
    about="terms on which a CDN carries traffic of a region; each contract has a bill of its own",
    columns={
        "cdn": label("CDN", other_names=CDN_NAMES),
        "region": label("region of the clients", other_names=REGION_NAMES),
        "billing": choice(
            "traffic that is billed: the mean, the 95th percentile or the peak of the windows", BILLING,
            other_names=(
                *("model", "billing model", "method", "charging", "metering", "basis", "abrechnung"),
                *("facturation", "facturación"),
            ),
            other_words=BILLING_WORDS,
        ),
        "price_per_mbps": number(
            "price of a billed Mbit/s for all windows, such as a month", at_least=0, at_most=MOST_PRICE,
            least=LEAST_PRICE, optional=True, may_be_blank=True, other_names=OTHER_PRICES,
        ),
        "price_per_gb": number(
            "in place of price_per_mbps, price of a GB where the mean is billed", at_least=0,
            at_most=MOST_PRICE, optional=True, may_be_blank=True, counts_by_1024=True,
            other_names=OTHER_PRICES,
        ),
        "capacity_mbps": number(
            "most traffic that it carries at a time, Mbit/s", at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS,
            other_names=("port", "port size", "limit"),
        ),
        "commitment_mbps": number(
            "traffic that is paid for in any case, Mbit/s",
            at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS, optional=True, default=0.0,
        ),
        "commitment_gb": number(
            "in place of commitment_mbps, data that is paid for in any case, GB", at_least=0,
            at_most=MOST_GB, optional=True, may_be_blank=True, counts_by_1024=True,
        ),
        "bill": label(
            "name of the bill that it is on, together with others of the CDN; blank: a bill of its own",
            optional=True, may_be_blank=True, other_names=("billing group", "invoice", "rechnung"),
        ),
        "metered": choice(
            "traffic that is billed: out, to the clients; in; both together in each window; or that of the "
            "larger volume; blank: out", METERED, optional=True, may_be_blank=True,
            other_names=("direction", "traffic direction", "richtung"),
            other_words=METERED_WORDS,
        ),
        "burst_price_per_mbps": number(
            "price of a billed Mbit/s above the commitment; without it, that of the others", at_least=0,
            at_most=MOST_PRICE, least=LEAST_PRICE, optional=True, may_be_blank=True,
        ),
        "burst_price_per_gb": number(
            "in place of burst_price_per_mbps, price of a GB above the commitment where the mean is billed",
            at_least=0, at_most=MOST_PRICE, optional=True, may_be_blank=True, counts_by_1024=True,
        ),
        "credit": number(
            "amount that is taken off the bill, down to 0, in the currency of the prices", at_least=0,
            at_most=MOST_CREDIT, optional=True, may_be_blank=True,
            other_names=("credits", "rebate", "sla credit", "gutschrift", "avoir"),
        ),
        "first_window": number(
            "number of the first window in which the contract is in force; blank: the first of all",
            at_least=0, at_most=MAX_WINDOW, whole=True, optional=True, may_be_blank=True,
        ),
        "last_window": number(
            "number of the last window in which the contract is in force; blank: the last of all",
            at_least=0, at_most=MAX_WINDOW, whole=True, optional=True, may_be_blank=True,
        ),
        "min_share": number(
            "least share of the region's traffic in each window", at_least=0, at_most=1, optional=True,
            default=0.0, share=True,
        ),
        "max_share": number(
            "largest share of the region's traffic in each window", more_than=0, at_most=1, optional=True,
            default=1.0, share=True,
        ),
    },
    key=("cdn", "region"),
)  # fmt: skip
TIERS: Final = Table(
    name="tiers",
    other_names=("price tiers", "volume tiers", "discounts", "volume discounts"),
    about="price of billed traffic above a volume; below the first tier the contract's price applies",
    columns={
        "cdn": label("CDN of the contract", other_names=CDN_NAMES),
        "region": label("region of the contract", other_names=REGION_NAMES),
        "above_mbps": number(
            "billed traffic from which the price applies, Mbit/s", more_than=0, at_most=MOST_MBPS,
            least=LEAST_MBPS, optional=True, may_be_blank=True, other_names=OTHER_VOLUMES,
        ),
        "above_gb": number(
            "in place of above_mbps, data from which the price applies, GB", more_than=0, at_most=MOST_GB,
            optional=True, may_be_blank=True, counts_by_1024=True, other_names=OTHER_VOLUMES,
        ),
        "price_per_mbps": number(
            "price of a billed Mbit/s above that", at_least=0, at_most=MOST_PRICE, least=LEAST_PRICE,
            optional=True, may_be_blank=True, other_names=OTHER_PRICES,
        ),
        "price_per_gb": number(
            "in place of price_per_mbps, price of a GB above that", at_least=0, at_most=MOST_PRICE,
            optional=True, may_be_blank=True, counts_by_1024=True, other_names=OTHER_PRICES,
        ),
    },
    key=("cdn", "region", "above_mbps", "above_gb"),
    may_be_empty=True,
)  # fmt: skip
SWITCHING: Final = Table(
    name="switching",
    about="limit of the traffic that may change its CDN between consecutive windows; regions without a "
    "row have none",
    columns={
        "region": label("region of the clients", other_names=REGION_NAMES),
        "max_moved_percent": number(
            "most traffic that changes its CDN from a window to the next, beyond what demand changes, in "
            "percent of the lower traffic of the two", at_least=0, at_most=100,
        ),
    },
    key=("region",),
    may_be_empty=True,
)  # fmt: skip
TABLES: Final = (TRAFFIC, CONTRACTS, TIERS, SWITCHING)
OPTIONAL_TABLES: Final = ("tiers", "switching")


@dataclass(frozen=True, kw_only=True, eq=False)
class Month:
    """Traffic of regions over windows, and the contracts that may carry it.

    traffic    window, region, traffic_mbps, and optionally traffic_in_mbps; every region has the same windows
    contracts  cdn, region, billing, price_per_mbps, capacity_mbps, commitment_mbps, min_share, max_share, and
               optionally bill, metered, burst_price_per_mbps, credit, first_window, last_window
    tiers      cdn, region, above_mbps, price_per_mbps; None: one price each
    switching  region, max_moved_percent; None: traffic may change its CDN freely

    Volumes and their prices, in GB, are turned into rates and prices of rates. Windows are those that have
    rows, in the order of their numbers or times.

    Below, W windows, R regions and N contracts; arrays refer to them by row.

    raises   InputError with every fault
    """

    traffic: pd.DataFrame
    contracts: pd.DataFrame
    tiers: pd.DataFrame | None = None
    switching: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            tables, faults = in_rates({table.name: getattr(self, table.name) for table in TABLES})
        if not faults:
            for name, frame in tables.items():
                object.__setattr__(self, name, frame)
            faults += self._find_faults()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Month:
        """Return the problem in its tables."""
        inputs = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        return make_with_notes(lambda: cls(**inputs))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of windows, regions, CDNs and contracts."""
        return {
            "windows": self.windows,
            "regions": len(self.regions),
            "CDNs": int(self.contracts["cdn"].nunique()),
            "contracts": len(self.contracts),
        }

    def with_contracts(self, **columns: Any) -> Month:
        """Return the problem with other columns of `contracts`."""
        return replace(self, contracts=self.contracts.assign(**columns))

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def window_numbers(self) -> Floats:
        """(W,) numbers of the windows in table `traffic`, ascending."""
        return np.unique(self.traffic["window"].to_numpy(float))

    @property
    def windows(self) -> int:
        """Number of windows."""
        return len(self.window_numbers)

    @cached_property
    def regions(self) -> list[str]:
        """(R,) names of the regions, in the order of their first traffic."""
        return [str(name) for name in pd.unique(self.traffic["region"].astype(str))]

    @cached_property
    def traffic_mbps(self) -> Floats:
        """(W, R) traffic of each window and region."""
        return self._by_window("traffic_mbps")

    @cached_property
    def in_ratio(self) -> Floats:
        """(W, R) traffic from the clients for each Mbit/s to them; 0 where there is none."""
        if "traffic_in_mbps" not in self.traffic:
            return np.zeros_like(self.traffic_mbps)
        into = self._by_window("traffic_in_mbps")
        ratio: Floats = np.divide(
            into, self.traffic_mbps, out=np.zeros_like(into), where=self.traffic_mbps > 0
        )
        return ratio

    def _by_window(self, column: str) -> Floats:
        """Return a column of `traffic` by window and region, (W, R)."""
        matrix = np.zeros((self.windows, len(self.regions)))
        region = pd.Index(self.regions).get_indexer(pd.Index(self.traffic["region"].astype(str)))
        row = np.searchsorted(self.window_numbers, self.traffic["window"].to_numpy(float))
        matrix[row, region] = self.traffic[column].to_numpy(float)
        return matrix

    @cached_property
    def names(self) -> list[str]:
        """(N,) names of the contracts: the CDN, with its region where there are several."""
        if len(self.regions) == 1:
            return [str(name) for name in self.contracts["cdn"]]
        pairs = zip(self.contracts["cdn"], self.contracts["region"], strict=True)
        return [f"{cdn} in {region}" for cdn, region in pairs]

    @cached_property
    def region(self) -> Ints:
        """(N,) region of each contract."""
        return pd.Index(self.regions).get_indexer(pd.Index(self.contracts["region"])).astype(np.int64)

    @cached_property
    def billing(self) -> list[str]:
        """(N,) billing rule of each contract."""
        return [str(rule) for rule in self.contracts["billing"]]

    @cached_property
    def metered(self) -> list[str]:
        """(N,) traffic that each contract meters."""
        if "metered" not in self.contracts:
            return [OUT] * len(self.contracts)
        return [str(kind) or OUT for kind in self.contracts["metered"]]

    @cached_property
    def bill(self) -> Ints:
        """(N,) bill of each contract, as a position in `bills`."""
        return find_bills(self)[0]

    @cached_property
    def bills(self) -> list[str]:
        """(B,) names of the bills: of the contract, where it has a bill of its own."""
        return find_bills(self)[1]

    @cached_property
    def meters(self) -> list[Meter]:
        """(M,) meters of all bills."""
        return find_meters(self)

    @cached_property
    def parts(self) -> list[Ints]:
        """Regions that are planned together, since contracts of them are on one bill."""
        return find_parts(self)

    def is_plain(self, area: Ints) -> bool:
        """Return whether a part is one region with contracts that meter the traffic out."""
        rows = np.isin(self.region, area)
        return len(area) == 1 and all(self.metered[row] == OUT for row in np.flatnonzero(rows).tolist())

    def column(self, name: str) -> Floats:
        """Return a column of numbers of `contracts`, (N,)."""
        return self.contracts[name].to_numpy(float)

    @cached_property
    def free_windows(self) -> int:
        """Windows with traffic not billed by the 95th percentile: the busiest ones of a contract."""
        return int(count_unbilled(self.windows))

    @cached_property
    def in_force(self) -> Bools:
        """(W, N) whether each contract is in force in each window."""
        first = self._blank_column("first_window", -np.inf)
        last = self._blank_column("last_window", np.inf)
        numbers = self.window_numbers[:, None]
        within: Bools = (numbers >= first) & (numbers <= last)
        return within

    @cached_property
    def unbilled_windows(self) -> Ints:
        """(N,) busiest windows in force of each contract that its billing leaves out."""
        free = count_unbilled(self.in_force.sum(axis=0))
        is_percentile = np.array([rule == PERCENTILE for rule in self.billing], dtype=bool)
        return np.where(is_percentile, free, 0).astype(np.int64)

    def _blank_column(self, name: str, value: float) -> Floats:
        """Return an optional column of `contracts`, (N,), with a value where it has none."""
        if name not in self.contracts:
            return np.full(len(self.contracts), value)
        column = self.column(name)
        return np.where(np.isnan(column), value, column)

    @cached_property
    def price_steps(self) -> list[tuple[Floats, Floats]]:
        """(N,) volumes from which prices apply, from 0 and ascending, and these prices, as they are paid.

        Prices of a rate count for the share of the windows in which the contract is in force, and a credit
        makes the first volumes free.
        """
        share = np.where([rule == MEAN for rule in self.billing], 1.0, self.in_force.mean(axis=0))
        credit = self._blank_column("credit", 0.0)
        return [
            take_off_credit(volumes, prices * area, amount)
            for (volumes, prices), area, amount in zip(
                self.listed_prices, share.tolist(), credit.tolist(), strict=True
            )
        ]

    @cached_property
    def listed_prices(self) -> list[tuple[Floats, Floats]]:
        """(N,) volumes from which prices apply, from 0 and ascending, and the prices of the tables."""
        commitment, burst = self.column("commitment_mbps"), self._blank_column("burst_price_per_mbps", np.nan)
        volumes = [[0.0] for _ in self.names]
        prices = [[price] for price in self.column("price_per_mbps").tolist()]
        for row in np.flatnonzero(~np.isnan(burst)).tolist():
            if commitment[row] > 0:
                volumes[row].append(float(commitment[row]))
                prices[row].append(float(burst[row]))
            else:
                prices[row] = [float(burst[row])]
        if self.tiers is not None and len(self.tiers):
            bills = self.bill[self.find_contracts(self.tiers)]
            frame = self.tiers.assign(bill=bills).sort_values(["bill", "above_mbps"], kind="stable")
            for bill, above, price in zip(
                frame["bill"], frame["above_mbps"], frame["price_per_mbps"], strict=True
            ):
                for row in np.flatnonzero(self.bill == bill).tolist():
                    volumes[row].append(float(above))
                    prices[row].append(float(price))
        return [(np.array(v), np.array(p)) for v, p in zip(volumes, prices, strict=True)]

    def find_contracts(self, frame: pd.DataFrame) -> Ints:
        """Return the rows of `contracts` that columns `cdn` and `region` of a table name; -1 for none."""
        index = pd.MultiIndex.from_frame(self.contracts[["cdn", "region"]].astype(str))
        keys = pd.MultiIndex.from_frame(frame[["cdn", "region"]].astype(str))
        return index.get_indexer(keys).astype(np.int64)

    @cached_property
    def capacity_mbps(self) -> Floats:
        """(W, N) traffic out that each contract may carry in each window: 0 where it is not in force.

        The capacity is one for each direction.
        """
        ratio = np.maximum(self.in_ratio, 1.0)[:, self.region]
        capacity: Floats = np.where(self.in_force, self.column("capacity_mbps") / ratio, 0.0)
        return capacity

    @cached_property
    def most_mbps(self) -> Floats:
        """(W, N) most traffic of each contract in each window, by its capacity and largest share."""
        upper: Floats = np.minimum(
            self.traffic_mbps[:, self.region] * self.column("max_share"), self.capacity_mbps
        )
        return upper

    @cached_property
    def least_mbps(self) -> Floats:
        """(W, N) least traffic of each contract in each window, by its least share, within the most."""
        lower: Floats = np.minimum(
            self.traffic_mbps[:, self.region] * self.column("min_share"), self.most_mbps
        )
        return lower

    @cached_property
    def servable_mbps(self) -> Floats:
        """(W, R) traffic that contracts can carry: all of it, or the most of all contracts together."""
        total_capacity = np.zeros_like(self.traffic_mbps)
        np.add.at(total_capacity.T, self.region, self.most_mbps.T)
        servable: Floats = np.minimum(self.traffic_mbps, total_capacity)
        return servable

    @cached_property
    def moved_share(self) -> Floats:
        """(R,) share of a region's traffic that may change its CDN between two windows; 1: no limit."""
        share = np.ones(len(self.regions))
        if self.switching is not None and len(self.switching):
            rows = pd.Index(self.regions).get_indexer(pd.Index(self.switching["region"].astype(str)))
            share[rows] = self.switching["max_moved_percent"].to_numpy(float) / 100
        return share

    @cached_property
    def highest_price(self) -> float:
        """The highest price of a billed Mbit/s under any contract."""
        return max((float(prices.max()) for _, prices in self.price_steps), default=0.0)

    def describe_window(self, position: int) -> str:
        """Return the name of a window by its position: `window 7`."""
        return f"window {self.window_numbers[position]:.15g}"

    # --- validation -----------------------------------------------------------------------

    def _find_faults(self) -> Iterator[str]:
        traffic, contracts = self.traffic, self.contracts
        if len(contracts) > MOST_CONTRACTS:
            where = file_name(contracts, "contracts")
            yield f"{where}: has {len(contracts):,} rows, must have up to {MOST_CONTRACTS:,}"
        if self.windows > MOST_WINDOWS:
            where = file_name(traffic, "traffic")
            yield f"{where}: has {self.windows:,} windows, must have up to {MOST_WINDOWS:,}"
        yield from self._find_missing_windows()
        if not (traffic["traffic_mbps"].to_numpy(float) > 0).any():
            yield f"{file_name(traffic, 'traffic')}: every traffic_mbps is 0, one must be greater"
        for table in ("contracts", "switching"):
            frame = getattr(self, table)
            if frame is None:
                continue
            yield from self._find_unknown_regions(frame, table)
        lower, upper = contracts["min_share"].to_numpy(float), contracts["max_share"].to_numpy(float)
        yield from describe_rows(
            np.flatnonzero(lower > upper),
            lambda row: (
                f"{row_name(contracts, 'contracts', row)}: min_share is {lower[row]:g}, must be at most "
                f"max_share {upper[row]:g}"
            ),
            file_name(contracts, "contracts"),
            "of shares",
        )
        together = contracts.groupby("region", sort=False)["min_share"].sum()
        for name, share in together[together > 1 + 1e-9].items():
            yield (
                f"{file_name(contracts, 'contracts')}: min_share adds up to {share:.6g} in region '{name}', "
                "must be at most 1"
            )
        stray = list(self._find_stray_tiers())
        yield from stray
        yield from find_faults_of_bills(self)
        if not stray:
            yield from self._find_faulty_terms()
            yield from self._find_repeated_tiers()

    def _find_repeated_tiers(self) -> Iterator[str]:
        """Yield a fault for each tier of a bill from a volume that has one already."""
        if self.tiers is None or not len(self.tiers):
            return
        tiers = self.tiers
        bills = pd.Series(self.bill[self.find_contracts(tiers)], index=tiers.index)
        again = pd.DataFrame({"bill": bills, "above": tiers["above_mbps"]}).duplicated().to_numpy()
        yield from describe_rows(
            np.flatnonzero(again),
            lambda row: (
                f"{row_name(tiers, 'tiers', row)}: bill '{self.bills[bills.iloc[row]]}' has a price from "
                f"{tiers['above_mbps'].iloc[row]:g} Mbit/s already; write each tier of a bill once"
            ),
            file_name(tiers, "tiers"),
            "that repeat a tier of their bill",
        )

    def _find_faulty_terms(self) -> Iterator[str]:
        """Yield the faults of contracts that are never in force, or have a burst price beside tiers."""
        contracts, numbers = self.contracts, self.window_numbers
        where = file_name(contracts, "contracts")
        yield from describe_rows(
            np.flatnonzero(~self.in_force.any(axis=0)),
            lambda row: (
                f"{row_name(contracts, 'contracts', row)}: is in force in no window; first_window to "
                f"last_window must contain one of {numbers[0]:.15g} to {numbers[-1]:.15g}"
            ),
            where,
            "that are never in force",
        )
        has_burst = ~np.isnan(self._blank_column("burst_price_per_mbps", np.nan))
        if self.tiers is not None and len(self.tiers) and has_burst.any():
            with_tiers = np.isin(self.bill, self.bill[self.find_contracts(self.tiers)])
            yield from describe_rows(
                np.flatnonzero(has_burst & with_tiers),
                lambda row: (
                    f"{row_name(contracts, 'contracts', row)}: has burst_price_per_mbps and rows in table "
                    "tiers; write the burst price as a tier from the commitment"
                ),
                where,
                "with a burst price and tiers",
            )

    def _find_unknown_regions(self, frame: pd.DataFrame, table: str) -> list[str]:
        """Return the faults of a table that names regions without traffic."""
        regions = set(self.regions)
        names = frame["region"].astype(str)
        return describe_rows(
            np.flatnonzero(~names.isin(regions).to_numpy()),
            lambda row: (
                f"{row_name(frame, table, row)}: region '{names.iloc[row]}' has no traffic"
                + did_you_mean(names.iloc[row], regions)
            ),
            file_name(frame, table),
            "of unknown regions",
        )

    def _find_missing_windows(self) -> Iterator[str]:
        """Yield a fault for each region without traffic in windows that other regions have."""
        windows = self.traffic.groupby("region", sort=False, observed=True)["window"]
        faults = []
        for region, numbers in windows:
            absent = np.setdiff1d(self.window_numbers, numbers.to_numpy(float))
            if len(absent):
                shown = ", ".join(f"{number:.15g}" for number in absent[:3])
                more = " ..." if len(absent) > 3 else ""
                faults.append(
                    f"{file_name(self.traffic, 'traffic')}: region '{region}' has no row in {len(absent):,} "
                    f"of {self.windows:,} windows ({shown}{more}): write 0 where it has no traffic, or leave "
                    "these windows out of all regions"
                )
        yield from shorten_faults(faults, file_name(self.traffic, "traffic"), "of regions without rows")

    def _find_stray_tiers(self) -> Iterator[str]:
        tiers = self.tiers
        if tiers is None or not len(tiers):
            return
        cdns = set(self.contracts["cdn"].astype(str))
        yield from describe_rows(
            np.flatnonzero(self.find_contracts(tiers) < 0),
            lambda row: (
                f"{row_name(tiers, 'tiers', row)}: there is no contract of cdn '{tiers['cdn'].iloc[row]}' "
                f"in region '{tiers['region'].iloc[row]}'" + did_you_mean(str(tiers["cdn"].iloc[row]), cdns)
            ),
            file_name(tiers, "tiers"),
            "of unknown contracts",
        )
