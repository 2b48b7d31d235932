"""Content of an SNDlib network file, and its two syntaxes, native text and XML; numbers as they are written.

The native text syntax:

```
?SNDlib native format; type: network; version: 1.0
NODES ( <node> ( <x> <y> ) ... )
LINKS ( <link> ( <source> <target> ) <capacity> <capacity cost> <routing cost> <setup cost>
        ( <module capacity> <module cost> ... ) ... )
DEMANDS ( <demand> ( <source> <target> ) <routing unit> <value> <longest path> ... )
```
Each item has its own line. Identifiers may contain blanks and the like, encoded as in a URL (`New%20York`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

import pandas as pd

from planner.errors import InputError
from planner.io.text_files import read_text
from planner_models.traffic.problem.readers import file_errors, table_building
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import format_decimal, optional_column

HEADER: Final = "?SNDlib native format; type: network; version: 1.0"
SECTIONS: Final = ("META", "NODES", "LINKS", "DEMANDS", "ADMISSIBLE_PATHS")
NAMESPACE: Final = "http://sndlib.zib.de/network"


@dataclass
class Link:
    """A link of the file: its ends, its modules as (capacity, cost), and its routing and setup cost."""

    place: str
    source: str
    target: str
    preinstalled: tuple[str | None, str | None]  # capacity and cost, as written
    modules: list[tuple[str | None, str | None]]
    routing_cost: str | None = None
    setup_cost: str | None = None


@dataclass
class Demand:
    """A demand of the file: its ends, and its value in routing units."""

    place: str
    source: str
    target: str
    routing_unit: str | None
    value: str | None


@dataclass
class Network:
    """All elements of the file, each with its place in the file, and the faults of their syntax."""

    faults: FileErrors
    geographical: bool | None = None
    unit: str | None = None
    nodes: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)  # place, id, x, y
    links: list[Link] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)


@dataclass
class NetworkRows:
    """Rows of a file to write: links with capacity and routing cost, demands with their value."""

    nodes: pd.DataFrame
    links: list[tuple[str, str, str, str]]
    demands: list[tuple[str, str, str]]

    def positions(self) -> Iterator[tuple[str, str, str]]:
        """Yield each node with longitude and latitude, 0 where they are unknown."""
        longitude, latitude = (
            optional_column(self.nodes, column, 0.0) for column in ("longitude", "latitude")
        )
        for node, x, y in zip(self.nodes["node"], longitude, latitude, strict=True):
            yield node, format_decimal(x), format_decimal(y)


def parse_native(path: Path) -> Network:
    """Read the network of a text file; faults of single items are in its `faults`."""
    lines = read_text(path).split("\n")
    _require_header(path, next((line for line in lines if line.strip()), ""))
    network = Network(FileErrors(path.name))
    for location, section, words in _items(path, lines, network.faults):
        match section:
            case "NODES":
                _add_node(network, location, words)
            case "LINKS":
                _add_link(network, location, words)
            case "DEMANDS":
                _add_demand(network, location, words)
            case "META" if words[0] == "unit":
                network.unit = words[-1]
    return network


def _require_header(path: Path, line: str) -> None:
    words = re.split(r"[\s;:]+", line.strip())
    if words[:3] != ["?SNDlib", "native", "format"]:
        what = f"begins with '{shorten(line.strip())}'" if line else "is empty"
        raise InputError(f"{path.name}: {what}, must be XML or begin with '{HEADER}'")
    if words[3:5] != ["type", "network"]:
        raise InputError(f"{path.name}: is of type '{' '.join(words[4:5])}', must be '{HEADER}'")


def _split_words(line: str) -> list[str]:
    """Return the words and parentheses of a line, none of a comment or of the line of the version."""
    return re.findall(r"[()]|[^\s()]+", line.partition("#")[0] if not line.startswith("?") else "")


def _require_section(word: str, location: str, faults: FileErrors) -> None:
    """Add an error where a word is no section."""
    if word not in SECTIONS:
        rule = "must be a section"
        faults.add(location, f": is '{shorten(word)}', {rule}", rule=rule, near=(word, SECTIONS))


def _items(path: Path, lines: Sequence[str], faults: FileErrors) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each item of each section: place, section and words, which include parentheses.

    An item ends with its line, unless a parenthesis is open.
    """
    section, depth = "", 0
    location, words = "", list[str]()
    for number, line in enumerate(lines, start=1):
        here = f"{path.name} line {number}"
        for word in _split_words(line):
            if depth == 0 and word == "(" and section:
                depth = 1
                continue
            if depth == 0:
                section = word  # items of an unknown section are skipped
                _require_section(word, here, faults)
                continue
            depth += (word == "(") - (word == ")")
            if depth > 0:
                location = location if words else here
                words.append(word)
                continue
            if words:
                yield location, section, words
            section, words = "", []
        if words and depth == 1:
            yield location, section, words
            words = []
    if depth:
        faults.add(path.name, f": ends within {section}, a closing parenthesis is missing")


