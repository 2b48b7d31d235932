"""Imports that all workers need: workers are forks of a process that has imported this module.

They run at lower priority, so that pages respond also while all workers solve.
"""

import os
from contextlib import suppress
from importlib import import_module
from multiprocessing import spawn


def _leave_out_main(_: str) -> None:
    """Do nothing, where a new worker would run the file of its parent's `__main__` under another name.

    Streamlit replaces that module by the script of each page that it runs, and never restores it.
    """


spawn._fixup_main_from_name = spawn._fixup_main_from_path = _leave_out_main  # type: ignore[attr-defined]

os.nice(5)  # before the imports, which are work too
for _name in (
    "highspy",
    "planner.reports.charts",
    "planner.runs.what_if",
    "planner.runs.files",
    "planner.reports.html",
    "planner.reports.study_pages",
    "planner.runs.evaluation",
    "planner_dashboard.worker",
):
    import_module(_name)

from planner.errors import PlannerError  # noqa: E402
from planner.scenarios.catalogue import find_system, system_names  # noqa: E402 - see above
from planner_dashboard.named_designs import add_named_designs  # noqa: E402

add_named_designs()
for _name in system_names():
    with suppress(PlannerError):  # a question about this system reports it
        find_system(_name)
