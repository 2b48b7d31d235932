"""Rules from files of switches and of ClassBench, with connections from a file or drawn."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.tables import shorten_faults
from planner.errors import InputError
from planner.io.table_files import read_table
from planner.io.text_files import read_text
from planner_models.flowtables.problem.fields import WITH_PORTS, Layout, make_layout
from planner_models.flowtables.problem.generators import Accept, Connections, Seed, Skew, draw_flows
from planner_models.flowtables.problem.openflow import read_rules
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import FLOWS

Flows = Annotated[
    Path | None, Field(description="table header, packets of connections; none: drawn, as rules are met")
]
RANGE: Final = re.compile(r"(\d+)\s*:\s*(\d+)")
ANY_PORT: Final = (0, 65_535)


def read_openflow(
    *,
    path: Annotated[Path, Field(description="output of ovs-ofctl dump-flows, or a file for add-flows")],
    flows: Flows = None,
    connections: Connections = 8_000,
    skew: Skew = 1.1,
    seed: Seed = 0,
) -> FlowTables:
    """Read the rules of a switch from `ovs-ofctl dump-flows`.

    The fields are those that rules match. Ports have numbers (`--no-names`). A rule forwards, drops, or goes
    to one later table; changes of header fields are read as part of the last action.

    raises  InputError with a line for each row that is no rule, or is not supported
    """
    rules, fields = read_rules(read_text(path), path.name)
    if flows is not None:
        frame = read_table(FLOWS, flows)
    else:
        frame = draw_flows(rules, connections, skew, np.random.default_rng(seed), fields=fields)
    return FlowTables(rules=rules, fields=fields, flows=frame)


def read_classbench(
    *,
    path: Annotated[Path, Field(description="filter set: @source destination ports ports protocol, by row")],
    trace: Annotated[
        Path | None, Field(description="headers of ClassBench's trace generator; none: drawn")
    ] = None,
    accept: Accept = 0.5,
    connections: Connections = 8_000,
    skew: Skew = 1.1,
    seed: Seed = 0,
) -> FlowTables:
    """Read a filter set of ClassBench, the first filter of the highest priority, and a trace of headers.

    Filters have no actions: a share `accept` of them forwards, the others drop, by the seed. A filter of
    ports without a protocol is one for each protocol with ports. Flags of TCP are not matched.

    source  Taylor and Turner, ClassBench: a packet classification benchmark, 2007
    raises  InputError with a line for each row that is no filter, or no header
    """
    random = np.random.default_rng(seed)
    matches, lines, faults = [], [], []
    for line, text in enumerate(read_text(path).splitlines()):
        if not text.strip():
            continue
        try:
            for match in _read_filter(text):
                matches.append(match)
                lines.append(line)
        except ValueError as error:
            faults.append(f"{path.name} row {line + 1}: {error}")
    if not matches and not faults:
        faults.append(f"{path.name}: has no filters, must have at least 1")
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "that cannot be read"))
    row = np.array(lines)
    is_accepted = random.random(row.max() + 1) < accept
    rules = pd.DataFrame(
        {
            "priority": (row.max() + 1.0) - row,
            "match": matches,
            "action": np.where(is_accepted[row], "out:1", "drop"),
        },
        index=lines,
    )
    rules.attrs |= {"where": path.name, "first_row": 1}
    if trace is None:
        return FlowTables(rules=rules, flows=draw_flows(rules, connections, skew, random))
    return FlowTables(rules=rules, flows=_read_trace(trace, make_layout(None)))


def _read_filter(text: str) -> list[str]:
    """Return the matches of a filter; raises ValueError with the rule that it violates."""
    if not text.startswith("@"):
        raise ValueError("must start with '@', as filters of ClassBench do")
    spaced = RANGE.sub(r"\1:\2", text[1:])
    parts = spaced.split()
    if len(parts) not in (5, 6):
        raise ValueError(
            f"has {len(parts)} fields, must have 5: source, destination, source ports, destination ports, "
            "protocol; and optionally flags"
        )
    tokens = []
    for name, part in zip(("ip_src", "ip_dst"), parts[:2], strict=True):
        try:
            network = ipaddress.IPv4Network(part, strict=False)
        except ValueError:
            raise ValueError(f"'{part}' is no prefix of IPv4, such as 10.0.0.0/8") from None
        if network.prefixlen:
            tokens.append(f"{name}={network}")
    ports = []
    for name, part in zip(("tp_src", "tp_dst"), parts[2:4], strict=True):
        first, last = _read_range(part)
        if (first, last) != ANY_PORT:
            ports.append(f"{name}={first}:{last}")
    protocol = _read_protocol(parts[4])
    if protocol is None:
        return (
            [" ".join([*tokens, word, *ports]) for word in WITH_PORTS.values()]
            if ports
            else [" ".join(tokens)]
        )
    if ports and protocol not in WITH_PORTS:
        known = ", ".join(f"{number} ({name})" for number, name in WITH_PORTS.items())
        raise ValueError(f"matches ports of protocol {protocol}, must be one with ports: {known}")
    return [" ".join([*tokens, f"ip_proto={protocol}", *ports])]


def _read_range(text: str) -> tuple[int, int]:
    """Return the first and last port of a range."""
    low, colon, high = text.partition(":")
    if not colon or not low.isdecimal() or not high.isdecimal():
        raise ValueError(f"'{text}' is no range of ports, such as 0 : 65535")
    if int(high) > ANY_PORT[1]:
        raise ValueError(f"port {high} must be at most {ANY_PORT[1]}")
    if int(low) > int(high):
        raise ValueError(f"range {text} of ports ends before it starts")
    return int(low), int(high)


def _read_protocol(text: str) -> int | None:
    """Return the number of a protocol; None for any."""
    try:
        number, mask = (int(part, 16) for part in text.split("/"))
    except ValueError:
        raise ValueError(f"'{text}' is no protocol with a mask, such as 0x06/0xFF") from None
    if mask not in (0, 0xFF) or not 0 <= number <= 0xFF:
        raise ValueError(f"protocol {text} must have the mask 0xFF, or 0x00 for any")
    return number if mask else None


def _read_trace(path: Path, layout: Layout) -> pd.DataFrame:
    """Return the connections of a trace: source, destination, ports and protocol as numbers in a row."""
    names = ("ip_src", "ip_dst", "tp_src", "tp_dst", "ip_proto")
    headers, faults = [], []
    full = layout.full_mask(layout.by_name)
    for line, text in enumerate(read_text(path).splitlines()):
        parts = text.split()
        if not parts:
            continue
        if len(parts) < len(names):
            faults.append(f"{path.name} row {line + 1}: has {len(parts)} numbers, must have at least 5")
            continue
        number = 0
        for name, part in zip(names, parts, strict=False):
            bits = layout.by_name[name].bits
            if not part.isdecimal() or int(part) >= 1 << bits:
                faults.append(
                    f"{path.name} row {line + 1}: {name} is '{part}', must be a number below {1 << bits:,}"
                )
                break
            number |= int(part) << layout.shift[name]
        headers.append(layout.format_match(number, full))
    if not headers and not faults:
        faults.append(f"{path.name}: has no headers, must have at least 1")
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "that cannot be read"))
    return pd.DataFrame({"header": headers, "packets": 1.0})


SOURCES: Final[dict[str, Callable[..., FlowTables]]] = {
    "openflow": read_openflow,
    "classbench": read_classbench,
}
