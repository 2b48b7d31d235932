"""The text format of the REPETITA collection: a `.graph` file, and `.demands` files beside it.

```
NODES 2                             DEMANDS 1
label x y                           label src dest bw
0_Rome 12.48 41.89                  demand_0 0 1 435117
1_Oslo 10.75 59.91

EDGES 1
label src dest weight bw delay
edge_0 0 1 1 1000000 678
```
Nodes are numbered from 0; bandwidth is in kbit/s, delay in microseconds. Edges are directed, each
with its own capacity, and several may connect the same nodes. The second line of each part is a header
that carries no data.

Source: S. Gay, P. Schaus, S. Vissicchio, "REPETITA: Repeatable experiments for performance
evaluation of traffic-engineering algorithms", arXiv:1710.08665, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.io.text_files import read_text
from planner_models.traffic.problem.readers import Tables, table_building
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.table_building import (
    build_table,
    drop_all_zero,
    format_decimal,
    named_tables,
    optional_column,
    position_columns,
    require_endpoints,
    sum_duplicates,
    to_floats,
    write_text,
)
from planner_models.traffic.problem.schema import MOST_MBPS

KBPS: Final = 3  # 1 Mbit/s is 10**3 kbit/s
MICROSECONDS: Final = 3  # 1 ms is 10**3 microseconds
HEADERS: Final = {
    "NODES": "label x y",
    "EDGES": "label src dest weight bw delay",
    "DEMANDS": "label src dest bw",
}


def read(
    path: Annotated[Path, Field(description="the .graph file")],
    *,
    demands: Annotated[
        Path | None, Field(description="default: the file of the graph's name with .demands or .0000.demands")
    ] = None,
) -> Tables:
    """Read a `.graph` file and its `.demands` file.

    Positions within the range of degrees are longitude (x) and latitude (y); delays that are all 0
    are unknown. Labels that occur twice are followed by the node's number; several demands between
    the same nodes are added up.

    raises  InputError with every fault of both files' syntax and structure
    """
    path = Path(path)
    graph, faults = _graph(path)
    demands_read: list[tuple[int, int, float]] = []
    if graph.count is not None or demands is not None:  # else the graph cannot be read at all
        try:
            demands_read = _demands(_demands_path(path, demands), graph.count)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    label = table_building.make_unique(graph.names, [str(number) for number in range(len(graph.names))])
    position = position_columns(
        to_floats(graph.x), to_floats(graph.y), geographical=None, faults=FileErrors(path.name)
    )
    tail, head, weight, capacity, latency = zip(*graph.edges, strict=True) if graph.edges else [()] * 5
    return named_tables(
        path.name,
        nodes=build_table(node=label, **position),
        links=build_table(
            tail=[label[node] for node in tail],
            head=[label[node] for node in head],
            capacity_mbps=to_floats(capacity),
            weight=to_floats(weight),
            latency_ms=drop_all_zero(to_floats(latency)),
        ),
        demands=sum_duplicates(
            build_table(
                source=[label[source] for source, _, _ in demands_read],
                target=[label[target] for _, target, _ in demands_read],
                rate_mbps=to_floats([rate for _, _, rate in demands_read]),
            )
        ),
    )


@dataclass
class _Graph:
    """Content of a `.graph` file."""

    count: int | None = None  # of nodes; None where it is unknown
    names: list[str] = field(default_factory=list)
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    # tail, head, weight, capacity (Mbit/s), delay (ms)
    edges: list[tuple[int, int, float, float, float]] = field(default_factory=list)


def _graph(path: Path) -> tuple[_Graph, list[str]]:
    """Return the graph as far as it can be read, and its faults."""
    faults, graph = FileErrors(path.name), _Graph()
    try:
        parts = _parts(path, ("NODES", "EDGES"), faults)
    except InputError as error:
        return graph, [*faults.lines, *error.faults]
    for location, (name, x, y) in _rows(parts["NODES"], 3, faults):
        graph.names.append(table_building.decode(name))
        graph.x.append(_position(faults, location, "x", x))
        graph.y.append(_position(faults, location, "y", y))
    graph.count = len(parts["NODES"])
    for location, (_, source, target, weight, bandwidth, delay) in _rows(parts["EDGES"], 6, faults):
        graph.edges.append(
            (
                _index(faults, location, "src", source, graph.count),
                _index(faults, location, "dest", target, graph.count),
                faults.number(location, "weight", weight),
                faults.number(location, "bw", bandwidth, exponent=-KBPS, largest=MOST_MBPS),
                faults.number(location, "delay", delay, exponent=-MICROSECONDS),
            )
        )
    return graph, faults.lines


def _demands(path: Path, nodes: int | None) -> list[tuple[int, int, float]]:
    faults = FileErrors(path.name)
    parts = _parts(path, ("DEMANDS",), faults)
    demands = [
        (
            _index(faults, location, "src", source, nodes),
            _index(faults, location, "dest", target, nodes),
            faults.number(location, "bw", bandwidth, exponent=-KBPS),
        )
        for location, (_, source, target, bandwidth) in _rows(parts["DEMANDS"], 4, faults)
    ]
    faults.raise_if_any()
    return demands


def _demands_path(path: Path, demands: Path | None) -> Path:
    if demands is not None:
        return Path(demands)
    beside = [path.with_suffix(".demands"), path.with_suffix(".0000.demands")]
    for candidate in beside:
        if candidate.is_file():
            return candidate
    names = " nor ".join(candidate.name for candidate in beside)
    raise InputError(f"{path.name}: has no {names} beside it; set demands to a file")


def _list_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file that are not blank, with their places."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield f"{path.name} line {number}", line.strip()


def _parts(path: Path, titles: Sequence[str], faults: FileErrors) -> dict[str, list[tuple[str, str]]]:
    """Return the rows under each title with their places; InputError where a title is missing."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for location, line in _list_lines(path):
        word, *remaining_words = line.split()
        # a node may be called EDGES; then more words follow
        if word in titles and word not in parts and len(remaining_words) <= 1:
            rows = parts[word] = [(location, "".join(remaining_words))]
        elif not parts:
            raise InputError(f"{location}: is '{shorten(line)}', must be '{titles[0]} <number>'")
        else:
            rows.append((location, line))
    missing = [title for title in titles if title not in parts]
    if missing:
        lacks = "must go on" if parts else "is empty, must begin"
        raise InputError(f"{path.name}: {lacks} with a line '{missing[0]} <number>'")
    return {title: _body(title, rows, faults) for title, rows in parts.items()}


