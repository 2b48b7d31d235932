"""GEXF of Gephi and networkx.

Source: gexf.net (format 1.3, and the drafts before it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

from planner.errors import InputError, did_you_mean
from planner_models.traffic.problem.readers import file_errors
from planner_models.traffic.problem.readers.file_errors import shorten
from planner_models.traffic.problem.readers.graph_content import GraphContent, GraphEdge, GraphNode

EDGE_TYPES = ("undirected", "directed", "mutual")
"""A mutual edge goes both ways, as an undirected one."""


def parse_gexf(path: Path) -> GraphContent:
    """Return the graph of a GEXF file, with the nodes within others beside them; InputError for any other."""
    root = file_errors.parse(path, "gexf")
    graphs = root.findall("graph")
    if len(graphs) != 1:
        raise InputError(f"{path.name}: has {len(graphs)} graphs, must have 1")
    graph = graphs[0]
    usual = graph.get("defaultedgetype", "undirected")
    nodes = [
        _read_node(element, f"{path.name}: node {number}", _attributes_of(graph, "node"))
        for number, element in enumerate(_elements(graph, "nodes", "node"), start=1)
    ]
    edges = [
        _read_edge(element, f"{path.name}: edge {number}", usual, _attributes_of(graph, "edge"))
        for number, element in enumerate(_elements(graph, "edges", "edge"), start=1)
    ]
    is_labelled = any(node.attributes.get("label") for node in nodes)
    return GraphContent(nodes=nodes, edges=edges, label="label" if is_labelled else None)


def _elements(graph: Element, parent: str, tag: str) -> Iterable[Element]:
    """Return the elements of a tag within another one, and within these; none where there is none."""
    inside = graph.find(parent)
    return () if inside is None else inside.iter(tag)


def _attributes_of(graph: Element, kind: str) -> dict[str, tuple[str, str | None]]:
    """Return the title and the default of each attribute of nodes or of edges, by its id."""
    return {
        attribute.get("id", ""): (
            attribute.get("title", attribute.get("id", "")),
            file_errors.text_of(attribute, "default"),
        )
        for group in graph.findall("attributes")
        if group.get("class") == kind
        for attribute in group.findall("attribute")
    }


def _read_node(
    element: Element, location: str, attributes: Mapping[str, tuple[str, str | None]]
) -> GraphNode:
    id_ = element.get("id")
    if id_ is None:
        raise InputError(f"{location}: id is missing")
    values = _read_values(element, location, attributes)
    label = element.get("label")
    return GraphNode(location, id_, values if label is None else {**values, "label": label})


def _read_edge(
    element: Element, location: str, usual: str, attributes: Mapping[str, tuple[str, str | None]]
) -> GraphEdge:
    kind = element.get("type", usual)
    if kind not in EDGE_TYPES:
        nearest = did_you_mean(kind, EDGE_TYPES)
        raise InputError(
            f"{location}: type is '{shorten(kind)}', must be one of {', '.join(EDGE_TYPES)}{nearest}"
        )
    tail, head = element.get("source"), element.get("target")
    if tail is None or head is None:
        raise InputError(f"{location}: {'source' if tail is None else 'target'} is missing")
    own = {name: element.get(name, "") for name in ("weight", "label") if element.get(name) is not None}
    values = _read_values(element, location, attributes)
    return GraphEdge(location, tail, head, kind == "directed", {**own, **values})


def _read_values(
    element: Element, location: str, attributes: Mapping[str, tuple[str, str | None]]
) -> dict[str, str]:
    """Return the attributes of an element by their titles, with defaults."""
    values = {title: default for title, default in attributes.values() if default is not None}
    for value in element.findall("attvalues/attvalue"):
        key = value.get("for", value.get("id", ""))
        if key not in attributes:
            nearest = did_you_mean(key, attributes)
            raise InputError(
                f"{location}: has a value for '{shorten(key)}', must be a declared attribute{nearest}"
            )
        values[attributes[key][0]] = value.get("value", "")
    return values
