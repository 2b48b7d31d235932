# ruff: noqa: E501 - the lines that users see
"""Spreadsheets as users save them: each is read rightly, or refused with one exact line."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.io.layout import Layout, TableFile
from planner.io.table_files import find_tables, locate_tables, read_table, read_tables
from planner.io.workbooks import write_sheets
from planner.scenarios.catalogue import find_system
from tests.planner.io.hostile_files import write_bomb, write_entity, write_feather_of_far_texts
from tests.planner.io.spreadsheets import OLD_EXCEL, Content, ods, sheet, table_of

PLAIN: Final = "tail,head,capacity_mbps\na,b,1500\nb,a,2000\n"
RIGHT: Final = {"tail": ["a", "b"], "head": ["b", "a"], "capacity_mbps": [1500.0, 2000.0]}
GBPS: Final = "links.{0}: read columns 'Capacity (Gbit/s)' as capacity_mbps (times 1,000)"
KEY: Final = "problem.tables.TABLE"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A file, what is read from it, and what is said about it; or the lines that refuse it."""

    file: str
    content: Content
    table: str = "traffic.links"
    read: Mapping[str, list[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)


def frame_to(how: str) -> Content:
    """Return a function that writes the right frame with a method of pandas."""
    return lambda path: getattr(pd.DataFrame(RIGHT), how)(path)


HEAD: Final = ["tail", "head", "Capacity (Gbit/s)"]
GERMAN: Final = "tail;head;capacity_mbps\na;b;1.500,5\nb;a;2.000,25\n"
GERMAN_READ: Final = {**RIGHT, "capacity_mbps": [1500.5, 2000.25]}
UNITS_BELOW: Final = "tail,head,Capacity,Delay\n,,Gbit/s,ms\na,b,1.5,3\nb,a,2,4\n"
VARIANTS: Final[Mapping[str, Variant]] = {
    # --- units below the header, and numbers with groups and units
    "units below": Variant(
        file="links.csv",
        content=UNITS_BELOW,
        read={**RIGHT, "latency_ms": [3.0, 4.0]},
        notes=(
            GBPS.format("csv").replace(
                "capacity_mbps (times 1,000)", "capacity_mbps (times 1,000), 'Delay (ms)' as latency_ms"
            ),
        ),
    ),
    "units below, a row later": Variant(
        file="links.csv",
        content=UNITS_BELOW.replace("2,4", "-2,4"),
        faults=("links.csv row 4: capacity_mbps is -2000.0, must be at least 0",),
    ),
    "units below are others": Variant(
        file="links.csv",
        content=UNITS_BELOW.replace("Capacity", "Capacity (Mbit/s)"),
        faults=(
            "links.csv row 2: capacity_mbps is 'Gbit/s', must be a number",
            "links.csv row 2: head is empty",
            "links.csv row 2: tail is empty",
        ),
    ),
    "nodes called as units": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps,comment\nm,s,1500,ms\ns,m,2000,s\n",
        read={"tail": ["m", "s"], "head": ["s", "m"], "capacity_mbps": [1500.0, 2000.0]},
        notes=("links.csv: ignored columns 'comment'",),
    ),
    "groups and units": Variant(
        file="links.csv",
        content='tail,head,capacity_mbps\na,b,"1,500.0 Mbit/s"\nb,a,2\'000 Mbit/s\n',
        read=RIGHT,
        notes=(
            "links.csv: read 2 cells of capacity_mbps with a unit, such as '1500.0 Mbit/s' as 1,500 Mbit/s",
            "links.csv: apostrophes between thousands, commas between thousands",
        ),
    ),
    "decimal comma and unit": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps\na;b;1,5 Gbit/s\nb;a;2\u202f000 Mbit/s\n",
        read=RIGHT,
        notes=(
            "links.csv: read 2 cells of capacity_mbps with a unit, such as '1.5 Gbit/s' as 1,500 Mbit/s",
            "links.csv: separated by semicolons, decimal comma, spaces between thousands",
        ),
    ),
    "unclear comma before a unit": Variant(
        file="links.csv",
        content='tail,head,capacity_mbps\na,b,"1,500 Mbit/s"\nb,a,2 Gbit/s\n',
        faults=(
            'links.csv row 2: capacity_mbps is \'1,500\', 1500 or 1.500? say [problem.tables.TABLE] decimal = "." or ","',
        ),
    ),
    # --- dialects
    "plain": Variant(file="links.csv", content=PLAIN, read=RIGHT),
    "semicolons": Variant(
        file="links.csv",
        content=PLAIN.replace(",", ";"),
        read=RIGHT,
        notes=("links.csv: separated by semicolons",),
    ),
    "tabs": Variant(
        file="links.tsv",
        content=PLAIN.replace(",", "\t"),
        read=RIGHT,
        notes=("links.tsv: separated by tabs",),
    ),
    "pipes": Variant(
        file="links.txt",
        content=PLAIN.replace(",", "|"),
        read=RIGHT,
        notes=("links.txt: separated by pipes",),
    ),
    "a first line that names the delimiter": Variant(
        file="links.csv",
        content="sep=;\r\n" + PLAIN.replace(",", ";").replace("\n", "\r\n"),
        read=RIGHT,
        notes=("links.csv: separated by semicolons",),
    ),
    "a delimiter that the user names": Variant(
        file="links.csv",
        content="tail|x;head;capacity_mbps\na;b;1500\nb;a;2000\n",
        layout={"delimiter": ";", "columns": {"tail": "tail|x"}},
        read=RIGHT,
        notes=("links.csv: separated by semicolons", "links.csv: read columns 'tail|x' as tail"),
    ),
    "decimal commas and points between thousands": Variant(
        file="links.csv",
        content=GERMAN,
        read=GERMAN_READ,
        notes=("links.csv: separated by semicolons, decimal comma, points between thousands",),
    ),
    "quoted decimal commas": Variant(
        file="links.csv",
        content='tail,head,capacity_mbps\na,b,"0,5"\nb,a,"2,25"\n',
        read={**RIGHT, "capacity_mbps": [0.5, 2.25]},
        notes=("links.csv: decimal comma",),
    ),
    "commas between thousands": Variant(
        file="links.csv",
        content='tail,head,capacity_mbps\na,b,"1,500.5"\nb,a,"2,000"\n',
        read={**RIGHT, "capacity_mbps": [1500.5, 2000.0]},
        notes=("links.csv: commas between thousands",),
    ),
    "spaces between thousands": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps\na;b;1\u00a0500\nb;a;2 000\n",
        read=RIGHT,
        notes=("links.csv: separated by semicolons, spaces between thousands",),
    ),
    "apostrophes between thousands": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps\na;b;1'500.5\nb;a;2'000\n",
        read={**RIGHT, "capacity_mbps": [1500.5, 2000.0]},
        notes=("links.csv: separated by semicolons, apostrophes between thousands",),
    ),
    "two readings of each number": Variant(
        file="links.csv",
        content='tail,head,capacity_mbps\na,b,"1,500"\nb,a,"2,000"\n',
        faults=(
            f'links.csv row 2: capacity_mbps is \'1,500\', 1500 or 1.500? say [{KEY}] decimal = "." or ","',
        ),
    ),
    "two readings of points after semicolons": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps\na;b;1.500\nb;a;2.000\n",
        faults=(
            f'links.csv row 2: capacity_mbps is \'1.500\', 1.500 or 1500? say [{KEY}] decimal = "." or ","',
        ),
    ),
    "two readings, and the user says which": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps\na;b;1.500\nb;a;2.000\n",
        layout={"decimal": ","},
        read=RIGHT,
        notes=("links.csv: separated by semicolons, decimal comma, points between thousands",),
    ),
    "two readings, and another column tells": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps;weight\na;b;1.500;0,5\nb;a;2.000;1\n",
        read={**RIGHT, "weight": [0.5, 1.0]},
        notes=("links.csv: separated by semicolons, decimal comma, points between thousands",),
    ),
    "both decimal marks": Variant(
        file="links.csv",
        content="tail;head;capacity_mbps\na;b;1,5\nb;a;2.5\n",
        faults=(
            (
                "links.csv: capacity_mbps is '2.5' in row 3, with a decimal point, but capacity_mbps is '1,5' in row 2, "
                f'with a decimal comma; write all alike, or say [{KEY}] decimal = "." or ","'
            ),
        ),
    ),
    "a plain file with three decimals": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps\na,b,1.500\nb,a,2.000\n",
        read={**RIGHT, "capacity_mbps": [1.5, 2.0]},
    ),
    # --- encodings
    "a byte order mark": Variant(file="links.csv", content=PLAIN.encode("utf-8-sig"), read=RIGHT),
    "cp1252": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps\nKöln,Zürich,1500\nZürich,Köln,2000\n".encode("cp1252"),
        read={**RIGHT, "tail": ["Köln", "Zürich"], "head": ["Zürich", "Köln"]},
        notes=("links.csv: encoding cp1252",),
    ),
    "UTF-16": Variant(
        file="links.txt",
        content=PLAIN.replace(",", "\t").encode("utf-16"),
        read=RIGHT,
        notes=("links.txt: separated by tabs, encoding utf-16",),
    ),
    "an encoding that the user names": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps\nМосква,b,1500\nb,Москва,2000\n".encode("cp1251"),
        layout={"encoding": "cp1251"},
        read={**RIGHT, "tail": ["Москва", "b"], "head": ["b", "Москва"]},
        notes=("links.csv: encoding cp1251",),
    ),
    "an encoding that nobody names": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps\nМосква,b,1500\n".encode("cp1251"),
        faults=(
            (
                "links.csv: is not UTF-8, and 'Ìîñêâà' is no Western European text (cp1252); save it as UTF-8, or say "
                f"[{KEY}] encoding"
            ),
        ),
    ),
    # --- formats
    "compressed CSV": Variant(file="links.csv.gz", content=gzip.compress(PLAIN.encode()), read=RIGHT),
    "Parquet": Variant(file="links.parquet", content=frame_to("to_parquet"), read=RIGHT),
    "Feather": Variant(file="links.feather", content=frame_to("to_feather"), read=RIGHT),
    "JSON records": Variant(
        file="links.json", content=pd.DataFrame(RIGHT).to_json(orient="records"), read=RIGHT
    ),
    "JSON lines": Variant(
        file="links.jsonl", content=pd.DataFrame(RIGHT).to_json(orient="records", lines=True), read=RIGHT
    ),
    "JSON with numbers as text and a missing name": Variant(
        file="links.json",
        content='[{"tail": "a", "head": "b", "capacity_mbps": "1500"},\n{"head": "a", "capacity_mbps": 2}]',
        faults=("links.json row 2: tail is empty",),
    ),
    "JSON with a list in a cell": Variant(
        file="links.json",
        content='[{"tail": ["a"], "head": "b", "capacity_mbps": 1}]',
        faults=(
            (
                "links.json row 1: tail is a list or an object, must be a value; pandas writes plain rows by "
                'to_json(orient="records")'
            ),
        ),
    ),
    "Excel": Variant(
        file="links.xlsx",
        content=sheet(HEAD, ["a", "b", 1.5], ["b", "a", 2]),
        read=RIGHT,
        notes=(GBPS.format("xlsx"),),
    ),
    "old Excel": Variant(
        file="links.xls",
        content=gzip.decompress(base64.b64decode(OLD_EXCEL)),
        read=RIGHT,
        notes=(GBPS.format("xls"),),
    ),
    "OpenDocument": Variant(
        file="links.ods",
        content=ods(HEAD, ["a", "b", 1.5], ["b", "a", 2]),
        read=RIGHT,
        notes=(GBPS.format("ods"),),
    ),
    "Excel with numbers as names, and below an empty row": Variant(
        file="links.xlsx",
        content=sheet([None], ["tail", "head", "capacity_mbps"], [1, 2, 1500], [None], [2, 1, 2000]),
        read={**RIGHT, "tail": ["1", "2"], "head": ["2", "1"]},
    ),
    "Excel with numbers as text": Variant(
        file="links.xlsx",
        content=sheet(["tail", "head", "capacity_mbps"], ["a", "b", "1.500,5"], ["b", "a", 2000]),
        read={**RIGHT, "capacity_mbps": [1500.5, 2000.0]},
        notes=("links.xlsx: decimal comma, points between thousands",),
    ),
    "Excel with a formula that was never calculated": Variant(
        file="links.xlsx",
        content=sheet(["tail", "head", "capacity_mbps"], ["a", "b", "=100*15"], ["b", "a", 2000]),
        faults=(
            (
                "links.xlsx row 2: capacity_mbps is the formula =100*15 without a value; calculate and save the workbook "
                "in a spreadsheet program"
            ),
        ),
    ),
    "Excel with a name that became a date": Variant(
        file="links.xlsx",
        content=sheet(["tail", "head", "capacity_mbps"], [pd.Timestamp(2026, 3, 5).date(), "b", 1500]),
        faults=(
            (
                "links.xlsx row 2: tail is the date 2026-03-05, must be text: format the cell as text and "
                "type it again"
            ),
        ),
    ),
    "Excel with the table in one of several sheets": Variant(
        file="book.xlsx",
        content=sheet(
            ["made in March"], name="About", more={"Links": [HEAD, ["a", "b", 1.5], ["b", "a", 2]]}
        ),
        read=RIGHT,
        notes=("book.xlsx sheet Links: read columns 'Capacity (Gbit/s)' as capacity_mbps (times 1,000)",),
    ),
    "Excel without a sheet of that name": Variant(
        file="book.xlsx",
        content=sheet(["made in March"], name="About", more={"Linkz": [HEAD]}),
        faults=("book.xlsx: has no sheet 'links'; did you mean 'Linkz'?",),
    ),
    "Excel with a sheet that the user names": Variant(
        file="book.xlsx",
        content=sheet(
            ["made in March"], name="About", more={"Lines": [HEAD, ["a", "b", 1.5], ["b", "a", 2]]}
        ),
        layout={"sheet": "Lines"},
        read=RIGHT,
        notes=("book.xlsx sheet Lines: read columns 'Capacity (Gbit/s)' as capacity_mbps (times 1,000)",),
    ),
    # --- units and names of columns
    "other units": Variant(
        file="links.csv",
        content="tail,head,capacity_gbps,latency_us\na,b,1.5,250\nb,a,2,4000\n",
        read={**RIGHT, "latency_ms": [0.25, 4.0]},
        notes=(
            (
                "links.csv: read columns 'capacity_gbps' as capacity_mbps (times 1,000), 'latency_us' as latency_ms "
                "(divided by 1,000)"
            ),
        ),
    ),
    "other case and punctuation": Variant(
        file="links.csv",
        content="Tail,HEAD,Capacity Mbps,Note\na,b,1500,x\nb,a,2000,y\n",
        read=RIGHT,
        notes=(
            "links.csv: read columns 'Tail' as tail, 'HEAD' as head, 'Capacity Mbps' as capacity_mbps",
            "links.csv: ignored columns 'Note'",
        ),
    ),
    "bits or bytes, which lower case hides": Variant(
        file="links.csv",
        content="tail,head,capacity gb/s\na,b,1\n",
        faults=("links.csv: column 'capacity gb/s' is in Gbit/s or GB/s: write which, by case",),
    ),
    "bytes each second": Variant(
        file="links.csv",
        content="tail,head,capacity (MB/s)\na,b,187.5\nb,a,250\n",
        read=RIGHT,
        notes=("links.csv: read columns 'capacity (MB/s)' as capacity_mbps (times 8)",),
    ),
    "one quantity in two units": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps,capacity_gbps\na,b,1,1\n",
        faults=(
            (
                "links.csv: 'capacity_mbps' and 'capacity_gbps' are both capacity_mbps; keep one, or "
                'write [problem.columns.TABLE] capacity_mbps = "capacity_mbps" or '
                'write [problem.columns.TABLE] capacity_mbps = "capacity_gbps"'
            ),
        ),
    ),
    "one of two units is to be ignored": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps,capacity_gbps\na,b,1500,1\nb,a,2000,1\n",
        layout={"ignore": ("capacity_gbps",)},
        read=RIGHT,
        notes=("links.csv: ignored columns 'capacity_gbps'",),
    ),
    "no unit": Variant(
        file="links.csv",
        content="tail,head,capacity\na,b,1\n",
        faults=(
            (
                "links.csv: column 'capacity' names no unit: call it capacity_mbps where it is in Mbit/s, or give it its "
                'own unit, such as capacity_gbps; or write [problem.columns.TABLE] capacity_mbps = "capacity" for Mbit/s, '
                'or write [problem.columns.TABLE] capacity_gbps = "capacity" for Gbit/s'
            ),
        ),
    ),
    "no unit, but in each cell": Variant(
        file="links.csv",
        content="From,To,Speed\na,b,1.5G\nb,a,2000 Mbit/s\n",
        read=RIGHT,
        notes=(
            "links.csv: read 2 cells of capacity_mbps with a unit, such as '1.5G' as 1,500 Mbit/s",
            "assumed: links.csv: 'G' in capacity_mbps is Gbit/s",
            "links.csv: read columns 'From' as tail, 'To' as head, 'Speed' as capacity_mbps",
        ),
    ),
    "no unit, and not in each cell": Variant(
        file="links.csv",
        content="From,To,Speed\na,b,1.5G\nb,a,2000\n",
        faults=(
            (
                "links.csv: column 'Speed' names no unit: call it capacity_mbps where it is in Mbit/s, or give it its "
                'own unit, such as capacity_gbps; or write [problem.columns.TABLE] capacity_mbps = "Speed" for Mbit/s, '
                'or write [problem.columns.TABLE] capacity_gbps = "Speed" for Gbit/s'
            ),
        ),
    ),
    "a mapping gives the unit": Variant(
        file="links.csv",
        content="From,To,Speed\na,b,1.5\nb,a,2\n",
        layout={"columns": {"capacity_gbps": "Speed"}},
        read=RIGHT,
        notes=(
            "links.csv: read columns 'From' as tail, 'To' as head, 'Speed' as capacity_mbps (times 1,000)",
        ),
    ),
    "names that the user maps": Variant(
        file="links.csv",
        content="From,To,Bandwidth (Gbit/s)\na,b,1.5\nb,a,2\n",
        layout={"columns": {"tail": "From", "head": "To", "capacity_mbps": "Bandwidth (Gbit/s)"}},
        read=RIGHT,
        notes=(
            (
                "links.csv: read columns 'From' as tail, 'To' as head, 'Bandwidth (Gbit/s)' as capacity_mbps "
                "(times 1,000)"
            ),
        ),
    ),
    "a mapped name that is not there": Variant(
        file="links.csv",
        content="From,head,capacity_mbps\na,b,1\n",
        layout={"columns": {"tail": "Form"}},
        faults=("links.csv: has no column 'Form', which tail is mapped to; did you mean 'From'?",),
    ),
    "a typo": Variant(
        file="links.csv",
        content="tial,head,capacity_mbps\na,b,1\n",
        faults=("links.csv: column 'tail' is missing; is it called 'tial'?",),
    ),
    "a typo of an optional column": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps,wieght\na,b,1,1\n",
        faults=("links.csv: unknown column 'wieght'; did you mean 'weight'?",),
    ),
    "empty columns at the end": Variant(
        file="links.csv",
        content="tail,head,capacity_mbps,,\na,b,1500,,\nb,a,2000,,\n",
        read=RIGHT,
        notes=("links.csv: ignored columns 'column 4', 'column 5'",),
    ),
    # --- other systems
    "circuits: rates in Gbit/s": Variant(
        table="circuits.racks",
        file="racks.csv",
        content="Rack;Circuit (Gbit/s);Packet (Gbit/s)\nr1;100;10\nr2;100;2,5\n",
        read={
            "rack": ["r1", "r2"],
            "circuit_mbps": [100_000.0, 100_000.0],
            "packet_mbps": [10_000.0, 2500.0],
        },
        notes=(
            "racks.csv: separated by semicolons, decimal comma",
            (
                "racks.csv: read columns 'Rack' as rack, 'Circuit (Gbit/s)' as circuit_mbps (times 1,000), 'Packet "
                "(Gbit/s)' as packet_mbps (times 1,000)"
            ),
        ),
    ),
    "circuits: demand in gigabytes": Variant(
        table="circuits.demands",
        file="demands.xlsx",
        content=sheet(["Source rack", "Target rack", "Volume (GB)"], ["r1", "r2", 0.5]),
        read={"source_rack": ["r1"], "target_rack": ["r2"], "bits": [4e9]},
        notes=(
            (
                "demands.xlsx: read columns 'Source rack' as source_rack, 'Target rack' as target_rack, 'Volume (GB)' as "
                "bits (times 8,000,000,000)"
            ),
        ),
    ),
    "circuitflows: sizes in MiB, starts in ms": Variant(
        table="circuitflows.flows",
        file="flows.json",
        content=json.dumps(
            [
                {
                    "flow": 1,
                    "source_rack": "a",
                    "target_rack": "b",
                    "host": 1,
                    "start_ms": 2,
                    "size_mib": 1,
                    "after": "none",
                }
            ]
        ),
        read={"flow": ["1"], "start_us": [2000.0], "bytes": [1_048_576.0]},
        notes=(
            "flows.json: read columns 'start_ms' as start_us (times 1,000), 'size_mib' as bytes (times 1,048,576)",
        ),
    ),
    "brokering: bitrates in Mbit/s": Variant(
        table="brokering.clients",
        file="clients.csv",
        content="location;isp;content;bitrate_mbps;clients\nx;y;z;2,5;10\n",
        read={"bitrate_kbps": [2500.0], "clients": [10.0]},
        notes=(
            "clients.csv: separated by semicolons, decimal comma",
            "clients.csv: read columns 'bitrate_mbps' as bitrate_kbps (times 1,000)",
        ),
    ),
    "livevideo: latency in seconds": Variant(
        table="livevideo.links",
        file="links.csv",
        content="tail,head,capacity_gbps,latency_s\ns,r,1,0.01\n",
        read={"capacity_mbps": [1000.0], "latency_ms": [10.0]},
        notes=(
            (
                "links.csv: read columns 'capacity_gbps' as capacity_mbps (times 1,000), 'latency_s' as latency_ms "
                "(times 1,000)"
            ),
        ),
    ),
    "multicast: rates in kbit/s, one row too many": Variant(
        table="multicast.groups",
        file="groups.csv",
        content="group,rate_kbps\ng1,500\ng1,500\n",
        faults=("groups.csv row 3: group 'g1' is there already in row 2",),
    ),
    # --- damaged and hostile
    "a damaged workbook": Variant(
        file="links.xlsx",
        content=b"PK\x03\x04 no workbook",
        faults=("links.xlsx: is no xlsx workbook (File is not a zip file)",),
    ),
    "a cell at the end of the sheet": Variant(
        file="links.xlsx",
        content=write_bomb,
        faults=("links.xlsx: is no readable workbook (it needs too much memory or time)",),
    ),
    "a file of the machine as an entity": Variant(
        file="links.xlsx",
        content=write_entity,
        faults=("links.xlsx: is no readable workbook (XmlError: at 0..0: unrecognized entity `&secret;`)",),
    ),
    "damaged compression": Variant(
        file="links.csv.gz",
        content=gzip.compress(PLAIN.encode() * 100)[:60],
        faults=(
            "links.csv.gz: cannot be unpacked (Compressed file ended before the end-of-stream marker was reached)",
        ),
    ),
    "zeros, compressed": Variant(
        file="links.csv.gz",
        content=gzip.compress(bytes(3_000_000)),
        faults=("links.csv.gz: is a binary file, must be text",),
    ),
    "no Feather at all": Variant(
        file="links.feather",
        content=b"x" * 100,
        faults=("links.feather: is no Feather file (Not a Feather V1 or Arrow IPC file)",),
    ),
    "a Feather file with texts outside of it": Variant(
        file="links.feather",
        content=write_feather_of_far_texts,
        faults=(
            "links.feather: is no Feather file (Column 0: In chunk 0: Invalid: Offset invariant failure: offset for slot 1 out of bounds: 9000000 > 4)",
        ),
    ),
    "no JSON at all": Variant(
        file="links.json", content="tail,head", faults=("links.json row 1: is no JSON (Expecting value)",)
    ),
    "JSON without records": Variant(
        table="traffic.demands", file="demands.json", content="[]", faults=("demands.json: holds no rows",)
    ),
    "JSON without records, of a table that may be empty": Variant(
        table="circuits.demands", file="demands.json", content="[]", read={"bits": []}
    ),
    "deep JSON": Variant(
        file="links.json",
        content="[" * 100_000,
        faults=("links.json: its lists or objects are nested too deeply",),
    ),
    "an unknown ending": Variant(
        file="links.doc",
        content=b"",
        faults=(
            (
                "links.doc: must end in .csv, .parquet, .xlsx, .ods, .feather, .json, .jsonl, .ndjson, .csv.gz, .tsv, "
                ".txt, .xls or .xlsm"
            ),
        ),
    ),
}


