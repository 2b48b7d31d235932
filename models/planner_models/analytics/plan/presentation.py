"""Presentation of plans of system `analytics`: value and load over time, and uplinks as elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.drawing import Curve, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact, row_of
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.analytics.plan.answers import (
    Loads,
    find_answers,
    find_loads,
    find_query_loads,
    replay_queues,
)
from planner_models.analytics.plan.metrics import find_timely_value
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.archives import PLACES as STORE_PLACES
from planner_models.analytics.problem.generators import finest_bytes
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.regions import list_regions
from planner_models.analytics.problem.tables import BYTES_PER_MBIT

MOST_BARS: Final = 20
UPLINK: Final = "uplink"
MOST_ROWS: Final = 20
BYTES_PER_GB: Final = 1e9
ACTIONS: Final = (
    Action(name="Fail", state="failed", parameter="fail_links", role="failure"),
    Action(
        name="Double its bandwidth",
        state="at double bandwidth",
        parameter="link_factors",
        value=2.0,
        role="upgrade",
    ),
    Action(name="Halve its bandwidth", state="at half bandwidth", parameter="link_factors", value=0.5),
)


def draw_demand(problem: Analytics) -> Sequence[Drawing]:
    """Draw the load of all sites at the finest levels, and the capacity of their uplinks, over time."""
    sites = len(problem.site_names)
    return [_over_time(problem, "Load at the finest levels", finest_bytes(problem)[:, :sites])]


def draw(problem: Analytics, plan: Levels) -> Sequence[Drawing]:
    """Draw the value of answers in time, the load of uplinks, the value of each query, and stored data."""
    levels = read_levels(problem, plan)
    answers, loads = find_answers(problem, levels), find_loads(problem, levels)
    timely = find_timely_value(problem, levels, answers, replay_queues(problem, loads))[0]
    taking_part = problem.has_data.any(axis=0)
    offered = problem.is_asked @ (problem.value_usd * taking_part)
    hour = problem.start_s / 3600
    value = pd.DataFrame({"hour": hour, "answers": timely.sum(axis=1), "full quality": offered})
    total = timely.sum(axis=0) / np.maximum(problem.value_usd * problem.is_asked.sum(axis=0), 1e-300)
    lowest = np.argsort(total, kind="stable")[:MOST_BARS]
    bars = pd.DataFrame(
        {"query": [problem.query_names[row] for row in lowest.tolist()], "quality": total[lowest] * 100}
    )
    return [
        Curve(title="Value of answers in time", frame=value, units={"answers": "USD", "full quality": "USD"}),
        _over_time(problem, "Load and capacity of sites", loads.site),
        _compare_uplinks(problem, loads),
        Curve(
            title="Part of its value that each query keeps, the lowest first",
            frame=bars,
            units={"quality": "%"},
            bars=True,
        ),
        *_draw_archived(plan),
    ]


def _draw_archived(plan: Levels) -> list[Drawing]:
    """Return the bars of stored data by query, GB, of each kind of place; none where none is stored."""
    if not len(plan.archived):
        return []
    stored = plan.archived.pivot_table(
        index="query", columns="at", values="gb", aggfunc="sum", fill_value=0.0
    )
    frame = stored.reindex(columns=[name for name in STORE_PLACES if name in stored]).reset_index()
    units = dict.fromkeys(frame.columns[1:].tolist(), "GB")
    return [
        Curve(title="Data that is stored for later queries, by place", frame=frame, units=units, bars=True)
    ]


def _compare_uplinks(problem: Analytics, loads: Loads) -> Curve:
    """Return the load of each uplink over its capacity, in all intervals together, %, the highest first."""
    load = np.concatenate([loads.site, loads.pop], axis=1).sum(axis=0)
    capacity = problem.capacity_bytes.sum(axis=0)
    utilization = 100 * np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0)
    highest = np.argsort(-utilization, kind="stable")[:MOST_BARS]
    frame = pd.DataFrame(
        {
            "uplink": [problem.link_names[row] for row in highest.tolist()],
            "utilization": utilization[highest],
        }
    )
    return Curve(
        title="Load of uplinks over their capacity, the highest first",
        frame=frame,
        units={"utilization": "%"},
        bars=True,
    )


def _over_time(problem: Analytics, title: str, load: np.ndarray) -> Curve:
    """Return the curve of the bytes of all sites and of the capacity of their uplinks, Mbit/s."""
    sites = len(problem.site_names)
    rate = load.sum(axis=1) / problem.length_s / BYTES_PER_MBIT
    capacity = problem.capacity_mbps[:, :sites].sum(axis=1)
    frame = pd.DataFrame({"hour": problem.start_s / 3600, "load": rate, "capacity": capacity})
    return Curve(title=title, frame=frame, units={"load": "Mbit/s", "capacity": "Mbit/s"})


def list_uplinks(problem: Analytics) -> list[str]:
    """Return the names of all sites, then those of points of presence, each for its uplink."""
    return [str(name) for name in problem.link_names]


def _facts(problem: Analytics, load: Floats, link: int) -> list[Fact]:
    """Return the capacity and load of an uplink.

    load  (K,) bytes
    """
    capacity = problem.capacity_bytes[:, link]
    has = capacity > 0
    highest = float((load[has] / capacity[has]).max()) if has.any() else None
    total = float(capacity.sum())
    facts = [
        Fact(label="Mean bandwidth", value=float(problem.capacity_mbps[:, link].mean()), unit="Mbit/s"),
        Fact(label="Sent", value=float(load.sum()) / BYTES_PER_GB, unit="GB"),
        Fact(label="Utilization", value=100 * float(load.sum()) / total if total > 0 else None, unit="%"),
        Fact(label="Highest utilization", value=None if highest is None else 100 * highest, unit="%"),
    ]
    if not has.all():
        facts.append(Fact(label="Intervals without bandwidth", value=float((~has).sum())))
    return facts


def describe_uplink(problem: Analytics, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the load of an uplink, and the queries of its site or the sites of its point of presence."""
    link, sites = row_of(list_uplinks(problem), name, UPLINK), len(problem.site_names)
    levels = read_levels(problem, decided.plan)
    return (
        _describe_site(problem, levels, link)
        if link < sites
        else _describe_pop(problem, levels, link - sites)
    )


