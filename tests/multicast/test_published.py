"""What targets of capacity say they lose and fit. What comes out is in `expected`."""

from __future__ import annotations

from planner.catalogue import find_system

SYSTEM = find_system("multicast")
TARGETS = {target.name: target for target in SYSTEM.targets}


def test_every_figure_says_what_is_lost_and_what_is_fitted() -> None:
    for name in ("figure_5a", "figure_5b", "figure_5c", "figure_6"):
        assert TARGETS[name].lost
    assert TARGETS["figure_5a"].calibrated == {
        "mcast_f5a_core_aggr",
        "mcast_f5a_edge_max",
        "mcast_f5a_edge_over",
        "mcast_f5a_overhead",
    }
