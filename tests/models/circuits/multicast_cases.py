"""Small problems with multicasts for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner_models.circuits import Circuits

Multicast = tuple[int, Sequence[int], float]
"""Source, targets and bits."""


def make_problem(
    racks: int,
    multicasts: Sequence[Multicast],
    *,
    demands: Sequence[tuple[int, int, float]] = (),
    packet_mbps: float = 0.5,
    circuit_mbps: float | Sequence[float] = 10.0,
    **switch: float | str,
) -> Circuits:
    """Return a problem of racks r0, r1, ... and multicasts m0, m1, ..., nights of 2 us by default."""
    names = [f"r{i}" for i in range(racks)]
    rows = [
        (f"m{number}", f"r{source}", f"r{target}", bits)
        for number, (source, targets, bits) in enumerate(multicasts)
        for target in targets
    ]
    pairs = [(f"r{i}", f"r{j}", bits) for i, j, bits in demands]
    return Circuits(
        racks=pd.DataFrame({"rack": names, "circuit_mbps": circuit_mbps, "packet_mbps": packet_mbps}),
        demands=pd.DataFrame(pairs, columns=["source_rack", "target_rack", "bits"]).astype({"bits": float}),
        switch=pd.DataFrame([{"night_us": 2.0, "shortest_day_us": 0.0, "circuit_targets": 2, **switch}]),
        multicasts=pd.DataFrame(rows, columns=["multicast", "source_rack", "target_rack", "bits"]),
    )


def draw_problem(seed: int, *, racks: int = 4, **switch: float) -> Circuits:
    """Return a problem with one or two multicasts and some other demands."""
    rng = np.random.default_rng(seed)
    multicasts = []
    for _ in range(int(rng.integers(1, 3))):
        source = int(rng.integers(racks))
        others = [rack for rack in range(racks) if rack != source]
        targets = rng.choice(others, int(rng.integers(2, racks)), replace=False)
        multicasts.append((source, targets.tolist(), float(rng.choice([20.0, 60.0, 100.0]))))
    demands = [
        (i, j, float(rng.choice([10.0, 40.0, 100.0])))
        for i in range(racks)
        for j in range(racks)
        if i != j and rng.random() < 0.3
    ]
    return make_problem(racks, multicasts, demands=demands, **switch)
