"""Synthetic rules and connections, after published statistics of filter sets. No rule is a real switch's.

Filter sets of access control lists, firewalls and IP chains differ in how long their prefixes are, in their
ports and in how rules overlap (Taylor and Turner, "ClassBench", 2007). Shares here are chosen to that end.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models.flowtables.problem.fields import WORD, Layout, extend_five_tuple, make_layout
from planner_models.flowtables.problem.policies import compile_rules
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import ADD, MOST_CHANGES, PARALLEL, POLICIES, REMOVE
from planner_models.flowtables.problem.values import IPV4

Seed = Annotated[int, Field(ge=0, description="seed of all random draws")]
RuleCount = Annotated[int, Field(ge=1, le=200_000, description="rules")]
Connections = Annotated[int, Field(ge=1, le=2_000_000, description="new connections")]
Skew = Annotated[float, Field(ge=0, le=3, description="exponent of Zipf's law of how often rules are met")]
RuleKind = Annotated[
    Literal["acl", "firewall", "chain"], Field(description="access control list, firewall, or IP chain")
]
Accept = Annotated[float, Field(ge=0, le=1, description="share of rules that accept; the others drop")]

SERVICES: Final = (80, 443, 22, 25, 53, 21, 23, 110, 143, 389, 636, 1433, 1521, 3306, 3389, 5060, 8080, 8443)
TABLE_1_HOSTS: Final = 4
PORTS_OF_SWITCH: Final = 16
RANGES: Final = ("1024:65535", "0:1023", "6000:6063", "20:21", "137:139", "8000:8099", "5000:5010")


@dataclass(frozen=True)
class Kind:
    """Shares of one kind of filter set.

    lengths   prefix lengths of source and destination, and their shares
    ports     shares of any port, a service's port, and a range, of source and destination
    tcp, udp  shares of rules of these protocols; others match no protocol, or only one in ten ICMP
    sites     networks of /16 that destinations lie in, for each 1,000 rules
    """

    source: tuple[tuple[int, float], ...]
    destination: tuple[tuple[int, float], ...]
    source_ports: tuple[float, float, float]
    destination_ports: tuple[float, float, float]
    tcp: float
    udp: float
    sites: float


ACL: Final = Kind(
    source=((0, 0.25), (16, 0.1), (21, 0.1), (24, 0.25), (28, 0.1), (32, 0.2)),
    destination=((24, 0.2), (28, 0.15), (30, 0.1), (32, 0.55)),
    source_ports=(1.0, 0.0, 0.0),
    destination_ports=(0.3, 0.6, 0.1),
    tcp=0.75,
    udp=0.15,
    sites=4,
)
FIREWALL: Final = Kind(
    source=((0, 0.5), (8, 0.1), (16, 0.15), (24, 0.15), (32, 0.1)),
    destination=((0, 0.2), (16, 0.15), (24, 0.25), (32, 0.4)),
    source_ports=(0.75, 0.1, 0.15),
    destination_ports=(0.3, 0.4, 0.3),
    tcp=0.6,
    udp=0.25,
    sites=12,
)
CHAIN: Final = Kind(
    source=((0, 0.2), (16, 0.2), (24, 0.3), (32, 0.3)),
    destination=((0, 0.15), (16, 0.2), (24, 0.3), (32, 0.35)),
    source_ports=(0.8, 0.15, 0.05),
    destination_ports=(0.45, 0.45, 0.1),
    tcp=0.55,
    udp=0.2,
    sites=8,
)


KINDS: Final = {"acl": ACL, "firewall": FIREWALL, "chain": CHAIN}


def acl(
    *, rules: RuleCount = 1_000, connections: Connections = 8_000, skew: Skew = 1.1, accept: Accept = 0.5,
    seed: Seed = 0,
) -> FlowTables:  # fmt: skip
    """Generate an access control list: long destination prefixes, services' ports."""
    return _generate(ACL, rules, connections, skew, accept, seed)


def firewall(
    *, rules: RuleCount = 1_000, connections: Connections = 8_000, skew: Skew = 1.1, accept: Accept = 0.5,
    seed: Seed = 0,
) -> FlowTables:  # fmt: skip
    """Generate the rules of a firewall: short prefixes, ranges of ports, many overlaps."""
    return _generate(FIREWALL, rules, connections, skew, accept, seed)


def chain(
    *, rules: RuleCount = 1_000, connections: Connections = 8_000, skew: Skew = 1.1, accept: Accept = 0.5,
    seed: Seed = 0,
) -> FlowTables:  # fmt: skip
    """Generate a chain of IP filters: prefixes of all lengths on both addresses."""
    return _generate(CHAIN, rules, connections, skew, accept, seed)


