"""SNDlib files in both syntaxes: modules, directions, units, and faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import planner
from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner_models.traffic.problem.readers import sndlib, topohub

XML = """<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <networkStructure>
  <nodes coordinatesType="geographical">
   <node id="Bonn"><coordinates><x>7.1</x><y>50.73</y></coordinates></node>
   <node id="Ulm"><coordinates><x> 9.99 </x><y>48.4</y></coordinates></node>
   <node id="Trier"><coordinates><x>6.64</x><y>49.75</y></coordinates></node>
  </nodes>
  <links>
   <link id="L1"><source>Bonn</source><target> Ulm </target>
    <preInstalledModule><capacity>40</capacity><cost>1</cost></preInstalledModule>
    <additionalModules>
     <addModule><capacity>160</capacity><cost>9</cost></addModule>
     <addModule><capacity>10</capacity><cost>3</cost></addModule>
    </additionalModules></link>
   <link id="L2"><source>Ulm</source><target>Trier</target>
    <preInstalledModule><capacity>0</capacity><cost>0</cost></preInstalledModule>
    <routingCost>5</routingCost>
    <additionalModules>
     <addModule><capacity>155</capacity><cost>7</cost></addModule>
     <addModule><capacity>622</capacity><cost>8</cost></addModule>
    </additionalModules></link>
   <link id="L3"><source>Bonn</source><target>Ulm</target>
    <preInstalledModule><capacity>2.5</capacity></preInstalledModule></link>
  </links>
 </networkStructure>
 <demands>
  <demand id="D1"><source>Bonn</source><target>Trier</target>
   <routingUnit>2</routingUnit><demandValue>8.5</demandValue></demand>
  <demand id="D2"><source>Trier</source><target>Bonn</target><demandValue>1</demandValue></demand>
  <demand id="D3"><source>Bonn</source><target>Trier</target><demandValue>3</demandValue></demand>
 </demands>
</network>
"""
TEXT = """?SNDlib native format; type: network; version: 1.0
# a comment ( with a parenthesis

