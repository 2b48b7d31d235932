"""SNDlib files as problems: modules, costs and directions, and published optima."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import planner
from planner.contract.notes import notes_of
from planner.errors import InputError
from planner_models.capacity.problem.adjustments import adjust
from planner_models.capacity.problem.readers import read_sndlib
from tests.models.traffic.problem.readers.test_sndlib import BOTH, TEXT

SNDLIB = Path(os.environ.get("PLANNER_TRACES", "")) / "sndlib"


def write(folder: Path, text: str) -> Path:
    path = folder / ("net.xml" if text.startswith("<") else "net.txt")
    path.write_text(text, encoding="iso-8859-1")
    return path


@BOTH
def test_modules_and_costs(tmp_path: Path, text: str) -> None:
    problem = read_sndlib(write(tmp_path, text), modules_per_link="one")
    links = problem.links[["tail", "head", "capacity_mbps", "installed_cost", "routing_cost"]]
    assert links.to_numpy().tolist() == [
        ["Bonn", "Ulm", 40.0, 1.0, 0.0],
        ["Ulm", "Trier", 0.0, 0.0, 5.0],
        ["Bonn", "Ulm", 2.5, 0.0, 0.0],
    ]
    assert problem.modules[["link", "capacity_mbps", "cost"]].to_numpy().tolist() == [
        ["Bonn<->Ulm", 10.0, 3.0],
        ["Bonn<->Ulm", 160.0, 9.0],
        ["Ulm<->Trier", 155.0, 7.0],
        ["Ulm<->Trier", 622.0, 8.0],
    ]
    assert problem.one_module
    assert problem.demands["rate_mbps"].tolist() == [20.0, 1.0]


def test_rates_and_prices_have_a_unit(tmp_path: Path) -> None:
    problem = read_sndlib(write(tmp_path, TEXT), unit="gbps", direction="directed")
    assert problem.names == ["Bonn->Ulm", "Ulm->Trier", "Bonn->Ulm#2"]
    assert problem.options.size[0] == 10_000.0
    assert problem.options.cost[0] == 3.0
    assert problem.routing_cost[1] == 0.005


def test_what_the_file_does_not_say_is_said(tmp_path: Path) -> None:
    write(tmp_path, TEXT)
    scenario = tmp_path / "s.toml"
    text = 'system = "capacity"\n[problem]\nsource = "sndlib"\npath = "net.txt"\n{}\n[designs.greedy]\n'
    scenario.write_text(text.format(""))
    modules, direction = notes_of(planner.solve(scenario).problem)
    assert modules.startswith("assumed: net.txt: a link may have any number of each module")
    assert direction.startswith("assumed: net.txt: links: demands of both directions add up on the capacity")
    scenario.write_text(text.format('direction = "undirected"\nmodules_per_link = "one"'))
    assert notes_of(planner.solve(scenario).problem) == []


def test_a_file_without_modules_is_refused(tmp_path: Path) -> None:
    text = TEXT.replace("( 160 9 10 3 )", "( )").replace("( 155 7 622 8 )", "( )")
    with pytest.raises(InputError, match=r"net\.txt: has no module that could be bought"):
        read_sndlib(write(tmp_path, text))


@pytest.mark.slow
@pytest.mark.skipif(not SNDLIB.is_dir(), reason="PLANNER_TRACES has no folder sndlib")
@pytest.mark.parametrize(("failures", "best"), [("none", 20_200.0), ("links", 33_400.0)])
def test_the_published_optima_of_france(failures: str, best: float) -> None:
    problem = read_sndlib(SNDLIB / "france.xml", setup_costs=False, direction="undirected")
    run = planner.solve(adjust(problem, failures=failures), design="optimum")  # type: ignore[arg-type]
    assert run.status == "optimal"
    assert run.metrics["total_cost"] == pytest.approx(best)
    assert run.metrics["unserved_mbps"] == 0
