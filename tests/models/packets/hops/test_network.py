"""A network of several hops against its plain twin, closed forms, and conservation on each link."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.packets.controls import CONTROLS
from planner_models.packets.hops import layout
from planner_models.packets.hops.access import add_hosts
from planner_models.packets.hops.forwarding import HASH, MODES, SCATTER, SOURCE, fill_slots
from planner_models.packets.hops.loop import advance
from planner_models.packets.hops.network import (
    FlowList,
    PacketNetwork,
    PacketSettings,
    add_flows,
    build_network,
)
from planner_models.packets.hops.routes import Links
from planner_models.packets.hops.senders import UDP
from planner_models.packets.state import NOW, SENT, TICKS_PER_US
from tests.models.packets.hops.twin import Flow, Twin

RENO = CONTROLS.index("reno")


def make_links(pairs: list[tuple[int, int]], mbps: Any = 1000.0) -> Links:
    """Return links in both directions between these nodes."""
    ends = np.array([*pairs, *((head, tail) for tail, head in pairs)])
    return Links(
        tail=ends[:, 0],
        head=ends[:, 1],
        capacity_mbps=np.broadcast_to(np.asarray(mbps, float), len(ends)).copy(),
        weight=np.ones(len(ends)),
        nodes=int(ends.max()) + 1,
    )


def make_flows(source: Any, target: Any, packets: Any, **values: Any) -> FlowList:
    """Return flows that start at 0, of Reno and by a hash, where `values` does not say otherwise."""
    count = len(np.atleast_1d(packets))
    usual = {"start_us": 0.0, "control": RENO, "mode": HASH, "list_of": -1, "rate_mbps": 0.0}
    columns = {**usual, "source": source, "target": target, "packets": packets, **values}
    kinds = {"start_us": float, "rate_mbps": float}
    return FlowList(
        **{
            name: np.broadcast_to(np.asarray(value, kinds.get(name, np.int64)), count).copy()
            for name, value in columns.items()
        }
    )


LINE = [(0, 2), (2, 3), (3, 1)]
"""Two hosts, 0 and 1, behind a switch each."""
LEAVES = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]
"""Two hosts behind each of two leaves, which two spines join."""


def conserve(network: PacketNetwork) -> None:
    """Assert that what has entered each link has left it, or is on it."""
    on_link = network.of("accepted") - network.of("arrived")
    assert (on_link >= 0).all()
    hosts = network.flows.access // network.state.at.links_stride
    replies = int(network.of("replies")[hosts].sum())
    sent = int(network.of("accepted")[hosts].sum() + network.of("dropped")[hosts].sum())
    assert sent >= network.state.ints[SENT]
    assert replies <= sent


# --- closed forms -------------------------------------------------------------------------


def test_one_packet_takes_the_time_of_its_links_and_delays() -> None:
    """8 us on each of three links, 0.32 us of its reply, and six delays of 100 us."""
    network = build_network(make_links(LINE), make_flows(0, 1, [1]), PacketSettings(), ends=np.array([0, 1]))
    network.advance(1e5)
    assert network.flows.end_ticks[0] / TICKS_PER_US == pytest.approx(3 * 8 + 3 * 0.32 + 600)


def test_slow_start_of_one_flow_takes_its_round_trips() -> None:
    """Windows of 2, 4, 8 and 16 packets, one a round trip, then the last one and its reply."""
    network = build_network(make_links(LINE), make_flows(0, 1, [30]), PacketSettings(), ends=np.array([0, 1]))
    network.advance(1e5)
    trip = 3 * 8 + 3 * 0.32 + 600
    assert network.flows.end_ticks[0] / TICKS_PER_US == pytest.approx(4 * trip + 15 * 8, rel=0.01)


@pytest.mark.slow
def test_the_sawtooth_of_one_flow_fills_the_link() -> None:
    """A queue of more than the product of rate and round trip never empties: one flow fills the link."""
    network = build_network(
        make_links(LINE, [1000.0, 500.0, 1000.0] * 2),
        make_flows(0, 1, [1_000_000]),
        PacketSettings(queue_packets=100, hop_delay_us=100.0, largest_window=1000),
        ends=np.array([0, 1]),
    )
    network.advance(1e6)
    before, dropped = int(network.acknowledged()[0]), int(network.of("dropped").sum())
    network.advance(4e6)
    assert network.of("dropped").sum() > dropped
    assert (int(network.acknowledged()[0]) - before) * 16 == pytest.approx(3e6, rel=0.01)
    conserve(network)


@pytest.mark.slow
def test_the_sawtooth_over_a_short_queue_has_the_mean_of_its_windows() -> None:
    """Over a queue shorter than the product the window is half of product and queue to all of it."""
    delay_us, queue, packets = 1000.0, 20, 400_000
    network = build_network(
        make_links(LINE, [10_000.0, 100.0, 10_000.0] * 2),
        make_flows(0, 1, [packets]),
        PacketSettings(queue_packets=queue, hop_delay_us=delay_us, largest_window=1000, first_window=2),
        ends=np.array([0, 1]),
    )
    network.advance(1e7)
    before = int(network.acknowledged()[0])
    network.advance(3e7)
    rate = (int(network.acknowledged()[0]) - before) / 2e7
    service = 80.0
    trip = 6 * delay_us + service + 2 * 0.8 + 3.2 + 2 * 0.032
    product = trip / service
    largest = product + queue
    # windows grow by one a round trip, from a half; below the product they send a window each round trip
    windows = np.arange(largest / 2, largest)
    trips = np.maximum(windows, product) * service
    assert rate * service == pytest.approx(float(windows.sum() * service / trips.sum()), rel=0.01)


@pytest.mark.slow
def test_poisson_arrivals_without_control_wait_as_in_m_d_1() -> None:
    random, load, count = np.random.default_rng(1), 0.5, 400_000
    start = np.cumsum(random.exponential(8.0 / load, count))
    network = build_network(
        make_links(LINE, [1000.0, 1e6, 1e6] * 2),
        make_flows(0, 1, np.ones(count), start_us=start, control=UDP, rate_mbps=1.0),
        PacketSettings(host_queue_packets=100_000),
        ends=np.array([0, 1]),
        active=1_000,
    )
    network.advance(float(start[-1]) + 1e5)
    wait = (network.flows.end_ticks - network.flows.start_ticks) / TICKS_PER_US - (300 + 8 + 2 * 0.008)
    assert (network.flows.end_ticks > 0).all()
    assert wait.mean() == pytest.approx(load * 8.0 / (2 * (1 - load)), rel=0.02)


# --- forwarding ---------------------------------------------------------------------------


def test_slots_are_divided_by_largest_remainder_and_spread() -> None:
    slots = fill_slots(np.array([0.25, 0.25, 0.5]))
    assert np.bincount(slots).tolist() == [16, 16, 32]
    # of any eight consecutive slots four are of the half
    assert all((slots[first : first + 8] == 2).sum() == 4 for first in range(0, 64, 8))


def test_scattered_packets_take_both_spines_evenly() -> None:
    network = build_network(
        make_links(LEAVES),
        make_flows(0, 2, [200], mode=SCATTER),
        PacketSettings(duplicate_acks=30),
        ends=np.arange(4),
    )
    network.advance(1e6)
    assert network.of("accepted")[4:6].tolist() == [100, 100]


@pytest.mark.parametrize("mode", ["split", "split_random"])
def test_a_flow_that_no_plan_schedules_is_not_split(mode: str) -> None:
    network = build_network(
        make_links(LEAVES),
        make_flows(0, 2, [200], mode=MODES.index(mode)),
        PacketSettings(),
        ends=np.arange(4),
    )
    network.advance(1e6)
    assert sorted(network.of("accepted")[4:6].tolist()) == [0, 200]


def test_split_flows_take_the_shares_of_their_tables() -> None:
    links = make_links(LEAVES)
    network = build_network(
        links,
        make_flows(0, 2, [320], mode=MODES.index("split")),
        PacketSettings(duplicate_acks=30),
        ends=np.arange(4),
    )
    parts = {(0, 4): 1.0, (4, 6): 0.75, (4, 7): 0.25, (6, 5): 0.75, (7, 5): 0.25, (5, 2): 1.0}
    pairs = zip(links.tail.tolist(), links.head.tolist(), strict=True)
    share = np.array([[parts.get(ends, 0.0) for ends in pairs]])
    network.set_routes(sp.csr_array(share), np.array([0]), np.array([0]), np.array([0]))
    network.advance(1e6)
    assert network.of("accepted")[4:6].tolist() == [240, 80]


def test_a_loop_in_forwarding_is_refused() -> None:
    links = make_links(LEAVES)
    network = build_network(links, make_flows(0, 2, [1]), PacketSettings(), ends=np.arange(4))
    share = sp.csr_array((np.ones(2), ([0, 0], [4, 12])), shape=(1, len(links.tail)))
    with pytest.raises(InputError, match="forwarding of demand 0 has a loop through node 4"):
        network.set_routes(share, np.array([0]), np.array([0]), np.array([0]))


def test_packets_follow_the_links_of_a_source_route_even_twice() -> None:
    """From host 0 to host 1 of one leaf by way of a spine and back, then of the other spine."""
    links = make_links(LEAVES)
    index = {
        ends: link for link, ends in enumerate(zip(links.tail.tolist(), links.head.tolist(), strict=True))
    }
    network = build_network(links, make_flows(0, 1, [50]), PacketSettings(), ends=np.arange(4))
    walk = np.array([index[ends] for ends in itertools.pairwise([4, 6, 4, 7, 4, 1])])
    network.set_source_routes([walk], np.array([0]), np.array([[0]]))
    network.advance(1e6)
    taken = network.of("accepted") - network.of("replies")
    assert network.flows.end_ticks[0] > 0
    assert taken[walk].tolist() == [50] * 5
    assert taken.sum() == 50 * 6


def test_a_source_route_longer_than_packets_can_count_is_refused() -> None:
    network = build_network(make_links(LINE), make_flows(0, 1, [1]), PacketSettings(), ends=np.array([0, 1]))
    with pytest.raises(InputError, match="a source route has 600 links, must have fewer than 512"):
        network.set_source_routes([np.tile([1, 4], 300)], np.array([0]), np.array([[0]]))


def test_a_cut_link_loses_what_waits_and_shortest_paths_avoid_it() -> None:
    links = make_links(LEAVES)
    network = build_network(
        links, make_flows(0, 2, [4000], mode=SCATTER), PacketSettings(duplicate_acks=30), ends=np.arange(4)
    )
    network.advance(5e3)
    before = network.of("arrived").copy()
    network.fail_links(np.array([4]))  # from the leaf to a spine
    network.advance(6e3)
    assert network.of("dropped")[4] > 0
    network.avoid_links(np.arange(len(links.tail)) == 4)
    dropped = int(network.of("dropped")[4])
    network.advance(1e6)
    assert network.flows.end_ticks[0] > 0
    assert network.of("dropped")[4] == dropped
    assert network.of("arrived")[5] - before[5] > 1.9 * (network.of("arrived")[4] - before[4])
    conserve(network)


def test_a_paced_sender_that_times_out_sends_again() -> None:
    """The pace may hold its packet back after a timeout, which must not pass again at once."""
    count = 12
    network = build_network(
        make_links(
            [*((host, count) for host in range(count)), (count, count + 1)],
            [1000.0] * count + [20.0] + [1000.0] * count + [20.0],
        ),
        make_flows(np.arange(count), count + 1, np.full(count, 60), control=CONTROLS.index("bbr")),
        PacketSettings(queue_packets=4),
        ends=np.r_[np.arange(count), count + 1],
    )
    network.advance(2e6)
    assert network.flows.timeouts.sum() > 0
    assert (network.flows.end_ticks > 0).all()


def test_packets_without_a_path_are_lost() -> None:
    links = make_links(LINE)
    network = build_network(
        links, make_flows(0, 1, [9], control=UDP, rate_mbps=800.0), PacketSettings(), ends=np.array([0, 1])
    )
    network.avoid_links(np.arange(len(links.tail)) == 1)
    network.advance(1e6)
    assert network.state.ints[layout.UNROUTED] == network.flows.lost[0] == 9


def test_routers_get_hosts_and_hosts_none() -> None:
    links = make_links([(0, 1), (1, 2), (2, 3)], 10.0)
    with_hosts = add_hosts(links, np.array([0, 1]), np.full(6, 5.0))
    assert with_hosts.host_of.tolist() == [0, 4, -1, -1]
    assert with_hosts.down.tolist() == [-1, 7, -1, -1]
    ends = list(zip(with_hosts.links.tail.tolist(), with_hosts.links.head.tolist(), strict=True))
    assert ends[6:] == [(4, 1), (1, 4)]
    assert with_hosts.links.capacity_mbps[6:].tolist() == [20.0, 20.0]
    assert with_hosts.links.delay_us is not None
    assert with_hosts.links.delay_us.tolist() == [5.0] * 6 + [0.0] * 2


# --- the twin -----------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """A leaf-spine network with a few flows of every kind, and short queues."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    subflows, listed = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([0, 0, 2]))
    count = draw(st.integers(1, 8)) + (12 if listed else 0)
    source = random.integers(0, 4, count)
    how = PacketSettings(
        packet_bytes=draw(st.sampled_from([1000, 137])),
        queue_packets=draw(st.sampled_from([2, 5, 30])),
        host_queue_packets=draw(st.sampled_from([4, 1000])),
        hop_delay_us=draw(st.sampled_from([0.0, 10.0, 31.7])),
        largest_window=draw(st.sampled_from([4, 40])),
        least_timeout_ms=draw(st.sampled_from([0.3, 1.0])),
        duplicate_acks=draw(st.sampled_from([1, 3, 10])),
        subflows=subflows,
        coupling=draw(st.sampled_from(["lia", "none"])),
        flowlet_packets=draw(st.sampled_from([1, 4])),
        acks=draw(st.sampled_from(["as_data", "hashed"])),
        mark_packets=draw(st.sampled_from([None, 1])),
        queue_rule=draw(st.sampled_from(["tail", "tail", "red", "codel"])),
        codel_target_us=20.0,
        codel_interval_us=200.0,
    )
    flows = make_flows(
        source,
        (source + random.integers(1, 4, count)) % 4,
        random.integers(1, 80, count),
        start_us=np.round(random.uniform(0, 300, count) / 5) * 5,
        control=random.choice([RENO, CONTROLS.index("dctcp"), CONTROLS.index("cubic"), UDP], count),
        mode=random.integers(0, len(MODES), count),
        rate_mbps=random.choice([50.0, 900.0], count),
        list_of=np.where(np.arange(count) < (10 if listed else 0), np.arange(count) % 2, -1),
    )
    mbps = random.choice([100.0, 1000.0, 333.0], 16)
    return {
        "mbps": mbps,
        "flows": flows,
        "how": how,
        "listed": listed,
        "has_routes": draw(st.booleans()),
        "fails": draw(st.sampled_from([None, None, (100, 5), (300, 12)])),
        "seed": draw(st.integers(0, 5)),
    }


