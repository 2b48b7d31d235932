"""Table 3.1 and Fig. 3.4 to 3.8 of Mukerjee 2018: alternatives, costs, moves and use of CDNs in a market.

The thesis' traces are not public, so figures are of the generated market `generators.world`.

Fig. 3.11 to 3.17 of Mukerjee 2018, and the formulas of 3.7.1: which CDNs and countries profit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve
from planner.contract.targets import Study, TargetValues
from planner.options import Options
from planner_models.brokering import information
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan import metrics
from planner_models.brokering.plan.metrics import measure
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem import series
from planner_models.brokering.problem.generators import city_centric, world
from planner_models.brokering.problem.problem import Brokering

QUICK_CLIENTS: Final = 3_000
OPTIONS: Final = Options(gap=1e-2)  # a smaller gap does not change medians
SIMILAR_SCORE_RATIO: Final = 1.25  # to the best, of an alternative cluster (Table 3.1)
EXPENSIVE_SHARE: Final = 5 / 19  # of the countries: A to E of those that Fig. 3.14 to 3.16 name
PROFITS: Final = ["brokered_profit", "marketplace_profit"]
OUR_CDNS: Final = "our CDNs have no numbers: judged on those that are deployed alike"


@cache
def generated_market(quick: bool) -> Brokering:
    """Return the generated market that the figures are of; a smaller one for quick studies."""
    return world(clients=QUICK_CLIENTS, seed=1) if quick else world(seed=1)


def plan_of(observed: Brokering) -> Assignment:
    """Return the broker's plan on its observation; ValueError where there is none."""
    plan = assignment.assign(observed, method="flow", options=OPTIONS).plan
    if plan is None:
        raise ValueError("the clusters on offer have too little capacity for all clients")
    return plan


def find_table_3_1(study: Study) -> TargetValues:
    """Find the number of clients with alternative clusters of similar score."""
    shares = share_with_alternatives(generated_market(study.quick))
    mean = shares.attrs["mean"]
    values = {f"brok_t31_alt{k}": float(share) for k, share in shares.items()}
    note = "by the distributed CDN's places and scores, which are made up; nothing was fitted to it"
    return TargetValues(
        values={**values, "brok_s333_alts": mean, "brok_s333_clusters": mean + 1},
        notes=dict.fromkeys((*values, "brok_s333_alts", "brok_s333_clusters"), note),
        curves=(
            Curve(
                title="Clients with more clusters of similar score",
                frame=shares.rename_axis("alternatives").reset_index(),
                units={"percent": "%"},
                bars=True,
            ),
        ),
    )


def share_with_alternatives(problem: Brokering, *, cdn: str = "distributed", limit: int = 4) -> pd.Series:
    """Return the percentage of clients with 1, 2, ... other clusters within 25% of a CDN's best score.

    Its attribute "mean" is the mean number of such clusters over clients.

    source  Mukerjee 2018, Table 3.1
    """
    clusters = problem.cdn == problem.cdn_names.index(cdn)
    score = problem.score[:, clusters]
    alternatives = (score <= SIMILAR_SCORE_RATIO * score.min(axis=1, keepdims=True)).sum(axis=1) - 1
    clients = np.bincount(problem.location, weights=problem.count, minlength=len(score))
    shares = pd.Series(
        {k: 100 * clients[alternatives >= k].sum() / clients.sum() for k in range(1, limit + 1)},
        name="percent",
    )
    shares.attrs["mean"] = float(alternatives @ clients / clients.sum())
    return shares


def find_figure_3_4(study: Study) -> TargetValues:
    """Find the cost of countries over the average."""
    cost = country_costs(generated_market(study.quick))
    frame = cost.rename("cost").rename_axis("country").reset_index()
    return TargetValues(
        values={"brok_f34_disparity": float(cost.max() / cost.min())},
        notes={
            "brok_f34_disparity": "of the 20 largest; the range of all countries' means is a parameter, 30"
        },
        curves=(Curve(title="Cost of countries over the average", frame=frame, bars=True),),
    )


def country_costs(problem: Brokering, *, limit: int = 20) -> pd.Series:
    """Return the mean cost of clusters over that of all, by country, the most expensive first.

    source  Mukerjee 2018, Fig. 3.4
    """
    demand = pd.Series(problem.demand_mbps).groupby(problem.country.astype(str)).sum()
    countries = problem.country[problem.cluster_location].astype(str)
    cost = pd.Series(problem.unit_cost).groupby(countries).mean()
    largest = demand[demand.index.isin(cost.index)].nlargest(limit).index
    over_all = cost[largest] / float(problem.unit_cost.mean())
    return over_all.sort_values(ascending=False, kind="stable")


