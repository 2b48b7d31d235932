"""Every page, its answers and its errors, as streamlit runs them, with real worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import planner_dashboard
from planner import coordination
from planner.errors import InputError
from planner_dashboard import recipes, session, work

APP = Path(planner_dashboard.__file__).with_name("app.py")
PATIENCE_S = 120.0
_, WORTH, CURVES = recipes.VIEWS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def one_server() -> Iterator[None]:
    """One worker for all tests of the module, ended with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(session.WORKERS, "1")
        patch.setenv(session.MEMORY_MB, "0")
        session.workers.clear()
        yield
        session.workers().close()
        session.workers.clear()


def page(**query: str) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def until(app: AppTest, there: Callable[[], bool]) -> AppTest:
    end = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < end, [error.value for error in app.error]
        time.sleep(0.1)
        app.run()
    assert not app.exception
    return app


def answered(app: AppTest) -> AppTest:
    def there() -> bool:
        state = app.session_state
        return "job answer" not in state and "answer" in state and state["answer"].asked == state["asked"]

    return until(app, there)


def opened(app: AppTest, key: str, tab: str) -> AppTest:
    """The page with another tab open: what is in the others is not sent."""
    app.session_state[key] = tab
    return app.run()


def test_a_question_from_an_address_is_answered_and_can_be_changed() -> None:
    app = answered(page(scenario="traffic/abilene", designs="ecmp", set="problem.scale=0.5"))
    answer = app.session_state["answer"]
    assert [design.label for design in answer.designs] == ["ecmp"]
    half = answer.designs[0].metrics["max_utilization"]
    codes = [code.value for code in opened(app, "view", "The same elsewhere").code]
    assert "planner compare traffic/abilene --designs ecmp --set problem.scale=0.5" in codes
    scale = next(slider for slider in app.slider if slider.label == "scale")
    assert scale.value == 0.5
    scale.set_value(1.0)
    app.run()
    answered(app)
    whole = app.session_state["answer"].designs[0].metrics["max_utilization"]
    assert whole == pytest.approx(2 * half)
    assert app.session_state["answer"].designs[0].changed["flows"][1] > 0, "every flow has doubled"
    assert dict(app.query_params) == {"scenario": "traffic/abilene", "designs": "ecmp"}
    assert "(+" in app.dataframe[0].value.loc["max_utilization ↓", "ecmp"]


def test_what_limits_a_plan_is_explained_on_demand() -> None:
    app = answered(page(scenario="traffic/abilene", designs="optimum"))
    opened(app, "view", "optimum")
    next(button for button in app.button if button.label == "Explain").click()
    app.run()
    until(app, lambda: "job explain" not in app.session_state)
    assert not app.error
    assert any(
        "shadow" in caption.value.lower() or "upgrade" in caption.value.lower() for caption in app.caption
    )


def test_a_failed_question_is_one_line_and_the_page_lives_on() -> None:
    app = page(scenario="traffic/abilene", designs="ecmp", set='problem.fail_links=["no such link"]')
    until(app, lambda: bool(app.error))
    assert len(app.error) == 1
    assert "no such link" in app.error[0].value
    app.sidebar.selectbox[0].select("traffic/germany50")
    app.run()
    answered(app)
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
def test_a_hostile_address_is_one_line_and_asks_nothing(query: dict[str, str], message: str) -> None:
    app = page(**query)
    assert not app.exception
    assert len(app.error) == 1
    assert message in app.error[0].value
    assert not app.session_state["asked"].changes


def test_without_a_design_there_is_nothing_to_ask() -> None:
    app = answered(page(scenario="traffic/abilene", designs="ecmp"))
    app.sidebar.multiselect[0].set_value([])
    app.run()
    assert "choose a design" in app.error[0].value


def test_recipes_recommend_what_constraints_allow() -> None:
    app = AppTest.from_function(_recipes, default_timeout=PATIENCE_S).run()
    assert not app.exception
    assert any("DASH" in line.value and "transparency" in line.value for line in app.markdown)
    app.selectbox[0].select("disjoint")
    app.selectbox[1].select("companies")
    app.run()
    assert app.success[0].value == "**priority ranking**"
    app.number_input[0].set_value(60.0)
    app.run()
    assert "give both" in app.error[0].value


