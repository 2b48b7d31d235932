"""Rules against packets: every packet is matched by priority, in plain Python, and counted."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic.designs import ecmp, localflow
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import multiresolution_splitting
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.multiresolution_splitting import Forwarding
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.published import one_switch
from tests.models.traffic.plan.test_deployment import network, networks, rows_of

Hop = tuple[str, str, int]
Packet = dict[str, Any]


class Switches:
    """A network with the rules that forwards packets, one at a time."""

    def __init__(self, made: Forwarding) -> None:
        rules = made.rules.sort_values("priority", ascending=False, kind="stable")
        self.rules: dict[str, list[Any]] = {}
        for rule in rows_of(rules):
            self.rules.setdefault(rule.node, []).append(rule)
        self.counters: Counter[tuple[str, Any, Any]] = Counter()

    def route(self, packet: Packet) -> list[Hop]:
        node, hops = packet["source"], []
        while node != packet["target"]:
            rule = next(rule for rule in self.rules[node] if self.matches(rule, node, packet))
            hops.append((node, rule.head, rule.parallel))
            self.counters[node, packet["source"], packet["target"]] += packet["bytes"]
            node = rule.head
            assert len(hops) < 50
        return hops

    def matches(self, rule: Any, node: str, packet: Packet) -> bool:
        for name in ("source", "target", "target_port"):
            requested = getattr(rule, name)
            if not (requested is None or pd.isna(requested)) and requested != packet[name]:
                return False
        if packet["source_port"] & rule.source_port_mask != rule.source_port_value:
            return False
        seen = packet["sequence"]
        if rule.field == "counter":
            seen = self.counters[node, packet["source"], packet["target"]]
        return bool(seen & rule.mask == rule.value)


def packets(
    source: str, target: str, sequence: Iterable[int], size: int = 1, source_port: int = 0
) -> list[Packet]:
    ends = {"source": source, "target": target, "source_port": source_port, "target_port": 80}
    return [{**ends, "sequence": index, "bytes": size} for index in sequence]


def shares(switches: Switches, sent: list[Packet]) -> dict[Hop, Fraction]:
    count = Counter(hop for packet in sent for hop in switches.route(packet))
    return {hop: Fraction(number, len(sent)) for hop, number in count.items()}


def shares_of_rules(made: Forwarding, source: str, target: str) -> dict[Hop, Fraction]:
    """Return the share of a demand on each link when every node splits it by the ratios of the rules."""
    rows = made.ratios[made.ratios["target"] == target]
    rows = rows[rows["source"].isna() | (rows["source"] == source)]
    result: dict[Hop, Fraction] = {}
    here = {source: Fraction(1)}
    while here:
        there: dict[str, Fraction] = {}
        for node, amount in here.items():
            for row in rows_of(rows[rows["node"] == node]):
                share = amount * Fraction(row.share)
                if share:
                    hop = (node, row.head, row.parallel)
                    result[hop] = result.get(hop, Fraction(0)) + share
                    if row.head != target:
                        there[row.head] = there.get(row.head, Fraction(0)) + share
        here = there
    return result


def star(shares: Iterable[float]) -> tuple[Traffic, Routing]:
    """Return a plan in which a sends to z over the middle nodes m0, m1, ... in the given shares."""
    parts = np.array(list(shares), dtype=float)
    middles = [f"m{i}" for i in range(len(parts))]
    problem = network([("a", m, 1.0) for m in middles] + [(m, "z", 1.0) for m in middles], [("a", "z", 1.0)])
    flow = np.r_[parts, parts][None, :] / parts.sum()
    return problem, routing.routing_by_demand(problem, sp.coo_array(flow))


# --- one switch ---------------------------------------------------------------------------


def test_the_papers_example() -> None:
    """Figure 3: a flow split over three links by quarters, in flowlets of 1,024 bytes: three rules."""
    problem, plan = star([1, 1, 2])
    made = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=2, flowlet_bytes=1_024)
    at_a = made.rules[made.rules["node"] == "a"].sort_values("priority", ascending=False)
    assert at_a["kind"].tolist() == ["subflow"] * 3
    assert at_a["mask"].tolist() == [0b11 << 10, 0b11 << 10, 0]
    assert at_a["value"].tolist() == [0b00 << 10, 0b01 << 10, 0]
    assert at_a["head"].tolist() == ["m0", "m1", "m2"]
    assert at_a["memory"].tolist() == ["tcam"] * 3
    assert made.ratios.query("node == 'a'")["share"].tolist() == [0.25, 0.25, 0.5]
    # a flow of 1,000-byte packets changes links once it has sent a flowlet, not within it
    heads = [Switches(made).route(packet)[0][1] for packet in packets("a", "z", range(0, 8_192, 512), 512)]
    assert heads == ["m0"] * 2 + ["m1"] * 2 + ["m2"] * 4 + ["m0"] * 2 + ["m1"] * 2 + ["m2"] * 4


def test_an_unsplit_flow_is_one_exact_rule_at_each_switch() -> None:
    problem, plan = star([1])
    flows = pd.DataFrame({"source": "a", "target": "z", "source_port": [1024, 1025], "target_port": 80})
    made = multiresolution_splitting.compile_rules(problem, plan, flows=flows)
    assert made.rules["memory"].tolist() == ["sram"] * 4
    assert made.rules["source_port_value"].tolist() == [1024, 1025] * 2
    assert made.rules["source_port_mask"].tolist() == [0xFFFF] * 4
    assert made.entries.to_dict("list") == {
        "node": ["a", "m0"],
        "sram": [2, 2],
        "tcam": [0, 0],
        "flows": [2, 2],
        "split_flows": [0, 0],
        "subflows": [2, 2],
    }
    assert (made.split_share, made.subflows_per_flow) == (0.0, 1.0)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(0.001, 1), min_size=1, max_size=9), st.integers(1, 9), st.sampled_from([1, 2, 1_000])
)
def test_packets_are_split_by_the_stated_ratios(parts: list[float], bits: int, flowlet: int) -> None:
    problem, plan = star(parts)
    made = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=bits, flowlet_bytes=flowlet)
    step = 1 << (flowlet - 1).bit_length()
    start = 5 * step << bits  # initial sequence numbers are arbitrary; a whole period is sent
    sent = packets("a", "z", range(start, start + (step << bits), step))
    result = shares(Switches(made), sent)
    assert result == shares_of_rules(made, "a", "z")
    for i, share in enumerate(parts):
        assert abs(result.get(("a", f"m{i}", 1), Fraction(0)) - Fraction(share / sum(parts))) < Fraction(
            1, 2**bits
        )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda s: sum(s) > 1e-3), st.integers(0, 12))
def test_apportionment(wanted: list[float], bits: int) -> None:
    parts = multiresolution_splitting.apportion(wanted, bits)
    assert parts.sum() == 2**bits
    assert (parts >= 0).all()
    assert np.abs(parts / 2**bits - np.array(wanted) / sum(wanted)).max() < 2.0**-bits
    if all(share == wanted[0] for share in wanted):
        assert np.ptp(parts) <= 1


def test_apportionment_minimizes_the_largest_error() -> None:
    """Compared with every apportionment of 8 parts."""
    random = np.random.default_rng(3)
    for _ in range(40):
        requested = random.dirichlet(np.ones(3))
        every = [p for p in itertools.product(range(9), repeat=3) if sum(p) == 8]
        best = min(float(np.abs(np.array(p) / 8 - requested).max()) for p in every)
        assert float(
            np.abs(multiresolution_splitting.apportion(requested, 3) / 8 - requested).max()
        ) == pytest.approx(best)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 16), min_size=1, max_size=6), st.integers(0, 5))
def test_blocks_cover_each_value_once(counts: list[int], bits: int) -> None:
    parts = tuple(multiresolution_splitting.apportion(np.array(counts) + 1e-9, bits).tolist())
    *blocks, remainder = multiresolution_splitting.dyadic_blocks(parts)
    assert remainder[1:] == (0, 0)
    taken: Counter[int] = Counter()
    for value in range(2**bits):
        ways = [way for way, high, length in blocks if value >> (bits - length) == high]
        assert len(ways) <= 1, "two blocks of the same priority must not meet"
        taken[ways[0] if ways else remainder[0]] += 1
    assert [taken[way] for way in range(len(parts))] == list(parts)
    ones = sorted(count.bit_count() for count in parts)
    assert len(blocks) + 1 == sum(ones[:-1]) + 1


# --- several switches in a row ------------------------------------------------------------


def test_flowlets_of_two_and_one_segments_use_the_same_bit() -> None:
    """Section 5.1's example, on its 128 hosts: an edge switch of 4 uplinks with t = 2 segments, then
    an aggregation switch of 4 with t = 1: of the 16 paths, packets take 8. A switch's second bit is
    the next one's first. The compiler gives each its own bits, and all 16 are taken."""
    two, item = 11, 10
    taken = {(index >> two & 3, index >> item & 3) for index in range(0, 1 << 16, 1 << item)}
    assert len(taken) == 8

    uplinks = [("e", f"a{i}", 1.0) for i in range(4)]
    cores = [(f"a{i}", f"c{i}{j}", 1.0) for i in range(4) for j in range(4)]
    down = [(f"c{i}{j}", "z", 1.0) for i in range(4) for j in range(4)]
    problem = network(uplinks + cores + down, [("e", "z", 1.0)])
    plan = ecmp.route(problem).plan
    assert plan is not None
    made = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=2, flowlet_bytes=1 << item)
    result = shares(Switches(made), packets("e", "z", range(0, 1 << 16, 1 << item)))
    assert [result[f"c{i}{j}", "z", 1] for i in range(4) for j in range(4)] == [Fraction(1, 16)] * 16


