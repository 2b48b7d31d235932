"""Searches of the workers: what they send to a page, and what they write while they run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner_dashboard.question import Question
from planner_dashboard.upgrades import curve, failures, panel, work

ABILENE = Question(scenario="traffic/abilene", changes={"problem.scale": 1.5})


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> work.FoundUpgrades:
    folder = tmp_path_factory.mktemp("upgrades")
    return work.find_upgrades(ABILENE, folder, "ecmp", 2.0, 3, folder / "upgrades")


def test_a_search_sends_words_and_leaves_what_it_found(tmp_path: Path) -> None:
    files = tmp_path / "upgrades"
    upgrades = work.find_upgrades(ABILENE, tmp_path, "ecmp", 1.0, 3, files)
    assert len(upgrades.steps) == 1
    assert upgrades.steps[0].adds.endswith("Gbit/s each way")
    assert "with Equal-cost multipath;" in upgrades.caveat, "designs have titles on pages"
    partial = work.read_partial(files)
    assert partial.steps == upgrades.steps
    assert not files.with_suffix(".progress").exists()
    assert not files.with_suffix(".activity").exists()
    assert pickle.loads(pickle.dumps(upgrades)) == upgrades
    assert work.read_partial(tmp_path / "other") is None


def test_an_unknown_design_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'ecmp'"):
        work.find_upgrades(ABILENE, tmp_path, "ecpm", None, 3, tmp_path / "upgrades")


def test_a_track_shows_before_gained_and_beyond() -> None:
    def step(share: float) -> work.BoughtStep:
        return work.BoughtStep(
            kind="link", element="<b>&a->c", adds="1 Gbit/s", cost="", reached="9 Gbit/s", gain="+1 Gbit/s",
            share=share, part=1.0, is_proven=True,
        )  # fmt: skip

    def widths(before: float, now: float) -> dict[str, float]:
        html = panel._step_html(step(now), before, now)
        assert "<b>&" not in html.replace("<b>&lt;b", "")
        parts = [share.split("' style='width:") for share in html.split("<span class='")[1:]]
        return {part[0]: float(part[1].split("%")[0]) for part in parts if len(part) == 2}

    assert widths(0.6, 0.9) == pytest.approx({"planner-before": 50.0, "planner-gained": 25.0})
    assert widths(0.6, 1.2) == pytest.approx(
        {"planner-before": 50.0, "planner-gained": 33.33, "planner-beyond": 16.67}
    )


def test_the_sum_says_what_the_list_brings(bought: work.FoundUpgrades) -> None:
    words = panel._sum_words(bought)
    assert words.startswith("2 upgrades: ")
    assert words.endswith("% of demand fits.")


def test_the_curve_marks_the_budget(bought: work.FoundUpgrades) -> None:
    assert len(bought.points) > 1
    assert bought.points[0].reached == f"{bought.points[0].value:.4g} Gbit/s", (
        "one unit on curve and in words"
    )
    html = curve.curve_html(bought.points, 0, "upgrades", bought.metric)
    assert html.count("planner-chosen") == 1
    assert html.count("planner-point") == len(bought.points) - 1
    assert "aria-label='Delivered, Gbit/s by upgrades; marked: 0, " in html


@pytest.mark.slow
def test_failures_are_sent_with_their_map(tmp_path: Path) -> None:
    result = work.find_failures(ABILENE, tmp_path, "ecmp", tmp_path / "failures")
    assert result.tried == result.total == len(result.failures) == 27
    sizes = [failure.size for failure in result.failures]
    assert sizes == sorted(sizes, reverse=True)
    assert result.map is not None
    again: Any = pickle.loads(pickle.dumps(result))
    assert again.failures == result.failures
    html = failures._list_html(result.failures)
    assert html.count("role='listitem'") == failures.MOST_LISTED
