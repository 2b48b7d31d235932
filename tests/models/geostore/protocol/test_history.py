"""Simulated histories: what clients read, and the bounds of the protocol on every operation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.testing.kernels import compare_with_python
from planner_models.geostore.protocol.checker import IS_EMPTY, check_history
from planner_models.geostore.protocol.cluster import Operations
from planner_models.geostore.protocol.examples import add_to_counter
from planner_models.geostore.protocol.history import History, run, run_many
from planner_models.geostore.protocol.state import ADD, BATCH, READ, TRANSACTION
from planner_models.geostore.protocol.workloads import Mix, draw_operations, full_cluster

BUSY = Mix(batches=0.1, transactions=0.5, adds=0.05, keys=4)


def operations_of(*rows: tuple[int, int, list[int]], datacenters: list[int]) -> Operations:
    """Return operations from rows of client, kind and keys."""
    first = np.cumsum([0, *(len(keys) for _, _, keys in rows)])
    return Operations(
        datacenter=np.array(datacenters),
        client=np.array([client for client, _, _ in rows]),
        kind=np.array([kind for _, kind, _ in rows]),
        first=first,
        key=np.array([key for _, _, keys in rows for key in keys]),
        amount=np.ones(first[-1], dtype=np.int64),
        coordinator=first[:-1],
    )


@pytest.fixture(scope="module")
def histories() -> list[History]:
    cluster = full_cluster(seed=3)
    return run_many(cluster, draw_operations(cluster, histories=8, mix=BUSY, seed=3), seed=3)


def test_every_read_takes_two_rounds_and_a_check_at_most(histories: list[History]) -> None:
    """Two rounds are two round trips; a commit check adds one (Lloyd et al. 2013, sections 4 and 7.2)."""
    for history in histories:
        is_read = history.operations.kind == READ
        expected = 2 * (history.rounds + history.checks)[is_read]
        assert (history.hops[is_read] == expected).all()
        assert history.rounds[is_read].max() <= 2
        assert history.checks.max() <= 1
    assert sum(int(history.checks.sum()) for history in histories) > 0


def test_write_transactions_take_two_and_a_half_round_trips_at_most(histories: list[History]) -> None:
    hops = np.concatenate([history.hops[history.operations.kind == TRANSACTION] for history in histories])
    assert set(hops) == {2, 5}
    plain = [history.hops[np.isin(history.operations.kind, (BATCH, ADD))] for history in histories]
    assert set(np.concatenate(plain)) == {2}


def test_all_histories_are_causal_and_all_writes_arrive(histories: list[History]) -> None:
    cluster = full_cluster(seed=3)
    for history in histories:
        assert check_history(cluster, history).describe() == []


def test_figure_5_as_printed_returns_empty_values() -> None:
    cluster = full_cluster(seed=3)
    batches = draw_operations(cluster, histories=3, operations=20, mix=BUSY, seed=4)
    options = {"think_ms": 0.1, "seed": 4}
    printed = [check_history(cluster, h) for h in run_many(cluster, batches, is_printed=True, **options)]
    assert all(finding.count[IS_EMPTY] > 0 for finding in printed)
    assert all(check_history(cluster, h).is_valid for h in run_many(cluster, batches, **options))


def test_same_seed_same_history() -> None:
    cluster = full_cluster(seed=1)
    (batch,) = draw_operations(cluster, operations=5, seed=1)
    first, second, other = (run(cluster, batch, seed=seed) for seed in (1, 1, 2))
    assert (first.value == second.value).all()
    assert (first.spans_ms == second.spans_ms).all()
    assert (first.spans_ms != other.spans_ms).any()


@pytest.mark.parametrize("servers", [1, 2, 3, 4])
def test_messages_of_a_write_transaction(servers: int) -> None:
    """A local transaction over p servers takes 4 p - 2 messages (section 5.2)."""
    cluster = full_cluster(rtt_ms=np.zeros((1, 1)), servers=servers, keys=servers, counters=0)
    cluster = replace(cluster, owner=np.arange(servers)[None, :])
    history = run(cluster, operations_of((0, TRANSACTION, list(range(servers))), datacenters=[0]))
    assert history.sent.sum() == 4 * servers - 2
    assert history.hops[0] == (2 if servers == 1 else 5)


def test_columns_are_stored_once_and_every_copy_has_the_stamp_of_its_origin() -> None:
    cluster = full_cluster(seed=2)
    history = run(cluster, operations_of((0, TRANSACTION, [0, 1, 2]), datacenters=[1]), seed=2)
    assert len(set(history.stamp)) == 1
    assert (history.evt[1] == history.stamp).all()
    assert (history.evt[[0, 2]] > history.stamp).all()  # later where they are copied to (section 4.1)
    assert [len(set(row)) for row in history.evt] == [1, 1, 1]


def test_last_writer_wins_everywhere() -> None:
    """Concurrent writes: one of two requests to change a count is lost (article, drawback 3)."""
    cluster = full_cluster(counters=0)
    rows = [(0, BATCH, [0]), (1, BATCH, [0]), (2, READ, [0]), (3, READ, [0])]
    history = run(cluster, operations_of(*rows, datacenters=[0, 1, 0, 1]), think_ms=0.0)
    newest = int(np.argmax(history.stamp))
    late = run(cluster, operations_of(*rows[:2], *[(2, READ, [0])] * 200, datacenters=[0, 1, 2]))
    assert late.value[-1] == int(np.argmax(late.stamp))
    assert newest in (0, 1)


def test_counters_contain_one_dependency_of_each_datacenter_and_drop_those_covered() -> None:
    """A read of 7 = 1 + 2 + 4 depends on three adds; after an add of 1, the read of 8 on that one (3.3)."""
    history, first, last = add_to_counter()
    assert history.value[first - 1] == 7
    assert set(history.depends(first)) == {0, 1, 2}
    assert history.value[last - 1] == 8
    assert history.depends(last) == [first]


def test_adds_of_all_datacenters_merge() -> None:
    """Friend counts as counters keep both of two concurrent requests (article, drawback 3)."""
    cluster = full_cluster(keys=2, counters=1)
    rows = [(0, ADD, [1]), (1, ADD, [1]), *[(2, READ, [1])] * 200]
    assert run(cluster, operations_of(*rows, datacenters=[0, 1, 2])).value[-1] == 2


def test_outages_hold_messages_and_lose_none() -> None:
    cluster = full_cluster(seed=5)
    (batch,) = draw_operations(cluster, operations=8, seed=5)
    calm = run(cluster, batch)
    cut = replace(cluster, outages=((0, 0.0, 900.0),))
    late = run(cut, batch)
    assert check_history(cut, late).is_valid
    from_elsewhere = (late.stamp > 0) & (batch.datacenter[batch.client[item_operations(batch)]] != 0)
    assert (late.visible_ms[0, from_elsewhere] > 900.0).all()
    assert (calm.visible_ms[0, from_elsewhere] < 900.0).all()
    assert late.latency_ms.max() < 10  # clients are served by their own datacenter meanwhile


def item_operations(operations: Operations) -> np.ndarray:
    """Return the operation of each item."""
    return np.repeat(np.arange(len(operations.kind)), np.diff(operations.first))


def test_tables_that_are_too_small_are_enlarged(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = full_cluster(seed=6)
    (batch,) = draw_operations(cluster, operations=4, seed=6)
    expected = run(cluster, batch)
    monkeypatch.setattr("planner_models.geostore.protocol.history.MAX_MESSAGES", 4)
    assert (run(cluster, batch).spans_ms == expected.spans_ms).all()


def test_messages_are_told_by_name(histories: list[History]) -> None:
    frame = histories[0].messages().set_index("message")
    assert frame.loc["dep_check", "between"] == 0  # full replicas check at home (section 3.1)
    assert frame.loc["vote", "within"] == frame.loc["commit", "within"] == frame.loc["ack", "within"]
    assert frame.loc["dep_check", "within"] == frame.loc["dep_check reply", "within"]


@pytest.mark.slow
def test_compiled_code_gives_the_same_histories() -> None:
    cluster = full_cluster(seed=7)
    batches = draw_operations(cluster, histories=2, mix=BUSY, seed=7)
    with compare_with_python() as counts:
        for history in run_many(cluster, batches):
            assert check_history(cluster, history).is_valid
    assert sum(counts.values()) == 4