def routes(links: Links, flows: FlowList) -> tuple[sp.csr_array, dict[tuple[int, int], list[int]]]:
    """Return the share of each flow on each link over both spines, 3 to 1, and the slots of each table."""
    share, tables = np.zeros((len(flows.packets), len(links.tail))), {}
    pairs = zip(links.tail.tolist(), links.head.tolist(), strict=True)
    index = {ends: link for link, ends in enumerate(pairs)}
    for flow, (source, target) in enumerate(zip(flows.source.tolist(), flows.target.tolist(), strict=True)):
        up, down = 4 + source // 2, 4 + target // 2
        parts = {(source, up): 1.0, (down, target): 1.0}
        if up != down:
            parts |= {(up, 6): 0.75, (up, 7): 0.25, (6, down): 0.75, (7, down): 0.25}
        for ends, part in parts.items():
            share[flow, index[ends]] = part
        for node in {tail for tail, _ in parts}:
            choices = sorted(index[ends] for ends in parts if ends[0] == node)
            shares = np.array([share[flow, link] for link in choices])
            tables[flow, node] = [choices[slot] for slot in fill_slots(shares)]
    return sp.csr_array(share), tables


def source_routes(
    links: Links, flows: FlowList, rows: list[int], subflows: int
) -> tuple[list[Any], np.ndarray[Any, Any], dict[int, list[Any]]]:
    """Return walks over the spines in turn, that of each sender, and the nodes and links of each.

    Every third sender has the walk of the one before, which it cannot follow where that goes elsewhere.
    """
    index = {
        ends: link for link, ends in enumerate(zip(links.tail.tolist(), links.head.tolist(), strict=True))
    }
    walks: list[Any] = []
    route = np.full((len(rows), subflows), -1)
    steps: dict[int, list[Any]] = {}
    for number, flow in enumerate(rows):
        steps[flow] = []
        for order in range(subflows):
            up, down = 4 + int(flows.source[flow]) // 2, 4 + int(flows.target[flow]) // 2
            nodes = [up, down] if up != down else [up]
            if up != down:
                nodes.insert(1, 6 + (number + order) % 2)
            nodes.append(int(flows.target[flow]))
            walks.append(np.array([index[ends] for ends in itertools.pairwise(nodes)]))
            route[number, order] = len(walks) - (2 if len(walks) % 3 == 0 else 1)
            taken = walks[route[number, order]].tolist()
            steps[flow].append([(int(links.tail[link]), link) for link in taken])
    return walks, route, steps


