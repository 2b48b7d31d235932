"""Values for published rows, on quick studies."""

from __future__ import annotations

from types import SimpleNamespace

from planner_models.geostore.protocol.targets import find_bounds, find_examples

QUICK = SimpleNamespace(quick=True)


def test_examples() -> None:
    assert find_examples(QUICK).values == {
        "geo_fig2_w6": True,
        "geo_fig4_second": 15.0,
        "geo_counter_value": 7.0,
        "geo_counter_adds": 3.0,
        "geo_counter_after": 8.0,
    }


def test_rounds_are_bounds_that_operations_reach() -> None:
    values = find_bounds(QUICK).values
    assert values["geo_read_rounds"] == 2
    assert values["geo_write_rtts"] == 2.5
    assert values["geo_2pc_rtts"] == 1.5
    assert values["geo_read_check"] == values["geo_indirect_rtts"] == 1
