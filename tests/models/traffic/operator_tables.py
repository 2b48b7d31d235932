"""Small networks with what operators write down: classes, latency limits, tunnels, rules and failures."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import pandas as pd

from planner_models.traffic import Traffic

CLASSES = ["gold", "silver", "bronze"]
PRIORITIES = ([1, 2, 3], [1, 1, 2], [1, 1, 1])


def draw_tables(seed: int) -> Traffic | None:
    """Return a network of three to six nodes with some of the tables; None where it has no link."""
    draw = random.Random(seed)
    names = "abcdef"[: draw.randint(3, 6)]
    links = _links(draw, names)
    if links.empty:
        return None
    demands = pd.DataFrame(
        [
            (
                *draw.sample(names, 2),
                draw.choice([0, 1, 3, 6, 12.5]),
                draw.choice(CLASSES),
                draw.choice([None, 3, 8, 15, 30]),
            )
            for _ in range(draw.randint(1, 6))
        ],
        columns=["source", "target", "rate_mbps", "class", "max_latency_ms"],
    )
    tables: dict[str, Any] = {}
    key = ["source", "target", "class"]
    if draw.random() < 0.5:
        demands, key = demands.drop(columns="class"), key[:2]
    else:
        priority = draw.choice(PRIORITIES)
        tables["classes"] = pd.DataFrame({"class": CLASSES, "priority": priority, "weight": [3, 2, 1]})
    demands = demands.drop_duplicates(key, ignore_index=True)
    if draw.random() < 0.5:
        demands = demands.drop(columns="max_latency_ms")
    ends = list(zip(links["tail"], links["head"], strict=True))
    if draw.random() < 0.5:
        tunnels = _tunnels(draw, ends, list(zip(demands["source"], demands["target"], strict=True)))
        tables |= {"tunnels": pd.DataFrame({"path": tunnels})} if tunnels else {}
    if draw.random() < 0.4:
        rules = [
            (draw.choice([None, *demands["source"]]), draw.choice(["avoid", "use"]), *position)
            for position in [(draw.choice(names), None, None), (None, *draw.choice(ends))][
                : draw.randint(1, 2)
            ]
        ]
        tables["rules"] = pd.DataFrame(rules, columns=["source", "rule", "node", "tail", "head"])
    if draw.random() < 0.4:
        lines = sorted({"<->".join(sorted(pair)) for pair in ends})
        selected = draw.sample(lines, min(len(lines), draw.randint(1, 3)))
        chance = [draw.choice([0.001, 0.01, 0.1]) for _ in selected]
        tables["failures"] = pd.DataFrame({"failure": selected, "member": selected, "probability": chance})
    return Traffic(nodes=pd.DataFrame({"node": list(names)}), links=links, demands=demands, **tables)


def _links(draw: random.Random, names: str) -> pd.DataFrame:
    """Return links, most of them in both directions; some of them are down."""
    rows = []
    for location, name in enumerate(names):
        for other in names[location + 1 :]:
            if draw.random() > 0.55:
                continue
            line = (draw.choice([5, 10, 20]), draw.choice([1, 2, 5, 10]), draw.choice([1, 2, 3]))
            for tail, head in ((name, other), (other, name)):
                if draw.random() < 0.93:
                    rows.append((tail, head, 0 if draw.random() < 0.05 else line[0], *line[1:], line[2] - 1))
    return pd.DataFrame(rows, columns=["tail", "head", "capacity_mbps", "latency_ms", "weight", "cost"])


def _tunnels(draw: random.Random, ends: list[tuple[str, str]], pairs: list[tuple[str, str]]) -> list[str]:
    """Return up to three paths of most of the pairs that have any."""
    graph = nx.DiGraph(ends)
    result: set[str] = set()
    for source, target in pairs:
        if draw.random() < 0.75 and {source, target} <= set(graph) and nx.has_path(graph, source, target):
            every = sorted(map(tuple, nx.all_simple_paths(graph, source, target)))
            result |= {" > ".join(path) for path in draw.sample(every, min(len(every), draw.randint(1, 3)))}
    return sorted(result)
