"""Problems from a plain table of flows."""

from __future__ import annotations

import pandas as pd
import pytest

import planner
from planner.errors import InputError
from planner_models.circuitflows import from_flows


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