def build_twin(network: PacketNetwork, case: dict[str, Any], tables: dict[Any, Any], walks: Any) -> Twin:
    """Return the twin of a network."""
    links, flows, how = network.links, case["flows"], case["how"]
    names = {"head": "head", "data": "data_ticks", "reply": "reply_ticks", "delay": "delay_ticks"}
    names |= {"limit": "queue_limit", "marks": "mark_limit"}
    columns = {name: network.of(field).tolist() for name, field in names.items()}
    rows = [{"index": i, **{name: columns[name][i] for name in names}} for i in range(len(links.tail))]
    distance = np.full((links.nodes, links.nodes), np.inf)
    np.fill_diagonal(distance, 0)
    distance[links.tail, links.head] = 1
    for node in range(links.nodes):
        distance = np.minimum(distance, distance[:, [node]] + distance[[node], :])
    hops = {
        (node, target): [
            link
            for link in range(len(links.tail))
            if links.tail[link] == node and distance[links.head[link], target] == distance[node, target] - 1
        ]
        for node in range(links.nodes)
        for target in range(4)
        if node != target
    }
    listed = [
        Flow(
            index=flow,
            source=int(flows.source[flow]),
            target=int(flows.target[flow]),
            size=int(flows.packets[flow]),
            control=int(flows.control[flow]),
            mode=int(flows.mode[flow]),
            interval=float(network.flows.interval_ticks[flow]),
            list_of=int(flows.list_of[flow]),
            start=float(round(flows.start_us[flow] * TICKS_PER_US)),
        )
        for flow in range(len(flows.packets))
    ]
    return Twin(
        rows,
        listed,
        len(network.of("record")),
        {
            "lists": 2 if case["listed"] else 0,
            "listed": case["listed"],
            "seed": case["seed"],
            "subflows": how.subflows,
            "first_window": float(how.first_window),
            "largest": how.largest_window,
            "timeout": float(round(how.least_timeout_ms * 1000 * TICKS_PER_US)),
            "duplicates": how.duplicate_acks,
            "coupled": how.coupling == "lia" and how.subflows > 1,
            "flowlet": how.flowlet_packets,
            "acks": how.acks,
            "rule": how.queue_rule,
            "queue": how.queue_packets,
            "codel": (how.codel_target_us * TICKS_PER_US, how.codel_interval_us * TICKS_PER_US),
            "access": {node: node for node in range(4)},
            "hops": hops,
            "tables": tables,
            "walks": walks,
            "route": {flow: flow for flow in range(len(flows.packets))} if tables else {},
        },
    )