def table_1(*, connections: Connections = 20_000, seed: Seed = 0) -> FlowTables:
    """Generate the four rules of Pfaff et al. 2015, 7.2, and short TCP connections between random ports.

    A third of the connections each goes to 11.1/16, to hosts of 9.1.1/24 but 9.1.1.1, and elsewhere; one in a
    hundred is ARP. The paper does not print its addresses.
    """
    random = np.random.default_rng(seed)
    fields = extend_five_tuple("eth_type", 16, "l2")
    rules = pd.DataFrame(
        [
            (4, "arp", "out:1"),
            (3, "ip ip_dst=11.1.0.0/16", "out:2"),
            (2, "tcp ip_dst=9.1.1.1 tp_src=10 tp_dst=10", "out:3"),
            (1, "ip ip_dst=9.1.1.0/24", "out:4"),
        ],
        columns=["priority", "match", "action"],
    )
    kind = random.integers(0, 3, size=connections)
    hosts = random.integers(2, 2 + TABLE_1_HOSTS, size=connections)
    ports = random.integers(1024, 65536, size=(connections, 2))
    targets = [
        (f"11.1.0.{host}", f"9.1.1.{host}", f"20.0.{host}.1")[which]
        for which, host in zip(kind.tolist(), hosts.tolist(), strict=True)
    ]
    is_arp = random.random(connections) < 0.01
    headers = [
        "arp" if arp else f"tcp ip_src=9.1.2.{host} ip_dst={target} tp_src={source} tp_dst={port}"
        for arp, host, target, (source, port) in zip(
            is_arp.tolist(), hosts.tolist(), targets, ports.tolist(), strict=True
        )
    ]
    return FlowTables(fields=fields, rules=rules, flows=pd.DataFrame({"header": headers, "packets": 10.0}))


def frenetic_modules(
    *,
    monitored: Annotated[int, Field(ge=1, le=1_000, description="ports, or addresses, to count")] = 50,
    routes: Annotated[int, Field(ge=1, le=10_000, description="destination prefixes")] = 1_000,
    same_field: Annotated[
        bool, Field(description="whether destination addresses are counted, not destination ports")
    ] = False,
    connections: Connections = 8_000,
    skew: Skew = 1.1,
    seed: Seed = 0,
) -> FlowTables:
    """Generate a monitor and routes in parallel, compiled to one table (Foster et al. 2013, III)."""
    random = np.random.default_rng(seed)
    modules, policies = draw_modules(monitored, routes, same_field, random)
    layout = make_layout(None)
    rules = compile_rules(modules, policies, layout)
    is_route = modules["module"] == "routes"
    flows = draw_flows(modules[is_route].drop(columns="module"), connections, skew, random)
    return FlowTables(rules=rules, flows=_meet(flows, modules[~is_route], skew, layout, random))


