"""Small random problems of system `queries`, with headers of few values, so that groups and rules meet."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner_models.queries.problem.generators import tabulate_queries
from planner_models.queries.problem.problem import Monitoring

WHERE = (
    "",
    "in_port=1",
    "tp_dst=80",
    "ip_src!=10.0.0.1 & tp_dst=80",
    "ip_dst=10.*.0.1",
    "tp_dst=80 | in_port=2",
)
GROUPS = ("", "ip_src", "in_port", "ip_dst ip_src", "ip_dst/30")


def draw_problem(seed: int, *, queries: int = 4, switches: int = 2, flows: int = 12) -> Monitoring:
    """Return a random problem, with limits that often do not hold all queries."""
    random = np.random.default_rng(seed)
    fields = pd.DataFrame(
        [
            ("in_port", 2, "metadata", 0),
            ("ip_src", 32, "l3", 1),
            ("ip_dst", 32, "l3", 1),
            ("tp_dst", 16, "l4", 0),
        ],
        columns=["field", "bits", "stage", "prefix"],
    )
    rows = [_draw_query(f"q{number}", random) for number in range(queries)]
    names = [f"s{number}" for number in range(switches)]
    switch_rows = [
        {
            "switch": name,
            "rules": float(random.integers(3, 30)),
            "exact_rules": float(random.integers(0, 8)),
            "packets_per_s": float(random.choice([0.3, 1.0, 3.0])),
            "polls_per_s": float(random.choice([0.1, 1.0])),
            "matching": str(random.choice(["any", "prefix", "exact"])),
            "pipeline": float(random.integers(2)),
        }
        for name in names
    ]
    flow_rows = [
        (
            str(random.choice(names)),
            _draw_header(random),
            float(random.integers(1, 6)),
            float(random.choice([64, 1500])),
            float(random.integers(0, 20)),
            float(random.choice([0.0, 0.001, 4.0])),
        )
        for _ in range(flows)
    ]
    return Monitoring(
        queries=tabulate_queries(rows),
        switches=pd.DataFrame(switch_rows),
        flows=pd.DataFrame(
            flow_rows, columns=["switch", "header", "packets", "packet_bytes", "start_s", "length_s"]
        ),
        controller=pd.DataFrame(
            {"round_trip_ms": [float(random.choice([0.0, 2.5, 3000.0]))], "duration_s": [23.0]}
        ),
        fields=fields,
        rules=pd.DataFrame(
            [(2.0, "in_port=1", "out:2", 0.0), (1.0, "ip_dst=10.0.0.0/16", "out:3", 0.0)],
            columns=["priority", "match", "action", "table"],
        ),
    )


def _draw_query(name: str, random: np.random.Generator) -> dict[str, object]:
    query: dict[str, object] = {
        "query": name,
        "where": str(random.choice(WHERE)),
        "group_by": str(random.choice(GROUPS)),
        "weight": float(random.integers(1, 5)),
    }
    if random.random() < 0.5:
        every = float(random.choice([2.0, 5.0]))
        return query | {
            "select": str(random.choice(["bytes", "counts"])),
            "every_s": every,
            "longest_s": 2 * every,
        }
    if random.random() < 0.7:
        query["limit"] = float(random.integers(1, 3))
    if query["group_by"] == "ip_src" and random.random() < 0.5:
        query["split_when"] = "in_port"
    return query | {"select": "packets"}


def _draw_header(random: np.random.Generator) -> str:
    return (
        f"in_port={random.integers(1, 3)} ip_src=10.0.0.{random.integers(1, 4)} "
        f"ip_dst=10.{random.integers(2)}.0.{random.integers(1, 3)} tp_dst={random.choice([22, 80])}"
    )
