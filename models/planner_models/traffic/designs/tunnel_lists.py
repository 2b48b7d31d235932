"""Plans in lists of tunnels: tables, and the lists of label-switched paths that routers print.

A list says which paths the tunnels of a network take now. The demands between the ends of tunnels are shared
among them in proportion to their bandwidths, as routers share traffic among tunnels of unequal bandwidth, and
equally where a tunnel reserves none; demands without a tunnel follow the shortest paths.

Forms: a table with a path in each row; the text of `show mpls lsp extensive` (Junos) and of `show mpls
traffic-eng tunnels` (IOS, IOS XE). Their hops must be names of nodes; tunnels that are down are left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from planner.contract.notes import add_note
from planner.contract.table import Table, label, number
from planner.errors import InputError
from planner.formatting import counted
from planner.io.recognition import list_sheets, match_sheet
from planner.io.table_files import read_table
from planner.io.text_files import read_text
from planner_models.networks.node_lists import parse_nodes
from planner_models.traffic.designs import tunnels
from planner_models.traffic.problem.problem import Traffic

LIST: Final = Table(
    name="tunnels",
    about="a tunnel with its path now",
    columns={
        "source": label(
            "node where it starts; blank: as its path",
            optional=True,
            may_be_blank=True,
            other_names=("ingress", "head end", "head", "headend", "from", "from node", "ingress router"),
        ),
        "target": label(
            "node where it ends; blank: as its path",
            optional=True,
            may_be_blank=True,
            other_names=("egress", "tail end", "tail", "tailend", "to", "to node", "destination"),
        ),
        "path": label(
            "its nodes in order",
            other_names=("ero", "explicit route", "hops", "path hops", "route", "active path", "rro"),
        ),
        "rate_mbps": number("its bandwidth", at_least=0, optional=True, may_be_blank=True),
        "name": label(
            "its name",
            optional=True,
            may_be_blank=True,
            other_names=("tunnel", "tunnel name", "lsp", "lsp name", "policy"),
        ),
    },
)  # fmt: skip
"""Table of a list of tunnels, by the names of columns in routers and controllers."""
SEPARATORS: Final = ("->", "→", ">", "|", ";", ",", " - ", "-", None)
"""What stands between the nodes of a path; None: white space."""
TEXTS: Final = (".txt", ".log", ".out", "")
"""Endings of files of what a router prints."""
MAX_LINE_BYTES: Final = 100_000
MAX_BYTES: Final = 64 << 20
MAX_ABOVE: Final = 1_000
"""Letters above a tunnel's first line in which the name of its end is."""


class _Tunnel(NamedTuple):
    """A tunnel as it is listed; `hops` may leave out its ends."""

    name: str
    source: str
    target: str
    hops: str
    bandwidth_mbps: float


def read_plan_file(problem: Traffic, path: Path) -> Mapping[str, pd.DataFrame] | None:
    """Return the tables of the plan of a list of tunnels; None for a file that is none.

    raises  InputError for tunnels with unknown nodes or without links between them
    """
    listed = _read_listed(path)
    if listed is None:
        return None
    names = frozenset(problem.nodes["node"])
    frame = pd.DataFrame(
        {
            "path": [_find_path(tunnel, names) for tunnel in listed],
            "weight": _weigh(listed),
            "name": [tunnel.name for tunnel in listed],
        }
    )
    frame.attrs["where"] = path.name
    tunnels_of_plan = tunnels.route(replace(problem, tunnels=frame)).plan
    assert tunnels_of_plan is not None
    add_note(f"{path.name}: {counted(len(listed), 'tunnels')}; demands without one follow shortest paths")
    tables = tunnels_of_plan.to_tables()
    # their tunnels are none of the problem
    return {**tables, "routes": tables["routes"].drop(columns="tunnel", errors="ignore")}


def _read_listed(path: Path) -> list[_Tunnel] | None:
    if path.suffix.lower() in TEXTS:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path.name}: has more than {MAX_BYTES >> 20} MiB, too large for a list of tunnels"
            )
        text = read_text(path, max_line_bytes=MAX_LINE_BYTES)
        printed = [*_read_junos(text), *_read_ios(text)]
        if printed:
            return printed
    for sheet in list_sheets(path):
        # a table with rates on paths is one of a plan, and says more
        if sheet.columns and not match_sheet(sheet, LIST).faults and "rate_mbps" not in sheet.widest:
            frame = read_table(LIST, sheet.file())
            columns = [
                frame[name].fillna("").tolist() if name in frame else [""] * len(frame)
                for name in ("name", "source", "target", "path")
            ]
            rates = frame["rate_mbps"].fillna(0.0) if "rate_mbps" in frame else pd.Series(0.0, frame.index)
            return [_Tunnel(*row) for row in zip(*columns, rates.tolist(), strict=True)]
    return None


