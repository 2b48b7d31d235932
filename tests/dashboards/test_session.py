"""Sessions: names in addresses."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

TIME_LIMIT_S = 60.0


def _choose() -> None:
    import streamlit as st

    from planner_dashboard import session

    names = ["abilene", "germany50"]
    named = session.name_of_address("scenario", names, "abilene")
    selected = st.selectbox("Scenario", names, index=names.index(named))
    session.show_unknown_name("scenario", selected)
    st.query_params["scenario"] = selected


def show(scenario: str = "") -> AppTest:
    app = AppTest.from_function(_choose, default_timeout=TIME_LIMIT_S)
    if scenario:
        app.query_params["scenario"] = scenario
    return app.run()


def test_a_name_of_the_address_is_chosen() -> None:
    assert show().selectbox[0].value == "abilene"
    app = show("germany50")
    assert app.selectbox[0].value == "germany50"
    assert not app.error


def test_an_unknown_name_of_the_address_is_one_line_until_another_is_chosen() -> None:
    app = show("germany5")
    assert app.selectbox[0].value == "abilene"
    for _ in range(2):
        (error,) = app.error
        assert "no such scenario; did you mean 'germany50'?" in error.value
        app.run()
    app.selectbox[0].select("germany50").run()
    assert not app.error
    app.selectbox[0].select("abilene").run()
    assert not app.error
