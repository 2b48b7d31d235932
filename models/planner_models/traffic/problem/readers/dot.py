"""DOT, the language of Graphviz: graphs of nodes and edges with attributes.

A parser of our own: pydot would be a dependency, keeps no rows, and its grammar takes seconds for files that
this one reads in milliseconds.

Source: graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from planner.errors import InputError
from planner_models.traffic.problem.readers.file_errors import shorten
from planner_models.traffic.problem.readers.graph_content import GraphContent, GraphEdge, GraphNode

MAX_DEPTH: Final = 50
"""Groups within groups."""
TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<mark>->|--|[{}\[\];,=:+])|"(?P<text>(?:\\.|[^"\\])*)"|(?P<word>-?[\w.]+)""",
    re.DOTALL,
)
ONE_EACH: Final = "write one for each node"
COMMENT_LINE: Final = re.compile(r"^#[^\n]*", re.MULTILINE)


@dataclass(frozen=True)
class _Token:
    """A mark or a name, and its row."""

    text: str
    row: int
    is_mark: bool = False

    def is_word(self, *words: str) -> bool:
        return not self.is_mark and self.text.lower() in words


@dataclass
class _Parser:
    """Tokens of a file with the position in them, and the graph so far."""

    file: str
    tokens: list[_Token]
    position: int = 0
    is_directed: bool = False
    nodes: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    content: GraphContent = field(default_factory=GraphContent)

    def take(self, mark: str | None = None) -> _Token:
        """Return the next token; raise InputError where there is none, or not the expected mark."""
        if self.position >= len(self.tokens):
            raise InputError(f"{self.file}: ends within a graph; is it whole?")
        token = self.tokens[self.position]
        if mark is not None and not (token.is_mark and token.text == mark):
            raise InputError(f"{self.file} row {token.row}: is '{shorten(token.text)}', must be '{mark}'")
        self.position += 1
        return token

    def is_at(self, *marks: str) -> bool:
        if self.position >= len(self.tokens):
            return False
        token = self.tokens[self.position]
        return token.is_mark and token.text in marks


def parse_dot(text: str, file: str) -> GraphContent:
    """Return the graph of a DOT text; raise InputError with the row where it is none."""
    parser = _Parser(file, list(_tokens(COMMENT_LINE.sub("", text), file)))
    token = parser.take()
    if token.is_word("strict"):
        token = parser.take()
    if not token.is_word("graph", "digraph"):
        begin = f"{file} row {token.row}: begins with '{shorten(token.text)}'"
        raise InputError(f"{begin}, must begin with graph or digraph")
    parser.is_directed = token.text.lower() == "digraph"
    if not parser.is_at("{"):
        parser.take()
    parser.take("{")
    _parse_statements(parser)
    for name, (row, attributes) in parser.nodes.items():
        parser.content.nodes.append(GraphNode(f"{file} row {row}", name, attributes))
    return parser.content


def _tokens(text: str, file: str) -> Iterator[_Token]:
    position, row = 0, 1
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            found = shorten(text[position : position + 20].split("\n")[0])
            raise InputError(f"{file} row {row}: is no DOT at '{found}'; texts in HTML are not read")
        if match["mark"]:
            yield _Token(match["mark"], row, is_mark=True)
        elif match["text"] is not None:
            yield _Token(match["text"].replace('\\"', '"'), row)
        elif match["word"]:
            yield _Token(match["word"], row)
        row += match[0].count("\n")
        position = match.end()


def _parse_statements(parser: _Parser) -> None:
    """Read the statements of a graph and of the groups in it, to its end."""
    edge_defaults: list[dict[str, str]] = [{}]
    while edge_defaults:
        if parser.is_at(";", ","):
            parser.take()
        elif parser.is_at("}"):
            row = parser.take().row
            edge_defaults.pop()
            if parser.is_at("->", "--"):
                raise InputError(f"{parser.file} row {row}: an edge from a group is not read; {ONE_EACH}")
        else:
            _parse_statement(parser, edge_defaults)


def _parse_statement(parser: _Parser, edge_defaults: list[dict[str, str]]) -> None:
    """Read a statement: the begin of a group, an attribute, defaults, a node or a chain of edges."""
    token = parser.take()
    if token.is_word("subgraph"):
        if not parser.is_at("{"):
            parser.take()
        token = parser.take("{")
    if token.is_mark and token.text == "{":
        if len(edge_defaults) > MAX_DEPTH:
            raise InputError(f"{parser.file} row {token.row}: groups are nested over {MAX_DEPTH} deep")
        edge_defaults.append(dict(edge_defaults[-1]))
    elif token.is_mark:
        rule = "must be a node, an edge or an attribute"
        raise InputError(f"{parser.file} row {token.row}: is '{token.text}', {rule}")
    elif parser.is_at("="):
        parser.take()
        parser.take()
    elif token.is_word("graph", "node", "edge") and parser.is_at("["):
        attributes = _parse_attributes(parser)
        if token.is_word("edge"):
            edge_defaults[-1] |= attributes
    else:
        _parse_chain(parser, token, edge_defaults[-1])


def _parse_chain(parser: _Parser, first: _Token, defaults: dict[str, str]) -> None:
    """Read a node, or the edges of a chain such as `a -> b -> c`, with their attributes."""
    names = [_take_node(parser, first)]
    rows = [first.row]
    while parser.is_at("->", "--"):
        parser.take()
        if parser.is_at("{"):
            row = parser.take().row
            raise InputError(
                f"{parser.file} row {row}: an edge to a group is not read; write one for each node"
            )
        token = parser.take()
        rows.append(token.row)
        names.append(_take_node(parser, token))
    attributes: dict[str, str] = {}
    while parser.is_at("["):
        attributes |= _parse_attributes(parser)
    if len(names) == 1:
        parser.nodes[names[0]][1].update(attributes)
    for tail, head, row in zip(names[:-1], names[1:], rows[1:], strict=True):
        edge = GraphEdge(
            f"{parser.file} row {row}", tail, head, parser.is_directed, {**defaults, **attributes}
        )
        parser.content.edges.append(edge)


def _take_node(parser: _Parser, token: _Token) -> str:
    """Return the name of a node, without its port."""
    if token.is_mark:
        raise InputError(f"{parser.file} row {token.row}: is '{token.text}', must be a node")
    parser.nodes.setdefault(token.text, (token.row, {}))
    while parser.is_at(":"):
        parser.take()
        parser.take()
    return token.text


def _parse_attributes(parser: _Parser) -> dict[str, str]:
    """Return the attributes of a list in brackets."""
    parser.take("[")
    attributes: dict[str, str] = {}
    while not parser.is_at("]"):
        if parser.is_at(",", ";"):
            parser.take()
            continue
        name = parser.take()
        value = "true"
        if parser.is_at("="):
            parser.take()
            value = parser.take().text
        attributes[name.text] = value
    parser.take("]")
    return attributes
