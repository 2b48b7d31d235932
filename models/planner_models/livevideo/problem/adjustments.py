"""Adjustments of any problem: weights, priorities, capacities, costs and failures.

Note on the last hop: unless it is unicast, a link into a group carries each object once for all viewers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats
from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner.formatting import amount, counted
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import PINNED
from planner_models.livevideo.problem.tables import VideoTables
from planner_models.livevideo.problem.validation import last_hop_mbps
from planner_models.livevideo.problem.workloads import Priority, priorities


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Weights, priorities, factors on capacity and cost, accepted bitrates, and failures."""

    service_weight: Annotated[
        Annotated[float, Field(ge=0)] | None, Field(description="value of one unit of priority served")
    ] = None
    cost_weight: Annotated[
        Annotated[float, Field(ge=0)] | None, Field(description="value of one unit of cost x Mbit/s saved")
    ] = None
    priorities_by: Annotated[
        Priority | None,
        Field(description="new priorities: quality: bitrate, balanced: 1, quantity: 1 over bitrate"),
    ] = None
    capacity_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="factor on the capacity of every link")
    ] = 1.0
    cost_scale: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="factor on the cost of every link")
    ] = 1.0
    bill_price_scale: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="factor on the price of every bill")
    ] = 1.0
    cap_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="factor on the cap of every bill")
    ] = 1.0
    capacity_factors: Annotated[
        dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
        Field(
            description="links whose capacity is multiplied, such as S1->R1, and by what; a cluster for all "
            "links out of it"
        ),
    ] = field(default_factory=dict)
    cost_factors: Annotated[
        dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(
            description="links whose cost is multiplied, such as S1->R1, and by what; a cluster for all "
            "links out of it"
        ),
    ] = field(default_factory=dict)
    lowest_kbps: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Field(
            description="lowest bitrate that all clients accept in place of the requested one, kbit/s; for "
            "requests below it the requested one"
        ),
    ] = None
    last_hop: Annotated[
        Literal["multicast", "unicast"] | None,
        Field(
            description="links into groups carry a stream once for all of its viewers (multicast) or once "
            "for each (unicast)"
        ),
    ] = None
    fail_links: Annotated[
        tuple[str, ...], Field(description='links that have failed, such as ["S1->R1"]')
    ] = ()
    fail_clusters: Annotated[tuple[str, ...], Field(description="clusters that have failed")] = ()


@spread(adjustments=Adjustments())
def adjust(problem: LiveVideo, *, adjustments: Adjustments) -> LiveVideo:
    """Return the problem with other weights, priorities, bitrates, capacities, costs, bills or failures.

    Names are exact. Factors of a link and of its cluster are multiplied.

    raises  InputError for an unknown link or cluster
    """
    settings = {
        name: getattr(adjustments, name)
        for name in ("service_weight", "cost_weight", "last_hop")
        if getattr(adjustments, name) is not None
    }
    scales = {
        "capacity_mbps": adjustments.capacity_scale
        * _factors(problem, "capacity_factors", adjustments.capacity_factors),
        "cost": adjustments.cost_scale * _factors(problem, "cost_factors", adjustments.cost_factors),
    }
    changed: dict[str, Any] = {}  # collected, since each new problem is validated
    if settings:
        changed["settings"] = problem.settings.assign(**settings)
    if adjustments.priorities_by is not None:
        rates = problem.objects["bitrate_kbps"].to_numpy(float)
        changed["objects"] = problem.objects.assign(priority=priorities(rates, adjustments.priorities_by))
    if adjustments.lowest_kbps is not None:
        requests = problem.requests
        changed["requests"] = requests.assign(
            lowest_kbps=np.minimum(adjustments.lowest_kbps, requests["bitrate_kbps"])
        )
    if any((scale != 1.0).any() for scale in scales.values()):
        links = problem.links
        changed["links"] = links.assign(**{name: links[name] * scale for name, scale in scales.items()})
    changed |= _scale_bills(problem, adjustments)
    if changed:
        problem = replace(problem, **changed)
    if "where" in problem.requests.attrs and (note := describe_shared_last_hop(problem)):
        add_note(note)  # of tables from users: generated groups are the clients of an edge cluster
    return remove_failed(problem, adjustments.fail_links, adjustments.fail_clusters)


