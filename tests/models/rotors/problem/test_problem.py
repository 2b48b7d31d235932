"""Problems of system `rotors`: bad tables, adjustments, and presets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.rotors import RotorNetwork
from planner_models.rotors.problem import generators
from planner_models.rotors.problem.adjustments import adjust

TABLES = generators.small().to_tables()
BAD: dict[str, tuple[str, Any, str]] = {
    "no switch": ("switches", {"count": 0.0}, "switches row 1: count is 0.0, must be at least 1"),
    "half a switch": ("switches", {"count": 1.5}, "switches row 1: count is 1.5, must be a whole number"),
    "no day": ("switches", {"day_us": 0.0}, "switches row 1: day_us is 0.0, must be greater than 0"),
    "a night as long as the week": (
        "switches",
        {"schedule_night_us": 300.0},
        "switches: schedule_night_us is 300, must be less than week_us, 300",
    ),
    "no rate": ("racks", {"circuit_mbps": 0.0}, "racks row 1: circuit_mbps is 0.0, must be greater than 0"),
    "a rack with itself": (
        "demands",
        {"target_rack": ["r1", *TABLES["demands"]["target_rack"][1:]]},
        "demands row 1: source_rack and target_rack are both 'r1', must differ",
    ),
    "an unknown rack": (
        "demands",
        {"target_rack": ["r22", *TABLES["demands"]["target_rack"][1:]]},
        "demands row 1: target_rack 'r22' is no rack of the network; did you mean 'r2'?",
    ),
    "too much urgent traffic": (
        "demands",
        {"urgent_mbps": 99.0},
        "demands row 1: urgent_mbps is 99, must be at most rate_mbps, 60",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_by_row(case: str) -> None:
    table, columns, words = BAD[case]
    with pytest.raises(InputError) as result:
        RotorNetwork.from_tables({**TABLES, table: TABLES[table].assign(**columns)})
    assert any(words in fault for fault in result.value.faults), result.value.faults


def test_tables_make_the_problem_again() -> None:
    problem = generators.small()
    again = RotorNetwork.from_tables(problem.to_tables())
    assert (again.demand_mbps == problem.demand_mbps).all()
    assert (again.urgent_mbps == problem.urgent_mbps).all()
    assert again.week_us == problem.week_us


def test_adjustments() -> None:
    problem = generators.small()
    changed = adjust(
        problem,
        scale=2.0,
        switches=4,
        night_us=1.0,
        circuit_factors={"r3": 2.0},
        demand_factors={"r1->r2": 0.0},
    )
    assert changed.count == 4
    assert changed.night_us == 1.0
    assert changed.demand_mbps[0, 1] == 0.0
    assert changed.demand_mbps[1, 2] == 80.0
    assert changed.urgent_mbps[1, 2] == 16.0
    assert changed.link_mbps[2, 0] == 100.0
    with pytest.raises(InputError, match="'r9' is no rack"):
        adjust(problem, fail_racks=("r9",))
    with pytest.raises(InputError, match="must be less than week_us"):
        adjust(problem, schedule_night_us=1_000.0)


@pytest.mark.parametrize("seed", [None, 0, 5])
@pytest.mark.parametrize(("racks", "switches"), [(2, 1), (7, 2), (8, 7), (9, 3), (5, 9)])
def test_a_cycle_connects_each_pair_once(racks: int, switches: int, seed: int | None) -> None:
    problem = generators.build(
        np.ones((racks, racks)) - np.eye(racks),
        100.0,
        count=switches,
        day_us=9.0,
        night_us=1.0,
        order_seed=seed,
    )
    rotation = problem.rotation
    switch, position, source = np.nonzero(rotation.target >= 0)
    pairs = list(zip(source.tolist(), rotation.target[switch, position, source].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) == racks * (racks - 1)
    positions = -(-(racks - 1) // switches)
    assert rotation.positions == positions
    assert rotation.cycle_us == pytest.approx(9.0 if positions == 1 else 10.0 * positions)
    assert rotation.duty_cycle == pytest.approx(1.0 if positions == 1 else 0.9)


def test_presets() -> None:
    problem = generators.skewed(racks=10, skew=0.4, partners=2, load=0.5, switches=3)
    assert problem.demand_mbps.sum(axis=1) == pytest.approx(np.full(10, 150_000.0), rel=1e-6)
    assert problem.demand_mbps.sum(axis=0) == pytest.approx(np.full(10, 150_000.0), rel=1e-6)
    busy = generators.hotspots(racks=10, load=0.5, switches=3).demand_mbps
    assert max(busy.sum(axis=0).max(), busy.sum(axis=1).max()) == pytest.approx(150_000.0)
