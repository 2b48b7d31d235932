"""Synthetic rules of logical networks: a pipeline of tables for each of many logical datapaths (switches).

A packet's logical datapath is a field of metadata that its port gives, as in network virtualization (Pfaff et
al. 2015, 5.3 and 5.5): each table matches the datapath, and one layer of the header.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner_models.flowtables.problem.fields import extend_five_tuple
from planner_models.flowtables.problem.generators import Connections, Seed, Skew
from planner_models.flowtables.problem.problem import FlowTables

Rows = list[tuple[float, float, str, str]]
PORTS = (22, 80, 443, 3306, 8080)
PER_SUBNET = 200


def pipeline(
    *,
    tables: Annotated[int, Field(ge=3, le=64, description="flow tables, one after another")] = 15,
    datapaths: Annotated[int, Field(ge=1, le=1_024, description="logical datapaths")] = 64,
    hosts: Annotated[int, Field(ge=1, le=PER_SUBNET, description="hosts of each logical datapath")] = 8,
    with_acls: Annotated[
        float, Field(ge=0, le=1, description="part of the logical datapaths with rules on ports of TCP")
    ] = 0.5,
    connections: Connections = 8_000,
    skew: Skew = 1.1,
    seed: Seed = 0,
) -> FlowTables:
    """Generate a pipeline of logical datapaths, of which some have access control lists on ports.

    The first table checks the datapath and the last but one delivers to the hosts of its subnet; the last one
    drops what has no host. The tables between are stages that most datapaths pass: a datapath with access
    control lists drops some ports in one of them, and forbids some sources in another one.
    """
    random = np.random.default_rng(seed)
    fields = extend_five_tuple("metadata", 16, "metadata")
    rows: Rows = []
    last = tables - 1
    has_acl = np.zeros(datapaths, dtype=bool)
    has_acl[random.permutation(datapaths)[: round(with_acls * datapaths)]] = True
    subnets = [ipaddress.IPv4Address(0x0A000000 + 256 * datapath) for datapath in range(datapaths)]
    for datapath in range(datapaths):
        match = f"metadata={datapath + 1}"
        rows.append((0.0, 10.0, match, "goto:1"))
        if has_acl[datapath]:
            rows += _draw_acl(match, last, random)
        for host in range(hosts):
            address = subnets[datapath] + 1 + host
            rows.append((last - 1.0, 10.0, f"{match} ip_dst={address}", f"out:{datapath * hosts + host + 1}"))
        rows.append((last - 1.0, 1.0, match, f"goto:{last}"))
    rows += [(float(table), 0.0, "", f"goto:{table + 1}") for table in range(1, last - 1)]
    rows.append((float(last), 0.0, "", "drop"))
    rules = pd.DataFrame(rows, columns=["table", "priority", "match", "action"])
    rank = np.arange(1, datapaths + 1) ** -skew
    datapath_of = random.choice(datapaths, p=rank / rank.sum(), size=connections)
    source, target = (random.integers(1, hosts + 1, size=connections) for _ in range(2))
    ports = random.integers(1024, 65_536, size=connections)
    services = random.choice(PORTS, size=connections)
    flows = pd.DataFrame(
        {
            "header": [
                f"metadata={datapath + 1} tcp ip_src={subnets[datapath] + source_host} "
                f"ip_dst={subnets[datapath] + other} "
                f"tp_src={port} tp_dst={service}"
                for datapath, source_host, other, port, service in zip(
                    datapath_of.tolist(), source.tolist(), target.tolist(), ports.tolist(), services.tolist(),
                    strict=True,
                )
            ],
            "packets": np.ceil(random.pareto(1.2, size=connections) * 4 + 1).clip(max=100_000),
        }
    )  # fmt: skip
    return FlowTables(rules=rules, fields=fields, flows=flows)


def _draw_acl(match: str, last: int, random: np.random.Generator) -> Rows:
    """Return rules of a logical datapath in two tables between the first and the last but one."""
    first = int(random.integers(1, last - 1))
    second = int(random.integers(1, last - 1))
    dropped = random.choice(PORTS, size=2, replace=False)
    rows: Rows = [(float(first), 20.0, f"{match} tcp tp_dst={port}", "drop") for port in dropped.tolist()]
    source = ipaddress.IPv4Address(0x0A000000) + int(random.integers(0, 2**16))
    rows.append((float(second), 30.0, f"{match} ip_src={source}", "drop"))
    return rows
