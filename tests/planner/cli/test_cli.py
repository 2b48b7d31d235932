"""The command line as a person, a script and a README use it."""

from __future__ import annotations

import json
import re
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.backends.registry import solver_names
from planner.cli import application, output
from planner.cli.options import events_of
from planner.errors import InputError
from planner.scenarios.shipped import scenario_names
from tests.commands import planner
from tests.commercial_solvers import PACKAGES
from tests.planner.runs.toy_system import Link, toy

ROOT = Path(__file__).parents[3]


def test_list_names_every_system() -> None:
    result = planner("list")
    assert result.code == 0
    assert "traffic" in result.out
    plain = json.loads(planner("list", "--json").out)
    assert "traffic" in [system["system"] for system in plain]


def test_list_of_a_system_names_every_parameter() -> None:
    result = planner("list", "traffic")
    assert result.code == 0
    for word in ("objective", "path_choice", "capacity_mbps", "concurrent_flow", "peak_utilization", "noise"):
        assert word in result.out


def test_events_with_many_spaces_are_read_in_linear_time() -> None:
    spaces, begin = " " * 100_000, time.process_time()
    assert events_of([f"9:00{spaces}problem.scale=2"]) == {"9:00": {"problem.scale": 2}}
    with pytest.raises(InputError, match="must be WINDOW KEY=VALUE"):
        events_of([f"9:00{spaces}x"])
    assert time.process_time() - begin < 3


def test_json_is_one_object_and_nothing_else() -> None:
    result = planner("compare", "traffic/abilene", "--json")
    plain = json.loads(result.out)
    assert list(plain) == ["system", "verdict", "headline", "problem", "runs"]
    assert plain["problem"]["size"] == {"nodes": 12, "links": 30, "demands": 132}
    run = plain["runs"][0]
    for key in ("design", "mechanism", "status", "objective", "bound", "gap", "seconds", "backend"):
        assert run[key] is not None
    assert run["constraints"] == {
        "met": True,
        "violated": {},
        "lost": {"shed_mbps": pytest.approx(run["metrics"]["shed_mbps"])},
    }
    assert not run["violations"]
    assert all(other["violations"] and not other["constraints"]["met"] for other in plain["runs"][1:])
    assert run["metrics"]["share_of_bound"] == pytest.approx(1.0)


def test_a_table_says_the_same_as_json() -> None:
    table = planner("compare", "traffic/abilene").out
    plain = json.loads(planner("compare", "traffic/abilene", "--json").out)
    for run in plain["runs"]:
        assert run["design"] in table
        assert f"{100 * run['metrics']['max_utilization']:.4g}%" in table


def test_out_keeps_everything_needed_to_go_on(tmp_path: Path) -> None:
    result = planner("compare", "traffic/abilene", "--out", tmp_path, "--table-format", "csv")
    assert result.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ecmp",
        "optimum",
        "report.txt",
        "scenario.toml",
        "shortest_path",
    ]
    for name in ("flows.csv", "links.csv"):
        assert len(pd.read_csv(tmp_path / "ecmp" / "plan" / name))
    metrics = pd.read_csv(tmp_path / "ecmp" / "metrics.csv").set_index("metric")
    run = json.loads((tmp_path / "ecmp" / "run.json").read_text())
    assert metrics.loc["max_utilization", "value"] == pytest.approx(run["metrics"]["max_utilization"])
    assert "Share of bound" in (tmp_path / "report.txt").read_text()

    again = planner("solve", tmp_path / "scenario.toml", "--design", "ecmp", "--json")
    assert json.loads(again.out)["runs"][0]["metrics"]["max_utilization"] == run["metrics"]["max_utilization"]
    checked = planner("check", tmp_path / "scenario.toml", "--plan", tmp_path / "ecmp" / "plan", "--json")
    violations = json.loads(checked.out)["violations"]
    assert violations == run["violations"]
    assert checked.code == (5 if violations else 0)
    # what a design exchanged for a plan is not known of one that is made elsewhere
    worth = {
        name: value for name, value in run["metrics"].items() if name not in ("messages", "signalling_bytes")
    }
    assert json.loads(checked.out)["metrics"] == pytest.approx(worth)


