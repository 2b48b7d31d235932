"""Sums over parts: those of all pieces and addresses at once, by plain loops."""

from __future__ import annotations

import ipaddress
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.flowrecords import demand_sums
from planner_models.flowrecords.demand_sums import Cells, PrefixSums
from planner_models.flowrecords.records import MAPPED_LOW, address_halves


@given(seed=st.integers(0, 1 << 32), buckets=st.integers(1, 9), demands=st.integers(1, 30))
def test_cells_are_plain_sums(seed: int, buckets: int, demands: int) -> None:
    random = np.random.default_rng(seed)
    cells = Cells(buckets)
    expected: dict[tuple[int, int], float] = defaultdict(float)
    variances: dict[int, float] = defaultdict(float)
    for count in random.integers(0, 60, 5).tolist():
        key, bucket = random.integers(0, demands, count) * 7, random.integers(0, buckets, count)
        octets = random.integers(1, 1 << 40, count).astype(float)
        cells.add(key, bucket, octets, 2 * octets)
        for row in range(count):
            expected[int(key[row]), int(bucket[row])] += octets[row]
            variances[int(key[row])] += 2 * octets[row]
    keys, sums, variance = cells.finish()
    assert keys.tolist() == sorted(variances)
    assert variance.tolist() == [variances[key] for key in keys.tolist()]
    assert sums.tolist() == [[expected[key, bucket] for bucket in range(buckets)] for key in keys.tolist()]


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_sums, "MAX_CELLS", 100)
    cells, one = Cells(10), np.ones(6)
    cells.add(np.arange(6), np.arange(6), one, one)
    cells.add(np.arange(6) + 4, np.arange(6), one, one)
    with pytest.raises(InputError, match="records: make 11 demands in 10 buckets, must be at most 100 rates"):
        cells.add(np.array([99]), np.array([0]), np.ones(1), np.ones(1))


@given(seed=st.integers(0, 1 << 32))
def test_the_largest_prefixes_are_those_of_all_parts(seed: int) -> None:
    random = np.random.default_rng(seed)
    sums = PrefixSums()
    expected: dict[str, float] = defaultdict(float)
    for count in random.integers(0, 40, 6).tolist():
        prefixes, octets = random.integers(0, 15, count).tolist(), random.integers(1, 10**9, count)
        values = [
            (0x2001 << 112) + (number << 80) + 5 if number % 3 == 0 else MAPPED_LOW + (number << 8) + 7
            for number in prefixes
        ]
        for number, amount in zip(prefixes, octets.tolist(), strict=True):
            address = ipaddress.IPv6Address(number << 80 | 0x2001 << 112)
            name = f"{address}/48" if number % 3 == 0 else f"0.0.{number}.0/24"
            expected[name] += amount
        if count:
            halves = np.array([address_halves(value) for value in values])
            sums.add(halves[:, 0], halves[:, 1], octets.astype(float))
    largest = sums.largest(4)
    assert sorted(largest.values()) == sorted(sorted(expected.values())[-4:])
    assert all(expected[name] == octets for name, octets in largest.items())
