"""Where nobody names designs, the usual ones of the system are compared, and the others are named."""

from __future__ import annotations

from pathlib import Path

import planner
from planner.runs.run import entries
from planner.scenarios.catalogue import find_system, system_names
from tests import commands

TEXT = 'system = "traffic"\n[problem]\nsource = "generate"\npreset = "fat_tree"\nk = 4\n'


def test_the_usual_designs_of_every_system_begin_with_its_default() -> None:
    for name in system_names():
        system = find_system(name)
        assert system.usual_designs[0] is system.designs[0]
        assert set(system.usual_designs) <= set(system.designs)


def test_a_scenario_without_designs_compares_the_usual_ones_and_names_the_others(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT)
    usual = list(find_system("traffic").usual)
    assert [one.label for one in entries(planner.load(file))] == usual
    done = commands.planner("compare", file)
    assert done.code == 0
    assert (
        f"designs: compares {', '.join(usual)}; --designs names others of traffic: shortest_path" in done.err
    )
    named = commands.planner("compare", file, "--designs", "ecmp,shortest_path")
    assert "designs: compares" not in named.err


def test_designs_that_a_scenario_names_stay(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT + "[designs.ecmp]\n")
    assert [one.label for one in entries(planner.load(file))] == ["ecmp"]
    assert "designs: compares" not in commands.planner("compare", file).err
