"""Values of Mukerjee 2018, chapter 3, that look into a market: what is believed, said, earned and moved."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.drawing import Curve
from planner.options import Options
from planner.published import Found, Study
from planner_models.brokering import figures, market, profit, protocol, sees, several, windows
from planner_models.brokering.formulation import formulation
from planner_models.brokering.generate import city_centric, world
from planner_models.brokering.measure import measure
from planner_models.brokering.problem import Brokering

QUICK_CLIENTS: Final = 3_000
OUR_CDNS: Final = "our CDNs have no numbers: said of those that are deployed like that"


@cache
def _world(quick: bool) -> Brokering:
    return world(clients=QUICK_CLIENTS, seed=1) if quick else world(seed=1)


@cache
def _profits(quick: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    return figures.profits(_world(quick))


def table_3_1(study: Study) -> Found:
    shares = figures.alternatives(_world(study.quick))
    mean = shares.attrs["mean"]
    values = {f"brok_t31_alt{k}": float(share) for k, share in shares.items()}
    why = "by the distributed CDN's places and scores, which are made up; nothing was fitted to it"
    return Found(
        values={**values, "brok_s333_alts": mean, "brok_s333_clusters": mean + 1},
        notes=dict.fromkeys((*values, "brok_s333_alts", "brok_s333_clusters"), why),
        curves=(
            Curve(
                title="Clients with more clusters of similar score",
                frame=shares.rename_axis("alternatives").reset_index(),
                units={"percent": "%"},
                bars=True,
            ),
        ),
    )


def table_3_2(study: Study) -> Found:  # noqa: ARG001 - small as it is
    """Each design's beliefs, looked at: how many clusters, at what price, with what capacity."""
    problem = world(clients=500, places=40, seed=2)
    values: dict[str, float | bool | None] = {}
    believed = {
        "brokered": sees.brokered(problem),
        "multicluster": sees.multicluster(problem),
        "dynamicpricing": sees.dynamic_pricing(problem),
        "dynamicmulticluster": sees.dynamic_multicluster(problem),
        "bestlookup": sees.best_lookup(problem),
        "marketplace": sees.marketplace(problem),
        "transactions": sees.marketplace(problem),
    }
    for name, offers in believed.items():
        key = f"brok_t32_{name}"
        one = bool(max(np.add.reduceat(offers.offered, _first_clusters(problem), axis=1).max(axis=1)) == 1)
        costs = bool((offers.price[offers.offered] == problem.price[offers.offered]).all())
        total = np.array_equal(offers.capacity_mbps, problem.capacity_mbps)
        told = np.array_equal(offers.background_mbps, problem.background_mbps)
        multi = name not in ("brokered", "dynamicpricing")
        dynamic = name not in ("brokered", "multicluster")
        values |= {
            f"{key}_matching": one != multi,
            f"{key}_announce": costs == dynamic
            and total == (name in ("bestlookup", "marketplace", "transactions")),
            f"{key}_share": told == (name in ("marketplace", "transactions")),
            f"{key}_co": one != multi,
            f"{key}_dcp": costs == dynamic,
        }
    tight = _overbooked()
    alone = several.assign(tight, brokers=2, deal_seed=4)
    together = several.commit(tight, brokers=2, deal_seed=4)
    assert alone.plan is not None
    assert together.plan is not None
    congested = measure(tight, alone.plan, None)["congested_percent"] or 0.0
    kept = measure(tight, together.plan, None)
    values |= {
        "brok_t32_marketplace_tp": congested > 0,
        "brok_t32_transactions_tp": kept["congested_percent"] == 0,
        "brok_t32_transactions_runtime": (kept["rounds"] or 0) > 1,
    }
    return Found(
        values=values,
        notes={
            "brok_t32_marketplace_tp": "no cluster is overbooked by one broker, but by two it is",
            "brok_t32_transactions_tp": "nothing is overbooked, whoever else there is",
        },
    )


def _first_clusters(problem: Brokering) -> Any:
    """Where each CDN's clusters begin: generated ones come CDN by CDN."""
    return np.flatnonzero(np.r_[True, np.diff(problem.cdn) != 0])


