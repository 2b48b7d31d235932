"""Simulation by packets: conservation, plans of designs, failures, UDP, controls and pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import Curve, NetworkMap
from planner.contract.notes import observe_notes
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic import SYSTEM
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation import run as simulation
from planner_models.traffic.simulation.flow_network import PROGRESS
from planner_models.traffic.simulation.packet_network import PACKET_FLOWS, PACKET_LINKS, QUEUES


def run(
    name: str | None = "ecmp_hash", problem: Traffic | None = None, **parameters: Any
) -> SimulationResult:
    """Simulate a design by packets, 4 ms unless `parameters` say otherwise."""
    return simulation.run(
        generators.fat_tree(k=4, capacity_mbps=100.0, seed=1) if problem is None else problem,
        design=None if name is None else SYSTEM.design(name),
        information={},
        decision_parameters={},
        options=Options(),
        **{"model": "packets", "until_s": 0.004, "interval_s": 0.002, "median_bytes": 5e3, **parameters},
    )


def diamond(rate_mbps: float = 10.0) -> Traffic:
    """Return two ways of 30 and 10 Mbit/s between hosts."""
    ends = [("h", "a", 100.0), ("a", "b", 30.0), ("a", "c", 10.0)]
    ends += [("b", "d", 30.0), ("c", "d", 10.0), ("d", "g", 100.0)]
    links = pd.DataFrame(ends, columns=["tail", "head", "capacity_mbps"])
    back = links.rename(columns={"tail": "head", "head": "tail"})
    demands = pd.DataFrame([("h", "g", rate_mbps)], columns=["source", "target", "rate_mbps"])
    return Traffic.from_tables({"links": pd.concat([links, back], ignore_index=True), "demands": demands})


def ring(latency_ms: float | None = None) -> Traffic:
    """Return four routers in a ring of 50 Mbit/s, with demands between all of them."""
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    links = pd.DataFrame([*pairs, *((b, a) for a, b in pairs)], columns=["tail", "head"])
    links["capacity_mbps"] = 50.0
    if latency_ms is not None:
        links["latency_ms"] = latency_ms
    names = "abcd"
    demands = [(a, b, 10.0) for a in names for b in names if a != b]
    frame = pd.DataFrame(demands, columns=["source", "target", "rate_mbps"])
    return Traffic.from_tables({"links": links, "demands": frame})


def sent(result: SimulationResult) -> pd.Series[Any]:
    """Return the packets that each link accepted, by its ends."""
    return result.tables["links"].set_index(["tail", "head"])["sent"]


# --- tables and metrics -------------------------------------------------------------------


@pytest.mark.parametrize("arrivals", ["closed_loop", "poisson"])
def test_tables_are_as_declared_and_agree(arrivals: str) -> None:
    result = run(arrivals=arrivals, load=0.5)
    tables = {"flows": PACKET_FLOWS, "links": PACKET_LINKS, "queues": QUEUES, "progress": PROGRESS}
    assert result.tables.keys() == tables.keys()
    for name, table in tables.items():
        assert list(result.tables[name]) == list(table.columns)
    links, flows = result.tables["links"], result.tables["flows"]
    assert (links["sent"] >= links["received"] + links["cut"]).all()
    assert (links["longest_queue"] <= np.where(links["tail"].str.startswith("h"), 1000, 100)).all()
    ended = flows["end_s"].notna()
    assert (flows.loc[ended, "sent_bytes"] == flows.loc[ended, "size_bytes"]).all()
    assert result.tables["progress"]["sent_mbit"].iloc[-1] == pytest.approx(flows["sent_bytes"].sum() * 8e-6)
    assert result.metrics.keys() == {metric.name for metric in simulation.METRICS}


def test_equal_seeds_give_equal_runs() -> None:
    result, again, other = run(seed=3), run(seed=3), run(seed=4)
    assert result.metrics == again.metrics
    assert result.metrics != other.metrics


def test_pictures_show_queues_and_leave_the_run_the_same() -> None:
    with_frames, without = run(frames=True), run()
    assert with_frames.metrics == without.metrics
    picture, curve = with_frames.frames[-1].drawing, with_frames.drawings[0]
    assert isinstance(picture, NetworkMap)
    assert picture.title == "Links by queue"
    assert picture.links["note"].str.fullmatch(r"\d+ of 10{2,3} packets").all()
    assert isinstance(curve, Curve)
    assert list(curve.frame) == ["time", "longest queue", "mean of all queues"]
    assert curve.frame["longest queue"].max() <= 100


def test_links_have_their_own_delays() -> None:
    """A reply of the first packet is back after two links of 3 ms each."""
    flows = run(None, ring(3.0), median_bytes=500.0, sigma=0.0, until_s=0.1).tables["flows"]
    took_s = (flows["end_s"] - flows["start_s"])[flows["source"] + flows["target"] == "ab"]
    assert took_s.min() == pytest.approx(0.006, rel=0.2)


# --- routes of plans ----------------------------------------------------------------------


def test_a_plan_of_given_demands_is_followed_by_shares_of_its_links() -> None:
    """Of 40 Mbit/s the optimum sends three quarters over the wider way; so do the packets."""
    result = run(
        "optimum",
        diamond(40.0),
        decides="once",
        forwarding="split",
        until_s=0.05,
        sigma=0.0,
        median_bytes=1e6,
        duplicate_acks=30,
    )
    links = result.tables["links"].set_index(["tail", "head"])[["sent", "dropped"]].sum(axis=1)
    assert links["a", "b"] / (links["a", "b"] + links["a", "c"]) == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("name", ["optimum", "ecmp", "weights", "segment_routing", "hedera_gff", "valiant"])
def test_plans_of_every_kind_carry_packets_between_routers(name: str) -> None:
    result = run(name, ring(), decides="once", until_s=0.05)
    flows = result.tables["flows"]
    assert flows.groupby(["source", "target"])["sent_bytes"].sum().min() > 0
    assert result.metrics["throughput_mbps"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", [design.name for design in SYSTEM.designs])
def test_every_design_carries_packets_and_survives_a_failure(name: str) -> None:
    result = run(name, ring(), decides="once", until_s=0.2, fails=["a<->b"], fails_at_s=0.05)
    progress = result.tables["progress"]
    later = np.interp([0.15, 0.2], progress["at_s"], progress["sent_mbit"])
    assert later[1] - later[0] > 0.3


def test_flows_are_hashed_until_a_plan_divides_them() -> None:
    """Before its first interval LocalFlow does as hashing, and not as packet scatter."""
    early: dict[str, Any] = {"interval_s": 1.0, "until_s": 0.01}
    result = run("localflow", **early)
    assert result.metrics == run("localflow", forwarding="hash", **early).metrics
    assert result.metrics != run("packet_scatter", **early).metrics


@pytest.mark.parametrize("decides", ["once", "measured"])
@pytest.mark.parametrize("subflows", [1, 8])
def test_ecmp_by_hash_keeps_the_path_of_each_flow_and_subflow(decides: str, subflows: int) -> None:
    """Switches that hash need no decisions: all is as under no design."""
    parameters: dict[str, Any] = {"subflows": subflows, "until_s": 0.01}
    hashed = run("ecmp_hash", decides=decides, **parameters)
    assert hashed.metrics == run(None, **parameters).metrics
    assert len(hashed.rounds) >= 1


def test_subflows_under_ecmp_by_hash_take_several_paths() -> None:
    links = sent(run("ecmp_hash", diamond(), subflows=8, median_bytes=1e6, sigma=0.0, until_s=0.05))
    assert links["a", "b"] > 0
    assert links["a", "c"] > 0


def test_a_source_route_keeps_each_flow_on_one_path() -> None:
    links = sent(run("hedera_gff", diamond(), decides="once", median_bytes=1e6, sigma=0.0, until_s=0.05))
    assert sorted([links["a", "b"] > 0, links["a", "c"] > 0]) == [False, True]


# --- failures -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["optimum", "hedera_gff", "packet_scatter"])
def test_traffic_recovers_after_a_failure_is_known(name: str) -> None:
    result = run(
        name,
        ring(),
        decides="once",
        until_s=0.3,
        fails=["a<->b"],
        fails_at_s=0.1,
        repair_s=0.05,
        median_bytes=5e3,
        sigma=0.0,
    )
    links = result.tables["links"].set_index(["tail", "head"])
    assert links.loc[("a", "b"), "dropped"] > 0
    assert links.drop([("a", "b"), ("b", "a")])["cut"].sum() == 0
    progress, rounds = result.tables["progress"], result.rounds
    at = np.interp([0.1, 0.25, 0.3], progress["at_s"], progress["sent_mbit"])
    assert at[2] - at[1] > 0.3 * (at[0] / 2)
    assert rounds["start_s"].tolist() == [0.0, pytest.approx(0.15)]
    flows = result.tables["flows"]
    late = flows[(flows["source"] == "a") & (flows["target"] == "b") & (flows["start_s"] > 0.15)]
    assert late["end_s"].notna().any()


def test_links_that_fail_must_exist() -> None:
    with pytest.raises(InputError, match=r"simulation\.fails: 'a->z' matches no link"):
        run(None, ring(), fails=["a->z"])


# --- senders ------------------------------------------------------------------------------


def test_flows_of_every_control_share_a_network() -> None:
    flows = run(control="mixed", until_s=0.008).tables["flows"]
    assert set(flows["control"]) == {"reno", "cubic", "dctcp", "bbr"}


def test_controls_side_by_side_have_their_rates_and_one_alone_has_none() -> None:
    problem, long = ring(), {"median_bytes": 1e9, "sigma": 0.0, "until_s": 0.2}
    mixed, alone = run(None, problem, control="mixed", **long), run(None, problem, **long)
    names = ["reno_mbps", "cubic_mbps", "dctcp_mbps", "bbr_mbps"]
    rates = [mixed.metrics[name] for name in names]
    assert sum(rates) == pytest.approx(mixed.metrics["throughput_mbps"], rel=1e-6)
    assert min(rates) > 0
    assert [alone.metrics[name] for name in names] == [None] * 4


def test_udp_keeps_its_rate_and_one_path() -> None:
    result = run(
        "packet_scatter", diamond(), udp_share=1.0, udp_mbps=20.0, median_bytes=1e6, sigma=0.0, until_s=0.05
    )
    links, flows = sent(result), result.tables["flows"]
    assert set(flows["control"]) == {"udp"}
    assert sorted([links["a", "b"] > 0, links["a", "c"] > 0]) == [False, True]
    assert links["h", "a"] == pytest.approx(0.05 * 20e6 / 8000, abs=2)


def test_a_third_of_the_flows_is_udp() -> None:
    flows = run(udp_share=1 / 3, until_s=0.01).tables["flows"]
    assert (flows["control"] == "udp").mean() == pytest.approx(1 / 3, abs=0.15)


def test_flows_of_udp_classes_are_of_udp_and_no_others() -> None:
    problem = diamond()
    both = pd.DataFrame([("h", "g", 10.0, "voice"), ("h", "g", 10.0, "data")])
    both.columns = ["source", "target", "rate_mbps", "class"]
    problem = Traffic(nodes=problem.nodes, links=problem.links, demands=both)
    flows = run("localflow", problem, udp_classes=("voice",), udp_mbps=20.0, until_s=0.05).tables["flows"]
    assert {"udp", "reno"} == set(flows["control"])
    none = run("localflow", problem, udp_classes=("voice", "data"), until_s=0.02).tables["flows"]
    assert {"udp"} == set(none["control"])
    with pytest.raises(
        InputError, match="udp_classes: no demand has the class 'vioce'; did you mean 'voice'"
    ):
        run("localflow", problem, udp_classes=("vioce",))


def test_udp_above_the_link_of_its_host_is_refused() -> None:
    with pytest.raises(InputError, match=r"udp_mbps is 250, must be at most the rate of the links of h, 100"):
        run(None, diamond(), udp_share=0.5, udp_mbps=250.0)


def test_times_too_short_for_the_round_trip_are_said() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        run("localflow", interval_s=0.0005)
    assert any(
        note.startswith("warning: interval_s is 0.0005, less than the longest round trip") for note in notes
    )
    assert any(note.startswith("warning: until_s leaves 0.004 s to measure, ") for note in notes)
    notes.clear()
    with observe_notes(notes.append):
        run("localflow", interval_s=0.05, until_s=0.1)
    assert notes == []


# --- against fluid flows ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["localflow", "packet_scatter"])
def test_long_flows_that_are_split_come_near_to_fluid_ones(name: str) -> None:
    """Sixteen flows that every link could carry: at least nine tenths of the line rate.

    Flows are hashed until the first schedule, and their windows are sawtooths of some tenths of a second.
    """
    problem = generators.fat_tree(k=4, workload="permutation", seed=1)
    long: dict[str, Any] = {"median_bytes": 1e10, "sigma": 0.0, "until_s": 1.0, "warm_up_s": 0.2}
    long |= {"interval_s": 0.05, "duplicate_acks": 30}
    packets = run(name, problem, **long).metrics["throughput_mbps"]
    fluid = run(name, problem, **{**long, "model": "fluid"}).metrics["throughput_mbps"]
    assert packets is not None
    assert fluid is not None
    assert packets == pytest.approx(fluid, rel=0.1)


# --- bad input ----------------------------------------------------------------------------


def test_a_network_without_demand_is_refused() -> None:
    with pytest.raises(InputError, match="no demand has a rate above 0 and a path, so no flows run"):
        run(problem=diamond(0.0))


def test_a_path_back_is_needed() -> None:
    links = pd.DataFrame(
        [("a", "b", 1.0), ("b", "c", 1.0), ("c", "b", 1.0)], columns=["tail", "head", "capacity_mbps"]
    )
    demands = pd.DataFrame([("a", "c", 1.0)], columns=["source", "target", "rate_mbps"])
    with pytest.raises(InputError, match="a->c: there is no path back, by which replies to packets return"):
        run(problem=Traffic.from_tables({"links": links, "demands": demands}))
