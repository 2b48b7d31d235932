"""Queues of a store: deficit round robin, closed-loop tenants, demand over time, and controllers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.errors import InputError
from planner.options import Options
from planner.scenarios.scenario import load
from planner_models.fairshare import SYSTEM, SharedStore
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import FAIR_QUEUING, FIRST_COME, Replicas, make_plan
from planner_models.fairshare.problem.generators import zipf
from planner_models.fairshare.simulation import study
from planner_models.fairshare.simulation.execution import Snapshot, StoreExecution, list_changes
from planner_models.fairshare.simulation.study import select_replicas


def make_store(
    demand: list[float], *, rate_kops: float = 1.0, mix: str = "fixed", outstanding: list[int] | None = None,
    events: pd.DataFrame | None = None,
) -> SharedStore:  # fmt: skip
    """Return tenants t0, t1, ... with one partition each on one node."""
    names = [f"t{row}" for row in range(len(demand))]
    tenants = pd.DataFrame({"tenant": names, "weight": 1.0, "mix": mix, "replicas": 1.0})
    if outstanding is not None:
        tenants["outstanding"] = np.array(outstanding, dtype=float)
    return SharedStore(
        nodes=pd.DataFrame({"node": ["n"], "rate_kops": rate_kops, "memory_gb": 1e3}),
        tenants=tenants,
        partitions=pd.DataFrame({"tenant": names, "partition": "p", "demand_kops": demand, "size_gb": 1.0}),
        events=events,
    )


def run(
    problem: SharedStore, weight: list[float], *, until_s: float, queueing: str = FAIR_QUEUING,
    outstanding: int = 8, quantum: float = 1.0, seed: int = 0,
) -> StoreExecution:  # fmt: skip
    """Return a store of one node after a time; the quantum is that of the least weight."""
    count = len(problem.partitions)
    replicas = Replicas(np.arange(count), np.zeros(count, dtype=np.int64))
    local = np.array(weight, dtype=float)[:, None]
    plan = make_plan(
        problem, replicas, np.zeros(count), np.ones(count), local, queueing=queueing,
        fair_share_kops=fair_share_kops(problem),
    )  # fmt: skip
    execution = StoreExecution(
        problem, plan, weight=local, outstanding=outstanding, quantum=quantum, seed=seed, measured_from_s=0.0
    )
    execution.advance(until_s)
    return execution


@pytest.mark.slow
@settings(max_examples=40)
@given(
    weight=st.lists(st.floats(1.0, 20.0), min_size=2, max_size=6),
    mix=st.sampled_from(["fixed", "elastic"]),
    milliseconds=st.integers(200, 3000),
)
def test_deficit_round_robin_errs_by_at_most_one_round(
    weight: list[float], mix: str, milliseconds: int
) -> None:
    lower = min(weight)
    quantum = np.array(weight) / lower
    execution = run(make_store([9.0] * len(weight), mix=mix), weight, until_s=milliseconds / 1e3)
    served = execution.observe().served[:, 0]
    assert served.sum() == pytest.approx(milliseconds, abs=1)
    rounds = served / quantum
    assert rounds.max() - rounds.min() <= 1.0 + 2.0 / quantum.min()


@pytest.mark.slow
def test_first_come_first_served_shares_by_requests_outstanding() -> None:
    problem = make_store([9.0, 9.0, 9.0], outstanding=[5, 10, 25])
    served = run(problem, [1, 1, 1], until_s=4.0, queueing=FIRST_COME).observe().served[:, 0]
    np.testing.assert_allclose(served / served.sum(), [0.125, 0.25, 0.625], atol=0.01)


def test_a_tenant_sends_no_more_than_its_demand_and_others_take_the_rest() -> None:
    served = run(make_store([0.1, 9.0]), [1, 1], until_s=5.0).observe().served[:, 0]
    np.testing.assert_allclose(served / 5.0, [100, 900], rtol=0.02)


def test_demand_changes_at_events() -> None:
    events = pd.DataFrame(
        {"at_s": [1.0, 2.0], "tenant": ["t0", "t0"], "partition": ["*", "p"], "demand_kops": [0.3, 0.0]}
    )
    problem = make_store([0.1, 0.2], events=events)
    assert [(index, list(demand)) for index, demand in list_changes(problem)] == [
        (1.0, [0.3, 0.2]),
        (2.0, [0.0, 0.2]),
    ]
    rates = run(problem, [1, 1], until_s=4.0).record()["rates"]
    first = rates.loc[rates["tenant"] == "t0", "kops"].to_numpy()
    np.testing.assert_allclose(first, [0.1, 0.3, 0.0, 0.0], atol=0.03)


@pytest.mark.slow
def test_runs_repeat_exactly() -> None:
    problem = zipf(tenants=4, partitions=4, nodes=3, seed=3)
    frames = []
    for _ in range(2):
        simulation = study.simulate(
            problem, design=SYSTEM.design("pisces"), information={}, decision_parameters={},
            options=Options(), duration_s=3.0, measured_from_s=1.0,
        )  # fmt: skip
        frames.append(simulation.tables["rates"])
    pd.testing.assert_frame_equal(frames[0], frames[1])


def test_windows_rise_where_latency_is_low() -> None:
    now = Snapshot(
        1.0, Replicas(np.zeros(2, dtype=np.int64), np.arange(2)), np.full((1, 2), 1_000),
        np.ones(1, dtype=np.int64), np.array([[0.001, 0.003]]),
        np.zeros(1, dtype=bool), np.ones((1, 2)), np.ones((1, 2)),
    )  # fmt: skip
    change = select_replicas(step=0.5, target=1.0, period_s=0.05).decide(now, None)
    assert change is not None
    assert change.windows is not None
    low, high = change.windows[0]
    assert low > 1 > high
    assert low + high == pytest.approx(2.0)


@pytest.mark.slow
def test_weights_that_are_exchanged_make_rates_fairer() -> None:
    problem = zipf(tenants=6, partitions=8, nodes=4, weights="equal", load=2.0, seed=5)
    problem = problem.with_nodes(rate_kops=problem.nodes["rate_kops"] / 20.0)
    problem = problem.with_demand(problem.demand_kops / 20.0)
    result = {
        name: study.simulate(
            problem, design=SYSTEM.design(name), information={}, decision_parameters={}, options=Options(),
            duration_s=24.0, measured_from_s=12.0,
        ).metrics
        for name in ("unmodified", "fq_pp_wa_flow", "pisces")
    }  # fmt: skip
    lower = {name: float(figures["min_share"] or 0.0) for name, figures in result.items()}
    assert lower["unmodified"] < lower["fq_pp_wa_flow"]
    assert lower["pisces"] > 0.9
    assert all((figures["throughput_kops"] or 0.0) <= 20.0 * 1.001 for figures in result.values())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"measured_from_s": 60.0}, "simulation.measured_from_s is 60, must be at most 59"),
        ({"duration_s": 50_000.0}, "must be at most 2e+09"),
    ],
)
def test_wrong_times_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words.replace("+", r"\+")):
        study.simulate(
            zipf(),
            design=SYSTEM.design("fq"),
            information={},
            decision_parameters={},
            options=Options(),
            **given,
        )


def test_an_event_after_the_end_is_refused_once_for_all_designs() -> None:
    events = pd.DataFrame({"at_s": [90.0], "tenant": ["t0"], "partition": ["*"], "demand_kops": [0.3]})
    with pytest.raises(InputError) as caught:
        planner.simulate(make_store([0.1], events=events), designs="fq,unmodified")
    assert [words.split(", must")[0] for words in caught.value.faults] == ["events row 1: at_s is 90"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((-1.0, "t0", "*", 1.0), "events row 1: at_s is -1.0, must be at least 0"),
        ((1.0, "t9", "*", 1.0), "events row 1: tenant 't9' is no tenant"),
        ((1.0, "t0", "q", 1.0), "events row 1: tenant 't0' has no partition 'q'"),
    ],
)
def test_wrong_events_are_refused(row: tuple[float, str, str, float], words: str) -> None:
    events = pd.DataFrame([row], columns=["at_s", "tenant", "partition", "demand_kops"])
    with pytest.raises(InputError) as caught:
        make_store([0.1], events=events)
    assert words in str(caught.value)


def test_shipped_dynamic_scenarios_have_events() -> None:
    for name in ("fairshare/figure_5a", "fairshare/figure_5b"):
        problem = load(name).make_problem()
        assert problem.events is not None
        assert len(problem.events)
