"""Programs of single links, compiled: whole modules at reduced costs, and the traffic that gains most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import SUM_ROUNDING
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Bools, Floats, Ints

MAX_STEPS = 300
"""Combinations of modules of one link that are counted; beyond them a unit has the least price."""

DECREASE = 0.8
"""Of the capacity up to which combinations are counted, until they are few enough."""

LEAST_GAIN = SUM_ROUNDING

MOST_INSERTED = 24
"""Gains in one bucket up to which they are sorted by insertion."""


class Links(NamedTuple):
    """Links: ends and routing cost, (E,); whether directions share the capacity, or each has it."""

    tail: Ints
    head: Ints
    routing_cost: Floats
    is_shared: bool
    has_both: bool


class Steps(NamedTuple):
    """Combinations of modules of each link: those of link e are first[e] to first[e + 1] - 1.

    first     (E + 1,)
    capacity  (T,) with what is installed, rising for each link
    counts    (T, J) of each of a link's kinds
    kind      (E, J) module of each of a link's kinds, -1 for none
    size      (E, J) of its modules
    most      (E,) capacity with all modules
    is_cut    (E,) whether a link can have more capacity than its last step
    """

    first: Ints
    capacity: Floats
    counts: Floats
    kind: Ints
    size: Floats
    most: Floats
    is_cut: Bools


class Potentials(NamedTuple):
    """Potential at each node of each demand, (N, D), and the demands' ends and rates, (D,)."""

    value: Floats
    source: Ints
    target: Ints
    rate: Floats


def build_steps(instance: Instance) -> Steps:
    """Return the combinations of modules of each link."""
    edges = instance.edges
    width = max(1, int(np.bincount(instance.module_edge, minlength=edges).max(initial=0)))
    kind, size = np.full((edges, width), -1), np.ones((edges, width))
    first, capacity, counts = [0], [], []
    largest, is_cut = instance.installed.copy(), np.zeros(edges, dtype=bool)
    for edge in range(edges):
        kinds = np.flatnonzero(instance.module_edge == edge)
        kind[edge, : len(kinds)] = kinds
        size[edge, : len(kinds)] = instance.module_size[kinds]
        total = float(instance.module_size[kinds] @ instance.module_limit[kinds])
        largest[edge] += total
        combined = np.vstack([np.zeros(len(kinds)), np.eye(len(kinds))]) if instance.explicit else None
        limit = total
        while combined is None:
            combined = _combine(instance.module_size[kinds], instance.module_limit[kinds], limit)
            is_cut[edge] |= combined is None
            limit *= DECREASE
        bought = combined @ instance.module_size[kinds]
        order = np.argsort(bought, kind="stable")
        padded = np.zeros((len(order), width))
        padded[:, : len(kinds)] = combined[order]
        counts.append(padded)
        capacity.append(bought[order] + instance.installed[edge])
        first.append(first[-1] + len(order))
    return Steps(np.array(first), np.concatenate(capacity), np.vstack(counts), kind, size, largest, is_cut)


def _combine(size: Floats, limit: Floats, max_size: float) -> Floats | None:
    """Return all counts (T, J) of modules of at most so much capacity; None for more than MAX_STEPS."""
    counts = np.zeros((1, 0))
    used = np.zeros(1)
    for each, copies in zip(size, limit, strict=True):
        number = np.arange(min(float(copies), np.floor(max_size / each + 1e-9)) + 1)
        total = used[:, None] + number * each
        row, column = np.nonzero(total <= max_size * (1 + 1e-9) + 1e-12)
        if len(row) > MAX_STEPS:
            return None
        counts, used = np.column_stack([counts[row], number[column]]), total[row, column]
    return counts


@njit(cache=True)
def _list_gains(links, demands, edge, side, selected, gain):  # type: ignore[no-untyped-def]
    """Write demands that gain on one direction of a link, and gains; return their number, and the most."""
    tail = links.head[edge] if side else links.tail[edge]
    head = links.tail[edge] if side else links.head[edge]
    here, there, price = demands.value[tail], demands.value[head], links.routing_cost[edge]
    count, largest = 0, LEAST_GAIN
    for k in range(len(here)):
        difference = here[k] - there[k]
        if links.is_shared:
            difference = abs(difference)
        difference -= price
        if difference > LEAST_GAIN:
            gain[count], selected[count] = difference, k
            largest = max(largest, difference)
            count += 1
    return count, largest