def draw_modules(
    monitored: int, routes: int, same_field: bool, random: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables `modules` of a monitor and of routes, and `policies` with both in parallel."""
    lengths = ((12, 0.05), (16, 0.25), (20, 0.3), (24, 0.4))
    sites = random.integers(0x0A000000, 0xDF000000, size=max(2, routes // 8)) & ~0xFFFF
    value, length = _draw_prefixes(lengths, sites, 4 * routes, random)
    prefixes = pd.DataFrame({"value": value, "length": length}).drop_duplicates().head(routes)
    matches = [
        f"ip_dst={ipaddress.IPv4Address(int(prefix))}/{int(bits)}"
        for prefix, bits in prefixes.itertuples(index=False)
    ]
    if same_field:
        destinations = random.choice(prefixes["value"].to_numpy(), size=4 * monitored + 1)
        addresses = pd.unique(destinations | random.integers(0, 256, size=len(destinations)))[:monitored]
        counted = [f"ip_dst={ipaddress.IPv4Address(int(address))}" for address in addresses]
    else:
        counted = [f"tcp tp_dst={port}" for port in random.choice(65_535, size=monitored, replace=False) + 1]
    ports = random.integers(1, 1 + PORTS_OF_SWITCH, size=len(matches)).tolist()
    monitor = [("monitor", 1.0, match, f"count:{row}") for row, match in enumerate(counted)]
    forward = [
        ("routes", float(bits), match, f"out:{port}")
        for match, bits, port in zip(matches, prefixes["length"], ports, strict=True)
    ]
    modules = pd.DataFrame([*monitor, *forward], columns=["module", "priority", "match", "action"])
    return modules, pd.DataFrame([("all", PARALLEL, "monitor", "routes")], columns=[*POLICIES.columns])


def _meet(
    flows: pd.DataFrame, monitor: pd.DataFrame, skew: float, layout: Layout, random: np.random.Generator
) -> pd.DataFrame:
    """Return connections of which half meet a rule of the monitor, by Zipf's law."""
    popular = (random.permutation(len(monitor)) + 1.0) ** -skew
    monitors = random.choice(len(monitor), p=popular / popular.sum(), size=len(flows))
    is_met = random.random(len(flows)) < 0.5
    cubes = [layout.parse(text)[0] for text in monitor["match"]]
    full = layout.full_mask(layout.by_name)
    headers = []
    for text, met, row in zip(flows["header"], is_met.tolist(), monitors.tolist(), strict=True):
        value, mask = cubes[row] if met else (0, 0)
        headers.append(layout.format_match((layout.parse_header(text) & ~mask) | value, full))
    return flows.assign(header=headers)


@dataclass(frozen=True, kw_only=True)
class Churn:
    """Rates of new connections and of changes of rules."""

    connections_per_s: Annotated[float, Field(gt=0, le=1e9, description="rate of new connections")] = 200.0
    change_s: Annotated[float, Field(gt=0, le=1e9, description="time between two changes of rules")] = 10.0


@spread(churn=Churn())
def changing_rules(
    *,
    kind: RuleKind = "acl",
    rules: RuleCount = 1_000,
    connections: Connections = 20_000,
    churn: Churn,
    skew: Skew = 1.1,
    accept: Accept = 0.5,
    seed: Seed = 0,
) -> FlowTables:
    """Generate rules of which one is replaced by a new one at a steady rate, and connections in time."""
    random = np.random.default_rng(seed)
    end_s = connections / churn.connections_per_s
    count = min(int(end_s / churn.change_s), MOST_CHANGES // 2)
    pool = draw_rules(KINDS[kind], rules + count, accept, random)
    count = min(count, len(pool) - 1)
    order = random.permutation(len(pool))
    added, initial = pool.iloc[order[:count]], pool.iloc[np.sort(order[count:])].reset_index(drop=True)
    removed = initial.iloc[random.permutation(len(initial))[:count]]
    times = (
        np.arange(min(len(removed), len(added))) + random.random(min(len(removed), len(added)))
    ) * churn.change_s
    changes = pd.concat(
        [
            frame.iloc[: len(times)].assign(time_s=times, change=change, table=0.0)
            for frame, change in ((removed, REMOVE), (added, ADD))
        ],
        ignore_index=True,
    )
    flows = draw_flows(initial, connections, skew, random)
    flows["start_s"] = np.arange(connections) / churn.connections_per_s
    columns = ["time_s", "change", "priority", "match", "action", "table"]
    changes = changes.sort_values("time_s", kind="stable", ignore_index=True)[columns]
    return FlowTables(rules=initial, flows=flows, changes=changes)


def small(*, seed: Seed = 0) -> FlowTables:
    """Generate 30 rules of a firewall in two tables, and 200 connections."""
    made = firewall(rules=30, connections=200, seed=seed)
    first = pd.DataFrame(
        [(2.0, "tcp tp_dst=80", "goto:1", 0.0), (1.0, "udp", "drop", 0.0), (0.0, "", "goto:1", 0.0)],
        columns=["priority", "match", "action", "table"],
    )
    rules = pd.concat([first, made.rules.assign(table=1.0)], ignore_index=True)
    return FlowTables(rules=rules, flows=made.flows)


def _generate(kind: Kind, rules: int, connections: int, skew: float, accept: float, seed: int) -> FlowTables:
    """Return rules of a kind, and connections that meet them by Zipf's law."""
    random = np.random.default_rng(seed)
    frame = draw_rules(kind, rules, accept, random)
    return FlowTables(rules=frame, flows=draw_flows(frame, connections, skew, random))


def draw_rules(kind: Kind, rules: int, accept: float, random: np.random.Generator) -> pd.DataFrame:
    """Return the table `rules` of a kind, all of different matches and priorities."""
    sites = random.integers(0x0A000000, 0xDF000000, size=max(2, round(kind.sites * rules / 1_000))) & ~0xFFFF
    source = _draw_prefixes(kind.source, sites, rules, random)
    destination = _draw_prefixes(kind.destination, sites, rules, random)
    length = source[1] + destination[1]
    protocol = np.where(
        random.random(rules) < kind.tcp,
        "tcp",
        np.where(random.random(rules) < kind.udp / max(1 - kind.tcp, 1e-9), "udp", ""),
    )
    is_icmp = (protocol == "") & (random.random(rules) < 0.1)
    ports = [
        _draw_ports(shares, protocol != "", random) for shares in (kind.source_ports, kind.destination_ports)
    ]
    # specific rules come first, with exceptions, so that rules overlap in depth
    order = np.argsort(-(length + 16 * (ports[1] != "") + random.normal(0, 8, size=rules)), kind="stable")
    matches = []
    for row in order.tolist():
        parts = [
            f"{name}={ipaddress.IPv4Address(int(value[row]))}/{int(bits[row])}"
            for name, (value, bits) in (("ip_src", source), ("ip_dst", destination))
            if bits[row]
        ]
        parts += [protocol[row]] if protocol[row] else ["icmp"] if is_icmp[row] else []
        parts += [
            f"{name}={port_texts[row]}"
            for name, port_texts in zip(("tp_src", "tp_dst"), ports, strict=True)
            if port_texts[row]
        ]
        matches.append(" ".join(parts))
    actions = np.where(random.random(rules) < accept, "out:1", "drop")
    frame = pd.DataFrame({"priority": np.arange(rules, 0.0, -1), "match": matches, "action": actions})
    return frame.drop_duplicates("match", ignore_index=True)


def _draw_prefixes(
    shares: tuple[tuple[int, float], ...], sites: np.ndarray, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and lengths of prefixes in the sites, each (count,)."""
    lengths, weights = np.array(shares).T
    length = random.choice(lengths.astype(np.int64), p=weights / weights.sum(), size=count)
    subnets = random.choice(sites, size=count) | (random.integers(0, 32, size=count) << 8)
    value = subnets | random.integers(0, 256, size=count)
    mask = np.where(length > 0, (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF, 0)
    return value & mask, length


def _draw_ports(
    shares: tuple[float, float, float], has_ports: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return ports in text, (n,): "" for any, a service's port, or a range."""
    count = len(has_ports)
    popular = 1 / np.arange(1, len(SERVICES) + 1)
    service = random.choice([str(port) for port in SERVICES], p=popular / popular.sum(), size=count)
    kinds = random.choice(3, p=np.array(shares) / sum(shares), size=count)
    drawn = np.where(kinds == 0, "", np.where(kinds == 1, service, random.choice(RANGES, size=count)))
    return np.where(has_ports, drawn, "").astype(object)


def draw_flows(
    rules: pd.DataFrame,
    connections: int,
    skew: float,
    random: np.random.Generator,
    *,
    fields: pd.DataFrame | None = None,
    rank: Floats | None = None,
) -> pd.DataFrame:
    """Return connections: a rule by Zipf's law, and a random header that it matches.

    rank  (R,) how popular each rule is, from 1; None: random

    A field that the rule leaves free has random addresses and ports; another field has the value of a rule.
    Where there are types of Ethernet, fields that packets of a type do not have are 0.
    """
    first = make_layout(fields).fields[0].name
    made = FlowTables(rules=rules, fields=fields, flows=pd.DataFrame({"header": [f"{first}=0"]}))
    if rank is None:
        rank = np.asarray(random.permutation(len(rules)) + 1.0, dtype=np.float64)
    popular = rank**-skew
    rule_of = random.choice(len(rules), p=popular / popular.sum(), size=connections)
    layout, full_layout = made.layout, made.whole_layout
    registers = WORD * (full_layout.words - layout.words)
    cubes = [
        [(value >> registers, mask >> registers) for value, mask in full_layout.parse(text)]
        for text in made.matches
    ]
    free = {
        "ip_src": random.integers(0x01000000, 0xDF000000, size=connections),
        "ip_dst": random.integers(0x01000000, 0xDF000000, size=connections),
        "ip_proto": np.where(random.random(connections) < 0.8, 6, 17),
        "tp_src": random.integers(1024, 65536, size=connections),
        "tp_dst": random.choice([*SERVICES, *range(1024, 1100)], size=connections),
    }
    drawn = random.random(connections)
    free = {name: values for name, values in free.items() if name in layout.by_name}
    if "eth_type" in layout.by_name:
        free["eth_type"] = np.full(connections, IPV4)
    others = layout.full_mask(name for name in layout.by_name if name not in free)
    donor = random.integers(len(rules), size=connections) if others else np.zeros(connections, np.int64)
    headers = []
    for row, rule in enumerate(rule_of.tolist()):
        value, mask = cubes[rule][int(drawn[row] * len(cubes[rule]))]
        number = sum(int(free[name][row]) << layout.shift[name] for name in free)
        number |= cubes[donor[row]][0][0] & others
        number = (number & ~mask) | value
        headers.append(layout.format_match(layout.clear_absent(number), layout.full_mask(layout.by_name)))
    packets = np.ceil(random.pareto(1.2, size=connections) * 4 + 1).clip(max=100_000)
    return pd.DataFrame({"header": headers, "packets": packets})


PRESETS: Final = {
    "acl": acl,
    "firewall": firewall,
    "chain": chain,
    "table_1": table_1,
    "frenetic_modules": frenetic_modules,
    "changing_rules": changing_rules,
    "small": small,
}
