"""Commands and lines of Python that answer the same question again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import planner
from planner.cli.options import add_user_designs
from planner.reports import element_pages, run_pages
from planner.scenarios.commands import command_line, python_lines
from planner.scenarios.scenario import Additions, with_additions
from tests.commands import planner as command

HOPS = """
import networkx as nx

def by_hops(problem):
    graph = nx.DiGraph(problem.to_networkx())
    return [
        {**row, "path": nx.shortest_path(graph, row["source"], row["target"])}
        for row in problem.demands[["source", "target", "rate_mbps"]].to_dict("records")
    ]
"""


def test_lines_of_python_import_what_references_name() -> None:
    lines = python_lines("traffic/abilene", {}, ["ecmp", "sub/mine.py:hops", "package.module:MINE"])
    assert "sys.path.append('sub')" in lines
    assert "from mine import hops\nfrom package.module import MINE\n" in lines
    assert "designs=['ecmp', hops, MINE]" in lines
    plans = {"today": Path("a folder")}
    assert command_line("x.toml", {}, ["ecmp"], plans).endswith("--plan 'today=a folder'")
    assert "plans={'today': 'a folder'}" in python_lines("x.toml", {}, [], plans)


def test_commands_of_reports_run_with_designs_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "hops_of_commands.py").write_text(HOPS)
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\ns,t,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    file = tmp_path / "scenario.toml"
    file.write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')
    reference = f"{tmp_path}/hops_of_commands.py:by_hops"
    scenario, names = add_user_designs(planner.load(file), reference)
    bought = planner.upgrades(scenario, design=names, steps=1)
    notes = element_pages.upgrades_page(bought, scenario).parts[0].notes
    line = next(str(note) for note in notes if str(note).startswith("planner solve"))
    assert reference in line
    assert command(*shlex.split(line)[1:]).code == 0
    result = planner.compare(scenario, designs=names)
    shown = run_pages._commands(result, scenario)
    assert shown[0] == f"planner compare {file} --designs {reference}"
    assert command(*shlex.split(shown[0])[1:]).code == 0
    exec(shown[1], {})


def test_what_is_in_memory_only_has_no_command(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\ns,t,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    file = tmp_path / "scenario.toml"
    file.write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')

    def direct(problem: Any) -> list[dict[str, object]]:
        return [{"source": "s", "target": "t", "path": ["s", "t"], "rate_mbps": 12.0}]

    scenario = planner.load(file)
    result = planner.compare(scenario, designs=[direct])
    assert run_pages._commands(result, scenario) == []
    bought = planner.upgrades(scenario, design=direct, steps=1)
    assert bought.steps
    assert not any(
        "planner solve" in str(note) for note in element_pages.upgrades_page(bought, scenario).parts[0].notes
    )
    today = {"routes": [{"source": "s", "target": "t", "path": ["s", "t"], "rate_mbps": 12.0}]}
    beside = with_additions(scenario, Additions(plans={"today": today}))
    assert run_pages._commands(planner.compare(beside, designs="ecmp"), beside) == []
