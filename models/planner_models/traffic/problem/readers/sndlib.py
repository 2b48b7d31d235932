"""SNDlib networks, as XML and in SNDlib's native text format.

A file has nodes; links with a pre-installed capacity and modules (capacity, cost) that may be added; and
demands with a value in routing units. SNDlib states in a separate model file whether links and demands are
directed: here this is a parameter. Other statements may be missing too, the module of each link and the unit:
then assumptions take their place, and are noted.

Source: S. Orlowski, M. Pióro, A. Tomaszewski, R. Wessäly, "SNDlib 1.0: Survivable network design
library", Networks 55(3), 2010; sndlib.put.poznan.pl (formats).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.notes import add_note
from planner.contract.readings import assume_absent
from planner.errors import InputError
from planner.io.text_files import require_file
from planner_models.traffic.problem.readers import Tables, sndlib_files
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.sndlib_files import Demand, Link, Network, NetworkRows
from planner_models.traffic.problem.readers.table_building import (
    MBPS_EXPONENT,
    RateUnit,
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
from planner_models.traffic.problem.schema import LINKS, MOST_MBPS

DECLARED: Final[dict[str, RateUnit]] = {
    "BITPERSEC": "bps",
    "KBITPERSEC": "kbps",
    "MBITPERSEC": "mbps",
    "GBITPERSEC": "gbps",
}

LinkDirection: TypeAlias = Annotated[
    Literal["bidirected", "directed"],
    Field(description="bidirected: a link of the file is one link each way; directed: from source to target"),
]
GivenLinkDirection: TypeAlias = Annotated[
    Literal["bidirected", "directed"] | None,
    Field(
        description="bidirected: a link of the file is one link each way; directed: from source to target; "
        "default: bidirected, with a note, and refused where every link has its opposite"
    ),
]
GivenDemandDirection: TypeAlias = Annotated[
    Literal["directed", "undirected"] | None,
    Field(
        description="directed: from source to target; undirected: one demand of this rate each way; "
        "default: directed, with a note where no pair has demands both ways"
    ),
]
GivenUnit: TypeAlias = Annotated[
    RateUnit | None, Field(description="unit of the file's capacities and demand values; default: mbps")
]
Unit: TypeAlias = Annotated[RateUnit, Field(description="unit of the file's capacities and demand values")]

ModuleChoice = Annotated[
    Literal["preinstalled", "smallest", "largest"] | None,
    Field(
        description="capacity of a link: preinstalled (also by default): the pre-installed one, else its "
        "smallest module; or its smallest or largest module, else the pre-installed capacity"
    ),
]
Coordinates = Annotated[
    Literal["declared", "geographical", "pixel"],
    Field(
        description="meaning of x and y; declared: as the XML declares, in native text geographical "
        "where all are within the range of degrees"
    ),
]
OtherDemands = Annotated[
    Path | None, Field(description="another SNDlib file whose demands replace those of this one")
]


def read(
    path: Annotated[Path, Field(description="the network file, XML or native")],
    *,
    module: ModuleChoice = None,
    link_direction: GivenLinkDirection = None,
    demand_direction: GivenDemandDirection = None,
    coordinates: Coordinates = "declared",
    unit: GivenUnit = None,
    demands: OtherDemands = None,
) -> Tables:
    """Read the network in an SNDlib file, XML or native text (the first character decides).

    The capacity of a link is that of one module; a capacity of 0 counts as none. Its cost is the routing
    cost, of each Mbit/s on it; where all are 0 there is no column. What modules cost in total is for
    system `capacity`, which reads these files too. A demand's rate is its value times its
    routing unit; several demands between the same nodes are added up.

    Of networks with undirected links and demands (model UNDIRECTED, such as germany50),
    `link_direction = "bidirected"` and `demand_direction = "undirected"` preserve the meaning: the load
    of a link in an undirected plan is the load of both directions here.

    Costs of modules, setup costs, hop limits and admissible paths are ignored. Notes say what is taken of
    what the file does not say.

    raises  InputError with every fault of the file's syntax, structure and numbers; for links
            without any capacity; for a unit other than the file declares; without `link_direction`
            where every link has its opposite
    """
    path = Path(path)
    faults: list[str] = []
    networks = []
    for file in (path,) if demands is None else (path, Path(demands)):
        try:
            networks.append(parse(file, unit or "mbps"))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    network, matrix = networks[0], networks[-1]
    if link_direction is None:
        add_doubled_links(network)
    tables = _tables(
        network,
        matrix,
        module or "preinstalled",
        link_direction or "bidirected",
        demand_direction or "directed",
        coordinates,
        unit or "mbps",
    )
    note_links(network, link_direction=link_direction, module=module, unit=unit)
    note_demands(matrix, demand_direction=demand_direction)
    for note in assume_absent(LINKS, tables["links"].columns, path.name):
        add_note(note)
    return tables


def read_demands(path: Path, *, demand_direction: str, unit: RateUnit) -> pd.DataFrame:
    """Return the demands of a file, one of a series, after the notes on their meaning.

    raises  InputError, as `read`
    """
    network = parse(path, unit)
    return _tables(network, network, "preinstalled", "directed", demand_direction, "declared", unit)[
        "demands"
    ]


def parse(path: Path, unit: RateUnit) -> Network:
    """Return the elements of a file, with the faults of their syntax and of another unit than it declares."""
    require_file(path)
    with path.open("rb") as file:
        start = file.read(1 << 12).lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")
    network = sndlib_files.parse_xml(path) if start.startswith(b"<") else sndlib_files.parse_native(path)
    declared = DECLARED.get((network.unit or "").strip().upper())
    if declared not in (None, unit):
        fault = f": its rates are declared in {shorten(network.unit or '')}; set unit = '{declared}'"
        network.faults.add(path.name, fault)
    return network


def _tables(
    network: Network,
    matrix: Network,
    module: str,
    link_direction: str,
    demand_direction: str,
    coordinate_type: str,
    unit: RateUnit,
) -> Tables:
    faults = network.faults
    if not network.nodes:
        faults.add(faults.file, ": has no nodes")
    nodes = read_nodes(network, coordinate_type)
    ids = set(nodes["node"])
    exponent = MBPS_EXPONENT[unit]
    for link in network.links:
        require_ends(faults, link, ids)
    capacities = [_choose_module(faults, link, module, exponent) for link in network.links]
    routing = [read_cost(faults, link, "routing", link.routing_cost, exponent) for link in network.links]
    for demand in matrix.demands:
        require_ends(matrix.faults, demand, ids)
    rate = to_floats([read_rate(matrix.faults, demand, exponent) for demand in matrix.demands])
    lines = faults.lines + (matrix.faults.lines if matrix is not network else [])
    if lines:
        raise InputError(*lines)
    both_ways = link_direction == "bidirected"
    cost = drop_all_zero(to_floats(routing))
    tail, head = _list_ends(network.links, both_ways)
    source, target = _list_ends(matrix.demands, demand_direction == "undirected")
    copies = 1 + both_ways
    return named_tables(
        faults.file,
        nodes=nodes,
        links=build_table(
            tail=tail,
            head=head,
            capacity_mbps=np.repeat(to_floats(capacities), copies),
            cost=None if cost is None else np.repeat(cost, copies),
        ),
        demands=sum_duplicates(
            build_table(
                source=source,
                target=target,
                rate_mbps=np.repeat(rate, 1 + (demand_direction == "undirected")),
            )
        ),
    )


def read_nodes(network: Network, coordinate_type: str) -> pd.DataFrame:
    """Return the table of nodes, with their places where the file has degrees."""
    faults = network.faults
    seen: set[str] = set()
    x, y = [], []
    for location, id_, x_text, y_text in network.nodes:
        if id_ in seen:
            faults.add(location, f": node '{shorten(id_)}' is there already", rule="a node is there already")
        seen.add(id_)
        neither = x_text is None and y_text is None
        x.append(math.nan if neither else faults.number(location, "x", x_text))
        y.append(math.nan if neither else faults.number(location, "y", y_text))
    stated = {"declared": network.geographical, "geographical": True, "pixel": False}[coordinate_type]
    position = position_columns(to_floats(x), to_floats(y), geographical=stated, faults=faults)
    return build_table(node=[id_ for _, id_, _, _ in network.nodes], **position)


def require_ends(faults: FileErrors, item: Link | Demand, ids: set[str]) -> None:
    """Record a fault for each end of a link or a demand that is no node."""
    for end, id_ in (("source", item.source), ("target", item.target)):
        if id_ not in ids:
            fault = f": {end} is '{shorten(id_)}', must be a node"
            faults.add(item.place, fault, rule=f"{end} must be a node", near=(id_, ids))


def _choose_module(faults: FileErrors, link: Link, module: str, exponent: int) -> float:
    """Return the capacity of the module that the link gets, Mbit/s."""
    capacity, cost = link.preinstalled
    installed = (
        [] if capacity is None else [_module(faults, link.place, "pre-installed", capacity, cost, exponent)]
    )
    added = [_module(faults, link.place, "module", *texts, exponent) for texts in link.modules]
    # NaN stays a candidate: its fault is recorded already
    installed, added = ([item for item in kind if item[0] != 0] for kind in (installed, added))
    candidates = (installed or added) if module == "preinstalled" else (added or installed)
    if not candidates:
        faults.add(
            link.place,
            ": has neither a pre-installed capacity nor a module with one",
            rule="a link has neither a pre-installed capacity nor a module with one",
        )
        return math.nan
    return (max if module == "largest" else min)(candidates)[0]


def _module(
    faults: FileErrors, location: str, kind: str, capacity: str | None, cost: str | None, exponent: int
) -> tuple[float, float]:
    return (
        faults.number(location, f"{kind} capacity", capacity, exponent=exponent, largest=MOST_MBPS),
        0.0 if cost is None else faults.number(location, f"{kind} cost", cost),
    )


def read_cost(faults: FileErrors, link: Link, kind: str, text: str | None, exponent: int = 0) -> float:
    """Return the routing or setup cost of a link; 0 where it has none.

    exponent  of the unit of rates, for a cost per unit of rate
    """
    return 0.0 if text is None else faults.number(link.place, f"{kind} cost", text, exponent=-exponent)


def read_rate(faults: FileErrors, demand: Demand, exponent: int) -> float:
    """Return the rate of a demand, Mbit/s."""
    unit = "1" if demand.routing_unit is None else demand.routing_unit
    value = faults.number(demand.place, "demand value", demand.value, exponent=exponent)
    return value * faults.number(demand.place, "routing unit", unit)


def _list_ends(items: Sequence[Link | Demand], both_ways: bool) -> tuple[list[str], list[str]]:
    """Return the source and the target of each item; with `both_ways` each is followed by its reverse."""
    first = [end for item in items for end in ((item.source, item.target) if both_ways else (item.source,))]
    last = [end for item in items for end in ((item.target, item.source) if both_ways else (item.target,))]
    return first, last


def write(
    tables: Tables,
    path: Path,
    *,
    syntax: Annotated[
        Literal["xml", "native"] | None,
        Field(description="default: xml where the file's name ends in .xml, else native"),
    ] = None,
    link_direction: LinkDirection = "bidirected",
    unit: Unit = "mbps",
) -> None:
    """Write an SNDlib network: pre-installed capacities, routing costs, demands from source to target.

    With `link_direction` "bidirected" two opposite links of the same capacity and cost become one.
    Read the file back with the same `link_direction`. The format has no fields for weights and
    latencies. Nodes without positions are written at (0, 0).

    raises  InputError for links and demands that end at no node, for links without such an opposite
            ("bidirected"), and for characters that XML cannot represent
    """
    require_endpoints(tables)
    path = Path(path)
    links = tables["links"]
    cost = optional_column(links, "cost", 0.0)
    rows = range(len(links)) if link_direction == "directed" else _pair_opposites(links, cost)
    exponent = -MBPS_EXPONENT[unit]
    ends = list(zip(links["tail"], links["head"], strict=True))
    capacity = [format_decimal(value, exponent=exponent) for value in links["capacity_mbps"]]
    price = [format_decimal(value, exponent=-exponent) for value in cost]
    written = [(*ends[row], capacity[row], price[row]) for row in rows]
    rates = [format_decimal(rate, exponent=exponent) for rate in tables["demands"]["rate_mbps"]]
    demands = list(zip(tables["demands"]["source"], tables["demands"]["target"], rates, strict=True))
    as_xml = path.suffix == ".xml" if syntax is None else syntax == "xml"
    lines = (sndlib_files.format_xml if as_xml else sndlib_files.format_native)(
        NetworkRows(tables["nodes"], written, demands)
    )
    write_text("\n".join([*lines, ""]), path)


def _pair_opposites(links: pd.DataFrame, cost: Floats) -> list[int]:
    """Return one row of each pair of opposite links with the same capacity and cost."""
    rows = zip(links["tail"], links["head"], links["capacity_mbps"], cost, strict=True)
    waiting: dict[tuple[str, str, float, float], list[int]] = {}
    pairs = []
    for row, (tail, head, capacity, price) in enumerate(rows):
        if waiting.get((head, tail, capacity, price)):
            pairs.append(waiting[head, tail, capacity, price].pop(0))
        else:
            waiting.setdefault((tail, head, capacity, price), []).append(row)
    alone = sorted((row, key) for key, unmatched in waiting.items() for row in unmatched)
    if alone:
        raise InputError(
            *(
                f"links row {row + 1}: '{tail}' to '{head}' has no opposite of the same capacity and cost; "
                "set link_direction = 'directed'"
                for row, (tail, head, _, _) in alone[:5]
            ),
            *([f"links: {len(alone) - 5} more without an opposite"] if len(alone) > 5 else []),
        )
    return sorted(pairs)


def add_doubled_links(network: Network) -> None:
    """Add a fault where every link has its opposite: read as links both ways, each line would count twice."""
    count = Counter((link.source, link.target) for link in network.links)
    if not count or any(count[ends] != count[ends[::-1]] for ends in count):
        return
    first = network.links[0]
    other = next(link for link in network.links if _is_opposite(link, first))
    faults = network.faults
    names = []
    for link in (first, other):
        location = link.place.removeprefix(faults.file).lstrip(": ")
        names.append(f"{location} ({shorten(link.source)} to {shorten(link.target)})")
    faults.add(
        faults.file,
        f": every link has its opposite, such as {' and '.join(names)}: set link_direction: "
        '"directed" if each is one direction of a line, "bidirected" if each is a line of its own that goes '
        "both ways",
    )


def _is_opposite(link: Link, other: Link) -> bool:
    return (link.source, link.target) == (other.target, other.source)


def note_links(network: Network, *, link_direction: str | None, module: str | None, unit: str | None) -> None:
    """Add a note on the assumptions about links and rates; the arguments are the user's, None: not stated."""
    file = network.faults.file
    if link_direction is None:
        add_note(
            f'assumed: {file}: each link is one link each way (link_direction = "bidirected"), as SNDlib '
            "files do not say it"
        )
    if module is None and any(_has_choice(link) for link in network.links):
        add_note(
            f"assumed: {file}: a link has its pre-installed capacity, else that of its smallest module "
            '(module = "preinstalled")'
        )
    if unit is None and not network.unit:
        add_note(f"assumed: {file}: rates are in Mbit/s, as the file names no unit; unit sets another one")


def note_demands(network: Network, *, demand_direction: str | None) -> None:
    """Add a note on the direction of demands, unless it is said or some pair has demands both ways."""
    pairs = {(demand.source, demand.target) for demand in network.demands}
    if demand_direction is None and not any(pair[::-1] in pairs for pair in pairs):
        add_note(
            f"assumed: {network.faults.file}: demands go from source to target only, and no pair has one "
            'each way; demand_direction = "undirected" adds the way back'
        )


def _has_choice(link: Link) -> bool:
    """Return whether a link has several capacities, of which one is taken; those of 0 are none."""
    capacities = [link.preinstalled[0], *(capacity for capacity, _ in link.modules)]
    return len([text for text in capacities if text is not None and text.strip("0. ")]) > 1
