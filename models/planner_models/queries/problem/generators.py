"""Presets: made-up problems of system `queries`, and the queries that Foster et al. 2013 print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner_models.queries.problem.problem import Monitoring
from planner_models.queries.problem.schema import BYTES, COUNTS, PACKETS, QUERIES

Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of each switch."""

    rules: Annotated[
        int, Field(ge=0, le=1_000_000, description="rules with wildcards that fit into each switch")
    ] = 300
    exact_rules: Annotated[
        int, Field(ge=0, le=1_000_000, description="rules of whole headers that fit into each switch")
    ] = 100
    packets_per_s: Annotated[
        float, Field(ge=0, le=1e9, description="packets a second that each switch may send to the controller")
    ] = 2.0
    polls_per_s: Annotated[
        float, Field(ge=0, le=1e9, description="counters a second that are read of each switch")
    ] = 1.5
    pipeline: Annotated[bool, Field(description="whether each query has a table of its own")] = False


WEB_PORTS: Final = (80, 443)
OTHER_PORTS: Final = (22, 25, 53, 123, 3306, 8080)


WEB: Final = "tp_dst=80 | tp_dst=443"
Row = Mapping[str, object]


def _count(query: str, select: str, where: str = "", group_by: str = "", **others: float) -> Row:
    return {"query": query, "select": select, "where": where, "group_by": group_by, **others}


def _select(query: str, where: str = "", group_by: str = "", split_when: str = "", **others: float) -> Row:
    return {**_count(query, PACKETS, where, group_by, **others), "split_when": split_when}


FRENETIC_QUERIES: Final = (
    _count("web monitor", BYTES, "inport=2 & srcport=80", every_s=30.0),
    _count("traffic histogram", BYTES, "inport=2 & srcport=80", "srcip", every_s=60.0),
    _select("MAC learning", "", "srcmac", "inport", limit=1.0),
    _count("web but one host", BYTES, "srcip!=1.2.3.4 & srcport=80", every_s=60.0),
)
"""The queries of Foster et al. 2013, II and III, and one of its predicates."""
SMALL_QUERIES: Final = (
    _count("web", BYTES, WEB, every_s=10.0, longest_s=40.0),
    _count("hosts", COUNTS, "", "ip_src", every_s=60.0, weight=2.0),
    _select("names", "udp & tp_dst=53"),
    _select("new hosts", "", "eth_src", "in_port", limit=1.0),
    _count("odd", COUNTS, "ip_dst=10.*.0.1", every_s=60.0),
)
EDGE_QUERIES: Final = (
    _count("all traffic", BYTES, every_s=10.0, longest_s=40.0, weight=2.0),
    _count("web", BYTES, WEB, every_s=30.0, longest_s=120.0),
    _count("web by host", BYTES, WEB, "ip_src", every_s=60.0, longest_s=240.0, weight=3.0),
    _count("top destinations", COUNTS, "", "ip_dst", every_s=60.0, longest_s=240.0, weight=2.0),
    _count("pairs of hosts", BYTES, "", "ip_src ip_dst", every_s=60.0, longest_s=480.0),
    _count("racks", BYTES, "ip_dst=10.0.0.0/13", "ip_dst/16", every_s=30.0, longest_s=60.0, weight=2.0),
    _select("name requests", "udp & tp_dst=53"),
    _select("logins", "tcp & tp_dst=22", "ip_src ip_dst", limit=1.0, weight=2.0),
    _select("MAC learning", "", "eth_src", "in_port", limit=1.0, weight=4.0),
    _count("databases", COUNTS, "tp_dst=3306 & ip_src!=10.0.0.1", every_s=30.0, longest_s=60.0),
    _count("gateways", COUNTS, "ip_dst=10.*.0.1", every_s=60.0, longest_s=240.0),
    _count("mail or time", COUNTS, f"!({WEB}) & (tp_dst=25 | tp_dst=123)", every_s=60.0, longest_s=240.0),
)
"""What operators of edge switches ask."""


