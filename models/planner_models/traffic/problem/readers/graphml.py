"""GraphML, with the attributes of the Internet Topology Zoo or others.

Source: graphml.graphdrawing.org (format); S. Knight et al., "The Internet Topology Zoo", IEEE JSAC
29(9), 2011 (the attributes label, Latitude, Longitude and LinkSpeedRaw). Nested graphs and hyperedges
are faults, ports are ignored.
Columns of links come from the attributes of a graph's edges, by their meanings; assumptions are noted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import filterfalse
from pathlib import Path
from typing import Annotated, Final
from xml.etree.ElementTree import Element

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.arrays import Floats
from planner.contract.columns import list_some
from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.contract.readings import assume_absent, describe, readings_of
from planner.contract.synonyms import other_names
from planner.contract.units import plain, split_unit, unit_of
from planner.errors import InputError
from planner.io.table_files import export_table
from planner_models.traffic.problem.readers import Tables, file_errors, table_building
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import (
    MBPS_EXPONENT,
    Pairs,
    RateUnit,
    Seed,
    build_table,
    draw_demands,
    drop_incomplete,
    format_decimal,
    name_ends,
    named_tables,
    position_columns,
    read_demands,
    require_endpoints,
    to_floats,
    write_text,
)
from planner_models.traffic.problem.schema import LINKS, MOST_MBPS

POSITIONS: Final = {
    "latitude": ("Latitude", "latitude", "lat"),
    "longitude": ("Longitude", "longitude", "lon"),
}
NAMESPACE: Final = "http://graphml.graphdrawing.org/xmlns"
CAPACITIES: Final = ("LinkSpeedRaw", "capacity_mbps", "capacity", "bandwidth")
DECIMAL_EXPONENTS: Final = {Fraction(10) ** exponent: exponent for exponent in range(-9, 13)}
Rows = Sequence[tuple[str, Mapping[str, str]]]
"""Place and attributes by name of each edge."""

DemandFile = Annotated[
    Path | None, Field(description="CSV or Parquet file with the columns source, target, rate_mbps")
]
GravityTotal = Annotated[
    float | None,
    Field(
        gt=0,
        allow_inf_nan=False,
        description="instead of a file: gravity demands that add up to this (Mbit/s)",
    ),
]
CapacityAttribute = Annotated[
    str | None,
    Field(
        description="edge attribute with the capacity; default: the first that an edge has of "
        "LinkSpeedRaw, capacity_mbps, capacity, bandwidth"
    ),
]
CapacityUnit = Annotated[
    RateUnit | None,
    Field(description="unit of a capacity without unit in its name; default: mbps. LinkSpeedRaw is in bit/s"),
]
DefaultCapacity = Annotated[
    float | None, Field(gt=0, allow_inf_nan=False, description="capacity of edges without one (Mbit/s)")
]
WeightAttribute = Annotated[
    str | None,
    Field(
        description="edge attribute with the routing metric; default: weight, or a common name such as "
        "metric, igp_metric or ospf_cost; without any, all links weigh 1"
    ),
]
CostAttribute = Annotated[
    str | None,
    Field(
        description="edge attribute with the price per Mbit/s; default: cost, where an edge has a "
        "routing metric too"
    ),
]
LabelAttribute = Annotated[str, Field(description="node attribute with the name; the id where it is missing")]


@dataclass(frozen=True, kw_only=True)
class EdgeSettings:
    """Attributes of edges as a user names them; None: found by name.

    capacity_unit          of capacities without a unit in their name; None: Mbit/s, which is said
    default_capacity_mbps  capacity of edges without one
    """

    capacity: CapacityAttribute = None
    capacity_unit: CapacityUnit = None
    default_capacity_mbps: DefaultCapacity = None
    weight: WeightAttribute = None
    cost: CostAttribute = None


@spread(edges=EdgeSettings())
def read(
    path: Annotated[Path, Field(description="the GraphML file")],
    *,
    demands: DemandFile = None,
    total_mbps: GravityTotal = None,
    pairs: Pairs = None,
    seed: Seed = 0,
    edges: EdgeSettings,
    label: LabelAttribute = "label",
) -> Tables:
    """Read the graph of a GraphML file; demands from a file, or drawn by gravity from `seed`.

    An undirected edge becomes two links, a directed edge one; parallel edges are kept. Edge attributes
    weight, cost and latency_ms (ms) and the node attributes Latitude and Longitude (degrees) become
    columns; a column that some elements lack is left out, except weight, which is 1 for them. Notes name
    the other attributes, and what is assumed. A name that several nodes have is followed by their id.

    raises  InputError with every fault of both files' syntax, structure and numbers
    """
    path = Path(path)
    _require_one_source(path.name, demands, total_mbps)
    root = file_errors.parse(path, "graphml")
    faults = FileErrors(path.name)
    graph = _graph(root, faults)
    nodes, code = _nodes(graph, label, faults)
    links, tail, head = _links(graph, code, edges, faults)
    demand_table = read_demands(demands, faults)
    name_ends(nodes, links, tail, head)
    if demand_table is None:
        demand_table = draw_demands(nodes, tail, head, total_mbps=total_mbps, pairs=pairs, seed=seed)
    return named_tables(path.name, nodes=nodes, links=links, demands=demand_table)


def _require_one_source(file: str, demands: Path | None, total_mbps: float | None) -> None:
    """Raise InputError unless demands are either in a file or drawn by gravity."""
    if demands is None and total_mbps is None:
        raise InputError(
            f"{file}: GraphML holds no demands; set demands to a file with source, target, rate_mbps, "
            "or total_mbps to draw them by gravity"
        )
    if demands is not None and total_mbps is not None:
        raise InputError(f"{file}: demands and total_mbps are both set; set one of them")


@dataclass
class _Graph:
    """Elements of the file, each with its place and its attributes by name."""

    directed: bool
    nodes: list[tuple[str, Element, dict[str, str]]] = field(default_factory=list)
    edges: list[tuple[str, Element, dict[str, str]]] = field(default_factory=list)


def _graph(root: Element, faults: FileErrors) -> _Graph:
    graphs = root.findall("graph")
    if len(graphs) != 1:
        raise InputError(f"{faults.file}: has {len(graphs)} graphs, must have 1")
    keys, defaults = _keys(root, faults)
    graph = _Graph(directed=graphs[0].get("edgedefault") == "directed")
    about = [keys.get(data.get("key", ""), "") for data in graphs[0].findall("data")]
    note_unread("graph", [name for name in about if name], (), faults.file)
    for element in graphs[0]:
        if element.tag == "node":
            location = _place(element, len(graph.nodes), faults)
            if element.find("graph") is not None:
                faults.add(location, ": holds a graph of its own, must hold none", rule="nested graph")
            values = defaults["node"] | _attributes(element, location, keys, faults)
            graph.nodes.append((location, element, values))
        elif element.tag == "edge":
            location = _place(element, len(graph.edges), faults)
            values = defaults["edge"] | _attributes(element, location, keys, faults)
            graph.edges.append((location, element, values))
        elif element.tag == "hyperedge":
            faults.add(faults.file, ": has a hyperedge, must have edges of two ends only", rule="hyperedge")
    return graph


def _keys(root: Element, faults: FileErrors) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return attribute names by key, and default values by name for nodes and for edges."""
    keys: dict[str, str] = {}
    defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
    for key in root.findall("key"):
        id_ = key.get("id")
        if id_ is None:
            faults.add(faults.file, ": a key has no id")
            continue
        keys[id_] = key.get("attr.name", id_)
        default = file_errors.text_of(key, "default")
        for owner in defaults:
            if default is not None and key.get("for", "all") in (owner, "all"):
                defaults[owner][keys[id_]] = default
    return keys, defaults