@settings(max_examples=8, deadline=None)
@given(cases())
def test_the_network_equals_its_twin_event_by_event(case: dict[str, Any]) -> None:
    check_twin(case, events=800)


@pytest.mark.exhaustive
@settings(max_examples=150, deadline=None)
@given(cases())
def test_long_runs_equal_those_of_the_twin_event_by_event(case: dict[str, Any]) -> None:
    check_twin(case, events=8_000)


def check_twin(case: dict[str, Any], events: int) -> None:
    """Assert that a network and its twin are the same after each event, and in the end."""
    links, flows = make_links(LEAVES, case["mbps"]), case["flows"]
    lists = 2 if case["listed"] else 0
    network = build_network(
        links, flows, case["how"], ends=np.arange(4), lists=lists, listed=case["listed"], seed=case["seed"]
    )
    tables: dict[Any, Any] = {}
    steps: dict[int, list[Any]] = {}
    if case["has_routes"]:
        everything = np.arange(len(flows.packets))
        share, tables = routes(links, flows)
        network.set_routes(share, everything, everything, everything)
        by_source = np.flatnonzero(flows.mode == SOURCE)
        walks, route, steps = source_routes(links, flows, by_source.tolist(), case["how"].subflows)
        network.set_source_routes(walks, by_source, route)
    twin = build_twin(network, case, tables, steps)
    state, until = network.state, 30_000 * TICKS_PER_US
    for number in range(events):
        if case["fails"] is not None and number == case["fails"][0]:
            network.fail_links(np.array([case["fails"][1]]))
            twin.links[case["fails"][1]].down, twin.links[case["fails"][1]].limit = twin.now, 0
        twin.step(until)
        if not advance(state.ints, state.reals, state.at, network.hops, network.flows, until, 1):
            assert not twin.step(until)
            break
        if state.ints[layout.STATUS] == layout.OUT_OF_FLOWS:
            assert twin.is_out_of_flows
            break
        assert (number, state.reals[NOW]) == (number, twin.now)
        assert state.ints[SENT] == twin.sent
        assert network.of("accepted").tolist() == [link.accepted for link in twin.links]
    assert state.ints[layout.STATUS] in (layout.RUNNING, layout.OUT_OF_FLOWS)
    for name in ("arrived", "dropped", "marked", "longest", "cut"):
        assert network.of(name).tolist() == [getattr(link, name) for link in twin.links], name
    ended = [flow for flow in twin.flows if flow.end >= 0]
    index = [flow.index for flow in ended]
    assert network.flows.end_ticks[index].tolist() == [flow.end for flow in ended]
    for field, name in (("sent_again", "again"), ("timeouts", "timeouts"), ("longest_held", "longest_held")):
        assert getattr(network.flows, field)[index].tolist() == [getattr(flow, name) for flow in ended]
    conserve(network)