def _overbooked() -> Brokering:
    """A cluster of 10 Mbit/s that two brokers with 9 clients of 1 Mbit/s each would fill (3.4.2)."""
    return Brokering(
        clients=pd.DataFrame(
            [("here", "any", "any", 1000.0, 18.0)],
            columns=["location", "isp", "content", "bitrate_kbps", "clients"],
        ),
        locations=pd.DataFrame(
            [("here", "US", 40.0, -80.0)], columns=["location", "country", "latitude", "longitude"]
        ),
        clusters=pd.DataFrame(
            [("good", "x", "here", 10.0, 0.1, 0.0), ("poor", "y", "here", 100.0, 0.1, 0.0)],
            columns=["cluster", "cdn", "location", "capacity_mbps", "bandwidth_cost", "colocation_cost"],
        ),
        scores=pd.DataFrame(
            [("here", "good", 1.0), ("here", "poor", 50.0)], columns=["location", "cluster", "score"]
        ),
    )


def overbooking(study: Study) -> Found:  # noqa: ARG001 - tiny
    problem = _overbooked()
    loads = []
    for count in (9, 9):  # half of the clients each
        plan = market.assign(problem.serving(np.array([count]))).plan
        assert plan is not None
        sent = plan.assignments.set_index("cluster")["clients"]
        loads.append(float(sent.get("good", 0.0)))
    return Found(
        values={
            "brok_overbook_capacity": float(problem.capacity_mbps[0]),
            "brok_overbook_load": float(np.mean(loads)),
        }
    )


def figure_3_4(study: Study) -> Found:
    cost = figures.country_costs(_world(study.quick))
    frame = cost.rename("cost").rename_axis("country").reset_index()
    return Found(
        values={"brok_f34_disparity": float(cost.max() / cost.min())},
        notes={
            "brok_f34_disparity": "of the 20 largest; the range of all countries' means is a parameter, 30"
        },
        curves=(Curve(title="Cost of countries over the average", frame=frame, bars=True),),
    )


def figure_3_5(study: Study) -> Found:
    day = windows.Day(problem=_world(study.quick), windows=4 if study.quick else 12)
    flat = figures.moved((problem for _, problem in day), sees.brokered)
    bids = figures.moved((problem for _, problem in day), sees.marketplace)
    why = (
        "theirs are sessions that a real broker moved in 5 s, by rules of its own; ours is traffic that the "
        f"program moves as demand changes over a day ({bids.mean():.1f}% with bids)"
    )
    values = {"brok_f35_avg": flat.mean(), "brok_f35_low": flat.min(), "brok_f35_high": flat.max()}
    frame = pd.DataFrame({"round": range(1, len(flat) + 1), "brokered": flat, "marketplace": bids})
    return Found(
        values={name: float(value) for name, value in values.items()},
        notes=dict.fromkeys(values, why),
        curves=(
            Curve(
                title="Traffic moved between CDNs from round to round",
                frame=frame,
                units={"brokered": "%", "marketplace": "%"},
            ),
        ),
    )


def figure_3_6(study: Study) -> Found:
    use = figures.use_by_size(_world(study.quick))
    central = use[use.index.str.startswith("central")].sum().to_numpy(float)
    far = use[use.index == "distributed"].sum().to_numpy(float)
    told = "{}: {:.0f}% in the smaller half of cities, {:.0f}% in the larger"
    return Found(
        values={
            "brok_f36_a": bool(far[0] > far[1]),
            "brok_f36_bc": bool(abs(central[0] / max(central[1], 1e-9) - 1) < 0.15),
        },
        notes={
            "brok_f36_a": told.format("the distributed CDN", *far),
            "brok_f36_bc": told.format("the central CDNs together", *central),
        },
        curves=(Curve(title="Use by size of city", frame=use.rename_axis("cdn").reset_index(), bars=True),),
    )


def figure_3_8(study: Study) -> Found:
    use = figures.use_by_country(_world(study.quick))
    return Found(
        values={},
        curves=(
            Curve(title="Use of CDNs by country", frame=use.rename_axis("country").reset_index(), bars=True),
        ),
    )


