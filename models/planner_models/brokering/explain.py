"""What limits an assignment: what room is worth, which CDN matters most, and what changed."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.system import Decided, Explanation, Section
from planner_models.brokering import flow, market
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.check import served
from planner_models.brokering.problem import Brokering

SHOWN: Final = 10  # rows of a table
GBPS: Final = 1000.0  # Mbit/s


def explain(
    problem: Brokering,
    decided: Decided,
    *,
    clusters: Annotated[
        int, Field(ge=0, description="full clusters that are solved for with a Gbit/s more")
    ] = 5,
    cdns: Annotated[
        int, Field(ge=0, description="CDNs, those with the most traffic first, that are solved without")
    ] = 20,
    previous: Assignment | None = None,
    options: Options = Options(),
) -> Explanation:
    """The money saved, what one more Gbit/s of each full cluster is worth, the CDN that is missed most.

    Prices of room come from the relaxation to divisible clients, and so do the changes that verify
    them: one more Gbit/s in one cluster, or one CDN less. Money is what the broker believes it pays.

    previous  the assignment to compare to; default: every client by performance alone
    source    shadow prices: linear programming duality
    """
    plan: Assignment = decided.decision.plan  # type: ignore[assignment]
    before, name = previous, "the present assignment"
    if before is None:
        by_performance = market.assign(problem.weighing(cost_weight=0.0), method="flow", options=options)
        before, name = by_performance.plan, "an assignment by performance alone"
    sentences: list[str] = []
    sections: list[Section] = []
    if before is not None:
        sections.append(_changes(problem, before, plan))
        sentences.append(_money(problem, before, plan, name))
    transport = market.transport_of(problem)
    relaxed = flow.relax(transport)
    if relaxed.bound is not None:
        for section, sentence in (
            _room(problem, transport, relaxed, plan, clusters),
            _losses(problem, transport, relaxed.bound, plan, cdns),
        ):
            sections.append(section)
            sentences.append(sentence)
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def cost_per_hour(problem: Brokering, plan: Assignment) -> float:
    """What the plan costs by the problem's prices, also where a cluster is not on offer."""
    return float(_traffic_cost(problem, plan)[1].sum())


