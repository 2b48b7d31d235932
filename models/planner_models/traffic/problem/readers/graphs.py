"""Graphs in files of other tools: GML, GEXF, node-link JSON of networkx, DOT of Graphviz, containerlab.

Each format has a parser of its own; attributes mean what they mean in GraphML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner.io.text_files import read_text, require_file
from planner_models.traffic.problem.readers import Tables
from planner_models.traffic.problem.readers.containerlab import parse_containerlab
from planner_models.traffic.problem.readers.demand_matrix import read_matrix
from planner_models.traffic.problem.readers.dot import parse_dot
from planner_models.traffic.problem.readers.file_errors import FileErrors
from planner_models.traffic.problem.readers.gexf import parse_gexf
from planner_models.traffic.problem.readers.gml import parse_gml
from planner_models.traffic.problem.readers.graph_content import GraphContent, build_network
from planner_models.traffic.problem.readers.graphml import (
    DemandFile,
    EdgeSettings,
    GravityTotal,
)
from planner_models.traffic.problem.readers.node_link import parse_node_link
from planner_models.traffic.problem.readers.table_building import (
    MBPS_EXPONENT,
    Pairs,
    RateUnit,
    Seed,
    build_table,
    draw_demands,
    name_ends,
    named_tables,
    read_demands,
)

MAX_BYTES: Final = 1 << 26
PARSERS: Final[Mapping[str, Callable[[str, str], GraphContent]]] = {
    ".gml": parse_gml,
    ".json": parse_node_link,
    ".dot": parse_dot,
    ".gv": parse_dot,
    ".yml": parse_containerlab,
    ".yaml": parse_containerlab,
}
"""Parser of each format of text, by the ending of the file's name."""
XML_PARSERS: Final[Mapping[str, Callable[[Path], GraphContent]]] = {".gexf": parse_gexf}
"""Parser of each format of XML, which says its own encoding."""
ENDINGS: Final = (*PARSERS, *XML_PARSERS)
MatrixFile = Annotated[
    Path | None,
    Field(
        description="instead of a table: text or NumPy file with a square of rates in the order of the "
        "nodes, or with one for each step"
    ),
]
MatrixUnit = Annotated[RateUnit | None, Field(description="unit of the matrix; default: mbps, which is said")]
Step = Annotated[
    int | None, Field(ge=0, le=10**6, description="which of the matrices, from 0; default: the largest")
]
LabelAttribute = Annotated[
    str | None, Field(description="node attribute with the name; default: label in GML, else the id")
]


@spread(edges=EdgeSettings())
def read(
    path: Annotated[
        Path, Field(description="the file: .gml, .gexf, .json (node-link), .dot, .gv, .yml (containerlab)")
    ],
    *,
    demands: DemandFile = None,
    matrix: MatrixFile = None,
    matrix_unit: MatrixUnit = None,
    step: Step = None,
    total_mbps: GravityTotal = None,
    pairs: Pairs = None,
    seed: Seed = 0,
    edges: EdgeSettings,
    label: LabelAttribute = None,
) -> Tables:
    """Read the graph of a file; demands from a table or a matrix, or drawn by gravity from `seed`.

    An undirected edge becomes two links, a directed edge one; parallel edges are kept. Attributes are read
    as in GraphML; a capacity may have its unit, as `10G`.

    raises  InputError with every fault of structure and numbers, and the first one of syntax
    """
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        endings = ", ".join(ENDINGS)
        raise InputError(f"{path.name}: must end in one of {endings}" + did_you_mean(path.suffix, ENDINGS))
    _require_one_source(path.name, {"demands": demands, "matrix": matrix, "total_mbps": total_mbps})
    content = _parse(path)
    if label is not None:
        content.label = label
    faults = FileErrors(path.name)
    if label is not None and not any(label in node.attributes for node in content.nodes):
        attributes = {name for node in content.nodes for name in node.attributes}
        faults.add(faults.file, f": no node has the attribute '{label}'", near=(label, attributes))
    nodes, links, tail, head = build_network(content, edges, faults)
    demand_table = read_demands(demands, faults)
    name_ends(nodes, links, tail, head)
    if matrix is not None:
        demand_table = _demands_of_matrix(Path(matrix), nodes, matrix_unit, step)
    elif demand_table is None:
        demand_table = draw_demands(nodes, tail, head, total_mbps=total_mbps, pairs=pairs, seed=seed)
    return named_tables(path.name, nodes=nodes, links=links, demands=demand_table)


def _parse(path: Path) -> GraphContent:
    """Return the graph of a file of a known ending."""
    ending = path.suffix.lower()
    if ending in XML_PARSERS:
        return XML_PARSERS[ending](path)
    require_file(path)
    if path.stat().st_size > MAX_BYTES:
        size = f"{path.stat().st_size >> 20:,} MiB"
        raise InputError(f"{path.name}: has {size}, must have at most {MAX_BYTES >> 20:,} as a graph")
    return PARSERS[ending](read_text(path, max_line_bytes=MAX_BYTES), path.name)


def _require_one_source(file: str, given: Mapping[str, object]) -> None:
    """Raise InputError unless demands come from one place."""
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise InputError(
            f"{file}: the graph holds no demands; set demands to a table of source, target, rate_mbps, "
            "matrix to a file with a square of rates, or total_mbps to draw them by gravity"
        )
    if len(names) > 1:
        raise InputError(f"{file}: {' and '.join(names)} are set; set one of them")


def _demands_of_matrix(
    path: Path, nodes: pd.DataFrame, unit: RateUnit | None, step: int | None
) -> pd.DataFrame:
    """Return the entries of a matrix that are not 0 as demands; those of a node to itself are left out."""
    rates = read_matrix(path, len(nodes), step)
    own = float(np.trace(rates))
    if own > 0:
        add_note(f"{path.name}: left out {own:,.6g} of traffic from nodes to themselves")
    np.fill_diagonal(rates, 0.0)
    if unit is None:
        add_note(f"assumed: {path.name}: rates are in Mbit/s; matrix_unit sets another unit")
    add_note(
        f"assumed: {path.name}: rows are sources and columns targets, in the order of the nodes of the graph"
    )
    source, target = np.nonzero(rates)
    names = nodes["node"].array
    rate_mbps = rates[source, target] * 10.0 ** MBPS_EXPONENT[unit or "mbps"]
    table = build_table(source=names[source], target=names[target], rate_mbps=rate_mbps)
    table.attrs["where"] = path.name
    return table