@njit(cache=True)
def _sort_bucket(order, gain):  # type: ignore[no-untyped-def]
    """Sort demands by their gains, most first."""
    if len(gain) > MOST_INSERTED:
        order_by_gain = np.argsort(-gain)
        order[:], gain[:] = order[order_by_gain], gain[order_by_gain]
        return
    for i in range(1, len(gain)):
        k, value, position = order[i], gain[i], i
        while position > 0 and gain[position - 1] < value:
            order[position], gain[position] = order[position - 1], gain[position - 1]
            position -= 1
        order[position], gain[position] = k, value


@njit(cache=True)
def _sort_gains(links, demands, edge, side, order, gain):  # type: ignore[no-untyped-def]
    """Write demands that gain on one direction of a link, most first, with gains; return their number.

    A bucket sort: that of NumPy takes most of the time of an ascent.
    """
    size = len(demands.rate)
    columns, unsorted = np.empty(size, np.int64), np.empty(size)
    count, largest = _list_gains(links, demands, edge, side, columns, unsorted)
    first = np.zeros(count + 2, np.int64)
    bucket = np.empty(count, np.int64)
    for i in range(count):
        bucket[i] = int((1.0 - unsorted[i] / largest) * count)
        first[bucket[i] + 1] += 1
    for b in range(count + 1):
        first[b + 1] += first[b]
    end = first.copy()
    for i in range(count):
        slot = end[bucket[i]]
        order[slot], gain[slot] = columns[i], unsorted[i]
        end[bucket[i]] = slot + 1
    for b in range(count + 1):
        if end[b] > first[b] + 1:
            _sort_bucket(order[first[b] : end[b]], gain[first[b] : end[b]])
    return count


@njit(cache=True)
def _gain_within(rate, order, gain, count, capacity):  # type: ignore[no-untyped-def]
    """Return the joint gain of demands within a capacity."""
    total = 0.0
    for i in range(count):
        carried = min(rate[order[i]], capacity)
        total += carried * gain[i]
        capacity -= carried
        if capacity <= 0.0:
            break
    return total


@njit(cache=True)
def _carry(links, demands, edge, side, order, count, capacity, missing):  # type: ignore[no-untyped-def]
    """Subtract the flow of demands within a capacity from the missing flow at nodes (N, D)."""
    tail = links.head[edge] if side else links.tail[edge]
    head = links.tail[edge] if side else links.head[edge]
    for i in range(count):
        k = order[i]
        carried = min(demands.rate[k], capacity)
        capacity -= carried
        if links.is_shared and demands.value[tail, k] < demands.value[head, k]:
            carried = -carried
        missing[tail, k] -= carried
        missing[head, k] += carried
        if capacity <= 0.0:
            break


@njit(cache=True)
def _least_beyond(rate, order, gain, count, lower, upper, price):  # type: ignore[no-untyped-def]
    """Return the capacity from `lower` to `upper` with the least price less gain, and that value."""
    capacity = 0.0
    for i in range(count):
        if gain[i] <= price:
            break
        capacity += rate[order[i]]
    if price < 0.0:
        capacity = upper
    capacity = min(max(capacity, lower), upper)
    return capacity, price * capacity - _gain_within(rate, order, gain, count, capacity)


@njit(cache=True)
def _add_gains(rate, order, gain, count, capacity, gained):  # type: ignore[no-untyped-def]
    """Add the gain within each of rising capacities."""
    used, total, index = 0.0, 0.0, 0
    for step in range(len(capacity)):  # each demand is passed once
        while index < count and used + rate[order[index]] <= capacity[step]:
            used += rate[order[index]]
            total += rate[order[index]] * gain[index]
            index += 1
        gained[step] += total + ((capacity[step] - used) * gain[index] if index < count else 0.0)


