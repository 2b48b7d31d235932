"""Small live video problems for tests, random or given, and their optimum by enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo
from planner_models.livevideo.plan.plan import build_plan

TIERS = ("source", "reflector", "edge", "group")


def problem(
    links: list[tuple[Any, ...]],
    objects: list[tuple[Any, ...]],
    requests: list[tuple[Any, ...]],
    *,
    tiers: dict[str, str],
    **tables: Any,
) -> LiveVideo:
    """Build a problem of (tail, head, capacity, cost) links, (channel, bitrate, priority) objects and
    (group, channel, bitrate, clients) requests; tiers by the first letter of a cluster."""
    names = list(dict.fromkeys(itertools.chain.from_iterable((link[0], link[1]) for link in links)))
    return LiveVideo(
        clusters=pd.DataFrame({"cluster": names, "tier": [tiers[name[0]] for name in names]}),
        links=pd.DataFrame(links, columns=["tail", "head", "capacity_mbps", "cost"]),
        objects=pd.DataFrame(objects, columns=["channel", "bitrate_kbps", "priority"]),
        requests=pd.DataFrame(requests, columns=["group", "channel", "bitrate_kbps", "clients"]),
        **tables,
    )


@st.composite
def problems(draw: st.DrawFn, tiers: int = 4, rules: bool = False) -> LiveVideo:
    """Draw a small network with scarce links, some of no capacity at all, and a few objects."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = [
        int(rng.integers(1, 3)),
        *(int(rng.integers(2, 4)) for _ in range(tiers - 2)),
        int(rng.integers(2, 5)),
    ]
    names = [[f"{chr(97 + step)}{i}" for i in range(size)] for step, size in enumerate(sizes)]
    links: list[tuple[str, str, float, float]] = []
    for above, below in itertools.pairwise(names):
        for head in below:
            count = int(rng.integers(1, len(above) + 1))
            links += [
                (str(tail), head, float(rng.integers(0, 7)), float(rng.integers(0, 9)))
                for tail in rng.choice(above, count, replace=False)
            ]
    rates = [1_000.0, 2_000.0]
    objects = [
        (f"v{i}", rate, float(rng.integers(1, 4))) for i in range(int(rng.integers(1, 4))) for rate in rates
    ]
    pairs = [(g, o) for g in names[-1] for o in objects]
    keep = rng.permutation(len(pairs))[: int(rng.integers(1, 7))]
    requests = [(pairs[i][0], pairs[i][1][0], pairs[i][1][1], float(rng.integers(1, 4))) for i in keep]
    tables: dict[str, Any] = {
        "settings": pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.05], "chunk_s": [2.0]})
    }
    if rules and rng.random() < 0.7:
        used = [links[int(i)] for i in rng.permutation(len(links))[:2]]
        tables["forbidden"] = pd.DataFrame(
            [("*" if rng.random() < 0.5 else objects[0][0], "*", link[0], link[1]) for link in used],
            columns=["channel", "bitrate_kbps", "tail", "head"],
        )
    if rules and rng.random() < 0.5:
        tables["holders"] = pd.DataFrame([(objects[0][0], links[0][0])], columns=["channel", "source"])
    kinds = {chr(97 + step): f"tier{step}" for step in range(tiers)}
    return problem(links, objects, requests, tiers=kinds, **tables)


def list_trees(inputs: LiveVideo) -> dict[int, list[tuple[int, ...]]]:
    """Return all sets of links over which each requested object can be sent, by object."""
    trees: dict[int, list[tuple[int, ...]]] = {}
    for o in np.unique(inputs.object).tolist():
        parents = [
            [-1, *np.flatnonzero(inputs.head == c).tolist()] if inputs.level[c] else [-1]
            for c in range(len(inputs.clusters))
        ]
        result = set()
        for pick in itertools.product(*parents):
            links = tuple(link for link in pick if link >= 0)
            fed = {int(c) for i, c in enumerate(inputs.sources) if inputs.is_at_source[o, i]}
            fed |= {int(inputs.head[link]) for link in links}
            if all(int(inputs.tail[link]) in fed for link in links):
                result.add(links)
        trees[o] = sorted(result)
    return trees


def best_by_force(inputs: LiveVideo) -> float:
    """Return the best objective of all plans, by enumeration of the trees of each object."""
    from planner_models.livevideo.plan.check import check
    from planner_models.livevideo.plan.metrics import measure

    trees = list_trees(inputs)
    asked, options = np.array(list(trees), dtype=np.int64), list(trees.values())
    best = -np.inf
    for choice in itertools.product(*options):
        item = np.concatenate(
            [np.full(len(share), o) for share, o in zip(choice, asked, strict=True)]
        ).astype(int)
        link = np.concatenate([np.array(share, dtype=int) for share in choice]).astype(int)
        plan = build_plan(inputs, item, link)
        if not len(check(inputs, plan)):
            value = measure(inputs, plan, None)["service_minus_cost"]
            assert value is not None
            best = max(best, value)
    return best