def _body(title: str, rows: list[tuple[str, str]], faults: FileErrors) -> list[tuple[str, str]]:
    """Return the rows below title and header; add a fault where their number is not that of the title."""
    (location, stated), *body = rows
    header = HEADERS[title]
    if not body:
        faults.add(location, f": must be followed by a line '{header}'")
    body = body[1:]
    if stated and not stated.isdecimal():
        faults.add(location, f": number of {title} is '{shorten(stated)}', must be a whole number")
    elif stated and stated.lstrip("0") != str(len(body)).lstrip("0"):
        faults.add(location, f": says {shorten(stated)} {title}, but {len(body)} lines follow")
    return body


def _rows(
    rows: Sequence[tuple[str, str]], fields: int, faults: FileErrors
) -> Iterator[tuple[str, list[str]]]:
    """Yield each row split into `fields`; the first field, a label, may contain blanks."""
    for location, line in rows:
        values = line.rsplit(maxsplit=fields - 1)
        if len(values) == fields:
            yield location, values
        else:
            rule = f"must have {fields} fields"
            faults.add(location, f": has {len(values)} fields, {rule}", rule=f"a line {rule}")


def _position(faults: FileErrors, location: str, axis: str, text: str) -> float:
    return math.nan if text.lower() == "nan" else faults.number(location, axis, text)


def _index(faults: FileErrors, location: str, end: str, text: str, nodes: int | None) -> int:
    if text.isdecimal() and len(text) < 10 and (nodes is None or int(text) < nodes):
        return int(text)
    rule = f"must be the number of a node, 0 to {nodes - 1}" if nodes else "must be the number of a node"
    faults.add(location, f": {end} is '{shorten(text)}', {rule}", rule=f"{end} {rule}")
    return 0


def write(
    tables: Tables,
    path: Path,
    *,
    demands: Annotated[
        Path | None, Field(description="the .demands file; default: the graph's name with .demands")
    ] = None,
) -> None:
    """Write a `.graph` file and its `.demands` file.

    The format has no field for costs. Absent columns are written as weight 1, delay 0 and position
    0 0. Blanks in labels are encoded as in a URL.

    raises  InputError for links and demands that end at no node
    """
    require_endpoints(tables)
    path = Path(path)
    nodes, links, flows = tables["nodes"], tables["links"], tables["demands"]
    number = {label: row for row, label in enumerate(nodes["node"])}
    lines = [f"NODES {len(nodes)}", HEADERS["NODES"]]
    x, y = (_degrees(nodes, column) for column in ("longitude", "latitude"))
    lines += [" ".join(row) for row in zip(map(table_building.encode, nodes["node"]), x, y, strict=True)]
    lines += ["", f"EDGES {len(links)}", HEADERS["EDGES"]]
    columns = zip(
        links["tail"],
        links["head"],
        optional_column(links, "weight", 1.0),
        links["capacity_mbps"],
        optional_column(links, "latency_ms", 0.0),
        strict=True,
    )
    for row, (tail, head, weight, capacity, latency) in enumerate(columns):
        bandwidth, delay = (
            format_decimal(capacity, exponent=KBPS),
            format_decimal(latency, exponent=MICROSECONDS),
        )
        lines.append(f"edge_{row} {number[tail]} {number[head]} {format_decimal(weight)} {bandwidth} {delay}")
    write_text("\n".join([*lines, ""]), path)
    lines = [f"DEMANDS {len(flows)}", HEADERS["DEMANDS"]]
    for row, (source, target, rate) in enumerate(
        zip(flows["source"], flows["target"], flows["rate_mbps"], strict=True)
    ):
        lines.append(f"demand_{row} {number[source]} {number[target]} {format_decimal(rate, exponent=KBPS)}")
    write_text("\n".join([*lines, ""]), path.with_suffix(".demands") if demands is None else Path(demands))


def _degrees(nodes: pd.DataFrame, column: str) -> list[str]:
    if column not in nodes:
        return ["0"] * len(nodes)
    return [format_decimal(value) for value in nodes[column]]
