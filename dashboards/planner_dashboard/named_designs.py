"""Designs that the command line of the dashboard names, in each of its processes.

`planner dashboard --design traffic=mine.py:route` sets the variable. Text of visitors never becomes code.
"""

from __future__ import annotations

import functools
import os
from typing import Final

from planner.scenarios.catalogue import add_design
from planner.scenarios.user_designs import load_reference

VARIABLE: Final = "PLANNER_DASHBOARD_DESIGNS"


@functools.cache
def add_named_designs() -> None:
    """Add the designs to their systems in this process, once.

    raises  InputError where one cannot be loaded any more
    """
    for line in os.environ.get(VARIABLE, "").splitlines():
        system, _, reference = line.partition("=")
        add_design(system, load_reference(reference)[1])
