"""Values of Lloyd et al. 2013: round-trip times of strong consistency, and the arithmetic of Table 4."""

from __future__ import annotations

from planner_models.geostore import published


class Full:
    """Services of the engine, none of which these targets need."""

    quick = False

    def compare(self, *_: object, **__: object) -> None:
        """Refuse."""
        raise AssertionError


def test_strong_reads_wait_for_order_statistics_of_round_trips() -> None:
    values = published.find_table_2_strong(Full()).values  # type: ignore[arg-type]
    assert values["geo_t2_read_strong_a_p50"] == 84.0
    assert values["geo_t2_read_strong_b_p50"] == 20.0
    assert values["geo_t2_write_strong_b_p50"] == 20.0


def test_rules_follow_from_placements_and_quorums() -> None:
    values = published.find_rules(Full()).values  # type: ignore[arg-type]
    assert values == {
        "geo_full_replica": True,
        "geo_strong_rule": True,
        "geo_paxos_group": 3.0,
        "geo_paxos_fail": 1.0,
    }


def test_runs_that_are_called_identical_differ() -> None:
    found = published.find_table_4(Full())  # type: ignore[arg-type]
    assert found.values["geo_fb_same"] is False
    assert "3.6% faster" in found.notes["geo_fb_same"]
    overhead = found.values["geo_t4_overhead_ops"]
    assert overhead is not None
    assert 6.6 < overhead < 6.7
