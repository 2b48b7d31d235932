"""Presets of Eiger's workloads: Table 3's distributions and defaults, and the growth of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.geostore.problem.eiger_workloads import (
    TAO_COLUMNS,
    TAO_KEYS,
    TAO_VALUE_BYTES,
    draw_quantiles,
    eiger_default,
    operation_cost,
    tao,
    tao_scaling,
)


@pytest.mark.parametrize(
    ("quantiles", "printed"),
    [(TAO_VALUE_BYTES, (16, 32, 4096)), (TAO_COLUMNS, (1, 2, 128)), (TAO_KEYS, (1, 16, 128))],
)
def test_draws_have_the_printed_quantiles(
    quantiles: tuple[float, ...], printed: tuple[float, float, float]
) -> None:
    drawn = draw_quantiles(quantiles, np.random.default_rng(0).random(200_000))
    assert np.quantile(drawn, [0.5, 0.9, 0.99]) == pytest.approx(printed, rel=0.1)
    assert drawn.min() == 1
    assert drawn.max() == printed[2]


def test_defaults_are_those_of_the_generator() -> None:
    problem = eiger_default(groups=4, regions=5, users=3)
    access = problem.access
    writes = access["writes_per_s"].sum() / problem.requests_per_s.sum()
    assert writes == pytest.approx(0.1)
    columns = ["keys_per_op", "columns_per_key", "write_transactions"]
    assert access[columns].drop_duplicates().to_numpy().tolist() == [[5.0, 5.0, 0.5]]
    assert problem.groups["object_bytes"].unique().tolist() == [128.0]


def test_groups_of_tao_keep_their_operations() -> None:
    problem = tao(groups=30, regions=6, users=4, seed=3)
    assert problem.use("writes_per_s").sum() / problem.requests_per_s.sum() == pytest.approx(0.002)
    per_group = problem.access.groupby("group")[["keys_per_op", "columns_per_key"]].nunique()
    assert per_group.to_numpy().max() == 1
    assert problem.groups["object_bytes"].nunique() > 5


def test_throughput_grows_as_printed_for_each_doubling() -> None:
    rate = {
        servers: float(tao_scaling(servers=servers).requests_per_s.sum()) for servers in (1, 2, 4, 8, 16, 128)
    }
    assert rate[8] == pytest.approx(22_088)  # Table 4
    assert (rate[8] / rate[1]) ** (1 / 3) == pytest.approx(1.72)  # what the constant is chosen for
    assert (rate[128] / rate[8]) ** (1 / 4) == pytest.approx(1.96, abs=0.015)  # what it then says
    assert rate[2] / rate[1] < rate[4] / rate[2] < rate[8] / rate[4] < rate[16] / rate[8] < 2
    assert operation_cost(1) < operation_cost(2) < operation_cost(128)
