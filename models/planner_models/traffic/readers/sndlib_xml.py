"""SNDlib's XML syntax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from planner.errors import InputError
from planner_models.traffic.readers import markup
from planner_models.traffic.readers.faults import Faults, shortened
from planner_models.traffic.readers.sndlib_network import Demand, Link, Network, Written

NAMESPACE: Final = "http://sndlib.zib.de/network"


def parse(path: Path) -> Network:
    """The network of an XML file; what is wrong with elements is in its `faults`."""
    root = markup.parse(path, "network")
    network = Network(Faults(path.name), unit=markup.text_of(root, "meta/unit"))
    nodes = root.find("networkStructure/nodes")
    if nodes is None:
        raise InputError(f"{path.name}: element 'networkStructure/nodes' is missing")
    kind = nodes.get("coordinatesType")
    if kind not in (None, "geographical", "pixel"):
        fault = f": coordinatesType is '{shortened(kind)}', must be geographical or pixel"
        network.faults.add(path.name, fault)
    network.geographical = None if kind is None else kind == "geographical"
    for place, id_, node in _identified(path, nodes.findall("node"), network.faults):
        x, y = markup.text_of(node, "coordinates/x"), markup.text_of(node, "coordinates/y")
        network.nodes.append((place, id_, x, y))
    ids = {id_ for _, id_, _, _ in network.nodes}
    for place, _, link in _identified(path, root.findall("networkStructure/links/link"), network.faults):
        modules = [_module(module) for module in link.findall("additionalModules/addModule")]
        network.links.append(
            Link(
                place,
                _end(link, "source", ids),
                _end(link, "target", ids),
                _module(link.find("preInstalledModule")),
                modules,
            )
        )
    for place, _, demand in _identified(path, root.findall("demands/demand"), network.faults):
        unit, value = markup.text_of(demand, "routingUnit"), markup.text_of(demand, "demandValue")
        source, target = _end(demand, "source", ids), _end(demand, "target", ids)
        network.demands.append(Demand(place, source, target, unit, value))
    return network


def _identified(
    path: Path, elements: Iterable[Element], faults: Faults
) -> Iterator[tuple[str, str, Element]]:
    """Each element with its place and id."""
    for number, element in enumerate(elements, start=1):
        id_ = element.get("id")
        if id_ is None:
            place = f"{path.name}: {element.tag} {number}"
            faults.add(place, ": id is missing", rule=f"a {element.tag} has no id")
        else:
            yield f"{path.name}: {element.tag} '{shortened(id_)}'", id_, element


def _end(element: Element, end: str, ids: set[str]) -> str:
    """The node's id; blanks around it are layout, unless they are part of it."""
    text = markup.text_of(element, end) or ""
    return text if text in ids else text.strip()


def _module(element: Element | None) -> tuple[str | None, str | None]:
    if element is None:
        return None, None
    return markup.text_of(element, "capacity") or "", markup.text_of(element, "cost")


def lines(network: Written) -> Iterator[str]:
    """The lines of an XML file; InputError for a label with a character that XML cannot hold."""
    esc = markup.escaped
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<network xmlns="{NAMESPACE}" version="1.0">'
    yield '  <networkStructure>\n    <nodes coordinatesType="geographical">'
    for node, x, y in network.positions():
        yield f'      <node id="{esc(node)}"><coordinates><x>{x}</x><y>{y}</y></coordinates></node>'
    yield "    </nodes>\n    <links>"
    for number, (tail, head, capacity, cost) in enumerate(network.links, start=1):
        yield (
            f'      <link id="L{number}"><source>{esc(tail)}</source><target>{esc(head)}</target>'
            f"<preInstalledModule><capacity>{capacity}</capacity><cost>{cost}</cost></preInstalledModule></link>"
        )
    yield "    </links>\n  </networkStructure>\n  <demands>"
    for number, (source, target, rate) in enumerate(network.demands, start=1):
        yield (
            f'    <demand id="D{number}"><source>{esc(source)}</source><target>{esc(target)}</target>'
            f"<routingUnit>1</routingUnit><demandValue>{rate}</demandValue></demand>"
        )
    yield "  </demands>\n</network>"
