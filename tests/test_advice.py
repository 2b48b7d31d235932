"""Advice in messages names options and keys that there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import planner
import planner_dashboard
import planner_models
from planner.cli.application import commands
from planner.io.layout import KEYS

OPTION: Final = re.compile(r"(?<![\w`-])--[a-z]+(?:-[a-z]+)*(?![\w.-])")
OTHER_PROGRAMS: Final = {
    "--long": "openstack server list --long shows hosts and flavors",
    "--names": "ovs-ofctl(8): --names shows names of ports and tables",
    "--no-names": "ovs-ofctl(8): --no-names shows numbers of ports and tables",
    "--nthreads": "dask worker --help",
    "--nworkers": "dask worker --help",
    "--planner-figures": "a custom property of style sheets",
}
ADVICE: Final = re.compile(r"layout\.advise\(\s*'?\"?(\w+)")


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text of the source code, with the name of its file; docstrings too."""
    for package in (planner, planner_models, planner_dashboard):
        for folder in package.__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield path.name, node.value


def options_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in getattr(command, "commands", {}).values():
        yield from options_of(inner)


@pytest.mark.slow
def test_every_option_that_a_text_names_is_one_of_a_command() -> None:
    names = {*options_of(commands()), "--help", *OTHER_PROGRAMS}
    unknown = [
        f"{file}: {option}"
        for file, text in texts()
        for option in OPTION.findall(text)
        if option not in names
    ]
    assert not sorted(set(unknown))


def test_every_key_that_advice_names_is_one_of_a_table() -> None:
    named = [
        key
        for folder in planner.__path__
        for path in Path(folder).rglob("*.py")
        for key in ADVICE.findall(path.read_text(encoding="utf-8"))
    ]
    assert named
    assert set(named) <= set(KEYS)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("delimiter", 'delimiter = ";"'),
        ("decimal", 'decimal = ","'),
        ("encoding", 'encoding = "cp1252"'),
        ("header", "header = 2"),
    ],
)
def test_what_advice_says_can_be_written(kind: str, words: str, tmp_path: Path, monkeypatch: Any) -> None:
    from tests.commands import planner as command

    monkeypatch.chdir(tmp_path)
    mark = ";" if kind in ("delimiter", "decimal") else ","
    number = "6,500" if kind == "decimal" else "6"
    title = "made by a tool\n" if kind == "header" else ""
    rows = [["window", "region", "traffic_mbps"], ["1", "EUé", "5"], ["2", "EUé", number]]
    text = title + "".join(mark.join(row) + "\n" for row in rows)
    encoding = "cp1252" if kind == "encoding" else "utf-8"
    Path("traffic.csv").write_text(text, encoding=encoding)
    Path("contracts.csv").write_text(
        "cdn,region,billing,price_per_mbps,capacity_mbps\nA,EUé,peak,1,10\n", encoding="utf-8"
    )
    Path("s.toml").write_text(
        f'system = "contracts"\n[problem]\nsource = "tables"\npath = "."\n[problem.tables.traffic]\n{words}\n'
    )
    result = command("solve", "s.toml", "--design", "cheapest_first", "--json")
    assert result.code == 0, result.err
    assert f'"offered_mbps": {5.75 if kind == "decimal" else 5.5}' in result.out
