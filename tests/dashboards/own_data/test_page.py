"""The page "Your data" before files are given, and the windows of demands over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from planner.io.layout import Layout
from planner.scenarios.catalogue import find_system, system_names
from planner_dashboard import session
from planner_dashboard.fields import column_label
from planner_dashboard.own_data import tasks
from planner_dashboard.own_data.drafts import Draft
from planner_dashboard.own_data.intake import GivenFile
from planner_dashboard.own_data.page import PageState


def test_it_says_which_tables_each_system_takes() -> None:
    app = AppTest.from_string("from planner_dashboard.own_data import page\npage()", default_timeout=60)
    app.run()
    assert not app.exception
    [table] = [item.value for item in app.markdown if item.value.startswith("| Question")]
    for name in system_names():
        system = find_system(name)
        problem = system.problem
        [row] = [line for line in table.splitlines() if f"| {system.label} |" in line]
        for needed in problem.tables:
            assert column_label(needed.name) in row
            if needed.name not in problem.optional_tables:
                assert all(column in row for column in needed.columns)


def test_a_window_of_demands_over_time_is_chosen_or_all_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[Any] = []
    monkeypatch.setattr(session, "submit", lambda *arguments: submitted.append(arguments))
    rows = "Time,source,target,rate_mbps\n2026-03-01 08:00,a,b,8\n2026-03-01 09:00,a,b,9\n"
    files = [
        GivenFile(name="links.csv", content=b"tail,head,capacity_mbps\na,b,10\nb,a,10\n"),
        GivenFile(name="demands.csv", content=rows.encode()),
    ]
    taken = tasks.take_files(files, tmp_path)
    reading = taken.recognition.reading("traffic")
    assert reading is not None
    pairs = zip(taken.sheets, reading.choices, strict=True)
    read = tasks.read_sheets(
        "traffic", {choice.table: (sheet, Layout()) for sheet, choice in pairs if choice.table}
    )
    draft = Draft(system="traffic", frames=read.frames, sections={}, notes=read.notes, version=0)
    app = AppTest.from_string("from planner_dashboard.own_data import page\npage()", default_timeout=60)
    app.session_state["own data"] = PageState(
        taken=taken, draft=draft, windows=read.windows, asked_frames=draft.frames
    )
    app.run()
    assert not app.exception
    field = app.selectbox(key="own window traffic demands")
    assert list(field.options) == ["2026-03-01 08:00", "2026-03-01 09:00", "all windows"]
    assert submitted[-1][:3] == ("own tables", tasks.read_sheets, "traffic")
    assert submitted[-1][4] == {"demands": "2026-03-01 08:00"}
    field.select("2026-03-01 09:00").run()
    assert submitted[-1][4] == {"demands": "2026-03-01 09:00"}
    app.selectbox(key="own window traffic demands").select("all windows").run()
    app.button(key="own windows button").click().run()
    assert not app.exception
    assert ("own windows", tasks.pack_windows, "traffic") in [arguments[:3] for arguments in submitted]