# --- controls and queues ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("control", ["reno", "cubic", "dctcp", "bbr"])
def test_one_flow_of_each_control_fills_most_of_the_link(control: str) -> None:
    network = build_network(
        make_links(LINE, [1000.0, 500.0, 1000.0] * 2),
        make_flows(0, 1, [1_000_000], control=CONTROLS.index(control)),
        PacketSettings(mark_packets=20 if control == "dctcp" else None),
        ends=np.array([0, 1]),
    )
    network.advance(1e6)
    before = int(network.acknowledged()[0])
    network.advance(2e6)
    assert (int(network.acknowledged()[0]) - before) * 16 > 0.85 * 1e6
    conserve(network)


@pytest.mark.slow
def test_queues_of_active_management_are_shorter() -> None:
    """Twenty flows over one link: RED and CoDel keep it full with a shorter queue than tail drop."""
    longest = {}
    mbps = ([1000.0] * 20 + [100.0, 1000.0]) * 2
    for rule in ("tail", "red", "codel"):
        network = build_network(
            make_links([*((host, 21) for host in range(20)), (21, 22), (22, 20)], mbps),
            make_flows(np.arange(20), 20, np.full(20, 100_000)),
            PacketSettings(queue_packets=200, queue_rule=rule, codel_target_us=1e3, codel_interval_us=1e4),
            ends=np.arange(21),
        )
        network.advance(1e6)
        longest[rule] = []
        arrived = int(network.of("arrived")[20])
        for step in range(100):
            network.advance(1e6 + 1e4 * (step + 1))
            now = network.state.reals[NOW]
            longest[rule].append((network.of("free_ticks")[20] - now) / (80 * TICKS_PER_US))
        assert int(network.of("arrived")[20]) - arrived > 0.9 * 1e6 / 80
    assert np.mean(longest["red"]) < 0.8 * np.mean(longest["tail"])
    assert np.mean(longest["codel"]) < 0.8 * np.mean(longest["tail"])


