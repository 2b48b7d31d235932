"""Which of the decisions that a cluster holds counts: versions, shadows, evidence and silence."""

from __future__ import annotations

from planner_models.livevideo.rib import SHADOWS, Ribs

A, B = 0, 1
V = 7  # an object


def ribs(capacity: dict[int, float], *, alone: bool = True, timeout_s: float = 30.0) -> Ribs:
    return Ribs(2, capacity=lambda link: capacity.get(link, 10.0), alone=alone, timeout_s=timeout_s)


def test_the_sample_of_table_4_1() -> None:
    """The controller sends V0 over link 2; link 2 fails; the cluster's own entry, over link 1, counts."""
    capacity = {1: 10.0, 2: 15.0}
    one = ribs(capacity)
    one.told(A, 15 * 60 + 20, 15 * 60 + 21, [(V, 2, 15.0)])
    now = 15 * 60 + 23.0
    before = one.forwarding(A, V, now)
    assert before is not None
    assert (before.link, before.central) == (2, True)
    capacity[2] = 0.0
    assert one.forwarding(A, V, now) is None  # stale: the cluster must look for a way itself
    one.decides(A, V, 1, now)
    after = one.forwarding(A, V, now)
    assert after is not None
    assert (after.link, after.central, after.version_s) == (1, False, now)


def test_evidence_that_changed_by_a_fifth() -> None:
    capacity = {1: 10.0}
    one = ribs(capacity)
    one.told(A, 0.0, 1.0, [(V, 1, 10.0)])
    for share, counts in ((0.81, True), (1.19, True), (0.79, False), (1.21, False)):
        capacity[1] = 10.0 * share
        assert (one.forwarding(A, V, 2.0) is not None) is counts
    obedient = ribs(capacity, alone=False)
    obedient.told(A, 0.0, 1.0, [(V, 1, 10.0)])
    assert obedient.forwarding(A, V, 2.0) is not None  # may not act alone


def test_the_controller_catches_up() -> None:
    one = ribs({})
    one.told(A, 10.0, 12.0, [])
    assert one.forwarding(A, V, 13.0) is None
    one.decides(A, V, 3, 13.0)
    own = one.forwarding(A, V, 14.0)
    assert own is not None
    assert own.link == 3
    one.told(A, 12.0, 15.0, [])  # decided before the cluster did: does not know of it
    assert one.forwarding(A, V, 16.0) == own
    one.told(A, 14.0, 17.0, [(V, 4, 10.0)])
    central = one.forwarding(A, V, 18.0)
    assert central is not None
    assert (central.link, central.central) == (4, True)
    one.told(A, 20.0, 21.0, [])  # knows of it, and left it out
    assert one.forwarding(A, V, 22.0) is None


def test_requests_under_an_older_version() -> None:
    one = ribs({})
    versions = [float(10 * n) for n in range(SHADOWS + 2)]
    for n, version in enumerate(versions):
        one.told(A, version, version + 1, [(V, n, 10.0)])
    newest = one.forwarding(A, V, 40.0)
    assert newest is not None
    assert newest.link == len(versions) - 1
    tagged = one.forwarding(A, V, 40.0, tag=versions[1])
    assert tagged is not None
    assert tagged.link == 1
    assert one.forwarding(A, V, 40.0, tag=versions[0]) is None  # no longer kept
    assert one.forwarding(B, V, 40.0, tag=versions[1]) is None  # never heard of


def test_updates_that_come_in_the_wrong_order() -> None:
    one = ribs({})
    one.told(A, 20.0, 21.0, [(V, 2, 10.0)])
    one.told(A, 10.0, 22.0, [(V, 1, 10.0)])
    entry = one.forwarding(A, V, 23.0)
    assert entry is not None
    assert entry.link == 2


def test_a_controller_that_falls_silent() -> None:
    one = ribs({}, timeout_s=5.0)
    one.told(A, 0.0, 1.0, [(V, 2, 10.0)])
    assert one.forwarding(A, V, 6.0) is not None
    assert one.forwarding(A, V, 6.1) is None
    one.decides(A, V, 1, 6.1)
    own = one.forwarding(A, V, 7.0)
    assert own is not None
    assert own.link == 1
    assert one.silent(A, 7.0)
    obedient = ribs({}, alone=False, timeout_s=5.0)
    obedient.told(A, 0.0, 1.0, [(V, 2, 10.0)])
    assert obedient.forwarding(A, V, 99.0) is not None
