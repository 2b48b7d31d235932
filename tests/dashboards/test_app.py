"""Every page, its answers and its errors, run by streamlit with real worker processes."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import planner_dashboard
from planner.coordination import measurement
from planner.errors import InputError
from planner.scenarios import scenario as scenarios
from planner.scenarios.catalogue import find_system
from planner.scenarios.shipped import scenario_names
from planner_dashboard import question, session, worker
from planner_dashboard.what_if import details, pins
from tests.dashboards.shown_tables import shown_tables

APP = Path(planner_dashboard.__file__).with_name("app.py")
TIME_LIMIT_S = 300.0

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_worker", "main_module")]


def page(**query: str) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=TIME_LIMIT_S)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    if query:  # an address is solved after a click
        for button in app.button:
            if button.key == "solve":
                assert "job answer" not in app.session_state
                button.click()
                app.run()
    return app


def wait_until(app: AppTest, is_done: Callable[[], bool]) -> AppTest:
    end = time.monotonic() + TIME_LIMIT_S
    while not is_done():
        assert time.monotonic() < end, [error.value for error in app.error]
        time.sleep(0.1)
        app.run()
    assert not app.exception
    return app


def wait_for_answer(app: AppTest) -> AppTest:
    def is_done() -> bool:
        return "job answer" not in app.session_state and answer_of(app) is not None

    return wait_until(app, is_done)


def answer_of(app: AppTest) -> worker.Answer | None:
    """Return the answer to the current question of a page; None while there is none."""
    state = app.session_state
    return state["answers"].get(state["history"].current) if "answers" in state else None


def require_answer(app: AppTest) -> worker.Answer:
    answer = answer_of(app)
    assert answer is not None
    return answer


def open_parameters(app: AppTest) -> AppTest:
    """Open the form of all parameters, which is not sent while it is closed."""
    app.session_state[f"parameters {app.session_state['history'].current.scenario}"] = True
    return app.run()


def texts(app: AppTest) -> str:
    """Return what the page shows as HTML: verdict, figures, facts."""
    return " ".join(str(item.proto.body) for item in app.get("html"))


def open_tab(app: AppTest, key: str, tab: str) -> AppTest:
    """Open a tab of a page, which does not send the contents of the others."""
    app.session_state[key] = tab
    return app.run()


def test_a_scenario_of_consecutive_windows_is_solved_on_another_page() -> None:
    app = page(scenario="multicast/limited_changes")
    assert not app.exception
    assert not app.error
    assert any("consecutive windows" in str(item.value) for item in app.markdown)
    assert "job answer" not in app.session_state
    assert [item.label for item in app.button if item.key == "through time"] == ["Solve it through time"]


def test_a_question_from_an_address_is_answered_and_can_be_changed() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp", set="problem.scale=0.5"))
    answer = require_answer(app)
    assert [design.label for design in answer.designs] == ["ecmp"]
    half = answer.designs[0].figures.metrics["max_utilization"]
    codes = [str(code.value) for code in open_tab(app, "view", details.SHARE).code]
    assert "planner compare traffic/abilene --designs ecmp --set problem.scale=0.5" in codes
    scale = next(slider for slider in open_parameters(app).slider if slider.label == "Scale")
    assert scale.value == 0.5
    scale.set_value(1.0)
    app.run()
    wait_for_answer(app)
    full = require_answer(app).designs[0].figures.metrics["max_utilization"]
    assert full == pytest.approx(2 * half)
    assert dict(app.query_params) == {"scenario": "traffic/abilene", "designs": "ecmp"}
    assert "from" in texts(app), "figures say what they were before"
    open_tab(app, "view", details.DESIGNS)
    label = find_system("traffic").metric("max_utilization").label
    assert "(+" in str(shown_tables(app)[0].loc[f"{label} ↓", "Equal-cost multipath"])
    open_tab(app, "view", details.PLAN)
    app = wait_until(app, lambda: "found details" in app.session_state)
    result = app.session_state["found details"][1]
    assert result.changes["flows"][1] > 0, "every flow has doubled"


def test_undo_and_redo_bring_back_questions_with_their_answers() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp"))
    first = require_answer(app)
    scale = next(slider for slider in open_parameters(app).slider if slider.label == "Scale")
    scale.set_value(2.0)
    wait_for_answer(app.run())
    second = require_answer(app)
    app.button(key="undo").click().run()
    assert require_answer(app) is first, "the answer was kept"
    assert next(slider for slider in app.slider if slider.label == "Scale").value == 1.0
    app.button(key="redo").click().run()
    assert require_answer(app) is second
    chip = next(item for item in app.button if item.label.startswith("scale 2"))
    chip.click().run()
    assert require_answer(app) is first, "a click takes the change back"


def test_elements_fail_are_doubled_and_restored_from_their_panel() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp,optimum"))
    full = require_answer(app)
    name = full.elements["link"][0]
    app.session_state["selected"] = ("link", name)
    app.run()
    app.button(key=f"action link {name} Fail").click().run()
    wait_for_answer(app)
    failed = require_answer(app)
    assert failed.question.changes == {"problem.fail_links": (name,)}
    assert failed.whole is not None, "the picture shows what has failed"
    assert name in failed.elements["link"], "what has failed can be restored"
    assert "With " in texts(app)
    app.button(key=f"action link {name} Fail").click().run()
    assert require_answer(app) is full


def test_a_plan_is_pinned_with_a_name_and_restored_from_the_address() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp", set="problem.scale=2.0"))
    app.button(key="pin").click().run()
    (pin,) = app.session_state[pins.PINS]
    assert pin.name == "scale 2.0"
    selected = app.query_params["pin"]
    again = pins.from_address({"pin": [selected] if isinstance(selected, str) else selected})
    assert again == [pin]
    with pytest.raises(InputError, match="no such scenario"):
        pins.from_address({"pin": ["scenario=%2Fetc%2Fpasswd"]})


def test_the_plan_before_and_other_designs_can_be_compared_with() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp,optimum"))
    choice = app.selectbox(key="compare with")
    assert choice.options[0] == "Compare with nothing"
    choice.select("Equal-cost multipath").run()
    assert not app.exception
    assert any("What changed" in item.value for item in app.subheader)
    assert any("went down from" in item.value or "went up from" in item.value for item in app.markdown)


def test_a_page_loads_its_scenario_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    from_document = scenarios.from_document

    def count(*arguments: Any, **named: Any) -> Any:
        loads.append(named["name"])
        return from_document(*arguments, **named)

    monkeypatch.setattr(scenarios, "from_document", count)
    question.unchanged_scenario.cache_clear()
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp", set="problem.scale=0.5"))
    next(slider for slider in open_parameters(app).slider if slider.label == "Scale").set_value(0.6)
    app.run()
    wait_for_answer(app)
    assert not app.error
    assert loads == ["traffic/abilene"]


FIRST_SCENARIOS = list({name.partition("/")[0]: name for name in reversed(scenario_names())}.values())
"""One of each system."""


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize(
    "names",
    [
        FIRST_SCENARIOS,
        pytest.param(sorted({*scenario_names()} - {*FIRST_SCENARIOS}), marks=pytest.mark.exhaustive),
    ],
    ids=["one of each system", "the others"],
)
def test_the_form_of_each_scenario_begins_without_changes(
    monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setattr(session, "submit", lambda *_, **__: None)
    for name in names:
        app = page(scenario=name)
        assert not app.exception, name
        assert app.session_state["history"].current == question.Question(scenario=name), name
        open_parameters(app)
        assert not app.exception, name
        assert app.session_state["history"].current == question.Question(scenario=name), name


def test_the_answer_begins_with_question_verdict_and_figures() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp,optimum", set="problem.scale=2.0"))
    answer, system = require_answer(app), find_system("traffic")
    shown = texts(app)
    assert html.escape(system.question) in shown
    for sentence in answer.sentences:
        assert html.escape(sentence.text) in shown
    (loss,) = [sentence.text for sentence in answer.sentences if sentence.is_loss]
    assert f"<span class='planner-loss'>{html.escape(loss)}</span>" in shown
    assert shown.index("planner-verdict") < shown.index("planner-figures")
    assert any(item.label.startswith("scale 2") for item in app.button), "a change is a chip"
    ecmp = next(design for design in answer.designs if design.label == "ecmp")
    assert ecmp.losses, "an overload is said beside the headline figure"
    assert ecmp.figures.constraints.text == "violated"
    rows = list(shown_tables(app)[0].index)
    labels = {metric.label for metric in system.metrics}
    assert sum(any(row.startswith(label) for label in labels) for row in rows) <= 8
    assert {"Search", "Constraints"} <= set(rows)
    assert answer.compile_s >= 0
    assert answer.seconds > 0


def test_strict_service_is_a_field_and_explains_why_nothing_fits() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="optimum"))
    assert require_answer(app).designs[0].losses, "soft service sheds"
    service = next(box for box in open_parameters(app).selectbox if box.label == "Service")
    assert service.value == "best"
    service.set_value("all")
    app.run()
    app = wait_for_answer(app)
    (design,) = require_answer(app).designs
    assert design.figures.status.text == "infeasible"
    assert "of every demand fits" in texts(app), "the verdict tells the reason"
    assert app.query_params["set"] == "solver.service=all"


def test_a_plan_is_explained_on_request() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="optimum"))
    open_tab(app, "view", details.LIMITS)
    next(button for button in app.button if button.label == "Explain").click()
    app.run()
    wait_until(app, lambda: "job explain" not in app.session_state)
    assert not app.error
    assert any("shadow" in line.value.lower() or "upgrade" in line.value.lower() for line in app.markdown)


def test_a_failed_question_is_one_line_and_the_page_lives_on() -> None:
    app = page(scenario="traffic/abilene", designs="ecmp", set='problem.fail_links=["no such link"]')
    wait_until(app, lambda: bool(app.error))
    assert len(app.error) == 1
    assert "no such link" in app.error[0].value
    next(box for box in app.selectbox if box.label == "Scenario").select("traffic/germany50")
    app.run()
    wait_for_answer(app)
    assert not app.error


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"scenario": "/etc/passwd"}, "no such scenario"),
        ({"scenario": "traffic/abilene", "set": "problem.source=tables"}, "no such field"),
        ({"scenario": "traffic/permutation_128", "designs": "ecmp", "set": "problem.k=1000"}, "problem"),
        ({"scenario": "traffic/abilene", "set": "problem.scale=-1"}, "must be"),
        ({"scenario": "traffic/abilene", "set": 'problem.scale="<script>"'}, "must be"),
        ({"scenario": "traffic/abilene", "set": "problem.fail_links=3"}, "must be"),
        ({"scenario": "traffic/abilene", "designs": "nonsense,ecmp", "set": "solver.gap=2"}, "must be"),
    ],
)
def test_a_hostile_address_is_one_line_and_changes_nothing(query: dict[str, str], message: str) -> None:
    app = page(**query)
    assert not app.exception
    assert len(app.error) == 1
    assert message in app.error[0].value
    assert app.main.children[0].error, "above the answer"
    assert not app.session_state["history"].current.changes


def test_a_question_needs_a_design() -> None:
    app = wait_for_answer(page(scenario="traffic/abilene", designs="ecmp"))
    open_parameters(app).multiselect[0].set_value([])
    app.run()
    assert "choose a design" in app.error[0].value


def test_a_measurement_reports_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = []
    progress = tmp_path / "measure.progress"

    def curves(names: list[str], **given: Any) -> list[Any]:
        given["advance"](3, 0, 12)
        reported.append((names, progress.read_text()))
        raise InputError("stopped")

    monkeypatch.setattr(measurement, "curves", curves)
    with pytest.raises(InputError, match="stopped"):
        worker.measure("traffic", tmp_path / "store", progress)
    assert reported == [(["traffic"], "3/12")]
    assert not progress.exists()


def test_what_a_job_found_before_it_failed_is_shown() -> None:
    def show() -> None:
        import streamlit as st

        from planner.errors import InputError
        from planner_dashboard import session

        (session.folder() / "answer.found").write_text("ecmp delivers 4 of 5 Gbit/s.\noptimum \x1b[0m")
        st.session_state["error answer"] = InputError("out of memory")
        session.show_failure("answer")

    app = AppTest.from_function(show).run()
    assert [item.value for item in app.error] == ["out of memory"]
    assert [item.value for item in app.text] == [
        "Found before:\necmp delivers 4 of 5 Gbit/s.\noptimum \\x1b[0m"
    ]
