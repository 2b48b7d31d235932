"""The page of published values: all verdicts, a filter, and one target run again."""

from __future__ import annotations

import time

import pytest
from streamlit.testing.v1 import AppTest

from planner.runs.shipped_verdicts import load_shipped
from tests.dashboards.shown_tables import shown_tables

TIME_LIMIT_S = 300.0


def _reproduction() -> None:
    from planner_dashboard import reproduction

    reproduction.page()


@pytest.mark.slow
def test_all_verdicts_are_shown_and_a_target_is_run_again() -> None:
    app = AppTest.from_function(_reproduction, default_timeout=TIME_LIMIT_S)
    app.query_params["target"] = "traffic/figure_1"
    app.run()
    assert not app.exception
    shipped = [run.reproduction for run in load_shipped().values()]
    assert app.dataframe[0].value["Place"].tolist() == [run.target.place for run in shipped]
    assert app.dataframe[0].value["System"].tolist() == [run.system.label for run in shipped]
    assert "published values agree with ours" in app.markdown[0].value
    assert app.selectbox[0].value == "traffic/figure_1"
    next(button for button in app.button if button.label == "Run quickly").click()
    app.run()
    limit = time.monotonic() + TIME_LIMIT_S
    while not any("Measured here, quickly." in item.value for item in app.caption):
        assert time.monotonic() < limit
        assert not app.exception
        time.sleep(0.2)
        app.run()
    assert shown_tables(app)[0]["verdict"].tolist() == ["reproduced", "reproduced"]