def write(content: Content, path: Path) -> None:
    """Write the content of a variant."""
    if isinstance(content, str):
        path.write_bytes(content.encode())
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_spreadsheet_is_read_or_refused(name: str, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    write(variant.content, tmp_path / variant.file)
    table = table_of(variant.table)
    file = TableFile(path=tmp_path / variant.file, layout=Layout(**variant.layout, key=KEY))
    notes: list[str] = []
    with observe_notes(notes.append):
        if variant.faults:
            with pytest.raises(InputError) as caught:
                read_table(table, file)
            assert caught.value.faults == variant.faults
            return
        frame = read_table(table, file)
    assert {column: frame[column].tolist() for column in variant.read} == dict(variant.read)
    weights = [note for note in notes if note.endswith(": all links weigh 1")]
    assert len(weights) == (variant.table == "traffic.links" and "weight" not in variant.read)
    assert tuple(note for note in notes if note not in weights) == variant.notes


FOLDERS: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, str], str]]] = {
    "names of others": (
        ("circuits", "traffic matrix"),
        {"links": "circuits", "demands": "traffic matrix"},
        "",
    ),
    "a singular": (("Circuit", "TM"), {"links": "Circuit", "demands": "TM"}, ""),
    "ours first": (("links", "circuits", "flows"), {"links": "links", "demands": "flows"}, ""),
    "two of others": (
        ("edges", "circuits", "flows"),
        {},
        "for table links; keep one, or write [problem.tables.links]",
    ),
    "none": (("wires", "flows"), {}, "has no "),
}


