"""Uploads: valid tables are stored; all other files are refused in a line and leave nothing behind."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from planner.errors import InputError
from planner.scenarios.catalogue import find_system
from planner_dashboard import uploads, worker
from planner_dashboard.uploads import UploadedFile

LINKS = b"tail,head,capacity_mbps\na,b,10\nb,a,10\n"
DEMANDS = b"source,target,rate_mbps\na,b,8\n"


def uploaded(name: str, content: bytes, table: str | None = None) -> UploadedFile:
    return UploadedFile(name=name, table=Path(name).stem if table is None else table, content=content)


def parquet(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.to_parquet(content)
    return content.getvalue()


def test_valid_tables_are_stored_under_names_of_ours(tmp_path: Path) -> None:
    frame = pd.DataFrame({"tail": ["a", "b"], "head": ["b", "a"], "capacity_mbps": [10.0, 10.0]})
    given = [
        uploaded("../../evil.parquet", parquet(frame), "links"),
        uploaded("C:\\x\\demands.CSV", DEMANDS, "demands"),
    ]
    digest, size = worker.upload("traffic", given, tmp_path)
    assert size == "2 nodes, 2 links, 1 demand"
    assert {path.name for path in (tmp_path / digest).iterdir()} == {
        "links.parquet", "demands.csv", "scenario.toml",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == [digest], "nothing beside it"
    assert worker.upload("traffic", given, tmp_path)[0] == digest, "the same tables have the same address"


HUGE = b"source,target,rate_mbps\n" + b"a,b,8\n" * (9 << 20)
ROWS = pa.table(
    {
        "source": pa.DictionaryArray.from_arrays(pa.array(np.zeros(11_000_000, np.int32)), pa.array(["a"])),
        "target": pa.DictionaryArray.from_arrays(pa.array(np.zeros(11_000_000, np.int32)), pa.array(["b"])),
    }
)


def packed(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def zipped(inside: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", inside)
    return content.getvalue()


FINE = parquet(pd.DataFrame({"source": ["a"], "target": ["b"], "rate_mbps": [8.0]}))
BOMB = b"""<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><l>&b;</l>"""


@pytest.mark.parametrize(
    ("name", "table", "content", "message"),
    [
        ("demands.csv", "demands", b"", "demands.csv"),
        ("demands.csv", "demands", b"\x00\x01\x02\xff" * 100, "demands.csv"),
        ("demands.parquet", "demands", b"PAR1" + b"\x00" * 64, "demands.parquet"),
        ("demands.parquet", "demands", parquet(pd.DataFrame({"a": [1]}))[:200], "demands.parquet"),
        ("demands.csv", "demands", HUGE, "has 54 MB, at most 50"),
        ("demands.xml", "demands", BOMB, "must end in .csv, .tsv"),
        ("demands.pkl", "demands", b"\x80\x04cos\nsystem\n", "must end in .csv, .tsv"),
        ("x.csv", "", DEMANDS, "x.csv: which table is it?"),
        ("demands.csv", "demands", b'source,target,rate_mbps\n"=cmd|x",b,8\n', "row 2: source is '=cmd|x'"),
        ("demands.csv", "demands", b"source,target,rate_mbps\n@SUM(A1),b,8\n", "row 2: source is '@SUM"),
        (
            "demands.csv",
            "demands",
            b"source,target,rate_mbps\na,<script>x</script>,8\n",
            "target is '<script>",
        ),
        ("demands.csv", "demands", b"source,target,rate_mbps\na,b,-8\n", "rate_mbps is -8"),
        ("demands.csv", "demands", b"source,target,rate_mbps\n-2+3,b,8\n", "source is '-2+3'"),
        ("demands.csv", "demands", "source,target,rate_mbps\n＝1+1,b,8\n".encode(), "must be a plain name"),
        ("demands.csv", "demands", b'source,target,rate_mbps\n"\r=1",b,8\n', "must be a plain name"),
        ("demands.csv", "demands", b"source,target,rate_mbps\n../../etc/passwd,b,1\n", "is no node"),
        ("../../etc/demands.csv", "demands", b"source,target,rate_mbps\na,b,-8\n", "demands.csv row 2"),
        ("demands.csv", "demands", b"a," * 100_000 + b"a\n", "has over 200 columns"),
        ("demands.csv", "demands", b"source,target,rate_mbps\n" + b"a" * 2_000 + b",b,1\n", "2,000 letters"),
        ("demands.csv", "demands", zipped(b"0" * 60_000_000), "is a binary file"),
        ("demands.xlsx", "demands", zipped(b"0" * 60_000_000), "is no readable workbook"),
        ("demands.parquet", "demands", zipped(b"0" * 60_000_000), "is no Parquet file"),
        ("demands.parquet", "demands", FINE[:40] + b"\xff" * 30 + FINE[70:], "is no Parquet file"),
        ("demands.parquet", "demands", FINE[:-60] + b"\xff" * 40 + FINE[-20:], "is no Parquet file"),
        ("demands.parquet", "demands", packed(ROWS), "has 11,000,000 rows, at most 10,000,000"),
        (
            "demands.parquet",
            "demands",
            packed(pa.table({"source": ["a" * (300 << 20)]})),
            "unpacks to 300 MB",
        ),
    ],
)
def test_a_file_that_is_no_table_is_one_line_and_leaves_nothing(
    tmp_path: Path, name: str, table: str, content: bytes, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        worker.upload("traffic", [uploaded("links.csv", LINKS), uploaded(name, content, table)], tmp_path)
    assert message in str(refused.value)
    assert str(tmp_path) not in str(refused.value), "the error names no folder of the server"
    assert len(refused.value.faults) == 1, refused.value.faults
    assert "\n" not in refused.value.faults[0]
    assert list(tmp_path.iterdir()) == []


def test_tables_that_do_not_fit_together_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'z'"):
        worker.upload(
            "traffic",
            [uploaded("links.csv", LINKS), uploaded("demands.csv", b"source,target,rate_mbps\na,z,8\n")],
            tmp_path,
        )
    with pytest.raises(InputError, match="two files"):
        worker.upload("traffic", [uploaded("links.csv", LINKS), uploaded("links.csv", LINKS)], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_faults_are_shown_at_their_cells() -> None:
    given = [
        uploaded("links.csv", b"tail,head,capacity_mbps\na,b,10\nb,a,-1\n"),
        uploaded("demands.csv", DEMANDS),
    ]
    faults = ["links.csv row 3: capacity_mbps is -1.0, must be greater than 0", "something else"]
    found = uploads.faulty_rows(faults, given)
    assert list(found) == ["links"]
    assert found["links"].to_dict(orient="records") == [
        {"row": 3, "tail": "b", "head": "a", "capacity_mbps": "-1",
         "fault": "capacity_mbps is -1.0, must be greater than 0"},
    ]  # fmt: skip


def test_a_table_is_guessed_by_its_name_alone() -> None:
    tables = [table.name for table in find_system("traffic").problem.tables]
    assert uploads.guess_table(tables, "/home/me/Links.CSV") == "links"
    assert uploads.guess_table(tables, "..\\..\\demands.parquet") == "demands"
    assert uploads.guess_table(tables, "mine.csv") == ""


def test_a_download_includes_its_tables(tmp_path: Path) -> None:
    from planner_dashboard import comparisons
    from planner_dashboard.question import UPLOADED, Question
    from planner_dashboard.what_if import details

    digest, _ = worker.upload(
        "traffic", [uploaded("links.csv", LINKS), uploaded("demands.csv", DEMANDS)], tmp_path
    )
    question = Question(scenario=UPLOADED, upload=digest, designs=("ecmp",), changes={"problem.scale": 0.5})
    answer = worker.compare(question, tmp_path / digest, tmp_path / "out")
    assert answer.designs[0].figures.metrics["max_utilization"] == pytest.approx(0.4)
    comparisons.write_files(answer.folder, tmp_path / "files")
    with zipfile.ZipFile(io.BytesIO(details.zip_folder(tmp_path / "files"))) as archive:
        archive.extractall(tmp_path / "unzipped")
    from tests.commands import planner

    done = planner("compare", tmp_path / "unzipped" / "scenario.toml", "--designs", "ecmp", "--json")
    assert done.code == 0, done.err
    assert '"max_utilization": 0.4' in done.out


def test_a_workbook_holds_every_table(tmp_path: Path) -> None:
    content = io.BytesIO()
    with pd.ExcelWriter(content, engine="openpyxl") as book:
        links = {"tail": ["a", "b"], "head": ["b", "a"], "Capacity (Gbit/s)": [1, 1]}
        pd.DataFrame(links).to_excel(book, sheet_name="Links", index=False)
        demands = {"source": ["a"], "target": ["b"], "rate_mbps": [8]}
        pd.DataFrame(demands).to_excel(book, sheet_name="demands", index=False)
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="About", index=False)
    tables = [table.name for table in find_system("traffic").problem.tables]
    assert uploads.guess_table(tables, "net.xlsx") == uploads.ALL_SHEETS
    file = uploaded("net.xlsx", content.getvalue(), uploads.ALL_SHEETS)
    digest, size = worker.upload("traffic", [file], tmp_path)
    assert size == "2 nodes, 2 links, 1 demand"
    assert (tmp_path / digest / "links.xlsx").exists()
    with pytest.raises(InputError, match=r"net\.xlsx: no sheet has the name of a table: clients"):
        worker.upload("brokering", [file], tmp_path)
