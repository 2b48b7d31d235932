"""Reports of coflows that are late, noisy or coarse, and how plans made on them play out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner_models.coflows import CoflowsInTime
from planner_models.coflows.designs import sunflow
from planner_models.coflows.information import observe_arrivals, observe_coflows, realize
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.completion import replay
from tests.models.coflows.instances import problem_of, problems

TWO = problem_of({"one": 0.0, "two": 0.0}, [("one", "a", "b", 10.0), ("two", "c", "d", 20.0)])
PROBLEM = problem_of({"one": 0.0, "two": 20.0}, [("one", "a", "b", 10.0), ("two", "b", "a", 10.0)])


def test_exact_reports_are_the_problem_itself() -> None:
    assert observe_coflows(TWO) is TWO
    assert observe_arrivals(TWO) is TWO


def test_reports_are_late_and_in_whole_steps() -> None:
    seen = observe_coflows(TWO, age_ms=5.0, granularity_bytes=2e6)
    assert seen.arrival_ms.tolist() == [5.0, 5.0]
    assert seen.flows["bytes"].tolist() == [2e6, 4e6]  # of 1.25 and 2.5 MB
    noisy = [observe_coflows(TWO, noise=0.5, seed=seed).bits for seed in (0, 0, 1)]
    assert (noisy[0] == noisy[1]).all()
    assert (noisy[0] != noisy[2]).all()


@settings(max_examples=10, deadline=None)
@given(problems(), st.sampled_from([0.3, 2.0]), st.sampled_from([0.0, 7.0]))
def test_what_circuits_leave_goes_by_packets_after_them(
    problem: CoflowsInTime, noise: float, age_ms: float
) -> None:
    seen = observe_coflows(problem, noise=noise, age_ms=age_ms)
    planned = sunflow.schedule(seen).plan
    assert planned is not None
    plan = realize(problem, seen, planned)
    assert plan.circuits is planned.circuits
    assert not len(check(problem, plan))
    completion = replay(problem, plan)
    assert completion.circuit_bits + completion.packet_bits == pytest.approx(problem.bits, rel=1e-6)
    ends = plan.circuits.groupby("coflow")["end_ms"].max()
    for row in plan.priorities.itertuples():
        assert row.at_ms == pytest.approx(ends[row.coflow])
    late = completion.packet_bits > 1e-6 * problem.bits
    last = ends.reindex(problem.coflow_names[problem.coflow]).to_numpy()
    assert (completion.flow_ms[late] >= last[late] - 1e-6).all()


def test_a_design_decides_on_what_it_observes() -> None:
    exact = planner.solve(TWO, design="sunflow")
    late = planner.solve(TWO, design="sunflow", information={"age_ms": 30.0})
    gained = late.metrics["mean_completion_ms"] - exact.metrics["mean_completion_ms"]
    assert gained == pytest.approx(30.0)
    assert planner.solve(TWO, design="aalo", information={"age_ms": 30.0}).metrics["mean_completion_ms"] > 30
    with pytest.raises(planner.InputError, match="noise"):
        planner.solve(TWO, design="aalo", information={"noise": 1.0})


def test_without_packet_links_what_circuits_leave_stays_incomplete() -> None:
    problem = problem_of({"one": 0.0}, [("one", "a", "b", 10.0)], packet_mbps=0.0)
    run = planner.solve(problem, design="sunflow", information={"noise": 1.0, "seed": 4})
    seen = observe_coflows(problem, noise=1.0, seed=4).bits[0]
    assert seen < problem.bits[0]
    assert run.metrics["incomplete_coflows"] == 1
    assert run.metrics["circuit_gb"] == pytest.approx(seen / 8e9)


def test_circuits_and_priorities_are_counted() -> None:
    sunflow = planner.solve(PROBLEM, design="sunflow").metrics
    # a report of each coflow, and a message for each circuit
    assert (sunflow["messages"], sunflow["signalling_bytes"]) == (2 + 2, 2 * 16 + 2 * 4 + 2 * 24)
    sebf = planner.solve(PROBLEM, design="sebf").metrics
    # both racks get priorities at each arrival
    assert (sebf["messages"], sebf["signalling_bytes"]) == (2 + 2 * 2, 2 * 16 + 2 * 4 + 2 * 2 * 12)
    aalo = planner.solve(PROBLEM, design="aalo").metrics
    assert (aalo["messages"], aalo["signalling_bytes"]) == (2 * 2 * 2, 2 * 2 * 2 * 12)
