"""Areas of OSPF: shortest paths within an area, and summaries of distances between areas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.errors import InputError, did_you_mean
from planner.options import Options
from planner_models.traffic.designs.group_next_hops import (
    decide_by_next_hops,
    distances_over,
    links_on_way,
    read_groups,
)
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

BACKBONES: Final = ("0", "0.0.0.0", "backbone")
"""Names of a group that is the backbone."""
NO_AREA: Final = -1

Backbone = Annotated[
    str | None,
    Field(
        description="group of the backbone's nodes; default: 0, 0.0.0.0 or backbone, else all are one area"
    ),
]
Summaries = Annotated[
    Literal["nodes", "areas"],
    Field(
        description="nodes: border routers announce their distance to each node of an area; areas: one "
        "distance for the whole area, that of its farthest node"
    ),
]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Areas:
    """Areas of a network; the backbone is area 0.

    area     (N,) area of each node
    of_link  (E,) area of each link, NO_AREA for links between two areas other than the backbone
    border   for each area but the backbone its border routers, nodes of the backbone
    """

    area: Ints
    of_link: Ints
    border: tuple[Ints, ...]

    def border_of(self, area: int) -> Ints:
        """Return the border routers of an area; of the backbone those of all areas."""
        if area:
            return self.border[area - 1]
        return np.unique(np.concatenate(self.border)) if self.border else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Distances:
    """Distances over the links of each area, inf without a path.

    to_target  (D, N) of each area
    to_border  (B, N) of each area, to its border routers; of the backbone to those of all areas
    farthest   (B,) of each area but the backbone, from its border routers to the farthest node of the area
               that they have a path to; inf where they have a path to none
    """

    to_target: tuple[Floats, ...]
    to_border: tuple[Floats, ...]
    farthest: tuple[Floats, ...]


@shed_unreachable
def route(
    problem: Traffic,
    *,
    backbone: Backbone = None,
    summaries: Summaries = "nodes",
    options: Options = Options(),
) -> Decision[Routing]:
    """Split traffic evenly over next hops of OSPF in areas, which are the groups of nodes.

    A node in the backbone with links into another area is a border router of it. Paths within an area come
    first, even where a path through the backbone is shorter. To other areas, nodes take the border router
    with the least sum of their distance to it and the distance that it announces. A link between two areas
    other than the backbone carries nothing, as its ends are no neighbours in OSPF. With summaries "areas" a
    border router that has no path to a part of its own area drops the traffic to that part.

    source  RFC 2328, 12.4.3 (summaries), 16.1 and 16.2 (paths within and between areas); Mukerjee 2018, 1.2.2
    """
    areas = _find_areas(problem, backbone)
    distances = _find_distances(problem, areas)
    uses = np.zeros((len(problem.targets), len(problem.links)), dtype=bool)
    for row in range(len(problem.targets)):
        uses[row] = _find_next_hops(problem, areas, distances, row, by_area=summaries == "areas")
    return decide_by_next_hops(problem, uses, must_serve=options.service == "all")


def describe_areas(problem: Traffic, parameters: Mapping[str, Any]) -> str:
    """Return that a network has one area, or links that no area has; "" where neither is true."""
    areas = _find_areas(problem, parameters.get("backbone"))
    if not areas.border:
        return "no group of nodes is the backbone, so that all nodes are in one area"
    unused = int((areas.of_link == NO_AREA).sum())
    return f"{unused} links between two areas other than the backbone carry nothing" if unused else ""


def _find_areas(problem: Traffic, backbone: str | None) -> _Areas:
    """Return the areas that groups of nodes make; InputError for a backbone that is no group."""
    group, names = read_groups(problem)
    if backbone is not None and backbone not in names:
        raise InputError(f"backbone is '{backbone}', no group of nodes" + did_you_mean(backbone, names))
    name = backbone or next((known for known in BACKBONES if known in names), None)
    if name is None:
        group, names, name = np.zeros_like(group), [""], ""
    first = names.index(name)
    area = np.where(group == first, 0, np.where(group < first, group + 1, group))
    tail, head = area[problem.tail], area[problem.head]
    of_link = np.where(tail == head, tail, np.where(tail == 0, head, np.where(head == 0, tail, NO_AREA)))
    ends = np.r_[problem.tail, problem.head]
    border = tuple(
        np.unique(ends[(np.r_[of_link, of_link] == other) & (area[ends] == 0)])
        for other in range(1, len(names))
    )
    return _Areas(area=area, of_link=of_link, border=border)


def _find_distances(problem: Traffic, areas: _Areas) -> _Distances:
    links = [areas.of_link == area for area in range(len(areas.border) + 1)]
    farthest = []
    for area, border in enumerate(areas.border, start=1):
        nodes = np.flatnonzero(areas.area == area)
        distance = distances_over(problem, links[area], nodes)[:, border]
        reached = np.where(np.isfinite(distance), distance, -np.inf).max(axis=0, initial=-np.inf)
        farthest.append(np.where(reached >= 0, reached, np.inf))
    return _Distances(
        to_target=tuple(distances_over(problem, some, problem.targets) for some in links),
        to_border=tuple(
            distances_over(problem, some, areas.border_of(area)) for area, some in enumerate(links)
        ),
        farthest=tuple(farthest),
    )


def _find_next_hops(
    problem: Traffic, areas: _Areas, distances: _Distances, row: int, *, by_area: bool
) -> Bools:
    """Return the links, (E,), by which nodes send traffic to the target of a row."""
    home = int(areas.area[problem.targets[row]])
    inside = distances.to_target[home][row]
    uses = links_on_way(problem, areas.of_link == home, inside) & (problem.tail != problem.targets[row])
    announced = inside
    if home:
        announced = np.full(len(areas.area), np.inf)
        border = areas.border_of(home)
        announced[border] = distances.farthest[home - 1] if by_area else inside[border]
        backbone = _add_announced(areas, distances, 0, announced)
        # a border router without a path in its own area drops what its announced distance attracts
        waits = ~np.isfinite(inside) & ~np.isfinite(announced)
        uses |= links_on_way(problem, areas.of_link == 0, backbone) & waits[problem.tail]
        announced = np.where(np.isfinite(announced), announced, backbone)
    for area in range(1, len(areas.border) + 1):
        outside = _add_announced(areas, distances, area, announced)
        waits = (areas.area == area) & ~((area == home) & np.isfinite(inside))
        uses |= links_on_way(problem, areas.of_link == area, outside) & waits[problem.tail]
    return np.asarray(uses)


def _add_announced(areas: _Areas, distances: _Distances, area: int, announced: Floats) -> Floats:
    """Return the least distance to a border router and from there on as it announces, (N,), in an area."""
    border = areas.border_of(area)
    sums = distances.to_border[area] + announced[border][:, None]
    return np.asarray(sums.min(axis=0, initial=np.inf))
