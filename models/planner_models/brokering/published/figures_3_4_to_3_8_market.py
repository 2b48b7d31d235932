"""Table 3.1 and Fig. 3.4 to 3.8 of Mukerjee 2018: alternatives, costs, moves and use of CDNs in a market.

The thesis' traces are not public, so figures are of the generated market `generators.world`.
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
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.information import observe
from planner_models.brokering.plan.metrics import measure
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem import series
from planner_models.brokering.problem.generators import world
from planner_models.brokering.problem.problem import Brokering

QUICK_CLIENTS: Final = 3_000
OPTIONS: Final = Options(gap=1e-2)  # a smaller gap does not change medians
SIMILAR_SCORE_RATIO: Final = 1.25  # to the best, of an alternative cluster (Table 3.1)


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
    flat = moved_percent((problem for _, problem in day), observe.brokered)
    bids = moved_percent((problem for _, problem in day), observe.marketplace)
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
    plan = plan_of(observe.brokered(problem)).assignments
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
        curves=(
            Curve(title="Use of CDNs by country", frame=use.rename_axis("country").reset_index(), bars=True),
        ),
    )


def use_by_country(problem: Brokering, *, min_clients: int = 100) -> pd.DataFrame:
    """Return the percentage of clients that each CDN serves, by country of enough clients (Fig. 3.8)."""
    plan = plan_of(observe.brokered(problem)).assignments
    country = plan["location"].map(problem.locations.set_index("location")["country"])
    owner = plan["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    clients = plan.groupby([country, owner])["clients"].sum().unstack(fill_value=0)  # noqa: PD010
    clients = clients[clients.sum(axis=1) >= min_clients]
    return 100 * clients.div(clients.sum(axis=1), axis=0)