def _attributes(
    element: Element, location: str, keys: Mapping[str, str], faults: FileErrors
) -> dict[str, str]:
    values = {}
    for data in element.findall("data"):
        key = data.get("key", "")
        if key in keys:
            values[keys[key]] = data.text or ""
        else:
            fault = f": data has key '{shorten(key)}', must be a declared key"
            faults.add(location, fault, rule="data must have a declared key", near=(key, keys))
    return values


def _place(element: Element, before: int, faults: FileErrors) -> str:
    id_ = element.get("id")
    name = f"{before + 1}" if id_ is None else f"'{shorten(id_)}'"
    return f"{faults.file}: {element.tag} {name}"


def _number_nodes(graph: _Graph, faults: FileErrors) -> dict[str, int]:
    """Return the row of each node by its id; add the errors of missing and repeated ids."""
    code: dict[str, int] = {}
    for location, element, _ in graph.nodes:
        id_ = element.get("id")
        if id_ is None:
            faults.add(location, ": id is missing", rule="a node has no id")
        elif id_ in code:
            faults.add(location, " is there already", rule="a node is there already")
        else:
            code[id_] = len(code)
    return code


def read_positions(rows: Rows, label: str | None, faults: FileErrors) -> dict[str, Floats]:
    """Return latitude and longitude of nodes; note the attributes that are neither these nor the label."""
    names = [name for _, values in rows for name in values]
    name_of = {
        column: next((name for name in spellings if name in names), "")
        for column, spellings in POSITIONS.items()
    }
    position = {column: read_numbers(rows, name, faults) for column, name in name_of.items()}
    note_unread("node", names, {label or "", *name_of.values()}, faults.file)
    return position


