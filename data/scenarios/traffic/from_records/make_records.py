"""Makes the synthetic export of this folder: what pmacct would print of a day of traffic on Abilene.

    python make_records.py

Nothing here was measured. Nodes have masses, and traffic from one to another is proportional to both and
follows a curve of the day. Each pair has a flow in every three hours, seen at both of its ends by exporters
that sample one packet of 1,000; packets have 900 bytes. The network is the one of scenario `traffic/abilene`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from planner.scenarios.scenario import load

FOLDER = Path(__file__).parent
START = pd.Timestamp("2026-03-02 00:00:00")
BUCKET_S = 10_800
BUCKETS = 8
SAMPLING = 1_000
PACKET_BYTES = 900
TOTAL_MBPS = 6_000.0
SITE = "10.{}.0.0/16"


def main() -> None:
    """Write links, prefixes and records."""
    rng = np.random.default_rng(7)
    network = load("traffic/abilene").make_problem()
    links = network.links[["tail", "head", "capacity_mbps", "weight"]]
    links.to_csv(FOLDER / "links.csv", index=False)
    nodes = network.nodes["node"].tolist()
    prefixes = [SITE.format(number) for number in range(1, len(nodes) + 1)]
    pd.DataFrame({"prefix": prefixes, "node": nodes}).to_csv(FOLDER / "prefixes.csv", index=False)
    mass = rng.lognormal(0.0, 0.8, len(nodes))
    rate = np.outer(mass, mass)
    np.fill_diagonal(rate, 0.0)
    rate *= TOTAL_MBPS / rate.sum()
    rows = []
    for bucket in range(BUCKETS):
        level = 1.0 + 0.5 * math.sin(2 * math.pi * (bucket - 2.5) / BUCKETS)
        for source, target in np.argwhere(rate > 0).tolist():
            packets = rate[source, target] * level * 1e6 / 8 * BUCKET_S / PACKET_BYTES
            port = int(rng.integers(1024, 65536))
            for exporter in (source, target):
                count = int(rng.poisson(packets / SAMPLING))
                if count == 0:
                    continue
                start = START + pd.Timedelta(seconds=bucket * BUCKET_S)
                rows.append(
                    (
                        f"10.{source + 1}.0.{bucket + 10}",
                        f"10.{target + 1}.1.7",
                        443 if bucket % 2 else 80,
                        port,
                        "tcp",
                        f"192.0.2.{exporter + 1}",
                        SAMPLING,
                        str(start),
                        str(start + pd.Timedelta(seconds=BUCKET_S)),
                        count,
                        count * PACKET_BYTES,
                    )
                )
    names = [
        *("SRC_IP", "DST_IP", "SRC_PORT", "DST_PORT", "PROTOCOL", "PEER_SRC_IP", "SAMPLING_RATE"),
        *("TIMESTAMP_START", "TIMESTAMP_END", "PACKETS", "BYTES"),
    ]
    pd.DataFrame(rows, columns=names).to_csv(FOLDER / "records.csv", index=False)


if __name__ == "__main__":
    main()