# --- bad input ----------------------------------------------------------------------------


def test_lists_that_run_out_are_continued() -> None:
    links = make_links(LINE)
    network = build_network(
        links, make_flows(0, 1, [5, 5], list_of=0), PacketSettings(), ends=np.array([0, 1]), lists=1, listed=1
    )
    assert network.advance(1e6) == layout.OUT_OF_FLOWS
    now = network.now_us
    add_flows(network, make_flows(0, 1, np.full(1000, 5), list_of=0))
    assert network.advance(1e6) == layout.RUNNING
    assert network.flows.start_ticks[2] == now * TICKS_PER_US


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first_window": 400}, "first_window is 400, must be at most largest_window, 300"),
        ({"ack_bytes": 2000}, "ack_bytes is 2000, must be at most packet_bytes, 1000"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PacketSettings(**change)


def test_links_without_a_rate_and_nodes_without_a_link_are_refused() -> None:
    with pytest.raises(InputError, match="link 1: capacity is 0 Mbit/s, must be greater than 0"):
        build_network(
            make_links(LINE, [1.0, 0.0, 1.0] * 2), make_flows(0, 1, [1]), PacketSettings(), ends=np.array([0])
        )
    with pytest.raises(InputError, match="node 5 has no link to send on"):
        build_network(
            make_links([*LINE, (1, 4)]), make_flows(0, 1, [1]), PacketSettings(), ends=np.array([0, 5])
        )


def test_more_flows_at_once_than_rows_are_refused() -> None:
    network = build_network(
        make_links(LINE), make_flows(0, 1, [9, 9]), PacketSettings(), ends=np.array([0, 1]), active=1
    )
    with pytest.raises(InputError, match="1 flows are active at once, more than there are places for"):
        network.advance(1e5)
