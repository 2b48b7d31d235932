"""Presets: made-up problems of system `capacity`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.errors import InputError
from planner_models import geonames, globe
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import EARTH_RADIUS_KM

if TYPE_CHECKING:
    import networkx as nx

DETOUR: Final = 1.2
"""Length of fibre over the great circle."""
STEPS_MBPS: Final = (10_000.0, 100_000.0)
"""Capacities of the modules."""
MODULES: Final = {
    "module": ["10G", "100G"],
    "capacity_mbps": list(STEPS_MBPS),
    "cost": [1.0, 5.0],
    "cost_per_km": [0.002, 0.01],
}
"""Modules and their prices."""
CLASSES: Final = (("gold", 1.0, 1.0), ("silver", 2.0, 1.0), ("best effort", 3.0, 0.4))
"""Classes, their priorities, and the shares of them that are protected."""
CLASS_SHARES: Final = (0.2, 0.3)
"""Shares of gold and silver in each demand."""


def backbone(
    *,
    country: Annotated[str, Field(description="code of the country in two letters, such as FR")] = "DE",
    cities: Annotated[int, Field(ge=3, le=60, description="its largest cities, the nodes")] = 10,
    demand_gbps: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="sum of all demands today, Gbit/s")
    ] = 600.0,
    candidates: Annotated[
        int, Field(ge=0, le=1_000_000, description="links that can be built, the shortest first")
    ] = 4,
    headroom: Annotated[
        float, Field(gt=0, le=1, description="utilization up to which links are filled today")
    ] = 0.7,
    classes: Annotated[
        bool,
        Field(description="three classes: gold and silver are protected, best effort to 40% in failures"),
    ] = False,
    tunnels: Annotated[
        int,
        Field(
            ge=0,
            le=1_000,
            description="largest demands without a link of their own that get two tunnels each",
        ),
    ] = 0,
) -> CapacityPlanning:
    """Build a national backbone between a country's largest cities, as it is filled today, and its prices.

    Links are those of the Gabriel graph, and more so that no single failure cuts a city off. Demands follow
    gravity: the product of the populations. Each link has the modules that today's demands need on their
    shortest paths. Modules of 10 and 100 Gbit/s cost 1 and 5, and 0.002 and 0.01 for each kilometre; a new
    link costs 0.05 for each kilometre. The two tunnels of a demand have no link in common, and are the
    shortest two of such paths.
    """
    towns = _largest_cities(country, cities)
    coordinates = towns[["latitude", "longitude"]].to_numpy(float)
    length = _link_lengths_km(coordinates)
    links, others = _choose_links(length, candidates)
    names = towns["name"].tolist()
    first, other = np.triu_indices(len(names), k=1)
    rate = _gravity_mbps(towns["population"].to_numpy(float), 1_000 * demand_gbps)
    load = _shortest_path_load(links, length, first, other, rate)
    tables = {
        "nodes": pd.DataFrame({"node": names, "latitude": coordinates[:, 0], "longitude": coordinates[:, 1]}),
        "links": pd.DataFrame({**_name_ends(links, names, length), "capacity_mbps": _fill(load, headroom)}),
        "modules": pd.DataFrame(MODULES),
        "demands": pd.DataFrame(
            {
                "source": [names[a] for a in first.tolist()],
                "target": [names[b] for b in other.tolist()],
                "rate_mbps": rate,
            }
        ),
        "network": pd.DataFrame({"direction": ["undirected"]}),
    }
    if others:
        ends = _name_ends(others, names, length)
        tables["candidates"] = pd.DataFrame({**ends, "setup_cost": 2.0, "setup_cost_per_km": 0.05})
    if tunnels:
        lengths = {pair: float(length[pair]) for pair in links}
        tables["tunnels"] = _choose_tunnels(lengths, tables["demands"], names, tunnels)
    if classes:
        tables["demands"] = _split_into_classes(tables["demands"])
        tables["classes"] = pd.DataFrame(CLASSES, columns=["class", "priority", "protected_share"])
    return CapacityPlanning.from_tables(tables)


def _link_lengths_km(coordinates: Floats) -> Floats:
    """Return the length of a fibre between each two cities of (n, 2) coordinates, (n, n), km."""
    latitude, longitude = coordinates.T
    straight = globe.distance_km(latitude, longitude, latitude, longitude, radius_km=EARTH_RADIUS_KM)
    return np.round(DETOUR * straight)


def _gravity_mbps(population: Floats, total_mbps: float) -> Floats:
    """Return the demand of each pair of cities, in proportion to the product of their populations, Mbit/s."""
    first, other = np.triu_indices(len(population), k=1)
    mass = population[first] * population[other]
    rate: Floats = np.round(total_mbps * mass / mass.sum(), 0)
    return rate


def _fill(load: Floats, headroom: float) -> Floats:
    """Return the capacity of modules that carry a load up to a utilization, Mbit/s."""
    small, large = STEPS_MBPS
    needed = np.maximum(load / headroom, small)
    tens = np.ceil(needed / small) * small
    return np.where(tens > 5 * small, np.ceil(needed / large) * large, tens)


def _name_ends(pairs: list[tuple[int, int]], names: list[str], length_km: Floats) -> dict[str, Any]:
    """Return the columns of the ends and the lengths of links."""
    return {
        "tail": [names[a] for a, _ in pairs],
        "head": [names[b] for _, b in pairs],
        "length_km": [float(length_km[a, b]) for a, b in pairs],
    }


def _split_into_classes(demands: pd.DataFrame) -> pd.DataFrame:
    """Return each demand as three, of the classes gold, silver and best effort."""
    rate = demands["rate_mbps"].to_numpy(float)
    parts = [np.round(share * rate) for share in CLASS_SHARES]
    parts.append(rate - sum(parts))
    frames = [
        demands.assign(rate_mbps=rates, **{"class": name})
        for rates, (name, *_) in zip(parts, CLASSES, strict=True)
    ]
    split = pd.concat(frames).sort_index(kind="stable", ignore_index=True)
    return split[["source", "target", "class", "rate_mbps"]]


def _choose_tunnels(
    lengths: dict[tuple[int, int], float], demands: pd.DataFrame, names: list[str], count: int
) -> pd.DataFrame:
    """Return two disjoint tunnels for each of the largest demands without a link of their own."""
    direct = {frozenset((names[a], names[b])) for a, b in lengths}
    is_direct = [frozenset(ends) in direct for ends in zip(demands["source"], demands["target"], strict=True)]
    others = demands[~np.array(is_direct)]
    largest = others.sort_values("rate_mbps", ascending=False, kind="stable").head(count).sort_index()
    rows = []
    for source, target in zip(largest["source"], largest["target"], strict=True):
        ends = names.index(source), names.index(target)
        rows += [
            (source, target, " > ".join(names[a] for a in path)) for path in _disjoint_paths(lengths, *ends)
        ]
    return pd.DataFrame(rows, columns=["source", "target", "path"])


def _disjoint_paths(lengths: dict[tuple[int, int], float], source: int, target: int) -> list[list[int]]:
    """Return the two paths without a common link that are shortest together, by a flow of 2."""
    import networkx as nx

    graph: nx.DiGraph = nx.DiGraph()
    for (a, b), length in lengths.items():
        graph.add_edge(a, b, weight=round(length), capacity=1)
        graph.add_edge(b, a, weight=round(length), capacity=1)
    graph.nodes[source]["demand"], graph.nodes[target]["demand"] = -2, 2
    flow = nx.min_cost_flow(graph)
    following: dict[int, list[int]] = {a: [b for b in flow[a] if flow[a][b] > flow[b][a]] for a in flow}
    paths = []
    for _ in range(2):
        path = [source]
        while path[-1] != target:
            path.append(following[path[-1]].pop(0))
        paths.append(path)
    return paths


def _largest_cities(country: str, count: int) -> pd.DataFrame:
    """Return the largest cities of a country, with names of their own."""
    all_cities = geonames.cities()
    cities_of = all_cities[all_cities["country"] == country.upper()]
    cities_of = cities_of.sort_values(["population", "name"], ascending=[False, True], kind="stable")
    cities_of = cities_of.drop_duplicates("name").head(count).reset_index(drop=True)
    if len(cities_of) < count:
        raise InputError(
            f"country: '{country}' has {len(cities_of)} cities of over 15,000 people, must have at least "
            f"{count}"
        )
    return cities_of


def _choose_links(length: Floats, candidates: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the links, and the shortest other pairs of nodes."""
    import networkx as nx

    count = len(length)
    pairs = list(itertools.combinations(range(count), 2))
    squares = length**2
    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(range(count))
    for a, b in pairs:
        others = np.delete(squares[a] + squares[b], [a, b])
        if (others >= squares[a, b]).all():
            graph.add_edge(a, b)
    free = [(a, b, float(length[a, b])) for a, b in pairs if not graph.has_edge(a, b)]
    graph.add_edges_from(nx.k_edge_augmentation(graph, 2, avail=free) if free else [])
    links = [(min(edge), max(edge)) for edge in graph.edges]
    unused = sorted((pair for pair in pairs if not graph.has_edge(*pair)), key=lambda pair: length[pair])
    return sorted(links), sorted(unused[:candidates])