def _split_groups(words: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the words outside parentheses, and the words within each pair of parentheses."""
    outside: list[str] = []
    groups: list[list[str]] = []
    inside = False
    for word in words:
        if word == "(":
            inside = True
            groups.append([])
        elif word == ")":
            inside = False
        else:
            (groups[-1] if inside else outside).append(word)
    return outside, groups


def _add_node(network: Network, location: str, words: list[str]) -> None:
    outside, groups = _split_groups(words)
    position = groups[0] if groups else []
    x, y = position if len(position) == 2 else (None, None)
    if len(outside) != 1 or len(position) not in (0, 2):
        network.faults.add(location, ": must be '<node> ( <x> <y> )'")
    if outside:  # even with a fault, so that its links and demands are no further faults
        network.nodes.append((location, table_building.decode(outside[0]), x, y))


def _add_link(network: Network, location: str, words: list[str]) -> None:
    outside, groups = _split_groups(words)
    modules = groups[1] if len(groups) > 1 else []
    # behind the id: pre-installed capacity and its cost, routing cost, setup cost
    if len(outside) != 5 or not groups or len(groups[0]) != 2 or len(modules) % 2:
        network.faults.add(
            location,
            ": must be '<link> ( <source> <target> ) <capacity> <cost> <routing cost> <setup cost> "
            "( <module capacity> <module cost> ... )'",
        )
        return
    source, target = map(table_building.decode, groups[0])
    pairs: list[tuple[str | None, str | None]] = list(zip(modules[::2], modules[1::2], strict=True))
    link = Link(location, source, target, (outside[1], outside[2]), pairs, outside[3], outside[4])
    network.links.append(link)


def _add_demand(network: Network, location: str, words: list[str]) -> None:
    outside, groups = _split_groups(words)
    if len(outside) not in (3, 4) or len(groups) != 1 or len(groups[0]) != 2:
        network.faults.add(
            location,
            ": must be '<demand> ( <source> <target> ) <routing unit> <demand value> <longest path>'",
        )
        return
    source, target = map(table_building.decode, groups[0])
    network.demands.append(Demand(location, source, target, outside[1], outside[2]))


def format_native(network: NetworkRows) -> Iterator[str]:
    """Yield the lines of a text file."""
    encode = table_building.encode
    yield HEADER
    yield "\nNODES ("
    for node, x, y in network.positions():
        yield f"  {encode(node)} ( {x} {y} )"
    yield ")\n\nLINKS ("
    for number, (tail, head, capacity, cost) in enumerate(network.links, start=1):
        yield f"  L{number} ( {encode(tail)} {encode(head)} ) {capacity} 0 {cost} 0 ( )"
    yield ")\n\nDEMANDS ("
    for number, (source, target, rate) in enumerate(network.demands, start=1):
        yield f"  D{number} ( {encode(source)} {encode(target)} ) 1 {rate} UNLIMITED"
    yield ")"


def parse_xml(path: Path) -> Network:
    """Read the network of an XML file; faults of single elements are in its `faults`."""
    root = file_errors.parse(path, "network")
    network = Network(FileErrors(path.name), unit=file_errors.text_of(root, "meta/unit"))
    nodes = root.find("networkStructure/nodes")
    if nodes is None:
        raise InputError(f"{path.name}: element 'networkStructure/nodes' is missing")
    kind = nodes.get("coordinatesType")
    if kind not in (None, "geographical", "pixel"):
        fault = f": coordinatesType is '{shorten(kind)}', must be geographical or pixel"
        network.faults.add(path.name, fault)
    network.geographical = None if kind is None else kind == "geographical"
    for location, id_, node in _elements_with_id(path, nodes.findall("node"), network.faults):
        x, y = file_errors.text_of(node, "coordinates/x"), file_errors.text_of(node, "coordinates/y")
        network.nodes.append((location, id_, x, y))
    ids = {id_ for _, id_, _, _ in network.nodes}
    for location, _, link in _elements_with_id(
        path, root.findall("networkStructure/links/link"), network.faults
    ):
        modules = [_module(module) for module in link.findall("additionalModules/addModule")]
        network.links.append(
            Link(
                location,
                _end(link, "source", ids),
                _end(link, "target", ids),
                _module(link.find("preInstalledModule")),
                modules,
                file_errors.text_of(link, "routingCost"),
                file_errors.text_of(link, "setupCost"),
            )
        )
    for location, _, demand in _elements_with_id(path, root.findall("demands/demand"), network.faults):
        unit, value = file_errors.text_of(demand, "routingUnit"), file_errors.text_of(demand, "demandValue")
        source, target = _end(demand, "source", ids), _end(demand, "target", ids)
        network.demands.append(Demand(location, source, target, unit, value))
    return network


def _elements_with_id(
    path: Path, elements: Iterable[Element], faults: FileErrors
) -> Iterator[tuple[str, str, Element]]:
    """Yield each element that has an id, with its place and id."""
    for number, element in enumerate(elements, start=1):
        id_ = element.get("id")
        if id_ is None:
            location = f"{path.name}: {element.tag} {number}"
            faults.add(location, ": id is missing", rule=f"a {element.tag} has no id")
        else:
            yield f"{path.name}: {element.tag} '{shorten(id_)}'", id_, element


def _end(element: Element, end: str, ids: set[str]) -> str:
    """Return the node's id; blanks around it are layout unless a node's id includes them."""
    text = file_errors.text_of(element, end) or ""
    return text if text in ids else text.strip()


def _module(element: Element | None) -> tuple[str | None, str | None]:
    if element is None:
        return None, None
    return file_errors.text_of(element, "capacity") or "", file_errors.text_of(element, "cost")


def format_xml(network: NetworkRows) -> Iterator[str]:
    """Yield the lines of an XML file; InputError for a label with a character that XML cannot represent."""
    escape = file_errors.escape
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<network xmlns="{NAMESPACE}" version="1.0">'
    yield '  <networkStructure>\n    <nodes coordinatesType="geographical">'
    for node, x, y in network.positions():
        yield f'      <node id="{escape(node)}"><coordinates><x>{x}</x><y>{y}</y></coordinates></node>'
    yield "    </nodes>\n    <links>"
    for number, (tail, head, capacity, cost) in enumerate(network.links, start=1):
        yield (
            f'      <link id="L{number}"><source>{escape(tail)}</source><target>{escape(head)}</target>'
            f"<preInstalledModule><capacity>{capacity}</capacity><cost>0</cost></preInstalledModule>"
            f"<routingCost>{cost}</routingCost></link>"
        )
    yield "    </links>\n  </networkStructure>\n  <demands>"
    for number, (source, target, rate) in enumerate(network.demands, start=1):
        yield (
            f'    <demand id="D{number}"><source>{escape(source)}</source><target>{escape(target)}</target>'
            f"<routingUnit>1</routingUnit><demandValue>{rate}</demandValue></demand>"
        )
    yield "  </demands>\n</network>"