@pytest.mark.parametrize("in_workbook", [False, True], ids=["folder", "workbook"])
@pytest.mark.parametrize("name", FOLDERS)
def test_files_and_sheets_are_tables_by_names_of_others(name: str, in_workbook: bool, tmp_path: Path) -> None:
    inputs, expected, fault = FOLDERS[name]
    system = find_system("traffic").problem
    demands = pd.DataFrame({"source": ["a"], "target": ["b"], "rate_mbps": [1.0]})
    frames = {
        item: demands if item in ("flows", "TM", "traffic matrix") else pd.DataFrame(RIGHT) for item in inputs
    }
    path = tmp_path / "net.xlsx" if in_workbook else tmp_path
    if in_workbook:
        write_sheets(frames, path)
    else:
        for item, frame in frames.items():
            frame.to_csv(tmp_path / f"{item}.csv", index=False)
    layouts = {item: Layout(key=f"problem.tables.{item}") for item in system.table_by_name}
    files, faults = locate_tables(system.tables, path, system.optional_tables, layouts)
    if fault:
        assert any(fault in line for line in faults), faults
        return
    assert not faults
    assert {table: file.layout.sheet or file.path.stem for table, file in files.items()} == expected
    assert read_tables(system.tables, files)["links"]["capacity_mbps"].tolist() == RIGHT["capacity_mbps"]


def test_an_optional_table_of_another_name_must_have_its_columns(tmp_path: Path) -> None:
    system = find_system("traffic").problem
    (tmp_path / "links.csv").write_text(PLAIN)
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,1\n")
    (tmp_path / "sites.csv").write_text("owner,street\nme,here\n")
    assert set(find_tables(system.tables, tmp_path, system.optional_tables)) == {"links", "demands"}
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,1,2\nb,3,4\n")
    files = find_tables(system.tables, tmp_path, system.optional_tables)
    nodes = read_tables(system.tables, files)["nodes"]
    assert nodes[["node", "latitude", "longitude"]].to_numpy().tolist() == [["a", 1, 2], ["b", 3, 4]]
