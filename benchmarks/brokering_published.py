"""What Mukerjee 2018, chapter 3, states, beside what the calibrated market gives.

    python -m benchmarks.brokering_published [--quick]

Published values are in data/published/brokering.csv. The thesis' traces are not public: its table
was used to calibrate the generator, so agreement is of shape, not of measurement.
"""

from __future__ import annotations

import argparse
import os
import re
from importlib.resources import files

import numpy as np
import pandas as pd

from planner_models.brokering import Assignment, Brokering, figures, market, measure, sees, windows
from planner_models.brokering.generate import city_centric, world

COLUMNS = {
    "cost": "median_cost",
    "score": "median_score",
    "distance": "median_distance_km",
    "load": "median_load_percent",
    "congested": "congested_percent",
}


def published() -> pd.Series:
    """Published values by id."""
    text = files("planner_data") / "published" / "brokering.csv"
    with text.open(encoding="utf-8") as file:
        return pd.read_csv(file).set_index("id")["value"].astype(float)


def table_3_3(seeds: range, clients: int) -> None:
    """Medians over seeds; cost, score and distance over Brokered's."""
    values = published()
    runs = [figures.table_3_3(world(clients=clients, seed=seed)) for seed in seeds]
    ours = pd.DataFrame(
        np.median([run.to_numpy(float) for run in runs], axis=0), index=runs[0].index, columns=runs[0].columns
    )
    print(f"Table 3.3, median of {len(runs)} seeds, published / ours")
    print("design".ljust(22) + "".join(name.rjust(16) for name in COLUMNS))
    for design in ours.index:
        cells = []
        for name, column in COLUMNS.items():
            theirs, our = values[f"brok_t33_{design}_{name}"], ours[column][design]
            if name in ("cost", "score", "distance"):
                theirs /= values[f"brok_t33_brokered_{name}"]
                our /= ours[column]["brokered"]
                cells.append(f"{theirs:.2f} / {our:.2f}")
            else:
                cells.append(f"{theirs:.0f} / {our:.0f}")
        print(str(design).ljust(22) + "".join(cell.rjust(16) for cell in cells))
    print(f"brokered in km: 297 (unit not printed) / {ours['median_distance_km']['brokered']:.0f}")


def table_3_1(problem: Brokering) -> None:
    """Alternatives within 25% of the best score."""
    values = published()
    print("\nTable 3.1, percent with at least k alternatives, published / ours")
    for row in figures.table_3_1(problem).itertuples():
        print(
            f"  {row.alternatives}: {values[f'brok_t31_alt{row.alternatives}']:.1f} / {row.share_percent:.1f}"
        )
    print(f"Fig. 3.4, range of costs between countries: 30 / {figures.median_cost_range(problem):.0f}")
    usage = figures.fig_3_6(problem)["share_percent"].tolist()
    print("Fig. 3.6, use of the distributed CDN (published: favoured in smaller cities):")
    print(f"  {usage[0]:.1f}% in smaller cities, {usage[1]:.1f}% in larger ones")


def profits(problem: Brokering, what: str) -> None:
    """Fig. 3.11 to 3.17: who loses money, and where."""
    by_cdn, by_country = figures.profits(problem)
    by_cdn["style"] = [re.sub(r"\d+$", "", str(name)) for name in by_cdn.index]
    used = by_cdn[by_cdn["brokered_mbps"] > 0]
    print(f"\nProfits, {what}: style: CDNs, with traffic, losing under flat prices; losing under bids")
    for style, rows in by_cdn.groupby("style"):
        losing = int((used[used["style"] == style]["brokered_profit"] < 0).sum())
        bids = int((rows["marketplace_profit"] < 0).sum())
        print(f"  {style}: {len(rows)}, {int((rows['brokered_mbps'] > 0).sum())}, {losing}; {bids}")
    cost = problem.unit_cost * np.ones(len(problem.clusters))
    country = problem.country[problem.cluster_location].astype(str)
    dear = pd.Series(cost).groupby(country).mean().reindex(by_country.index).rank(pct=True) > 0.75
    share = [
        100 * by_country.loc[dear, name].sum() / by_country[name].sum()
        for name in ("brokered_mbps", "marketplace_mbps")
    ]
    print(f"  traffic in the dearest quarter of countries: flat {share[0]:.1f}%, bids {share[1]:.1f}%")
    lose = int((by_country["brokered_profit"] < 0).sum())
    bid_lose = int((by_country["marketplace_profit"] < 0).sum())
    print(f"  countries where CDNs lose: flat {lose}, bids {bid_lose} of {len(by_country)}")


def trade_off(problem: Brokering, points: int) -> None:
    """Fig. 3.18 and 3.19."""
    weight = problem.terms.cost_weight
    curve = figures.fig_3_18(problem, np.geomspace(weight / 30, weight * 30, points).tolist())
    print("\nFig. 3.18, marketplace over Brokered, by cost weight")
    print(curve.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
    cheaper = figures.at_equal(curve, "distance", "cost")
    nearer = figures.at_equal(curve, "cost", "distance")
    for name, value, theirs in (
        ("cost at equal distance", cheaper, 44),
        ("distance at equal cost", nearer, 74),
    ):
        our = "never equal" if value is None else f"-{100 * (1 - value):.0f}%"
        print(f"  {name}: -{theirs}% / {our}")
    bids = figures.fig_3_19(problem)
    print("\nFig. 3.19, mean cost and score by bids (published: the second bid lowers the score most)")
    print(bids.to_string(index=False, float_format=lambda value: f"{value:.4g}"))


def moved(problem: Brokering, count: int) -> None:
    """Fig. 3.5's question, asked of rounds: traffic that changes its CDN from window to window."""
    print("\nTraffic moved between CDNs from round to round (published: 40% of sessions in 5 s)")
    for name, offers in (("brokered", sees.brokered), ("marketplace", sees.marketplace)):
        plans: list[Assignment] = []
        shares: list[float] = []
        for part in windows.day(problem, windows=count):
            plan = market.assign(offers(part), method="flow", options=figures.QUICK).plan
            assert plan is not None
            if plans:
                shares.append(measure(part, plan, plans[-1])["moved_between_cdns_percent"] or 0.0)
            plans.append(plan)
        print(f"  {name}: mean {np.mean(shares):.1f}%, from {min(shares):.1f}% to {max(shares):.1f}%")


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    clients = 3_000 if quick else 33_400
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    table_3_3(range(2 if quick else 10), clients)
    problem = world(clients=clients, seed=1)
    table_3_1(problem)
    profits(problem, "14 CDNs")
    profits(city_centric(clients=clients, seed=1), "with 200 city-centric CDNs")
    trade_off(problem, 5 if quick else 13)
    moved(problem, 4 if quick else 12)


if __name__ == "__main__":
    main()
