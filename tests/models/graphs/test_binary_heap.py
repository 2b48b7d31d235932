"""The compiled heap against sorting."""

import numpy as np
import pytest

from planner_models.graphs.binary_heap import pop_heap, push_heap, sink


@pytest.mark.parametrize("has_places", [False, True])
@pytest.mark.parametrize("has_ties", [False, True])
def test_numbers_leave_in_the_order_of_their_keys(has_places: bool, has_ties: bool) -> None:
    rng = np.random.default_rng(3)
    count = 50
    key = rng.integers(0, 8, count).astype(float)
    tie = rng.permutation(count).astype(float) if has_ties else None
    heap, size = np.empty(count, np.int64), 0
    position = np.full(count, -1) if has_places else None
    for number in range(count):
        size = push_heap(heap, key, position, size, number, tie)
    if has_places:  # keys that fall move up
        for number in range(0, count, 3):
            key[number] -= 5.0
            assert push_heap(heap, key, position, size, number, tie) == size
    remaining = []
    while size:
        number, size = pop_heap(heap, key, position, size, tie)
        remaining.append(number)
    assert sorted(remaining) == list(range(count))
    order = [(key[number], 0.0 if tie is None else tie[number]) for number in remaining]
    assert order == sorted(order)


def test_a_key_that_grew_sinks() -> None:
    key = np.array([1.0, 2.0, 3.0, 4.0])
    heap = np.arange(4)
    key[0] = 3.5
    sink(heap, key, None, 0, 4, 0)
    assert heap[0] == 1
    remaining, size = [], 4
    while size:
        number, size = pop_heap(heap, key, None, size)
        remaining.append(number)
    assert remaining == [1, 2, 0, 3]
