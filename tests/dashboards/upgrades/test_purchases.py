"""Purchases of a plan: the steps and budgets that a page shows, and the network before and with them."""

from __future__ import annotations

import pickle
import re
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner_dashboard import worker
from planner_dashboard.question import Question
from planner_dashboard.upgrades import curve, panel, work
from planner_dashboard.what_if import picture

OWN_DATA = Question(scenario="capacity/own_data", designs=("optimum",))
TIME_LIMIT_S = 300.0


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> work.FoundPurchases:
    folder = tmp_path_factory.mktemp("purchases")
    return work.find_purchases(OWN_DATA, folder, "optimum", 2, folder / "purchases")


@pytest.mark.slow
def test_steps_rise_to_what_the_plan_delivers(found: work.FoundPurchases) -> None:
    parts = [step.part for step in found.steps]
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert 0 < found.first < 1
    assert all(re.fullmatch(r"costs [\d.,]+ monetary units?", step.cost) for step in found.steps)
    assert all(re.search(r"survives \d+ failures?$", step.adds) for step in found.steps)
    assert pickle.loads(pickle.dumps(found)) == found


def test_each_budget_has_a_bound_and_asks_for_itself(found: work.FoundPurchases) -> None:
    assert len(found.points) == 3
    for point in found.points:
        assert point.bound is not None
        assert point.value <= point.bound * (1 + 1e-9)
        assert point.adjustments["budget"] == pytest.approx(point.cost, rel=1e-5)
    assert found.points[0].cost == 0
    assert all(point.cost_words.endswith(" monetary units") for point in found.points)
    assert found.budget_note.startswith("Least cost decided again")
    assert "proven to be the most" in found.points[-1].reached


def test_lists_and_curves_are_drawn(found: work.FoundPurchases) -> None:
    assert panel.list_steps(found.steps, found.first).count("role='listitem'") == len(found.steps)
    html = curve.curve_html(found.points, 1, "budget", found.metric)
    assert html.count("planner-bound") == len(found.points)


def test_a_picture_shows_the_network_before_its_purchases(tmp_path: Path) -> None:
    answer = worker.compare(OWN_DATA, tmp_path, tmp_path / "out")
    design = answer.design("optimum")
    assert design is not None
    assert picture.has_purchases(design)
    now = design.picture
    before = picture.before_purchases(now)  # type: ignore[arg-type]
    assert before.widest == now.links["width"].max()  # type: ignore[union-attr]
    assert (before.links["width"] + now.links["added"]).tolist() == now.links["width"].tolist()  # type: ignore[union-attr]
    assert before.links["value"].isna().all()


def page() -> None:
    import streamlit as st

    from planner_dashboard import session
    from planner_dashboard.question import Question
    from planner_dashboard.upgrades import show_purchases

    def keep(adjustments: object) -> None:
        st.session_state["applied"] = adjustments

    show_purchases(Question(scenario="capacity/own_data"), session.folder(), "optimum", keep)


@pytest.mark.slow
@pytest.mark.usefixtures("one_worker", "main_module")
def test_a_budget_is_chosen_and_asked_for() -> None:
    app = AppTest.from_function(page, default_timeout=TIME_LIMIT_S).run()
    app.button(key="find purchases").click().run()
    end = time.monotonic() + TIME_LIMIT_S
    while not app.select_slider:
        assert time.monotonic() < end, [error.value for error in app.error]
        time.sleep(0.1)
        app.run()
    (slider,) = app.select_slider
    slider.set_value(1).run()
    app.button(key="apply purchase budget").click().run()
    assert app.session_state["applied"]["budget"] > 0
