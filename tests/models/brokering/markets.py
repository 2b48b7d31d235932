"""Small markets for tests: drawn by hypothesis, or built by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from planner_models.brokering import Brokering
from planner_models.brokering.problem.terms import Terms

CITIES = {
    "Lyon": ("FR", 45.76, 4.84),
    "Turin": ("IT", 45.07, 7.69),
    "Oslo": ("NO", 59.91, 10.75),
    "Recife": ("BR", -8.05, -34.9),
}


def market(
    clients: list[tuple[str, float, int]],
    clusters: list[tuple[str, str, str, float, float]],
    *,
    scores: list[tuple[str, str, float]] | None = None,
    contracts: list[tuple[str, str, float]] | None = None,
    bids: list[tuple[str, str]] | None = None,
    background_mbps: list[float] | None = None,
    terms: Terms = Terms(),  # noqa: B008 - frozen
) -> Brokering:
    """Return a market of clients (city, kbit/s, count) and clusters (name, CDN, city, Mbit/s, cost)."""
    positions = sorted({row[0] for row in clients} | {row[2] for row in clusters})
    frame = pd.DataFrame(clusters, columns=["cluster", "cdn", "location", "capacity_mbps", "bandwidth_cost"])
    frame["colocation_cost"] = 0.0
    if background_mbps is not None:
        frame["background_mbps"] = background_mbps
    requested_table = pd.DataFrame(clients, columns=["location", "bitrate_kbps", "clients"])
    return Brokering(
        clients=requested_table.assign(isp="isp", content="news"),
        locations=pd.DataFrame(
            [(index, *CITIES[index]) for index in positions],
            columns=["location", "country", "latitude", "longitude"],
        ),
        clusters=frame,
        scores=None if scores is None else pd.DataFrame(scores, columns=["location", "cluster", "score"]),
        contracts=None if contracts is None else pd.DataFrame(contracts, columns=["cdn", "region", "price"]),
        bids=None if bids is None else pd.DataFrame(bids, columns=["location", "cluster"]),
        terms=terms,
    )


@st.composite
def markets(draw: st.DrawFn, max_clients: int = 4, tight: bool = True) -> Brokering:
    """Draw up to 4 kinds of clients and 6 clusters of 3 CDNs, with capacity for most plans or few."""
    cities = list(CITIES)
    kinds = draw(
        st.lists(
            st.tuples(
                st.sampled_from(cities),
                st.sampled_from([500.0, 800.0, 1300.0, 3000.0]),
                st.integers(1, max_clients),
            ),
            min_size=1,
            max_size=4,
            unique_by=lambda kind: kind[:2],
        )
    )
    demand = sum(kbps * count for _, kbps, count in kinds) / 1000
    count = draw(st.integers(2, 6))
    upper = 0.7 if tight else 3.0
    clusters = [
        (
            f"c{i}",
            f"cdn{draw(st.integers(0, 2))}",
            draw(st.sampled_from(cities)),
            round(demand * draw(st.floats(0.2, upper)), 1),
            draw(st.integers(1, 30)) / 100,
        )
        for i in range(count)
    ]
    positions = sorted({kind[0] for kind in kinds} | {cluster[2] for cluster in clusters})
    scores = [(index, f"c{i}", float(draw(st.integers(1, 100)))) for index in positions for i in range(count)]
    background = [round(cluster[3] * draw(st.sampled_from([0.0, 0.0, 0.3])), 2) for cluster in clusters]
    terms = Terms(
        cost_weight=draw(st.sampled_from([0.0, 1.0, 100.0, 1000.0])),
        performance_per=draw(st.sampled_from(["client", "bit"])),
    )
    return market(kinds, clusters, scores=scores, background_mbps=background, terms=terms)


def heavy_tailed(
    *,
    rows: int,
    clusters: int,
    seed: int,
    clients: int = 1,
    free: float = 2.0,
    per: str = "bit",
    most_kbps: float = 80_000.0,
) -> Brokering:
    """Return a market whose bitrates are Pareto distributed, each different, up to `most_kbps`.

    clients  of each row
    free     capacity over demand
    """
    random = np.random.default_rng(seed)
    kbps = np.minimum(500 * (1 + random.pareto(1.2, rows)), most_kbps)
    positions = random.choice(list(CITIES), rows)
    share = random.pareto(1.5, clusters) + 0.2
    capacity = free * clients * kbps.sum() / 1000 * share / share.sum()
    cities, cost = random.choice(list(CITIES), clusters), random.lognormal(-3, 1, clusters)
    return market(
        [(str(locations), float(rate), clients) for locations, rate in zip(positions, kbps, strict=True)],
        [
            (f"c{i}", f"cdn{i % 3}", str(cities[i]), float(capacity[i]), float(cost[i]))
            for i in range(clusters)
        ],
        terms=Terms(cost_weight=5500.0, performance_per=per),
    )


@st.composite
def heavy_tailed_markets(draw: st.DrawFn) -> Brokering:
    """Draw a market of up to 40 different bitrates, and capacity from too little to plenty."""
    return heavy_tailed(
        rows=draw(st.integers(1, 40)),
        clusters=draw(st.integers(1, 12)),
        clients=draw(st.sampled_from([1, 3, 1000])),
        seed=draw(st.integers(0, 2**32 - 1)),
        free=draw(st.sampled_from([0.9, 1.1, 1.5, 2.8])),
        per=draw(st.sampled_from(["client", "bit"])),
        most_kbps=draw(st.sampled_from([3000.0, 80_000.0])),
    )
