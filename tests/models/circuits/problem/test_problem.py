"""Invalid problems are refused in one line, and tables make the same problem again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner import InputError
from planner_models.circuits import Circuits
from planner_models.circuits.designs import solstice
from planner_models.circuits.problem import generators

RATES = {"circuit_mbps": 10.0, "packet_mbps": 1.0}


def problem(bits: object, **switch: float | None) -> Circuits:
    times: dict[str, float | None] = {"night_us": 1.0, "window_us": 50.0, **switch}
    return Circuits.from_matrix(np.array(bits, dtype=float), **RATES, **times)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bits", "fault"),
    [
        ([[0, 1, 2], [1, 0, 3]], "must be square"),
        ([[0, np.nan], [1, 0]], "row 1 column 2: nan, must be a finite number"),
        ([[0, 1], [-1, 0]], "row 2 column 1: -1, must be at least 0"),
        ([[0, 1], [1, 5]], "row 2 column 2: 5, must be 0"),
    ],
)
def test_a_matrix_that_is_no_demand_is_refused(bits: object, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        problem(bits)
    assert len(caught.value.faults) == 1
    assert fault in caught.value.faults[0]


@pytest.mark.parametrize(
    ("switch", "fault"),
    [
        ({"night_us": 50.0}, "night_us is 50, must be less than window_us, 50"),
        ({"shortest_day_us": 49.5}, "shortest_day_us is 49.5, must with the night of 1 fit window_us, 50"),
        ({"night_us": -1.0}, "must be at least 0"),
        ({"night_us": 1e308}, "night_us is 1e+308, must be at most 1e+12"),
        ({"window_us": 1e-300}, "window_us is 1e-300, must be at least 0.001"),
        ({"night_us": 80.0}, "night_us is 80, must be less than window_us, 50"),
        ({"shortest_day_us": 80.0}, "shortest_day_us is 80, must with the night of 1 fit window_us, 50"),
        ({"circuit_switches": 1.5}, "circuit_switches is 1.5, must be a whole number"),
        ({"circuit_switches": 0}, "must be at least 1"),
        ({"dark": "some"}, "dark is 'some', must be one of all, changed"),
    ],
)
def test_times_that_do_not_fit_are_refused(switch: dict[str, float], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        problem([[0, 1], [1, 0]], **switch)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("table", "column", "value", "fault"),
    [
        ("racks", "circuit_mbps", 1e-300, "racks row 1: circuit_mbps is 1e-300, must be at least 0.001"),
        ("racks", "circuit_mbps", 1e300, "racks row 1: circuit_mbps is 1e+300, must be at most 1e+09"),
        ("racks", "circuit_mbps", 0.0, "racks row 1: circuit_mbps is 0.0, must be greater than 0"),
        ("racks", "packet_mbps", 1e10, "racks row 1: packet_mbps is 10000000000.0, must be at most 1e+09"),
        ("demands", "bits", 1e300, "demands row 1: bits is 1e+300, must be at most 1e+18"),
    ],
)
def test_a_number_out_of_its_range_is_refused(table: str, column: str, value: float, fault: str) -> None:
    tables = generators.rings(racks=3).to_tables()
    tables[table].loc[0, column] = value
    with pytest.raises(InputError) as caught:
        Circuits.from_tables(tables)
    assert caught.value.faults == (fault,)


def test_unknown_racks_and_loops_are_named_with_their_rows() -> None:
    tables = generators.rings(racks=3).to_tables()
    tables["demands"] = pd.DataFrame(
        [("r0", "r9", 1.0), ("r1", "r1", 1.0)], columns=["source_rack", "target_rack", "bits"]
    )
    with pytest.raises(InputError) as caught:
        Circuits.from_tables(tables)
    unknown, loop = caught.value.faults
    assert "demands row 1: target_rack 'r9' is no rack" in unknown
    assert "demands row 2: source_rack and target_rack are both 'r1'" in loop


def test_several_switches_are_refused() -> None:
    tables = generators.rings(racks=3).to_tables()
    tables["switch"] = pd.concat([tables["switch"]] * 2, ignore_index=True)
    with pytest.raises(InputError, match="has 2 rows, must have one"):
        Circuits.from_tables(tables)


@pytest.mark.parametrize("bounded", [True, False])
def test_tables_make_the_same_problem(bounded: bool) -> None:
    made = generators.skewed(racks=6, large=1, small=2, bounded=bounded)
    again = Circuits.from_tables(made.to_tables())
    np.testing.assert_array_equal(made.bits, again.bits)
    assert (made.night_us, made.window_us) == (again.night_us, again.window_us)


def test_coflows_must_be_the_demand() -> None:
    tables = generators.rings(racks=3).to_tables()
    demands = tables["demands"]
    tables["coflows"] = demands.assign(coflow="a", bits=demands["bits"] / 2)
    with pytest.raises(InputError, match=r"coflows: r0->r1 has .* bits in all, demands has"):
        Circuits.from_tables(tables)
    tables["coflows"] = demands.assign(coflow="a", target_rack="r7")
    with pytest.raises(InputError, match="coflows row 1: target_rack 'r7' is no rack"):
        Circuits.from_tables(tables)
    tables["coflows"] = demands.assign(coflow="a")
    made = Circuits.from_tables(tables)
    again = Circuits.from_tables(made.to_tables()).scale(0.5)
    assert again.coflows is not None
    np.testing.assert_allclose(again.coflows["bits"], demands["bits"] / 2)


def test_switches_and_dark_circuits_are_kept_in_tables() -> None:
    made = generators.rings(racks=3).with_switch(circuit_switches=2, dark="changed")
    again = Circuits.from_tables(made.to_tables())
    assert (again.switches, again.dark) == (2, "changed")


def test_hot_pairs_have_their_share() -> None:
    made = generators.hotspot(racks=16, hot=5, hot_share=0.8, load=0.5, seed=1)
    hot = np.sort(made.bits.ravel())[-5:].sum()
    share = hot / made.bits.sum()
    assert 0.8 <= share < 0.81  # and the even part of these pairs
    busiest = max(made.bits.sum(axis=0).max(), made.bits.sum(axis=1).max())
    assert busiest == pytest.approx(0.5 * 100_000 * 2_000)


@pytest.mark.parametrize(("placement", "pairs"), [("random", range(50, 57)), ("next", [8])])
def test_writes_to_a_distributed_file_system(placement: str, pairs: list[int]) -> None:
    """64 files of 400 MB are about 25 GB between racks, to all or in a ring (Mukerjee 2018, 2.6.2)."""
    made = generators.hdfs(placement=placement)  # type: ignore[arg-type]
    assert made.bits.sum() == pytest.approx(64 * 400e6 * 8)
    assert made.size()["pairs"] in pairs
    assert made.window_us is None


def test_big_flows_in_rings_and_small_flows_between_the_rest() -> None:
    made = generators.mixed(racks=8, count=2)
    np.testing.assert_allclose(made.bits[0, [1, 2]].sum(), 80_000 * 2_000 / 3)
    np.testing.assert_allclose(made.bits[0, 3:].sum(), 10_000 * 2_000 / 3)


def test_skewed_demand_fills_every_rack_to_its_load() -> None:
    made = generators.skewed(racks=64, load=0.8, noise=0.0)
    full = 0.8 * 100_000 * 2_000
    np.testing.assert_allclose(made.bits.sum(axis=0), full)
    np.testing.assert_allclose(made.bits.sum(axis=1), full)
    assert (np.diag(made.bits) == 0).all()
    large = np.where(made.bits >= 0.17 * full, made.bits, 0).sum() / made.bits.sum()
    assert 0.69 < large < 0.76  # some small flows lie on large ones


def test_a_matrix_has_defaults_names_and_units() -> None:
    named = pd.DataFrame([[0, 5], [1, 0]], index=["x", "y"], columns=["x", "y"])
    problem = Circuits.from_matrix(named, unit="MB")
    assert problem.racks["rack"].tolist() == ["x", "y"]
    assert problem.bits.tolist() == [[0.0, 40e6], [8e6, 0.0]]
    assert (problem.night_us, problem.window_us) == (20.0, 2_000.0)
    assert Circuits.from_matrix([[0, 1], [2, 0]]).bits.tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_designs_take_a_plain_matrix() -> None:
    bits = np.array([[0.0, 5e7], [1e7, 0.0]])
    plain = solstice.schedule(bits).plan
    full = solstice.schedule(Circuits.from_matrix(bits)).plan
    assert plain is not None
    assert full is not None
    pd.testing.assert_frame_equal(plain.configurations, full.configurations)


def test_a_matrix_of_other_names_or_units_is_refused() -> None:
    crossed = pd.DataFrame([[0, 5], [1, 0]], index=["x", "y"], columns=["y", "x"])
    with pytest.raises(InputError, match="rows and columns have different names"):
        Circuits.from_matrix(crossed)
    with pytest.raises(InputError, match="unit: 'MB/s' is no unit of data"):
        Circuits.from_matrix([[0, 1], [1, 0]], unit="MB/s")
    with pytest.raises(InputError, match="is no matrix of numbers"):
        Circuits.from_matrix([[0, "x"], [1, 0]])


def test_more_blocks_than_can_be_drawn_are_refused() -> None:
    with pytest.raises(InputError, match="1,000 of files with 7,812,500,000 blocks of 128 MB write more"):
        generators.hdfs(writers=1_000, file_mb=1e12)
