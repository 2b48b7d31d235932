"""Files that are no network at all: one clear line each, whatever the reader."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner_models.traffic.readers import graphml, repetita, sndlib

READERS: dict[str, Callable[[Path], Any]] = {
    "net.graphml": lambda path: graphml.read(path, total_mbps=1.0),
    "net.xml": sndlib.read,
    "net.txt": sndlib.read,
    "net.graph": repetita.read,
}
AS_XML = ("net.graphml", "net.xml")
NATIVE = "'?SNDlib native format; type: network; version: 1.0'"
BOMB = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><{root}>&b;</{root}>'
EXTERNAL = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]><{root}>&a;</{root}>'


def faults(path: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        READERS[path.name](path)
    return caught.value.faults


@pytest.mark.parametrize("name", READERS)
def test_missing_file(tmp_path: Path, name: str) -> None:
    assert faults(tmp_path / name) == (f"{tmp_path / name}: no such file",)


@pytest.mark.parametrize("name", READERS)
def test_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert faults(tmp_path / name) == (f"{tmp_path / name}: is a folder, must be a file",)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("net.graphml", b"", "net.graphml: is empty, must be XML with root element 'graphml'"),
        ("net.xml", b" \n", f"net.xml: is empty, must be XML or begin with {NATIVE}"),
        ("net.txt", b"\x7fELF\0\0", "net.txt: is a binary file, must be text"),
        ("net.graph", b"\x7fELF\0\0", "net.graph: is a binary file, must be text"),
        (
            "net.graphml",
            b"\x7fELF\0\0",
            "net.graphml: is no well-formed XML (not well-formed (invalid token): line 1, column 0)",
        ),
        (
            "net.graph",
            "NODES 1\nÖl".encode("latin-1"),
            "net.graph row 2: byte 0xd6 is not UTF-8; save the file as UTF-8",
        ),
        ("net.graph", b"\xff\xfeN\0", "net.graph: is UTF-16 text, must be saved as UTF-8"),
        ("net.graph", b"x" * (1 << 20 | 1), "net.graph: has a line of over 1,048,576 bytes; is it a table?"),
        (
            "net.graphml",
            b"<graphml><graph>",
            "net.graphml: is no well-formed XML (no element found: line 1, column 16)",
        ),
        (
            "net.xml",
            b"<network>\n<a></b></network>",
            "net.xml: is no well-formed XML (mismatched tag: line 2, column 5)",
        ),
        ("net.graphml", b"<html/>", "net.graphml: root element is 'html', must be 'graphml'"),
        (
            "net.xml",
            '<network a="Ö"/>'.encode("latin-1"),
            "net.xml: is no well-formed XML (not well-formed (invalid token): line 1, column 12)",
        ),
        (
            "net.xml",
            b'<?xml version="1.0" encoding="klingon"?><network/>',
            "net.xml: cannot be decoded (unknown encoding: klingon)",
        ),
    ],
)
def test_content(tmp_path: Path, name: str, content: bytes, line: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert faults(tmp_path / name) == (line,)


@pytest.mark.parametrize("name", AS_XML)
@pytest.mark.parametrize("text", [BOMB, EXTERNAL])
def test_entities_are_refused(tmp_path: Path, name: str, text: str) -> None:
    root = "graphml" if name == "net.graphml" else "network"
    (tmp_path / name).write_text(text.replace("{root}", root), encoding="utf-8")
    assert faults(tmp_path / name) == (f"{name}: refused for safety: entities forbidden in XML",)


@pytest.mark.parametrize("name", AS_XML)
def test_utf_16_is_read_as_xml_declares(tmp_path: Path, name: str) -> None:
    root = "graphml" if name == "net.graphml" else "network"
    (tmp_path / name).write_bytes(f'<?xml version="1.0" encoding="UTF-16"?><{root}/>'.encode("utf-16"))
    assert faults(tmp_path / name)[0].startswith((f"{name}: has 0 graphs", f"{name}: element"))


@pytest.mark.parametrize("name", AS_XML)
def test_deep_and_long_xml_is_only_wrong(tmp_path: Path, name: str) -> None:
    root = "graphml" if name == "net.graphml" else "network"
    deep = f"<{root}>{'<a>' * 20_000}{'</a>' * 20_000}</{root}>"
    (tmp_path / name).write_text(deep, encoding="utf-8")
    assert len(faults(tmp_path / name)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_may_not_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch(mode=0)
    assert faults(tmp_path / name) == (f"{tmp_path / name}: may not be read",)


def test_no_reader_loads_its_source_before_it_reads() -> None:
    for module in ("topohub", "graphml", "sndlib", "repetita", "gravity", "load"):
        reader = f"planner_models.traffic.readers.{module}"
        code = f"import {reader}, sys; print({{'topohub', 'networkx'}} & set(sys.modules))"
        assert run(code) == "set()"


def run(code: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()
