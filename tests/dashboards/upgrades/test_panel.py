"""The panels on a page, run by streamlit with real worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from planner_dashboard.upgrades import panel
from planner_dashboard.upgrades.work import BudgetPoint

TIME_LIMIT_S = 300.0

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_worker", "main_module")]


def page() -> None:
    import streamlit as st

    from planner_dashboard import session
    from planner_dashboard.question import Question
    from planner_dashboard.upgrades import show_failures, show_panel

    def keep(adjustments: object) -> None:
        st.session_state["applied"] = adjustments

    question = Question(scenario="traffic/abilene", changes={"problem.scale": 1.5})
    show_panel(question, session.folder(), "ecmp", keep)
    show_failures(question, session.folder(), "ecmp", keep)


def wait_for(app: AppTest, is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + TIME_LIMIT_S
    while not is_done():
        assert time.monotonic() < end, [error.value for error in app.error]
        time.sleep(0.1)
        app.run()
    assert not app.exception


def keys(app: AppTest) -> set[str]:
    return {str(button.key) for button in app.button}


def test_upgrades_are_found_shown_and_applied() -> None:
    app = AppTest.from_function(page, default_timeout=TIME_LIMIT_S).run()
    assert keys(app) == {"find upgrades", "find failures"}
    app.button(key="find upgrades").click().run()
    wait_for(app, lambda: "apply upgrades" in keys(app))
    app.button(key="apply upgrades").click().run()
    applied = app.session_state["applied"]
    assert applied["scale"] == 1.5
    assert set(applied["capacity_factors"].values()) == {2.0}
    (slider,) = app.select_slider
    slider.set_value(1).run()
    app.button(key="apply budget").click().run()
    assert len(app.session_state["applied"]["capacity_factors"]) == 1


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.93, "93.0% of demand fits"),
        (1.0, "all demand fits"),
        (1.065, "all demand fits, with 6.5% to spare"),
    ],
)
def test_more_than_all_demand_is_said_as_what_is_to_spare(share: float, words: str) -> None:
    point = BudgetPoint(
        cost=4.0, value=240.7, cost_words="4", reached="240.7 Gbit/s", share=share, elements=("a<->b",),
        adjustments={},
    )  # fmt: skip
    assert panel._budget_words(point) == f"240.7 Gbit/s ({words}) with a – b."


def test_failures_are_found_and_one_is_chosen() -> None:
    app = AppTest.from_function(page, default_timeout=TIME_LIMIT_S).run()
    app.button(key="find failures").click().run()
    wait_for(app, lambda: bool(app.selectbox))
    app.selectbox(key="choose failure").set_value("link CHINng<->IPLSng").run()
    assert any(text.value.startswith("After the failure of link CHINng") for text in app.markdown)
    app.button(key="fail it").click().run()
    assert app.session_state["applied"] == {"fail_links": ("CHINng<->IPLSng",)}


def test_a_cancelled_search_keeps_what_it_found() -> None:
    app = AppTest.from_function(page, default_timeout=TIME_LIMIT_S).run()
    app.button(key="find upgrades").click().run()
    steps = app.session_state["folder"].path / "upgrades.steps"
    wait_for(app, lambda: steps.exists() or "apply upgrades" in keys(app))
    if "cancel upgrades" in keys(app):
        app.button(key="cancel upgrades").click().run()
        assert any("cancelled" in error.value for error in app.error)
    assert {"apply upgrades"} <= keys(app)