def find_figure_3_5(study: Study) -> TargetValues:
    """Find the traffic that moves between CDNs from round to round of a day."""
    day = series.Day(problem=generated_market(study.quick), windows=4 if study.quick else 12)
    flat = moved_percent((problem for _, problem in day), information.brokered)
    bids = moved_percent((problem for _, problem in day), information.marketplace)
    note = (
        "theirs are sessions that a real broker moved in 5 s, by rules of its own; ours is traffic that the "
        f"program moves as demand changes over a day ({bids.mean():.1f}% with bids)"
    )
    values = {"brok_f35_avg": flat.mean(), "brok_f35_low": flat.min(), "brok_f35_high": flat.max()}
    frame = pd.DataFrame({"round": range(1, len(flat) + 1), "brokered": flat, "marketplace": bids})
    return TargetValues(
        values={name: float(value) for name, value in values.items()},
        notes=dict.fromkeys(values, note),
        curves=(
            Curve(
                title="Traffic moved between CDNs from round to round",
                frame=frame,
                units={"brokered": "%", "marketplace": "%"},
            ),
        ),
    )


def moved_percent(problems: Iterable[Brokering], observed: Callable[[Brokering], Brokering]) -> pd.Series:
    """Return the percentage of traffic that changes its CDN from each window to the next (Fig. 3.5)."""
    previous: Assignment | None = None
    shares = []
    for problem in problems:
        plan = plan_of(observed(problem))
        if previous is not None:
            shares.append(measure(problem, plan, previous)["moved_between_cdns_percent"] or 0.0)
        previous = plan
    return pd.Series(shares, name="moved_percent")


def find_figure_3_6(study: Study) -> TargetValues:
    """Find the use of CDNs by size of city."""
    use = use_by_city_size(generated_market(study.quick))
    central = use[use.index.str.startswith("central")].sum().to_numpy(float)
    distributed = use[use.index == "distributed"].sum().to_numpy(float)
    sentence = "{}: {:.0f}% in the smaller half of cities, {:.0f}% in the larger"
    return TargetValues(
        values={
            "brok_f36_a": bool(distributed[0] > distributed[1]),
            "brok_f36_bc": bool(abs(central[0] / max(central[1], 1e-9) - 1) < 0.15),
        },
        notes={
            "brok_f36_a": sentence.format("the distributed CDN", *distributed),
            "brok_f36_bc": sentence.format("the central CDNs together", *central),
        },
        curves=(Curve(title="Use by size of city", frame=use.rename_axis("cdn").reset_index(), bars=True),),
    )


