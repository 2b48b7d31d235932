"""Files that are no network or damaged: one clear line for each fault, the same in every reader."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic import Traffic
from planner_models.traffic.problem.readers import graphml, repetita, sndlib

READERS: dict[str, Callable[[Path], Any]] = {
    "net.graphml": lambda path: graphml.read(path, total_mbps=1.0),
    "net.xml": sndlib.read,
    "net.txt": sndlib.read,
    "net.graph": repetita.read,
}
AS_XML = ("net.graphml", "net.xml")
NATIVE_HEADER = "'?SNDlib native format; type: network; version: 1.0'"
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
        ("net.xml", b" \n", f"net.xml: is empty, must be XML or begin with {NATIVE_HEADER}"),
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
def test_entities_in_xml_are_an_error(tmp_path: Path, name: str, text: str) -> None:
    root = "graphml" if name == "net.graphml" else "network"
    (tmp_path / name).write_text(text.replace("{root}", root), encoding="utf-8")
    assert faults(tmp_path / name) == (f"{name}: refused for safety: entities forbidden in XML",)


@pytest.mark.parametrize("name", AS_XML)
def test_utf_16_is_read_where_xml_declares_it(tmp_path: Path, name: str) -> None:
    root = "graphml" if name == "net.graphml" else "network"
    (tmp_path / name).write_bytes(f'<?xml version="1.0" encoding="UTF-16"?><{root}/>'.encode("utf-16"))
    assert faults(tmp_path / name)[0].startswith((f"{name}: has 0 graphs", f"{name}: element"))


@pytest.mark.parametrize("name", AS_XML)
def test_deeply_nested_xml_is_one_fault(tmp_path: Path, name: str) -> None:
    root = "graphml" if name == "net.graphml" else "network"
    deep = f"<{root}>{'<a>' * 20_000}{'</a>' * 20_000}</{root}>"
    (tmp_path / name).write_text(deep, encoding="utf-8")
    assert len(faults(tmp_path / name)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", READERS)
def test_a_file_without_read_permission(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch(mode=0)
    assert faults(tmp_path / name) == (f"{tmp_path / name}: may not be read",)


@pytest.mark.slow
def test_importing_readers_does_not_import_their_sources() -> None:
    modules = ("topohub", "graphml", "sndlib", "repetita")
    readers = ", ".join(f"planner_models.traffic.problem.readers.{module}" for module in modules)
    assert run(f"import {readers}, sys; print({{'topohub', 'networkx'}} & set(sys.modules))") == "set()"


def run(code: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return result.stdout.strip()


# --- damaged files ------------------------------------------------------------------------

GRAPH = """NODES 2
label x y
a 1 2
b 3 4

EDGES 2
label src dest weight bw delay
e 0 1 1 1000 5
f 1 0 1 2000 5
"""
NATIVE = """?SNDlib native format; type: network; version: 1.0
NODES (
 a ( 1 2 )
 b ( 3 4 )
)
LINKS (
 l ( a b ) 5 0 0 0 ( 6 7 )
)
DEMANDS (
 d ( a b ) 1 3 UNLIMITED
)
"""
XML = """<network>
<networkStructure>
<nodes><node id="a"/><node id="b"/></nodes>
<links><link id="l"><source>a</source><target>b</target>
<preInstalledModule><capacity>1</capacity></preInstalledModule></link></links>
</networkStructure>
<demands><demand id="d"><source>a</source><target>b</target><demandValue>1</demandValue></demand></demands>
</network>
"""
GRAPHML = """<graphml>
<key id="k" for="edge" attr.name="capacity"/>
<graph><node id="a"/><node id="b"/><edge source="a" target="b"><data key="k">1</data></edge></graph>
</graphml>
"""
DEMANDS = "DEMANDS 1\nlabel src dest bw\nd 0 1 1\n"
CASES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "net.graph": (GRAPH, repetita.read),
    "net.txt": (NATIVE, sndlib.read),
    "net.xml": (XML, sndlib.read),
    "net.graphml": (GRAPHML, lambda path: graphml.read(path, total_mbps=1.0)),
}
PIECES = st.sampled_from(
    ["", "(", ")", "#", "nan", "1e999", "-1", "<", ">", '"', " ", "\n", "%", "NODES (", "="]
)
PLACES = st.tuples(st.integers(0, 400), st.integers(0, 30), PIECES)


def faults_of_text(name: str, text: str) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        path.with_suffix(".demands").write_text(DEMANDS, encoding="utf-8")
        try:
            Traffic(**CASES[name][1](path))
        except InputError as error:
            return error.faults
    return ()


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_undamaged_file_is_read(name: str) -> None:
    assert faults_of_text(name, CASES[name][0]) == ()


@given(st.sampled_from(sorted(CASES)), st.lists(PLACES, min_size=1, max_size=3))
def test_damage_is_reported_in_printable_lines(name: str, damage: list[tuple[int, int, str]]) -> None:
    text = CASES[name][0]
    for position, length, piece in damage:
        text = text[:position] + piece + text[position + length :]
    assert all(line.isprintable() for line in faults_of_text(name, text))


@pytest.mark.parametrize("name", sorted(CASES))
def test_faulty_values_are_reported_with_the_name_of_the_file(name: str) -> None:
    old, new = {"net.graph": ("1000", "-1"), "net.txt": (") 5", ") -5")}.get(name, (">1<", ">-1<"))
    (line, *_) = faults_of_text(name, CASES[name][0].replace(old, new, 1))
    named = {"net.graphml": "edge 1: capacity is '-"}.get(name, "links row 1: capacity_mbps is -")
    assert line.startswith(f"{name}: {named}")
