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
with a capacity of its own, and several may join the same nodes. The second line of each part is for
human eyes.

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
from planner.text_files import read_text
from planner_models.traffic.readers import Tables, labels
from planner_models.traffic.readers.faults import Faults, shortened
from planner_models.traffic.readers.frames import floats, frame, known, named_tables, position_columns, summed
from planner_models.traffic.readers.writing import decimal, optional, require_endpoints, save

KBPS: Final = 3  # 1 Mbit/s is 10**3 kbit/s
MICROSECONDS: Final = 3  # 1 ms is 10**3 microseconds
HEADERS: Final = {
    "NODES": "label x y",
    "EDGES": "label src dest weight bw delay",
    "DEMANDS": "label src dest bw",
}


def read(
    path: Path,
    *,
    demands: Annotated[
        Path | None,
        Field(description="default: the file beside the graph, of its name, with .demands or .0000.demands"),
    ] = None,
) -> Tables:
    """A `.graph` file and its `.demands` file.

    Positions within the range of degrees are longitude (x) and latitude (y); delays that are all 0
    are taken as unknown. Labels that occur twice have the node's number behind them; several
    demands between the same nodes are one, of their total.

    raises  InputError with every fault of both files' syntax and structure
    """
    path = Path(path)
    graph, faults = _graph(path)
    found: list[tuple[int, int, float]] = []
    if graph.count is not None or demands is not None:  # beside a graph that is none, nothing is missed
        try:
            found = _demands(_demands_path(path, demands), graph.count)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    label = labels.unique(graph.names, [str(number) for number in range(len(graph.names))])
    position = position_columns(floats(graph.x), floats(graph.y), geographical=None, faults=Faults(path.name))
    latency_ms = known(floats([edge[4] for edge in graph.edges]))
    return named_tables(
        path.name,
        nodes=frame(node=label, **position),
        links=frame(
            tail=[label[edge[0]] for edge in graph.edges],
            head=[label[edge[1]] for edge in graph.edges],
            capacity_mbps=floats([edge[3] for edge in graph.edges]),
            weight=floats([edge[2] for edge in graph.edges]),
            latency_ms=latency_ms,
        ),
        demands=summed(
            frame(
                source=[label[source] for source, _, _ in found],
                target=[label[target] for _, target, _ in found],
                rate_mbps=floats([rate for _, _, rate in found]),
            )
        ),
    )


@dataclass
class _Graph:
    count: int | None = None  # of nodes; None where even that cannot be told
    names: list[str] = field(default_factory=list)
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    # tail, head, weight, capacity (Mbit/s), delay (ms)
    edges: list[tuple[int, int, float, float, float]] = field(default_factory=list)


def _graph(path: Path) -> tuple[_Graph, list[str]]:
    """The graph as far as it can be read, and its faults."""
    faults, graph = Faults(path.name), _Graph()
    try:
        parts = _parts(path, ("NODES", "EDGES"), faults)
    except InputError as error:
        return graph, [*faults.lines, *error.faults]
    for place, (name, x, y) in _rows(parts["NODES"], 3, faults):
        graph.names.append(labels.decoded(name))
        graph.x.append(_position(faults, place, "x", x))
        graph.y.append(_position(faults, place, "y", y))
    graph.count = len(parts["NODES"])
    for place, (_, source, target, weight, bandwidth, delay) in _rows(parts["EDGES"], 6, faults):
        graph.edges.append(
            (
                _index(faults, place, "src", source, graph.count),
                _index(faults, place, "dest", target, graph.count),
                faults.number(place, "weight", weight),
                faults.number(place, "bw", bandwidth, exponent=-KBPS),
                faults.number(place, "delay", delay, exponent=-MICROSECONDS),
            )
        )
    return graph, faults.lines


def _demands(path: Path, nodes: int | None) -> list[tuple[int, int, float]]:
    faults = Faults(path.name)
    parts = _parts(path, ("DEMANDS",), faults)
    demands = [
        (
            _index(faults, place, "src", source, nodes),
            _index(faults, place, "dest", target, nodes),
            faults.number(place, "bw", bandwidth, exponent=-KBPS),
        )
        for place, (_, source, target, bandwidth) in _rows(parts["DEMANDS"], 4, faults)
    ]
    faults.refuse()
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


