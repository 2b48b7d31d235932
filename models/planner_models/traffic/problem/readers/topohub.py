"""Networks of the package topohub: SNDlib, Topology Zoo, CAIDA, world backbones, Gabriel graphs.

Source: P. Jurkiewicz, "TopoHub: A repository of reference Gabriel graph and real-world topologies
for networking research", SoftwareX 24 (2023). The networks are part of the package, nothing is
downloaded. The package has at most one edge between two nodes and one demand each way: of parallel
ones (in SNDlib's ta1, ta2 and zib54) the last.

Load of each link under shortest-path routing with equal-cost multipath (ECMP).
"""

from __future__ import annotations

import difflib
import importlib.resources
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats
from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner.search.tolerances import ROUNDING
from planner_models.traffic.problem.readers import Tables, table_building
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import (
    Pairs,
    Seed,
    build_table,
    gravity_demands,
    keep_largest,
    named_tables,
    position_columns,
    to_floats,
)
from planner_models.traffic.problem.tables import lightest_links

CAPACITY_CLASSES_MBPS: Final = np.array([1_000.0, 2_500.0, 4_000.0, 10_000.0])
KM_PER_MS: Final = 200.0  # light in fibre
MIN_LENGTH_KM: Final = 1.0  # as a routing metric, which must be positive for nodes in the same place too
PIXEL_NETWORKS: Final = {"sndlib/india35"}  # positions are pixels, though within the range of degrees

Demands = tuple[NDArray[np.intp], NDArray[np.intp], Floats]
LENGTH_TOLERANCE: Final = ROUNDING  # relative difference of length below which two paths are equally short
MAX_DISTANCES: Final = 1 << 23  # distances in memory at once (8 bytes each)

CapacityRule = Annotated[
    Literal["unit", "classed"],
    Field(
        description="unit: every link 1 Gbit/s; classed: 1, 2.5, 4 or 10 Gbit/s, the smallest that "
        "is at least the link's shortest-path load"
    ),
]
DemandSource = Annotated[
    Literal["auto", "given", "gravity"],
    Field(description="given: the network's own; gravity: synthetic; auto: given where there are any"),
]
DemandDirection = Annotated[
    Literal["auto", "listed", "both"],
    Field(
        description="given demands go as listed, or both ways; auto: both ways where the network "
        "lists no pair in both directions"
    ),
]
MetricChoice = Annotated[
    Literal["hops", "distance"] | None,
    Field(
        description="routing metric of a link: hops: 1; distance: its length in km (at least 1); "
        "default: hops, with a note"
    ),
]
PeakUtilization = Annotated[
    float,
    Field(
        gt=0,
        allow_inf_nan=False,
        description="utilization of the busiest link when demands take their shortest paths",
    ),
]


@dataclass(frozen=True, kw_only=True)
class DemandSettings:
    """The demands of a network: its own, or drawn by gravity."""

    demands: DemandSource = "auto"
    demand_direction: DemandDirection = "auto"
    peak_utilization: PeakUtilization = 1.0
    pairs: Pairs = None
    seed: Seed = 0


@spread(settings=DemandSettings())
def read(
    name: Annotated[str, Field(description="name in topohub, such as sndlib/abilene")],
    *,
    capacity: CapacityRule = "classed",
    weight: MetricChoice = None,
    settings: DemandSettings,
) -> Tables:
    """Read the network `name`, such as "sndlib/germany50" or "topozoo/Abilene"; `names()` lists all.

    An edge becomes two links of the same capacity. A length of d km is a latency of d/200 ms. Networks
    drawn on a plane have no latitude and longitude; if its unit is pixels, they have no lengths either.

    Capacities are synthetic, since the networks state none that are comparable. First, `pairs` selects
    demands. Demands, given without a unit, are then scaled so that shortest-path routing (equal-cost
    multipath by `weight`) fills the busiest link, of 10 Gbit/s (unit: 1 Gbit/s); each edge gets the
    smallest class that is at least the load of its busier direction. Last, demands, not capacities,
    are multiplied by `peak_utilization`.

    A network that lists no pair in both directions has undirected demands, such as the 662 of
    germany50: they load links in both directions, so each becomes two demands of the same rate. Plans
    of the undirected problem and of this problem then load the links equally.

    Gravity demands draw each node's mass from its degree and `seed`. In backbone networks only
    cities send and receive, not landing points and waypoints of sea cables.

    raises  InputError for an unknown name, for given demands where there are none, and for
            distances in networks without lengths
    """
    graph = _graph(name)
    ids = [node["id"] for node in graph["nodes"]]
    code = {id_: index for index, id_ in enumerate(ids)}
    tail, head, km = _read_edges(graph, code)
    longitude, latitude = to_floats([node["pos"] for node in graph["nodes"]]).reshape(-1, 2).T
    position = position_columns(
        longitude, latitude, geographical=_geographical(name), faults=FileErrors(name)
    )
    measured = position["latitude"] is not None or name.startswith("gabriel/")
    metric = _choose_metric(name, weight, km, measured=measured)
    source, target, rate = _demands(name, graph, code, settings, tail, head)
    selected = keep_largest(rate, settings.pairs)
    source, target, rate = source[selected], target[selected], rate[selected]
    load = shortest_path_load(
        nodes=len(ids), tail=tail, head=head, weight=metric, source=source, target=target, rate=rate
    )
    capacity_mbps, scale = _size_links(capacity, load)
    label = _node_labels(graph)
    return named_tables(
        name,
        nodes=build_table(node=label, **position),
        links=build_table(
            tail=label[tail],
            head=label[head],
            capacity_mbps=capacity_mbps,
            weight=metric,
            latency_ms=km / KM_PER_MS if measured else None,
        ),
        demands=build_table(
            source=label[source], target=label[target], rate_mbps=rate * scale * settings.peak_utilization
        ),
    )