def _scale_bills(problem: LiveVideo, adjustments: Adjustments) -> dict[str, Any]:
    """Return the changed table of bills, by its name; empty where it stays."""
    scales = {"price_per_mbps": adjustments.bill_price_scale, "cap_mbps": adjustments.cap_scale}
    bills = problem.bills
    scaled = {
        name: bills[name] * scale
        for name, scale in scales.items()
        if scale != 1.0 and name in bills and len(bills)
    }
    return {"bills": bills.assign(**scaled)} if scaled else {}


def _factors(problem: LiveVideo, parameter: str, factors: Mapping[str, float]) -> Floats:
    """Return the factor of each link, shape (L,): those of its name and of the cluster it leaves."""
    factor = np.ones(len(problem.links))
    faults = []
    for name, value in factors.items():
        is_meant = np.array([label == name for label in problem.link_labels])
        if not is_meant.any():
            is_meant = (problem.links["tail"] == name).to_numpy()
        if not is_meant.any() and name not in problem.cluster_index:
            labels = [*problem.link_labels, *problem.clusters["cluster"]]
            faults.append(
                f"problem.{parameter}: '{name}' is no link and no cluster" + did_you_mean(name, labels)
            )
        factor[is_meant] *= value
    if faults:
        raise InputError(*faults)
    return factor


def remove_failed(
    problem: LiveVideo, links: tuple[str, ...] = (), clusters: tuple[str, ...] = ()
) -> LiveVideo:
    """Return the problem without failed links and the links of failed clusters; requests stay.

    raises  InputError for an unknown link or cluster
    """
    if not links and not clusters:
        return problem
    faults = [
        f"fail_links: '{name}' is no link" + did_you_mean(name, problem.link_labels)
        for name in links
        if name not in problem.link_labels
    ] + [
        f"fail_clusters: '{name}' is no cluster" + did_you_mean(name, problem.clusters["cluster"])
        for name in clusters
        if name not in problem.cluster_index
    ]
    if faults:
        raise InputError(*faults)
    has_failed = np.isin(np.array(problem.link_labels, dtype=object), list(links))
    for column in ("tail", "head"):
        has_failed |= problem.links[column].isin(clusters).to_numpy()
    return without_links(problem, has_failed)


def without_links(problem: LiveVideo, removed: Bools, capacity_mbps: Floats | None = None) -> LiveVideo:
    """Return the problem without some links (L,), without the rules on them, and with other capacities.

    Where no link is left between two tiers they stay, with capacity 0.
    """
    capacity = (problem.capacity_mbps if capacity_mbps is None else capacity_mbps).copy()
    capacity[removed] = 0.0
    level = problem.level[problem.tail]
    is_kept = ~removed | np.isin(level, np.setdiff1d(level, level[~removed]))
    rules = {}
    for table in ("pinned", "forbidden"):
        frame = getattr(problem, table)
        applies = [
            is_everywhere or bool(is_kept[matched].any())
            for is_everywhere, _, matched in problem.match_rules(frame)
        ]
        rules[table] = frame[np.array(applies, dtype=bool)]
    return replace(problem, links=problem.links.assign(capacity_mbps=capacity)[is_kept], **rules)


def pin_everything(problem: LiveVideo) -> LiveVideo:
    """Return the problem in which every request must be served."""
    everything = pd.DataFrame([["*"] * 4], columns=list(PINNED.columns))
    return replace(problem, pinned=pd.concat([problem.pinned, everything], ignore_index=True))


def describe_shared_last_hop(problem: VideoTables) -> str:
    """Return a note where links into groups are too small to send every viewer its own stream; else "".

    The plans hold all the same: an object crosses a link once. A network whose last hop is unicast, such as
    one over HTTP, would serve fewer viewers: `last_hop` plans for it.
    """
    if problem.is_unicast:
        return ""
    each_alone, capacity = last_hop_mbps(problem)
    short = np.flatnonzero(each_alone > capacity * (1 + 1e-9))
    if not len(short):
        return ""
    worst = int(short[np.argmax(each_alone[short] - capacity[short])])
    group = problem.clusters["cluster"].iloc[worst]
    viewers = float(problem.clients[problem.group == worst].sum())
    others = len(short) - 1
    return (
        f"assumed: links into a group carry each stream once for all of its viewers (multicast); a stream of "
        f"its own for each of the {counted(viewers, 'viewers')} of '{group}' would need "
        f"{amount(float(each_alone[worst]), 'Mbit/s')}, and its links have "
        f"{amount(float(capacity[worst]), 'Mbit/s')}"
        + (f"; {counted(others, 'other groups', 'are')} short too" if others else "")
        + "; problem.last_hop = unicast plans a stream for each"
    )
