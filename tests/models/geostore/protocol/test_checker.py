"""The checker: each rule finds a history that was changed so as to breach it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner_models.geostore.protocol.checker import (
    GOES_BACK,
    IS_EMPTY,
    NO_TIME,
    NOT_CAUSAL,
    NOT_VISIBLE,
    OUT_OF_ORDER,
    RULES,
    check_history,
)
from planner_models.geostore.protocol.cluster import Cluster
from planner_models.geostore.protocol.history import History, run, run_many
from planner_models.geostore.protocol.state import BATCH, EMPTY, NONE, READ, TRANSACTION
from planner_models.geostore.protocol.workloads import Mix, draw_operations, full_cluster
from tests.models.geostore.protocol.naive_checker import NaiveChecker
from tests.models.geostore.protocol.test_history import operations_of


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return replace(full_cluster(rtt_ms=np.zeros((1, 1)), keys=4, counters=1, servers=2), jitter_ms=0.0)


@pytest.fixture(scope="module")
def history(cluster: Cluster) -> History:
    """One client writes key 0, key 1, both by a transaction, and key 0; another one reads them after that."""
    writes = [(0, BATCH, [0]), (0, BATCH, [1]), (0, TRANSACTION, [0, 1]), (0, BATCH, [0])]
    reads = [(1, READ, [0, 1])] * 12
    return run(cluster, operations_of(*writes, *reads, datacenters=[0, 0]))


def broken(cluster: Cluster, history: History, **changes: Any) -> list[int]:
    """Return the rules that a changed history breaches."""
    return np.flatnonzero(check_history(cluster, replace(history, **changes)).count).tolist()


def test_the_history_itself_is_valid(cluster: Cluster, history: History) -> None:
    assert broken(cluster, history) == []
    assert history.value[-2:].tolist() == [4, 3]


@pytest.mark.parametrize(
    ("values", "rules"),
    [
        ([-2, 3], [IS_EMPTY]),
        ([4, 1], [NO_TIME, GOES_BACK, NOT_CAUSAL]),  # key 1 before the transaction, key 0 after it
        ([2, 1], [NO_TIME, GOES_BACK, NOT_CAUSAL]),  # half of the transaction
        ([0, 1], [GOES_BACK]),  # both as they were once
        ([-1, -1], [GOES_BACK]),
        ([1, 3], [NO_TIME, GOES_BACK]),  # a write of another key
    ],
)
def test_changed_reads(cluster: Cluster, history: History, values: list[int], rules: list[int]) -> None:
    value = history.value.copy()
    value[-2:] = values
    assert set(rules) <= set(broken(cluster, history, value=value))
    assert IS_EMPTY in rules or IS_EMPTY not in broken(cluster, history, value=value)


def test_a_first_read_of_an_old_snapshot_is_no_breach(cluster: Cluster) -> None:
    """Causal consistency does not ask for the newest values of others."""
    rows = [(0, BATCH, [0]), (0, BATCH, [1]), (1, READ, [0, 1])]
    history = run(cluster, operations_of(*rows, datacenters=[0, 0]), think_ms=0.0)
    for values in ([-1, -1], [0, -1], [0, 1]):
        value = history.value.copy()
        value[-2:] = values
        assert broken(cluster, history, value=value) == []
    value[-2:] = -1, 1
    assert NOT_CAUSAL in broken(cluster, history, value=value)


def test_a_datacenter_that_shows_a_write_too_early(cluster: Cluster, history: History) -> None:
    evt = history.evt.copy()
    evt[0, 1] = 1  # key 1 before key 0, on which it depends
    assert OUT_OF_ORDER in broken(cluster, history, evt=evt)


def test_a_write_that_is_lost(cluster: Cluster, history: History) -> None:
    evt = history.evt.copy()
    evt[0, 4] = 0
    assert NOT_VISIBLE in broken(cluster, history, evt=evt)


def test_a_sum_that_no_time_has(cluster: Cluster) -> None:
    rows = [(0, 3, [3]), (0, 3, [3]), (0, READ, [3])]
    operations = operations_of(*rows, datacenters=[0])
    history = run(cluster, replace(operations, amount=np.array([2, 3, 1])))
    assert history.value[2] == 5
    for total, rules in ((5, []), (2, []), (3, [NO_TIME]), (6, [NO_TIME])):
        value = history.value.copy()
        value[2] = total
        assert broken(cluster, history, value=value) == rules


def test_findings_are_told_in_words(cluster: Cluster, history: History) -> None:
    value = history.value.copy()
    value[-1] = -2
    finding = check_history(cluster, replace(history, value=value))
    assert finding.describe() == [f"{RULES[IS_EMPTY]}: 1 operations, first 15"]
    assert not finding.is_valid


def changed(history: History, random: np.random.Generator) -> History:
    """Return a history with a few reads of older values, and a few other times of visibility."""
    operations, value, evt = history.operations, history.value.copy(), history.evt.copy()
    row = np.repeat(np.arange(len(operations.kind)), np.diff(operations.first))
    is_read = operations.kind[row] == READ
    for item in random.choice(np.flatnonzero(is_read), 2):
        started = history.spans_ms[row, 0] < history.spans_ms[row[item], 1]
        earlier = np.flatnonzero(~is_read & started & (operations.key == operations.key[item]))
        value[item] = random.choice([EMPTY, NONE, *earlier])
    for item in random.choice(np.flatnonzero(~is_read), 2):
        datacenter = random.choice(np.flatnonzero(evt[:, item] > 0))
        evt[datacenter, item] = random.choice([0, *evt[datacenter, evt[datacenter] > 0]])
    return replace(history, value=value, evt=evt)


@pytest.mark.parametrize("seed", range(6))
def test_the_naive_checker_counts_the_same(seed: int) -> None:
    """Against the naive checker, on histories as they are and changed."""
    random, mix = np.random.default_rng(seed), Mix(batches=0.2, transactions=0.3, adds=0.0, keys=2)
    cluster = full_cluster(keys=4, counters=0, seed=seed)
    batches = draw_operations(cluster, histories=5, clients=3, operations=6, mix=mix, seed=seed)
    breached = 0
    for history in run_many(cluster, batches, think_ms=5.0, seed=seed):
        assert NaiveChecker(cluster, history).count() == [0] * len(RULES)
        for _ in range(8):
            other = changed(history, random)
            counts = check_history(cluster, other).count.tolist()
            assert counts == NaiveChecker(cluster, other).count()
            breached += sum(counts) > 0
    assert breached > 20
