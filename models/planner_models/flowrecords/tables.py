"""Tables of a user beside flow records: prefixes of nodes, exporters, and ports of traffic classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import pandas as pd
from pydantic import Field

from planner.contract.table import Table, label, number
from planner.errors import InputError
from planner.io.table_files import read_table

PREFIXES: Final = Table(
    name="prefixes",
    about="addresses of a node",
    columns={
        "prefix": label(
            "IPv4 or IPv6 prefix, such as 10.1.0.0/16; 0.0.0.0/0 is all others",
            other_names=("network", "subnet", "cidr"),
        ),
        "node": label("node where they are", other_names=("site", "pop", "router", "rack", "location")),
    },
)
EXPORTERS: Final = Table(
    name="exporters",
    about="a router that exports records, or one of its interfaces",
    columns={
        "exporter": label("its address in the records"),
        "input": number("interface at which traffic enters; blank: all", at_least=0, whole=True,
                        optional=True, may_be_blank=True),
        "sampling": number("one packet of so many is counted; blank: as the records say", at_least=1,
                           at_most=1e9, whole=True, optional=True, may_be_blank=True),
        "node": label("node where traffic of addresses without a prefix enters here; blank: none",
                      optional=True, may_be_blank=True),
        "boundary": label("external: traffic enters the network here; internal: it is inside", optional=True),
    },
)  # fmt: skip
PORTS: Final = Table(
    name="ports",
    about="a port whose traffic is of a class",
    columns={
        "protocol": label("its name or number, such as tcp"),
        "target_port": number("the port", at_least=0, at_most=65535, whole=True),
        "class": label("traffic class of flows to it, and of answers from it"),
    },
)
COUNTERS: Final = Table(
    name="counters",
    about="bytes that the interface counters of a node have counted in the time of the records",
    columns={
        "node": label("the node", other_names=("site", "pop", "router", "rack", "location")),
        "sent_bytes": number(
            "bytes that enter the network here, as SNMP has them", at_least=0, may_be_blank=True
        ),
        "received_bytes": number("bytes that leave it here", at_least=0, may_be_blank=True, optional=True),
    },
)
BOUNDARIES: Final = ("external", "internal")

PrefixFile = Annotated[Path, Field(description="table prefix, node: addresses of each node, longest match")]
ExporterFile = Annotated[
    Path | None,
    Field(description="table exporter, input?, sampling?, node?, boundary? (external or internal)"),
]
PortFile = Annotated[Path | None, Field(description="table protocol, target_port, class of demands")]

CounterFile = Annotated[
    Path | None,
    Field(description="table node, sent_bytes, received_bytes? of interface counters, to check the records"),
]


def read_optional(table: Table, path: Path | None) -> pd.DataFrame | None:
    """Return a table in a file, or None without one."""
    if path is None:
        return None
    frame = read_table(table, path)
    if table is EXPORTERS and "boundary" in frame:
        wrong = frame.loc[~frame["boundary"].isin(BOUNDARIES), "boundary"]
        if len(wrong):
            raise InputError(f"{path.name}: boundary is '{wrong.iloc[0]}', must be external or internal")
    return frame