def use_by_city_size(problem: Brokering) -> pd.DataFrame:
    """Return the percentage of clients of each CDN under flat prices, in smaller and larger cities.

    The larger cities are the half of the cities with clients that has more of them.

    source  Mukerjee 2018, Fig. 3.6
    """
    plan = plan_of(information.brokered(problem)).assignments
    by_city = plan.groupby("location")["clients"].sum()
    large = (plan["location"].map(by_city) > by_city.median()).to_numpy(bool)
    owner = plan["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    use = {}
    for name, rows in (("smaller", ~large), ("larger", large)):
        clients = plan["clients"][rows].groupby(owner[rows]).sum().reindex(problem.cdn_names).fillna(0.0)
        use[name] = 100 * clients / max(float(clients.sum()), 1e-12)
    return pd.DataFrame(use)


def find_figure_3_8(study: Study) -> TargetValues:
    """Find the use of CDNs by country."""
    use = use_by_country(generated_market(study.quick))
    return TargetValues(
        values={},
        notes={"brok_f38_b_low": "a number of a country in random order: which one it is, is not printed"},
        curves=(
            Curve(title="Use of CDNs by country", frame=use.rename_axis("country").reset_index(), bars=True),
        ),
    )


def use_by_country(problem: Brokering, *, min_clients: int = 100) -> pd.DataFrame:
    """Return the percentage of clients that each CDN serves, by country of enough clients (Fig. 3.8)."""
    plan = plan_of(information.brokered(problem)).assignments
    country = plan["location"].map(problem.locations.set_index("location")["country"])
    owner = plan["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    clients = plan.groupby([country, owner])["clients"].sum().unstack(fill_value=0)  # noqa: PD010
    clients = clients[clients.sum(axis=1) >= min_clients]
    return 100 * clients.div(clients.sum(axis=1), axis=0)


def profits(problem: Brokering) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return traffic and profit under flat prices and under bids, by CDN and by country (Fig. 3.11 to 3.17).

    Columns: brokered_mbps, brokered_price_to_cost, brokered_profit, marketplace_mbps,
    marketplace_profit; by CDN also contract_price, by country also cost (mean of its clusters).
    """
    flat, bids = plan_of(information.brokered(problem)), plan_of(information.marketplace(problem))
    names = {"traffic_mbps": "mbps", "price_to_cost": "price_to_cost"}
    tables_of = (
        ("brokered_", flat, {**names, "profit_at_flat_price": "profit"}),
        ("marketplace_", bids, {"traffic_mbps": "mbps", "profit_at_cluster_price": "profit"}),
    )
    frames = []
    for by, key in ((metrics.profit_by_cdn, "cdn"), (metrics.profit_by_country, "country")):
        tables = [(of, by(problem, plan).set_index(key), to) for of, plan, to in tables_of]
        parts = [table[list(to)].rename(columns=to).add_prefix(of) for of, table, to in tables]
        frames.append(pd.concat(parts, axis=1))
    by_cdn, by_country = frames
    by_cdn["contract_price"] = problem.derived_price
    countries = problem.country[problem.cluster_location].astype(str)
    by_country["cost"] = pd.Series(problem.unit_cost).groupby(countries).mean()
    return by_cdn, by_country


def _profit_curve(title: str, table: pd.DataFrame) -> Curve:
    units = dict.fromkeys(PROFITS, "USD/h")
    return Curve(title=title, frame=table[PROFITS].reset_index(), units=units, bars=True)


@cache
def _profits_of_generated_market(quick: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    return profits(generated_market(quick))


def find_figures_3_11_to_3_13(study: Study) -> TargetValues:
    """Find the CDNs that profit under flat prices, and under bids."""
    by_cdn, _ = _profits_of_generated_market(study.quick)
    profitable = by_cdn["brokered_profit"] >= 0
    share, bid_share = (
        by_cdn[f"{of}_mbps"] / by_cdn[f"{of}_mbps"].sum() for of in ("brokered", "marketplace")
    )
    cheap = (by_cdn["brokered_price_to_cost"] >= 1) & (share > 0) & (share < 1 / len(by_cdn))
    distributed = "distributed"
    preferred = (by_cdn["contract_price"] < by_cdn.loc[distributed, "contract_price"]) & (
        share > share[distributed]
    )
    profit_at_bids = by_cdn["marketplace_profit"]
    is_central = by_cdn.index[profitable].str.startswith("central")
    return TargetValues(
        values={
            "brok_f311_result": bool(
                profitable.sum() < len(by_cdn) / 2 and is_central.all() and profitable.any()
            ),
            "brok_f312_cdn12": bool(cheap.any()),
            "brok_f312_cdn1": bool(share[distributed] < bid_share[distributed]),
            "brok_f312_cdn11": bool(preferred.any()),
            "brok_f313_vdx": bool((profit_at_bids[by_cdn["marketplace_mbps"] > 0] > 0).all()),
        },
        notes={
            "brok_f311_result": f"{int(profitable.sum())} of {len(by_cdn)} profit: "
            + ", ".join(by_cdn.index[profitable]),
            "brok_f312_cdn12": OUR_CDNS,
            "brok_f312_cdn1": f"{OUR_CDNS}; {100 * share[distributed]:.0f}% of the traffic against "
            f"{100 * bid_share[distributed]:.0f}% with bids",
            "brok_f312_cdn11": OUR_CDNS,
        },
        curves=(
            _profit_curve("Profit of CDNs", by_cdn),
            Curve(
                title="Price over cost of CDNs, Brokered",
                frame=by_cdn[["brokered_price_to_cost"]].reset_index(),
                bars=True,
            ),
        ),
    )


def find_profit_formulas(study: Study) -> TargetValues:
    """Find both profits from each assignment's own rows."""
    problem = generated_market(study.quick)
    plan = plan_of(information.brokered(problem))
    table = metrics.profit_by_cdn(problem, plan).set_index("cdn")
    rows = plan.assignments.merge(
        problem.clusters[["cluster", "cdn", "bandwidth_cost", "colocation_cost"]], on="cluster"
    )
    gb = rows["clients"] * rows["bitrate_kbps"] / 8e6 * 3600
    cost = (gb * (rows["bandwidth_cost"] + rows["colocation_cost"])).groupby(rows["cdn"]).sum()
    price = pd.Series(problem.derived_price, index=problem.cdn_names)
    paid = gb.groupby(rows["cdn"]).sum() * price
    flat, bids = (1.2 * paid - cost).dropna(), 1.2 * cost - cost
    flat_agrees = np.allclose(table["profit_at_flat_price"][flat.index], flat)
    return TargetValues(
        values={
            "brok_eval_profit_brokered": bool(flat_agrees),
            "brok_eval_profit_vdx": bool(np.allclose(table["profit_at_cluster_price"][bids.index], bids)),
            "brok_eval_markup": 100 * (metrics.MARKUP - 1),
        }
    )


def find_figures_3_14_to_3_16(study: Study) -> TargetValues:
    """Find in which countries CDNs profit; the paper's letters run from its most expensive country down."""
    _, by_country = _profits_of_generated_market(study.quick)
    used = by_country[by_country["brokered_mbps"] > 0].sort_values("cost", ascending=False)
    count = len(used)
    expensive, cheap = used.iloc[: round(count * 10 / 19)], used.iloc[round(count * 11 / 19) :]
    every = by_country.sort_values("cost", ascending=False)
    most_expensive = every.iloc[: round(len(every) * EXPENSIVE_SHARE)]
    shares = {
        name: float(most_expensive[f"{name}_mbps"].sum() / every[f"{name}_mbps"].sum())
        for name in ("brokered", "marketplace")
    }
    losing = by_country["brokered_profit"] < 0
    bids = by_country.loc[losing & (by_country["marketplace_mbps"] > 0), "marketplace_profit"]
    losing_share = float((expensive["brokered_profit"] < 0).mean())
    profit_share = float((cheap["brokered_profit"] >= 0).mean())
    traffic_note = "of traffic in the most expensive 5 of 19 countries: {:.0f}% flat, {:.0f}% bids".format(
        *(100 * share for share in shares.values())
    )
    return TargetValues(
        values={
            "brok_f314_good": profit_share > 0.75,
            "brok_f314_bad": losing_share > 0.75,
            "brok_f315_avoid": shares["marketplace"] < shares["brokered"],
            "brok_f315_brokered": abs(shares["brokered"] / EXPENSIVE_SHARE - 1) < 0.5,
            "brok_f316_bad": bool((bids > 0).all()),
        },
        notes={
            "brok_f314_good": f"CDNs profit in {100 * profit_share:.0f}% of the cheapest 8 of 19 countries",
            "brok_f314_bad": f"CDNs lose in {100 * losing_share:.0f}% of the most expensive 10 of 19",
            "brok_f315_avoid": traffic_note,
            "brok_f315_brokered": traffic_note + "; even would be 26%",
        },
        curves=(_profit_curve("Profit by country, the most expensive first", used),),
    )


def find_figure_3_17(study: Study) -> TargetValues:
    """Find the profits of 200 CDNs of a single cluster, and of the others."""
    problem = city_centric(seed=1, **({"clients": QUICK_CLIENTS} if study.quick else {}))
    by_cdn, _ = profits(problem)
    city = by_cdn.index.str.match(r"city\d")
    cities, others = by_cdn[city], by_cdn[~city]
    losing_cdns = int((others["brokered_profit"] < 0).sum())
    idle_cdns = int((others["brokered_mbps"] == 0).sum())
    lowest_ratio = cities["brokered_price_to_cost"].min()
    return TargetValues(
        values={
            "brok_city_cdns": float(city.sum()),
            "brok_f317_city": bool(
                (cities[["brokered_profit", "marketplace_profit"]] >= -1e-9).all(axis=None)
            ),
            "brok_f317_none": losing_cdns >= len(others) / 2 and idle_cdns > 0,
        },
        notes={
            "brok_f317_city": f"the least price over cost is {lowest_ratio:.2f}",
            "brok_f317_none": f"{losing_cdns} of {len(others)} lose, {idle_cdns} get no traffic",
        },
    )
