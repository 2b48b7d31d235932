"""Adjustments that apply to every problem of system `traffic`, whatever its source.

Two of them come with a note or a question where a user has not decided. Many tables have one row for a line
that carries traffic both ways: read as one-way links, half of the network is missing, and demands have no
path. And demands may be split over paths and sent in part, which matters where capacity is short.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools
from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.contract.questions import OpenQuestion
from planner.contract.tables import file_name
from planner.contract.tolerances import EXACT, exceeds
from planner_models.networks.classes import split_demands
from planner_models.traffic.problem import failures
from planner_models.traffic.problem.network_elements import pair_links
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.tables import Overload

SENT_IN_PART: Final = (
    "assumed: demands may be split over paths and sent in part, and some nodes have more than their links "
    "carry; design cspf admits each whole or refuses it, as reservations (RSVP-TE)"
)
SPLIT: Final = (
    "assumed: demands may be split over paths, and some are larger than each link at one of their ends; "
    "design cspf keeps each on one path, as reservations (RSVP-TE)"
)

BothDirections = Annotated[
    bool | None,
    Field(
        description="true: each link without an opposite one gets one, for tables with a row for both "
        "ways; false: each row is one way only; none: the same, with a warning where no row has an "
        "opposite one and demands lack a path"
    ),
]
DemandScale = Annotated[
    float, Field(ge=0, allow_inf_nan=False, description="every demand's rate is multiplied by this")
]
CapacityScale = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="every link's capacity is multiplied by this")
]
ClassShares = Annotated[
    dict[str, Annotated[float, Field(gt=0, le=1)]],
    Field(
        description="classes that each demand is split into, the highest priority first, and the shares "
        "of its rate that they get"
    ),
]
OverloadRule = Annotated[
    Overload,
    Field(
        description="what happens on overloaded links; drop: senders keep their rates, and each link "
        "drops its excess, the same share of all traffic on it; priority: the same, but links serve "
        "higher classes first; max-min: TCP slows the senders down to max-min fair rates"
    ),
]


@spread(failed=failures.Failures())
def adjust(
    problem: Traffic,
    *,
    both_directions: BothDirections = None,
    scale: DemandScale = 1.0,
    capacity_scale: CapacityScale = 1.0,
    failed: failures.Failures,
    class_shares: ClassShares = {},  # noqa: B006 - never changed
    overload: OverloadRule = "drop",
) -> Traffic:
    """Add opposite links, scale demands and capacities, then remove failed elements.

    Nodes that fail stay in the table, without links. Named elements fail first; then groups, nodes and links
    are drawn, in this order, among those that remain. Parallel links keep their numbers. Factors in
    `capacity_factors` are of scaled capacities.

    raises  InputError for names that match nothing, for more failures than there are elements, and,
            with `lost_demands` "error", for demands that lose their last path
    """
    problem = _direct_links(problem, both_directions)
    problem = problem.scale_demands(scale).scale_capacity(capacity_scale)
    if class_shares:
        demands, classes = split_demands(problem.demands, class_shares)
        problem = replace(problem, demands=demands, classes=classes)
    if overload != problem.overload:
        problem = replace(problem, overload=overload)
    if note := find_divided(problem):
        add_note(note)
    return failed.remove_from(problem)


def _direct_links(problem: Traffic, both_directions: bool | None) -> Traffic:
    """Return the problem with opposite links where they are asked for; note a doubt where nothing is said."""
    if both_directions:
        return add_opposites(problem)
    if both_directions is None and (doubt := find_one_way_doubt(problem, file_name(problem.links, "links"))):
        add_note(doubt)
    return problem


def find_divided(problem: Traffic) -> str | None:
    """Return a note where the links of a node cannot carry its demands, or no link one of them; else None.

    Networks that reserve whole demands would refuse some of these; plans split them, and send parts.
    """
    count, rate, capacity = len(problem.nodes), problem.rate_mbps, problem.capacity_mbps
    is_split = False
    for nodes, of_links in ((problem.source, problem.tail), (problem.target, problem.head)):
        offered = np.bincount(nodes, weights=rate, minlength=count)
        total = np.bincount(of_links, weights=capacity, minlength=count)
        if ((total > 0) & exceeds(offered, total, relative=EXACT)).any():
            return SENT_IN_PART
        largest, widest = np.zeros(count), np.zeros(count)
        np.maximum.at(largest, nodes, rate)
        np.maximum.at(widest, of_links, capacity)
        is_split = is_split or bool(((total > 0) & exceeds(largest, widest, relative=EXACT)).any())
    return SPLIT if is_split else None


def lacks_opposite(problem: Traffic) -> Bools:
    """Return the links without an opposite one of the same parallel number, shape (E,)."""
    _, line = pair_links(problem)
    return np.asarray(np.bincount(line)[line] == 1)


def add_opposites(problem: Traffic) -> Traffic:
    """Return the problem with a link opposite to each that has none, of the same values in all columns."""
    alone = lacks_opposite(problem)
    if not alone.any():
        return problem
    links = problem.numbered_links
    opposite = links[alone].rename(columns={"tail": "head", "head": "tail"})[links.columns]
    return replace(problem, links=pd.concat([links, opposite], ignore_index=True))


def find_one_way_doubt(problem: Traffic, where: str) -> str | None:
    """Return a warning where no link has an opposite, and demands have a path only if all had one.

    where  name of the links' file
    """
    count = _count_against_rows(problem)
    if count == 0:
        return None
    demands = "1 demand has" if count == 1 else f"{count:,} demands have"
    return (
        f"warning: {where}: no row has an opposite one, and {demands} no path against the direction of the "
        "rows; if each row is a line both ways, say problem.both_directions = true, else "
        "false"
    )


def ask_directions(problem: Traffic) -> list[OpenQuestion]:
    """Return the question whether rows are lines both ways, where no link of several has an opposite one."""
    if len(problem.links) < 2 or not lacks_opposite(problem).all():
        return []
    lost = _count_against_rows(problem)
    count = f"{lost:,} of {len(problem.demands):,} demands"
    return [
        OpenQuestion(
            parameter="both_directions",
            text="is each row of the table links a line in both directions",
            answers={
                True: "each row of links is a line both ways",
                False: "each row of links is one way only",
            },
            assumed=lost > 0,
            reason=f"no row has an opposite one, and {count} have a path only against their direction"
            if lost
            else "all demands that have a path have one in the direction of the rows",
        )
    ]


def _count_against_rows(problem: Traffic) -> int:
    """Return the number of demands with a path only against the rows; 0 where a link has an opposite one."""
    lost = problem.unreachable
    if not lost.any() or not lacks_opposite(problem).all():
        return 0
    return int((lost & ~add_opposites(problem).unreachable).sum())
