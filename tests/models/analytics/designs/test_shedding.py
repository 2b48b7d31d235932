"""Plans that leave answers out where uplinks cannot carry the coarsest levels, against enumeration."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

import planner
from planner.contract.proof import Status
from planner.options import Options
from planner_models.analytics import Analytics
from planner_models.analytics.designs import optimum
from tests.models.analytics.problems import tables

MBPS_OF_BYTES = 8 / 60 / 1e6
"""Rate of an uplink that carries one byte in an interval of a minute."""


def enumerate_levels(value_usd: list[float], capacity_bytes: float) -> tuple[int, float]:
    """Return the most answers of a site, and then the most value, of levels of 16, 8 and 4 bytes a cell."""
    choices = [(0, 0.0, 0.0), (1, 1600.0, 1.0), (1, 800.0, 0.8), (1, 400.0, 0.5)]
    best = (0, 0.0)
    for levels in itertools.product(choices, repeat=len(value_usd)):
        if sum(size for _, size, _ in levels) <= capacity_bytes:
            value = sum(usd * share for usd, (_, _, share) in zip(value_usd, levels, strict=True))
            best = max(best, (sum(is_sent for is_sent, _, _ in levels), value))
    return best


@pytest.mark.parametrize("combine", [("sum", "sum", "sum"), ("coarsest", "coarsest", "sum")])
@pytest.mark.parametrize("capacity_bytes", [100.0, 500.0, 900.0, 1300.0, 2000.0])
def test_the_fewest_answers_are_left_out_and_those_of_least_value(
    combine: tuple[str, ...], capacity_bytes: float
) -> None:
    made = tables(sites=1, combine=combine, none=False, uplink_mbps=capacity_bytes * MBPS_OF_BYTES)
    made["queries"]["value_usd"] = values = [5.0, 2.0, 3.0]
    problem = Analytics.from_tables(made)
    answered, value = enumerate_levels(values, capacity_bytes)
    for name in ("optimum", "priced", "backfill"):
        run = planner.solve(problem, design=name)
        assert run.plan is not None, name
        assert len(run.plan.to_tables()["levels"]) == answered, name
        assert set(run.violations.frame["limit"]) == ({"answered"} if answered < 3 else set()), name
        if name == "optimum":
            assert run.metrics["value"] == pytest.approx(value)
            assert run.proof.bound == pytest.approx(value)
            assert (run.proof.bound_scope is None) == (answered == 3)
    strict = optimum.plan(problem, options=Options(service="all"))
    assert (strict.proof.status is Status.INFEASIBLE) == (answered < 3)


@pytest.mark.parametrize("combine", ["sum", "coarsest"])
def test_a_dead_uplink_that_may_not_be_silent_costs_its_answers_only(combine: str) -> None:
    """Site s0 has no bandwidth in the second interval, and may not use the level none."""
    made = tables(sites=2, intervals=2, combine=(combine, combine))
    made["bandwidth"] = pd.DataFrame(
        {"link": ["s0", "s1"] * 2, "interval": [1.0, 1.0, 2.0, 2.0], "mbps": [1.0, 1.0, 0.0, 1.0]}
    )
    made["forbidden"] = pd.DataFrame({"site": ["s0"], "query": ["q0"], "level": ["none"]})
    problem = Analytics.from_tables(made)
    # each query has 1 USD in the first interval; then s1 alone has half of it, where sites add up
    value = 2.0 + 2.0 * (0.5 if combine == "sum" else 0.0)
    for name in ("optimum", "priced", "backfill"):
        run = planner.solve(problem, design=name)
        assert run.plan is not None, name
        assert run.metrics["value"] == pytest.approx(value), name
        assert run.violations.frame[["limit", "where"]].to_numpy().tolist() == [
            ["answered", "q0, interval 2"]
        ], name
        assert run.proof.reasons == ("answers are left out, as not all fit: " + _reason(combine),), name


def _reason(combine: str) -> str:
    if combine == "sum":
        return "interval 2: site 's0' can send no level of query 'q0'"
    return "interval 2: query 'q0' has no level that all of its sites can send, and no level none"