def test_packets_in_a_fat_tree_are_split_as_planned() -> None:
    problem = generators.fat_tree(k=4, seed=2)
    plan = ecmp.route(problem).plan
    assert plan is not None
    made = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=1, flowlet_bytes=1)
    switches = Switches(made)
    load: dict[Hop, Fraction] = defaultdict(Fraction)
    for demand in rows_of(problem.demands):
        for hop, share in shares(switches, packets(demand.source, demand.target, range(4))).items():
            load[hop] += share * Fraction(demand.rate_mbps)
    for link in rows_of(plan.links):
        assert float(load[link.tail, link.head, link.parallel]) == pytest.approx(link.load_mbps, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(networks(), st.integers(1, 3))
def test_packets_through_any_plan(problem: Traffic, bits: int) -> None:
    """All blocks of a whole period: each demand's packets divide as the rules' ratios multiply."""
    plan = optimum.route(problem, objective="concurrent").plan
    assert plan is not None
    made = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=bits, flowlet_bytes=1)
    assert (np.abs(made.ratios["wanted"] - made.ratios["share"]) < 2.0 ** -made.ratios["bits"]).all()
    switches = Switches(made)
    used = int(made.rules["mask"].max()).bit_length()
    if used > 9:  # more packets than a test should send; nothing else differs
        return
    for demand in rows_of(problem.demands):
        sent = packets(demand.source, demand.target, range(1 << used))
        assert shares(switches, sent) == shares_of_rules(made, demand.source, demand.target)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(networks(), st.integers(2, 4))
