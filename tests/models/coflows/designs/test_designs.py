"""Every design on small problems: what must hold for any data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import planner
from planner.contract.design import Decision
from planner.options import Options
from planner_models.circuits import Circuits, Schedule
from planner_models.circuits.designs import optimum
from planner_models.coflows import CoflowsInTime
from planner_models.coflows.designs import DESIGNS, windows
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.completion import replay
from planner_models.coflows.plan.lower_bounds import alone_ms, mean_completion_bound_ms
from planner_models.coflows.plan.metrics import measure
from planner_models.coflows.problem.generators import mapreduce
from tests.models.coflows.instances import best_by_enumeration, circuit_plan, problem_of, problems

PLANS = {design.name: design.decide for design in DESIGNS if not design.is_bound}
FAST = [name for name in PLANS if name not in ("most_served", "optimum")]


@pytest.mark.slow
@settings(max_examples=12)
@given(problems())
def test_plans_carry_all_within_limits_and_beat_no_bound(problem: CoflowsInTime) -> None:
    bound, lower = mean_completion_bound_ms(problem), alone_ms(problem)
    assert bound is not None
    for name in FAST:
        decision = PLANS[name](problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan)), name
        completion = replay(problem, decision.plan)
        assert completion.circuit_bits + completion.packet_bits == pytest.approx(problem.bits, rel=1e-6)
        assert (completion.coflow_ms >= lower * (1 - 1e-9)).all(), name
        mean_ms = np.average(completion.coflow_ms, weights=problem.weight)
        assert decision.proof.objective == pytest.approx(mean_ms)
        assert bound <= decision.proof.bound * (1 + 1e-9) <= mean_ms * (1 + 1e-6), name


@pytest.mark.slow
@settings(max_examples=12)
@given(problems())
def test_circuits_carry_the_same_bytes_by_a_plain_replay(problem: CoflowsInTime) -> None:
    for name in ("sunflow", "eclipse"):
        plan = PLANS[name](problem).plan
        frame = plan.circuits.assign(bytes=(plan.circuits["end_ms"] - plan.circuits["start_ms"]) * 125_000.0)
        keys = ["coflow", "source_rack", "target_rack"]
        carried = frame.groupby(keys)["bytes"].sum()
        requested = problem.flows.set_index(keys)["bytes"]
        assert carried.reindex(requested.index).to_numpy() == pytest.approx(requested.to_numpy(), rel=1e-6)
        ends = frame.groupby("coflow")["end_ms"].max()
        arrival = problem.coflows.set_index("coflow")["arrival_ms"]
        taken = (ends - arrival).reindex(arrival.index).to_numpy()
        assert replay(problem, plan).coflow_ms == pytest.approx(taken, rel=1e-6)
        for ends_of in (["switch", "source_rack"], ["switch", "target_rack"]):
            for _, port in frame.sort_values("start_ms").groupby(ends_of):
                start, end = port["start_ms"].to_numpy(), port["end_ms"].to_numpy()
                assert (start[1:] >= end[:-1] - 1e-6).all()


@settings(max_examples=15)
@given(problems(most_flows=4))
def test_no_schedule_of_whole_flows_beats_the_bound(problem: CoflowsInTime) -> None:
    best, rows = best_by_enumeration(problem)
    plan = circuit_plan(rows)
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["mean_completion_ms"] == pytest.approx(best)
    for fabric in ("circuits", "all"):
        bound = mean_completion_bound_ms(problem, fabric)
        assert bound is not None
        assert bound <= best * (1 + 1e-9)


@settings(max_examples=10)
@given(problems(most_flows=4, switches=1))
def test_more_switches_and_shorter_setups_never_hurt_the_best_order(problem: CoflowsInTime) -> None:
    best, _ = best_by_enumeration(problem)
    assert best_by_enumeration(problem.with_switch(circuit_switches=2))[0] <= best + 1e-9
    assert best_by_enumeration(problem.with_switch(setup_ms=problem.setup_ms / 2))[0] <= best + 1e-9
    for change in ({"circuit_switches": 2}, {"setup_ms": problem.setup_ms / 2}):
        other = problem.with_switch(**change)
        before, after = (mean_completion_bound_ms(item, "circuits") for item in (problem, other))
        assert before is not None
        assert after is not None
        assert after <= before * 1.02  # both are found by a search


def test_sunflow_leaves_circuits_of_other_ports_alone() -> None:
    problem = problem_of(
        {"long": 0.0, "short": 30.0},
        [("long", "a", "b", 100.0), ("short", "c", "d", 5.0), ("short", "c", "b", 5.0)],
    )
    plan = PLANS["sunflow"](problem).plan
    rows = plan.circuits.set_index(["coflow", "target_rack"])[["start_ms", "end_ms"]]
    # the long flow goes on while c->d is set up and used, and is cut for c->b alone
    assert rows.loc[("long", "b")].to_numpy().tolist()[0] == [10.0, 45.0]
    assert replay(problem, plan).coflow_ms[1] == pytest.approx(30.0)
    assert not len(check(problem, plan))


def test_a_circuit_that_is_up_is_used_without_another_setup() -> None:
    problem = problem_of({"one": 0.0, "two": 20.0}, [("one", "a", "b", 10.0), ("two", "a", "b", 10.0)])
    plan = PLANS["sunflow"](problem).plan
    assert plan.circuits[["start_ms", "end_ms"]].to_numpy().tolist() == [[10.0, 20.0], [20.0, 30.0]]
    assert measure(problem, plan, None)["setups"] == 1


def test_a_window_carries_on_what_is_left_over() -> None:
    problem = problem_of({"one": 0.0}, [("one", "a", "b", 250.0), ("one", "a", "c", 30.0)])
    for name in ("solstice", "eclipse", "most_served"):
        plan = PLANS[name](problem, window_ms=100.0).plan
        assert plan.circuits["end_ms"].max() > 280.0, name
        assert replay(problem, plan).coflow_ms[0] < 600.0, name


def test_windows_share_the_time_limit_of_most_served(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mapreduce(racks=4, coflows=3, seed=1)
    inputs, solve = list[float](), optimum.solve

    def record(week: Circuits, *, options: Options) -> Decision[Schedule]:
        inputs.append(options.time_limit_s or np.inf)
        return solve(week, options=options)

    monkeypatch.setattr(optimum, "solve", record)
    options = Options(time_limit_s=60.0)
    assert PLANS["most_served"](problem, options=options).plan is not None
    assert inputs
    assert max(inputs) <= windows.WINDOW_SHARE * 60.0
    monkeypatch.setattr(windows, "MOST_SERVED_SHARE", 0.0)
    late, by_solstice = (PLANS[name](problem, options=options).plan for name in ("most_served", "solstice"))
    pd.testing.assert_frame_equal(late.circuits, by_solstice.circuits)


def test_the_shorter_coflow_is_sent_first_and_the_unknown_one_later() -> None:
    flows = [("large", "a", "b", 1_000.0), ("small", "a", "b", 10.0)]
    problem = problem_of({"large": 0.0, "small": 500.0}, flows)
    # the large one has sent more than the first queue's 10 MB, 80 ms
    for name in ("sebf", "aalo"):
        completion = replay(problem, PLANS[name](problem).plan)
        assert completion.coflow_ms == pytest.approx([1_010.0, 10.0], rel=1e-6), name


def test_flows_of_a_coflow_end_together() -> None:
    problem = problem_of({"one": 0.0}, [("one", "a", "c", 10.0), ("one", "b", "c", 30.0)])
    completion = replay(problem, PLANS["sebf"](problem).plan)
    assert completion.flow_ms == pytest.approx([40.0, 40.0])
    completion = replay(problem, PLANS["aalo"](problem).plan)
    # equal shares until the first has ended, 20 ms, and the interval of 10 ms is over
    assert completion.flow_ms == pytest.approx([20.0, 40.0])


def test_bounds_of_one_link_are_shortest_first() -> None:
    sizes = [5.0, 10.0, 20.0, 40.0]
    problem = problem_of(
        {f"c{index}": 0.0 for index in range(4)},
        [(f"c{index}", "a", "b", size) for index, size in enumerate(sizes)],
    )
    best = float(np.cumsum(sizes).mean())
    assert mean_completion_bound_ms(problem, "packets") == pytest.approx(best, rel=0.01)
    assert PLANS["sebf"](problem).proof.objective == pytest.approx(best)


def test_failed_racks_cut_off_coflows_and_strict_service_says_so() -> None:
    problem = problem_of({"one": 0.0, "two": 0.0}, [("one", "a", "b", 10.0), ("two", "a", "c", 10.0)]).fail(
        ["c"]
    )
    run = planner.solve(problem, design="sunflow")
    assert run.metrics["incomplete_coflows"] == 1
    assert run.metrics["mean_completion_ms"] == pytest.approx(20.0)
    strict = planner.solve(problem, design="sunflow", service="all")
    assert strict.proof.reasons == ("racks have failed that 1 coflow needs: c",)


def test_without_a_packet_switch_its_designs_complete_nothing() -> None:
    problem = problem_of({"one": 0.0}, [("one", "a", "b", 10.0)], packet_mbps=0.0)
    run = planner.solve(problem, design="sebf")
    assert run.metrics["mean_completion_ms"] is None
    assert run.violations.frame["limit"].tolist() == ["coverage"]
    assert "a plan without mean completion; leaves 1 coflow incomplete" in str(run)
    assert planner.solve(problem, design="sunflow").proof.bound_scope is None


@pytest.mark.parametrize("name", FAST)
def test_plans_from_tables_are_the_same(name: str) -> None:
    problem = problem_of(
        {"one": 0.0, "two": 7.0}, [("one", "a", "b", 10.0), ("one", "b", "c", 3.0), ("two", "a", "c", 5.0)]
    )
    plan = PLANS[name](problem).plan
    tables = {key: pd.DataFrame(frame.to_dict("list")) for key, frame in plan.to_tables().items()}
    from planner_models.coflows.plan.plan import from_tables

    again = from_tables(problem, tables)
    assert measure(problem, again, None) == measure(problem, plan, None)


@pytest.mark.parametrize("name", ["solstice", "eclipse"])
def test_windows_may_be_longer_than_those_of_circuits(name: str) -> None:
    """A window of 9e12 ms has more microseconds than system circuits takes; only ratios matter."""
    flows, means = [("x", "a", "b", 1e14), ("y", "a", "c", 1e13)], []
    for size in (1.0, 1e-9):
        problem = CoflowsInTime.from_tables(
            {
                "racks": pd.DataFrame({"rack": ["a", "b", "c"], "circuit_mbps": 1e-2, "packet_mbps": 0.0}),
                "coflows": pd.DataFrame({"coflow": ["x", "y"], "arrival_ms": 0.0}),
                "flows": pd.DataFrame(
                    flows, columns=["coflow", "source_rack", "target_rack", "bytes"]
                ).assign(bytes=lambda frame, size=size: frame["bytes"] * size),
                "switch": pd.DataFrame({"setup_ms": [1e6 * size]}),
            }
        )
        decision = PLANS[name](problem, window_ms=9e12 * size)
        assert not len(check(problem, decision.plan))
        means.append(decision.proof.objective / size)
    assert means[0] == pytest.approx(means[1], rel=1e-6)