def _traffic_cost(
    problem: Brokering, plan: Assignment
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Mbit/s, cost per hour and cluster of each row of a plan."""
    frame = plan.assignments
    location = problem.location_places.get_indexer(pd.Index(frame["location"]))
    cluster = problem.cluster_places.get_indexer(pd.Index(frame["cluster"])).astype(np.int64)
    for name, found in (("location", location), ("cluster", cluster)):
        if (found < 0).any():
            stranger = frame[name].iloc[int(np.flatnonzero(found < 0)[0])]
            raise InputError(f"the present assignment: {name} '{stranger}' is none of the problem's")
    mbps = frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000
    cost = np.nan_to_num(problem.price[location, cluster]) * mbps * problem.terms.units_per_mbps_hour
    return mbps, cost, cluster


def _money(problem: Brokering, before: Assignment, plan: Assignment, name: str) -> str:
    old, new = cost_per_hour(problem, before), cost_per_hour(problem, plan)
    currency = problem.terms.currency
    saved, word = old - new, "saves" if old >= new else "costs more by"
    share = f" ({abs(saved) / old:.1%})" if old > 0 else ""
    return (
        f"The plan costs {currency} {new:,.2f} an hour, {name} {currency} {old:,.2f}: "
        f"it {word} {currency} {abs(saved):,.2f} an hour{share}."
    )


def _changes(problem: Brokering, before: Assignment, plan: Assignment) -> Section:
    rows = {}
    for which, one in (("before", before), ("now", plan)):
        mbps, cost, cluster = _traffic_cost(problem, one)
        owner = problem.cdn[cluster]
        rows[f"{which}_mbps"] = np.bincount(owner, weights=mbps, minlength=len(problem.cdn_names))
        rows[f"{which}_cost"] = np.bincount(owner, weights=cost, minlength=len(problem.cdn_names))
    frame = pd.DataFrame({"cdn": problem.cdn_names, **rows})
    change = (frame["now_mbps"] - frame["before_mbps"]).abs()
    frame = frame.loc[change.sort_values(ascending=False, kind="stable").index].head(SHOWN)
    units = {"before_mbps": "Mbit/s", "now_mbps": "Mbit/s"}
    hourly = f"{problem.terms.currency}/h"
    units |= {"before_cost": hourly, "now_cost": hourly}
    return Section(title="what changes", frame=frame.reset_index(drop=True), units=units)


def _room(
    problem: Brokering,
    transport: flow.Transport,
    relaxed: flow.Relaxed,
    plan: Assignment,
    candidates: int,
) -> tuple[Section, str]:
    full = np.flatnonzero(relaxed.price > 0)
    full = full[np.argsort(-relaxed.price[full], kind="stable")]
    load = served(problem, plan).load_mbps
    gains = []
    for place, cluster in enumerate(full[:SHOWN].tolist()):
        room = transport.room.copy()
        room[cluster] += GBPS
        more = None
        if place < candidates:
            more = flow.relax(
                flow.Transport(cost=transport.cost, weight=transport.weight, count=transport.count, room=room)
            ).bound
        assert relaxed.bound is not None
        gains.append(np.nan if more is None else relaxed.bound - more)
    shown = full[:SHOWN]
    terms = problem.terms
    weight = terms.cost_weight if terms.cost_weight > 0 else 1.0  # objective to money, where it has a price
    unit = f"{terms.currency}/h" if terms.cost_weight > 0 else "objective"
    frame = pd.DataFrame(
        {
            "cluster": problem.clusters["cluster"].iloc[shown].to_list(),
            "load_mbps": load[shown],
            "free_mbps": problem.free_mbps[shown],
            "worth_per_gbps": relaxed.price[shown] * GBPS / weight,
            "gain_of_a_gbps": np.array(gains) / weight,
        }
    )
    section = Section(
        title="full clusters",
        frame=frame,
        units={
            "load_mbps": "Mbit/s",
            "free_mbps": "Mbit/s",
            "worth_per_gbps": unit,
            "gain_of_a_gbps": unit,
        },
        note="what room is worth in money and in performance, by the broker's weights: worth_per_gbps at "
        "the margin; gain_of_a_gbps of a whole Gbit/s, solved again",
    )
    if not len(full):
        return section, "No cluster is full: more room anywhere is worth nothing."
    best = frame.iloc[0]
    how_many = "1 cluster is" if len(full) == 1 else f"{len(full)} clusters are"
    return section, (
        f"{how_many} full. Room is worth most in {best['cluster']}: at the margin a Gbit/s more is worth "
        f"{best['worth_per_gbps']:,.6g} {unit} to the broker."
    )


def _losses(
    problem: Brokering, transport: flow.Transport, bound: float, plan: Assignment, candidates: int
) -> tuple[Section, str]:
    """What the broker loses without each CDN; if not all are tried, then those with the most traffic."""
    load = np.bincount(problem.cdn, weights=served(problem, plan).load_mbps, minlength=len(problem.cdn_names))
    rows: list[tuple[str, float, float | None]] = []
    for cdn in np.argsort(-load, kind="stable")[:candidates].tolist():
        cost = transport.cost.copy()
        cost[:, problem.cdn == cdn] = np.inf
        without = None
        if np.isfinite(cost).any(axis=1).all():
            lonely = flow.Transport(
                cost=cost, weight=transport.weight, count=transport.count, room=transport.room
            )
            without = flow.relax(lonely).bound
        lost = None if without is None else without - bound
        rows.append((problem.cdn_names[cdn], float(load[cdn]), lost))
    rows.sort(key=lambda row: -np.inf if row[2] is None else -row[2])
    frame = pd.DataFrame(rows, columns=["cdn", "load_mbps", "objective_lost"])
    section = Section(
        title="without a CDN",
        frame=frame,
        units={"load_mbps": "Mbit/s"},
        note="by divisible clients; no number: the other CDNs cannot serve all clients"
        + ("" if len(rows) == len(problem.cdn_names) else f"; the {len(rows)} CDNs with the most traffic"),
    )
    if not rows:
        return section, "No CDN was left out to see what it is worth."
    name, _, lost = rows[0]
    if lost is None:
        return section, f"Without {name} the other CDNs cannot serve all clients."
    return section, (
        f"Without {name} the broker loses most: its objective rises by {lost:,.6g} "
        f"({lost / max(abs(bound), 1e-9):.1%})."
    )
