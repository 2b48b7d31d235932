"""SNDlib files as problems: links with modules, setup, routing and pre-installed costs, and demands.

SNDlib states in a separate model file what directions share a capacity, and whether a link may have one
module or any number: here these are parameters.

Source: S. Orlowski, M. Pióro, A. Tomaszewski, R. Wessäly, "SNDlib 1.0: Survivable network design
library", Networks 55(3), 2010.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.errors import InputError
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import Direction, name_by_ends
from planner_models.traffic.problem.readers import sndlib
from planner_models.traffic.problem.readers.sndlib_files import Link, Network
from planner_models.traffic.problem.readers.table_building import MBPS_EXPONENT


def read_sndlib(
    path: Annotated[Path, Field(description="the network file, XML or native")],
    *,
    direction: Annotated[
        Direction | None,
        Field(
            description="undirected (SNDlib's link model U): the traffic of both directions shares a link's "
            "capacity; bidirected (B): each direction has it; directed (D); default: undirected, with a note"
        ),
    ] = None,
    modules_per_link: Annotated[
        Literal["any", "one"] | None,
        Field(
            description="any (SNDlib's capacity model M): any number of each module; one (E): at most one; "
            "default: any, with a note"
        ),
    ] = None,
    setup_costs: Annotated[
        bool, Field(description="whether setup costs count (SNDlib's fixed-charge model Y) or not (N)")
    ] = True,
    unit: sndlib.Unit = "mbps",
) -> CapacityPlanning:
    """Read an SNDlib network, XML or native text (the first character decides).

    Several demands between the same nodes are added up. Hop limits and admissible paths are ignored.

    raises  InputError with every fault of the file's syntax, structure and numbers, and for a unit other than
            the file declares
    """
    path = Path(path)
    network = sndlib.parse(path, unit)
    tables = _read_tables(network, path, unit, direction=direction, setup_costs=setup_costs)
    rules = {"direction": direction, "modules_per_link": modules_per_link}
    specified = {name: [value] for name, value in rules.items() if value is not None}
    if specified:
        tables["network"] = pd.DataFrame(specified)
    if modules_per_link is None:
        add_note(
            f"assumed: {path.name}: a link may have any number of each module (SNDlib's capacity model M); "
            'modules_per_link = "one" allows one in all (E)'
        )
    for name, table in tables.items():
        table.attrs["where"] = f"{path.name}: {name}"
    return CapacityPlanning.from_tables(tables)


def _read_all_modules(network: Network, exponent: int, direction: Direction | None) -> list[dict[str, Any]]:
    """Return the rows of modules of all links."""
    tails, heads = [link.source for link in network.links], [link.target for link in network.links]
    names = name_by_ends(tails, heads, direction or "undirected")
    return [
        row
        for link, name in zip(network.links, names, strict=True)
        for row in _read_modules(network, link, name, exponent)
    ]


def _read_tables(
    network: Network, path: Path, unit: sndlib.Unit, *, direction: Direction | None, setup_costs: bool
) -> dict[str, pd.DataFrame]:
    """Return the tables of nodes, links, modules and demands; InputError with all errors of the file."""
    faults, exponent = network.faults, MBPS_EXPONENT[unit]
    nodes = sndlib.read_nodes(network, "declared")
    node_names = set(nodes["node"])
    for link in network.links:
        sndlib.require_ends(faults, link, node_names)
    for demand in network.demands:
        sndlib.require_ends(faults, demand, node_names)
    links = [_read_link(network, link, exponent, setup_costs=setup_costs) for link in network.links]
    modules = _read_all_modules(network, exponent, direction)
    rates = [sndlib.read_rate(faults, demand, exponent) for demand in network.demands]
    if not modules and not faults.lines:
        faults.add(path.name, ": has no module that could be bought")
    if faults.lines:
        raise InputError(*faults.lines)
    demands = pd.DataFrame(
        {
            "source": [demand.source for demand in network.demands],
            "target": [demand.target for demand in network.demands],
            "rate_mbps": rates,
        }
    )
    return {
        "nodes": nodes,
        "links": pd.DataFrame(links),
        "modules": pd.DataFrame(modules).drop_duplicates(["module", "link"], ignore_index=True),
        "demands": demands.groupby(["source", "target"], sort=False)["rate_mbps"].sum().reset_index(),
    }


def _read_link(network: Network, link: Link, exponent: int, *, setup_costs: bool) -> dict[str, Any]:
    """Return the row of a link in the table `links`."""
    faults, (capacity, cost) = network.faults, link.preinstalled
    return {
        "tail": link.source,
        "head": link.target,
        "capacity_mbps": (
            0.0
            if capacity is None
            else faults.number(link.place, "pre-installed capacity", capacity, exponent=exponent)
        ),
        "installed_cost": 0.0 if cost is None else faults.number(link.place, "pre-installed cost", cost),
        "setup_cost": (sndlib.read_cost(faults, link, "setup", link.setup_cost) if setup_costs else 0.0),
        "routing_cost": sndlib.read_cost(faults, link, "routing", link.routing_cost, exponent),
    }


def _read_modules(network: Network, link: Link, name: str, exponent: int) -> list[dict[str, Any]]:
    """Return the rows of a link in the table `modules`; of two with the same capacity the cheaper."""
    rows = []
    for capacity_text, cost_text in link.modules:
        capacity = network.faults.number(link.place, "module capacity", capacity_text, exponent=exponent)
        cost = 0.0 if cost_text is None else network.faults.number(link.place, "module cost", cost_text)
        if capacity == 0:
            continue
        row = {"module": f"{capacity:g}", "capacity_mbps": capacity, "cost": cost, "link": name}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["capacity_mbps"], row["cost"]))