@njit(cache=True)
def _choose_step(steps, edge, gained, setup_cost, module_cost):  # type: ignore[no-untyped-def]
    """Return the step of a link with the least cost less gain, and that value."""
    best, best_step = np.inf, -1
    for step in range(steps.first[edge], steps.first[edge + 1]):
        cost, is_buying = -gained[step - steps.first[edge]], False
        for j in range(steps.kind.shape[1]):
            if steps.counts[step, j] > 0:
                cost += steps.counts[step, j] * module_cost[steps.kind[edge, j]]
                is_buying = True
        if is_buying:
            cost += setup_cost
        if cost < best:
            best, best_step = cost, step
    return best_step, best


@njit(cache=True)
def _cheapest_kind(steps, edge, module_cost):  # type: ignore[no-untyped-def]
    """Return the kind of module of a link with the least cost of a unit of capacity, and that cost."""
    cheapest, price = 0, np.inf
    for j in range(steps.kind.shape[1]):
        if steps.kind[edge, j] >= 0:
            each = module_cost[steps.kind[edge, j]] / steps.size[edge, j]
            if each < price:
                cheapest, price = j, each
    return cheapest, price


@njit(cache=True)
def _need_all(demands, missing):  # type: ignore[no-untyped-def]
    """Write the flow that all demands need at nodes (N, D); return their difference of potentials."""
    missing[:] = 0.0
    value = 0.0
    for k in range(len(demands.rate)):
        source, target, rate = demands.source[k], demands.target[k], demands.rate[k]
        value += rate * (demands.value[source, k] - demands.value[target, k])
        missing[source, k] += rate
        missing[target, k] -= rate
    return value


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def solve_links(links, steps, demands, setup_cost, module_cost, missing, bought):  # type: ignore[no-untyped-def]
    """Return the least cost of all links less gains, plus the difference of potentials of all demands.

    missing  (N, D) written: flow that demands still need at nodes
    bought   (M,) written: modules of each kind
    """
    rate, value = demands.rate, _need_all(demands, missing)
    bought[:] = 0.0
    sides = 2 if links.has_both else 1
    order, gain = np.empty((sides, len(rate)), np.int64), np.empty((sides, len(rate)))
    count, carried, wide = np.zeros(sides, np.int64), np.empty(sides), np.empty(sides)
    for edge in range(len(links.tail)):
        capacity = steps.capacity[steps.first[edge] : steps.first[edge + 1]]
        gained = np.zeros(len(capacity))
        for side in range(sides):
            count[side] = _sort_gains(links, demands, edge, side, order[side], gain[side])
            _add_gains(rate, order[side], gain[side], count[side], capacity, gained)
        best_step, best = _choose_step(steps, edge, gained, setup_cost[edge], module_cost)
        carried[:] = steps.capacity[best_step]
        if steps.is_cut[edge]:
            cheapest, price = _cheapest_kind(steps, edge, module_cost)
            beyond = setup_cost[edge] - price * capacity[0]
            for side in range(sides):  # each has a share of the price: together at most the cost of both
                wide[side], cost = _least_beyond(
                    rate, order[side], gain[side], count[side], capacity[-1], steps.most[edge], price / sides
                )
                beyond += cost
            if beyond < best:
                best, best_step = beyond, -1
                carried[:] = wide
                extra = (wide.mean() - capacity[0]) / steps.size[edge, cheapest]
                bought[steps.kind[edge, cheapest]] += extra
        value += best
        if best_step >= 0:
            for j in range(steps.kind.shape[1]):
                if steps.counts[best_step, j] > 0:
                    bought[steps.kind[edge, j]] += steps.counts[best_step, j]
        for side in range(sides):
            _carry(links, demands, edge, side, order[side], count[side], carried[side], missing)
    return value


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def write_gains(links, demands, edge_of, size, installed, gain_of):  # type: ignore[no-untyped-def]
    """Write the most gain of one module (M,) beyond the installed ones; return the gain of all installed."""
    total = 0.0
    order, gain = np.empty(len(demands.rate), np.int64), np.empty(len(demands.rate))
    gain_of[:] = 0.0
    for edge in range(len(links.tail)):
        for side in range(2 if links.has_both else 1):
            count = _sort_gains(links, demands, edge, side, order, gain)
            there = _gain_within(demands.rate, order, gain, count, installed[edge])
            total += there
            for m in range(len(edge_of)):
                if edge_of[m] == edge:
                    capacity = installed[edge] + size[m]
                    gain_of[m] += _gain_within(demands.rate, order, gain, count, capacity) - there
    return total