def _nodes(graph: _Graph, label: str, faults: FileErrors) -> tuple[pd.DataFrame, dict[str, int]]:
    code = _number_nodes(graph, faults)
    rows = [(location, values) for location, _, values in graph.nodes]
    attributes = {name for _, values in rows for name in values}
    if label != "label" and label not in attributes:
        faults.add(faults.file, f": no node has the attribute '{label}'", near=(label, attributes))
    position = read_positions(rows, label, faults)
    if len(code) < len(rows):  # a fault
        return build_table(node=[]), code
    node = table_building.make_unique([values.get(label, "") for _, values in rows], list(code))
    columns = position_columns(position["longitude"], position["latitude"], geographical=True, faults=faults)
    return build_table(node=node, **columns), code


def _find_end(edge: Element, end: str, location: str, code: Mapping[str, int], faults: FileErrors) -> int:
    """Return the row of the node at an end of an edge; 0, with an error, where there is none."""
    id_ = edge.get(end, "")
    if end not in edge.attrib:
        faults.add(location, f": {end} is missing", rule=f"{end} is missing")
    elif id_ not in code:
        fault = f": {end} is '{shorten(id_)}', must be a node's id"
        faults.add(location, fault, rule=f"{end} must be a node's id", near=(id_, code))
    return code.get(id_, 0)


def _links(
    graph: _Graph, code: Mapping[str, int], settings: EdgeSettings, faults: FileErrors
) -> tuple[pd.DataFrame, NDArray[np.intp], NDArray[np.intp]]:
    """Return the columns of numbers, tails and heads of links; an undirected edge gives two links."""
    ends, copies = [], []
    for location, edge, _ in graph.edges:
        pair = [_find_end(edge, end, location, code, faults) for end in ("source", "target")]
        if (both := edge.get("source")) is not None and both == edge.get("target"):
            fault = f": source and target are both '{shorten(both)}', must differ; delete the edge"
            faults.add(location, fault, rule="source and target must differ")
        directed = {"true": True, "false": False}.get(edge.get("directed", ""), graph.directed)
        copies.append(1 if directed else 2)
        ends += [pair] if directed else [pair, pair[::-1]]
    rows = [(location, values) for location, _, values in graph.edges]
    read = read_columns(rows, settings, faults)
    note_unread("edge", [name for _, values in rows for name in values], read.used, faults.file)
    tail, head = np.array(ends, dtype=np.intp).reshape(-1, 2).T
    return (
        build_table(**{name: np.repeat(values, copies) for name, values in read.columns.items()}),
        tail,
        head,
    )


def write(
    tables: Tables,
    path: Path,
    *,
    demands: Annotated[
        Path | None, Field(description="CSV file for the demands; default: not written")
    ] = None,
) -> None:
    """Write nodes and links as a directed GraphML graph, and optionally the demands as CSV.

    Attributes are the tables' columns (capacity_mbps in Mbit/s, latency_ms in ms), for nodes label,
    Latitude and Longitude. A label must not be blank.

    raises  InputError for links that end at no node, and for characters that XML cannot represent
    """
    require_endpoints(tables)
    nodes, links = tables["nodes"], tables["links"]
    names = {"node": "label", "latitude": "Latitude", "longitude": "Longitude"}
    node_keys = {column: f"n_{column}" for column in names if column in nodes}
    columns = ("capacity_mbps", "weight", "cost", "latency_ms")
    edge_keys = {column: f"e_{column}" for column in columns if column in links}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{NAMESPACE}">']
    for column, key in node_keys.items():
        kind = "string" if column == "node" else "double"
        lines.append(f'  <key id="{key}" for="node" attr.name="{names[column]}" attr.type="{kind}"/>')
    for column, key in edge_keys.items():
        lines.append(f'  <key id="{key}" for="edge" attr.name="{column}" attr.type="double"/>')
    lines.append('  <graph edgedefault="directed">')
    id_of = {label: f"n{row}" for row, label in enumerate(nodes["node"])}
    for label, values in zip(nodes["node"], _data(nodes, node_keys), strict=True):
        lines.append(f'    <node id="{id_of[label]}">{values}</node>')
    for tail, head, values in zip(links["tail"], links["head"], _data(links, edge_keys), strict=True):
        lines.append(f'    <edge source="{id_of[tail]}" target="{id_of[head]}">{values}</edge>')
    lines += ["  </graph>", "</graphml>", ""]
    write_text("\n".join(lines), path)
    if demands is not None:
        listed = pd.Index(["source", "target", "rate_mbps", "class"])
        flows = tables["demands"][listed.intersection(tables["demands"].columns, sort=False)]
        export_table(flows, demands, ".csv")


