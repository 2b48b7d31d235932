"""LocalFlow against Algorithm 1 in plain Python, against linear programs, and where it falls short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from planner import backends
from planner.backends.linear_program import LinearProgram, Rows
from planner.errors import InputError
from planner_models.flows import next_hops
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic import Traffic, measure
from planner_models.traffic.designs import ecmp, localflow
from planner_models.traffic.designs.localflow import Order, Packing, schedule_switch
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.adjustments import adjust
from tests.models.traffic.networks import network, problems

# --- Algorithm 1 at one switch ------------------------------------------------------------


def plain(
    destination: list[int], rate: list[float], links: int, delta: float, policy: Order
) -> tuple[list[float], int]:
    """Run Algorithm 1 line by line: return the load of each link, and the number of subflows."""
    load, pieces = [0.0] * links, 0
    for d in sorted(set(destination)):
        flows = [r for r, to in zip(rate, destination, strict=True) if to == d]
        sort = {"increasing": 1, "decreasing": -1, "given": 0}[policy]
        if sort:
            flows.sort(key=lambda r: sort * r)
        residual = [sum(flows) / links] * links
        size = residual[0]
        while flows:
            f = flows.pop(0)
            b = residual.index(max(residual))
            pieces += 1
            if f > residual[b] + delta + 1e-9 * size:
                flows.insert(0, f - residual[b])
                if sort:
                    flows.sort(key=lambda r: sort * r)
                residual[b] = 0.0
            else:
                residual[b] -= f
        bins = sorted(size - r for r in residual)
        for filled, link in zip(bins, sorted(range(links), key=lambda link: -load[link]), strict=True):
            load[link] += filled
    return load, pieces


flows_strategy = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 60)), min_size=1, max_size=25)
policies = st.sampled_from(["increasing", "decreasing", "given"])
deltas = st.sampled_from([0.0, 1.0, 3.0, 10.0, np.inf])


@given(flows_strategy, st.integers(1, 6), deltas, policies)
def test_one_switch_does_as_the_listing_says(
    flows: list[tuple[int, int]], links: int, delta: float, policy: Order
) -> None:
    destination, rate = [d for d, _ in flows], [float(r) for _, r in flows]
    flow, link, amount = schedule_switch(destination, rate, links=links, delta=delta, policy=policy)
    load, pieces = plain(destination, rate, links, delta, policy)
    assert sorted(sum_by_index(link, amount, links)) == pytest.approx(sorted(load), abs=1e-6)
    assert len(flow) == pieces
    assert sum_by_index(flow, amount, len(rate)) == pytest.approx(rate)


@given(flows_strategy, st.integers(1, 6), st.sampled_from([0.0, 1.0, 3.0, 10.0]), policies)
def test_links_differ_by_at_most_their_number_times_delta(
    flows: list[tuple[int, int]], links: int, delta: float, policy: Order
) -> None:
    """The valid part of Lemma 6.2: each bin is overfull by delta at most, so all but one may be."""
    destination, rate = [d for d, _ in flows], [float(r) for _, r in flows]
    _, link, amount = schedule_switch(destination, rate, links=links, delta=delta, policy=policy)
    load = sum_by_index(link, amount, links)
    assert load.max() - load.min() <= links * delta + 1e-6


def test_links_may_differ_by_more_than_delta() -> None:
    """Lemma 6.2 as printed does not hold: bins of 10 take 8, 11 and 11, each within delta = 1."""
    flow, link, amount = schedule_switch([0, 0, 0], [8.0, 11.0, 11.0], links=3, delta=1.0)
    assert sorted(amount) == [8.0, 11.0, 11.0]
    assert sorted(sum_by_index(link, amount, 3)) == [8.0, 11.0, 11.0]
    assert len(flow) == 3


@given(flows_strategy, st.integers(1, 6), policies)
def test_without_slack_a_destination_splits_at_most_links_minus_one_times(
    flows: list[tuple[int, int]], links: int, policy: Order
) -> None:
    destination, rate = [d for d, _ in flows], [float(r) for _, r in flows]
    flow, link, amount = schedule_switch(destination, rate, links=links, delta=0.0, policy=policy)
    for d in set(destination):
        current = np.array(destination)[flow] == d
        assert current.sum() - destination.count(d) <= links - 1
        even = sum(r for r, to in zip(rate, destination, strict=True) if to == d) / links
        assert sum_by_index(link[current], amount[current], links) == pytest.approx(even)


@given(flows_strategy, st.integers(1, 6), st.sampled_from([1.0, 5.0, 20.0]))
def test_flows_no_larger_than_delta_are_never_split(
    flows: list[tuple[int, int]], links: int, delta: float
) -> None:
    destination, rate = [d for d, _ in flows], np.array([float(r) for _, r in flows])
    flow, _, _ = schedule_switch(destination, rate, links=links, delta=delta)
    assert (np.bincount(flow, minlength=len(rate))[rate <= delta] == 1).all()


def test_more_slack_splits_fewer_flows() -> None:
    random = np.random.default_rng(0)
    rate, destination = random.lognormal(0, 2, 500), random.integers(0, 100, 500)
    # a fraction of a link that carries an eighth of it all
    split = [
        float(
            (np.bincount(schedule_switch(destination, rate, links=8, delta=d * rate.sum() / 8)[0]) > 1).mean()
        )
        for d in (0.0, 0.01, 0.05)
    ]
    assert split[0] > split[1] > split[2] > 0


# --- on whole networks --------------------------------------------------------------------


def over_shortest_paths(problem: Traffic) -> float:
    """Return the maximum concurrent flow over links on shortest paths."""
    hops = next_hops.find_next_hops(problem)
    nodes, links = len(problem.nodes), len(problem.links)
    position = np.repeat(np.arange(len(hops.node)), np.diff(hops.first_link))
    row = np.repeat(np.arange(len(problem.targets)), np.diff(hops.first_node))[position]
    link, count = hops.link, len(hops.link)
    inner = problem.head[link] != problem.targets[row]
    rows = np.r_[row * nodes + problem.tail[link], (row * nodes + problem.head[link])[inner]]
    columns = np.r_[np.arange(count), np.flatnonzero(inner)]
    signs = np.r_[np.ones(count), -np.ones(int(inner.sum()))]
    size = len(problem.targets) * nodes
    balance = sp.csr_array((signs, (rows, columns)), shape=(size, count + 1))
    requested = np.searchsorted(problem.targets, problem.target) * nodes + problem.source
    supply = sum_by_index(requested, problem.rate_mbps, size)
    grows = sp.csr_array((supply, (np.arange(size), np.full(size, count))), shape=(size, count + 1))
    load = sp.csr_array((np.ones(count), (link, np.arange(count))), shape=(links, count + 1))
    program = LinearProgram.build(
        sense="max",
        cost=np.r_[np.zeros(count), 1.0],
        rows=[
            Rows("balance", balance - grows, lower=0, upper=0),
            Rows("capacity", load, upper=problem.capacity_mbps),
        ],
    )
    result = backends.solve(program).objective
    assert result is not None
    return result


def worth(problem: Traffic, **parameters: Any) -> float:
    plan = localflow.route(problem, **{"delta": 0.0, **parameters}).plan
    assert plan is not None
    value = measure(problem, plan, None)["concurrent_flow"]
    assert value is not None
    return value


def busy(problem: Traffic, seed: int, count: int = 20) -> Traffic:
    """Return the network with demands of different rates between random hosts."""
    random = np.random.default_rng(seed)
    hosts = [name for name in problem.nodes["node"] if name.startswith("host")]
    pairs = {tuple(random.choice(len(hosts), 2, replace=False).tolist()) for _ in range(count)}
    source, target = zip(*sorted(pairs), strict=True)
    demands = pd.DataFrame(
        {
            "source": [hosts[i] for i in source],
            "target": [hosts[i] for i in target],
            "rate_mbps": random.integers(1, 10, len(pairs)) * 100.0,
        }
    )
    return Traffic(nodes=problem.nodes, links=problem.links, demands=demands)


SYMMETRIC = {
    "fat tree": generators.fat_tree(k=4),
    "oversubscribed": generators.oversubscribed_fat_tree(k=4, ratio=2),
    "vl2": generators.vl2(tors=5, aggregations=4, intermediates=3, hosts_per_tor=3, speedup=2.0),
    "a plane of switches lost": adjust(generators.fat_tree(k=4), fail_nodes=("aggregation-*-0",)),
    "a row of cores lost": adjust(generators.fat_tree(k=4), fail_nodes=("core-*-0",)),
    "a rack lost": adjust(generators.fat_tree(k=4), fail_nodes=("edge-0-0",), lost_demands="drop"),
}


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("seed", range(3))
def test_without_slack_it_is_optimal_over_shortest_paths_where_theorem_6_3_holds(
    name: str, seed: int
) -> None:
    problem = SYMMETRIC[name]
    if name == "a rack lost":
        hosts = problem.nodes[~problem.nodes["node"].str.startswith("host-0-0-")]
        links = problem.links[problem.links[["tail", "head"]].isin(set(hosts["node"])).all(axis=1)]
        problem = Traffic(nodes=hosts, links=links, demands=problem.demands)
    problem = busy(problem, seed)
    assert worth(problem) == pytest.approx(over_shortest_paths(problem), rel=1e-6)


def test_a_network_symmetric_by_definition_1_where_it_is_not_optimal() -> None:
    """All of s1's choices lead on with the same capacity, but s2 needs Y; only a global view knows.

    s1 halves its traffic over Y and Z, so Y to M carries 1.5; with all of s1's over Z it is 1.0.
    """
    links = [
        ("s1", "Y", 1.0), ("s1", "Z", 1.0), ("s2", "Y", 1.0), ("Y", "M", 1.0), ("Z", "M", 1.0),
        ("M", "d1", 1.0), ("M", "d2", 1.0),
    ]  # fmt: skip
    problem = network(links, [("s1", "d1", 1.0), ("s2", "d2", 1.0)])
    assert 1 / worth(problem) == pytest.approx(1.5)
    assert 1 / over_shortest_paths(problem) == pytest.approx(1.0)


def test_after_the_loss_of_one_whole_switch_it_need_not_be_optimal() -> None:
    """Section 4.3 says that the network is still symmetric, so it is still optimal: not so.

    With aggregation-0-0 gone, traffic to pod 0 needs the other uplink of its edge switch. LocalFlow
    halves other traffic all the same: 1.5 on that uplink, where 1.0 is enough.
    """
    tree = generators.fat_tree(k=4, capacity_mbps=1.0, rate_mbps=1.0)
    rows = [("host-1-0-0", "host-0-0-0", 1.0), ("host-1-0-1", "host-2-0-0", 1.0)]
    demands = pd.DataFrame(rows, columns=["source", "target", "rate_mbps"])
    problem = adjust(
        Traffic(nodes=tree.nodes, links=tree.links, demands=demands), fail_nodes=("aggregation-0-0",)
    )
    assert 1 / worth(problem) == pytest.approx(1.5)
    assert 1 / over_shortest_paths(problem) == pytest.approx(1.0)


def test_the_loss_of_one_core_switch_breaks_the_symmetry() -> None:
    tree = generators.fat_tree(k=4, seed=4)
    problem = adjust(tree, fail_nodes=("core-0-0",))
    assert worth(problem) < over_shortest_paths(problem) * 0.99
    assert worth(problem, rebalance=False) < worth(problem)


def test_a_switch_that_lost_half_its_uplinks_gets_half_as_much() -> None:
    """The example of section 4.3: X loses one of two uplinks, W gets twice as much as X."""
    links = [("e", "W", 9.0), ("e", "X", 9.0), ("W", "c1", 9.0), ("W", "c2", 9.0), ("X", "c3", 9.0)]
    links += [("c1", "d", 9.0), ("c2", "d", 9.0), ("c3", "d", 9.0)]
    plan = localflow.route(network(links, [("e", "d", 6.0)]), delta=0.0).plan
    assert plan is not None
    assert plan.links["load_mbps"].tolist()[:2] == pytest.approx([4.0, 2.0])
    equal = localflow.route(network(links, [("e", "d", 6.0)]), delta=0.0, rebalance=False).plan
    assert equal is not None
    assert equal.links["load_mbps"].tolist()[:2] == pytest.approx([3.0, 3.0])


def test_a_slow_link_gets_less() -> None:
    links = [("a", "b", 10.0), ("a", "b", 1.0)]
    plan = localflow.route(network(links, [("a", "b", 11.0)]), delta=0.0).plan
    assert plan is not None
    assert plan.links["load_mbps"].tolist() == pytest.approx([10.0, 1.0])


@given(problems(), st.sampled_from([0.0, 0.05, 1.0]), st.booleans())
def test_shares_are_flows_that_end_where_they_should(problem: Traffic, delta: float, rebalance: bool) -> None:
    hops = next_hops.find_next_hops(problem)
    random = np.random.default_rng(0)
    share = localflow.link_shares(
        problem, hops, problem.rate_mbps, Packing(delta=delta), rebalance=rebalance, random=random
    )
    net = (share @ problem.incidence.T).toarray()
    expected = np.zeros_like(net)
    rows = np.arange(len(problem.demands))
    expected[rows, problem.source] = 1.0
    expected[rows, problem.target] = -1.0
    assert net == pytest.approx(expected, abs=1e-7)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=25),
    st.integers(1, 6),
    st.sampled_from([0.0, 1.0, 10.0]),
    policies,
)
def test_flows_that_may_not_be_split_are_packed_first_and_whole(
    flows: list[tuple[int, bool]], links: int, delta: float, policy: Order
) -> None:
    """No link has more than an even share, the slack, and less than the largest rate of a whole flow."""
    rate, is_whole = np.array([r for r, _ in flows], float), np.array([whole for _, whole in flows])
    flow, link, amount = schedule_switch(
        np.zeros(len(flows)), rate, links=links, delta=delta, policy=policy, is_whole=is_whole
    )
    assert np.bincount(flow, amount, len(rate)) == pytest.approx(rate)
    assert (np.bincount(flow, minlength=len(rate))[is_whole] == 1).all()
    load = np.bincount(link, amount, links)
    largest = rate[is_whole].max(initial=0.0)
    assert load.max() <= rate.sum() / links + max(delta, largest) + 1e-6
    first = is_whole[flow]
    assert not (np.diff(first.astype(int)) > 0).any()
    assert (np.diff(rate[flow[first]]) >= 0).all()
    if is_whole.all():  # each went to the emptiest link
        assert load.max() - load.min() <= largest + 1e-9
    again = schedule_switch(np.zeros(len(flows)), rate, links=links, delta=delta, policy=policy)
    if not is_whole.any():
        assert amount.tolist() == again[2].tolist()


def test_classes_that_are_never_split() -> None:
    """UDP stays on one link, and TCP fills what is left of both."""
    links = [("a", "b", 10.0), ("a", "b", 10.0)]
    demands = pd.DataFrame({"source": "a", "target": "b", "rate_mbps": [9.0, 5.0], "class": ["udp", "tcp"]})
    one_pair = network(links, [("a", "b", 1.0)])
    problem = Traffic(nodes=one_pair.nodes, links=one_pair.links, demands=demands)
    plan = localflow.route(problem, delta=0.0, whole_classes=("udp",)).plan
    assert plan is not None
    assert sorted(plan.links["load_mbps"].tolist()) == pytest.approx([5.0, 9.0])
    with pytest.raises(InputError, match="whole_classes: no demand has the class 'upd'; did you mean 'udp'"):
        localflow.route(problem, whole_classes=("upd",))
    with pytest.raises(InputError, match="whole_classes: is 'udp', but demands have no column class"):
        localflow.route(one_pair, whole_classes=("udp",))


@given(problems(), st.integers(0, 100))
def test_the_variant_without_splitting_keeps_flows_whole(problem: Traffic, seed: int) -> None:
    share = localflow.link_shares(
        problem,
        next_hops.find_next_hops(problem),
        problem.rate_mbps,
        Packing(delta=np.inf),
        random=np.random.default_rng(seed),
    )
    assert share.data == pytest.approx(1.0)


def test_with_one_flow_for_each_destination_it_scatters_as_packets_do() -> None:
    problem = generators.fat_tree(k=4, seed=3)
    local = localflow.link_shares(
        problem,
        next_hops.find_next_hops(problem),
        problem.rate_mbps,
        Packing(delta=0.0),
        random=np.random.default_rng(0),
    )
    scattered = next_hops.even_shares(next_hops.find_next_hops(problem))
    assert local.toarray() == pytest.approx(scattered.toarray())


@pytest.mark.slow
def test_stride_needs_no_splitting() -> None:
    """Section 7.2.1: the flows of a pod target one other pod, so whole flows spread perfectly."""
    plan = localflow.route_whole(generators.fat_tree(k=8, workload="stride"), rates="max-min").plan
    assert plan is not None
    assert measure(generators.fat_tree(k=8, workload="stride"), plan, None)["mean_rate_share"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_skewed_link_failures_hurt_packet_scatter_most(seed: int) -> None:
    """Section 7.3: one of four aggregation switches of each pod keeps one uplink, to the same core."""
    tree = generators.fat_tree(k=8, seed=seed)
    problem = adjust(tree, fail_links=("aggregation-*-0<->core-0-[123]",))
    share = {}
    for name, decision in {
        "local": localflow.route(problem, delta=0.0, rates="max-min"),
        "scatter": ecmp.route(problem, rates="max-min"),
        "hash": ecmp.route_hashed(problem, rates="max-min", seed=seed),
    }.items():
        assert decision.plan is not None
        share[name] = measure(problem, decision.plan, None)["mean_rate_share"] or 0.0
    assert share["scatter"] < share["hash"] < share["local"]
    assert 0.38 < share["scatter"] / share["local"] < 0.5  # published: 0.48
