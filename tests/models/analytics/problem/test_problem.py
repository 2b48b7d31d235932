"""Bad tables, and what their messages say; the order of levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError, PlanRejected
from planner_models.analytics import Analytics, check
from planner_models.analytics.plan.plan import make_plan
from planner_models.analytics.plan.reading import from_tables
from planner_models.analytics.problem.adjustments import adjust
from tests.models.analytics.problems import make, tables

Tables = Mapping[str, pd.DataFrame]


def set_value(table: str, row: int, column: str, value: object) -> Callable[[dict[str, pd.DataFrame]], None]:
    def change(inputs: dict[str, pd.DataFrame]) -> None:
        frame = inputs[table].astype({column: object})
        frame.loc[row, column] = value
        inputs[table] = frame

    return change


def add(table: str, **columns: list[object]) -> Callable[[dict[str, pd.DataFrame]], None]:
    return lambda inputs: inputs.update({table: pd.DataFrame(columns)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_value("levels", 2, "parameter", 12.0), "levels row 3: interval 12 s of query 'q0' is no whole"),
        (set_value("levels", 1, "parameter", 20.0), "levels row 3: parameter is 10, must be greater than 20"),
        (set_value("levels", 0, "operator", "wavelet"), "levels row 1: operator is 'wavelet', must be"),
        (set_value("levels", 0, "parameter", np.nan), "levels row 1: operator interval needs a parameter"),
        (set_value("levels", 3, "value_share", 0.5), "levels row 4: operator none sends no data"),
        (set_value("queries", 0, "value_usd", -1.0), "queries row 1: value_usd is -1.0, must be at least 0"),
        (set_value("queries", 0, "deadline_s", 30.0), "queries row 1: deadline_s is 30, must be at least 60"),
        (set_value("queries", 0, "cube", "d"), "queries row 1: cube 'd' is no cube; valid: c"),
        (set_value("sites", 0, "uplink_mbps", -3.0), "sites row 1: uplink_mbps is -3.0, must be at least 0"),
        (set_value("sites", 0, "pop", "t"), "sites row 1: pop 't' is no point of presence"),
        (set_value("intervals", 1, "start_s", 90.0), "intervals row 2: start_s is 90, must be 60"),
        (set_value("volume", 1, "interval", 7.0), "volume row 2: interval 7 is not in table intervals"),
        (
            add("bandwidth", link=["s0"], interval=[1.0], mbps=[1.0]),
            "bandwidth: link 's0' has no row for interval 2; a link that is named needs all intervals",
        ),
        (
            add("bandwidth", link=["s9"], interval=[1.0], mbps=[1.0]),
            "bandwidth row 1: link 's9' is neither a site nor a point of presence",
        ),
        (
            add("policies", query=["q0", "q0"], step=[1, 2], level=["1 s", "5 s"], until=[2.0, 1.0]),
            "policies row 2: until is 1 in query 'q0', must be greater than 2 of the step before",
        ),
        (
            add("pinned", site=["s0"], query=["q0"], level=["2 s"]),
            "pinned row 1: query 'q0' has no level '2 s'",
        ),
    ],
)  # fmt: skip
def test_faults_name_row_field_and_rule(
    change: Callable[[dict[str, pd.DataFrame]], None], message: str
) -> None:
    inputs = tables(intervals=2)
    change(inputs)
    with pytest.raises(InputError) as error:
        Analytics.from_tables(inputs)
    assert any(fault.startswith(message) for fault in error.value.faults), error.value.faults


def test_top_k_lists_are_not_merged_at_points_of_presence() -> None:
    inputs = tables()
    inputs["cubes"] = inputs["cubes"].assign(aggregate="top_k")
    inputs["merging"] = pd.DataFrame({"pop": ["p"], "query": ["q0"], "level": ["1 s"], "merged_share": [0.5]})
    with pytest.raises(InputError, match="merging row 1: lists of the largest cells of query 'q0'"):
        Analytics.from_tables(inputs)


def test_a_level_that_is_never_of_use_gets_a_warning() -> None:
    inputs = tables(combine=("worst",))
    inputs["levels"].loc[1, ["bytes_per_cell", "error"]] = [20.0, 0.9]
    notes: list[str] = []
    with observe_notes(notes.append):
        Analytics.from_tables(inputs)
    assert notes[0].startswith(
        "warning: levels row 2: level '5 s' of query 'q0' has no fewer bytes, no less error"
    )


def test_levels_of_2_and_5_seconds_merge_at_10() -> None:
    inputs = tables()
    inputs["levels"].loc[[0, 1, 2], "parameter"] = [2.0, 5.0, 10.0]
    problem = Analytics.from_tables(inputs)
    assert problem.join[0, 0, 1] == 2
    levels = np.array([[[0], [1]]])
    assert make_plan(problem, levels).answers["level"].tolist() == ["10 s"]


def test_plans_that_are_none_are_rejected_and_violations_are_named() -> None:
    problem = make(uplink_mbps=1e-4)
    plan = make_plan(problem, np.zeros((1, 2, 1), dtype=np.int64))
    assert check(problem, plan).frame["where"].tolist() == ["s0, interval 1", "s1, interval 1"]
    changed = plan.to_tables()
    with pytest.raises(PlanRejected, match="levels row 1: query 'q0' has no level '7 s'"):
        from_tables(problem, {"levels": changed["levels"].assign(level="7 s")})
    false = from_tables(problem, {**changed, "answers": changed["answers"].assign(value_usd=2.0)})
    with pytest.raises(PlanRejected, match="answers: value_usd is 2, must be 1"):
        check(problem, false)


def test_adjustments() -> None:
    problem = make(intervals=3)
    changed = adjust(
        problem, scale=2.0, bandwidth_scale=0.5, link_factors={"s0": 4.0}, fail_links=("p",),
        fail_from_s=60.0, fail_hours=1 / 60,
    )  # fmt: skip
    assert changed.records[0, 0, 0] == 200
    assert changed.capacity_mbps[:, 0].tolist() == [2.0, 2.0, 2.0]
    assert changed.capacity_mbps[:, 2].tolist() == [5.0, 0.0, 5.0]
    with pytest.raises(InputError, match="fail_links: 'x' is neither a site nor a point of presence"):
        adjust(problem, fail_links=("x",))


def test_an_interval_without_data_at_any_site_is_said_and_numbers_may_have_any_step() -> None:
    inputs = tables(intervals=3)
    numbers = sorted(inputs["intervals"]["interval"].unique())
    assert len(numbers) > 1

    def notes_of(changed: Tables) -> list[str]:
        notes: list[str] = []
        with observe_notes(notes.append):
            Analytics.from_tables(changed)
        return [note for note in notes if "no site has a row" in note]

    full = inputs["volume"]
    assert not set(numbers) - set(full["interval"])
    assert not notes_of(inputs)
    inputs["volume"] = full[full["interval"] != numbers[-1]]
    (note,) = notes_of(inputs)
    assert note.startswith(f"warning: volume: no site has a row of interval {numbers[-1]:g}: read as no data")
    by_five = {
        name: frame.assign(interval=frame["interval"] * 5) if "interval" in frame else frame
        for name, frame in tables(intervals=3).items()
    }
    assert not notes_of(by_five)
