"""Rules from files of switches and of ClassBench, with connections from a file or drawn."""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.tables import file_name, row_name, shorten_faults
from planner.errors import InputError
from planner.io.table_files import read_table
from planner.io.text_files import read_text
from planner_models.flowtables.problem.actions import NORMAL
from planner_models.flowtables.problem.evaluation.datapath import read_dump
from planner_models.flowtables.problem.evaluation.entries import evaluate
from planner_models.flowtables.problem.evaluation.groups import read_groups
from planner_models.flowtables.problem.evaluation.names import Numbers
from planner_models.flowtables.problem.evaluation.reading import NEEDS_EVALUATION, read_switch
from planner_models.flowtables.problem.fields import FIVE_TUPLE, WITH_PORTS, Layout, make_layout
from planner_models.flowtables.problem.generators import Accept, Connections, Seed, Skew, draw_flows
from planner_models.flowtables.problem.openflow import read_rules, translate_header
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import FLOWS
from planner_models.flowtables.problem.values import PACKET, BadMatch, describe_first

Flows = Annotated[
    Path | None, Field(description="table header, packets of connections; none: drawn, as rules are met")
]
HOSTS: Final = 32  # addresses of Ethernet that are drawn
MAC: Final = 0x02_00_00_00_00_00
TTL: Final = 64
TCP: Final = 6
FLAG_BITS: Final = 16
FLAGS_COLUMN: Final = 5
RANGE: Final = re.compile(r"(?<!\d)(\d+)\s*:\s*(\d+)")
ANY_PORT: Final = (0, 65_535)


def read_openflow(
    *,
    path: Annotated[Path, Field(description="output of ovs-ofctl dump-flows, or a file for add-flows")],
    flows: Flows = None,
    groups: Annotated[
        Path | None,
        Field(description="output of ovs-ofctl dump-groups, or a file for add-groups; none: no groups"),
    ] = None,
    ports: Annotated[
        Path | None,
        Field(description="output of ovs-ofctl show: numbers of ports that rules name, links that are down"),
    ] = None,
    connections: Connections = 8_000,
    skew: Skew = 1.1,
    seed: Seed = 0,
) -> FlowTables:
    """Read the rules of a switch from `ovs-ofctl dump-flows`.

    The fields are those that rules match, those that actions change or read, and those that every entry of
    Open vSwitch matches: the port of input, the type of Ethernet, and whether a packet of IP is a fragment.
    Tables and ports may have names. Registers, several lookups and changes of headers are followed. Tables
    with connection tracking, groups, conjunctions, learned rules or labels of MPLS are evaluated for each
    packet of `flows`: rules are the entries that Open vSwitch makes. What is not modelled is refused.

    raises  InputError with a line for each row that is no rule, or is not modelled
    """
    numbers = Numbers(read_text(ports) if ports is not None else "")
    text = numbers.replace_all(read_text(path))
    group_text = numbers.replace_all(read_text(groups)) if groups is not None else ""
    numbers.note(path.name)
    if NEEDS_EVALUATION.search(text):
        return _evaluate(text, path.name, flows, group_text, numbers, groups)
    if flows is None:
        rules, fields = read_rules(text, path.name)
        random = np.random.default_rng(seed)
        frame = draw_flows(rules, connections, skew, random, fields=fields)
        return FlowTables(rules=rules, fields=fields, flows=_draw_macs(frame, rules, fields, random))
    frame = _translate_headers(_replace_ports(read_table(FLOWS, flows), numbers))
    rules, fields = read_rules(text, path.name, dict.fromkeys(frame["header"]))
    return FlowTables(rules=rules, fields=fields, flows=_assume_fields(frame, rules, fields))


def _evaluate(
    text: str, where: str, flows: Path | None, group_text: str, numbers: Numbers, groups: Path | None
) -> FlowTables:
    """Return the problem of the entries that the tables of a switch make for packets."""
    read = read_groups(group_text, groups.name) if groups is not None else {}
    switch = read_switch(text, where, read, groups.name if groups is not None else "")
    switch.down = numbers.down
    if flows is None:
        raise InputError(
            f"{where}: has tracking, groups, conjunctions, learned rules or labels, which are evaluated for "
            "the packets of a file: flows = ... is missing"
        )
    frame = _replace_ports(read_table(FLOWS, flows), numbers)
    return FlowTables(**evaluate(switch, frame, where)._asdict())