def _data(table: pd.DataFrame, keys: Mapping[str, str]) -> list[str]:
    """Return the XML data elements of each row."""
    texts = [""] * len(table)
    for column, key in keys.items():
        for row, value in enumerate(table[column]):
            text = file_errors.escape(value) if column == "node" else format_decimal(value)
            texts[row] += f'<data key="{key}">{text}</data>'
    return texts


@dataclass(frozen=True, kw_only=True)
class EdgeColumns:
    """Columns of links, (number of edges,) each, and the names of the attributes that they are from."""

    columns: dict[str, Floats] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


def read_columns(rows: Rows, settings: EdgeSettings, faults: FileErrors) -> EdgeColumns:
    """Return capacities (Mbit/s), and weights, costs and latencies (ms) where edges have them."""
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    read = EdgeColumns()
    _read_capacities(rows, names, settings, read, faults)
    weight = _find(names, "weight", settings.weight, faults)
    if weight is not None:
        read.columns["weight"] = _read_weights(rows, weight, faults)
        _check_values(rows, weight, "weight", read.columns["weight"], faults)
        read.used.add(weight)
    for ours, named in (("cost", settings.cost), ("latency_ms", None)):
        name = _find([*filterfalse(read.used.__contains__, names)], ours, named, faults)
        if name is not None:
            _read_column(rows, name, ours, read, faults)
            if named is None and weight is None:
                _refuse_two_readings(rows, name, ours, faults)
    if rows and not faults.lines:
        for note in assume_absent(LINKS, read.columns, faults.file):
            add_note(note)
    return read


def _read_column(rows: Rows, name: str, ours: str, read: EdgeColumns, faults: FileErrors) -> None:
    """Add one of our columns by the attribute that holds it, where all edges have it."""
    read.used.add(name)
    values = read_numbers(rows, name, faults)
    _check_values(rows, name, ours, values, faults)
    if (complete := drop_incomplete(values, name, faults)) is not None:
        read.columns[ours] = complete


def _refuse_two_readings(rows: Rows, name: str, ours: str, faults: FileErrors) -> None:
    """Add an error where an attribute with several values may as well be the weight, which is missing."""
    other = readings_of(LINKS).get(ours)
    texts = {values.get(name, "").strip() for _, values in rows}
    if other == "weight" and len(texts) > 1:
        faults.add(
            faults.file,
            f": edge attribute '{shorten(name)}' may be {describe(LINKS, ours)} or "
            f"{describe(LINKS, other)}, and no attribute is {other}: "
            f'set {other} = "{name}" or {ours} = "{name}"',
        )


def note_unread(kind: str, names: Collection[str], used: Collection[str], file: str) -> None:
    """Add a note that names the attributes of a kind of element which are not read."""
    if unread := [f"'{shorten(name)}'" for name in dict.fromkeys(names) if name not in used]:
        add_note(f"{file}: ignored {kind} attributes {list_some(unread)}")


def read_numbers(rows: Rows, name: str, faults: FileErrors, default: float = math.nan) -> Floats:
    """Return one attribute of all rows; `default` where it is missing."""
    return to_floats(
        [
            faults.number(location, name, values[name]) if values.get(name, "").strip() else default
            for location, values in rows
        ]
    )


def _find(names: Sequence[str], ours: str, named: str | None, faults: FileErrors) -> str | None:
    """Return the attribute that is one of our columns: as the user says, by our name, or by others."""
    if named is not None:
        if names and named not in names:
            faults.add(faults.file, f": no edge has the attribute '{named}'", near=(named, names))
        return named if named in names else None
    return ours if ours in names else _find_by_other_names(names, ours, faults)


def _find_by_other_names(names: Sequence[str], ours: str, faults: FileErrors) -> str | None:
    """Return the attribute that is one of our columns by another name, and say so."""
    accepted = {plain(ours), *map(plain, other_names(LINKS, ours))}
    fitting = [name for name in names if plain(name) in accepted]
    if len(fitting) > 1:
        several = " and ".join(f"'{shorten(name)}'" for name in fitting)
        faults.add(faults.file, f": edge attributes {several} may both be {ours}; set {ours} to one of them")
    if fitting and fitting[0] != ours:
        add_note(f"{faults.file}: read edge attribute '{shorten(fitting[0])}' as {ours}")
    return fitting[0] if fitting else None


