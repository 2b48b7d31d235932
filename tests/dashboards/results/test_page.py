"""The page of stores: the verdict on their runs, charts in words, and answers that were kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from planner.scenarios.catalogue import find_system
from planner.store.store import Store
from planner_dashboard import session
from planner_dashboard.results.page import Words, verdicts
from tests.commands import planner

TIME_LIMIT_S = 300.0


def _results() -> None:
    from planner_dashboard import results

    results.page()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with four runs."""
    path = tmp_path_factory.mktemp("results") / "store"
    result = planner(
        "sweep", "traffic/abilene", "--designs", "ecmp,optimum", "--set", "problem.scale=0.5,1.0",
        "--workers", "1", "--out", path,
    )  # fmt: skip
    assert result.code == 0, result.err
    return path


@pytest.mark.slow
def test_runs_have_a_verdict_and_words_with_units(folder: Path) -> None:
    with Store(folder) as store:
        (line,) = verdicts(store, "problem.scale < 1")
        assert line.startswith("Traffic routing, delivered in the mean of 2 runs: ")
        words = Words([find_system("traffic")])
        assert words("problem.scale") == "Scale"
        assert words("solver.time_limit_s") == "Time limit [s]"
        assert words("designs.ecmp.information.age_s") == "ecmp: Age [s]"
        assert words("metrics.delivered_mbps" if "metrics.delivered_mbps" in store.metric_names() else
                     "delivered_mbps").startswith("Delivered")  # fmt: skip
        shares = [name for name in store.metric_names() if name.endswith("max_utilization")]
        assert [words.axis(name)["tickformat"] for name in (*shares, "problem.scale")] == [".4~%", ""]
        assert words.entry("design", "ecmp") == "Equal-cost multipath"
        assert words.entry("problem.scale", 0.5) == "0.5"


@pytest.mark.slow
def test_only_the_stores_of_the_command_are_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = AppTest.from_function(_results, default_timeout=TIME_LIMIT_S).run()
    assert any("planner dashboard --store" in text.value for text in app.markdown)
    monkeypatch.setenv(session.STORES, str(folder))
    app = AppTest.from_function(_results, default_timeout=TIME_LIMIT_S).run()
    assert not app.exception
    assert any("4 of 4 runs" in caption.value for caption in app.caption)
    app.text_input[0].set_value("problem.scale < 1")
    app.run()
    assert any("2 of 4 runs" in caption.value for caption in app.caption)
    for tab in ("Trade-off", "Distribution", "Runs"):
        app.session_state["sweeps view"] = tab
        app.run()
        assert not app.exception
    app.text_input[0].set_value("problem.sclae < 1")
    app.run()
    assert not app.exception
    assert "did you mean" in app.error[0].value
