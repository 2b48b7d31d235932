"""Elements of a problem of system `analytics`: the uplinks of sites and of points of presence."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.elements import Action, ElementKind, ElementReport, Fact, row_of
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.analytics.plan.answers import find_answers, find_loads, find_query_loads
from planner_models.analytics.plan.plan import read_levels
from planner_models.analytics.problem.problem import Analytics

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