def test_generate_makes_a_problem_that_solves(tmp_path: Path) -> None:
    made = planner(
        "generate", "traffic", "--preset", "fat_tree", "--set", "k=4", "--seed", 7, "--out", tmp_path
    )
    assert made.code == 0, made.err
    result = planner("compare", tmp_path / "scenario.toml", "--designs", "optimum,ecmp", "--json")
    runs = json.loads(result.out)["runs"]
    assert runs[0]["metrics"]["concurrent_flow"] == pytest.approx(1.0), "a fat tree has full bisection"
    first = (tmp_path / "demands.csv").read_text()
    planner("generate", "traffic", "--preset", "fat_tree", "--seed", 8, "--out", tmp_path)
    assert (tmp_path / "demands.csv").read_text() != first


TOTAL = ("--set", "designs.optimum.objective=total")  # its objective is what the program maximises


@pytest.mark.parametrize("format_", ["lp", "mps"])
def test_another_solver_reads_the_exported_model(tmp_path: Path, format_: str) -> None:
    import highspy

    path = tmp_path / f"model.{format_}"
    assert planner("export", "traffic/abilene", *TOTAL, "--out", path, "--format", format_).code == 0
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(path))
    solver.run()
    expected = json.loads(
        planner("solve", "traffic/abilene", *TOTAL, "--backend", "ortools:glop", "--json").out
    )
    assert solver.getInfo().objective_function_value == pytest.approx(
        expected["runs"][0]["objective"], rel=1e-6
    )


def test_an_mps_file_in_or_tools(tmp_path: Path) -> None:
    from ortools.linear_solver.python import model_builder

    path = tmp_path / "model.mps"
    planner("export", "traffic/abilene", *TOTAL, "--out", path)
    model, solver = model_builder.Model(), model_builder.Solver("GLOP")
    assert model.import_from_mps_file(str(path))
    solver.solve(model)
    expected = json.loads(planner("solve", "traffic/abilene", *TOTAL, "--json").out)["runs"][0]["objective"]
    assert solver.objective_value == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_backends_agree_in_one_process_with_changing_threads() -> None:
    objectives = []
    for backend, threads in [("highs", 1), ("ortools", 2), ("pyomo:highs", 1), ("highs", 2), ("ortools", 1)]:
        words = ("traffic/germany50", "--backend", backend, "--threads", threads, "--json")
        objectives.append(json.loads(planner("solve", *words).out)["runs"][0]["objective"])
    assert objectives == pytest.approx([objectives[0]] * len(objectives), rel=1e-6)


def test_doctor_finds_every_backend_that_is_installed() -> None:
    result = planner("doctor", "--json")
    assert result.code == 0
    results = {load["backend"]: load["passed"] for load in json.loads(result.out)}
    assert {name for name in solver_names() if name != "pyomo:SOLVER"} | {"pyomo:highs"} <= set(results)
    assert all(passed for name, passed in results.items() if passed is not None or name not in PACKAGES)


def test_doctor_compiles_the_kernels_of_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    system = toy(sample=lambda: Link(1.0, 1.0))
    monkeypatch.setattr("planner.scenarios.catalogue.system_names", lambda: ["toy"])
    monkeypatch.setattr("planner.scenarios.catalogue.find_system", lambda _: system)
    (plain,) = json.loads(planner("doctor", "--warm", "--json").out)
    assert (plain["system"], plain["designs"], plain["kernels"]) == ("toy", len(system.designs), 0)
    assert planner("doctor", "--warm").out.startswith("toy: 0 kernels of 4 designs compiled in ")


def test_compiling_is_said_on_standard_error_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner import compile_events
    from planner.runs import evaluation

    def compile_and_solve(*inputs: Any, **more: Any) -> Any:
        for observer in compile_events._observers:
            for kernel in ("first", "second"):
                observer(kernel)
        return solve(*inputs, **more)

    solve = evaluation.solve
    monkeypatch.setattr(evaluation, "solve", compile_and_solve)
    monkeypatch.setattr(output, "COMPILING_LINE_S", 0.0)
    result = planner("solve", "traffic/abilene", "--design", "ecmp", "--json")
    assert json.loads(result.out)["runs"]
    assert result.err.splitlines() == [
        "compiling (once): first is the first kernel",
        "compiling (once): 2 kernels in 0 s, now second",
    ]


