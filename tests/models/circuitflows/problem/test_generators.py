"""Generated flows of system `circuitflows`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import planner
from planner.errors import InputError
from planner_models.circuitflows import from_flows
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


def test_what_is_not_given_has_defaults_and_units_are_converted() -> None:
    rows = [("a", "b", 1.5), ("a", "c", 0.5), ("b", "c", 0.25)]
    flows = pd.DataFrame(rows, columns=["source_rack", "target_rack", "size_mb"])
    problem = from_flows(flows, hosts=2, horizon_us=20_000.0)
    assert problem.racks["rack"].tolist() == ["a", "b", "c"]
    assert problem.flows["bytes"].tolist() == [1.5e6, 0.5e6, 0.25e6]
    assert problem.flows["host"].tolist() == [1, 2, 1], "the hosts of a rack take turns"
    assert problem.flows["flow"].tolist() == ["f0", "f1", "f2"]
    assert problem.network["horizon_us"].tolist() == [20_000.0]
    assert planner.solve(problem, design="fixed").metrics["delivered_gb"] is not None


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="flows: column 'target_rack' is missing"):
        from_flows([{"source_rack": "a", "bytes": 1.0}])
