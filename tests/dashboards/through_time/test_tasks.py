"""Rolls and simulations as workers run them: figures, pictures and pages of finished windows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap
from planner.runs import rolling
from planner.scenarios.catalogue import find_system
from planner_dashboard.through_time import tasks


@pytest.mark.slow
def test_a_failed_link_is_absent_from_its_window_on(tmp_path: Path) -> None:
    asked = tasks.Course(scenario="traffic/abilene", designs=(), windows=3)
    described = tasks.describe(asked, tmp_path)
    assert described.labels == ()
    link = described.elements["link"][0]
    events = {"2": {"problem.fail_links": [link]}, "3": {"problem.fail_links": []}}
    course = tasks.Course(scenario="traffic/abilene", designs=("ecmp",), windows=3, events=events)
    result = pickle.loads(pickle.dumps(tasks.roll(course, tmp_path, tmp_path)))
    assert result.labels == ["1", "2", "3"]
    (ecmp,) = result.designs
    links = [len(picture.links) for picture in ecmp.pictures if isinstance(picture, NetworkMap)]
    assert links[0] == links[2] == links[1] + 2
    by_hand = rolling.roll("traffic/abilene", designs="ecmp", windows=3, events=events)
    assert result.sentences == [text.replace("ecmp", ecmp.title, 1) for text in by_hand.sentences]
    headline = find_system("traffic").headline.name
    assert [row[headline] for row in ecmp.rows] == by_hand.metrics[headline].tolist()
    assert json.loads((tmp_path / "roll.windows").read_text())[2]["window"] == "3"
    assert (tmp_path / "roll.progress").read_text() == "3/3"


def test_a_window_without_a_plan_says_why(tmp_path: Path) -> None:
    events = {"2": {"problem.fail_links": ["nowhere"]}}
    course = tasks.Course(scenario="traffic/abilene", designs=("ecmp",), windows=2, events=events)
    with pytest.raises(Exception, match="nowhere"):
        tasks.roll(course, tmp_path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["brokering/day", "multicast/churn", "livevideo/sessions"])
def test_the_series_of_each_system_is_played(name: str, tmp_path: Path) -> None:
    changes = {"problem.clients": 1_000} if name == "brokering/day" else {}
    described = tasks.describe(tasks.Course(scenario=name, designs=(), changes=changes), tmp_path)
    assert len(described.labels) > 1
    first = find_system(name.partition("/")[0])
    design = {"brokering": "brokered", "multicast": "partitioned", "livevideo": "vdn"}[first.name]
    result = tasks.roll(tasks.Course(scenario=name, designs=(design,), changes=changes), tmp_path, tmp_path)
    assert result.labels == list(described.labels)
    title = next(item.title for item in first.designs if item.name == design)
    assert result.sentences[0].startswith(title)


@pytest.mark.slow
def test_a_simulation_has_its_verdict_above_its_page(tmp_path: Path) -> None:
    changes = {"simulation.until_s": 0.05, "simulation.warm_up_s": 0.0}
    simulation = tasks.simulate("traffic/flow_simulation", tmp_path, ("ecmp_hash",), changes)
    assert simulation.sentences[0].startswith("ECMP by hash of flows delivers")
    assert not simulation.parts[0][0].sentences
    frames = pickle.loads(pickle.dumps(simulation)).frames["ecmp_hash"]
    assert len(frames) == 50
    assert all(frame.value is not None for frame in frames)


@pytest.mark.slow
def test_frames_show_what_the_scenario_fails(tmp_path: Path) -> None:
    link = tasks.describe(
        tasks.Course(scenario="traffic/flow_simulation", designs=(), windows=1), tmp_path
    ).elements["link"][-1]
    changes = {"simulation.until_s": 0.02, "simulation.warm_up_s": 0.0, "problem.fail_links": [link]}
    simulation = tasks.simulate("traffic/flow_simulation", tmp_path, ("ecmp_hash",), changes)
    for frame in simulation.frames["ecmp_hash"]:
        assert isinstance(frame.drawing, NetworkMap)
        assert frame.drawing.whole is not None
        assert len(frame.drawing.whole.links) == len(frame.drawing.links) + 2


def test_more_links_than_a_page_shows_leave_out_frames() -> None:
    nodes = pd.DataFrame({"node": ["a", "b"]})
    links = pd.DataFrame({"tail": ["a"] * 200_000, "head": "b", "value": 1.0})
    drawing = NetworkMap(title="load", nodes=nodes, links=links, value="load")
    assert tasks._thinning([drawing]) == 1
    assert tasks._thinning([drawing] * 5) == 3
