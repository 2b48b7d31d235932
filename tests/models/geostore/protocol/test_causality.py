"""Fig. 2 of Eiger, and the example of effective times in Fig. 4."""

from __future__ import annotations

import numpy as np

from planner_models.geostore.protocol.causality import FIGURE_2, find_dependencies
from planner_models.geostore.protocol.reads import effective_time


def test_figure_2() -> None:
    """The dependency of w6 on w1 is one-hop, but not nearest."""
    dependencies = find_dependencies(FIGURE_2)
    assert dependencies["w6"].one_hop - dependencies["w6"].nearest == {"w1"}
    assert {name: (set(d.nearest), set(d.all)) for name, d in dependencies.items()} == {
        "w1": (set(), set()),
        "w3": ({"w1"}, {"w1"}),
        "w5": (set(), set()),
        "w6": ({"w3"}, {"w1", "w3"}),
        "w8": ({"w5", "w6"}, {"w1", "w3", "w5", "w6"}),
    }
    assert all(d.nearest <= d.one_hop <= d.all for d in dependencies.values())


def test_figure_4() -> None:
    """Location 1 returns A at 10, location 2 becomes K at 12: the second round asks for 15."""
    earliest, latest = np.array([2, 12, 3]), np.array([10, 15, 16])
    assert effective_time.py_func(earliest, latest) == 15
    assert (latest < 15).tolist() == [True, False, False]
    assert effective_time.py_func(np.array([2, 5, 3]), latest) == 10
