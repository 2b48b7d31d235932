"""What SNDlib files do not say: the notes, and networks with a link for each direction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner_models.traffic.problem.readers import sndlib, topohub
from tests.models.traffic.problem.readers.test_sndlib import TEXT

LINE = "  L1 ( A B ) 10 0 0 0 ( )\n"
OPPOSITE = "  L2 ( B A ) 10 0 0 0 ( )\n"
ONE_WAY = "  D1 ( A B ) 1 6 UNLIMITED\n"
BACK = "  D2 ( B A ) 1 15 UNLIMITED\n"


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
