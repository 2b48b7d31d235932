"""Bad input: one clear line each, the right exit code, no traceback, nothing lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.scenarios.shipped import scenario_names
from tests import commands

WEIGHTS = "assumed: links.csv: all links weigh 1\n"
"""What is said of all tables of links here, beside the error."""
LINKS = "tail,head,capacity_mbps\na,b,10\nb,c,10\nc,a,10\n"
DEMANDS = "source,target,rate_mbps\na,c,5\n"
NODES = "node\na\nb\nc\n"
SCENARIO = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "net"\n[designs.optimum]\n'


def planner(*arguments: object) -> commands.Done:
    """Run a command; what it says on standard error is without the line on weights."""
    result = commands.planner(*arguments)
    return replace(result, err=result.err.replace(WEIGHTS, ""))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario that is right, and the working directory."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "links.csv").write_text(LINKS)
    (tmp_path / "net" / "demands.csv").write_text(DEMANDS)
    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_scenario_itself_is_right(folder: Path) -> None:
    result = planner("solve", "s.toml", "--out", folder / "out")
    assert result.code == 0, result.err
    assert (folder / "out" / "optimum" / "plan" / "flows.parquet").exists()


# --- tables -------------------------------------------------------------------------------

BAD_TABLES: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "a missing file": ({"links": ""}, ["net: has no links.csv (nor .parquet, .xlsx, .ods, .feather, .json)"]),
    "an empty file": (
        {"links": b""},
        ["links.csv: is empty, must begin with a line of column names"],
    ),
    "only a header": ({"demands": "source,target,rate_mbps\n"}, ["demands.csv: holds no rows"]),
    "a missing column": (
        {"links": "tail,head,capacity\na,b,10\n"},
        [
            (
                "links.csv: column 'capacity' names no unit: call it capacity_mbps where it is in "
                "Mbit/s, or give it its own unit, such as capacity_gbps; or write [problem.columns.links] "
                'capacity_mbps = "capacity" for Mbit/s, or write [problem.columns.links] '
                'capacity_gbps = "capacity" for Gbit/s'
            ),
        ],
    ),
    "an unknown column": (
        {"links": "tail,head,capacity_mbps,wieght\na,b,1,1\n"},
        ["links.csv: unknown column 'wieght'; did you mean 'weight'?"],
    ),
    "a column twice": ({"links": "tail,head,tail\na,b,c\n"}, ["links.csv: column 'tail' occurs twice"]),
    "two delimiters": (
        {"links": "tail;head,capacity_mbps\na;b,10\n"},
        ["links.csv: columns may be separated by comma or semicolon: say [problem.tables.links] delimiter"],
    ),
    "NaN": (
        {"links": LINKS + "a,c,nan\n"},
        ["links.csv row 5: capacity_mbps is nan, must be a finite number"],
    ),
    "infinite": (
        {"links": LINKS + "a,c,inf\n"},
        ["links.csv row 5: capacity_mbps is inf, must be a finite number; for no limit write 1e+12"],
    ),
    "an empty field": ({"links": LINKS + "a,c,\n"}, ["links.csv row 5: capacity_mbps is empty"]),
    "an empty name": ({"links": LINKS + ",c,1\n"}, ["links.csv row 5: tail is empty"]),
    "negative capacity": (
        {"links": LINKS + "a,c,-3\n"},
        ["links.csv row 5: capacity_mbps is -3.0, must be at least 0"],
    ),
    "a capacity that means nothing": (
        {"links": LINKS + "a,c,1e-300\n"},
        ["links.csv row 5: capacity_mbps is 1e-300, must be 0 or at least 1e-15"],
    ),
    "a capacity beyond all networks": (
        {"links": LINKS + "a,c,1e300\n"},
        ["links.csv row 5: capacity_mbps is 1e+300, must be at most 1e+12"],
    ),
    "no link that is up": (
        {"links": "tail,head,capacity_mbps\na,b,0\nb,c,0\n"},
        ["links.csv: capacity_mbps is 0 in every row: no link is up"],
    ),
    "text in a number column": (
        {"links": LINKS + "a,c,ten\n"},
        ["links.csv row 5: capacity_mbps is 'ten', must be a number"],
    ),
    "a decimal comma and a decimal point": (
        {"links": LINKS + 'a,c,"1,5"\nb,a,2.5\n'},
        [
            (
                "links.csv: capacity_mbps is '2.5' in row 6, with a decimal point, but capacity_mbps is "
                "'1,5' in row 5, with a decimal comma; write all alike, or say "
                '[problem.tables.links] decimal = "." or ","'
            )
        ],
    ),
    "too many fields": ({"links": LINKS + "a,c,1,2\n"}, ["links.csv row 5: has 4 fields, the header has 3"]),
    "an open quote": ({"links": LINKS + '"a,c,1\n'}, ["links.csv row 5: unexpected end of data"]),
    "blank lines count": (
        {"links": LINKS + "\n\na,c,-1\n"},
        ["links.csv row 7: capacity_mbps is -1.0, must be at least 0"],
    ),
    "negative demand": (
        {"demands": DEMANDS + "b,c,-1\n"},
        ["demands.csv row 3: rate_mbps is -1.0, must be at least 0"],
    ),
    "an unknown node": (
        {"demands": DEMANDS + "b,d,1\n", "nodes": NODES},
        ["demands.csv row 3: target 'd' is no node of the network; valid: a, b, c"],
    ),
    "a demand to itself": (
        {"demands": DEMANDS + "b,b,1\n"},
        ["demands.csv row 3: source and target are both 'b', must differ"],
    ),
    "duplicate rows": (
        {"demands": DEMANDS + "a,c,5\n"},
        [
            (
                "demands.csv row 3: source 'a', target 'c' is there already in row 2; for several flows of a "
                "pair add a column class that names each"
            )
        ],
    ),
    "a duplicate node": (
        {"nodes": NODES + "b\n"},
        ["nodes.csv row 5: node 'b' is there already in row 3"],
    ),
    "a binary file": ({"links": b"PK\x03\x04\x00\x00"}, ["links.csv: is a binary file, must be text"]),
    "another encoding": (
        {"links": "tail,head,capacity_mbps\na,Москва,10\n".encode("cp1251")},
        [
            (
                "links.csv: is not UTF-8, and 'Ìîñêâà' is no Western European text (cp1252); save it as "
                "UTF-8, or say [problem.tables.links] encoding"
            )
        ],
    ),
    "half of UTF-16": (
        {"links": LINKS.encode("utf-16")[:-1]},
        [
            (
                "links.csv: cannot be read as utf-16 (it has bytes that are no letter); save it as "
                "UTF-8, or say [problem.tables.links] encoding"
            )
        ],
    ),
    "a damaged letter": (
        {"links": "tail,head,capacity_mbps\na,Köln,10\n".encode() + b"b,K\xf6ln,1\n"},
        ["links.csv row 3: byte 0xf6 is not UTF-8; save the file as UTF-8"],
    ),
    "half a character": (
        {"links": LINKS.encode() + b"a,c\xc3"},
        ["links.csv row 5: ends within a UTF-8 character; is it whole?"],
    ),
    "faults in two tables": (
        {"links": LINKS + "a,c,-2\n", "demands": DEMANDS + "b,c,x\n"},
        [
            "links.csv row 5: capacity_mbps is -2.0, must be at least 0",
            "demands.csv row 3: rate_mbps is 'x', must be a number",
        ],
    ),
}


@pytest.mark.parametrize("fault", BAD_TABLES)
@pytest.mark.parametrize("command", ["solve", "check"])
def test_a_bad_table(folder: Path, command: str, fault: str) -> None:
    tables, expected = BAD_TABLES[fault]
    for name, text in tables.items():
        path = folder / "net" / f"{name}.csv"
        if text == "":
            path.unlink()
        else:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = planner(command, "s.toml")
    assert (result.code, result.err.splitlines(), result.out) == (1, expected, "")


def test_a_folder_in_place_of_a_file(folder: Path) -> None:
    (folder / "net" / "links.csv").unlink()
    (folder / "net" / "links.csv").mkdir()
    result = planner("solve", "s.toml")
    assert (result.code, result.err.splitlines()) == (1, ["net/links.csv: is a folder, must be a file"])


def test_a_line_of_200_megabytes(folder: Path) -> None:
    with (folder / "net" / "links.csv").open("wb") as file:
        file.write(LINKS.encode())
        file.seek(200_000_000)
        file.write(b"x")
    result = planner("solve", "s.toml")
    assert (result.code, len(result.err.splitlines())) == (1, 1), "sparse: the hole reads as zeros"
    with (folder / "net" / "links.csv").open("wb") as file:
        for _ in range(200):
            file.write(b"x" * 1_000_000)
    result = planner("solve", "s.toml")
    assert (result.code, result.err) == (1, "links.csv: has a line of over 1,048,576 bytes; is it a table?\n")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all"])
def test_a_file_that_is_no_parquet(folder: Path, content: bytes) -> None:
    (folder / "net" / "links.csv").unlink()
    (folder / "net" / "links.parquet").write_bytes(content)
    result = planner("solve", "s.toml")
    assert result.code == 1
    assert result.err.startswith("links.parquet: is no Parquet file (")
    assert len(result.err.splitlines()) == 1


def test_parquet_rows_count_from_one(folder: Path) -> None:
    (folder / "net" / "demands.csv").unlink()
    frame = pd.DataFrame({"source": ["a", "b"], "target": ["c", "a"], "rate_mbps": [1.0, -1.0]})
    frame.to_parquet(folder / "net" / "demands.parquet")
    result = planner("solve", "s.toml")
    assert result.err == "demands.parquet row 2: rate_mbps is -1.0, must be at least 0\n"


def test_two_files_for_one_table(folder: Path) -> None:
    (folder / "net" / "links.parquet").write_bytes(b"")
    assert planner("solve", "s.toml").err == (
        "net: has both links.csv and links.parquet for table links; keep one, or write "
        '[problem.tables.links] file = "PATH"\n'
    )


def test_of_a_thousand_faults_a_few_are_shown(folder: Path) -> None:
    (folder / "net" / "links.csv").write_text(LINKS + "a,c,-1\n" * 1000)
    lines = planner("solve", "s.toml").err.splitlines()
    assert len(lines) == 6
    assert lines[-1] == "links.csv: 995 more rows where capacity_mbps must be at least 0"


# --- scenarios ----------------------------------------------------------------------------

BAD_SCENARIOS: dict[str, tuple[str, list[str]]] = {
    "wrong TOML": ("system = traffic\n", ["s.toml: is no valid TOML: Invalid value (at line 1, column 10)"]),
    "empty": (
        "",
        ["s.toml: system: is missing; one of: "],
    ),
    "an unknown system": (
        SCENARIO.replace('"traffic"', '"trafic"'),
        ["s.toml: system: trafic: no such system; did you mean 'traffic'?"],
    ),
    "an unknown key": (
        SCENARIO + "[sovler]\n",
        ["s.toml: sovler: no such key; did you mean 'solver'?"],
    ),
    "an unknown design": (
        SCENARIO.replace("designs.optimum", "designs.optimun"),
        ["s.toml: designs.optimun: no such design of traffic; did you mean 'optimum'?"],
    ),
    "an unknown parameter": (
        SCENARIO + 'objectve = "total"\n',
        ["s.toml: designs.optimum.objectve: no such parameter of design optimum; did you mean 'objective'?"],
    ),
    "a value that is none of the choices": (
        SCENARIO + 'objective = "totals"\n',
        ["s.toml: designs.optimum.objective is 'totals', must be delivered | concurrent | utilization"],
    ),
    "a value of another type": (
        SCENARIO.replace('path = "net"', 'path = "net"\nscale = "two"'),
        ["s.toml: problem.scale is 'two', must be a number"],
    ),
    "a value out of range": (
        SCENARIO.replace('path = "net"', 'path = "net"\nscale = -1'),
        ["s.toml: problem.scale is -1, must be greater than or equal to 0"],
    ),
    "an unknown source": (
        SCENARIO.replace('"tables"', '"table"'),
        ["s.toml: problem.source: no such source 'table'; did you mean 'tables'?"],
    ),
    "no source": (
        'system = "traffic"\n[problem]\n',
        ["s.toml: problem.source: is missing; one of: tables, generate, topohub, graphml, sndlib, graph, "],
    ),
    "no problem": ('system = "traffic"\n', ["s.toml: problem: is missing: write [problem] with a source"]),
    "an unknown preset": (
        'system = "traffic"\n[problem]\nsource = "generate"\npreset = "fattree"\n',
        ["s.toml: problem.preset: no such preset 'fattree'; did you mean 'fat_tree'?"],
    ),
    "a missing parameter": (
        'system = "traffic"\n[problem]\nsource = "topohub"\n',
        ["s.toml: problem.name: is missing; source 'topohub' needs it"],
    ),
    "a value in place of a table": (
        'system = "traffic"\nproblem = 3\n',
        ["s.toml: problem must be a table: write [problem]"],
    ),
    "an unknown option": (
        SCENARIO + "[solver]\ntimelimit = 3\n",
        ["s.toml: solver.timelimit: no such option; did you mean 'time_limit_s'?"],
    ),
    "an unknown backend": (
        SCENARIO + '[solver]\nbackend = "higs"\n',
        ["s.toml: solver.backend: no such backend 'higs'; did you mean 'highs'?"],
    ),
    "every fault at once": (
        SCENARIO.replace("designs.optimum", "designs.optimun").replace('"tables"', '"table"')
        + "[solver]\nthreads = 0\ngap = 2\n[extra]\n",
        [
            (
                "s.toml: extra: no such key; valid: designs, events, plans, problem, series, simulation, "
                "solver, sweep, system, title"
            ),
            "s.toml: solver.gap is 2.0, must be at least 0 and less than 1",
            "s.toml: solver.threads is 0, must be from 1 to 1024",
            "s.toml: designs.optimun: no such design of traffic; did you mean 'optimum'?",
            "s.toml: problem.source: no such source 'table'; did you mean 'tables'?",
        ],
    ),
}


@pytest.mark.parametrize("fault", BAD_SCENARIOS)
def test_a_bad_scenario(folder: Path, fault: str) -> None:
    text, expected = BAD_SCENARIOS[fault]
    (folder / "s.toml").write_text(text)
    result = planner("compare", "s.toml")
    lines = result.err.splitlines()
    assert (result.code, result.out, len(lines)) == (1, "", len(expected)), result.err
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


BAD_COMMANDS: dict[str, tuple[list[str], int, str]] = {
    "no such scenario": (["solve", "t.toml"], 1, "t.toml: no such scenario; did you mean 's.toml'?"),
    "no such shipped scenario": (
        ["solve", "traffic/germany"],
        1,
        "traffic/germany: no such scenario; did you mean 'traffic/germany50'?",
    ),
    "no scenario like it": (
        ["solve", "zzz"],
        1,
        "zzz: no such scenario; planner list SYSTEM names those that ship with planner",
    ),
    "a system for a scenario": (
        ["solve", "circuitflows"],
        1,
        "circuitflows: no such scenario; those of circuitflows that ship with planner: "
        + ", ".join(name for name in scenario_names() if name.startswith("circuitflows/")),
    ),
    "a folder": (["solve", "net"], 1, "net: is a folder, must be a file"),
    "a table": (
        ["solve", "net/links.csv"],
        1,
        "net/links.csv: is a table, a scenario is a TOML file that names its folder",
    ),
    "a store that is not there": (
        ["dashboard", "--store", "zzz"],
        1,
        "zzz: no such store; an empty folder becomes one",
    ),
    "no design": (["compare", "s.toml", "--designs", ","], 1, "s.toml: designs: none is named"),
    "options over a section that is none": (
        ["solve", "s.toml", "--set", "solver=3", "--gap", "0.1"],
        1,
        "s.toml: solver must be a table: write [solver]",
    ),
    "no target like it": (
        ["reproduce", "zzz"],
        1,
        "zzz: no such target; planner reproduce lists them all",
    ),
    "no such design": (
        ["solve", "s.toml", "--design", "optimal"],
        1,
        "s.toml: designs.optimal: no such design of traffic; did you mean 'optimum'?",
    ),
    "a change of an unknown key": (
        ["solve", "s.toml", "--set", "problem.scal=2"],
        1,
        "s.toml: problem.scal: no such key of source 'tables'; did you mean 'scale'?",
    ),
    "a change without a value": (
        ["solve", "s.toml", "--set", "problem"],
        1,
        "--set problem: must be KEY=VALUE",
    ),
    "a change within a value": (
        ["solve", "s.toml", "--set", "system.name=3"],
        1,
        "--set system.name: system is a value, not a table",
    ),
    "no such backend": (
        ["solve", "s.toml", "--backend", "mosek"],
        1,
        "s.toml: solver.backend: no such backend 'mosek'; valid: cplex, gurobi, highs, ortools, pyomo",
    ),
    "a solver that is not there": (
        ["solve", "s.toml", "--backend", "pyomo:nosuch"],
        1,
        "pyomo finds no solver 'nosuch'; valid: ",
    ),
    "an option that a solver has not": (
        ["solve", "s.toml", "--backend", "ortools:pdlp", "--seed", "3"],
        1,
        "ortools:pdlp takes no 'seed': leave it unset",
    ),
    "no such system": (["list", "traffik"], 1, "traffik: no such system; did you mean 'traffic'?"),
    "no such system to generate": (["generate", "x", "--out", "o"], 1, "x: no such system"),
    "no such preset": (
        ["generate", "traffic", "--preset", "abilen", "--out", "o"],
        1,
        "preset abilen: no such preset of traffic; did you mean 'abilene'?",
    ),
    "a preset's parameter": (
        ["generate", "traffic", "--preset", "fat_tree", "--set", "k=3", "--out", "o"],
        1,
        "k is 3, must be even",
    ),
    "a seed for nothing drawn": (
        ["generate", "traffic", "--preset", "abilene", "--seed", "3", "--out", "o"],
        1,
        "seed 3: preset abilene has no random draws; leave the seed out",
    ),
    "output where a file is": (
        ["solve", "s.toml", "--out", "s.toml"],
        1,
        "s.toml: cannot be created as a folder (File exists)",
    ),
    "a plan that is not there": (
        ["check", "s.toml", "--plan", "nowhere"],
        1,
        "nowhere: no such file or folder",
    ),
    "a folder without a plan": (["check", "s.toml", "--plan", "."], 1, ".: has no table of a plan"),
    "an export that has no format": (
        ["export", "s.toml", "--out", "model.txt"],
        1,
        "model.txt: '.txt' names no format; valid: lp, mps",
    ),
    "a design without a model": (
        ["export", "s.toml", "--design", "ecmp", "--out", "m.lp"],
        1,
        "design ecmp: has no formal model; those that have: optimum",
    ),
    "an unknown option": (["solve", "s.toml", "--treads", "3"], 2, ""),
    "no scenario at all": (["solve"], 2, ""),
    "an unknown command": (["slove", "s.toml"], 2, ""),
    "an unknown format": (["export", "s.toml", "--out", "m.lp", "--format", "xyz"], 2, ""),
}


@pytest.mark.parametrize("fault", BAD_COMMANDS)
def test_a_bad_command(folder: Path, fault: str) -> None:
    words, code, message = BAD_COMMANDS[fault]
    result = planner(*words)
    assert result.code == code, result.err
    assert result.out == ""
    assert message in result.err
    assert "Traceback" not in result.err
    assert "internal error" not in result.err
    if code == 1:
        assert len(result.err.splitlines()) == 1


def test_the_scenario_is_refused_before_the_network_is_read(folder: Path) -> None:
    """Every fault of the scenario comes first: none of them waits for a large file."""
    (folder / "net" / "links.csv").write_text("nonsense")
    (folder / "s.toml").write_text(SCENARIO + "objectve = 3\n")
    assert "objectve" in planner("solve", "s.toml").err


# --- answers that are no plan -------------------------------------------------------------


def test_an_infeasible_model_is_explained(folder: Path) -> None:
    (folder / "net" / "links.csv").write_text("tail,head,capacity_mbps,cost\na,b,10,1\nb,c,4,1\nc,a,10,1\n")
    strict = ("solve", "s.toml", "--set", "designs.optimum.objective=cost", "--service", "all")
    result = planner(*strict)
    assert result.code == 3
    assert "optimum: infeasible: " in result.out
    assert "capacity[b->c]" in result.out
    as_json = planner(*strict, "--json")
    assert as_json.code == 3
    assert '"status": "infeasible"' in as_json.out


def test_a_demand_without_a_path_is_shed_or_explained(folder: Path) -> None:
    (folder / "net" / "links.csv").write_text("tail,head,capacity_mbps\na,b,1\nc,b,1\na,c,0\n")
    result = planner("solve", "s.toml")
    assert result.code == 0
    assert "It sheds 5 Mbit/s." in result.out
    strict = planner("solve", "s.toml", "--service", "all")
    assert strict.code == 3
    assert "demand a->c has no path" in strict.out


@pytest.mark.parametrize("objective", ["delivered", "concurrent", "utilization", "total"])
def test_without_demand_the_plan_is_trivial(folder: Path, objective: str) -> None:
    result = planner(
        "solve", "s.toml", "--set", "problem.scale=0", "--set", f"designs.optimum.objective={objective}"
    )
    assert result.code == 0
    assert "optimum delivers 0 of 0 Mbit/s" in result.out


def test_a_rejected_plan(folder: Path) -> None:
    planner("solve", "s.toml", "--out", "out", "--table-format", "csv")
    path = folder / "out" / "optimum" / "plan" / "flows.csv"
    flows = pd.read_csv(path)
    flows.loc[0, "rate_mbps"] -= 1.0
    flows.to_csv(path, index=False)
    result = planner("check", "s.toml", "--plan", folder / "out" / "optimum" / "plan")
    assert result.code == 5
    assert len(result.err.splitlines()) == 1


def test_one_design_without_a_plan_does_not_stop_the_others(folder: Path) -> None:
    (folder / "s.toml").write_text(SCENARIO + 'objective = "cost"\n[designs.ecmp]\n')
    result = planner("compare", "s.toml", "--out", "out")
    assert result.code == 1, "objective cost without prices"
    assert "optimum: links.csv: column 'cost' is missing; objective 'cost' needs it" in result.out
    assert (folder / "out" / "ecmp" / "plan" / "flows.parquet").exists()


def test_a_crash_is_one_line_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("deep inside")

    monkeypatch.setattr("planner.runs.evaluation.solve", broken)
    result = planner("solve", "s.toml")
    assert result.code == 70
    assert result.err.startswith("internal error: KeyError: 'deep inside'; set PLANNER_DEBUG=1")


def test_an_interrupt_ends_with_130(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.runs.evaluation.solve", stopped)
    result = planner("solve", "s.toml")
    assert result.code == 130
    assert "Traceback" not in result.err
