"""Names that files and sheets of network tables have elsewhere, such as `Circuits` for links."""

from __future__ import annotations

from typing import Final

LINKS: Final = (
    *("circuits", "lines", "edges", "interfaces", "trunks", "connections", "adjacencies", "spans"),
    *(
        "topology",
        "backbone",
        "network",
        "network links",
        "ip links",
        "link capacity",
        "capacities",
        "fibres",
        "fibers",
        "routes",
        "leased lines",
        "cables",
    ),
    *("leitungen", "verbindungen", "strecken", "kanten", "liens", "liaisons", "enlaces"),
)
DEMANDS: Final = (
    *("traffic matrix", "traffic", "tm", "matrix", "demand matrix", "traffic demand", "traffic flows"),
    *("flows", "commodities", "requirements", "requests", "lsps", "load", "volumes", "rates", "forecast"),
    *(
        "verkehr",
        "verkehrsmatrix",
        "bedarf",
        "trafic",
        "matrice de trafic",
        "demandes",
        "tráfico",
        "demandas",
    ),
)
NODES: Final = (
    "sites",
    "routers",
    "pops",
    "locations",
    "devices",
    "cities",
    "node list",
    "vertices",
    "knoten",
    "standorte",
)
NODE: Final = ("node name", "name", "site", "router", "pop", "device", "hostname", "city", "label", "id")
"""Names of the column of a node's name."""
