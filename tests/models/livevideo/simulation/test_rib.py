"""Forwarding entries of clusters: versions, shadows, evidence and silence of the controller."""

from __future__ import annotations

from planner_models.livevideo.simulation.rib import SHADOW_VERSIONS, Ribs

A, B = 0, 1
V = 7  # an object


def ribs(capacity: dict[int, float], *, alone: bool = True, timeout_s: float = 30.0) -> Ribs:
    return Ribs(2, capacity=lambda link: capacity.get(link, 10.0), can_act_alone=alone, timeout_s=timeout_s)


def test_the_example_of_table_4_1() -> None:
    """The controller sends V0 over link 2; link 2 fails; the cluster's own entry, over link 1, counts."""
    capacity = {1: 10.0, 2: 15.0}
    item = ribs(capacity)
    item.receive_update(A, 15 * 60 + 20, 15 * 60 + 21, [(V, 2, 15.0)])
    now = 15 * 60 + 23.0
    before = item.forwarding_entry(A, V, now)
    assert before is not None
    assert (before.link, before.is_central) == (2, True)
    capacity[2] = 0.0
    assert item.forwarding_entry(A, V, now) is None  # stale: the cluster must look for a way itself
    item.decide_locally(A, V, 1, now)
    after = item.forwarding_entry(A, V, now)
    assert after is not None
    assert (after.link, after.is_central, after.version_s) == (1, False, now)


def test_entries_are_stale_after_a_change_of_a_fifth() -> None:
    capacity = {1: 10.0}
    item = ribs(capacity)
    item.receive_update(A, 0.0, 1.0, [(V, 1, 10.0)])
    for share, counts in ((0.81, True), (1.19, True), (0.79, False), (1.21, False)):
        capacity[1] = 10.0 * share
        assert (item.forwarding_entry(A, V, 2.0) is not None) is counts
    obedient = ribs(capacity, alone=False)
    obedient.receive_update(A, 0.0, 1.0, [(V, 1, 10.0)])
    assert obedient.forwarding_entry(A, V, 2.0) is not None  # may not act alone
    patient = Ribs(1, capacity=lambda _: 6.0, can_act_alone=True, timeout_s=30.0, stale_change=0.5)
    patient.receive_update(A, 0.0, 1.0, [(V, 1, 10.0)])
    assert patient.forwarding_entry(A, V, 2.0) is not None  # 40% are less than its threshold


def test_newer_updates_replace_local_decisions() -> None:
    item = ribs({})
    item.receive_update(A, 10.0, 12.0, [])
    assert item.forwarding_entry(A, V, 13.0) is None
    item.decide_locally(A, V, 3, 13.0)
    own_values = item.forwarding_entry(A, V, 14.0)
    assert own_values is not None
    assert own_values.link == 3
    item.receive_update(A, 12.0, 15.0, [])  # decided before the cluster did: does not know of it
    assert item.forwarding_entry(A, V, 16.0) == own_values
    item.receive_update(A, 14.0, 17.0, [(V, 4, 10.0)])
    central = item.forwarding_entry(A, V, 18.0)
    assert central is not None
    assert (central.link, central.is_central) == (4, True)
    item.receive_update(A, 20.0, 21.0, [])  # knows of it, and left it out
    assert item.forwarding_entry(A, V, 22.0) is None


def test_requests_under_an_older_version() -> None:
    item = ribs({})
    versions = [float(10 * n) for n in range(SHADOW_VERSIONS + 2)]
    for n, version in enumerate(versions):
        item.receive_update(A, version, version + 1, [(V, n, 10.0)])
    newest = item.forwarding_entry(A, V, 40.0)
    assert newest is not None
    assert newest.link == len(versions) - 1
    tagged = item.forwarding_entry(A, V, 40.0, tag=versions[1])
    assert tagged is not None
    assert tagged.link == 1
    assert item.forwarding_entry(A, V, 40.0, tag=versions[0]) is None  # no longer kept
    assert item.forwarding_entry(B, V, 40.0, tag=versions[1]) is None  # never heard of


def test_late_updates_do_not_replace_newer_ones() -> None:
    item = ribs({})
    item.receive_update(A, 20.0, 21.0, [(V, 2, 10.0)])
    item.receive_update(A, 10.0, 22.0, [(V, 1, 10.0)])
    entry = item.forwarding_entry(A, V, 23.0)
    assert entry is not None
    assert entry.link == 2


def test_clusters_act_alone_when_the_controller_is_silent() -> None:
    item = ribs({}, timeout_s=5.0)
    item.receive_update(A, 0.0, 1.0, [(V, 2, 10.0)])
    assert item.forwarding_entry(A, V, 6.0) is not None
    assert item.forwarding_entry(A, V, 6.1) is None
    item.decide_locally(A, V, 1, 6.1)
    own_values = item.forwarding_entry(A, V, 7.0)
    assert own_values is not None
    assert own_values.link == 1
    assert item.is_silent(A, 7.0)
    obedient = ribs({}, alone=False, timeout_s=5.0)
    obedient.receive_update(A, 0.0, 1.0, [(V, 2, 10.0)])
    assert obedient.forwarding_entry(A, V, 99.0) is not None
