"""Node-link JSON of networkx and D3: lists of nodes and of links.

Source: networkx.org, reference of `node_link_data`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.contract.tables import abbreviate
from planner.errors import InputError
from planner.io.json_texts import parse_json
from planner_models.traffic.problem.readers.graph_content import GraphContent, GraphEdge, GraphNode


def _read_object(text: str, file: str) -> dict[str, Any]:
    """Return the object of a JSON text, empty where it is another value."""
    document = parse_json(file, text)
    return document if isinstance(document, dict) else {}


def parse_node_link(text: str, file: str) -> GraphContent:
    """Return the graph of a node-link JSON text; raise InputError where it is none.

    Without ids, the links name the numbers of nodes, from 0, as D3 does.
    """
    document = _read_object(text, file)
    edges, nodes = document.get("links", document.get("edges")), document.get("nodes")
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise InputError(
            f"{file}: is no node-link JSON, an object with lists nodes and links; networkx writes it by "
            "node_link_data"
        )
    is_directed = document.get("directed") is True
    content = GraphContent()
    has_ids = all(isinstance(node, dict) and "id" in node for node in nodes)
    for number, node in enumerate(nodes):
        where = f"{file}: node {number + 1}"
        values = node if isinstance(node, dict) else {"id": node}
        name = _text(values.get("id", values.get("name", number)), where, "id")
        content.nodes.append(GraphNode(where, name, _attributes(values, ("id",))))
    names = [] if has_ids else [node.id for node in content.nodes]
    for number, edge in enumerate(edges):
        where = f"{file}: link {number + 1}"
        if not isinstance(edge, dict):
            raise InputError(f"{where}: is {_say(edge)}, must be an object with source and target")
        tail, head = (_find_end(edge, end, names, where) for end in ("source", "target"))
        attributes = _attributes(edge, ("source", "target"))
        content.edges.append(GraphEdge(where, tail, head, is_directed, attributes))
    return content


def _find_end(edge: Mapping[str, Any], end: str, names: Sequence[str], where: str) -> str:
    """Return the id of an end; of numbered nodes, the name of the node of a number."""
    if end not in edge:
        raise InputError(f"{where}: {end} is missing")
    value = edge[end]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return names[value] if is_number and 0 <= value < len(names) else _text(value, where, end)


def _say(value: Any) -> str:
    """Return a single value as a short text; lists and objects may be large."""
    return "a list or an object" if isinstance(value, list | dict) else f"'{abbreviate(value)}'"


def _text(value: Any, where: str, what: str) -> str:
    """Return an id as text; raise InputError for lists, objects and nothing."""
    if value is None or isinstance(value, list | dict | bool):
        raise InputError(f"{where}: {what} is {_say(value)}, must be a name or a number")
    return str(value)


def _attributes(element: Mapping[str, Any], without: tuple[str, ...]) -> dict[str, str]:
    """Return the attributes that are single values, as texts."""
    return {
        str(name): str(value)
        for name, value in element.items()
        if name not in without and value is not None and not isinstance(value, list | dict)
    }