NODES (
  Bonn ( 7.10 50.73 ) () ()
  Ulm ( 9.99 48.40 )  # another
  Trier ( 6.64 49.75 )
)
LINKS (
  L1 ( Bonn Ulm ) 40 1 0 0 ( 160 9 10 3 )
  L2 ( Ulm Trier ) 0.00 0.00 5 0 ( 155 7 622 8 )
  L3 ( Bonn Ulm ) 2.5 0 0 0 ( )
)
DEMANDS (
  D1 ( Bonn Trier ) 2 8.5 UNLIMITED
  D2 ( Trier Bonn ) 1 1 UNLIMITED
  D3 ( Bonn Trier ) 1 3 4
)
ADMISSIBLE_PATHS (
  D1 (
    P1 ( L1 L2 )
  )
)
"""
HEADER = "?SNDlib native format; type: network; version: 1.0"
LINK_RULE = (
    "net.txt line 12: must be '<link> ( <source> <target> ) <capacity> <cost> <routing cost> <setup cost> "
    "( <module capacity> <module cost> ... )'"
)
BOTH = pytest.mark.parametrize("text", [XML, TEXT], ids=["xml", "native"])
LINE = "  L1 ( A B ) 10 0 0 0 ( )\n"
OPPOSITE = "  L2 ( B A ) 10 0 0 0 ( )\n"
ONE_WAY = "  D1 ( A B ) 1 6 UNLIMITED\n"
BACK = "  D2 ( B A ) 1 15 UNLIMITED\n"


def read(tmp_path: Path, text: str, **parameters: Any) -> dict[str, pd.DataFrame]:
    path = tmp_path / ("net.xml" if text.startswith("<") else "net.txt")
    path.write_bytes(text.encode("latin-1" if "ISO-8859-1" in text else "utf-8"))
    return sndlib.read(path, **parameters)


def faults(tmp_path: Path, text: str, **parameters: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, **parameters)
    return caught.value.faults


@BOTH
def test_network(tmp_path: Path, text: str) -> None:
    tables = read(tmp_path, text)
    assert tables["nodes"].values.tolist() == [
        ["Bonn", 50.73, 7.1],
        ["Ulm", 48.4, 9.99],
        ["Trier", 49.75, 6.64],
    ]
    assert tables["links"].values.tolist() == [
        ["Bonn", "Ulm", 40.0, 0.0],
        ["Ulm", "Bonn", 40.0, 0.0],
        ["Ulm", "Trier", 155.0, 5.0],
        ["Trier", "Ulm", 155.0, 5.0],
        ["Bonn", "Ulm", 2.5, 0.0],
        ["Ulm", "Bonn", 2.5, 0.0],
    ]
    assert tables["demands"].values.tolist() == [["Bonn", "Trier", 20.0], ["Trier", "Bonn", 1.0]]


@BOTH
@pytest.mark.parametrize(
    ("module", "capacity"),
    [("preinstalled", [40, 155, 2.5]), ("smallest", [10, 155, 2.5]), ("largest", [160, 622, 2.5])],
)
def test_modules(tmp_path: Path, text: str, module: str, capacity: list[float]) -> None:
    links = read(tmp_path, text, module=module, link_direction="directed")["links"]
    assert links["capacity_mbps"].tolist() == capacity
    assert links["cost"].tolist() == [0, 5, 0], "the routing cost, not what a module costs"


@BOTH
def test_a_cost_is_of_each_mbps(tmp_path: Path, text: str) -> None:
    links = read(tmp_path, text, unit="gbps", link_direction="directed")["links"]
    assert links["cost"].tolist() == [0, 0.005, 0]


@BOTH
def test_undirected_demands_go_both_ways(tmp_path: Path, text: str) -> None:
    demands = read(tmp_path, text, demand_direction="undirected")["demands"]
    assert demands.values.tolist() == [["Bonn", "Trier", 21.0], ["Trier", "Bonn", 21.0]]


@BOTH
def test_units(tmp_path: Path, text: str) -> None:
    tables = read(tmp_path, text, unit="gbps")
    assert tables["links"]["capacity_mbps"][0] == 40_000
    assert tables["demands"]["rate_mbps"].tolist() == [20_000, 1000]


def test_a_unit_other_than_the_declared_one_is_an_error(tmp_path: Path) -> None:
    text = TEXT.replace("NODES (", "META (\n  granularity = 5min\n  unit = KBITPERSEC\n)\nNODES (", 1)
    assert faults(tmp_path, text) == ("net.txt: its rates are declared in KBITPERSEC; set unit = 'kbps'",)
    assert read(tmp_path, text, unit="kbps")["demands"]["rate_mbps"].tolist() == [0.02, 0.001]
    text = XML.replace(" <networkStructure>", "<meta><unit>MBITPERSEC</unit></meta><networkStructure>")
    assert read(tmp_path, text)["demands"]["rate_mbps"].tolist() == [20, 1]


def test_demands_of_another_file(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.txt"
    matrix.write_text(
        TEXT.split("LINKS")[0] + "DEMANDS (\n D ( Ulm Bonn ) 1 7 UNLIMITED\n)\n", encoding="utf-8"
    )
    assert read(tmp_path, XML, demands=matrix)["demands"].values.tolist() == [["Ulm", "Bonn", 7.0]]
    matrix.write_text(TEXT.replace("Trier", "Trieste"), encoding="utf-8")
    assert faults(tmp_path, XML, demands=matrix)[0] == (
        "matrix.txt line 15: target is 'Trieste', must be a node; valid: Bonn, Trier, Ulm"
    )


def test_pixels_are_not_read_as_degrees(tmp_path: Path) -> None:
    assert list(read(tmp_path, XML.replace("geographical", "pixel"))["nodes"]) == ["node"]
    assert list(read(tmp_path, TEXT.replace("48.40", "480"))["nodes"]) == ["node"]
    assert list(read(tmp_path, TEXT, coordinates="pixel")["nodes"]) == ["node"]
    told = read(tmp_path, XML.replace("geographical", "pixel"), coordinates="geographical")
    assert told["nodes"]["latitude"].tolist() == [50.73, 48.4, 49.75]


def test_costs_that_are_all_zero_are_no_column(tmp_path: Path) -> None:
    text = TEXT.replace("0.00 0.00 5 0", "0.00 0.00 0 0")
    assert list(read(tmp_path, text)["links"]) == ["tail", "head", "capacity_mbps"]


def test_latin_1_as_the_file_declares(tmp_path: Path) -> None:
    assert read(tmp_path, XML.replace("Ulm", "Köln"))["nodes"]["node"][1] == "Köln"


@BOTH
def test_links_without_capacity(tmp_path: Path, text: str) -> None:
    (line,) = faults(tmp_path, text.replace("2.5", "0"))
    position = "net.xml: link 'L3'" if text is XML else "net.txt line 12"
    assert line == f"{position}: has neither a pre-installed capacity nor a module with one"


def test_every_fault_of_xml_at_once(tmp_path: Path) -> None:
    text = XML.replace("geographical", "polar").replace("<x>7.1</x>", "<x>east</x>").replace('id="L3"', "")
    text = text.replace(">160<", ">abc<").replace("<target> Ulm </target>", "<target>Ulmm</target>")
    text = text.replace("<demandValue>8.5</demandValue>", "").replace('<node id="Trier">', '<node id="Bonn">')
    assert faults(tmp_path, text) == (
        "net.xml: coordinatesType is 'polar', must be geographical or pixel",
        "net.xml: link 3: id is missing",
        "net.xml: node 'Bonn': x is 'east', must be a number",
        "net.xml: node 'Bonn': node 'Bonn' is there already",
        "net.xml: link 'L1': target is 'Ulmm', must be a node; did you mean 'Ulm'?",
        "net.xml: link 'L2': target is 'Trier', must be a node; valid: Bonn, Ulm",
        "net.xml: link 'L1': module capacity is 'abc', must be a number",
        "net.xml: demand 'D1': target is 'Trier', must be a node; valid: Bonn, Ulm",
        "net.xml: demand 'D2': source is 'Trier', must be a node; valid: Bonn, Ulm",
        "net.xml: demand 'D3': target is 'Trier', must be a node; valid: Bonn, Ulm",
        "net.xml: demand 'D1': demand value is missing",
    )


def test_every_fault_of_text_at_once(tmp_path: Path) -> None:
    text = TEXT.replace("Ulm ( 9.99 48.40 )", "Ulm ( 9.99 )").replace("40 1 0 0", "40 one 0 0")
    text = (
        text.replace("L3 ( Bonn Ulm )", "L3 ( Bonn )").replace("2 8.5 UNLIMITED", "2").replace("6.64", "6,64")
    )
    text = text.replace("DEMANDS (", "DEMAND (", 1)
    assert faults(tmp_path, text) == (
        "net.txt line 6: must be '<node> ( <x> <y> )'",
        LINK_RULE,
        "net.txt line 14: is 'DEMAND', must be a section; did you mean 'DEMANDS'?",
        "net.txt line 7: x is '6,64', must be a number",
        "net.txt line 10: pre-installed cost is 'one', must be a number",
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "",
            f"net.txt: is empty, must be XML or begin with '{HEADER}'",
        ),
        (
            "NODES (\n)\n",
            f"net.txt: begins with 'NODES (', must be XML or begin with '{HEADER}'",
        ),
        (
            TEXT.replace("network;", "model;"),
            f"net.txt: is of type 'model', must be '{HEADER}'",
        ),
        (TEXT[: TEXT.index("  D2")], "net.txt: ends within DEMANDS, a closing parenthesis is missing"),
        ("<network/>", "net.xml: element 'networkStructure/nodes' is missing"),
        ("<network><networkStructure><nodes/></networkStructure></network>", "net.xml: has no nodes"),
        ("<net/>", "net.xml: root element is 'net', must be 'network'"),
    ],
)
def test_structure(tmp_path: Path, text: str, line: str) -> None:
    assert line in faults(tmp_path, text)


def network(folder: Path, links: str = LINE, demands: str = ONE_WAY, meta: str = "") -> Path:
    path = folder / "net.txt"
    head = "?SNDlib native format; type: network; version: 1.0\n"
    nodes = "NODES (\n  A ( 1 1 )\n  B ( 2 2 )\n)\n"
    path.write_text(f"{head}{meta}{nodes}LINKS (\n{links})\nDEMANDS (\n{demands})\n")
    return path


def notes(read: Callable[[], Any]) -> list[str]:
    """Return the notes that reading adds."""
    said: list[str] = []
    with observe_notes(said.append):
        read()
    return said


def delivered_mbps(path: Path, **section: str) -> float:
    """Return what the optimum delivers, Mbit/s, of the network with keys of its section."""
    lines = "".join(f'{key} = "{value}"\n' for key, value in section.items())
    scenario = path.with_name("s.toml")
    scenario.write_text(
        f'system = "traffic"\n[problem]\nsource = "sndlib"\npath = "{path.name}"\n{lines}[designs.optimum]\n'
    )
    delivered = planner.solve(scenario).metrics["delivered_mbps"]
    assert delivered is not None
    return delivered


def test_all_that_is_taken_is_said_once(tmp_path: Path) -> None:
    path = network(tmp_path)
    direction, unit, demands, weights = notes(lambda: sndlib.read(path))
    assert direction.startswith("assumed: net.txt: each link is one link each way (link_direction = ")
    assert unit == "assumed: net.txt: rates are in Mbit/s, as the file names no unit; unit sets another one"
    assert demands.startswith("assumed: net.txt: demands go from source to target only")
    assert weights == "assumed: net.txt: all links weigh 1"
    told = notes(
        lambda: sndlib.read(path, link_direction="bidirected", demand_direction="directed", unit="mbps")
    )
    assert told == [weights]


def test_what_the_file_says_needs_no_note(tmp_path: Path) -> None:
    meta = "META (\n  granularity = 5min\n  unit = MBITPERSEC\n)\n"
    path = network(tmp_path, demands=ONE_WAY + BACK, meta=meta)
    said = notes(lambda: sndlib.read(path, link_direction="bidirected"))
    assert said == ["assumed: net.txt: all links weigh 1"]


def test_a_choice_of_modules_is_said(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text(TEXT)
    (selected,) = (note for note in notes(lambda: sndlib.read(path)) if "module" in note)
    assert selected == (
        "assumed: net.txt: a link has its pre-installed capacity, else that of its smallest module "
        '(module = "preinstalled")'
    )
    assert not [note for note in notes(lambda: sndlib.read(path, module="largest")) if "module" in note]


def test_a_line_in_two_links_is_asked_about(tmp_path: Path) -> None:
    path = network(tmp_path, LINE + OPPOSITE, ONE_WAY + BACK)
    with pytest.raises(InputError) as result:
        delivered_mbps(path)
    (line,) = result.value.faults
    assert line.startswith(
        "net.txt: every link has its opposite, such as line 7 (A to B) and line 8 (B to A): "
        'set link_direction: "directed"'
    )
    assert delivered_mbps(path, link_direction="directed") == pytest.approx(6 + 10)
    assert delivered_mbps(path, link_direction="bidirected") == pytest.approx(6 + 15)


def test_a_series_of_files_asks_once(tmp_path: Path) -> None:
    for step in "12":
        network(tmp_path, LINE + OPPOSITE).rename(tmp_path / f"{step}.txt")
    section = {"source": "percentile", "path": "."}
    scenario = tmp_path / "s.toml"
    lines = "".join(f'{key} = "{value}"\n' for key, value in section.items())
    text = 'system = "traffic"\n[problem]\n' + lines + "{}\n[designs.optimum]\n"
    scenario.write_text(text.format(""))
    with pytest.raises(InputError, match=r"1\.txt: every link has its opposite"):
        planner.solve(scenario)
    scenario.write_text(text.format('link_direction = "directed"'))
    said = notes_of(planner.solve(scenario).problem)
    (note,) = (note for note in said if "demands go from source to target only" in note)
    assert note == (
        "assumed: 1.txt: demands go from source to target only, and no pair has one each way; "
        'demand_direction = "undirected" adds the way back'
    )


def test_networks_of_topohub_have_no_metric() -> None:
    said = notes(lambda: topohub.read("sndlib/abilene"))
    assert said == [
        'assumed: sndlib/abilene: all links weigh 1; weight = "distance" weighs them by their lengths'
    ]
    assert notes(lambda: topohub.read("sndlib/abilene", weight="hops")) == []