def _replace_ports(frame: pd.DataFrame, numbers: Numbers) -> pd.DataFrame:
    """Return connections with the numbers of ports that rules name."""
    if not numbers.ports:
        return frame
    made = frame.assign(header=[numbers.replace_ports(str(text)) for text in frame["header"]])
    made.attrs |= frame.attrs
    return made


def _translate_headers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of connections with headers in the names that are used here."""
    translated: dict[str, str] = {}
    faults: list[str] = []
    for row, text in enumerate(frame["header"].astype(str)):
        if text not in translated:
            try:
                translated[text] = translate_header(text)
            except BadMatch as error:
                translated[text] = text
                describe_first(faults, f"{row_name(frame, 'flows', row)}: header '{text}': ", error)
    if faults:
        raise InputError(*shorten_faults(faults, file_name(frame, "flows"), "with a bad header"))
    made = frame.assign(header=[translated[text] for text in frame["header"].astype(str)])
    made.attrs |= frame.attrs
    return made


def _assume_fields(frame: pd.DataFrame, rules: pd.DataFrame, fields: pd.DataFrame) -> pd.DataFrame:
    """Return connections with values of fields that entries must match and no header has, and say so.

    The time to live is 64. Where NORMAL learns by addresses of Ethernet, each connection has another one.
    """
    where = file_name(frame, "flows")
    headers = frame["header"].tolist()
    absent = _list_absent(headers, fields["field"].tolist())
    steps = [step for action in rules["action"] for step in str(action).split()]
    if "nw_ttl" in absent and "set:dec_ttl" in steps:
        add_note(f"assumed: no header of {where} has nw_ttl, which dec_ttl reads; all have 64")
        headers = [f"{text} nw_ttl=64" for text in headers]
    macs: list[str] = [name for name in ("eth_src", "eth_dst") if name in absent]
    is_normal = NORMAL.upper() in map(str.upper, steps)
    if macs and is_normal:
        headers = _number_macs(headers, macs, where)
    _note_zeros(absent, where)
    if not is_normal:
        _note_equal_macs(steps, macs, where)
    made = frame.assign(header=headers)
    made.attrs |= frame.attrs
    return made


def _list_absent(headers: list[str], fields: list[str]) -> list[str]:
    """Return the fields that no header has."""
    fields_used = {token.partition("=")[0] for text in set(headers) for token in text.split()}
    return [name for name in fields if name not in fields_used]


def _number_macs(headers: list[str], macs: list[str], where: str) -> list[str]:
    """Return headers with another address of Ethernet for each connection, and say so."""
    before = len(set(headers))
    headers = [
        " ".join([text, *(f"{name}={format_mac(row + 1)}" for name in macs)])
        for row, text in enumerate(headers)
    ]
    add_note(
        f"assumed: no header of {where} has {' and '.join(macs)}, which NORMAL matches exactly; each "
        f"connection has another one, so that there are {len(set(headers)):,} headers"
        + (f"; with one for all there would be {before:,}" if before < len(set(headers)) else "")
    )
    return headers


def _note_zeros(absent: list[str], where: str) -> None:
    """Add a note for each field that no header has and every entry matches."""
    for name in ("in_port", "eth_type"):
        if name in absent:
            add_note(f"assumed: no header of {where} has {name}, which every entry matches; all have 0")


def _note_equal_macs(steps: list[str], macs: list[str], where: str) -> None:
    """Add a note where actions change addresses of Ethernet that no header has."""
    written = sorted(name for name in macs if any(f"set:{name}=" in step for step in steps))
    if written:
        add_note(
            f"assumed: no header of {where} has {', '.join(written)}, which actions change and entries "
            "match; all have the same"
        )


def _draw_macs(
    frame: pd.DataFrame, rules: pd.DataFrame, fields: pd.DataFrame, random: np.random.Generator
) -> pd.DataFrame:
    """Return drawn connections with addresses of Ethernet and a time to live where actions read them."""
    layout = make_layout(fields)
    full = layout.full_mask(layout.by_name)
    unmatched = _find_unmatched(rules, fields)
    drawn = [name for name in ("eth_src", "eth_dst") if name in unmatched & layout.by_name.keys()]
    if "in_port" in unmatched:
        add_note("assumed: connections come from one port, as rules name none; every entry matches it")
    lives = "nw_ttl" in unmatched & layout.by_name.keys()
    if not drawn and not lives:
        return frame
    hosts = random.integers(1, HOSTS + 1, size=(len(frame), len(drawn)))
    headers = []
    for text, row_hosts in zip(frame["header"], hosts.tolist(), strict=True):
        number = layout.parse_header(text)
        for name, host in zip(drawn, row_hosts, strict=True):
            number |= (MAC + host) << layout.shift[name]
        if lives:
            number |= TTL << layout.shift["nw_ttl"]
        headers.append(layout.format_match(layout.clear_absent(number), full))
    if drawn:
        add_note(f"assumed: connections are between {HOSTS} addresses of Ethernet, as rules name none")
    if lives:
        add_note(f"assumed: connections have nw_ttl={TTL}, as rules name none")
    return frame.assign(header=headers)


def _find_unmatched(rules: pd.DataFrame, fields: pd.DataFrame) -> set[str]:
    """Return the fields, registers included, of which no entry matches a bit."""
    layout = make_layout(fields, with_registers=True)
    masks = (mask for text in rules["match"] for _, mask in layout.parse(text))
    matched = reduce(operator.or_, masks, 0)
    return {name for name in layout.by_name if not matched & layout.full_mask([name])}


def format_mac(host: int) -> str:
    """Return an address of Ethernet in the usual notation."""
    return ":".join(f"{octet:02x}" for octet in (MAC + host).to_bytes(6, "big"))


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
    ports without a protocol is one for each protocol with ports; one of flags is one of TCP. Flags are a
    field of 16 bits as the file has them, where some filter matches any.

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
    fields = None
    if any("tcp_flags=" in match for match in matches):
        fields = pd.DataFrame(
            [*FIVE_TUPLE[:3], ("tcp_flags", FLAG_BITS, "l3", False, PACKET), *FIVE_TUPLE[3:]],
            columns=["field", "bits", "stage", "prefix", "role"],
        ).astype({"prefix": int})
    if trace is None:
        flows = draw_flows(rules, connections, skew, random, fields=fields)
        return FlowTables(rules=rules, fields=fields, flows=_clear_flags(flows, fields))
    return FlowTables(rules=rules, fields=fields, flows=_read_trace(trace, make_layout(fields)))


def _clear_flags(flows: pd.DataFrame, fields: pd.DataFrame | None) -> pd.DataFrame:
    """Return connections without flags of TCP where they are of another protocol."""
    if fields is None:
        return flows
    layout = make_layout(fields)
    protocol, flags = layout.full_mask(["ip_proto"]), layout.full_mask(["tcp_flags"])
    tcp, full = TCP << layout.shift["ip_proto"], layout.full_mask(layout.by_name)
    numbers = [layout.parse_header(text) for text in flows["header"]]
    cleared = [number if number & protocol == tcp else number & ~flags for number in numbers]
    return flows.assign(header=[layout.format_match(number, full) for number in cleared])


def _read_prefix(name: str, text: str) -> list[str]:
    """Return the match of a prefix of IPv4, none where it holds all addresses."""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise ValueError(f"'{text}' is no prefix of IPv4, such as 10.0.0.0/8") from None
    return [f"{name}={network}"] if network.prefixlen else []


def _read_ports(name: str, text: str) -> list[str]:
    """Return the match of a range of ports, none where it holds all ports."""
    first, last = _read_range(text)
    return [f"{name}={first}:{last}"] if (first, last) != ANY_PORT else []


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
    tokens = [*_read_prefix("ip_src", parts[0]), *_read_prefix("ip_dst", parts[1])]
    ports = [*_read_ports("tp_src", parts[2]), *_read_ports("tp_dst", parts[3])]
    protocol = _read_protocol(parts[4])
    flags = _read_flags(parts[5]) if len(parts) > FLAGS_COLUMN else ""
    _require_protocol(protocol, flags=flags != "", ports=len(ports) > 0)
    if flags:
        return [" ".join([*tokens, f"ip_proto={TCP}", flags, *ports])]
    if protocol is None and not ports:
        return [" ".join(tokens)]
    if protocol is None:
        return [" ".join([*tokens, word, *ports]) for word in WITH_PORTS.values()]
    return [" ".join([*tokens, f"ip_proto={protocol}", *ports])]


def _require_protocol(protocol: int | None, *, flags: bool, ports: bool) -> None:
    """Raise ValueError for a protocol without the flags or ports that a filter matches."""
    if flags and protocol not in (None, TCP):
        raise ValueError(f"matches flags of protocol {protocol}, must be TCP, 0x06/0xFF")
    if ports and not flags and protocol is not None and protocol not in WITH_PORTS:
        protocols = ", ".join(f"{number} ({name})" for number, name in WITH_PORTS.items())
        raise ValueError(f"matches ports of protocol {protocol}, must be one with ports: {protocols}")


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
        number, mask = (int(number_text, 16) for number_text in text.split("/"))
    except ValueError:
        raise ValueError(f"'{text}' is no protocol with a mask, such as 0x06/0xFF") from None
    if mask not in (0, 0xFF) or not 0 <= number <= 0xFF:
        raise ValueError(f"protocol {text} must have the mask 0xFF, or 0x00 for any")
    return number if mask else None


def _read_flags(text: str) -> str:
    """Return the match of flags of TCP; empty for any."""
    try:
        value, mask = (int(number_text, 16) for number_text in text.split("/"))
    except ValueError:
        raise ValueError(f"'{text}' are no flags with a mask, such as 0x0200/0x0200") from None
    if not 0 <= value < 1 << FLAG_BITS or not 0 <= mask < 1 << FLAG_BITS:
        raise ValueError(f"flags {text} must fit into {FLAG_BITS} bits")
    return f"tcp_flags={value & mask:#x}/{mask:#x}" if mask else ""


def _pack_values(names: list[str], texts: list[str], layout: Layout) -> int:
    """Return a header with the values of some fields, in text; raises BadMatch where one does not fit."""
    header = 0
    for name, text in zip(names, texts, strict=False):
        bits = layout.by_name[name].bits
        if not text.isdecimal() or int(text) >= 1 << bits:
            raise BadMatch(f"{name} is '{text}', must be a number below {1 << bits:,}")
        header |= int(text) << layout.shift[name]
    return header


def _read_trace(path: Path, layout: Layout) -> pd.DataFrame:
    """Return the connections of a trace: source, destination, ports and protocol as numbers in a row."""
    names = ["ip_src", "ip_dst", "tp_src", "tp_dst", "ip_proto"]
    headers, faults = [], []
    has_flags = "tcp_flags" in layout.by_name
    without = 0
    full = layout.full_mask(layout.by_name)
    for line, text in enumerate(read_text(path).splitlines()):
        parts = text.split()
        if not parts:
            continue
        if len(parts) < len(names):
            faults.append(f"{path.name} row {line + 1}: has {len(parts)} numbers, must have at least 5")
            continue
        # flags stand between the protocol and the number of the filter
        read = [*names, "tcp_flags"] if has_flags and len(parts) > len(names) + 1 else names
        without += has_flags and read is names
        try:
            headers.append(layout.format_match(_pack_values(read, parts, layout), full))
        except BadMatch as error:
            faults.append(f"{path.name} row {line + 1}: {error}")
    if not headers and not faults:
        faults.append(f"{path.name}: has no headers, must have at least 1")
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "that cannot be read"))
    if without:
        add_note(f"assumed: {without:,} headers of {path.name} have no flags of TCP, which filters match: 0")
    return pd.DataFrame({"header": headers, "packets": 1.0})


def read_datapath(
    *,
    path: Annotated[
        Path, Field(description="output of ovs-appctl dpctl/dump-flows, or ovs-dpctl dump-flows")
    ],
    statistics: Annotated[
        Path | None,
        Field(description="output of ovs-appctl dpctl/show: lookups, misses and masks so far; none: unknown"),
    ] = None,
) -> FlowTables:
    """Read the entries of a datapath, with their packets; a connection stands for each entry.

    raises  InputError with a line for each row that is no entry, or has parts that are not modelled
    """
    shown = read_text(statistics) if statistics is not None else ""
    dump = read_dump(read_text(path), path.name, shown)
    if statistics is not None and dump.statistics is None:
        raise InputError(f"{statistics.name}: has no line 'lookups: hit:', must be output of dpctl/show")
    return FlowTables(**dump._asdict())


SOURCES: Final[dict[str, Callable[..., FlowTables]]] = {
    "openflow": read_openflow,
    "datapath": read_datapath,
    "classbench": read_classbench,
}
