"""Every verb takes a problem, and answers as the command line does."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import planner
from benchmarks.golden import without
from planner.contract.parameters import parameters_of
from planner.contract.system import System
from planner.errors import InputError
from planner.runs.result import MOST_LINES, Result
from planner.scenarios.catalogue import find_system, system_names
from tests import commands

SYSTEMS = system_names()
VERBS = (
    "alternatives",
    "check",
    "compare",
    "diff",
    "explain",
    "export",
    "failures",
    "generate",
    "recipes",
    "reproduce",
    "roll",
    "simulate",
    "solve",
    "sweep",
    "upgrades",
)
UNREPEATABLE = {"seconds", "compile_s"}
TIME_LIMIT_S = 2.0


@functools.cache
def sample(name: str) -> Any:
    system = find_system(name)
    kind = system.problem
    return kind.sample() if kind.sample is not None else kind.presets["small"]()


def two_designs(system: System) -> list[str]:
    names = [design.name for design in system.designs if not design.is_bound]
    return list(dict.fromkeys([names[0], system.studies.practice or names[1], names[1]]))[:2]


@functools.cache
def compared(name: str) -> Any:
    return planner.compare(sample(name), designs=two_designs(find_system(name)), time_limit_s=TIME_LIMIT_S)


def require_presentable(result: Result) -> None:
    text = repr(result)
    assert 0 < len(text.splitlines()) <= MOST_LINES
    assert len(text) < 1_500
    html = result._repr_html_()
    assert "<div" in html
    assert len(result.to_frame().columns) > 0


# --- a problem of every system ------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_solve_takes_a_problem(name: str) -> None:
    design = two_designs(find_system(name))[0]
    run = planner.solve(sample(name), design=design, time_limit_s=TIME_LIMIT_S)
    assert run.plan is not None
    assert run.proof.seconds is not None
    assert run.metrics[run.system.headline.name] is not None
    assert design in run.verdict
    require_presentable(run)


@pytest.mark.parametrize("name", SYSTEMS)
def test_compare_takes_a_problem(name: str) -> None:
    result = compared(name)
    assert list(result.metrics.index) == two_designs(find_system(name))
    assert result[result.runs[1].label] is result.runs[1]
    require_presentable(result)


@pytest.mark.parametrize("name", SYSTEMS)
def test_check_takes_a_problem_and_a_plan(name: str) -> None:
    run = compared(name).runs[0]
    assert planner.check(sample(name)).is_valid
    checked = planner.check(sample(name), run.plan)
    assert len(checked.violations) == len(run.violations)
    assert checked.metrics[run.system.headline.name] == pytest.approx(run.metrics[run.system.headline.name])
    require_presentable(checked)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_roll_takes_consecutive_problems(name: str) -> None:
    design = two_designs(find_system(name))[0]
    problems = {"Monday": sample(name), "Tuesday": sample(name)}
    result = planner.roll(problems, designs=design, time_limit_s=TIME_LIMIT_S)
    assert list(result.plans) == [(design, "Monday"), (design, "Tuesday")]
    assert list(result.metrics.index) == list(result.plans)
    require_presentable(result)


@pytest.mark.parametrize("name", SYSTEMS)
def test_generate_returns_a_problem_of_its_system(name: str, tmp_path: Path) -> None:
    system = find_system(name)
    preset = next(iter(system.problem.presets))
    if "seed" not in parameters_of(system.problem.presets[preset]):
        problem = planner.generate(name, preset, out=tmp_path)
    else:
        problem = planner.generate(name, preset, seed=3, out=tmp_path)
    assert isinstance(problem, system.problem.type)
    assert planner.check(str(tmp_path / "scenario.toml")).problem.size() == problem.size()


@pytest.mark.parametrize("name", SYSTEMS)
def test_export_takes_a_problem(name: str, tmp_path: Path) -> None:
    if not any(design.model for design in find_system(name).designs):
        with pytest.raises(InputError, match="none of its designs has a formal model"):
            planner.export(sample(name), tmp_path / "model.lp")
        return
    model = planner.export(sample(name), tmp_path / "model.lp")
    assert model.columns > 0
    assert (tmp_path / "model.lp").stat().st_size > 0


DURATIONS: dict[str, dict[str, Any]] = {
    "analytics": {},
    "brokering": {"windows": 2},
    "cdnrouting": {"duration_s": 600.0, "isp_period_s": 300.0},
    "fairshare": {"duration_s": 21.0, "measured_from_s": 10.0},
    "flowtables": {},
    "geostore": {"histories": 2, "operations": 5},
    "livevideo": {"until_s": 6.0},
    "membership": {"years": 2},
    "multicast": {"duration_s": 5.0},
    "traffic": {"until_s": 0.05, "warm_up_s": 0.02},
    "updates": {"runs": 2},
}


LONG_TO_COMPILE = ("fairshare", "flowtables")  # their simulations
SWEPT = ("multicast", "traffic")
"""Systems whose sweep starts workers in each slow run; a conformance test sweeps each system."""
LONG_TO_ASK = ("capacity", "coflows", "consolidation", "contracts", "flowtables")
"""Systems whose studies take long; conformance tests ask each system for each study."""


ASKED = [
    pytest.param(name, marks=[pytest.mark.exhaustive] if name in LONG_TO_ASK else []) for name in SYSTEMS
]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG_TO_COMPILE else []) for name in SYSTEMS],
)
def test_simulate_takes_a_problem(name: str) -> None:
    simulation = find_system(name).studies.simulation
    if simulation is None:
        with pytest.raises(InputError, match="this system has no simulation in time"):
            planner.simulate(sample(name))
        return
    able = simulation.designs or tuple(design.name for design in find_system(name).designs)
    result = planner.simulate(sample(name), designs=able[0], **DURATIONS[name])
    assert list(result.to_frame().index) == [able[0]]
    require_presentable(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_explain_takes_a_problem(name: str) -> None:
    if find_system(name).studies.what_if is None:
        pytest.skip("this system has no explanations")
    result = planner.explain(sample(name), time_limit_s=TIME_LIMIT_S)
    assert result.explanation is not None
    assert result.plan is not None
    require_presentable(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_failures_takes_a_problem(name: str) -> None:
    if not any(kind.with_role("failure") for kind in find_system(name).problem.elements):
        with pytest.raises(InputError, match="declares no elements that can fail"):
            planner.failures(sample(name), limit=2)
        return
    result = planner.failures(sample(name), limit=2, time_limit_s=TIME_LIMIT_S)
    assert len(result.failures) == 2
    assert "failure" in result.verdict
    json.dumps(result.to_dict(), allow_nan=False, default=str)
    require_presentable(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_upgrades_takes_a_problem(name: str) -> None:
    buys = find_system(name).studies.budget is not None
    if not buys and not any(kind.with_role("upgrade") for kind in find_system(name).problem.elements):
        with pytest.raises(InputError, match="no elements that can be upgraded"):
            planner.upgrades(sample(name), steps=1)
        return
    candidates = None if buys else 2
    result = planner.upgrades(sample(name), steps=1, candidates=candidates, time_limit_s=TIME_LIMIT_S)
    assert len(result.steps) <= 1
    assert result.ending
    json.dumps(result.to_dict(), allow_nan=False, default=str)
    require_presentable(result)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in SWEPT else [pytest.mark.exhaustive]) for name in SYSTEMS],
)
def test_a_sweep_takes_problems_and_stores_their_tables(name: str, tmp_path: Path) -> None:
    design = two_designs(find_system(name))[0]
    problems = {"one": sample(name), "other": sample(name)}
    axes = {"solver.time_limit_s": [TIME_LIMIT_S]}
    first = planner.sweep(problems, tmp_path / "store", axes=axes, designs=design, workers=1)
    assert first.exit_code == 0, first.failures
    assert list(first.runs["scenario"]) == ["one", "other"]
    assert first.made == 1, "the same problem is one run"
    again = planner.sweep(problems, tmp_path / "store", axes=axes, designs=design, workers=1)
    assert again.made == 0
    require_presentable(again)


# --- the command line and Python ----------------------------------------------------------


def test_the_command_line_answers_as_python_does(tmp_path: Path) -> None:
    name = "traffic/abilene"
    designs, limit = ["ecmp", "optimum"], ["--time-limit", "20", "--threads", "1"]
    options: dict[str, Any] = {"time_limit_s": 20.0, "threads": 1}

    def same(plain: Any, *words: str) -> None:
        result = commands.planner(*words, "--json")
        assert result.code == 0, result.err
        assert without(json.loads(result.out), UNREPEATABLE) == without(
            json.loads(json.dumps(plain)), UNREPEATABLE
        )

    compared = planner.compare(name, designs=designs, changes={"problem.scale": 0.5}, **options)
    changes = ["--set", "problem.scale=0.5"]
    same(compared.to_dict(), "compare", name, "--designs", "ecmp,optimum", *changes, *limit)
    explained = planner.explain(name, design="optimum", candidates=2, **options)
    same(explained.to_dict(), "explain", name, "--design", "optimum", "--with", "candidates=2", *limit)
    run = planner.solve(name, design="optimum", **options)
    same(run.alone().to_dict(), "solve", name, "--design", "optimum", *limit)
    simulated = planner.simulate(name, designs="ecmp", until_s=0.1, warm_up_s=0.05, **options)
    times = ["--set", "simulation.until_s=0.1", "--set", "simulation.warm_up_s=0.05"]
    same(simulated.to_dict(), "simulate", name, "--designs", "ecmp", *times, *limit)
    same(planner.check(name).to_dict(), "check", name)
    same(planner.recipes().to_dict(), "recipes")
    advice = planner.recipes(resources="partial", separation="layering")
    same(advice.to_dict(), "recipes", "--resources", "partial", "--separation", "layering")
    same(planner.reproduce().to_dict(), "reproduce")


def test_a_problem_in_memory_gives_the_answer_of_its_scenario() -> None:
    scenario = planner.load("traffic/abilene")
    comparison = planner.compare(scenario, designs=["ecmp"], changes={"problem.scale": 0.5})
    problem = planner.load("traffic/abilene", changes={"problem.scale": 1.0}).make_problem()
    alone = planner.compare(problem, designs=["ecmp"], changes={"problem.scale": 0.5})
    assert without(alone.to_dict(), UNREPEATABLE) == without(comparison.to_dict(), UNREPEATABLE)


def test_parameters_of_a_design_are_plain_arguments() -> None:
    problem = planner.generate("traffic", "abilene")
    plain = planner.solve(problem, design="optimum", objective="utilization")
    nested = planner.solve(problem, design={"optimum": {"objective": "utilization"}})
    named = planner.compare(problem, designs={"fullest": {"design": "optimum", "objective": "utilization"}})
    assert plain.entry.parameters == nested.entry.parameters == named["fullest"].entry.parameters
    assert plain.metrics == nested.metrics == named["fullest"].metrics


def test_a_result_of_a_problem_in_memory_is_saved_with_its_tables(tmp_path: Path) -> None:
    from planner.runs.files import save_runs
    from planner.scenarios.arguments import as_scenario

    scenario = as_scenario(planner.generate("traffic", "abilene"), changes={"problem.scale": 0.5})
    run = planner.solve(scenario, design="ecmp")
    save_runs(scenario, [run], tmp_path)
    again = planner.solve(tmp_path / "scenario.toml", design="ecmp")
    assert again.metrics == pytest.approx(dict(run.metrics), nan_ok=True)


# --- help and names -----------------------------------------------------------------------


@pytest.mark.parametrize("name", VERBS)
def test_help_explains_every_parameter(name: str) -> None:
    verb = getattr(planner, name)
    text = inspect.getdoc(verb) or ""
    section = text.partition("\nParameters\n----------\n")[2].partition("\n\nReturns\n")[0]
    entries = [entry.partition("\n") for entry in re.split(r"\n(?=\S)", section)]
    meanings = {name: meaning for name, _, meaning in entries}
    assert len(meanings) == len(entries), name
    assert list(meanings) == list(inspect.signature(verb).parameters)
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.default in (inspect.Parameter.empty, None) or parameter.name == "table_format":
            continue
        meaning = " ".join(meanings[parameter.name].split())
        assert "default: " in meaning, f"{name}: {parameter.name} has a default that help does not say"


def test_every_verb_of_the_command_line_is_one_of_python() -> None:
    from planner.cli.application import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}  # type: ignore[union-attr]
    assert set(VERBS) == names - {"list", "runs", "dashboard", "doctor"}
    assert set(VERBS) <= set(dir(planner))


MISTAKES: dict[str, tuple[Any, str]] = {
    "a design": (
        lambda problem: planner.compare(problem, designs=["optimun"]),
        "traffic: designs.optimun: no such design of traffic; did you mean 'optimum'?",
    ),
    "an argument": (
        lambda problem: planner.compare(problem, desings="ecmp"),
        "compare: no argument 'desings'; did you mean 'designs'?",
    ),
    "a solver option": (
        lambda problem: planner.solve(problem, time_limt_s=3),
        "solve: no argument 'time_limt_s', and no parameter of design optimum; did you mean 'time_limit_s'?",
    ),
    "a design's parameter": (
        lambda problem: planner.solve(problem, design="optimum", objektive="cost"),
        "solve: no argument 'objektive', and no parameter of design optimum; did you mean 'objective'?",
    ),
    "a value of an option": (lambda problem: planner.solve(problem, gap=2), "gap is 2.0, must be at least 0"),
    "a service": (lambda problem: planner.solve(problem, service="al"), "did you mean 'all'?"),
    "an adjustment": (
        lambda problem: planner.solve(problem, changes={"problem.scal": 2}),
        "problem.scal: no such parameter of a problem in memory; did you mean 'scale'?",
    ),
    "an explanation's parameter": (
        lambda problem: planner.explain(problem, candidate=3),
        "did you mean 'candidates'?",
    ),
    "a simulation's parameter": (
        lambda problem: planner.simulate(problem, until=3),
        "did you mean 'until_s'?",
    ),
    "a preset": (lambda _: planner.generate("traffic", "abilen"), "did you mean 'abilene'?"),
    "a preset's parameter": (lambda _: planner.generate("traffic", "fat_tree", kk=4), "no argument 'kk'"),
    "a target": (lambda _: planner.reproduce("multicast/figure_5"), "no such target; did you mean"),
    "a word of the recipes": (lambda _: planner.recipes(resources="disjunct"), "did you mean 'disjoint'?"),
    "no problem": (lambda _: planner.solve([1, 2]), "a list is neither a problem of "),
    "a scenario": (lambda _: planner.solve("traffic/abilen"), "did you mean 'traffic/abilene'?"),
    "problems of two kinds": (
        lambda problem: planner.roll([problem, sample("circuits")]),
        "problem 2: is no Traffic as the first one",
    ),
    "no problems": (lambda _: planner.roll([]), "roll: needs at least one problem"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_answered_with_the_nearest_name(case: str) -> None:
    call, message = MISTAKES[case]
    with pytest.raises(planner.PlannerError) as raised:
        call(sample("traffic"))
    assert message in str(raised.value)


def test_importing_planner_loads_no_solver_and_no_pandas() -> None:
    script = (
        "import sys, planner; dir(planner); print(*sorted({'pandas', 'numpy', 'highspy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


# --- systems in Python --------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_package_shows_only_what_is_public(name: str) -> None:
    package = importlib.import_module(type(sample(name)).__module__.split(".problem.")[0])
    shown = dir(package)
    assert sorted(shown) == sorted(package.__all__)
    assert {"SYSTEM", "check", "designs", "measure", "plan", "problem"} <= set(shown)
    assert type(sample(name)).__name__ in shown
    assert all(hasattr(package, item) for item in shown)


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_design_is_imported_from_its_package_of_designs(name: str) -> None:
    package = type(sample(name)).__module__.split(".problem.")[0]
    for design in find_system(name).designs:
        assert design.function.startswith(f"{package}.designs."), design.name
        result: Any = importlib.import_module(package)
        for share in design.function.removeprefix(f"{package}.").split("."):
            result = getattr(result, share)
        assert inspect.unwrap(result) is inspect.unwrap(design.decide), design.name


@pytest.mark.parametrize("name", SYSTEMS)
def test_help_of_a_design_says_what_each_parameter_means(name: str) -> None:
    for design in find_system(name).designs:
        text = pydoc.plain(pydoc.render_doc(design.decide))
        for parameter in design.parameters.values():
            assert parameter.about, f"{design.name}: {parameter.name} has no description"
            assert parameter.name in text


@pytest.mark.parametrize(
    ("verb", "instead"),
    [("simulate", "give the table years")],
)
def test_a_verb_that_a_system_lacks_names_another(verb: str, instead: str) -> None:
    with pytest.raises(InputError, match=instead):
        getattr(planner, verb)(sample("capacity"))