def _find_path(tunnel: _Tunnel, known: frozenset[str]) -> str:
    """Return the nodes of a tunnel's path as `A > B > C`, with its ends.

    known  names of the nodes
    """
    nodes = parse_nodes(tunnel.hops)
    for separator in SEPARATORS if not known.issuperset(nodes) else ():
        parts = [part.strip() for part in tunnel.hops.strip("[]() ").split(separator)]
        if len(parts) > 1 and known.issuperset(parts):
            nodes = parts
            break
    if tunnel.source and nodes[:1] != [tunnel.source]:
        nodes = [tunnel.source, *nodes]
    if tunnel.target and nodes[-1:] != [tunnel.target]:
        nodes = [*nodes, tunnel.target]
    return " > ".join(nodes)


def _weigh(listed: Sequence[_Tunnel]) -> list[float]:
    """Return the bandwidth of each tunnel, or 1 where one of the same ends reserves none."""
    ends = [(tunnel.source, tunnel.target) if tunnel.source else tunnel.hops for tunnel in listed]
    without = {end for end, tunnel in zip(ends, listed, strict=True) if not tunnel.bandwidth_mbps > 0}
    return [
        1.0 if end in without else tunnel.bandwidth_mbps for end, tunnel in zip(ends, listed, strict=True)
    ]


# --- what routers print -------------------------------------------------------------------

JUNOS: Final = re.compile(r"From: *([^\s,]+), *State: *([^\s,]+),[^\n]*LSPname: *(\S+)")
JUNOS_HOP: Final = re.compile(r"(?<!\S)(\S++) ++[SL]\b")
IOS: Final = re.compile(r"^ *Name: *(\S+)[^\n]*Destination: *(\S+)", re.MULTILINE)
IOS_SOURCE: Final = re.compile(r"(?:\bSrc|My Address:?) +([^\s,]+)")
IOS_DOWN: Final = re.compile(r"Oper: *down")
BANDWIDTH: Final = re.compile(r"\bBandwidth: *([\d.]+) *([A-Za-z/]*)")

UNITS: Final = {"": 1e-6, "bps": 1e-6, "kbps": 1e-3, "mbps": 1.0, "gbps": 1e3}
"""Mbit/s of each unit of bandwidths."""


def _read_junos(text: str) -> Iterator[_Tunnel]:
    """Yield the tunnels that are up in the text of `show mpls lsp extensive`."""
    for head, block in _divide(text, JUNOS):
        source, state, name = head.groups()
        above = text[max(head.start() - MAX_ABOVE, 0) : head.start()]
        target = above.rstrip("\n ").rpartition("\n")[2].split()
        hops = [hop for line in _lines_after(block, "Computed ERO") for hop in JUNOS_HOP.findall(line)]
        if state.lower() == "up" and hops and target:
            yield _Tunnel(name, source, target[0], " > ".join(hops), _read_bandwidth(block))


def _read_ios(text: str) -> Iterator[_Tunnel]:
    """Yield the tunnels that are up in the text of `show mpls traffic-eng tunnels`."""
    for head, block in _divide(text, IOS):
        name, target = head.groups()
        source = IOS_SOURCE.search(block)
        first = block.partition("Explicit Route:")[2].partition("\n")[0]
        hops = [hop for line in (first, *_lines_after(block, "Explicit Route:")) for hop in line.split()]
        if hops and source is not None and not IOS_DOWN.search(block):
            yield _Tunnel(name, source[1], target, " > ".join(hops), _read_bandwidth(block))


def _divide(text: str, head: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each head of a tunnel in a text, with what follows until the next one."""
    heads = list(head.finditer(text))
    for match, following in itertools.zip_longest(heads, heads[1:]):
        yield match, text[match.end() : following.start() if following else len(text)]


def _lines_after(block: str, title: str) -> Iterator[str]:
    """Yield the lines after the first one with a title that continue it: those without a colon."""
    lines = iter(block.split("\n"))
    if any(title in line for line in lines):
        yield from itertools.takewhile(lambda line: line.strip() and ":" not in line, lines)


def _read_bandwidth(block: str) -> float:
    """Return the bandwidth in the text of a tunnel, Mbit/s; 0 for none."""
    match = BANDWIDTH.search(block)
    if match is None:
        return 0.0
    unit = match[2].lower()
    if unit not in UNITS:
        raise InputError(f"'{match[0]}': its unit is none of {', '.join(filter(None, UNITS))}")
    try:
        return float(match[1]) * UNITS[unit]
    except ValueError:
        raise InputError(f"'{match[0]}': is no number") from None
