"""Fig. 3.11 to 3.17 of Mukerjee 2018, and the formulas of 3.7.1: which CDNs and countries profit."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve
from planner.contract.targets import Study, TargetValues
from planner_models.brokering.information import observe
from planner_models.brokering.plan import profit
from planner_models.brokering.problem.generators import city_centric
from planner_models.brokering.problem.problem import Brokering
from planner_models.brokering.published.figures_3_4_to_3_8_market import (
    QUICK_CLIENTS,
    generated_market,
    plan_of,
)

EXPENSIVE_SHARE: Final = 5 / 19  # of the countries: A to E of those that Fig. 3.14 to 3.16 name
PROFITS: Final = ["brokered_profit", "marketplace_profit"]
OUR_CDNS: Final = "our CDNs have no numbers: judged on those that are deployed alike"


def profits(problem: Brokering) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return traffic and profit under flat prices and under bids, by CDN and by country (Fig. 3.11 to 3.17).

    Columns: brokered_mbps, brokered_price_to_cost, brokered_profit, marketplace_mbps,
    marketplace_profit; by CDN also contract_price, by country also cost (mean of its clusters).
    """
    flat, bids = plan_of(observe.brokered(problem)), plan_of(observe.marketplace(problem))
    names = {"traffic_mbps": "mbps", "price_to_cost": "price_to_cost"}
    tables_of = (
        ("brokered_", flat, {**names, "profit_at_flat_price": "profit"}),
        ("marketplace_", bids, {"traffic_mbps": "mbps", "profit_at_cluster_price": "profit"}),
    )
    frames = []
    for by, key in ((profit.profit_by_cdn, "cdn"), (profit.profit_by_country, "country")):
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
    plan = plan_of(observe.brokered(problem))
    table = profit.profit_by_cdn(problem, plan).set_index("cdn")
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
            "brok_eval_markup": 100 * (profit.MARKUP - 1),
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
