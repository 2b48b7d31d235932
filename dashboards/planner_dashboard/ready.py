"""Importing this loads what all questions need: workers are copies of a process that did.

They take second place, so that pages answer also while all of them solve.
"""

import os
from contextlib import suppress
from importlib import import_module

os.nice(5)  # before the rest: loading is work too
for _name in (
    "highspy",
    "planner.charts",
    "planner.explain",
    "planner.files",
    "planner.html",
    "planner.run",
    "planner_dashboard.work",
):
    import_module(_name)

from planner.catalogue import find_system, system_names  # noqa: E402 - see above
from planner.errors import PlannerError  # noqa: E402

for _name in system_names():
    with suppress(PlannerError):  # said where it is asked for
        find_system(_name)
