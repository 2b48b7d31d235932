"""Whatever happens to a file on its way: tables, or one clear line for each fault."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic import Traffic
from planner_models.traffic.readers import graphml, repetita, sndlib

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


def faults(name: str, text: str) -> tuple[str, ...]:
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
def test_what_is_whole_is_read(name: str) -> None:
    assert faults(name, CASES[name][0]) == ()


@given(st.sampled_from(sorted(CASES)), st.lists(PLACES, min_size=1, max_size=3))
def test_damage_is_reported(name: str, damage: list[tuple[int, int, str]]) -> None:
    text = CASES[name][0]
    for place, length, piece in damage:
        text = text[:place] + piece + text[place + length :]
    assert all(line.isprintable() for line in faults(name, text))


@pytest.mark.parametrize("name", sorted(CASES))
def test_values_are_judged_later_by_the_name_of_the_file(name: str) -> None:
    old, new = {"net.graph": ("1000", "-1"), "net.txt": (") 5", ") -5")}.get(name, (">1<", ">-1<"))
    (line, *_) = faults(name, CASES[name][0].replace(old, new, 1))
    assert line.startswith(f"{name}: links row 1: capacity_mbps is -")
