"""Flows in time: problems, weeks, runs of every design, and plans made elsewhere."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from planner import InputError, Options, PlanRejected, Status
from planner.runs.evaluation import compile_ahead, evaluate
from planner.scenarios.scenario import Entry
from planner.search.deadline import Deadline
from planner_models.circuitflows import SYSTEM, FlowsInTime, check, measure
from planner_models.circuitflows.designs import block_placement, execution, operation
from planner_models.circuitflows.designs.execution import Datacenter, Observation, QueueResizing
from planner_models.circuitflows.packets import network
from planner_models.circuitflows.plan.plan import from_tables
from planner_models.circuitflows.plan.plan import settings_table as setting
from planner_models.circuitflows.problem import generators
from planner_models.circuits.plan.plan import IDLE, Day
from tests.models.circuitflows.runs import run_design

PLAIN = ("queues", "data_units", "fixed", "packet_only")
PLACING = ("hdfs_random", "rehdfs", "placement_optimum")


@pytest.fixture(scope="module")
def small() -> FlowsInTime:
    """Four racks for fifteen weeks."""
    return generators.mixed(racks=4, rings=1, hosts=4, horizon_us=30_000.0, seed=3)


@pytest.fixture(scope="module")
def writes() -> FlowsInTime:
    return generators.dfsio(racks=5, writers=2, file_mb=2.0, block_mb=0.7, horizon_us=50_000.0)


# --- every design -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_replaying_a_plan_gives_the_run_of_its_design(small: FlowsInTime, name: str) -> None:
    """The engine replays the plan and refuses it where it delivers anything else."""
    run = run_design(small, name)
    assert run.decision.proof.metric == "delivered_gb"
    assert run.metrics["delivered_gb"] == run.decision.proof.objective
    assert not len(run.violations)
    assert 0 < run.metrics["finished_share"] <= 1


@pytest.mark.parametrize("name", PLAIN)
def test_what_does_not_arrive_is_counted_and_refused_where_all_must(small: FlowsInTime, name: str) -> None:
    metrics = run_design(small, name).metrics
    assert metrics["delivered_gb"] + metrics["undelivered_gb"] == pytest.approx(metrics["offered_gb"])
    assert metrics["undelivered_gb"] > 0
    strict = SYSTEM.design(name).run(small, options=Options(service="all"))
    assert strict.plan is None
    assert "GB within the run" in strict.proof.reasons[0]


@pytest.mark.parametrize("name", PLACING)
def test_placed_blocks_arrive(writes: FlowsInTime, name: str) -> None:
    run = run_design(writes, name, large_packets=64)
    assert run.metrics["finished_share"] == 1
    assert run.metrics["delivered_gb"] == pytest.approx(5 * 2 * 2e-3)
    assert len(run.plan.placement) == len(writes.flows)
    assert not len(run.violations)


@pytest.mark.parametrize("scheduler", ["solstice", "eclipse", "bvn", "tms", "hotspot", "islip"])
def test_every_scheduler_can_be_in_the_loop(small: FlowsInTime, scheduler: str) -> None:
    run = run_design(small, "data_units", scheduler=scheduler, large_packets=64, early_us=500.0)
    assert run.metrics["circuit_gb"] > 0
    assert not len(run.violations)


def test_a_run_repeats_exactly(small: FlowsInTime) -> None:
    first, second = (run_design(small, "queues").plan.to_tables() for _ in range(2))
    for name, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[name])


@pytest.mark.slow
def test_schedulers_on_application_data_give_big_flows_more_circuit_time() -> None:
    """Reaction against transparency: shallow queues make small flows look like big ones."""
    problem = generators.mixed(rings=1, horizon_us=30_000.0, seed=3)
    queues, units, fixed = (run_design(problem, name).metrics for name in ("queues", "data_units", "fixed"))
    assert queues["configurations"] > 1.5 * units["configurations"]
    assert units["circuit_gb"] > 1.1 * queues["circuit_gb"]
    assert units["circuit_gb"] == pytest.approx(fixed["circuit_gb"], rel=0.1)


def test_a_faster_packet_switch_ends_flows_sooner(small: FlowsInTime) -> None:
    slow, fast = (run_design(small, "packet_only", packet_mbps=rate).metrics for rate in (5_000.0, 80_000.0))
    assert fast["finished_share"] > slow["finished_share"]
    assert fast["small_median_ms"] < slow["small_median_ms"]
    assert fast["circuit_gb"] == 0
    assert fast["circuit_utilization"] is None


def test_larger_queues_use_circuits_better_and_wait_longer() -> None:
    problem = generators.strobe(racks=4, count=8, horizon_us=20_000.0)
    runs = [
        run_design(problem, "fixed", shifts=(1, 2, 3), queue_packets=size).metrics for size in (4, 16, 64)
    ]
    for less, more in itertools.pairwise(runs):
        assert more["circuit_utilization"] > less["circuit_utilization"]
        assert more["latency_p99_us"] > less["latency_p99_us"]


def test_queues_enlarged_early_use_circuits_better() -> None:
    problem = generators.strobe(racks=8, horizon_us=40_000.0)
    shifts = tuple(range(1, 8))
    static = run_design(problem, "fixed", shifts=shifts).metrics
    late, early = (
        run_design(problem, "fixed", shifts=shifts, large_packets=128, early_us=lead).metrics
        for lead in (0.0, 1_000.0)
    )
    assert late["circuit_utilization"] == pytest.approx(static["circuit_utilization"], rel=0.15)
    assert early["circuit_utilization"] > 1.3 * static["circuit_utilization"]
    assert early["latency_median_us"] < 1.5 * static["latency_median_us"]


@pytest.mark.slow
def test_tuned_queues_keep_the_bound_that_they_were_tuned_for() -> None:
    problem = generators.strobe(racks=4, count=8, horizon_us=20_000.0)
    options: dict[str, Any] = {
        "shifts": (1, 2, 3),
        "small": (4, 16),
        "large": (16, 64),
        "early": (0.0, 300.0),
    }
    options["percentile"] = "p99"
    tight, loose = (
        run_design(problem, "resize_tuned", latency_us=bound, trial_us=20_000.0, **options)
        for bound in (61.0, 1e4)
    )
    assert tight.metrics["latency_p99_us"] <= 61.0
    assert loose.metrics["circuit_utilization"] > tight.metrics["circuit_utilization"]
    none = run_design(problem, "resize_tuned", latency_us=1.0, trial_us=5_000.0, **options)
    assert none.plan is None
    assert none.decision.proof.status is Status.UNDECIDED
    assert "the least p99 latency" in none.decision.proof.reasons[0]


def test_a_scheduler_that_computes_for_a_week_is_a_week_late(small: FlowsInTime) -> None:
    prompt, late = (
        run_design(small, "data_units", computing_us=wait).plan.configurations for wait in (0.0, 1_000.0)
    )
    assert late["start_us"].min() == pytest.approx(prompt["start_us"].min() + 1_000.0)


# --- time limits --------------------------------------------------------------------------

SHORT = Options(time_limit_s=1e-3)


@pytest.mark.parametrize("name", [*PLAIN, "resize_tuned"])
def test_a_run_that_the_time_limit_cuts_covers_its_part(
    small: FlowsInTime, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "EVENTS_PER_CALL", 100)
    design = SYSTEM.design(name)
    parameters = {"latency_us": 1e6} if name == "resize_tuned" else {}
    run = evaluate(SYSTEM, small, Entry(label=name, design=design, parameters=parameters), options=SHORT)
    assert run.status == "time limit"
    assert 0 < run.metrics["simulated_ms"] < small.of("horizon_us") / 1e3
    assert run.metrics["simulated_ms"] + run.metrics["unsimulated_ms"] == pytest.approx(30.0)
    assert "It leaves out the last" in run.verdict
    ends = run.plan.settings["simulated_us"].iloc[0]
    share = replace(small, network=small.network.assign(horizon_us=ends))
    full = replace(run.plan, settings=run.plan.settings.assign(simulated_us=0.0))
    for metric, value in measure(share, full, None).items():
        assert value == run.metrics[metric] or metric == "unsimulated_ms", metric
    assert run.metrics["delivered_gb"] <= run.metrics["offered_gb"]
    strict = design.run(small, options=replace(SHORT, service="all"), parameters=parameters)
    assert strict.plan is None
    assert "that the time limit left" in strict.proof.reasons[0]


@pytest.mark.parametrize("information", [{}, {"age_us": 500.0}])
def test_a_time_limit_holds_for_the_whole_run(information: dict[str, float]) -> None:
    problem = generators.mixed(horizon_us=2e6)
    entry = Entry(label="queues", design=SYSTEM.design("queues"), information=information)
    compile_ahead(SYSTEM, entry, Options())
    start = time.process_time()
    run = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=0.4))
    assert time.process_time() - start < 0.4 + 1.5
    assert run.status == "time limit"


def test_a_placement_runs_in_the_rest_of_the_time(
    writes: FlowsInTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "EVENTS_PER_CALL", 100)
    monkeypatch.setattr(Deadline, "left_s", 1e-3)
    entry = Entry(label="optimum", design=SYSTEM.design("placement_optimum"))
    run = evaluate(SYSTEM, writes, entry, options=Options(time_limit_s=5.0))
    assert run.decision.proof.metric == "pairs_per_rack"
    assert run.metrics["unsimulated_ms"] > 0


def test_a_record_of_more_than_the_run_is_refused(small: FlowsInTime) -> None:
    plan = run_design(small, "fixed").plan
    longer = replace(plan, settings=plan.settings.assign(simulated_us=30_001.0))
    with pytest.raises(PlanRejected, match="settings row 1: simulated_us is 30001, the run ends at 30000"):
        check(small, longer)
    tables = plan.to_tables()
    tables["settings"] = tables["settings"].drop(columns="simulated_us")
    assert measure(small, from_tables(small, tables), None) == measure(small, plan, None)


def test_pairs_below_the_threshold_are_left_out_where_any_pair_has_as_much(small: FlowsInTime) -> None:
    """Two pairs with a megabyte and less: the smaller has no circuit; without a larger one it has."""
    week = np.zeros((4, 4))
    week[0, 1], week[2, 3] = 8.1e6, 7.9e6
    planners = operation.Planner(), operation.Planner(least_bytes=0.0)
    weeks = [
        planner.plan(small.week, Observation(queued_bits=bits, pending_bits=bits), demand="data_units")
        for bits in (week, 0.9 * week)
        for planner in planners
    ]
    assert [sum(day.duration_us for day in days if day.target[0] == 1) > 0 for days in weeks] == [True] * 4
    alone = [sum(day.duration_us for day in days if day.target[2] == 3) for days in weeks]
    assert alone[1] > 0 < alone[2]
    assert len(weeks[0]) == 1


# --- weeks --------------------------------------------------------------------------------


@st.composite
def demands(draw: st.DrawFn) -> NDArray[np.float64]:
    n = draw(st.integers(2, 5))
    amounts = st.sampled_from([0.0, 0.0, 1.0, 5.0, 80.0, 400.0, 5_000.0])
    bits = np.array(draw(st.lists(amounts, min_size=n * n, max_size=n * n))).reshape(n, n) * 1e5
    np.fill_diagonal(bits, 0.0)
    return bits


@settings(max_examples=30, deadline=None)
@given(bits=demands(), scheduler=st.sampled_from(["solstice", "eclipse", "hotspot"]))
def test_weeks_are_whole_weeks_of_matchings(bits: NDArray[np.float64], scheduler: Any) -> None:
    problem = generators.mixed(racks=len(bits), rings=1, horizon_us=1_000.0)
    days = operation.plan_week(problem.week, bits, scheduler=scheduler, fill_share=0.5)
    for day in days:
        targets = day.target[day.target != IDLE]
        assert len(set(targets.tolist())) == len(targets) > 0
        assert (day.target != np.arange(len(bits))).all()
        assert day.duration_us >= 180 - 1e-6
    if days:
        assert sum(day.duration_us + 20 for day in days) == pytest.approx(2_000)


@settings(max_examples=30, deadline=None)
@given(bits=demands())
def test_shares_are_max_min_fair(bits: NDArray[np.float64]) -> None:
    """No pair could get more without taking from one that has as little: against linear programs."""
    budget = 1.3e7
    given_ = operation.max_min_shares(bits, budget)
    assert (given_ <= bits + 1e-3).all()
    assert (given_.sum(axis=0) <= budget * (1 + 1e-9)).all()
    assert (given_.sum(axis=1) <= budget * (1 + 1e-9)).all()
    source, target = np.nonzero(bits)
    if not len(source):
        return
    n = len(bits)
    rows = np.zeros((2 * n, len(source)))
    rows[source, np.arange(len(source))] = rows[n + target, np.arange(len(source))] = 1.0
    for pair in range(len(source)):
        current = given_[source[pair], target[pair]]
        # all that have no more than this pair keep it; can this pair have more?
        lower = np.where(given_[source, target] <= current + 1e-3, given_[source, target] - 1.0, 0.0)
        best = linprog(
            -np.eye(len(source))[pair],
            A_ub=rows,
            b_ub=np.full(2 * n, budget),
            bounds=list(zip(np.maximum(lower, 0.0), bits[source, target], strict=True)),
        )
        assert -best.fun <= current + 2 * len(source)


def test_shallow_queues_are_scaled_up_and_what_is_below_a_day_is_left_out() -> None:
    week = generators.mixed(racks=3, rings=1, horizon_us=1_000.0).week
    bits = np.array([[0, 9e5, 1e5], [0, 0, 0], [0, 0, 0.0]])
    shown = operation.prepare_demand(week, bits, fill_share=0.5) / 80_000
    np.testing.assert_allclose(shown, [[0, 900, 0], [0, 0, 0], [0, 0, 0]])
    assert not operation.prepare_demand(week, bits * 0, fill_share=0.5).any()


def test_queues_grow_before_their_circuit_and_shrink_after_it(small: FlowsInTime) -> None:
    """Worked by hand: a day from 20 to 980 and one from 1000 to 2000, each 300 us ahead, as if repeated."""
    plan, _ = execution.run(
        replace(small, network=small.network.assign(horizon_us=2_000.0)),
        placement=block_placement.place_randomly(small, seed=0),
        week=lambda seen: [  # noqa: ARG005
            Day(duration_us=960.0, target=np.array([1, IDLE, IDLE, IDLE])),
            Day(duration_us=1_000.0, target=np.array([2, IDLE, IDLE, IDLE])),
        ],
        settings=setting(queue_packets=16),
        resizing=QueueResizing(small=16, large=64, early_us=300.0),
    )
    rows = plan.queues.sort_values("at_us")[["at_us", "target_rack", "packets"]].to_numpy().tolist()
    assert rows == [[0.0, "r1", 64.0], [700.0, "r2", 64.0], [980.0, "r1", 16.0], [1720.0, "r1", 64.0]]


def test_a_scheduler_observes_no_more_than_its_queues_contain(small: FlowsInTime) -> None:
    seen: list[Observation] = []

    def watch(now: Observation) -> None:
        seen.append(now)

    execution.run(
        small,
        placement=block_placement.place_randomly(small, seed=0),
        week=watch,
        settings=setting(queue_packets=8),
    )
    assert len(seen) == 15
    assert max(item.queued_bits.max() for item in seen) <= 8 * 72_000
    assert max(item.pending_bits.max() for item in seen) > 100 * 8 * 72_000
    for item in seen:  # replies are seen in queues, and no application reports them
        assert (item.pending_bits[item.queued_bits >= 72_000] > 0).all()


def test_the_data_plane_is_an_execution_of_the_loop(small: FlowsInTime) -> None:
    plan, network = execution.run(
        small,
        placement=block_placement.place_randomly(small, seed=0),
        week=None,
        settings=setting(queue_packets=8),
    )
    assert isinstance(Datacenter(small, network, None).observe(), Observation)
    assert len(plan.configurations) == 0


# --- problems and plans from elsewhere ------------------------------------------------------


def tables(small: FlowsInTime) -> dict[str, pd.DataFrame]:
    return {name: frame.copy() for name, frame in small.to_tables().items()}


def test_tables_make_the_same_problem(small: FlowsInTime) -> None:
    again = FlowsInTime.from_tables(small.to_tables())
    np.testing.assert_array_equal(again.packets, small.packets)
    np.testing.assert_array_equal(again.host, small.host)
    assert again.size() == small.size()


@pytest.mark.parametrize(
    ("table", "row", "column", "value", "fault"),
    [
        ("flows", 2, "source_rack", "r9", "flows row 3: source_rack 'r9' is no rack of the network"),
        ("network", 0, "life_us", -1.0, "network row 1: life_us is -1.0, must be at least 0"),
        ("network", 0, "batch_packets", 0.5, "network row 1: batch_packets is 0.5, must be"),
        ("flows", 1, "host", 99.0, "flows row 2: host is 99, rack 'r0' has 4"),
        ("flows", 1, "after", "f999", "flows row 2: after 'f999' is no flow"),
        ("flows", 1, "after", "f1", "flows row 2: waits, by `after`, for itself"),
        ("flows", 0, "bytes", -1.0, "flows row 1: bytes is -1.0, must be greater than 0"),
        ("flows", 0, "start_us", np.nan, "start_us"),
        ("racks", 0, "hosts", 2.5, "racks row 1: hosts is 2.5, must be a whole number"),
        ("racks", 0, "rack", "any", "a rack is called 'any', which means any rack"),
        ("network", 0, "night_us", 2_000.0, "network: night_us is 2000, must be less than week_us, 2000"),
        ("network", 0, "shortest_day_us", 1_990.0, "must with the night of 20 fit week_us, 2000"),
        ("network", 0, "horizon_us", 1e308, "network row 1: horizon_us is 1e+308, must be at most 1e+10"),
        ("racks", 0, "circuit_mbps", 1e-300, "racks row 1: circuit_mbps is 1e-300, must be at least 0.001"),
        ("flows", 0, "bytes", 1e300, "flows row 1: bytes is 1e+300, must be at most 1e+15"),
        ("network", 0, "inside_packets", 1e18, "inside_packets is 1e+18, must be at most 1e+06"),
        ("network", 0, "packet_bytes", 0.0, "network row 1: packet_bytes is 0.0, must be greater than 0"),
    ],
)
def test_an_invalid_problem_is_refused(
    small: FlowsInTime, table: str, row: int, column: str, value: Any, fault: str
) -> None:
    given_ = tables(small)
    given_[table].loc[row, column] = value
    with pytest.raises(InputError) as caught:
        FlowsInTime.from_tables(given_)
    assert any(fault in line for line in caught.value.faults), caught.value.faults


def test_more_weeks_than_can_be_run_are_refused(small: FlowsInTime) -> None:
    given_ = tables(small)
    given_["network"] = given_["network"].assign(
        horizon_us=1e10, week_us=10.0, night_us=1.0, shortest_day_us=1.0
    )
    with pytest.raises(InputError, match="the run has 1,000,000,000 weeks, must have at most 10,000,000"):
        FlowsInTime.from_tables(given_)


def test_more_packets_in_flight_than_memory_holds_are_refused(small: FlowsInTime) -> None:
    given_ = tables(small)
    given_["racks"]["circuit_mbps"] = 1e9
    given_["network"]["circuit_delay_us"] = 1e6
    with pytest.raises(InputError, match="packets are in flight or queued"):
        run_design(FlowsInTime.from_tables(given_), "fixed")


def test_several_networks_are_refused(small: FlowsInTime) -> None:
    given_ = tables(small)
    given_["network"] = pd.concat([given_["network"]] * 2, ignore_index=True)
    with pytest.raises(InputError, match="has 2 rows, must have one"):
        FlowsInTime.from_tables(given_)


@pytest.mark.parametrize("name", PLAIN)
def test_designs_that_choose_no_racks_use_random_ones(writes: FlowsInTime, name: str) -> None:
    run = run_design(writes, name)
    assert len(run.plan.placement) == len(writes.flows)
    assert run.metrics["delivered_gb"] > 0


@pytest.mark.parametrize("name", PLACING)
def test_designs_that_choose_racks_run_where_there_are_none_to_choose(small: FlowsInTime, name: str) -> None:
    run = run_design(small, name)
    assert run.plan.placement.empty
    assert run.metrics["pairs_per_rack"] == 3


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({"shifts": (0,)}, "shifts: 0, must be from 1 to 3"),
        ({"shifts": (1,) * 20}, "20 days in a week of 2000 us leave 80 us each, must be at least 180"),
        ({"large_packets": 4}, "large_packets is 4, must be at least queue_packets, 16"),
        (
            {"control": "cubic", "alpha": 2.0},
            "alpha and beta are for reTCP, which is Reno: control is 'cubic'",
        ),
        ({"mark_packets": 4}, "mark_packets is for DCTCP: control is 'reno', must be 'dctcp'"),
    ],
)
def test_invalid_settings_are_refused(small: FlowsInTime, parameters: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        operation.run_fixed_schedule(small, **parameters)


@pytest.mark.parametrize(
    ("table", "change", "fault"),
    [
        ("configurations", {"source_rack": "r9"}, "'r9' is no rack"),
        ("configurations", {"source_rack": "r2"}, "must be a matching"),
        ("configurations", {"target_rack": "r0"}, "circuit to itself"),
        ("configurations", {"duration_us": 7.0}, "must start and end together"),
        ("placement", {"flow": "f0", "target_rack": "r1"}, "flow 'f0' has its target"),
        ("placement", {"flow": "zz", "target_rack": "r1"}, "placement row 1: no such flow"),
    ],
)
def test_invalid_plans_are_rejected(
    small: FlowsInTime, table: str, change: dict[str, Any], fault: str
) -> None:
    made = {name: frame.copy() for name, frame in run_design(small, "fixed").plan.to_tables().items()}
    if table == "placement":
        made[table] = pd.DataFrame([change])
    else:
        for column, value in change.items():
            made[table].loc[0, column] = value
    with pytest.raises(PlanRejected, match=fault):
        check(small, from_tables(small, made))


@pytest.mark.parametrize(
    ("column", "change", "limit"),
    [("start_us", -15.0, "night"), ("duration_us", -1_900.0, "shortest_day"), ("start_us", 1e6, "horizon")],
)
def test_each_violated_limit_is_reported(small: FlowsInTime, column: str, change: float, limit: str) -> None:
    made = {name: frame.copy() for name, frame in run_design(small, "fixed").plan.to_tables().items()}
    made["configurations"][column] += change
    assert limit in set(check(small, from_tables(small, made)).frame["limit"])


def test_a_plan_read_back_has_the_same_metrics(small: FlowsInTime) -> None:
    run = run_design(small, "queues", large_packets=32)
    again = from_tables(small, run.plan.to_tables())
    figures = measure(small, again, None)
    assert figures == {name: run.metrics[name] for name in figures}


@pytest.mark.parametrize(
    ("table", "column", "value", "fault"),
    [
        ("configurations", "switch", 2.0, "configurations row 1: switch 2, there is only 1"),
        ("queues", "target_rack", "r0", "queues row 1: a rack has no queue to itself"),
        ("queues", "at_us", 7.0, "queues row 2: the queue is resized twice at one time"),
    ],
)
def test_tables_that_contradict_themselves_are_rejected(
    small: FlowsInTime, table: str, column: str, value: object, fault: str
) -> None:
    plan = run_design(small, "fixed", shifts=(1,)).plan
    queues = pd.DataFrame(
        {"at_us": [0.0, 5.0], "source_rack": "r0", "target_rack": "r1", "packets": [20.0, 16.0]}
    )
    plan = replace(plan, queues=queues)
    assert not len(SYSTEM.plan.check(small, plan))
    wrong = replace(plan, **{table: getattr(plan, table).assign(**{column: value})})
    with pytest.raises(PlanRejected) as caught:
        SYSTEM.plan.check(small, wrong)
    assert str(caught.value) == fault
