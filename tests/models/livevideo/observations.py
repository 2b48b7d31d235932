"""Runs, problems and views for tests of observed problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from planner import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Entry
from planner_models.livevideo import SYSTEM, LiveVideo, Trees, information
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.problem import generators
from tests.models.livevideo.networks import problem, problems

QUICK = Options(time_limit_s=5, threads=1, gap=1e-3)


OBSERVING = [design for design in DESIGNS if design.name != "everything_everywhere"]


TABLES = ("clusters", "links", "objects", "requests", "holders", "pinned", "forbidden", "settings")


TIERS = {
    "S": "source",
    "X": "reflector",
    "Y": "reflector",
    "E": "edge",
    "F": "edge",
    "A": "group",
    "B": "group",
}


def run(one: LiveVideo, name: str, **degradation: Any) -> Run:
    entry = Entry(label=name, design=SYSTEM.design(name), information=degradation)
    return evaluate(SYSTEM, one, entry, options=QUICK)


def small(seed: int = 0) -> LiveVideo:
    return generators.heavy_tail(
        videos=60, groups=80, edges=20, requests_per_video=1.5, source_gbps=0.4, sources=2, reflectors=3,
        reflectors_per_edge=2, seed=seed,
    )  # fmt: skip


@st.composite
def placed(draw: st.DrawFn) -> LiveVideo:
    """Draw a small problem with coordinates and arrival times."""
    drawings = draw(problems(rules=True))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    clusters = drawings.clusters.assign(
        latitude=rng.uniform(30, 50, len(drawings.clusters)),
        longitude=rng.uniform(-120, -70, len(drawings.clusters)),
    )
    requests = drawings.requests.assign(arrival_s=rng.uniform(0, 60, len(drawings.requests)))
    return replace(drawings, clusters=clusters, requests=requests)


DEGRADATIONS = st.sampled_from(
    [
        {"age_s": 20.0},
        {"noise": 0.5, "seed": 1},
        {"granularity_km": 800.0},
        {"age_s": 10.0, "noise": 0.3, "granularity_km": 300.0},
        {"granularity_km": 1e5},
        {"noise": 2.0, "seed": 2},
    ]
)


def degradation_of(design: Any, degradation: dict[str, Any]) -> dict[str, Any]:
    """Return the degradations that a design has."""
    local_only = design.observe is information.observe_announcements
    return {key: value for key, value in degradation.items() if not (local_only and key == "granularity_km")}


def one_way(*, narrow: tuple[str, str] | None = None) -> LiveVideo:
    """Return a problem with two paths from S to A, for one stream each; `narrow` carries half a stream."""
    links = [("S", "X", 1.0, 1.0), ("S", "Y", 1.0, 5.0), ("X", "E", 1.0, 1.0), ("Y", "F", 1.0, 1.0),
             ("E", "A", 9.0, 0.0), ("F", "A", 9.0, 0.0)]  # fmt: skip
    return problem(
        [(tail, head, 0.5 if (tail, head) == narrow else mbps, cost) for tail, head, mbps, cost in links],
        [("v", 1000.0, 1.0), ("w", 1000.0, 1.0)],
        [("A", "v", 1000.0, 1.0)],
        tiers=TIERS,
    )


def cluster_view(
    item: LiveVideo, error: tuple[str, str, float] | None = None, **degradation: float
) -> information.ClusterView:
    """Return a view in which a cluster announces a link with a measurement error."""
    view = information.ClusterView(**{name: getattr(item, name) for name in TABLES}, **degradation)
    off = np.zeros(len(item.links))
    if error is not None:
        off[item.link_labels.index(f"{error[0]}->{error[1]}")] = error[2]
    vars(view)["measurement_error_mbps"] = off
    return view


def heads(plan: Trees | None) -> set[str]:
    assert plan is not None
    return set(plan.trees["head"])