def tabulate_queries(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the table of some queries, with blank cells for absent values."""
    frame = pd.DataFrame([dict(row) for row in rows])
    for name, column in QUERIES.columns.items():
        if name not in frame:
            frame[name] = (
                "" if column.is_label else (column.default if column.default is not None else np.nan)
            )
        elif column.is_label:
            frame[name] = frame[name].fillna("")
        elif column.default is not None:
            frame[name] = frame[name].fillna(column.default)
    return frame[list(QUERIES.columns)]


def frenetic(
    *,
    hosts: Annotated[int, Field(ge=1, le=1_000, description="hosts behind port 2 of the switch")] = 20,
    packets: Annotated[int, Field(ge=1, le=1_000, description="packets of each connection")] = 20,
    seed: Seed = 1,
) -> Monitoring:
    """Build the paper's repeater, and its queries: web traffic, a histogram by source, and MAC learning."""
    random = np.random.default_rng(seed)
    queries = tabulate_queries(FRENETIC_QUERIES)
    rows = []
    for host in range(hosts):
        address = "1.2.3.4" if host == 0 else f"10.0.{host // 250}.{host % 250 + 1}"
        mac = f"02:00:00:00:{host // 256:02x}:{host % 256:02x}"
        for port in (80, int(random.choice(OTHER_PORTS))):
            header = f"in_port=2 eth_src={mac} ip_src={address} ip_dst=10.1.0.1 tcp_src={port} tcp_dst=40000"
            rows.append((header, float(random.uniform(0, 60)), float(random.uniform(10, 120))))
    server = "in_port=1 eth_src=02:00:00:01:00:00 ip_src=10.1.0.1 ip_dst=10.0.0.2 tcp_src=40000 tcp_dst=80"
    rows.append((server, 0.0, 170.0))
    # the first host moves to port 1
    rows.append((rows[0][0].replace("in_port=2", "in_port=1"), 200.0, 20.0))
    return Monitoring(
        queries=queries,
        switches=_tabulate_switches(
            ["s1"], rules=200, exact_rules=1_000, packets_per_s=10.0, polls_per_s=10.0
        ),
        flows=pd.DataFrame(
            [("s1", header, packets, 800.0, start, length) for header, start, length in rows],
            columns=["switch", "header", "packets", "packet_bytes", "start_s", "length_s"],
        ),
        controller=pd.DataFrame({"round_trip_ms": [2.5], "duration_s": [240.0]}),
        rules=pd.DataFrame(
            [(1.0, "in_port=1", "out:2", 0.0), (1.0, "in_port=2", "out:1", 0.0)],
            columns=["priority", "match", "action", "table"],
        ),
    )


@spread(limits=Limits())
def edge(
    *,
    switches: Annotated[int, Field(ge=1, le=200, description="number of switches")] = 4,
    hosts: Annotated[int, Field(ge=2, le=200, description="hosts at each switch")] = 30,
    connections: Annotated[int, Field(ge=1, le=100_000, description="connections at each switch")] = 150,
    limits: Limits,
    seed: Seed = 1,
) -> Monitoring:
    """Build edge switches with routes to racks, connections of hosts, and twelve queries of operators.

    Sizes of connections are geometric, and destinations Zipf-distributed.
    """
    random = np.random.default_rng(seed)
    names = [f"edge {number + 1}" for number in range(switches)]
    rows = [
        (name, *_draw_connection(number, hosts, random))
        for number, name in enumerate(names)
        for _ in range(connections)
    ]
    flows = pd.DataFrame(rows, columns=["switch", "header", "packets", "packet_bytes", "start_s", "length_s"])
    routes = [(2.0, f"ip_dst=10.{rack}.0.0/16", f"out:{rack + 1}", 0.0) for rack in range(8)]
    return Monitoring(
        queries=tabulate_queries(EDGE_QUERIES),
        switches=_tabulate_switches(
            names,
            **{name: float(value) for name, value in vars(limits).items()},
        ),
        flows=flows,
        controller=pd.DataFrame({"round_trip_ms": [2.5], "duration_s": [300.0]}),
        rules=pd.DataFrame(
            [*routes, (1.0, "", "out:9", 0.0)], columns=["priority", "match", "action", "table"]
        ),
    )


def small(*, seed: Seed = 1) -> Monitoring:
    """Build two switches, a few hosts and five queries, for which no switch holds all."""
    made = edge(
        switches=2,
        hosts=4,
        connections=10,
        rules=20,
        exact_rules=8,
        packets_per_s=0.2,
        polls_per_s=0.1,
        seed=seed,
    )
    queries = tabulate_queries(SMALL_QUERIES)
    rules = pd.DataFrame(
        [(2.0, "ip_dst=10.0.0.0/16", "out:1", 0.0), (1.0, "", "out:9", 0.0)],
        columns=["priority", "match", "action", "table"],
    )
    return Monitoring(
        queries=queries, switches=made.switches, flows=made.flows, controller=made.controller, rules=rules
    )


def _draw_connection(
    switch: int, hosts: int, random: np.random.Generator
) -> tuple[str, float, float, float, float]:
    """Return header, packets, size, start and length of a connection of a switch."""
    host = int(random.integers(hosts))
    rack = int(min(random.zipf(1.5), 8)) - 1
    web = random.random() < 0.6
    port = int(random.choice(WEB_PORTS if web else OTHER_PORTS))
    protocol = "udp" if port in (53, 123) else "tcp"
    packets = float(min(random.geometric(0.1), 200))
    start = round(float(random.uniform(0, 280)), 3)
    # a few hosts move to another port in time
    in_port = host % 40 + 1 if host % 7 or start < 150 else 41
    source, target = int(random.integers(32_768, 61_000)), int(random.integers(1, 20))
    header = (
        f"in_port={in_port} eth_src=02:00:00:00:{switch:02x}:{host:02x} "
        f"ip_src=10.{switch % 8}.{switch // 8}.{host + 1} ip_dst=10.{rack}.0.{target} "
        f"{protocol}_src={source} {protocol}_dst={port}"
    )
    size = float(random.choice((64.0, 400.0, 1_400.0)))
    return (
        header,
        packets,
        size,
        start,
        round(float(random.uniform(0, 300 - start)), 3) if packets > 1 else 0.0,
    )


def _tabulate_switches(names: list[str], **limits: float) -> pd.DataFrame:
    frame = pd.DataFrame({"switch": names, **{name: float(value) for name, value in limits.items()}})
    return frame if "pipeline" in frame else frame.assign(pipeline=0.0)


PRESETS: Final[dict[str, Callable[..., Monitoring]]] = {"edge": edge, "frenetic": frenetic, "small": small}
