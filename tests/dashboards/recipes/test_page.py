"""The page of coordination mechanisms: advice with a measured example, measurements, and their scenarios."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from streamlit.testing.v1 import AppTest

from planner.coordination import measurement
from planner.formatting import percent
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import load
from planner_dashboard import worker
from planner_dashboard.recipes.page import summary
from tests.dashboards.shown_tables import shown_tables

TIME_LIMIT_S = 300.0
VALUE, CURVES, ADVICE = "Value of coordination", "Quality of information", "Which mechanism suits me"


def _recipes() -> None:
    from planner_dashboard import recipes

    recipes.page()


def titles_of(system: str, designs: Iterable[str]) -> list[str]:
    """Return the titles of designs of the scenario that is measured."""
    study = find_system(system).studies.coordination
    assert study is not None
    return [load(study.scenario).design_title(design) for design in designs]


def open_page(tab: str, **state: object) -> AppTest:
    """Return the page at a tab."""
    app = AppTest.from_function(_recipes, default_timeout=TIME_LIMIT_S)
    app.session_state["recipes view"] = tab
    for key, value in state.items():
        app.session_state[key] = value
    return app.run()


def test_the_first_sentence_says_what_was_measured() -> None:
    designs, _ = measurement.load_release()
    best = designs[designs["share"].notna()].groupby("system")["share"].max()
    assert (
        f"In {len(best)} systems, the best mechanism reaches {min(best):.0%} to {max(best):.0%}" in summary()
    )


@pytest.mark.slow
def test_recipes_recommend_a_mechanism_with_a_measured_example() -> None:
    app = open_page(ADVICE)
    assert not app.exception
    app.selectbox[0].select("disjoint")
    app.selectbox[1].select("companies")
    app.run()
    texts = [line.value.replace("\\", "") for line in app.markdown]
    assert "**priority ranking**" in texts
    designs, _ = measurement.load_release()
    ranked = designs[(designs["mechanism"] == "priority ranking") & designs["share"].notna()]
    best = ranked.loc[ranked["share"].astype(float).idxmax()]
    (title,) = titles_of(best["system"], [best["design"]])
    example = f"{title} (priority ranking): {percent(best['share'])} of the possible gain"
    assert any(example in text for text in texts)
    app.number_input[2].set_value(900.0)
    app.selectbox[3].select("two-way")
    app.run()
    assert any("age 15 min" in line.value for line in app.markdown)
    assert any("Blind reaction" in table.index for table in shown_tables(app))
    app.number_input[0].set_value(60.0)
    app.run()
    assert "give both" in app.error[0].value


@pytest.mark.slow
def test_the_shipped_value_of_coordination_is_shown() -> None:
    shipped, _ = measurement.load_release()
    app = open_page(VALUE)
    assert not app.exception
    shown = [name for table in shown_tables(app) for name in table.index]
    assert shown == [
        title
        for system, rows in shipped.groupby("system", sort=False)
        for title in titles_of(str(system), rows["design"])
    ]
    shares = [share for table in shown_tables(app) for share in table["share of gain"]]
    assert shares == [percent(share) for share in shipped["share"]]
    assert any("measured with planner" in caption.value for caption in app.caption)
    first = find_system(str(shipped["system"].iloc[0])).label
    assert any(
        line.value.replace("\\", "").startswith(f"- {first}") and "of the possible gain" in line.value
        for line in app.markdown
    )
    app = open_page(CURVES)
    assert not app.exception
    app.session_state["chosen systems"] = []
    app.run()
    assert not app.exception, "a choice may be empty"


@pytest.mark.slow
def test_a_measurement_of_the_session_replaces_the_shipped_one() -> None:
    shipped, curves = measurement.load_release()
    name = str(shipped["system"].iloc[0])
    fresh = shipped[shipped["system"] == name].drop(columns="version").assign(performance=123.0)
    bent = curves[curves["system"] == name].drop(columns="version")
    system_measurement = worker.SystemMeasurement(
        designs=fresh, curves=bent, bound=456.0, failed_designs={}, failed_runs={"ecmp at noise 2": "no plan"}
    )
    app = open_page(VALUE, measured={name: system_measurement})
    assert not app.exception
    table = next(
        item for item in shown_tables(app) if item.index.tolist() == titles_of(name, fresh["design"])
    )
    assert any((table[column] == "123").all() for column in table)
    assert any("456" in caption.value for caption in app.caption)
    title = find_system(name).label
    assert any(f"{title} measured here" in caption.value for caption in app.caption)