def _parts(path: Path, titles: Sequence[str], faults: Faults) -> dict[str, list[tuple[str, str]]]:
    """The rows under each title with their places; InputError where a title is missing."""
    lines = [
        (f"{path.name} line {number}", line.strip())
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]
    parts: dict[str, list[tuple[str, str]]] = {}
    for place, line in lines:
        word, *rest = line.split()
        # a node may be called EDGES; its line has more behind the word
        if word in titles and word not in parts and len(rest) <= 1:
            rows = parts[word] = [(place, "".join(rest))]
        elif not parts:
            raise InputError(f"{place}: is '{shortened(line)}', must be '{titles[0]} <number>'")
        else:
            rows.append((place, line))
    missing = [title for title in titles if title not in parts]
    if missing:
        lacks = "must go on" if parts else "is empty, must begin"
        raise InputError(f"{path.name}: {lacks} with a line '{missing[0]} <number>'")
    return {title: _body(title, rows, faults) for title, rows in parts.items()}


def _body(title: str, rows: list[tuple[str, str]], faults: Faults) -> list[tuple[str, str]]:
    """The rows below title and header, their number held to the one in the title."""
    (place, stated), *body = rows
    header = HEADERS[title]
    if not body:
        faults.add(place, f": must be followed by a line '{header}'")
    body = body[1:]
    if stated and not stated.isdecimal():
        faults.add(place, f": number of {title} is '{shortened(stated)}', must be a whole number")
    elif stated and stated.lstrip("0") != str(len(body)).lstrip("0"):
        faults.add(place, f": says {shortened(stated)} {title}, but {len(body)} lines follow")
    return body


def _rows(rows: Sequence[tuple[str, str]], fields: int, faults: Faults) -> Iterator[tuple[str, list[str]]]:
    """Each row split into `fields`; a first field, the label, may hold blanks."""
    for place, line in rows:
        values = line.rsplit(maxsplit=fields - 1)
        if len(values) == fields:
            yield place, values
        else:
            rule = f"must have {fields} fields"
            faults.add(place, f": has {len(values)} fields, {rule}", rule=f"a line {rule}")


def _position(faults: Faults, place: str, axis: str, text: str) -> float:
    return math.nan if text.lower() == "nan" else faults.number(place, axis, text)


def _index(faults: Faults, place: str, end: str, text: str, nodes: int | None) -> int:
    if text.isdecimal() and len(text) < 10 and (nodes is None or int(text) < nodes):
        return int(text)
    rule = f"must be the number of a node, 0 to {nodes - 1}" if nodes else "must be the number of a node"
    faults.add(place, f": {end} is '{shortened(text)}', {rule}", rule=f"{end} {rule}")
    return 0


def write(
    tables: Tables,
    path: Path,
    *,
    demands: Annotated[
        Path | None, Field(description="the .demands file; default: beside the graph, of its name")
    ] = None,
) -> None:
    """Write a `.graph` file and its `.demands` file.

    The format has no place for costs. What the tables leave out is written as weight 1, delay 0
    and position 0 0. Blanks in labels are written as in a URL.

    raises  InputError for links and demands that end at no node
    """
    require_endpoints(tables)
    path = Path(path)
    nodes, links, flows = tables["nodes"], tables["links"], tables["demands"]
    number = {label: row for row, label in enumerate(nodes["node"])}
    lines = [f"NODES {len(nodes)}", HEADERS["NODES"]]
    x, y = (_degrees(nodes, column) for column in ("longitude", "latitude"))
    lines += [" ".join(row) for row in zip(map(labels.encoded, nodes["node"]), x, y, strict=True)]
    lines += ["", f"EDGES {len(links)}", HEADERS["EDGES"]]
    columns = zip(
        links["tail"],
        links["head"],
        optional(links, "weight", 1.0),
        links["capacity_mbps"],
        optional(links, "latency_ms", 0.0),
        strict=True,
    )
    for row, (tail, head, weight, capacity, latency) in enumerate(columns):
        bandwidth, delay = decimal(capacity, exponent=KBPS), decimal(latency, exponent=MICROSECONDS)
        lines.append(f"edge_{row} {number[tail]} {number[head]} {decimal(weight)} {bandwidth} {delay}")
    save("\n".join([*lines, ""]), path)
    lines = [f"DEMANDS {len(flows)}", HEADERS["DEMANDS"]]
    for row, (source, target, rate) in enumerate(
        zip(flows["source"], flows["target"], flows["rate_mbps"], strict=True)
    ):
        lines.append(f"demand_{row} {number[source]} {number[target]} {decimal(rate, exponent=KBPS)}")
    save("\n".join([*lines, ""]), path.with_suffix(".demands") if demands is None else Path(demands))


def _degrees(nodes: pd.DataFrame, column: str) -> list[str]:
    if column not in nodes:
        return ["0"] * len(nodes)
    return [decimal(value) for value in nodes[column]]
