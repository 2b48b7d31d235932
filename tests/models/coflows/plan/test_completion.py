"""Short flows late in a trace: times of hours have coarse steps, and every design completes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner_models.coflows import SYSTEM, CoflowsInTime, check
from planner_models.coflows.plan.completion import replay
from planner_models.coflows.plan.plan import Service

DESIGNS = [design.name for design in SYSTEM.designs if not design.is_bound]


def build(flows: list[tuple[str, float, float]], *, gbps: float, setup_ms: float) -> CoflowsInTime:
    """Return the problem of coflows with a name, an arrival in ms, and one flow of so many bytes."""
    names, arrivals, sizes = zip(*flows, strict=True)
    return CoflowsInTime(
        racks=pd.DataFrame({"rack": ["a", "b"], "circuit_mbps": 1e3 * gbps, "packet_mbps": 100.0 * gbps}),
        coflows=pd.DataFrame({"coflow": names, "arrival_ms": arrivals}),
        flows=pd.DataFrame({"coflow": names, "source_rack": "a", "target_rack": "b", "bytes": sizes}),
        switch=pd.DataFrame({"setup_ms": [setup_ms]}),
    )


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(
    ("at_ms", "size", "gbps"),
    [(3.6e6, 1_500.0, 100.0), (200.0, 10.0, 10.0), (8.64e7, 1.0, 400.0), (0.0, 1.0, 400.0)],
)
def test_a_short_flow_is_complete_at_any_time(name: str, at_ms: float, size: float, gbps: float) -> None:
    problem = build([("c1", at_ms, size)], gbps=gbps, setup_ms=0.02)
    decision = SYSTEM.design(name).run(problem)
    assert not len(check(problem, decision.plan)), check(problem, decision.plan).sentences()
    alone_ms = 8 * size / (1e6 * gbps)
    # over the slower packet switch at most ten times as long, over circuits a set-up more
    slowest = max(0.02 + alone_ms, 10 * alone_ms) + 8 * np.spacing(at_ms)
    assert decision.proof.objective is not None
    assert alone_ms - 8 * np.spacing(at_ms) <= decision.proof.objective <= slowest * (1 + 1e-6)


@pytest.mark.parametrize("name", ["sunflow", "hybrid", pytest.param("optimum", marks=pytest.mark.slow)])
def test_a_later_start_changes_no_completion_time(name: str) -> None:
    flows = [("c1", 0.0, 2e6), ("c2", 0.05, 3_000.0), ("c3", 0.05001, 64.0), ("c4", 2.0, 1e5)]
    means = [
        SYSTEM.design(name)
        .run(build([(c, index + late, size) for c, index, size in flows], gbps=100.0, setup_ms=0.02))
        .proof.objective
        for late in (1.0, 3.6e6)
    ]
    assert means[0] == pytest.approx(means[1], rel=1e-5)


def test_a_circuit_that_is_set_up_too_early_is_found_late_in_a_trace() -> None:
    """A set-up time of microseconds is checked after an hour as it is in the first second."""
    problem = build([("c1", 3.6e6, 1_500.0)], gbps=100.0, setup_ms=0.02)
    plan = SYSTEM.design("sunflow").run(problem).plan
    early = plan.circuits.assign(start_ms=plan.circuits["start_ms"] - 0.021)
    assert set(check(problem, Service(circuits=early)).frame["limit"]) == {"arrival"}


def test_half_a_flow_is_not_complete() -> None:
    problem = build([("c1", 3.6e6, 1_500.0)], gbps=100.0, setup_ms=0.02)
    plan = SYSTEM.design("sunflow").run(problem).plan
    middle = plan.circuits[["start_ms", "end_ms"]].mean(axis=1)
    half = Service(circuits=plan.circuits.assign(end_ms=middle))
    assert np.isnan(replay(problem, half).coflow_ms).all()
    assert set(check(problem, half).frame["limit"]) == {"coverage"}


def test_no_design_completes_coflows_sooner_than_the_optimum() -> None:
    """Where the packet switch is faster for small flows, the optimum uses it."""
    random = np.random.default_rng(2)
    flows = [
        (f"c{number}", float(index), float(10 ** random.uniform(3, 7)))
        for number, index in enumerate(range(6))
    ]
    problem = build(flows, gbps=10.0, setup_ms=5.0)
    means = {name: SYSTEM.design(name).run(problem).proof.objective for name in DESIGNS if name != "aalo"}
    assert means["optimum"] == pytest.approx(min(means.values()), rel=1e-6)