def figure_3_10(study: Study) -> Found:  # noqa: ARG001 - tiny
    """The printed program's own optimum on a small market, and the constraints that it has."""
    from planner.backends import pyomo

    problem = _overbooked().serving(np.array([5]))
    m = formulation(problem)
    solution = pyomo.solve_model(m, Options(backend="pyomo:highs"))
    plan = market.assign(problem).plan
    assert plan is not None
    worth = measure(problem, plan, None)["objective"]
    assert worth is not None
    return Found(
        values={
            "brok_ilp_objective": solution.objective is not None
            and abs(solution.objective + worth) <= 1e-6 * worth,
            "brok_ilp_binary": all(variable.is_binary() for variable in m.U.values()),
            "brok_ilp_one": len(m.once) == 5
            and all(row.equality and row.upper() == 1 for row in m.once.values()),
            "brok_ilp_capacity": [row.upper() for row in m.capacity.values()] == [10.0, 100.0],
        }
    )


def formats(study: Study) -> Found:  # noqa: ARG001 - tiny
    problem = _overbooked()
    told = protocol.shares(problem)
    plan = market.assign(problem).plan
    assert plan is not None
    bid = ["cluster_id", "share_id", "performance_estimate", "capacity", "price"]
    share = ["share_id", "location", "isp", "content_id", "data_size", "client_count"]
    return Found(
        values={
            "brok_share_format": list(told) == share,
            "brok_bid_format": list(protocol.bids(problem, told)) == bid,
            "brok_accept_format": list(protocol.accepts(problem, told, plan)) == bid,
        }
    )


def figures_3_11_to_3_13(study: Study) -> Found:
    """Fig. 3.11 to 3.13: which CDNs profit from a broker that knows flat prices, and from bids."""
    by_cdn, _ = _profits(study.quick)
    gains = by_cdn["brokered_profit"] >= 0
    share = by_cdn["brokered_mbps"] / by_cdn["brokered_mbps"].sum()
    cheap = (by_cdn["brokered_price_to_cost"] >= 1) & (share > 0) & (share < 1 / len(by_cdn))
    far = "distributed"
    bid_share = by_cdn["marketplace_mbps"] / by_cdn["marketplace_mbps"].sum()
    preferred = (by_cdn["contract_price"] < by_cdn.loc[far, "contract_price"]) & (share > share[far])
    profit_at_bids = by_cdn["marketplace_profit"]
    centrally = by_cdn.index[gains].str.startswith("central")
    return Found(
        values={
            "brok_f311_result": bool(gains.sum() < len(by_cdn) / 2 and centrally.all() and gains.any()),
            "brok_f312_cdn12": bool(cheap.any()),
            "brok_f312_cdn1": bool(share[far] < bid_share[far]),
            "brok_f312_cdn11": bool(preferred.any()),
            "brok_f313_vdx": bool((profit_at_bids[by_cdn["marketplace_mbps"] > 0] > 0).all()),
        },
        notes={
            "brok_f311_result": f"{int(gains.sum())} of {len(by_cdn)} profit: "
            + ", ".join(by_cdn.index[gains]),
            "brok_f312_cdn12": OUR_CDNS,
            "brok_f312_cdn1": f"{OUR_CDNS}; {100 * share[far]:.0f}% of the traffic against "
            f"{100 * bid_share[far]:.0f}% with bids",
            "brok_f312_cdn11": OUR_CDNS,
        },
        curves=(
            Curve(
                title="Profit of CDNs",
                frame=by_cdn[["brokered_profit", "marketplace_profit"]].reset_index(),
                units={"brokered_profit": "USD/h", "marketplace_profit": "USD/h"},
                bars=True,
            ),
            Curve(
                title="Price over cost of CDNs, Brokered",
                frame=by_cdn[["brokered_price_to_cost"]].reset_index(),
                bars=True,
            ),
        ),
    )


