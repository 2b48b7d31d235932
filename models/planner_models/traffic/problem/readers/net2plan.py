"""Designs of Net2Plan, in files `.n2p`: nodes, links and demands of one layer.

Versions 3 to 7 are read. Routes, resources and groups of shared risk are not.

Source: net2plan.com, P. Pavon-Marino, J.-L. Izquierdo-Zaragoza, "Net2plan: an open source network planning
tool for bridging the gap between academia and industry", IEEE Network 29(5), 2015.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from xml.etree.ElementTree import Element

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.units import find_units, unit_of
from planner.errors import InputError
from planner_models.traffic.problem.readers import Tables, file_errors
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import (
    MBPS_EXPONENT,
    RateUnit,
    build_table,
    make_unique,
    named_tables,
    position_columns,
    sum_duplicates,
    to_floats,
)

LAYER: Final = "layer"


def read(
    path: Annotated[Path, Field(description="the .n2p file")],
    *,
    layer: Annotated[
        str | None,
        Field(description="name or id of the layer; default: the one that the file says, or the first"),
    ] = None,
    unit: Annotated[
        RateUnit | None,
        Field(description="unit of capacities and traffic where the file names none; default: gbps"),
    ] = None,
) -> Tables:
    """Read a layer of a design of Net2Plan: its links, their delays, and its demands.

    Links that are down are left out. Demands of the same ends are added up.

    raises  InputError with every fault
    """
    path = Path(path)
    root = file_errors.parse(path, "network")
    faults = FileErrors(path.name)
    element = _layer(root, layer, path.name)
    nodes, code = _nodes(root, faults)
    capacity_factor = _factor(element, "linkCapacityUnitsName", unit, path.name)
    traffic_factor = _factor(element, "demandTrafficUnitsName", unit, path.name)
    links = _links(element, code, capacity_factor, faults)
    demands = _demands(element, code, traffic_factor, faults)
    faults.raise_if_any()
    names = nodes["node"].to_numpy(object)
    for frame, ends in ((links, ("tail", "head")), (demands, ("source", "target"))):
        for end in ends:
            frame[end] = pd.Series(names[frame[end].to_numpy(int)], dtype="str")
    if demands.empty:
        raise InputError(f"{path.name}: the layer has no demand")
    return named_tables(path.name, nodes=nodes, links=links, demands=sum_duplicates(demands))


def _layer(root: Element, name: str | None, file: str) -> Element:
    """Return the layer of a name or id; else the default one, or the first."""
    layers = root.findall(LAYER)
    if not layers:
        raise InputError(f"{file}: has no layer; versions before 3 of the format are not read")
    if name is not None:
        for element in layers:
            if name in (element.get("name"), element.get("id")):
                return element
        names = ", ".join(map(_show_layer, layers[:12]))
        raise InputError(f"{file}: has no layer '{shorten(name)}' (it has {names})")
    default = next((element for element in layers if element.get("isDefaultLayer") == "true"), layers[0])
    if len(layers) > 1:
        shown = _show_layer(default)
        add_note(f"assumed: {file}: the layer {shown} of {len(layers)}; layer sets another one")
    return default


def _show_layer(element: Element) -> str:
    """Return the name of a layer in quotes, its id where it has none."""
    return f"'{shorten(element.get('name') or element.get('id') or '')}'"


def _factor(element: Element, attribute: str, unit: RateUnit | None, file: str) -> float:
    """Return the factor to Mbit/s of the unit that the layer names, else of the given one, else of Gbit/s."""
    text = (element.get(attribute) or "").strip()
    ours = unit_of("capacity_mbps")[1]
    found = [candidate for candidate in find_units(text) if candidate.dimension == "rate"]
    if len(found) == 1 and ours is not None:
        return float(found[0].factor_to(ours))
    if unit is None:
        named = f"'{shorten(text)}' is no unit" if text else "no unit is named"
        add_note(f"assumed: {file}: {attribute}: rates are in Gbit/s, as {named}; unit sets another one")
    return 10.0 ** MBPS_EXPONENT[unit or "gbps"]


def _nodes(root: Element, faults: FileErrors) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the table of nodes, and the number of each by its id."""
    code: dict[str, int] = {}
    names, x, y = [], [], []
    for element in root.findall("node"):
        id_ = element.get("id")
        where = f"{faults.file}: node '{shorten(id_ or '')}'"
        if id_ is None or id_ in code:
            faults.add(
                where, ": has no id" if id_ is None else " is there already", rule="ids of nodes differ"
            )
            continue
        code[id_] = len(code)
        names.append(element.get("name") or "")
        x.append(faults.number(where, "xCoord", element.get("xCoord")))
        y.append(faults.number(where, "yCoord", element.get("yCoord")))
    if not code:
        raise InputError(f"{faults.file}: has no node")
    columns = position_columns(to_floats(x), to_floats(y), geographical=None, faults=faults)
    return build_table(node=make_unique(names, list(code)), **columns), code


def _ends(
    element: Element, attributes: tuple[str, str], where: str, code: dict[str, int], faults: FileErrors
) -> list[int]:
    """Return the numbers of two nodes; add a fault for ids that are none."""
    ends = []
    for attribute in attributes:
        id_ = element.get(attribute) or ""
        if id_ not in code:
            rule = f"{attribute} must be a node's id"
            faults.add(
                where, f": {attribute} is '{shorten(id_)}', must be a node's id", rule=rule, near=(id_, code)
            )
        ends.append(code.get(id_, 0))
    if ends[0] == ends[1] and all(element.get(attribute) in code for attribute in attributes):
        faults.add(where, ": both ends are the same node, must differ", rule="ends must differ")
    return ends


def _links(element: Element, code: dict[str, int], factor: float, faults: FileErrors) -> pd.DataFrame:
    """Return the links that are up, with their capacity and their delay."""
    rows, capacities, delays, down = [], [], [], 0
    for link in element.findall("link"):
        where = f"{faults.file}: link '{shorten(link.get('id') or '')}'"
        if link.get("isUp") == "false":
            down += 1
            continue
        rows.append(_ends(link, ("originNodeId", "destinationNodeId"), where, code, faults))
        capacities.append(faults.number(where, "capacity", link.get("capacity")) * factor)
        length_km = faults.number(where, "lengthInKm", link.get("lengthInKm"))
        speed = faults.number(
            where, "propagationSpeedInKmPerSecond", link.get("propagationSpeedInKmPerSecond", "200000")
        )
        delays.append(length_km / speed * 1000 if speed > 0 else 0.0)
    if down:
        add_note(f"{faults.file}: left out {down} links that are down")
    tail, head = np.array(rows, dtype=np.intp).reshape(-1, 2).T
    return pd.DataFrame(
        {"tail": tail, "head": head, "capacity_mbps": to_floats(capacities), "latency_ms": to_floats(delays)}
    )


def _demands(element: Element, code: dict[str, int], factor: float, faults: FileErrors) -> pd.DataFrame:
    """Return the demands of a layer."""
    rows, rates = [], []
    for demand in element.findall("demand"):
        where = f"{faults.file}: demand '{shorten(demand.get('id') or '')}'"
        rows.append(_ends(demand, ("ingressNodeId", "egressNodeId"), where, code, faults))
        rates.append(faults.number(where, "offeredTraffic", demand.get("offeredTraffic")) * factor)
    source, target = np.array(rows, dtype=np.intp).reshape(-1, 2).T
    return pd.DataFrame({"source": source, "target": target, "rate_mbps": to_floats(rates)})
