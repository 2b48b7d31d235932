"""The page "Your data" before files are given."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from planner.scenarios.catalogue import find_system, system_names


def test_it_says_which_tables_each_system_takes() -> None:
    app = AppTest.from_string("from planner_dashboard.own_data import page\npage()", default_timeout=60)
    app.run()
    assert not app.exception
    [table] = [item.value for item in app.markdown if item.value.startswith("| Question")]
    for name in system_names():
        problem = find_system(name).problem
        [row] = [line for line in table.splitlines() if f"| {name} |" in line]
        for needed in problem.tables:
            assert needed.name in row
            if needed.name not in problem.optional_tables:
                assert all(column in row for column in needed.columns)
