"""Flow simulation against closed forms, a simulation in plain Python, and invariants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract import control_loop
from planner.contract.control_loop import Round
from planner.contract.design import Design, Mechanism
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic import SYSTEM
from planner_models.traffic.designs import localflow
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation import flow_level_simulation, flow_scheduler
from planner_models.traffic.simulation.flow_arrivals import MBIT_PER_BYTE, ClosedLoop, Lognormal, Poisson
from planner_models.traffic.simulation.flow_level_simulation import FlowRecord
from planner_models.traffic.simulation.flow_network import FlowDynamics, FlowNetwork
from planner_models.traffic.simulation.flow_scheduler import FlowCounters, RouteUpdate
from tests.models.traffic.plan.test_deployment import network, rows_of

OPTIMUM = SYSTEM.design("optimum")
LOCALFLOW = Design(name="localflow", decide=localflow.route, mechanism=Mechanism.NONE, source="-")


@dataclass(frozen=True)
class Given:
    """Sizes as they are listed, over and over."""

    sizes: Sequence[float]

    def mean_bytes(self) -> float:
        return float(np.mean(self.sizes))

    def sample(self, random: np.random.Generator, count: int) -> np.ndarray:  # noqa: ARG002
        return np.resize(np.array(self.sizes, dtype=float), count)


MEGABYTE = 1e6  # 8 Mbit


def pipe(*rates: float) -> Traffic:
    """Return demands from s0, s1, ... to t over one link of 8 Mbit/s, a megabyte a second."""
    names = [f"s{i}" for i in range(len(rates))]
    links = [(name, "m", 1e9) for name in names] + [("m", "t", 8.0)]
    return network(links, [(name, "t", rate) for name, rate in zip(names, rates, strict=True)])


def line() -> Traffic:
    """Return a -> b -> c, of 8 and 4 Mbit/s, with a demand between each pair, each with one path."""
    return network([("a", "b", 8.0), ("b", "c", 4.0)], [("a", "b", 3.0), ("b", "c", 1.0), ("a", "c", 2.0)])


# --- closed forms -------------------------------------------------------------------------


def test_one_flow_after_the_other() -> None:
    simulation = flow_level_simulation.simulate(pipe(1.0), sizes=Given([MEGABYTE, 2 * MEGABYTE]), until_s=6.5)
    assert simulation.flows["start_s"].tolist() == pytest.approx([0, 1, 3, 4, 6])
    assert simulation.flows["end_s"].tolist()[:4] == pytest.approx([1, 3, 4, 6])
    assert math.isnan(simulation.flows["end_s"].iloc[4])
    assert simulation.throughput_mbps() == pytest.approx(8.0)
    assert simulation.completion_s(since_s=0.5).tolist()[:3] == pytest.approx([2, 1, 2])
    assert simulation.flows["sent_bytes"].sum() == pytest.approx(6.5 * MEGABYTE)


def test_two_flows_share_and_the_last_has_it_all() -> None:
    """Sizes 1 and 3 MB at half a megabyte a second each: 1 ends at 2 s; a cap keeps it from more."""
    problem = pipe(1.0)
    sizes = Given([MEGABYTE, 3 * MEGABYTE, 100 * MEGABYTE])
    both = flow_level_simulation.simulate(
        problem, sizes=sizes, arrivals=ClosedLoop(flows_per_source=2), until_s=4.0
    )
    # the third starts at 2 s, so the second still has half: 3 MB take until 6 s
    assert both.flows["start_s"].tolist() == pytest.approx([0, 0, 2])
    assert both.flows["sent_bytes"].tolist() == pytest.approx([MEGABYTE, 2 * MEGABYTE, MEGABYTE])
    capped = flow_level_simulation.simulate(problem, sizes=Given([MEGABYTE]), until_s=4.0, flow_cap_mbps=2.0)
    assert capped.flows["end_s"].iloc[0] == pytest.approx(4.0)
    assert capped.throughput_mbps() == pytest.approx(2.0)


@pytest.mark.slow
def test_processor_sharing() -> None:
    """One link, Poisson arrivals: a flow of x bytes takes x / (C (1 - load)) on average (M/G/1-PS)."""
    sizes = Lognormal(median_bytes=MEGABYTE / 10 / math.exp(0.5), sigma=1.0)
    simulation = flow_level_simulation.simulate(
        pipe(2.0, 3.0), sizes=sizes, arrivals=Poisson(), until_s=4_000.0, seed=3
    )
    load = 5.0 / 8.0
    expected = 0.1 / (1 - load)
    flows = simulation.flows[simulation.flows["end_s"].notna()]
    assert len(flows) > 20_000
    assert simulation.completion_s(100.0).mean() == pytest.approx(expected, rel=0.06)
    # and, whatever their sizes, in proportion to them
    slowdown = (flows["end_s"] - flows["start_s"]) / (flows["size_bytes"] / MEGABYTE)
    large = flows["size_bytes"] > flows["size_bytes"].median()
    assert slowdown[large].mean() == pytest.approx(1 / (1 - load), rel=0.06)
    assert slowdown[~large].mean() == pytest.approx(1 / (1 - load), rel=0.06)
    assert simulation.throughput_mbps(100.0) == pytest.approx(5.0, rel=0.05)
    share = (flows["source"] == "s1").mean()
    assert share == pytest.approx(0.6, abs=0.02)


# --- against plain Python -----------------------------------------------------------------


def fair(paths: list[list[int]], capacity: list[float]) -> list[float]:
    """Compute max-min rates: fill the tightest link, freeze its flows, repeat."""
    rate = [0.0] * len(paths)
    remaining, open_ = list(capacity), set(range(len(paths)))
    while open_:
        share = {
            e: remaining[e] / sum(e in paths[f] for f in open_)
            for e in range(len(capacity))
            if any(e in paths[f] for f in open_)
        }
        tight = min(share, key=lambda e: (share[e], e))
        for f in [f for f in open_ if tight in paths[f]]:
            rate[f] = share[tight]
            open_.remove(f)
            for e in paths[f]:
                remaining[e] -= share[tight]
    return rate


def replay(
    flows: pd.DataFrame, path_of: dict[tuple[str, str], list[int]], capacity: list[float]
) -> dict[int, float]:
    """Compute the end times of flows from their start times and sizes."""
    coming = sorted(
        (row.start_s, row.flow, row.size_bytes * MBIT_PER_BYTE, path_of[row.source, row.target])
        for row in rows_of(flows)
    )
    now = 0.0
    there: dict[int, tuple[float, list[int]]] = {}
    ends: dict[int, float] = {}
    while coming or there:
        rates = dict(zip(there, fair([path for _, path in there.values()], capacity), strict=True))
        finish = {flow: now + size / rates[flow] for flow, (size, _) in there.items()}
        index = min([*finish.values(), *(start for start, *_ in coming[:1])])
        there = {flow: (size - rates[flow] * (index - now), path) for flow, (size, path) in there.items()}
        for flow in [flow for flow, time in finish.items() if time == index]:
            ends[flow] = index
            del there[flow]
        while coming and coming[0][0] <= index:
            _, flow, size, path = coming.pop(0)
            there[flow] = (size, path)
        now = index
    return ends


@pytest.mark.parametrize("seed", range(3))
def test_as_a_simulation_in_plain_python(seed: int) -> None:
    problem = line()
    sizes = Lognormal(median_bytes=MEGABYTE / 12, sigma=1.5)
    simulation = flow_level_simulation.simulate(
        problem, sizes=sizes, arrivals=Poisson(load=0.8), until_s=200.0, seed=seed
    )
    assert len(simulation.flows) > 300
    ends = replay(simulation.flows, {("a", "b"): [0], ("b", "c"): [1], ("a", "c"): [0, 1]}, [8.0, 4.0])
    for row in rows_of(simulation.flows):
        if math.isnan(row.end_s):
            assert ends[row.flow] >= 200.0 - 1e-6
        else:
            assert row.end_s == pytest.approx(ends[row.flow], abs=1e-6)


# --- what always holds --------------------------------------------------------------------


def tree(**parameters: Any) -> Traffic:
    return generators.fat_tree(k=4, seed=1, **parameters)


SIZES = Lognormal(median_bytes=0.65e6, sigma=1.5)


@pytest.mark.slow
def test_no_link_is_overloaded_and_traffic_is_conserved() -> None:
    problem = tree()
    net = FlowNetwork(problem, FlowDynamics(sizes=SIZES, arrivals=ClosedLoop(flows_per_source=3), seed=4))
    for index in np.linspace(0.01, 0.3, 30):
        net.advance(float(index))
        assert (net.load_mbps() <= problem.capacity_mbps * (1 + 1e-9)).all()
        seen = net.observe()
        assert len(seen.flow) == 3 * 16
        assert (np.diff(seen.flow) > 0).all()
    tables = net.record()
    flows = tables["flows"]
    assert tables["progress"]["sent_mbit"].iloc[-1] == pytest.approx(
        flows["sent_bytes"].sum() * MBIT_PER_BYTE
    )
    assert (flows["sent_bytes"] <= flows["size_bytes"] * (1 + 1e-9)).all()
    ended = flows["end_s"].notna()
    assert (flows["sent_bytes"][ended] == flows["size_bytes"][ended]).all()
    assert flows["flow"].tolist() == list(range(len(flows)))
    assert tables["progress"]["at_s"].is_monotonic_increasing


@pytest.mark.slow
def test_equal_seeds_give_equal_flows() -> None:
    def run(seed: int) -> FlowRecord:
        return flow_level_simulation.simulate(
            tree(), sizes=SIZES, until_s=0.2, design=OPTIMUM, interval_s=0.05, seed=seed
        )

    pd.testing.assert_frame_equal(run(1).flows, run(1).flows)
    assert run(1).flows["size_bytes"].iloc[0] != run(2).flows["size_bytes"].iloc[0]


@pytest.mark.slow
@pytest.mark.parametrize("start", ["hashed", "scattered"])
def test_ecmp_by_hash_keeps_the_path_of_each_flow(start: str) -> None:
    """Switches that hash need no decisions: flows of one demand keep different paths."""
    problem = generators.fat_tree(k=4, workload="permutation", seed=1)
    flows: dict[str, Any] = {
        "sizes": Lognormal(median_bytes=5e4, sigma=2.0),
        "arrivals": ClosedLoop(flows_per_source=4),
    }
    timing = {"until_s": 0.1, "interval_s": 0.01}
    hashed = flow_level_simulation.simulate(
        problem, design=SYSTEM.design("ecmp_hash"), start=start, **flows, **timing
    )
    alone = flow_level_simulation.simulate(problem, start="hashed", **flows, **timing)
    pd.testing.assert_frame_equal(hashed.flows, alone.flows)
    assert (hashed.rounds["outcome"] == "applied").sum() == 9


def test_designs_are_compared_on_the_same_flows() -> None:
    simulation = flow_level_simulation.simulate(tree(), sizes=SIZES, until_s=0.3, seed=5)
    other = flow_level_simulation.simulate(tree(), sizes=SIZES, until_s=0.3, seed=5, start="scattered")
    for source, current in simulation.flows.groupby("source"):
        its = other.flows[other.flows["source"] == source]
        both = min(len(current), len(its))
        assert current["size_bytes"].tolist()[:both] == its["size_bytes"].tolist()[:both]
        assert current["target"].tolist()[:both] == its["target"].tolist()[:both]
    assert len(simulation.flows) != len(other.flows)


def test_time_may_pass_in_pieces() -> None:
    full, pieces = (
        FlowNetwork(line(), FlowDynamics(sizes=SIZES, arrivals=Poisson(load=0.7), seed=1)) for _ in range(2)
    )
    full.advance(50.0)
    for index in np.linspace(0.1, 50.0, 500):
        pieces.advance(float(index))
    item, other = full.record()["flows"], pieces.record()["flows"]
    pd.testing.assert_frame_equal(item, other, rtol=1e-9)


def test_all_equal_flows_of_a_scattered_tree_run_at_line_rate() -> None:
    """Full bisection, and every host sends to and hears from one other: nothing collides."""
    simulation = flow_level_simulation.simulate(
        tree(), sizes=Given([MEGABYTE]), until_s=0.1, start="scattered"
    )
    ended = simulation.completion_s()
    assert ended.to_numpy() == pytest.approx(0.008)
    assert simulation.throughput_mbps() == pytest.approx(16_000)


@pytest.mark.slow
def test_rates_at_multiples_of_settle_s_come_close() -> None:
    exact = flow_level_simulation.simulate(tree(), sizes=SIZES, until_s=1.0)
    coarse = flow_level_simulation.simulate(tree(), sizes=SIZES, until_s=1.0, settle_s=1e-4)
    assert coarse.throughput_mbps() == pytest.approx(exact.throughput_mbps(), rel=0.03)
    assert coarse.throughput_mbps() != exact.throughput_mbps()
    # a flow cannot have sent before rates were first found after it came
    waited = flow_level_simulation.simulate(pipe(1.0), sizes=Given([MEGABYTE]), until_s=3.0, settle_s=0.7)
    assert waited.flows["end_s"].tolist()[:2] == pytest.approx([1.0, 2.4])


# --- the scheduler ------------------------------------------------------------------------


def two_paths() -> Traffic:
    """Return a demand from s to t over u or v, each of 8 Mbit/s."""
    ends = [("s", "u"), ("s", "v"), ("u", "t"), ("v", "t")]
    return network([(a, b, 8.0) for a, b in ends], [("s", "t", 16.0)])


def test_only_observed_flows_are_rerouted() -> None:
    problem = two_paths()
    net = FlowNetwork(problem, FlowDynamics(sizes=Given([MEGABYTE]), arrivals=ClosedLoop()))
    net.advance(0.25)
    assert sorted(net.load_mbps().tolist()) == [0, 0, 8, 8]
    seen = net.observe()
    plan = OPTIMUM.decide(problem, options=Options()).plan
    assert plan is not None
    share, decided = flow_scheduler.plan_shares(problem, plan)
    assert share.toarray().tolist() == [[0.5, 0.5, 0.5, 0.5]]
    steering = RouteUpdate(
        flow=seen.flow,
        share=share,
        decided=decided,
        decision=OPTIMUM.decide(problem, options=Options()),
    )
    net.apply(steering)
    net.advance(0.5)
    assert net.load_mbps().tolist() == pytest.approx([8, 8, 8, 8])
    # 0.75 MB at double speed: it ends at 0.625 s, and the next one starts on one way again
    net.advance(0.75)
    assert sorted(net.load_mbps().tolist()) == [0, 0, 8, 8]
    net.apply(steering)  # for a flow that has gone
    net.advance(0.8)
    assert sorted(net.load_mbps().tolist()) == [0, 0, 8, 8]
    flows = net.record()["flows"]
    assert flows["end_s"].iloc[0] == pytest.approx(0.625)


def test_a_flow_is_scheduled_at_every_interval_and_after_every_delay() -> None:
    """Alone on one of two ways, at 8 until the first decision takes effect, then at 16 Mbit/s."""
    for computing_s, link_s, effect in ((0.0, 0.0, 0.5), (0.25, 0.0, 0.75), (0.0, 0.1, 0.7)):
        simulation = flow_level_simulation.simulate(
            two_paths(),
            sizes=Given([MEGABYTE * 100]),
            until_s=2.0,
            design=OPTIMUM,
            interval_s=0.5,
            computing_s=computing_s,
            link_s=link_s,
        )
        assert simulation.flows["sent_bytes"].iloc[0] == pytest.approx(
            MEGABYTE * (effect + 2 * (2.0 - effect))
        )
        outcomes = simulation.rounds["outcome"].tolist()
        assert outcomes[0] == "unchanged"  # nothing has been measured yet
        assert simulation.rounds["effect_s"].iloc[1] == pytest.approx(effect)


def test_rates_are_bytes_over_the_time_since_the_last_measurement() -> None:
    problem = line()
    before = FlowCounters(
        at_s=1.0, flow=np.array([1, 4]), demand=np.array([0, 2]), sent_mbit=np.array([3.0, 1.0])
    )
    now = FlowCounters(
        at_s=1.5,
        flow=np.array([4, 5, 6]),
        demand=np.array([2, 2, 0]),
        sent_mbit=np.array([2.0, 0.25, 4.0]),
    )
    # flow 1 has gone; 4 sent 1 more, 5 and 6 are new
    assert flow_scheduler._measure_rates(problem, now, before).tolist() == [8.0, 0.0, 2.5]


@pytest.mark.slow
def test_shorter_intervals_serve_more() -> None:
    """The direction of Figure 10, on 16 hosts; never more than what splits everything can."""
    problem = tree()
    sizes = Lognormal(median_bytes=1.6e6, sigma=1.5)
    result = {
        interval: flow_level_simulation.simulate(
            problem, sizes=sizes, until_s=2.0, design=LOCALFLOW, interval_s=interval, seed=2
        ).throughput_mbps(0.2)
        for interval in (1.0, 0.1, 0.02)
    }
    hashed = flow_level_simulation.simulate(problem, sizes=sizes, until_s=2.0, seed=2).throughput_mbps(0.2)
    scattered = flow_level_simulation.simulate(problem, sizes=sizes, until_s=2.0, seed=2, start="scattered")
    assert hashed < result[0.1] < result[0.02] < scattered.throughput_mbps(0.2)
    assert result[1.0] < result[0.1]


def test_the_control_loop_runs_the_network() -> None:
    """Two schedulers at once: a slow one and a fast one."""
    problem = tree()
    net = FlowNetwork(problem, FlowDynamics(sizes=SIZES, arrivals=ClosedLoop()))
    controllers = [
        flow_scheduler.flow_controller(problem, SYSTEM.design("ecmp"), interval_s=0.1, computing_s=0.05),
        flow_scheduler.flow_controller(problem, OPTIMUM, interval_s=0.02),
    ]
    rounds = control_loop.run(net, controllers, until_s=0.3).rounds
    assert rounds["controller"].value_counts().to_dict() == {"optimum": 15, "ecmp": 3}


def test_a_scheduler_receives_its_previous_decision() -> None:
    handed: list[Any] = []

    def decide(problem: Traffic, *, options: Any, previous: Any) -> Any:
        handed.append(previous)
        return OPTIMUM.decide(problem, options=options)

    design = Design(name="d", decide=decide, mechanism=OPTIMUM.mechanism, source="-")
    controller = flow_scheduler.flow_controller(two_paths(), design, interval_s=1.0)
    seen = FlowCounters(at_s=1.0, flow=np.array([0]), demand=np.array([0]), sent_mbit=np.array([8.0]))
    first = controller.decide(seen, None)
    assert first is not None
    controller.decide(
        FlowCounters(at_s=2.0, flow=np.array([0]), demand=np.array([0]), sent_mbit=np.array([16.0])),
        Round(observed_s=1.0, observed=seen, decision=first),
    )
    assert handed == [None, first.decision]


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        (lambda: Lognormal(median_bytes=0), "median_bytes is 0, must be greater than 0"),
        (lambda: Lognormal(median_bytes=1, sigma=-1), "sigma is -1, must be at least 0"),
        (lambda: ClosedLoop(flows_per_source=0), "flows_per_source is 0, must be at least 1"),
        (lambda: Poisson(load=-1), "load is -1, must be greater than 0"),
        (
            lambda: flow_level_simulation.simulate(
                pipe(0.0), sizes=SIZES, until_s=1, flow_cap_mbps=0, settle_s=-1
            ),
            "\n".join(
                [
                    "no demand has a rate above 0, so no flows run",
                    "flow_cap_mbps is 0, must be greater than 0",
                    "settle_s is -1, must be at least 0",
                ]
            ),
        ),
        (
            lambda: flow_level_simulation.simulate(pipe(1.0), sizes=SIZES, until_s=-1),
            "until_s is -1, must be at least 0",
        ),
        (
            lambda: flow_level_simulation.simulate(
                pipe(1.0), sizes=SIZES, until_s=1, design=OPTIMUM, interval_s=0
            ),
            "optimum: period_s is 0, must be at least 1e-9",
        ),
    ],
)
def test_invalid_arguments_raise_errors(what: Any, fault: str) -> None:
    with pytest.raises(InputError) as error:
        what()
    assert str(error.value) == fault


def test_a_demand_without_a_rate_has_no_flows() -> None:
    simulation = flow_level_simulation.simulate(pipe(1.0, 0.0), sizes=Given([MEGABYTE]), until_s=2.0)
    assert set(simulation.flows["source"]) == {"s0"}
    simulation = flow_level_simulation.simulate(
        pipe(1.0, 0.0), sizes=Given([MEGABYTE]), arrivals=Poisson(), until_s=50.0
    )
    assert set(simulation.flows["source"]) == {"s0"}
