"""Tables in work: edits of rows, undo and redo, and faults at their rows."""

from __future__ import annotations

import pandas as pd
import pytest

from planner_dashboard.fields import column_label
from planner_dashboard.own_data.drafts import Draft, in_words, replace_rows, split_faults

FRAME = pd.DataFrame({"node": ["a", "b", "c", "d"], "latitude": [1.0, 2.0, 3.0, 4.0]})


def test_changes_are_undone_and_redone() -> None:
    draft = Draft(system="traffic", frames={"nodes": FRAME})
    first = draft.frames
    draft.change("nodes", FRAME.iloc[:2])
    draft.change("links", None)
    draft.undo()
    draft.undo()
    assert draft.frames is first
    draft.undo()
    assert draft.frames is first
    draft.redo()
    assert len(draft.frames["nodes"]) == 2
    draft.change("nodes", FRAME)
    draft.redo()
    assert len(draft.frames["nodes"]) == 4, "a change forgets what was undone"


@pytest.mark.parametrize(
    ("places", "edited", "expected"),
    [
        ([1, 2], ["B", "C"], ["a", "B", "C", "d"]),
        ([1, 2], ["B"], ["a", "B", "d"]),
        ([1, 2], ["b", "c", "new"], ["a", "b", "c", "new", "d"]),
        ([0, 3], ["A", "D"], ["A", "b", "c", "D"]),
        ([], ["new"], ["a", "b", "c", "d", "new"]),
        ([0, 1, 2, 3], [], []),
    ],
)
def test_edited_rows_take_the_place_of_theirs(
    places: list[int], edited: list[str], expected: list[str]
) -> None:
    rows = pd.DataFrame({"node": edited, "latitude": [0.0] * len(edited)})
    assert replace_rows(FRAME, places, rows)["node"].tolist() == expected
    assert FRAME["node"].tolist() == ["a", "b", "c", "d"], "the table before is unchanged"


def test_faults_go_to_their_rows() -> None:
    faults = [
        "links row 3: capacity_mbps is -1.0, must be at least 0",
        "links row 3: head 'z' is no node of the network; valid: a, b",
        "links: 2 more rows where capacity_mbps must be at least 0",
        "demands: is missing",
    ]
    at_rows, others = split_faults(faults, ["links", "demands"])
    assert at_rows == {"links": {2: "; ".join(fault.partition(": ")[2] for fault in faults[:2])}}
    assert others == faults[2:]


def test_columns_are_named_in_words() -> None:
    assert column_label("capacity_mbps") == "Capacity [Mbit/s]"
    assert column_label("bits") == "Bits"
    assert column_label("price_per_h") == "Price per h"
    assert column_label("rtt_ms") == "RTT [ms]"
    words = in_words("capacity_mbps is 'capacity_mbps', must be a number", ["capacity_mbps", "tail"])
    assert words == "Capacity [Mbit/s] is 'capacity_mbps', must be a number"
