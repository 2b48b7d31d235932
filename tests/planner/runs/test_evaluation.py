"""Running designs on scenarios: comparing, rolling, and what Python users see."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import planner
from planner import clock, compile_events
from planner.contract.design import Decision, Design
from planner.contract.proof import Proof, Status
from planner.errors import InputError, PlanRejected
from planner.options import Options
from planner.runs import evaluation
from planner.runs.evaluation import compile_ahead, entries, evaluate
from planner.runs.rolling import Roll
from planner.runs.run import Run
from planner.scenarios.arguments import as_scenario
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Entry, Scenario, from_document, load
from planner.scenarios.shipped import scenario_names
from planner_models.traffic import SYSTEM
from tests import commands
from tests.planner.runs.toy_system import Admitted, Link, admit, entry, toy

WITHOUT_DESIGNS = 'system = "traffic"\n[problem]\nsource = "generate"\npreset = "fat_tree"\nk = 4\n'
DIAMOND = "tail,head,capacity_mbps\ns,a,10\na,t,10\ns,b,5\nb,t,5\n"
SCENARIO = {
    "system": "traffic",
    "problem": {"source": "tables", "path": "net"},
    "designs": {"optimum": {}, "ecmp": {}, "two": {"design": "optimum", "paths": 2}},
}
PROBLEM = Link(offered_mbps=2.0, capacity_mbps=1.0)
CLAIMED_S = 1_000.0  # what the design says of its own time, so that no clock decides a test


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "links.csv").write_text(DIAMOND)
    (tmp_path / "net" / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    return from_document(SCENARIO, name="s", folder=tmp_path)


@pytest.mark.slow
def test_compare_measures_every_design_alike(scenario: Any) -> None:
    result = planner.compare(scenario)
    assert result.exit_code == 0
    metrics = result.metrics
    assert metrics.index.tolist() == ["optimum", "ecmp", "two"]
    assert metrics["max_utilization"].tolist() == pytest.approx([0.8, 1.2, 0.8])
    assert metrics["share_of_bound"].tolist() == pytest.approx([1.0, 11 / 12, 1.0])
    assert metrics["violations"].tolist() == [0, 2, 0]


@pytest.mark.slow
def test_a_bound_over_some_paths_is_no_bound_on_the_others(scenario: Any) -> None:
    result = planner.compare(scenario, designs=["two", "ecmp"])
    assert result.reference is None
    assert result.metrics["share_of_bound"].isna().all()


def test_a_bound_on_a_belief_is_no_bound_in_truth(tmp_path: Path, scenario: Any) -> None:
    document = {**SCENARIO, "designs": {"optimum": {"information": {"noise": 0.5}}, "ecmp": {}}}
    result = planner.compare(from_document(document, name="s", folder=scenario.folder))
    assert not result.runs[0].omniscient
    assert result.reference is None


def test_solve_runs_the_best_design_or_the_named_one(scenario: Any) -> None:
    assert planner.solve(scenario).label == "optimum"
    assert planner.solve(scenario, design="shortest_path").label == "shortest_path", "the system's own too"


def test_options_reach_the_solver(scenario: Any) -> None:
    run = planner.solve(scenario, options=Options(backend="ortools:glop"))
    assert "glop" in run.proof.backend


def test_unknown_designs_are_all_named(scenario: Any) -> None:
    with pytest.raises(InputError) as caught:
        planner.compare(scenario, designs=["optimun", "ecmpp", "ecmp"])
    assert len(caught.value.faults) == 2


def test_a_design_that_fails_does_not_stop_the_others(scenario: Any) -> None:
    document = {**SCENARIO, "designs": {"cheap": {"design": "optimum", "objective": "cost"}, "ecmp": {}}}
    result = planner.compare(from_document(document, name="s", folder=scenario.folder))
    assert isinstance(result.runs[0].error, InputError)
    assert result.runs[1].plan is not None
    assert result.exit_code == 1


def test_roll_hands_the_last_decision_on() -> None:
    seen: list[Any] = []
    problem = SYSTEM.problem.presets["fat_tree"]()
    design = SYSTEM.design("ecmp")

    def remembering(problem: Any, *, options: Options, previous: Any) -> Any:
        seen.append(previous)
        return design.run(problem, options=options, previous=previous)

    entry = Entry(
        label="x",
        design=Design(name="x", decide=remembering, mechanism=design.mechanism, source="tests"),
    )
    series = [("1", problem), ("2", problem.scale_demands(0.5))]
    first, second = Roll(scenario=as_scenario(problem), entries=[entry], series=series)
    assert seen[-2] is None, "after the sample problem"
    assert seen[-1].plan is first.plan
    delivered = [window.run["metrics"]["delivered_mbps"] for window in (first, second)]
    assert delivered[1] == pytest.approx(delivered[0] / 2)


def test_a_believed_problem_never_leaks_the_true_one() -> None:
    problem = SYSTEM.problem.presets["abilene"]()
    observed: list[Any] = []
    design = SYSTEM.design("optimum")

    def spying(problem: Any, *, options: Options, previous: Any) -> Any:
        observed.append(problem)
        return design.run(problem, options=options, previous=previous)

    spy = Design(
        name="spy", decide=spying, observe=design.observe, mechanism=design.mechanism, source="tests"
    )
    evaluate(SYSTEM, problem, Entry(label="spy", design=spy, information={"noise": 0.3, "seed": 1}))
    assert observed[-1] is not problem  # after the sample problem
    assert (observed[-1].rate_mbps != problem.rate_mbps).any()


def test_a_scenario_saved_elsewhere_means_the_same(scenario: Any, tmp_path: Path) -> None:
    elsewhere = tmp_path / "out" / "deep"
    elsewhere.mkdir(parents=True)
    (elsewhere / "scenario.toml").write_text(scenario.to_toml(elsewhere))
    again = load(elsewhere / "scenario.toml")
    assert again.raw["problem"]["path"] == "../../net"
    assert again.make_problem().size() == scenario.make_problem().size()


@pytest.mark.parametrize("name", [name for name in scenario_names() if name.startswith("traffic/")])
def test_shipped_scenarios_are_valid(name: str) -> None:
    assert load(name).designs


# --- proofs -------------------------------------------------------------------------------


def test_gap_is_relative_and_unknown_is_none() -> None:
    assert Proof(status=Status.FEASIBLE, objective=90.0, bound=100.0).gap == pytest.approx(0.1)
    assert Proof(status=Status.FEASIBLE, objective=90.0).gap is None
    assert Proof(status=Status.OPTIMAL, objective=0.0, bound=0.0).gap == 0


@pytest.mark.parametrize("value", [float("inf"), float("nan"), float("-inf")])
def test_no_infinite_claims(value: float) -> None:
    with pytest.raises(ValueError, match="unknown is None"):
        Proof(status=Status.FEASIBLE, bound=value)


def test_the_usual_designs_of_every_system_begin_with_its_default() -> None:
    for name in system_names():
        system = find_system(name)
        assert not system.usual or system.usual_designs[0] is system.default_design
        assert set(system.usual_designs) <= set(system.designs)


@pytest.mark.slow
def test_a_scenario_without_designs_compares_the_usual_ones_and_names_the_others(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WITHOUT_DESIGNS)
    usual = list(find_system("traffic").usual)
    assert [item.label for item in entries(planner.load(file))] == usual
    result = commands.planner("compare", file)
    assert result.code == 0
    assert (
        f"designs: compares {', '.join(usual)}; --designs names others of traffic: shortest_path"
        in result.err
    )
    named = commands.planner("compare", file, "--designs", "ecmp,shortest_path")
    assert "designs: compares" not in named.err
    swept = commands.planner("sweep", file, "--out", tmp_path / "store", "--dry-run")
    assert f"designs: runs {', '.join(usual)}; --designs names others of traffic: " in swept.err
    named = commands.planner("sweep", file, "--out", tmp_path / "store", "--dry-run", "--designs", "ecmp")
    assert "designs: runs" not in named.err


def test_designs_that_a_scenario_names_stay(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WITHOUT_DESIGNS + "[designs.ecmp]\n")
    assert [item.label for item in entries(planner.load(file))] == ["ecmp"]
    assert "designs: compares" not in commands.planner("compare", file).err


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e6, 1e9])
@pytest.mark.parametrize(("error", "is_false"), [(0.0, False), (5e-7, False), (1e-5, True), (0.1, True)])
def test_a_claimed_objective_is_compared_at_the_size_of_its_problem(
    unit: float, error: float, is_false: bool
) -> None:
    def decide(_: Link) -> Decision[Admitted]:
        proof = Proof(status=Status.FEASIBLE, objective=unit * (1 + error), metric="delivered_mbps")
        return Decision(plan=Admitted(unit), proof=proof)

    system = toy(decide=decide)
    problem = Link(offered_mbps=unit, capacity_mbps=2 * unit)
    if is_false:
        with pytest.raises(PlanRejected, match="but the design claimed"):
            evaluate(system, problem, entry(system, "own"))
    else:
        assert evaluate(system, problem, entry(system, "own")).plan is not None


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_rounding_of_large_terms_is_no_false_claim(unit: float) -> None:
    """What is shed is the difference of offered and sent traffic, and 0 but for rounding."""

    def decide(_: Link) -> Decision[Admitted]:
        return Decision(
            plan=Admitted(unit * (1 - 1e-13)),
            proof=Proof(status=Status.FEASIBLE, objective=0.0, metric="shed_mbps"),
        )

    system = toy(decide=decide)
    problem = Link(offered_mbps=unit, capacity_mbps=2 * unit)
    assert evaluate(system, problem, entry(system, "own")).plan is not None


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which designs are ready, as a new process would."""
    monkeypatch.setattr(evaluation, "_ready", set())


