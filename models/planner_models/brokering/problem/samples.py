"""A tiny problem that reaches every compiled kernel."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner_models.brokering.problem.problem import Brokering


def tight_market() -> Brokering:
    """Return a market of three cities and three CDNs of which two have small clusters."""
    cities = ("Lyon", "Turin", "Oslo")
    bitrates_kbps = (700.0, 1100.0, 1900.0)
    clients = [(city, "any", "any", kbps, 2.0) for city in cities for kbps in bitrates_kbps]
    capacities_mbps = (5.5, 6.4, 60.0)
    clusters = [
        (f"c{i}", f"cdn{i}", city, capacity, 0.1, 0.0)
        for i, (city, capacity) in enumerate(zip(cities, capacities_mbps, strict=True))
    ]
    scores = [
        (city, row[0], 10.0 + 7 * ((3 * i + 5 * j) % 8) + 40 * (j == 2))
        for i, city in enumerate(cities)
        for j, row in enumerate(clusters)
    ]
    return Brokering(
        clients=pd.DataFrame(clients, columns=["location", "isp", "content", "bitrate_kbps", "clients"]),
        locations=pd.DataFrame(
            {
                "location": cities,
                "country": ["FR", "IT", "NO"],
                "latitude": np.array([45.76, 45.07, 59.91]),
                "longitude": np.array([4.84, 7.69, 10.75]),
            }
        ),
        clusters=pd.DataFrame(
            clusters,
            columns=["cluster", "cdn", "location", "capacity_mbps", "bandwidth_cost", "colocation_cost"],
        ),
        scores=pd.DataFrame(scores, columns=["location", "cluster", "score"]),
    )
