"""GML, as networkx, igraph, the Internet Topology Zoo and others write it.

A parser of our own: networkx refuses parallel edges of files without a mark for them, which the Topology Zoo
has, and names no rows.

Source: M. Himsolt, "GML: A portable graph file format", 1996.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, Final

from planner.errors import InputError
from planner_models.traffic.problem.readers.file_errors import shorten
from planner_models.traffic.problem.readers.graph_content import GraphContent, GraphEdge, GraphNode

MAX_DEPTH: Final = 20
"""Lists within lists."""
TOKEN: Final = re.compile(
    r"""\s+|\#[^\n]*|(?P<open>\[)|(?P<close>\])|"(?P<text>[^"]*)"|(?P<key>[A-Za-z_][\w.-]*)"""
    r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"""
)
Entries = list[tuple[str, Any, int]]
"""Keys, values and rows of a list; a value is a text, or a list."""


def parse_gml(text: str, file: str) -> GraphContent:
    """Return the graph of a GML text; raise InputError with the row where it is none."""
    root = _parse_lists(text, file)
    graphs = [(value, row) for key, value, row in root if key == "graph" and isinstance(value, list)]
    if len(graphs) != 1:
        raise InputError(f"{file}: has {len(graphs)} graphs, must have 1")
    entries, _ = graphs[0]
    is_directed = any(key == "directed" and value == "1" for key, value, _ in entries)
    content = GraphContent(label="label")
    for key, value, row in entries:
        where = f"{file} row {row}"
        if key == "node" and isinstance(value, list):
            (name,), attributes = _split_attributes(value, ("id",), f"{where}: node")
            content.nodes.append(GraphNode(where, name, attributes))
        elif key == "edge" and isinstance(value, list):
            (tail, head), attributes = _split_attributes(value, ("source", "target"), f"{where}: edge")
            content.edges.append(GraphEdge(where, tail, head, is_directed, attributes))
    return content


def _split_attributes(entries: Entries, names: Sequence[str], where: str) -> tuple[list[str], dict[str, str]]:
    """Return the texts of the attributes that an element must have, and its others by name."""
    attributes = {name: text for name, text, _ in entries if isinstance(text, str)}
    for name in names:
        if name not in attributes:
            raise InputError(f"{where} has no {name}")
    return [attributes.pop(name) for name in names], attributes


def _parse_lists(text: str, file: str) -> Entries:
    """Return the entries of the file; lists within it are entries again."""
    stack: list[Entries] = [[]]
    key: str | None = None
    position, row = 0, 1
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            found = shorten(text[position : position + 20].split("\n")[0])
            raise InputError(f"{file} row {row}: is no GML at '{found}': must be a key and its value")
        position = match.end()
        key = _take_token(match, key, stack, f"{file} row {row}", row)
        row += match[0].count("\n")
    if len(stack) > 1:
        raise InputError(f"{file}: ends within a list; is it whole?")
    return stack[0]


def _take_token(
    match: re.Match[str], key: str | None, stack: list[Entries], where: str, row: int
) -> str | None:
    """Add what a token says to the lists that are open; return the key that waits for its value."""
    if match["open"]:
        if key is None:
            raise InputError(f"{where}: a list has no key before '['")
        if len(stack) > MAX_DEPTH:
            raise InputError(f"{where}: lists are nested over {MAX_DEPTH} deep")
        entries: Entries = []
        stack[-1].append((key, entries, row))
        stack.append(entries)
        return None
    if match["close"]:
        if len(stack) == 1 or key is not None:
            raise InputError(f"{where}: ']' closes no list")
        stack.pop()
        return None
    if match["key"] and key is None:
        return match["key"]
    value = _value(match)
    if value is None:
        return key
    if key is None:
        raise InputError(f"{where}: '{shorten(value)}' has no key before it")
    stack[-1].append((key, value, row))
    return None


def _value(match: re.Match[str]) -> str | None:
    """Return the text of a value, without entities; None for spaces and comments."""
    if match["text"] is not None:
        return html.unescape(match["text"])
    return match["number"] or match["key"]