def test_counters_split_the_packets_of_each_switch(problem: Traffic, bits: int) -> None:
    """Each switch has its own counter, so its ratios are exact over whole periods of its packets."""
    plan = optimum.route(problem, objective="utilization").plan
    assert plan is not None
    made = multiresolution_splitting.compile_rules(
        problem, plan, split_on="counter", resolution_bits=bits, flowlet_bytes=1
    )
    assert (made.ratios["bits"] == bits).all()
    for demand in rows_of(problem.demands):
        switches = Switches(made)
        hops = Counter(
            hop
            for packet in packets(demand.source, demand.target, [0] * 512)
            for hop in switches.route(packet)
        )
        current = made.ratios.query("source == @demand.source and target == @demand.target")
        for row in rows_of(current):
            seen = sum(count for (node, _, _), count in hops.items() if node == row.node)
            got = hops[row.node, row.head, row.parallel]
            assert abs(got - row.share * seen) <= 2**bits  # of the last, unfinished period


# --- metaflows ----------------------------------------------------------------------------


def test_metaflows_as_in_the_papers_figure() -> None:
    problem, plan = star([1, 1, 2])
    made = multiresolution_splitting.compile_rules(problem, plan, match="target", resolution_bits=2)
    at_a = made.rules[made.rules["node"] == "a"].sort_values("priority", ascending=False)
    assert at_a["source"].isna().all()
    assert at_a["kind"].tolist() == ["metaflow"] * 3
    assert at_a["source_port_mask"].tolist() == [0b11, 0b11, 0]
    assert at_a["head"].tolist() == ["m0", "m1", "m2"]
    # one rule for each target at switches that do not split it, in wildcard memory all the same
    assert made.entries[["sram", "tcam"]].to_numpy().tolist() == [[0, 3], [0, 1], [0, 1], [0, 1]]
    flows = [packets("a", "z", [seq], source_port=port)[0] for port in range(64) for seq in (0, 5_000)]
    result = shares(Switches(made), flows)
    assert [result["a", f"m{i}", 1] for i in range(3)] == [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    # a flow keeps to its path
    item = {tuple(Switches(made).route(p)) for p in packets("a", "z", range(0, 99_999, 777), source_port=7)}
    assert len(item) == 1


def test_metaflows_may_be_split_on_sequence_numbers_too() -> None:
    problem, plan = star([3, 5])
    made = multiresolution_splitting.compile_rules(
        problem, plan, match="target", split_on="sequence", resolution_bits=3, flowlet_bytes=1
    )
    result = shares(Switches(made), packets("a", "z", range(8), source_port=7))
    assert (result["a", "m0", 1], result["a", "m1", 1]) == (Fraction(3, 8), Fraction(5, 8))


def test_metaflows_of_a_fat_tree_need_fewer_rules() -> None:
    problem = generators.fat_tree(k=4, seed=2)
    plan = ecmp.route(problem).plan
    assert plan is not None
    by_flow = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=1)
    by_target = multiresolution_splitting.compile_rules(problem, plan, match="target", resolution_bits=1)
    assert len(by_target.rules) <= len(by_flow.rules)
    switches = Switches(by_target)
    for demand in rows_of(problem.demands):
        ports = [packets(demand.source, demand.target, [0], source_port=port)[0] for port in range(16)]
        assert shares(switches, ports) == shares_of_rules(by_target, demand.source, demand.target)