def compiled_design() -> Any:
    """Return a design with a kernel that no cache has."""

    @njit
    def total(values: Any) -> float:
        result = 0.0
        for value in values:
            result += value * value
        return result

    def decide(problem: Link) -> Decision[Admitted]:
        total(np.ones(3))
        decision = admit(problem)
        return replace(decision, proof=replace(decision.proof, seconds=CLAIMED_S))

    return decide


def decided(decide: Any, *, sample: Any = None) -> Run:
    system = toy(sample=sample, decide=decide)
    return evaluate(system, PROBLEM, entry(system, "own"))


def test_compiling_is_not_deciding() -> None:
    """What a design says of its own seconds stands: the clock that it reads stood still."""
    decide = compiled_design()
    names: list[str] = []
    with compile_events.observe_compiling(names.append):
        first, second = decided(decide), decided(decide)
    assert [name.rpartition(".")[2] for name in names] == ["total"]
    assert (first.proof.compile_s or 0.0) > 0.0
    assert (first.proof.seconds, second.proof.seconds) == (CLAIMED_S, CLAIMED_S)
    assert second.proof.compile_s == 0.0


@pytest.mark.parametrize("counts_cpu", [False, True])
def test_a_deadline_is_the_same_with_an_empty_cache(counts_cpu: bool) -> None:
    """The seconds of the clock and those of compiling are together at most the seconds that pass."""

    @njit
    def total(values: Any) -> float:
        result = 0.0
        for value in np.sort(values):
            result += value
        return result

    compile_events.listen()
    mode = clock.count_cpu_seconds() if counts_cpu else nullcontext()
    with mode:
        start, paused_s, begin = time.perf_counter(), clock.paused_s(), clock.now()
        total(np.ones(3))
        own_s, compile_s = clock.now() - begin, clock.paused_s() - paused_s
    elapsed_s = time.perf_counter() - start
    assert compile_s > 0.0
    assert own_s >= 0.0
    if not counts_cpu:
        assert own_s + compile_s <= elapsed_s


def test_pauses_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_pauses", clock._Pauses())
    readings = iter([1.0, 4.0, 10.0])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(readings))
    clock.pause()
    clock.pause()
    assert clock.wall_now() == 1.0, "it stands still"
    clock.resume()
    assert clock.wall_now() == 1.0
    clock.resume()
    assert clock.paused_s() == 3.0
    assert clock.wall_now() == 7.0


def test_a_sample_that_a_design_refuses_does_not_stop_compiling_ahead() -> None:
    def decide(problem: Link) -> Decision[Admitted]:
        raise InputError("no such node")

    system = toy(sample=lambda: Link(1.0, 1.0), decide=decide)
    assert compile_ahead(system, entry(system, "own"), Options()) == 0.0


def test_systems_without_kernels_compile_nothing() -> None:
    assert decided(admit).proof.compile_s == 0.0
