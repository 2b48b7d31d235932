"""Gossip, SWIM and discovery: closed forms beside simulations and counting."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from scipy.stats import norm

from planner_models.membership.protocols import discovery, gossip
from planner_models.membership.protocols.gossip import Gossip


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_the_recursion_is_within_a_round_of_10000_members(loss: float) -> None:
    group = Gossip(members=10_000, loss=loss)
    random = np.random.default_rng(1)
    runs = [gossip.simulate(group, random) for _ in range(20)]
    mean = float(np.mean([last for last, _ in runs]))
    assert abs(len(gossip.expected_knowers(group)) - 1 - mean) < 1
    if loss == 0:
        assert abs(gossip.round_formula(10_000, 3) - mean) < 1.5
    assert sum(missed for _, missed in runs) == 0


def test_few_transmissions_miss_the_share_of_the_root() -> None:
    group = Gossip(members=3_000, fan_out=2, retransmit=1, loss=0.4)
    random = np.random.default_rng(2)
    runs = [gossip.simulate(group, random)[1] / group.members for _ in range(40)]
    spread = [share for share in runs if share < 0.5]  # news that died at once say nothing of the others
    assert np.mean(spread) == pytest.approx(gossip.missed_share(group), rel=0.1)


@pytest.mark.parametrize("members", [2, 5, 100])
def test_the_first_probe_comes_within_a_period_and_not_after_158(members: int) -> None:
    closed = gossip.first_probe_periods(members)
    drawn = gossip.simulate_first_probe(members, 20_000, np.random.default_rng(3))
    assert closed == pytest.approx(drawn, rel=0.03)
    assert closed < math.e / (math.e - 1)


def test_suspicion_of_memberlist_is_16_to_96_seconds_at_10000() -> None:
    assert gossip.suspicion_s(10_000).tolist() == pytest.approx([16.0, 96.0])


def test_phi_of_the_timeout_is_its_threshold() -> None:
    timeout = gossip.phi_timeout_s(1.0, 0.2, 8.0)
    assert -norm.logsf(timeout, 1.0, 0.2) / math.log(10) == pytest.approx(8.0, rel=1e-6)


def test_joins_wait_for_syncs_at_seeds() -> None:
    group = Gossip(members=1_000)
    one = gossip.join_s(group, seeds=3, syncs_per_s=10.0, interval_s=0.2)
    many = gossip.join_s(group, seeds=3, syncs_per_s=10.0, interval_s=0.2, joins=301)
    assert many - one == pytest.approx(10.0)
    with pytest.raises(ValueError, match="seeds: must be at least 1"):
        gossip.join_s(group, seeds=0, syncs_per_s=10.0, interval_s=0.2)


@pytest.mark.parametrize("size", [2, 5, 16, 33])
def test_flooding_takes_log_of_the_diameter_and_one_round(size: int) -> None:
    path = np.zeros((size, size), dtype=bool)
    path[np.arange(size - 1), np.arange(1, size)] = True
    cycle = nx.to_numpy_array(nx.cycle_graph(size)).astype(bool) if size > 2 else path
    for edges in (path, cycle):
        diameter = discovery.weak_diameter(edges)
        assert diameter == nx.diameter(nx.from_numpy_array(edges | edges.T))
        assert discovery.flood(edges).rounds <= math.ceil(math.log2(max(diameter, 1))) + 1


def flood_by_matrices(edges: np.ndarray) -> list[int]:
    """Return the messages of each round, with every list sent by itself."""
    known = edges | np.eye(len(edges), dtype=bool)
    messages = []
    while not known.all():
        messages.append(int(known.sum()) - len(edges))
        known = known | ((known.T.astype(float) @ known.astype(float)) > 0)
    return messages


def test_flooding_by_distances_sends_what_flooding_by_lists_does() -> None:
    rng = np.random.default_rng(4)
    for size in (2, 3, 7, 20):
        for _ in range(5):
            edges = rng.random((size, size)) < 0.15
            edges[np.arange(size - 1), np.arange(1, size)] = True
            assert list(discovery.flood(edges).messages) == flood_by_matrices(edges)


def test_name_dropper_takes_n_messages_a_round_and_more_rounds() -> None:
    graph = nx.to_numpy_array(nx.grid_2d_graph(8, 8)).astype(bool)
    dropped = discovery.name_dropper(graph, np.random.default_rng(0))
    assert set(dropped.messages) == {64}
    flooded = discovery.flood(graph)
    assert flooded.rounds < dropped.rounds
    assert sum(flooded.messages) > sum(dropped.messages)
    assert max(flooded.messages) > 64 * 63 / 2


def test_groups_that_do_not_know_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="2 groups of members do not know each other"):
        discovery.flood(np.zeros((2, 2), dtype=bool))


def test_a_star_is_informed_in_fewer_rounds_than_section_1_3_prints() -> None:
    rounds = discovery.inform_star(4_096, 3)
    assert rounds == 6  # each round multiplies those that know by 4
    assert rounds < math.log(4_096) / math.log(3)
    assert discovery.rendezvous_rounds(4_096, 8) == 8