# --- LocalFlow at one switch --------------------------------------------------------------


def test_slack_splits_fewer_flows_and_takes_fewer_rules() -> None:
    """The direction of Figure 9, through the plan and its rules; unsplit flows need no wildcards."""
    problem = one_switch(links=8, flows=200, targets=40, seed=1)
    tcam, split = [], []
    for delta in (0.0, 0.01, 0.05, 1e9):
        plan = localflow.route(problem, delta=delta).plan
        assert plan is not None
        index = (
            multiresolution_splitting.compile_rules(problem, plan)
            .entries.set_index("node")
            .loc["switch"]
            .astype(int)
            .to_dict()
        )
        assert index["flows"] == 200
        assert index["sram"] == index["flows"] - index["split_flows"]
        # at most one split less than links for each target (section 4.2)
        assert index["subflows"] - index["flows"] <= 40 * 7
        tcam.append(index["tcam"])
        split.append(index["split_flows"])
    assert tcam == sorted(tcam, reverse=True)
    assert split == sorted(split, reverse=True)
    assert split[0] > 50
    assert split[-1] == tcam[-1] == 0


# --- errors -------------------------------------------------------------------------------


def ladder(splits: int) -> Traffic:
    """Return a row of nodes with two links from each to the next."""
    links = [(f"n{i}", f"n{i + 1}", 1.0) for i in range(splits) for _ in range(2)]
    return network(links, [("n0", f"n{splits}", 1.0)])


def test_bits_are_shared_between_splits_in_a_row() -> None:
    problem = ladder(10)
    plan = ecmp.route(problem).plan
    assert plan is not None
    made = multiresolution_splitting.compile_rules(problem, plan, resolution_bits=6, flowlet_bytes=1_024)
    assert set(made.ratios["bits"]) == {2}  # 22 bits above the flowlet, for 10 switches
    assert int(made.rules["mask"].max()) == 0b10 << 28
    with pytest.raises(InputError) as error:
        multiresolution_splitting.compile_rules(problem, plan, flowlet_bytes=1 << 23)
    assert str(error.value) == (
        "traffic to 'n10' may be split 10 times in a row, but the sequence has only 9 bits to "
        "distinguish its parts: split on 'counter', or use smaller flowlets"
    )


def test_invalid_combinations_are_errors() -> None:
    problem, plan = star([1, 1])
    with pytest.raises(InputError, match="split_on is 'source port', but a flow has one port"):
        multiresolution_splitting.compile_rules(problem, plan, split_on="source port")
    flows = pd.DataFrame({"source": ["a"], "target": ["z"], "source_port": [1], "target_port": [2]})
    with pytest.raises(InputError, match="flows are given, but match is 'target'"):
        multiresolution_splitting.compile_rules(problem, plan, match="target", flows=flows)
    with pytest.raises(InputError, match="flows row 1: z->a is no demand of the problem"):
        multiresolution_splitting.compile_rules(problem, plan, flows=flows.assign(source="z", target="a"))
    with pytest.raises(InputError, match="flows row 1: source_port is 65536"):
        multiresolution_splitting.compile_rules(problem, plan, flows=flows.assign(source_port=65_536))
    together = routing.routing_from_tables(problem, {"flows": plan.flows.drop(columns="source")})
    with pytest.raises(InputError, match="the plan's flows have no source"):
        multiresolution_splitting.compile_rules(problem, together)
    assert len(multiresolution_splitting.compile_rules(problem, together, match="target").rules) == 4


def test_a_plan_with_a_cycle_raises_an_error() -> None:
    links = [("a", "b", 9.0), ("b", "c", 9.0), ("c", "b", 9.0), ("c", "d", 9.0)]
    problem = network(links, [("a", "d", 1.0)])
    plan = routing.routing_by_demand(problem, sp.coo_array(np.array([[1.0, 1.5, 0.5, 1.0]])))
    with pytest.raises(InputError, match="the plan's routes form a cycle"):
        multiresolution_splitting.compile_rules(problem, plan)


def test_a_plan_without_traffic_has_no_rules() -> None:
    problem, plan = star([1])
    empty = routing.routing_by_demand(problem, sp.coo_array((1, 2)))
    made = multiresolution_splitting.compile_rules(problem, empty)
    assert made.rules.empty
    assert made.split_share == 0
    assert len(plan.flows)
