"""XML syntax of SNDlib."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from planner.errors import InputError
from planner_models.traffic.problem.readers import xml_files
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.sndlib_network import Demand, Link, Network, NetworkRows

NAMESPACE: Final = "http://sndlib.zib.de/network"


def parse(path: Path) -> Network:
    """Read the network of an XML file; faults of single elements are in its `faults`."""
    root = xml_files.parse(path, "network")
    network = Network(FileErrors(path.name), unit=xml_files.text_of(root, "meta/unit"))
    nodes = root.find("networkStructure/nodes")
    if nodes is None:
        raise InputError(f"{path.name}: element 'networkStructure/nodes' is missing")
    kind = nodes.get("coordinatesType")
    if kind not in (None, "geographical", "pixel"):
        fault = f": coordinatesType is '{shorten(kind)}', must be geographical or pixel"
        network.faults.add(path.name, fault)
    network.geographical = None if kind is None else kind == "geographical"
    for location, id_, node in _elements_with_id(path, nodes.findall("node"), network.faults):
        x, y = xml_files.text_of(node, "coordinates/x"), xml_files.text_of(node, "coordinates/y")
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
                xml_files.text_of(link, "routingCost"),
                xml_files.text_of(link, "setupCost"),
            )
        )
    for location, _, demand in _elements_with_id(path, root.findall("demands/demand"), network.faults):
        unit, value = xml_files.text_of(demand, "routingUnit"), xml_files.text_of(demand, "demandValue")
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
    text = xml_files.text_of(element, end) or ""
    return text if text in ids else text.strip()


def _module(element: Element | None) -> tuple[str | None, str | None]:
    if element is None:
        return None, None
    return xml_files.text_of(element, "capacity") or "", xml_files.text_of(element, "cost")


def format_lines(network: NetworkRows) -> Iterator[str]:
    """Yield the lines of an XML file; InputError for a label with a character that XML cannot represent."""
    escape = xml_files.escape
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
