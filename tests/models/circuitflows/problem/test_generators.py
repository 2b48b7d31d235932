"""Generated flows of system `circuitflows`."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.circuitflows.problem import generators


@pytest.mark.parametrize(("rings", "flows", "big"), [(1, 12_888, 1_089), (2, 11_196, 1_083)])
def test_the_emulators_flows_are_drawn_one_for_one(rings: int, flows: int, big: int) -> None:
    """Pairs of racks in order, the rack itself first; big flows to the next racks, by the number of rings."""
    problem = generators.etalon(rings=rings)
    assert (len(problem.flows), int(problem.big.sum())) == (flows, big)
    first = problem.flows.iloc[:2]
    assert first["target_rack"].tolist() == ["r0", "r0"]
    assert first["host"].tolist() == [2, 13]
    assert first["bytes"].tolist() == [854_018.0, 533_825.0]
    assert first["start_us"].tolist() == pytest.approx([0.0, 854_018 * 8 / (10_000 / 3 / 8)])
    shifts = (problem.target - problem.source) % 8
    assert set(np.unique(shifts[problem.big]).tolist()) == set(range(1, rings + 1))
    assert problem.flows["start_us"].max() < 2e6 == problem.of("life_us")


def test_flows_start_when_the_last_one_would_end_at_their_share() -> None:
    problem = generators.etalon(racks=3, hosts=2, starts_us=200_000.0, rings=1)
    for _, own_values in problem.flows.groupby(["source_rack", "target_rack"], sort=False):
        start, size = own_values["start_us"].to_numpy(), own_values["bytes"].to_numpy()
        share = 80_000 / 3 if size[0] >= 9e6 else 10_000 / 3 / 3
        np.testing.assert_allclose(np.diff(start), size[:-1] * 8 / share)
        assert start[0] == 0