def _read_weights(rows: Rows, name: str, faults: FileErrors) -> Floats:
    missing = sum(not values.get(name, "").strip() for _, values in rows)
    if missing:
        add_note(
            f"assumed: {faults.file}: {missing} of {len(rows)} edges have no '{shorten(name)}' and weigh 1"
        )
    return read_numbers(rows, name, faults, 1.0)


def _find_first(names: Sequence[str], values: Mapping[str, str]) -> str | None:
    """Return the first of some attributes that an edge has."""
    return next((name for name in names if values.get(name, "").strip()), None)


def _note_unit(names: Sequence[str], exponents: Mapping[str, int | None], faults: FileErrors) -> None:
    """Add a note for each attribute whose name does not state its unit."""
    for name in names:
        if exponents[name] is None:
            add_note(
                f"assumed: {faults.file}: edge attribute '{shorten(name)}' is in Mbit/s; "
                "capacity_unit sets another unit"
            )


def _name_capacities(attributes: Sequence[str], faults: FileErrors) -> tuple[str, ...]:
    """Return the attributes that may hold capacities: the usual ones, else one that says a unit of rates."""
    if set(CAPACITIES) & set(attributes):
        return CAPACITIES
    stem, _ = unit_of("capacity_mbps")
    accepted = {plain(stem), *map(plain, other_names(LINKS, "capacity_mbps"))}
    fitting = [
        name
        for name in attributes
        if _stated_exponent(name) is not None and {plain(start) for start, _ in split_unit(name)} & accepted
    ]
    if len(fitting) != 1:
        return CAPACITIES
    add_note(f"{faults.file}: read edge attribute '{shorten(fitting[0])}' as capacity_mbps")
    return (*CAPACITIES, fitting[0])


def _read_capacities(
    rows: Rows, attributes: Sequence[str], settings: EdgeSettings, read: EdgeColumns, faults: FileErrors
) -> None:
    """Add the capacities of edges, Mbit/s, each by the first attribute that it has."""
    names = _name_capacities(attributes, faults) if settings.capacity is None else (settings.capacity,)
    default_mbps = settings.default_capacity_mbps
    if default_mbps is None and attributes and settings.capacity not in (None, *attributes):
        faults.add(
            faults.file,
            f": no edge has the attribute '{settings.capacity}'",
            near=(settings.capacity or "", attributes),
        )
        default_mbps = math.nan  # so that only one fault reports it
    exponents = {name: _stated_exponent(name) for name in names}
    unstated = MBPS_EXPONENT[settings.capacity_unit or "mbps"]
    name_of = [_find_first(names, values) for _, values in rows]
    capacities = [math.nan if default_mbps is None else default_mbps] * len(rows)
    for row, ((location, values), name) in enumerate(zip(rows, name_of, strict=True)):
        if name is not None:
            stated = exponents[name]
            exponent = unstated if stated is None else stated
            value = faults.number(location, name, values[name], exponent=exponent, largest=MOST_MBPS)
            _check_values([(location, values)], name, "capacity_mbps", to_floats([value]), faults)
            capacities[row] = value
    missing = name_of.count(None)
    if missing and default_mbps is None:
        listed = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        faults.add(
            faults.file,
            f": {missing} of {len(rows)} edges have no {listed}; "
            "set default_capacity_mbps, or capacity to the attribute that holds it",
        )
    used = list(filter(None, dict.fromkeys(name_of)))
    read.used.update(used)
    if settings.capacity_unit is None:
        _note_unit(used, exponents, faults)
    read.columns["capacity_mbps"] = to_floats(capacities)


def _stated_exponent(name: str) -> int | None:
    """Return the power of ten from the unit in an attribute's name to Mbit/s; None where it has no unit."""
    if name == "LinkSpeedRaw":  # of the Topology Zoo
        return MBPS_EXPONENT["bps"]
    _, ours = unit_of("capacity_mbps")
    for _, units in split_unit(name):
        if ours is not None and len(units) == 1 and units[0].dimension == "rate":
            return DECIMAL_EXPONENTS.get(units[0].factor_to(ours))
    return None


def _check_values(rows: Rows, name: str, ours: str, values: Floats, faults: FileErrors) -> None:
    """Add an error for each edge with a value out of the range of our column, without missing ones."""
    column = LINKS.columns[ours]
    series = pd.Series(values)
    for rule, test in column.rules:
        for row in (~test(series) & series.notna()).to_numpy().nonzero()[0].tolist():
            location, attributes = rows[row]
            text = shorten(attributes.get(name, "").strip())
            faults.add(location, f": {name} is '{text}', {rule}", rule=f"{name} {rule}")