@pytest.mark.parametrize("command", ["solve", "compare", "roll", "simulate", "explain", "sweep"])
def test_every_command_that_solves_has_the_same_solver_options(command: str, tmp_path: Path) -> None:
    options = planner(command, "--help").out
    for option in ("--backend", "--algorithm", "--time-limit", "--gap", "--threads", "--seed", "--service"):
        assert option in options
    out = ("--out", tmp_path / "out") if "--out" in options else ()
    result = planner(command, "traffic/abilene", "--service", "most", *out)
    assert result.code == 1
    assert result.err == "traffic/abilene: solver.service is 'most', must be best | all\n"


@pytest.mark.parametrize(
    "words", [("compare",), ("solve", "--design", "bound"), ("compare", "--designs", "bound")]
)
def test_a_design_that_only_bounds_has_done_its_job(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = toy()
    monkeypatch.setattr("planner.scenarios.scenario.find_system", lambda _: system)
    scenario = tmp_path / "toy.toml"
    scenario.write_text('system = "toy"\n[problem]\nsource = "tables"\npath = "."\n')
    command, *options = words
    result = planner(command, scenario, *options, "--json")
    runs = {run["design"]: run for run in json.loads(result.out)["runs"]}
    assert (runs["bound"]["status"], runs["bound"]["bound"]) == ("bound only", 1.0)
    assert result.code == 0


def test_set_changes_any_key() -> None:
    words = ("traffic/abilene", "--set", "problem.peak_utilization=0.5", "--set", "designs.optimum.paths=2")
    run = json.loads(planner("solve", *words, "--json").out)["runs"][0]
    assert run["bound_scope"] == "the 2 shortest paths of each demand"
    assert run["violations"] == []


def test_version() -> None:
    assert re.fullmatch(r"planner \d+\.\d+\.\d+\n", planner("--version").out)


# --- documents ----------------------------------------------------------------------------


def commands() -> list[str]:
    return [command.name or command.callback.__name__ for command in application.app.registered_commands]


@pytest.mark.parametrize("command", commands())
def test_every_command_is_documented_and_has_help(command: str) -> None:
    result = planner(command, "--help")
    assert result.code == 0
    assert f"planner {command}" in (ROOT / "README.md").read_text()


def test_the_commands_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    ours = [line.split("#")[0].split() for line in lines if line.startswith("planner ")]
    assert len(ours) >= 5
    monkeypatch.chdir(tmp_path)
    for words in ours:
        result = planner(*words[1:])
        assert result.code == 0, (words, result.err)


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_every_shipped_scenario_has_its_source() -> None:
    patterns = re.findall(r"\b[a-z]+/[\w*]+", (ROOT / "data" / "SOURCES.md").read_text())
    for name in scenario_names():
        assert any(fnmatch(name, pattern) for pattern in patterns), f"{name} is not in data/SOURCES.md"


@pytest.mark.parametrize(
    ("scenario", "setting", "fits"),
    [
        ("traffic/abilene", "problem.scale=0.1", True),
        ("traffic/abilene", "problem.scale=1", False),
        ("livevideo/session_window", "problem.cost_weight=0", True),
        ("livevideo/session_window", "problem.capacity_scale=0.01", False),
        ("multicast/own_data", "problem.source=tables", False),
        ("brokering/own_data", "problem.capacity_scale=1", True),
        ("brokering/own_data", "problem.capacity_scale=0.01", False),
    ],
)
def test_an_exported_model_of_strict_service_serves_all_or_is_infeasible(
    tmp_path: Path, scenario: str, setting: str, fits: bool
) -> None:
    import highspy

    result = {}
    for service in ("best", "all"):
        path = tmp_path / f"{service}.mps"
        made = planner("export", scenario, "--set", setting, "--service", service, "--out", path)
        assert made.code == 0, made.err
        solver = highspy.Highs()
        solver.silent()
        solver.readModel(str(path))
        solver.run()
        result[service] = (solver.getModelStatus(), solver.getInfo().objective_function_value)
    status, objective = result["all"]
    assert (status == highspy.HighsModelStatus.kOptimal) == fits
    if fits:
        assert objective == pytest.approx(result["best"][1], rel=1e-6)


def test_a_model_without_a_strict_form_is_not_exported_as_one(tmp_path: Path) -> None:
    made = planner("export", "circuits/exact_8", "--service", "all", "--out", tmp_path / "model.lp")
    assert made.code == 1
    assert "--service all" in made.err
    assert not (tmp_path / "model.lp").exists()