def _shortest_path_load(
    links: list[tuple[int, int]], length: Floats, source: Any, target: Any, rate: Floats
) -> Floats:
    """Return the load of each link when all demands take their shortest paths, Mbit/s."""
    import networkx as nx

    graph: nx.Graph = nx.Graph()
    graph.add_weighted_edges_from((a, b, float(length[a, b])) for a, b in links)
    paths = dict(nx.all_pairs_dijkstra_path(graph))
    row = {pair: class_demands for class_demands, pair in enumerate(links)}
    load = np.zeros(len(links))
    for a, b, amount in zip(source.tolist(), target.tolist(), rate.tolist(), strict=True):
        path = paths[a][b]
        for start, end in itertools.pairwise(path):
            load[row[min(start, end), max(start, end)]] += amount
    return load


def small() -> CapacityPlanning:
    """Return a tiny problem with every table: a ring, a link to build, two modules, failures and years."""
    coordinates = {"a": (0.0, 0.0), "b": (0.0, 1.0), "c": (1.0, 1.0), "d": (1.0, 0.0)}
    ring = [("a", "b", 10.0), ("b", "c", 10.0), ("c", "d", 10.0), ("d", "a", 10.0)]
    lines = ["a<->b", "b<->c", "c<->d", "d<->a"]
    return CapacityPlanning.from_tables(
        {
            "nodes": pd.DataFrame(
                [(name, *coordinate) for name, coordinate in coordinates.items()],
                columns=["node", "latitude", "longitude"],
            ),
            "links": pd.DataFrame(ring, columns=["tail", "head", "capacity_mbps"]).assign(
                installed_cost=1.0, routing_cost=0.01
            ),
            "candidates": pd.DataFrame([("a", "c", 5.0)], columns=["tail", "head", "setup_cost"]),
            "modules": pd.DataFrame(
                [("small", 5.0, 3.0, 0.001), ("large", 20.0, 8.0, 0.002)],
                columns=["module", "capacity_mbps", "cost", "cost_per_km"],
            ),
            "demands": pd.DataFrame(
                [
                    ("a", "c", 6.0, 0.0, 1.2, "gold"),  # two links take 1.1 ms
                    ("a", "c", 3.0, 0.2, np.nan, "bulk"),
                    ("d", "b", 4.0, 0.0, np.nan, "gold"),
                    ("c", "b", 2.0, 0.0, np.nan, "bulk"),
                ],
                columns=["source", "target", "rate_mbps", "growth", "max_latency_ms", "class"],
            ),
            "classes": pd.DataFrame(
                [("gold", 1.0, 1.0), ("bulk", 2.0, 0.5)], columns=["class", "priority", "protected_share"]
            ),
            "tunnels": pd.DataFrame(
                [("d", "b", "d > c > b"), ("d", "b", "d > a > b")], columns=["source", "target", "path"]
            ),
            "failures": pd.DataFrame([(name, name) for name in lines], columns=["failure", "member"]),
            "years": pd.DataFrame(
                [(1, 1.0, 1.0), (2, 1.5, 0.9)], columns=["year", "demand_factor", "price_factor"]
            ),
            "network": pd.DataFrame({"direction": ["undirected"], "modules_per_link": ["any"]}),
        }
    )