def test_what_coordination_is_worth_is_shown_as_it_ships() -> None:
    shipped, _ = coordination.shipped()
    app = opened(AppTest.from_function(_recipes, default_timeout=PATIENCE_S).run(), "recipes view", WORTH)
    assert not app.exception
    table = app.dataframe[0].value
    assert table["design"].tolist() == shipped["design"].tolist()
    assert any("measured with planner" in caption.value for caption in app.caption)
    first = str(shipped["system"].iloc[0])
    assert any(line.value.startswith(f"- {first}") and "of the way" in line.value for line in app.markdown)
    opened(app, "recipes view", CURVES)
    assert not app.exception
    app.session_state["worth systems"] = []
    app.run()
    assert not app.exception, "none need be chosen"


def test_what_is_measured_anew_takes_the_place_of_what_ships() -> None:
    shipped, curves = coordination.shipped()
    name = str(shipped["system"].iloc[0])
    fresh = shipped[shipped["system"] == name].drop(columns="version").assign(performance=123.0)
    bent = curves[curves["system"] == name].drop(columns="version")
    app = AppTest.from_function(_recipes, default_timeout=PATIENCE_S)
    app.session_state["measured"] = {name: work.Worth(designs=fresh, curves=bent, sentences=(), trouble=())}
    app.session_state["recipes view"] = WORTH
    app.run()
    assert not app.exception
    table = app.dataframe[0].value
    assert (table.loc[table["system"] == name, "performance"].astype(float) == 123.0).all()
    assert any(f"{name} measured here" in caption.value for caption in app.caption)


def test_measuring_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    progress = tmp_path / "measure.progress"

    def curves(names: list[str], **given: Any) -> list[Any]:
        given["advance"](3, 0, 12)
        told.append((names, progress.read_text()))
        raise InputError("stopped")

    monkeypatch.setattr(coordination, "curves", curves)
    with pytest.raises(InputError, match="stopped"):
        work.measure("traffic", tmp_path / "store", progress)
    assert told == [(["traffic"], "3/12")]
    assert not progress.exists()


def _recipes() -> None:
    from planner_dashboard import recipes

    recipes.page()


def _reproduction() -> None:
    from planner_dashboard import reproduction

    reproduction.page()


def _sweeps() -> None:
    from planner_dashboard import sweeps

    sweeps.page()


def test_a_target_is_run_and_judged() -> None:
    app = AppTest.from_function(_reproduction, default_timeout=PATIENCE_S)
    app.query_params["target"] = "traffic/figure_1"
    app.run()
    assert app.selectbox[0].value == "traffic/figure_1"
    app.button[0].click()
    app.run()
    until(app, lambda: bool(app.dataframe))
    assert app.dataframe[0].value["verdict"].tolist() == ["reproduced", "reproduced"]


def test_stores_are_those_that_the_command_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = AppTest.from_function(_sweeps, default_timeout=PATIENCE_S).run()
    assert "planner dashboard --store" in app.info[0].value
    from tests.commands import planner

    done = planner(
        "sweep", "traffic/abilene", "--designs", "ecmp,optimum", "--set", "problem.scale=0.5,1.0",
        "--workers", "1", "--out", tmp_path / "store",
    )  # fmt: skip
    assert done.code == 0, done.err
    monkeypatch.setenv(session.STORES, str(tmp_path / "store"))
    app = AppTest.from_function(_sweeps, default_timeout=PATIENCE_S).run()
    assert not app.exception
    assert any("4 of 4 runs" in caption.value for caption in app.caption)
    app.text_input[0].set_value("problem.scale < 1")
    app.run()
    assert any("2 of 4 runs" in caption.value for caption in app.caption)
    for tab in ("Trade-off", "Distribution", "Runs"):
        opened(app, "sweeps view", tab)
        assert not app.exception
    app.text_input[0].set_value("problem.sclae < 1")
    app.run()
    assert not app.exception
    assert "problem" in app.error[0].value
