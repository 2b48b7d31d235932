"""Work of the dashboard's worker processes: an answer and its explanations share a scenario."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from planner import clock, compile_events
from planner.runs import evaluation
from planner.scenarios import scenario as scenarios
from planner_dashboard import worker
from planner_dashboard.question import Question

pytestmark = pytest.mark.slow


def test_an_answer_and_its_explanation_load_the_scenario_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, problems = [], []
    from_document = scenarios.from_document

    def count(*arguments: Any, **named: Any) -> Any:
        loaded = from_document(*arguments, **named)
        loads.append(loaded.name)
        make_problem = loaded.make_problem

        def make() -> Any:
            problems.append(loaded.name)
            return make_problem()

        object.__setattr__(loaded, "make_problem", make)
        return loaded

    monkeypatch.setattr(scenarios, "from_document", count)
    worker.load_scenario.cache_clear()
    question = Question(
        scenario="traffic/abilene", changes={"problem.scale": 0.5}, designs=("ecmp", "optimum")
    )
    answer = worker.compare(question, tmp_path, tmp_path / "out")
    explanation = worker.explain(pickle.loads(pickle.dumps(answer.question)), tmp_path, "optimum")
    assert loads == problems == ["traffic/abilene"]
    assert explanation.tables
    pickle.dumps((answer, explanation))  # both are sent to the page's process
    worker.compare(Question(scenario="traffic/abilene", designs=("ecmp",)), tmp_path, tmp_path / "out")
    assert len(loads) == len(problems) == 2, "another question loads its own scenario"


def test_compiling_is_said_while_it_lasts_and_not_counted_as_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    activity, said = tmp_path / "answer.activity", []
    verify = evaluation._verify_claims

    def compile_and_verify(*arguments: Any) -> Any:
        clock.pause()
        for observer in compile_events._observers:
            observer("kernel")
        time.sleep(0.05)
        clock.resume()
        said.append(activity.read_text())
        return verify(*arguments)

    monkeypatch.setattr(evaluation, "_verify_claims", compile_and_verify)
    question = Question(scenario="traffic/abilene", designs=("ecmp",))
    start = time.perf_counter()
    answer = worker.compare(question, tmp_path, tmp_path / "out", activity)
    elapsed_s = time.perf_counter() - start
    assert said[0] == "solving with Equal-cost multipath: compiling (once), 1 kernel"
    assert not activity.exists()
    assert answer.compile_s >= 0.05 * len(said)
    assert answer.designs[0].figures.compile_s == answer.compile_s
    assert answer.seconds <= elapsed_s - answer.compile_s


def test_a_design_that_runs_out_of_memory_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = evaluation.evaluate

    def run_out(system: Any, problem: Any, entry: Any, **options: Any) -> Any:
        if entry.label == "optimum":
            raise MemoryError
        return evaluate(system, problem, entry, **options)

    monkeypatch.setattr(evaluation, "evaluate", run_out)
    question = Question(scenario="traffic/abilene", designs=("ecmp", "optimum"))
    answer = worker.compare(question, tmp_path, tmp_path / "out", tmp_path / "answer.activity")
    assert [design.label for design in answer.designs] == ["ecmp", "optimum"]
    assert answer.designs[1].figures.status.text == "SolverFailure"
    assert any("smaller problem" in str(note) for note in answer.notes)
    assert (tmp_path / "answer.found").read_text().startswith("Equal-cost multipath ")


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_failed_element_is_described_as_it_was_before(tmp_path: Path, is_stored: bool) -> None:
    question = Question(scenario="traffic/abilene", designs=("ecmp",))
    folder = worker.compare(question, tmp_path, tmp_path / "out").folder if is_stored else None
    restored = worker.describe_restored(folder, question, "ecmp", "link", "CHINng<->IPLSng", tmp_path)
    assert restored.metrics["delivered_mbps"]
    assert restored.report is not None
    assert restored.report.facts[0].label == "Utilization"
    assert len(restored.report.sections[0].frame)