def _read_edges(
    graph: dict[str, Any], code: dict[Any, int]
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return tail, head and length in km of each link, both directions of an edge beside each other."""
    joined = [(code[edge["source"]], code[edge["target"]]) for edge in graph["edges"]]
    ends = np.array(joined, dtype=np.intp).reshape(-1, 2)
    km = np.repeat(to_floats([edge["dist"] for edge in graph["edges"]]), 2)
    return ends.reshape(-1), ends[:, ::-1].reshape(-1), km


def _choose_metric(name: str, weight: str | None, km: Floats, *, measured: bool) -> Floats:
    """Return the routing metric of each link; InputError for distances in a network without lengths."""
    if weight == "distance" and not measured:
        raise InputError(f"weight: '{name}' is drawn in pixels: links have no length; set weight = 'hops'")
    if weight is None:
        other = '; weight = "distance" weighs them by their lengths' if measured else ""
        add_note(f"assumed: {name}: all links weigh 1{other}")
    return np.maximum(km, MIN_LENGTH_KM) if weight == "distance" else np.ones(len(km))


def _size_links(capacity: str, load: Floats) -> tuple[Floats, float]:
    """Return the capacity of each link, Mbit/s, and the factor of all loads that fills the busiest link."""
    full_mbps = CAPACITY_CLASSES_MBPS[0] if capacity == "unit" else CAPACITY_CLASSES_MBPS[-1]
    scale = full_mbps / load.max() if load.any() else 1.0
    if capacity == "unit":
        return np.full(len(load), full_mbps), scale
    return _smallest_class(np.repeat(load.reshape(-1, 2).max(axis=1), 2) * scale), scale


def names() -> list[str]:
    """Return the names of all networks of the package, such as "sndlib/germany50", sorted."""
    return sorted(_names(_folder(), ""))


def _folder() -> Traversable:
    try:
        return importlib.resources.files("topohub") / "data"
    except ModuleNotFoundError:
        raise InputError("source 'topohub' needs the package topohub: pip install topohub") from None


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _names(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            yield prefix + entry.name.removesuffix(".json")


def _graph(name: str) -> dict[str, Any]:
    """Read the package's file of a network; not by `topohub.get`, which leaves files open."""
    valid = names()
    if name not in valid:
        raise InputError(f"topohub: no such network '{shorten(name)}'{_nearest(name, valid)}")
    graph: dict[str, Any] = json.loads((_folder() / f"{name}.json").read_text(encoding="utf-8"))
    return graph


def _nearest(name: str, valid: list[str]) -> str:
    """Return a hint: networks with the same last part of the name, in any case, or the nearest name."""
    last = name.casefold().rpartition("/")[2]
    same = [other for other in valid if other.casefold().rpartition("/")[2] == last]
    if not same or not last:
        near = difflib.get_close_matches(last, {other.casefold().rpartition("/")[2] for other in valid}, n=1)
        same = [other for other in valid if near and other.casefold().rpartition("/")[2] == near[0]]
    if 1 <= len(same) <= 3:
        return "; did you mean " + " or ".join(f"'{other}'" for other in same) + "?"
    return did_you_mean(name, valid) or f"; there are {len(valid)}, such as 'sndlib/germany50'"


def _geographical(name: str) -> bool | None:
    return False if name in PIXEL_NETWORKS or name.startswith("gabriel/") else None


def _demands(
    name: str,
    graph: dict[str, Any],
    code: dict[Any, int],
    settings: DemandSettings,
    tail: NDArray[np.intp],
    head: NDArray[np.intp],
) -> Demands:
    """Return demands without unit: sources, targets and values, ordered by their ends."""
    rates: dict[str, dict[str, float]] = graph["graph"].get("demands") or {}
    if settings.demands == "given" and not rates:
        raise InputError(f"demands: '{name}' comes without demands; set demands = 'gravity'")
    if settings.demands == "gravity" or not rates:
        populated = np.array([node.get("type", "City") == "City" for node in graph["nodes"]])
        return gravity_demands(nodes=len(code), tail=tail, head=head, seed=settings.seed, populated=populated)
    return _given_demands(rates, code, settings.demand_direction)


def _node_labels(graph: dict[str, Any]) -> pd.api.extensions.ExtensionArray:
    """Return the names of the nodes, made unique by their ids."""
    stated = [str(node.get("name") or "") for node in graph["nodes"]]
    names = table_building.make_unique(stated, [str(node["id"]) for node in graph["nodes"]])
    return pd.array(names, dtype="str")


def _given_demands(
    rates: dict[str, dict[str, float]], code: dict[Any, int], direction: DemandDirection
) -> Demands:
    """Return the demands that a network lists, by the names of their ends."""
    by_text = {str(id_): index for id_, index in code.items()}  # keys in JSON are text
    matrix = np.zeros((len(code), len(code)))
    for source, row in rates.items():
        for target, value in row.items():
            matrix[by_text[source], by_text[target]] = value
    undirected = not np.any((matrix > 0) & (matrix.T > 0))
    if direction == "both" or (direction == "auto" and undirected):
        matrix += matrix.T
    source_, target_ = np.nonzero(matrix)
    return source_, target_, matrix[source_, target_]


def _smallest_class(load_mbps: Floats) -> Floats:
    # the busiest link is at its class but for rounding
    index = np.searchsorted(CAPACITY_CLASSES_MBPS, load_mbps * (1 - 1e-9))
    return CAPACITY_CLASSES_MBPS[index]


def shortest_path_load(
    *,
    nodes: int,
    tail: NDArray[np.intp],
    head: NDArray[np.intp],
    weight: Floats,
    source: NDArray[np.intp],
    target: NDArray[np.intp],
    rate: Floats,
) -> Floats:
    """Return the load of each link, in the unit of `rate`, when nodes split evenly over shortest next links.

    With equal splits, as in OSPF, the load is a property of the network: it does not depend on how
    ties between paths are broken. A demand without a path loads nothing.

    tail, head, weight    (links,) directed links; weights are positive, for the order of nodes by distance
    source, target, rate  (demands,)
    raises                ValueError for a weight that is not positive
    """
    if not np.all(weight > 0):
        raise ValueError("weights must be positive")
    load = np.zeros(len(tail))
    out, first, degree = _links_by_tail(nodes, tail)
    backwards = lightest_links(nodes, head, tail, weight)
    targets, column = np.unique(target, return_inverse=True)
    step = max(1, MAX_DISTANCES // max(nodes, 1))
    for begin in range(0, len(targets), step):
        block = targets[begin : begin + step]
        distance = np.atleast_2d(dijkstra(backwards, indices=block))
        in_block = (column >= begin) & (column < begin + step)
        flow = np.zeros(distance.shape)
        np.add.at(flow, (column[in_block] - begin, source[in_block]), rate[in_block])
        flow[np.isinf(distance)] = 0
        # farthest node first: when a node is processed, all traffic through it has arrived
        by_distance = np.argsort(-distance, axis=1, kind="stable")
        for node in by_distance[:, : nodes - 1].T:
            rows = np.flatnonzero(flow[np.arange(len(block)), node])
            current_node = node[rows]
            count = degree[current_node]
            owner = np.repeat(np.arange(len(rows)), count)
            link = out[
                np.repeat(first[current_node] - (np.cumsum(count) - count), count) + np.arange(len(owner))
            ]
            here, there = distance[rows, current_node][owner], distance[rows[owner], head[link]]
            short = (there < here) & (np.abs(weight[link] + there - here) <= LENGTH_TOLERANCE * here)
            owner, link = owner[short], link[short]
            ways = np.bincount(owner, minlength=len(rows))
            share = (flow[rows, current_node] / ways)[owner]
            load += np.bincount(link, share, minlength=len(tail))
            np.add.at(flow, (rows[owner], head[link]), share)
    return load


def _links_by_tail(
    nodes: int, tail: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the links sorted by tail, the first position of each node among them, and its out-degree."""
    degree = np.bincount(tail, minlength=nodes)
    return np.argsort(tail, kind="stable"), np.cumsum(degree) - degree, degree