def sample() -> CapacityPlanning:
    """Return a tiny problem that runs the search over routes and the Lagrangian bound before it is solved."""
    coordinates = {"a": (0.0, 0.0), "b": (0.0, 1.0), "c": (1.0, 1.5), "d": (2.0, 0.5), "e": (1.0, -1.0)}
    ends = pd.DataFrame(itertools.combinations(coordinates, 2), columns=["tail", "head"])
    demands = ends.rename(columns={"tail": "source", "head": "target"})
    lengths = [17.0, 15.0, 13.0, 10.0, 10.0, 7.0, 8.0, 7.0, 9.0, 17.0]
    return CapacityPlanning.from_tables(
        {
            "nodes": pd.DataFrame(
                [(name, *position) for name, position in coordinates.items()],
                columns=["node", "latitude", "longitude"],
            ),
            "links": ends.assign(capacity_mbps=0.0, length_km=lengths),
            "modules": pd.DataFrame(
                [("small", 15.0, 0.0, 1.0), ("large", 60.0, 0.0, 2.0)],
                columns=["module", "capacity_mbps", "cost", "cost_per_km"],
            ),
            "demands": demands.assign(rate_mbps=[8.0, 6.0, 5.0, 3.0, 3.0, 1.0, 1.0, 1.0, 8.0, 7.0]),
            "network": pd.DataFrame({"direction": ["undirected"]}),
        }
    )


PRESETS: Final[dict[str, Callable[..., CapacityPlanning]]] = {"backbone": backbone, "small": small}
