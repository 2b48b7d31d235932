"""Kernels of pricing: tables of unbounded knapsacks, two nodes of a host over what they share, and traces.

A table has a row for each state of the dimensions of a node, and a column for each of the whole host, both in
the order of C. Sizes are whole steps of a grid.
"""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel_without_allocation, run_small_in_python

GAIN = 1e-12
"""Values that differ by less are equal."""


def fill_table(table: Floats, shape: Ints, sizes: Ints, values: Floats) -> None:
    """Fill a table with the largest value of any number of items within each state, in place.

    table   (states,) of zeros
    shape   (D,) its lengths, D at least 1
    sizes   (I, D) of the items, each above 0 somewhere
    values  (I,) of the items
    """
    stride = np.cumprod([1, *shape[:0:-1]])[::-1].astype(np.int64)
    _fill(table, shape, stride, np.zeros(len(shape), dtype=np.int64), sizes, values)


@run_small_in_python(max_elements=4_000, max_s=0.3)
@kernel_without_allocation
def _fill(table: Floats, shape: Ints, stride: Ints, state: Ints, sizes: Ints, values: Floats) -> None:
    """Fill a table, with the (D,) strides of its axes and an array for the digits of a state."""
    dimensions = len(shape)
    width = shape[dimensions - 1]
    for item in range(len(values)):
        size, value = sizes[item], values[item]
        offset, fits = 0, True
        for axis in range(dimensions):
            offset += size[axis] * stride[axis]
            fits = fits and size[axis] < shape[axis]
            state[axis] = size[axis]
        step = size[dimensions - 1]
        while fits:
            start = 0
            for axis in range(dimensions - 1):
                start += state[axis] * stride[axis]
            target = table[start + step : start + width]
            source = table[start + step - offset : start + width - offset]
            for index in range(len(target)):
                gain = source[index] + value
                target[index] = gain if gain > target[index] else target[index]
            axis = dimensions - 2
            while axis >= 0:
                state[axis] += 1
                if state[axis] < shape[axis]:
                    break
                state[axis] = size[axis]
                axis -= 1
            fits = axis >= 0


@run_small_in_python(max_elements=4_000, max_s=0.3)
@kernel_without_allocation
def join_nodes(
    tables: tuple[Floats, Floats], outer: Ints, bases: Ints, order: Ints, shared: tuple[Ints, Ints, Ints]
) -> tuple[float, int, int, int]:
    """Return the largest value of two nodes with machines that are split over both, and where it is.

    tables  (states of a node, states of the host) of one node, and of machines that are split
    outer   (K,) states of a node that split machines take of each
    bases   (2,) states of the nodes
    order   (K,) outer states, those whose value within the whole host is largest first
    shared  (S,) states of the host up to its limit, (S, R) their digits, and the limit's digits: in both
    returns value, outer state, and what the split machines and the first node take of the host
    """
    node, split = tables
    states, digits, limit = shared
    last = states[len(states) - 1]
    best, best_outer, best_used, best_first = -1.0, 0, 0, 0
    for position in order:
        taken = outer[position]
        first_row, second_row = node[bases[0] - taken], node[bases[1] - taken]
        nodes = first_row[last] + second_row[last]
        if split[taken, last] + nodes <= best + GAIN:
            break
        for row in range(len(states)):
            used = states[row]
            unused, gain = last - used, split[taken, used]
            if gain + nodes <= best + GAIN or gain + first_row[unused] + second_row[unused] <= best + GAIN:
                continue
            for other in range(len(states)):
                inside = True
                for axis in range(len(limit)):
                    inside = inside and digits[row, axis] + digits[other, axis] <= limit[axis]
                if not inside:
                    continue
                first = states[other]
                value = gain + first_row[first] + second_row[unused - first]
                if value > best + GAIN:
                    best, best_outer, best_used, best_first = value, taken, used, first
    return best, best_outer, best_used, best_first


def trace_items(table: Floats, state: int, sizes: Ints, steps: Ints, values: Floats) -> Ints:
    """Return the number of each item in the largest value of a state, (I,).

    table   (states,) from `fill_table`
    sizes   (I,) steps in the table that the items take
    steps   (I, D) of the items, then the digits of the state
    returns -1 of all where no items have the value of a state
    """
    number = np.zeros(len(values), dtype=np.int64)
    is_traced = _trace(number, steps[len(values)].copy(), table, state, sizes, steps, values)
    return number if is_traced else np.full(len(values), -1, dtype=np.int64)


@run_small_in_python(max_elements=40_000, max_s=0.3)
@kernel_without_allocation
def _trace(
    number: Ints, digits: Ints, table: Floats, state: int, sizes: Ints, steps: Ints, values: Floats
) -> bool:
    """Count the items, in `number`, that make the value of a state, of `digits`; return whether some do."""
    while table[state] > GAIN:
        found = -1
        tolerance = 1e-9 * max(1.0, abs(table[state]))
        for item in range(len(values)):
            fits = True
            for axis in range(len(digits)):
                fits = fits and steps[item, axis] <= digits[axis]
            if fits and table[state - sizes[item]] + values[item] >= table[state] - tolerance:
                found = item
                break
        if found < 0:
            return False
        number[found] += 1
        state -= sizes[found]
        for axis in range(len(digits)):
            digits[axis] -= steps[found, axis]
    return True
