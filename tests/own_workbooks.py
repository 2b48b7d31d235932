"""Workbooks as people have them: titles, units, sums, notes, matrices, words for no number, other languages.

Each is the sheets of a workbook, what is typed to the questions that it leaves open, and what it means.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import openpyxl

Sheets = Mapping[str, Sequence[Sequence[Any]]]

CIRCUITS: Final = (
    ("London", "Paris", 100, "LON-PAR-1", 7.2),
    ("Paris", "Frankfurt", 100, "PAR-FRA-1", 9.1),
    ("London", "Amsterdam", 100, "LON-AMS-1", 5.5),
    ("Amsterdam", "Frankfurt", 100, "AMS-FRA-1", 6.3),
    ("Paris", "Madrid", 40, "PAR-MAD-1", 17),
)
TRAFFIC: Final = (
    ("London", "Paris", 4.2),
    ("London", "Frankfurt", 21.3),
    ("Paris", "London", 11.8),
    ("Madrid", "Frankfurt", 23.5),
    ("Amsterdam", "Madrid", 2.6),
)
CIRCUIT_NAMES: Final = ("From", "To", "Bandwidth (Gbps)", "Circuit ID", "Latency ms")
TRAFFIC_NAMES: Final = ("Source", "Destination", "Peak Gbps")
CIRCUITS_SHEET: Final = (CIRCUIT_NAMES, *CIRCUITS)
TRAFFIC_SHEET: Final = (TRAFFIC_NAMES, *TRAFFIC)
OF_CIRCUITS: Final = {"links.capacity_mbps": 440_000.0, "demands.rate_mbps": 63_400.0}
"""Sums of the columns of those circuits, each a line one way in the table, and of that traffic."""
MATRIX: Final = {"links.capacity_mbps": 440_000.0, "demands.rate_mbps": 15_000.0}


@dataclass(frozen=True, kw_only=True)
class OwnWorkbook:
    """A workbook: its sheets, the system that it is a problem of, and sums of columns of ours.

    sums      sum of the numbers in columns of the tables, as read
    rows      number of rows of tables, as read
    first     texts in the first row of tables
    answers   answers to questions, by the parameter that a question is about; the last resort is the first
    """

    system: str
    sheets: Callable[[], Sheets]
    sums: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)


def save(sheets: Sheets, path: Path) -> None:
    """Write sheets as a workbook; a sheet whose name begins with a point is hidden."""
    book = openpyxl.Workbook()
    for index, (name, rows) in enumerate(sheets.items()):
        sheet = book.active if index == 0 else book.create_sheet()
        assert sheet is not None
        sheet.title = name.removeprefix(".")
        if name.startswith("."):
            sheet.sheet_state = "hidden"
        for row in rows:
            sheet.append(list(row))
    book.save(path)


def _traffic(sheets: Sheets, **more: Any) -> OwnWorkbook:
    return OwnWorkbook(**{"system": "traffic", "sheets": lambda: sheets, "sums": OF_CIRCUITS, **more})


def _samples() -> list[tuple[datetime.datetime, int, int]]:
    start = datetime.datetime(2026, 3, 1)
    return [(start + datetime.timedelta(minutes=5 * step), 100 + step, 200 - step) for step in range(40)]


def _contracts(price: Callable[[float], Any]) -> list[tuple[Any, ...]]:
    return [
        ("Akamai", "EU", "95th percentile", price(0.8), 10, 20),
        ("Akamai", "US", "95th percentile", price(0.9), 10, 20),
        ("Fastly", "EU", "average", price(0.7), 10, None),
        ("Fastly", "US", "average", price(0.7), 10, "n/a"),
    ]


BOOKS: Final[Mapping[str, OwnWorkbook]] = {
    "as it is": _traffic({"Circuits": CIRCUITS_SHEET, "Traffic matrix": TRAFFIC_SHEET}),
    "titles above": _traffic(
        {
            "Circuits": [("Core backbone Q3 2026",), (), *CIRCUITS_SHEET],
            "Traffic matrix": [("Peak hour", None, "week 32"), (), *TRAFFIC_SHEET],
        }
    ),
    "notes below": _traffic(
        {
            "Circuits": [*CIRCUITS_SHEET, (), ("Note: all circuits are leased until 2027",)],
            "Traffic matrix": [*TRAFFIC_SHEET, ("Source: NetFlow, week 32",)],
        }
    ),
    "sums below": _traffic(
        {
            "Circuits": [*CIRCUITS_SHEET, ("Total", None, 440)],
            "Traffic matrix": [*TRAFFIC_SHEET, (None, None, 63.4)],
        }
    ),
    "empty rows": _traffic(
        {
            "Circuits": [(), (), *CIRCUITS_SHEET[:3], (), *CIRCUITS_SHEET[3:]],
            "Traffic matrix": [*TRAFFIC_SHEET[:3], (), *TRAFFIC_SHEET[3:], ()],
        }
    ),
    "units below the header": _traffic(
        {
            "Links": [
                ("A end", "Z end", "Capacity", "Latency"),
                ("", "", "Gbit/s", "ms"),
                *[(tail, head, capacity, delay) for tail, head, capacity, _, delay in CIRCUITS],
            ],
            "Demands": [("Source", "Target", "Rate"), ("-", "-", "[Gbps]"), *TRAFFIC],
        }
    ),
    "units in cells": _traffic(
        {
            "Edges": [
                ("Node A", "Node B", "Speed"),
                *[(tail, head, f"{capacity}G") for tail, head, capacity, *_ in CIRCUITS],
            ],
            "Flows": [
                ("Src", "Dst", "Volume"),
                *[(*ends, f"{rate * 1000:.0f}M") for *ends, rate in TRAFFIC[:4]],
                ("Amsterdam", "Madrid", "2.6 Gbps"),
            ],
        }
    ),
    "units in the title": _traffic(
        {
            "Circuits": [
                ("All rates in Gbps",),
                ("From", "To", "Bandwidth"),
                *[row[:3] for row in CIRCUITS],
            ],
            "Traffic (Gbps)": [("Source", "Destination", "Peak"), *TRAFFIC],
        }
    ),
    "no unit at all": _traffic(
        {
            "Circuits": [("From", "To", "Bandwidth"), *[row[:3] for row in CIRCUITS]],
            "Traffic matrix": [("Source", "Destination", "Peak"), *TRAFFIC],
        },
        answers={"unit": "Gbit/s"},
    ),
    "a unit is the name": _traffic(
        {
            "Links": [("From", "To", "Gbps"), *[row[:3] for row in CIRCUITS]],
            "Demands": [("From", "To", "Mbit/s"), *[(*ends, rate * 1000) for *ends, rate in TRAFFIC]],
        }
    ),
    "words for no number": _traffic(
        {
            "Topology": [
                *CIRCUITS_SHEET[:-1],
                ("Paris", "Madrid", "40 Gbps", "n/a", "n/a"),
            ],
            "TM": [*TRAFFIC_SHEET, ("Madrid", "London", "n/a"), ("Madrid", "Paris", "-")],
        },
        rows={"demands": 5},
    ),
    "an unlimited link": _traffic(
        {
            "Links": [*CIRCUITS_SHEET[:-1], ("Paris", "Madrid", "unlimited", "PAR-MAD-1", 17)],
            "Demands": TRAFFIC_SHEET,
        },
        sums={"demands.rate_mbps": 63_400.0},
    ),
    "upper triangle": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Traffic": [
                ("Gbps", "London", "Paris", "Frankfurt"),
                ("London", None, 4, 5),
                ("Paris", None, None, 6),
                ("Frankfurt",),
            ],
        },
        sums=MATRIX,
    ),
    "a matrix below titles": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Traffic matrix": [
                ("Peak hour traffic in Gbps",),
                (),
                ("from / to", "London", "Paris", "Frankfurt"),
                ("London", "-", 4, 5),
                ("Paris", 1, "-", 3),
                ("Frankfurt", 1, 1, "n/a"),
            ],
        },
        sums=MATRIX,
    ),
    "a matrix with sums": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Demand Matrix (Gbps)": [
                ("", "London", "Paris", "Frankfurt", "Total"),
                ("London", 0, 4, 5, 9),
                ("Paris", 1, 0, 3, 4),
                ("Frankfurt", 1, 1, 0, 2),
                ("Total", 2, 5, 8, 15),
            ],
        },
        sums=MATRIX,
    ),
    "a matrix with units in cells": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "TM": [
                ("", "London", "Paris", "Frankfurt"),
                ("London", "x", "4G", "500M"),
                ("Paris", "1 Gbps", "x", "3 Gbps"),
                ("Frankfurt", "5.5G", "1G", "x"),
            ],
        },
        sums=MATRIX,
    ),
    "German, with decimal commas": _traffic(
        {
            "Leitungen": [
                ("Von", "Nach", "Bandbreite (Gbit/s)", "Latenz (ms)"),
                ("Berlin", "Köln", "10,5", "7,2"),
                ("Köln", "Ulm", "100,0", "3,1"),
            ],
            "Verkehr": [("Quelle", "Ziel", "Rate (Gbit/s)"), ("Berlin", "Ulm", "2,5")],
        },
        sums={"links.capacity_mbps": 110_500.0, "demands.rate_mbps": 2_500.0},
    ),
    "commas between thousands": _traffic(
        {
            "Links": [
                ("From", "To", "Capacity (Mbps)"),
                ("New York", "Boston", "10,000"),
                ("Boston", "Los Angeles", "100,000"),
            ],
            "Demands": [("From", "To", "Demand (Mbps)"), ("New York", "Los Angeles", "1,200")],
        },
        sums={"links.capacity_mbps": 110_000.0, "demands.rate_mbps": 1_200.0},
        answers={"decimal": "."},
    ),
    "names of ends twice": _traffic(
        {
            "Links": [
                ("Router", "Interface", "Router", "Interface", "Capacity Gbps"),
                ("lon1", "1/1", "par1", "1/2", 100),
                ("par1", "1/3", "mad1", "2/2", 40),
            ],
            "Demands": [TRAFFIC_NAMES, ("lon1", "par1", 3), ("lon1", "mad1", 5)],
        },
        sums={"links.capacity_mbps": 140_000.0, "demands.rate_mbps": 8_000.0},
    ),
    "groups above the header": _traffic(
        {
            "Links": [
                ("A end", None, "Z end", None, None),
                ("Router", "Port", "Router", "Port", "Speed (Gbps)"),
                ("lon1", "1/1", "par1", "1/2", 100),
                ("par1", "1/3", "mad1", "2/2", 40),
            ],
            "Demands": [TRAFFIC_NAMES, ("lon1", "par1", 3), ("lon1", "mad1", 5)],
        },
        sums={"links.capacity_mbps": 140_000.0, "demands.rate_mbps": 8_000.0},
    ),
    "ports, dates and percent": _traffic(
        {
            "Links": [
                ("A-End Site", "A-End Port", "Z-End Site", "Z-End Port", "Speed (G)", "Use %", "Installed"),
                ("London", "0/1", "Paris", "0/2", 100, "45%", datetime.datetime(2024, 3, 1)),
                ("Paris", "0/3", "Madrid", "0/2", 40, "25%", datetime.datetime(2023, 3, 1)),
            ],
            "Traffic Demands": [
                ("From site", "To site", "Demand (G)"),
                ("London", "Paris", 3),
                ("London", "Madrid", 5),
            ],
        },
        sums={"links.capacity_mbps": 140_000.0, "demands.rate_mbps": 8_000.0},
    ),
    "sites beside them": _traffic(
        {
            "Sites": [
                ("Site", "Country", "Latitude", "Longitude"),
                ("LON", "UK", 51.5, -0.1),
                ("PAR", "FR", 48.8, 2.3),
            ],
            "WAN links": [
                ("Site A", "Site B", "Bandwidth", "Length (km)", "Monthly cost (EUR)"),
                ("LON", "PAR", "10 Gbps", 450, "2,100"),
            ],
            "Traffic (peak)": [("Site A", "Site B", "Mbit/s"), ("LON", "PAR", 3000), ("PAR", "LON", 400)],
        },
        sums={"links.capacity_mbps": 10_000.0, "demands.rate_mbps": 3_400.0, "nodes.latitude": 100.3},
    ),
    "an inventory": _traffic(
        {
            ".Lists": [("Status",), ("active",), ("planned",)],
            "Link inventory": [
                ("Link", "A", "Z", "Line rate (Gb/s)", "Max utilization"),
                *[(name, tail, head, capacity, 0.8) for tail, head, capacity, name, _ in CIRCUITS],
            ],
            "Demand list": [
                ("Demand ID", "Ingress PE", "Egress PE", "Bandwidth (Mbit/s)", "Priority"),
                *[(f"d{index}", *ends, rate * 1000, "high") for index, (*ends, rate) in enumerate(TRAFFIC)],
            ],
        }
    ),
    "sheets without names": _traffic({"Sheet1": CIRCUITS_SHEET, "Sheet2": TRAFFIC_SHEET}),
    "beside and below the corner": _traffic(
        {
            "Circuits": [(None, None, *row) for row in CIRCUITS_SHEET],
            "Traffic": [
                (),
                *[("#" if row is TRAFFIC_NAMES else index, *row) for index, row in enumerate(TRAFFIC_SHEET)],
            ],
        }
    ),
    "names in other letters": _traffic(
        {
            "Circuits": [CIRCUIT_NAMES, *[(f"{tail} ", *row) for tail, *row in CIRCUITS]],
            "Traffic matrix": [
                TRAFFIC_NAMES,
                *[(a.lower(), f" {b.upper()}", rate) for a, b, rate in TRAFFIC],
            ],
        },
        rows={"nodes": 5},
    ),
    "marks of footnotes": _traffic(
        {
            "Circuits": [
                CIRCUIT_NAMES,
                *[(f"{tail}*", *row) if tail == "Amsterdam" else (tail, *row) for tail, *row in CIRCUITS],
                (),
                ("* leased until 2027",),
            ],
            "Traffic matrix": TRAFFIC_SHEET,
        },
        rows={"nodes": 5},
    ),
    "bytes by the case of a letter": _traffic(
        {
            "Circuits": [
                ("From", "To", "Capacity (MBps)"),
                *[(tail, head, capacity * 125) for tail, head, capacity, *_ in CIRCUITS],
            ],
            "Traffic matrix": [
                ("Source", "Destination", "Rate (mbps)"),
                *[(*ends, rate * 1000) for *ends, rate in TRAFFIC],
            ],
        }
    ),
    "merged cells": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Traffic matrix": [
                TRAFFIC_NAMES,
                ("London", "Paris", 4.2),
                (None, "Frankfurt", 21.3),
                ("Paris", "London", 11.8),
                (None, "Madrid", 26.1),
            ],
        }
    ),
    "several tables in a sheet": _traffic(
        {
            "Network": [
                ("Circuits",),
                *CIRCUITS_SHEET,
                (),
                ("Traffic matrix",),
                *TRAFFIC_SHEET,
                (),
                ("Read me: made by hand",),
            ]
        }
    ),
    "two forecasts": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Demands": [
                ("Source", "Destination", "2026 Gbps", "2027 Gbps"),
                *[(*row, row[2] * 1.3) for row in TRAFFIC],
            ],
        },
        answers={"column": "2026 Gbps"},
    ),
    "neighbours, speeds of Ethernet, two rates": _traffic(
        {
            "Interfaces": [
                ("Router", "Neighbor", "Speed"),
                *[(tail, head, f"{capacity}GE") for tail, head, capacity, *_ in CIRCUITS],
            ],
            "Flows": [
                ("Source node", "Destination node", "Average rate (Mb/s)", "Peak rate (Mb/s)"),
                *[(*ends, rate * 600, rate * 1000) for *ends, rate in TRAFFIC],
            ],
        },
        answers={"column": "Peak rate (Mb/s)"},
    ),
    "both ends in one column": _traffic(
        {
            "Circuits": [
                ("Circuit", "Bandwidth (Gbps)"),
                *[(f"{tail} - {head}", capacity) for tail, head, capacity, *_ in CIRCUITS],
            ],
            "Traffic": [("Relation", "Gbps"), *[(f"{tail} → {head}", rate) for tail, head, rate in TRAFFIC]],
        }
    ),
    "both ends in one column, with signs of names": _traffic(
        {
            "Sites": [("Site", "Country"), ("Aix-en-Provence", "FR"), ("Lyon", "FR"), ("Paris", "FR")],
            "Circuits": [("Link", "Gbps"), ("Aix-en-Provence-Lyon", 100), ("Lyon-Paris", 40), ("Total", 140)],
            "Traffic": [("Flow", "Gbps"), ("Aix-en-Provence-Paris", 2), ("Paris-Lyon", 3)],
        },
        sums={"links.capacity_mbps": 140_000, "demands.rate_mbps": 5_000},
        rows={"nodes": 3, "demands": 2},
    ),
    "two tables side by side": _traffic(
        {
            "Network": [
                ("Circuits", None, None, None, "Traffic"),
                ("From", "To", "Gbps", None, "From", "To", "Gbps"),
                ("London", "Paris", 100, None, "London", "Frankfurt", 20),
                ("Paris", "Frankfurt", 100, None, "Paris", "London", 5),
                ("London", "Amsterdam", 40),
            ]
        },
        sums={"links.capacity_mbps": 240_000, "demands.rate_mbps": 25_000},
        rows={"demands": 2},
    ),
    "a capacity for each direction": _traffic(
        {
            "Circuits": [
                ("A end", "Z end", "Capacity A→Z (Gbps)", "Capacity Z→A (Gbps)"),
                ("London", "Paris", 100, 50),
                ("Paris", "Frankfurt", 100, None),
                ("London", "Frankfurt", 10, 20),
            ],
            "Traffic": [("From", "To", "In (Gbps)", "Out (Gbps)"), ("London", "Frankfurt", 2, 20)],
        },
        sums={"links.weight": 5, "demands.rate_mbps": 22_000},
        rows={"links": 5, "demands": 2},
    ),
    "uplink and downlink": _traffic(
        {
            "Links": [
                ("Site A", "Site B", "Up (Mbps)", "Down (Mbps)"),
                ("London", "Paris", 100, 50),
                ("Paris", "Frankfurt", 100, 40),
            ],
            "Traffic": [("From", "To", "Mbps"), ("London", "Frankfurt", 20)],
        },
        sums={"links.weight": 4, "demands.rate_mbps": 20},
        rows={"links": 4},
    ),
    "routers of sites, with addresses": _traffic(
        {
            "Links": [
                *[("A Site", "A Router", "A Interface", "A IP", "Z Site", "Z Router", "Z Interface", "Gbps")],
                ("London", "lon1", "xe-0/0/0", "10.0.0.1/31", "Paris", "par1", "xe-0/0/1", 100),
                ("London", "lon2", "xe-0/0/0", "10.0.0.3/31", "Paris", "par1", "xe-0/0/2", 100),
            ],
            "Traffic": [TRAFFIC_NAMES, ("lon1", "par1", 20)],
        },
        sums={"links.capacity_mbps": 200_000, "demands.rate_mbps": 20_000},
        rows={"nodes": 3},
    ),
    "German, a matrix, terabits, a title": _traffic(
        {
            "Strecken": [
                ("Backbone 2026 (Stand Juni)",),
                ("Anfangsknoten", "Endknoten", "Kapazität [Tbit/s]", "Laufzeit [ms]", "Bemerkung"),
                *[(*ends, capacity / 1000, delay, "ok") for *ends, capacity, _, delay in CIRCUITS],
            ],
            "Verkehrsmatrix": [
                ("von \\ nach [Gbit/s]", "London", "Paris", "Frankfurt"),
                ("London", "–", 4, 5),
                ("Paris", 1, "–", 3),
                ("Frankfurt", 1, 1, "–"),
            ],
        },
        sums={**MATRIX, "links.latency_ms": 90.2},
    ),
    "French": _traffic(
        {
            "Liens": [
                ("Extrémité A", "Extrémité B", "Débit (Gbit/s)", "Délai (ms)"),
                *[(*ends, capacity, delay) for *ends, capacity, _, delay in CIRCUITS],
            ],
            "Matrice de trafic": [
                ("Origine", "Destination", "Débit crête (Mbit/s)"),
                *[(*ends, rate * 1000) for *ends, rate in TRAFFIC],
            ],
        },
        sums={**OF_CIRCUITS, "links.latency_ms": 90.2},
    ),
    "Spanish": _traffic(
        {
            "Enlaces": [
                ("Origen", "Destino", "Capacidad (Gbps)", "Retardo (ms)"),
                *[(*ends, capacity, delay) for *ends, capacity, _, delay in CIRCUITS],
            ],
            "Tráfico": [("Origen", "Destino", "Tráfico (Gbps)"), *TRAFFIC],
        },
        sums={**OF_CIRCUITS, "links.latency_ms": 90.2},
    ),
    "several lines as 4x10G, 1.5T, unlimited, without units in names": _traffic(
        {
            "Backbone trunks": [
                ("Endpoint 1", "Endpoint 2", "Provisioned", "RTT"),
                ("London", "Paris", "1.5T", "8 ms"),
                ("Paris", "Frankfurt", "400GbE", "n/a"),
                ("London", "Frankfurt", "4x10G", "12 ms"),
                ("Frankfurt", "Madrid", "unlimited", "12 ms"),
            ],
            "Offered load": [
                ("Ingress", "Egress", "95th percentile"),
                ("London", "Frankfurt", "21.5 Gbps"),
                ("London", "Paris", "12G"),
                ("Paris", "London", "n/a"),
            ],
        },
        sums={"links.capacity_mbps": 1e12 + 1_940_000, "demands.rate_mbps": 33_500},
        rows={"demands": 2},
    ),
    "a unit alone below a group": _traffic(
        {
            "Topology": [
                ("A-End", None, "Z-End", None, "Circuit"),
                ("PoP", "Device", "PoP", "Device", "Gbps"),
                *[(tail, f"{tail} 1", head, f"{head} 1", capacity) for tail, head, capacity, *_ in CIRCUITS],
            ],
            "TM": [TRAFFIC_NAMES, *[(f"{tail} 1", f"{head} 1", rate) for tail, head, rate in TRAFFIC]],
        },
        rows={"nodes": 5},
    ),
    "names A and B, side by side, below a title": _traffic(
        {
            "Plan": [
                ("Network plan v7",),
                (),
                ("LINKS", None, None, None, "DEMANDS"),
                ("A", "B", "Capacity [G]", None, "Src", "Dst", "Rate [G]"),
                *[(*row[:3], None, *rate) for row, rate in zip(CIRCUITS, TRAFFIC, strict=True)],
                ("Total", None, 440),
            ]
        },
    ),
    "several flows of a pair, parallel circuits": _traffic(
        {
            "Circuits": [*CIRCUITS_SHEET, ("London", "Paris", 100, "LON-PAR-2", 7.2)],
            "Traffic matrix": [*TRAFFIC_SHEET, ("London", "Paris", 3), ("London", "Paris", 2)],
        },
        sums={"links.latency_ms": 104.6, "demands.rate_mbps": 68_400},
        rows={"links": 12, "demands": 7},
    ),
    "the unit of each row in a column beside the amounts": _traffic(
        {
            "Circuits": [
                ("A-end", "Z-end", "Speed", "Speed unit"),
                ("London", "Paris", 100, "Gbps"),
                ("Paris", "Madrid", 40_000, "Mbps"),
                ("Madrid", "London", 2.5, "Tbps"),
            ],
            "Demand": [
                ("Src", "Dst", "Rate", "Unit"),
                ("London", "Madrid", 4200, "Mbps"),
                ("Paris", "London", 3, "Gbps"),
            ],
        },
        sums={"links.capacity_mbps": 2_640_000, "demands.rate_mbps": 7_200},
        rows={"links": 3, "demands": 2},
    ),
    "circuits that are down or only planned": _traffic(
        {
            "Circuits": [
                ("From", "To", "Gbps", "Status"),
                ("London", "Paris", 100, "in service"),
                ("London", "Madrid", 100, "DOWN"),
                ("Paris", "Madrid", 10, "Up"),
                ("Madrid", "Paris", 40, "Planned"),
                ("Madrid", "London", 1, "degraded"),
            ],
            "Traffic matrix": [("Source", "Destination", "Peak (Gbps)"), ("London", "Madrid", 2)],
        },
        sums={"links.capacity_mbps": 111_000, "demands.rate_mbps": 2_000},
        rows={"links": 3, "demands": 1},
    ),
    "volumes in a month": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Traffic": [("From", "To", "TB/month"), ("London", "Paris", 324), ("Paris", "Madrid", 648)],
        },
        sums={"demands.rate_mbps": 3_000},
        rows={"demands": 2},
    ),
    "tunnels from head end to tail end": _traffic(
        {
            "Circuits": [("From", "To", "Gbps"), ("London", "Paris", 7), ("Paris", "London", 9)],
            "LSPs": [("Tail end", "Head end", "Bandwidth (kbps)"), ("Paris", "London", 3_000_000)],
        },
        sums={"links.capacity_mbps": 8_000, "demands.rate_mbps": 3_000},
        first={"demands": {"source": "London", "target": "Paris"}},
    ),
    "names in two lines, spaces that do not break": _traffic(
        {
            "Circuits": [
                ("From\u00a0", "To ", "Band\nwidth (Gbps)", "Status"),
                *[(f"{a}\u00a0", b, f"{capacity}\u00a0", "active") for a, b, capacity, *_ in CIRCUITS],
            ],
            "Traffic matrix": [("Source", "Destination", "Peak\n(Gbps)"), *TRAFFIC],
        },
        rows={"nodes": 5},
    ),
    "a matrix that lacks rows": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Busy hour": [
                ("Gbps", "London", "Paris", "Frankfurt", "Madrid"),
                ("LONDON", 0, 4, 5, 1),
                ("Paris", 1, 0, 3, 1),
            ],
        },
        sums={"links.capacity_mbps": 440_000, "demands.rate_mbps": 15_000},
        rows={"nodes": 5, "demands": 6},
    ),
    "a matrix of other rows than columns": _traffic(
        {
            "Circuits": CIRCUITS_SHEET,
            "Traffic": [
                ("from \\ to (Gbps)", "Frankfurt", "Madrid"),
                ("London", 5, 4),
                ("Paris", 4, 2),
            ],
        },
        sums={"links.capacity_mbps": 440_000, "demands.rate_mbps": 15_000},
        rows={"demands": 4},
    ),
    "both directions as two rows, with a metric": _traffic(
        {
            "IP links": [
                ("Source router", "Destination router", "Link capacity (Mb/s)", "IGP metric"),
                *[(tail, head, capacity * 1000, 10) for tail, head, capacity, *_ in CIRCUITS],
                *[(head, tail, capacity * 1000, 10) for tail, head, capacity, *_ in CIRCUITS],
            ],
            "Flows 2026": [
                ("Source router", "Destination router", "Traffic (Mb/s)"),
                *[(*ends, rate * 1000) for *ends, rate in TRAFFIC],
            ],
        },
        sums={"links.capacity_mbps": 440_000, "links.weight": 100, "demands.rate_mbps": 63_400},
    ),
    "sent and received, a rate for each direction": _traffic(
        {
            "Lines": [
                ("Node 1", "Node 2", "Tx Gbps", "Rx Gbps"),
                *[(tail, head, capacity, capacity / 2) for tail, head, capacity, *_ in CIRCUITS],
            ],
            "Demands": [
                ("Node 1", "Node 2", "1→2 Gbps", "2→1 Gbps"),
                ("London", "Frankfurt", 21.5, 9),
                ("Paris", "Madrid", 12, 0.5),
            ],
        },
        sums={"links.capacity_mbps": 330_000, "demands.rate_mbps": 43_000},
    ),
    "one column of ends, percent of use": _traffic(
        {
            "Trunks": [
                ("Route", "Capacity", "Utilisation"),
                *[
                    (f"{tail} – {head}", f"{capacity} Gbit/s", "45 %")
                    for tail, head, capacity, *_ in CIRCUITS
                ],
            ],
            "Traffic": [
                ("Route", "Volume Gbit/s"),
                *[(f"{tail} – {head}", rate) for tail, head, rate in TRAFFIC],
            ],
        }
    ),
    "contacts, prices, mean and largest rate of applications": _traffic(
        {
            "README": [("Contact", "noc@example.org"), ("Version", 3)],
            "WAN Circuits": [
                ("Circuit", "Site 1", "Site 2", "CIR (Mbps)", "MRC ($)"),
                *[
                    (name, tail, head, capacity * 1000, "$1,200")
                    for tail, head, capacity, name, _ in CIRCUITS
                ],
            ],
            "App flows": [
                ("Application", "From site", "To site", "Avg Mbps", "Max Mbps"),
                *[("ERP", *ends, rate * 600, rate * 1000) for *ends, rate in TRAFFIC],
            ],
        },
        answers={"column": "Max Mbps"},
    ),
    "capacity to buy": OwnWorkbook(
        system="capacity",
        sheets=lambda: {
            "Links": [
                ("From", "To", "Installed (Gbps)", "Length km"),
                ("a1", "b1", 10, 100),
                ("b1", "c1", 10, 200),
                ("a1", "c1", 0, 250),
            ],
            "Modules": [("Module", "Capacity (Gbps)", "Cost (EUR)"), ("10G", 10, 1000), ("100G", 100, 4000)],
            "Demands": [("From", "To", "Gbps"), ("a1", "c1", 23), ("a1", "b1", 8)],
        },
        sums={"links.capacity_mbps": 20_000, "modules.cost": 5_000, "demands.rate_mbps": 31_000},
    ),
    "capacity with a price list": OwnWorkbook(
        system="capacity",
        sheets=lambda: {
            "Fibre routes": [
                ("A end", "Z end", "Lit capacity (Gbit/s)", "Distance (km)"),
                ("a1", "b1", 10, 100),
                ("b1", "c1", 10, 200),
            ],
            "Price list": [
                ("Card", "Rate", "Price"),
                ("10G", "10 Gbps", "€1000"),
                ("100G", "100 Gbps", "€4000"),
            ],
            "Forecast 2027": [("Origin", "Destination", "Busy hour (Gbps)"), ("a1", "c1", 23)],
        },
        sums={"links.capacity_mbps": 20_000, "modules.cost": 5_000, "demands.rate_mbps": 23_000},
    ),
    "samples and contracts": OwnWorkbook(
        system="contracts",
        sheets=lambda: {
            "Traffic": [
                ("Time", "Region", "Mbps"),
                *[(time, "EU", first) for time, first, _ in _samples()],
                *[(time, "US", second) for time, _, second in _samples()],
            ],
            "Contracts": [
                ("CDN", "Region", "Billing", "Price per Mbps", "Capacity (Gbps)", "Commit (Mbps)"),
                *_contracts(lambda price: price),
            ],
        },
        sums={
            "traffic.traffic_mbps": 12_000,
            "contracts.price_per_mbps": 3.1,
            "contracts.commitment_mbps": 40,
        },
        rows={"traffic": 80},
    ),
    "a column for each region": OwnWorkbook(
        system="contracts",
        sheets=lambda: {
            "5-min samples": [("Timestamp (UTC)", "EU (Mbps)", "US (Mbps)"), *_samples()],
            "Rates": [
                ("Provider", "Region", "Model", "Price ($/Mbps)", "Max Gbps", "CDR Mbps"),
                *_contracts(lambda price: f"${price:.2f}"),
            ],
        },
        sums={
            "traffic.traffic_mbps": 12_000,
            "contracts.price_per_mbps": 3.1,
            "contracts.commitment_mbps": 40,
        },
        rows={"traffic": 80},
    ),
    "dates, hours, and a column for each region": OwnWorkbook(
        system="contracts",
        sheets=lambda: {
            "Samples": [
                ("Date", "Time", "EU (Mbps)", "US (Mbps)"),
                *[(time.date(), time.time(), first, second) for time, first, second in _samples()],
            ],
            "Contracts": [
                ("CDN", "Region", "Billing", "Price per Mbps", "Capacity (Gbps)", "Commit (Mbps)"),
                *_contracts(lambda price: price),
            ],
        },
        sums={"traffic.traffic_mbps": 12_000, "traffic.window": 1_640},
        rows={"traffic": 80},
    ),
    "dates and hours of each sample": OwnWorkbook(
        system="contracts",
        sheets=lambda: {
            "Traffic": [
                ("Date", "Hour", "Region", "Mbps"),
                *[
                    (f"2026/3/{1 + hour // 24}", hour % 24, region, 100 + hour)
                    for hour in range(40)
                    for region in ("EU", "US")
                ],
            ],
            "Contracts": [
                ("CDN", "Region", "Billing", "Price per Mbps", "Capacity (Gbps)", "Commit (Mbps)"),
                *_contracts(lambda price: price),
            ],
        },
        sums={"traffic.traffic_mbps": 9_560, "traffic.window": 1_640},
        rows={"traffic": 80},
    ),
    "clients and clusters": OwnWorkbook(
        system="brokering",
        sheets=lambda: {
            "Clients": [
                ("City", "ISP", "Content", "Bitrate (kbps)", "Clients"),
                ("Berlin", "DTAG", "c1", 3000, 100),
                ("Paris", "Orange", "c1", 3000, 80),
            ],
            "Cities": [
                ("City", "Country", "Lat", "Lng"),
                ("Berlin", "DE", 52.5, 13.4),
                ("Paris", "FR", 48.8, 2.3),
            ],
            "Clusters": [
                ("Cluster", "CDN", "City", "Capacity (Gbps)", "Bandwidth cost", "Colo cost"),
                ("k1", "X", "Berlin", 1, 1.0, 0.5),
                ("k2", "Y", "Paris", 1, 0.9, 0.4),
            ],
        },
        sums={"clients.clients": 180, "clusters.capacity_mbps": 2_000, "clusters.colocation_cost": 0.9},
    ),
    "servers and shards": OwnWorkbook(
        system="fairshare",
        sheets=lambda: {
            "Servers": [("Server", "Throughput (kops)", "RAM (GB)"), ("n1", 100, 64), ("n2", 100, 64)],
            "Tenants": [("Tenant", "Weight", "Mix"), ("web", 1, "Elastic"), ("ads", 2, "fixed")],
            "Partitions": [
                ("Tenant", "Shard", "Load (kops)", "Size (GB)"),
                ("web", "p1", 40, 10),
                ("web", "p2", 30, 10),
                ("ads", "p1", 50, 20),
            ],
        },
        sums={"nodes.memory_gb": 128, "partitions.demand_kops": 120},
    ),
    "blocks and a matrix": OwnWorkbook(
        system="topology",
        sheets=lambda: {
            "Blocks": [("Block", "Ports", "Port speed (Gbps)"), *[(f"b{k}", 64, 100) for k in (1, 2, 3)]],
            "Demand matrix": [
                ("Gbps", "b1", "b2", "b3"),
                ("b1", 0, 900, 500),
                ("b2", 800, 0, 300),
                ("b3", 400, 200, 0),
            ],
        },
        sums={"blocks.ports": 192, "demands.rate_mbps": 3_100_000},
    ),
    "racks and rotors": OwnWorkbook(
        system="rotors",
        sheets=lambda: {
            "Racks": [("Rack", "Uplink (Gbps)"), ("r1", 10), ("r2", 10), ("r3", 10)],
            "Demands": [("From", "To", "Gbps"), ("r1", "r2", 3), ("r2", "r3", 2)],
            "Switches": [("Count", "Day (us)", "Night (us)"), (1, 100, 10)],
        },
        sums={"racks.circuit_mbps": 30_000, "demands.rate_mbps": 5_000},
    ),
    "racks and circuits": OwnWorkbook(
        system="circuits",
        sheets=lambda: {
            "Racks": [("Rack", "Circuit (Gbps)", "Packet (Gbps)"), *[(f"r{k}", 100, 10) for k in (1, 2, 3)]],
            "Demand": [("Gbit", "r1", "r2", "r3"), ("r1", 0, 3, 1), ("r2", 2, 0, 1), ("r3", 1, 1, 0)],
            "Switch": [("Night (us)", "Window (us)"), (20, 3000)],
        },
        sums={"racks.circuit_mbps": 300_000, "demands.bits": 9e9},
    ),
    "channels and viewers": OwnWorkbook(
        system="livevideo",
        sheets=lambda: {
            "Clusters": [("Cluster", "Tier"), ("src", "source"), ("r1", "reflector"), ("e1", "edge")],
            "Links": [("From", "To", "Capacity (Gbps)", "Cost"), ("src", "r1", 1, 1), ("r1", "e1", 1, 1)],
            "Channels": [("Channel", "Bitrate (Mbps)"), ("news", 2), ("sport", 4)],
            "Requests": [
                ("Region", "Channel", "Bitrate (Mbps)", "Viewers"),
                ("e1", "news", 2, 100),
                ("e1", "sport", 4, 50),
            ],
        },
        sums={"links.capacity_mbps": 2_000, "requests.bitrate_kbps": 6_000, "requests.clients": 150},
    ),
    "rules now and next": OwnWorkbook(
        system="updates",
        sheets=lambda: {
            "Switches": [("Switch", "Rule capacity"), ("a", 100), ("b", 100), ("c", 100)],
            "Links": [("From", "To", "Capacity (Mbps)"), ("a", "b", 100), ("b", "c", 100), ("a", "c", 100)],
            "Classes": [("Class", "Ingress", "Egress", "Traffic (Mbps)"), ("k", "a", "c", 10)],
            "Now": [("Class", "Switch", "Next hop"), ("k", "a", "b"), ("k", "b", "c")],
            "Next": [("Class", "Switch", "Next hop"), ("k", "a", "c")],
        },
        sums={"links.capacity_mbps": 300, "classes.traffic_mbps": 10},
    ),
    "jobs and flows": OwnWorkbook(
        system="coflows",
        sheets=lambda: {
            "Racks": [("Rack", "Circuit (Gbps)", "Packet (Gbps)"), ("r1", 100, 10), ("r2", 100, 10)],
            "Jobs": [("Coflow", "Arrival (ms)"), ("j1", 0), ("j2", 5)],
            "Flows": [
                ("Coflow", "Source rack", "Target rack", "MB"),
                ("j1", "r1", "r2", 30),
                ("j2", "r2", "r1", 10),
            ],
            "Switch": [("Setup (ms)",), (0.02,)],
        },
        sums={"racks.circuit_mbps": 200_000, "flows.bytes": 40e6},
    ),
}
"""Workbooks by what is special of them."""