def _describe_site(problem: Analytics, levels: Ints, site: int) -> ElementReport:
    """Return the load of a site's uplink, and the data that it sends for each query."""
    answers = find_answers(problem, levels)
    sent, wasted = np.zeros((2, len(levels), len(problem.query_names)))
    for query in np.flatnonzero(problem.has_data[site]).tolist():
        query_loads = find_query_loads(problem, levels, query, answers)
        sent[:, query], wasted[:, query] = query_loads.sent[:, site], query_loads.wasted[:, site]
    facts = _facts(problem, sent.sum(axis=1), site)
    facts.append(Fact(label="Point of presence", value=str(problem.pop_names[problem.pop_of[site]])))
    if region := list_regions(problem.sites)[site]:
        facts.append(Fact(label="Region", value=region))
    rows = np.argsort(-sent.sum(axis=0), kind="stable")[:MOST_ROWS]
    rows = rows[problem.has_data[site, rows]]
    total = sent.sum(axis=0)[rows]
    frame = pd.DataFrame(
        {
            "query": [problem.query_names[row] for row in rows.tolist()],
            "usual_level": [_usual_level(problem, levels[:, site, row], row) for row in rows.tolist()],
            "sent": total / BYTES_PER_GB,
            "wasted": 100
            * np.divide(wasted.sum(axis=0)[rows], total, out=np.zeros_like(total), where=total > 0),
        }
    )
    section = Section(title="Queries", frame=frame, units={"sent": "GB", "wasted": "%"})
    return ElementReport(facts=tuple(facts), sections=(section,) if len(frame) else ())


def _usual_level(problem: Analytics, levels: Ints, query: int) -> str:
    """Return the name of the level that is chosen in most intervals."""
    return str(problem.level_names[query][int(np.bincount(np.maximum(levels, 0)).argmax())])


def _describe_pop(problem: Analytics, levels: Ints, pop: int) -> ElementReport:
    """Return the load of the uplink of a point of presence, and the sites that use it."""
    loads = find_loads(problem, levels)
    facts = _facts(problem, loads.pop[:, pop], len(problem.site_names) + pop)
    sites = np.flatnonzero(problem.pop_of == pop)
    sent = loads.site[:, sites].sum(axis=0)
    order = np.argsort(-sent, kind="stable")[:MOST_ROWS]
    capacity = problem.capacity_bytes[:, sites].sum(axis=0)
    used = 100 * np.divide(sent, capacity, out=np.zeros_like(sent), where=capacity > 0)
    frame = pd.DataFrame(
        {
            "site": [problem.site_names[row] for row in sites[order].tolist()],
            "sent": sent[order] / BYTES_PER_GB,
            "utilization": used[order],
        }
    )
    section = Section(title="Sites", frame=frame, units={"sent": "GB", "utilization": "%"})
    return ElementReport(facts=tuple(facts), sections=(section,) if len(frame) else ())


ELEMENTS: Final = (ElementKind(name=UPLINK, names=list_uplinks, actions=ACTIONS, describe=describe_uplink),)
