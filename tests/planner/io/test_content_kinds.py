"""Files whose names have the ending of another kind are refused by what they are, with what to do."""

from __future__ import annotations

import base64
import gzip
import io
import os
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from planner.errors import InputError
from planner.io.content_kinds import describe_other_kind
from planner.io.recognition import list_sheets
from planner.io.table_files import SUFFIXES, read_tables
from tests.planner.io.spreadsheets import OLD_EXCEL, ods, sheet, table_of

LINKS = table_of("traffic.links")
ROWS = (["tail", "head", "capacity_mbps"], ["a", "b", 1.0])
TEXT = "tail,head,capacity_mbps\na,b,1.0\n"
RESAVE = "open it in a spreadsheet, and save it as xlsx or CSV"


def archive(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as parts:
        for name in names:
            parts.writestr(name, "")
    return content.getvalue()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """Return the content of a table in each format that is read, by the ending of its name."""
    made = {}
    for write, name in ((sheet(*ROWS), "xlsx"), (ods(*ROWS), "ods")):
        path = tmp_path / f"made.{name}"
        assert callable(write)
        write(path)
        made[f".{name}"] = path.read_bytes()
    frame = pd.DataFrame(ROWS[1:], columns=ROWS[0])
    frame.to_parquet(tmp_path / "made.parquet")
    frame.to_feather(tmp_path / "made.feather")
    for name in ("parquet", "feather"):
        made[f".{name}"] = (tmp_path / f"made.{name}").read_bytes()
    made[".xls"] = gzip.decompress(base64.b64decode(OLD_EXCEL))
    made[".csv.gz"] = gzip.compress(TEXT.encode())
    return made


def test_a_renamed_file_is_refused_by_its_kind_with_the_ending_to_use(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    for ending, content in files.items():
        for other in SUFFIXES:
            path = tmp_path / f"links{other}"
            path.write_bytes(content)
            if other in (ending, ".xlsm" if ending == ".xlsx" else ending):
                assert describe_other_kind(path) is None, other
                assert not list_sheets(path)[0].fault, other
                continue
            with pytest.raises(InputError) as error:
                read_tables([LINKS], {"links": path})
            assert str(error.value).endswith(f"; name it with the ending {ending}"), (ending, other)
            assert str(error.value).startswith(f"links{other}: is a"), (ending, other)
            assert [item.fault for item in list_sheets(path)] == [str(error.value)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (archive("xl/workbook.bin"), f"is a binary Excel workbook (xlsb); {RESAVE}"),
        (archive("Index/Document.iwa"), "is a Numbers document; export it as CSV or Excel"),
        (archive("word/document.xml"), f"is a Word document; {RESAVE}"),
        (archive("links.csv"), "is a zip archive; unpack it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
         "is a workbook with a password; save it without one"),
        (b"%PDF-1.7\n", "is a PDF; export the table as CSV where it comes from"),
        (b"SQLite format 3\0", "is an SQLite database; export the table as CSV"),
        (b"\xfd7zXZ\0\0", "is an archive; unpack it"),
        (b"\xef\xbb\xbf\n<HTML><table>", f"is an HTML page; {RESAVE}"),
        (b'<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
         f"is XML of Excel 2003; {RESAVE}"),
        (b"{\\rtf1 tail}", f"is a text document (RTF); {RESAVE}"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_by_its_kind(content: bytes, words: str, tmp_path: Path) -> None:
    for ending in (".csv", ".xlsx", ".xls", ".ods"):
        path = tmp_path / f"links{ending}"
        path.write_bytes(content)
        with pytest.raises(InputError) as error:
            read_tables([LINKS], {"links": path})
        assert str(error.value) == f"links{ending}: {words}"


def test_text_in_a_workbook_is_named(tmp_path: Path) -> None:
    path = tmp_path / "links.xlsx"
    for text, ending in ((TEXT, ".csv"), ('[{"tail": "a"}]', ".json")):
        path.write_text(text)
        assert describe_other_kind(path) == f"links.xlsx: is text; name it with the ending {ending}"
    shutil.copy(path, tmp_path / "links.csv")
    assert describe_other_kind(tmp_path / "links.csv") is None


@pytest.mark.parametrize(
    "header", ["PAR1,tail", "BZh,x", "ARROW1,x", "%PDF", "PK,tail", "html,tail", "<tail>,b"]
)
def test_a_header_that_begins_as_a_signature_is_text(header: str, tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text(f"{header}\na,b\n")
    assert describe_other_kind(path) is None


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "links.csv"
    os.mkfifo(pipe)
    assert describe_other_kind(pipe) is None