def formulas(study: Study) -> Found:
    """The two profits, from each assignment's own rows."""
    problem = _world(study.quick)
    plan = figures.plan_of(sees.brokered(problem))
    table = profit.by_cdn(problem, plan).set_index("cdn")
    rows = plan.assignments.merge(
        problem.clusters[["cluster", "cdn", "bandwidth_cost", "colocation_cost"]], on="cluster"
    )
    gb = rows["clients"] * rows["bitrate_kbps"] / 8e6 * 3600
    cost = (gb * (rows["bandwidth_cost"] + rows["colocation_cost"])).groupby(rows["cdn"]).sum()
    price = pd.Series(problem.derived_price, index=problem.cdn_names)
    paid = gb.groupby(rows["cdn"]).sum() * price
    flat, bids = (1.2 * paid - cost).dropna(), 1.2 * cost - cost
    same = np.allclose(table["profit_at_flat_price"][flat.index], flat)
    return Found(
        values={
            "brok_eval_profit_brokered": bool(same),
            "brok_eval_profit_vdx": bool(np.allclose(table["profit_at_cluster_price"][bids.index], bids)),
            "brok_eval_markup": 100 * (profit.MARKUP - 1),
        }
    )


def figures_3_14_to_3_16(study: Study) -> Found:
    """Fig. 3.14 to 3.16, by cost: the paper's letters run from its dearest country to its cheapest."""
    _, by_country = _profits(study.quick)
    used = by_country[by_country["brokered_mbps"] > 0].sort_values("cost", ascending=False)
    count = len(used)
    dear, cheap = used.iloc[: round(count * 10 / 19)], used.iloc[round(count * 11 / 19) :]
    every = by_country.sort_values("cost", ascending=False)
    dearest = every.iloc[: round(len(every) * figures.DEAR)]
    shares = {
        name: float(dearest[f"{name}_mbps"].sum() / every[f"{name}_mbps"].sum())
        for name in ("brokered", "marketplace")
    }
    lost = by_country["brokered_profit"] < 0
    bids = by_country.loc[lost & (by_country["marketplace_mbps"] > 0), "marketplace_profit"]
    bad = float((dear["brokered_profit"] < 0).mean())
    good = float((cheap["brokered_profit"] >= 0).mean())
    told = "of traffic in the dearest 5 of 19 countries: {:.0f}% flat, {:.0f}% with bids".format(
        *(100 * share for share in shares.values())
    )
    return Found(
        values={
            "brok_f314_good": good > 0.75,
            "brok_f314_bad": bad > 0.75,
            "brok_f315_avoid": shares["marketplace"] < shares["brokered"],
            "brok_f315_brokered": abs(shares["brokered"] / figures.DEAR - 1) < 0.5,
            "brok_f316_bad": bool((bids > 0).all()),
        },
        notes={
            "brok_f314_good": f"CDNs profit in {100 * good:.0f}% of the cheapest 8 of 19 countries",
            "brok_f314_bad": f"CDNs lose in {100 * bad:.0f}% of the dearest 10 of 19 countries",
            "brok_f315_avoid": told,
            "brok_f315_brokered": told + "; even would be 26%",
        },
        curves=(
            Curve(
                title="Profit by country, dearest first",
                frame=used[["brokered_profit", "marketplace_profit"]].reset_index(),
                units={"brokered_profit": "USD/h", "marketplace_profit": "USD/h"},
                bars=True,
            ),
        ),
    )


def figure_3_17(study: Study) -> Found:
    problem = city_centric(seed=1, **({"clients": QUICK_CLIENTS} if study.quick else {}))
    by_cdn, _ = figures.profits(problem)
    city = by_cdn.index.str.match(r"city\d")
    cities, others = by_cdn[city], by_cdn[~city]
    lose, idle = int((others["brokered_profit"] < 0).sum()), int((others["brokered_mbps"] == 0).sum())
    least = cities["brokered_price_to_cost"].min()
    return Found(
        values={
            "brok_city_cdns": float(city.sum()),
            "brok_f317_city": bool(
                (cities["brokered_profit"] >= -1e-9).all() and (cities["marketplace_profit"] >= -1e-9).all()
            ),
            "brok_f317_none": lose >= len(others) / 2 and idle > 0,
        },
        notes={
            "brok_f317_city": f"the least price over cost is {least:.2f}",
            "brok_f317_none": f"{lose} of {len(others)} lose, {idle} get no traffic",
        },
    )
