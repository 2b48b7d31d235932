"""Topologies of containerlab: nodes, and links between their interfaces.

Source: containerlab.dev/manual/topo-def-file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planner.contract.tables import abbreviate
from planner.errors import InputError, did_you_mean
from planner.io.json_texts import require_unicode
from planner_models.traffic.problem.readers.graph_content import GraphContent, GraphEdge, GraphNode

MAX_LETTERS: Final = 1 << 19
"""Letters of a file, which take seconds: the parser in C would crash on deep lists, and is not used."""
OUTSIDE: Final = ("host", "mgmt-net", "macvlan", "dummy")
"""First words of ends that are no nodes: interfaces of the machine."""
OUTSIDE_TYPES: Final = (*OUTSIDE, "vxlan", "vxlan-stitch")
"""Types of links with one end in the topology."""


def parse_containerlab(text: str, file: str) -> GraphContent:
    """Return the nodes and links of a containerlab topology; raise InputError where it is none.

    Labels and variables of a link are its attributes. Links to interfaces of the host are left out.
    """
    if len(text) > MAX_LETTERS:
        raise InputError(f"{file}: has {len(text):,} letters, must have at most {MAX_LETTERS:,}")
    document = _load(text, file)
    topology = document.get("topology") if isinstance(document, dict) else None
    nodes = topology.get("nodes") if isinstance(topology, dict) else None
    if not isinstance(topology, dict) or not isinstance(nodes, dict):
        raise InputError(f"{file}: is no containerlab topology: it has no topology with nodes")
    content = GraphContent()
    for name in nodes:
        content.nodes.append(GraphNode(f"{file}: node '{name}'", str(name)))
    links = topology.get("links") or []
    if not isinstance(links, list):
        raise InputError(f"{file}: links are {_say(links)}, must be a list")
    for number, link in enumerate(links, start=1):
        edge = _parse_link(link, f"{file}: link {number}", nodes)
        if edge is not None:
            content.edges.append(edge)
    return content


def _parse_link(link: Any, where: str, nodes: Mapping[Any, Any]) -> GraphEdge | None:
    """Return the edge of a link; None for one to an interface of the machine."""
    link = link if isinstance(link, dict) else {}
    endpoints = link.get("endpoints")
    if not isinstance(endpoints, list) or len(endpoints) != 2:
        if link.get("type") in OUTSIDE_TYPES:
            return None
        raise InputError(f"{where}: must have two endpoints, such as ['r1:eth1', 'r2:eth1']")
    names = {str(name) for name in nodes}
    ends = [_node_of(end, where) for end in endpoints]
    if any(end in OUTSIDE and end not in names for end in ends):
        return None
    for end in ends:
        if end not in names:
            raise InputError(f"{where}: '{abbreviate(end)}' is no node" + did_you_mean(end, names))
    return GraphEdge(where, ends[0], ends[1], is_directed=False, attributes=_attributes(link))


def _load(text: str, file: str) -> Any:
    """Return the content of a YAML text: plain values only, no objects of Python."""
    import yaml

    try:
        _refuse_nested_aliases(yaml.parse(text, Loader=yaml.SafeLoader), file)
        content = yaml.load(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        row = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InputError(f"{file} row {row}: is no YAML ({error.problem})") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{file}: is no YAML ({abbreviate(' '.join(str(error).split()))})") from None
    require_unicode(file, text, content)
    return content


def _refuse_nested_aliases(events: Any, file: str) -> None:
    """Raise InputError for an alias within what an anchor names: such files may grow without end."""
    open_anchors: list[bool] = []
    for event in events:
        kind = type(event).__name__
        if kind == "AliasEvent" and any(open_anchors):
            row = event.start_mark.line + 1
            raise InputError(f"{file} row {row}: refused for safety: an alias within an anchor")
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_anchors.append(event.anchor is not None)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            open_anchors.pop()


def _say(value: Any) -> str:
    """Return a single value as a short text; lists and objects may be large."""
    return "a list or an object" if isinstance(value, list | dict) else f"'{abbreviate(value)}'"


def _node_of(end: Any, where: str) -> str:
    """Return the node of an end, `r1:eth1` or {node: r1, interface: eth1}."""
    if isinstance(end, dict) and isinstance(end.get("node"), str | int):
        return str(end["node"])
    if isinstance(end, str):
        return end.partition(":")[0]
    raise InputError(f"{where}: end is {_say(end)}, must be NODE:INTERFACE")


def _attributes(link: dict[Any, Any]) -> dict[str, str]:
    """Return the single values of a link, of its labels and of its variables, as texts."""
    attributes: dict[str, str] = {}
    for part in (link, link.get("labels"), link.get("vars")):
        if isinstance(part, dict):
            attributes |= {
                str(name): str(value)
                for name, value in part.items()
                if isinstance(value, str | int | float) and not isinstance(value, bool) and name != "type"
            }
    return attributes
