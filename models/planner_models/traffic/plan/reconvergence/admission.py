"""Traffic that fits where links are overloaded, compiled: admission in order, and max-min fair rates.

Only overloaded links limit anything, so demands are compared with the lists of these on their routes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.flows.fair_rates import fill_progressively


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def admit_flows(first, link, amount, sent, residual, order):  # type: ignore[no-untyped-def]
    """Return the feasible part of demands with flows on links of link, amount[first[k]:first[k + 1]].

    sent      (K,) what demands send with these flows
    residual  (E,) capacities, which are used up
    order     (K,) demands in the order of admission
    """
    admitted = 0.0
    for k in order:
        fraction = 1.0
        for i in range(first[k], first[k + 1]):
            if amount[i] > 0:
                fraction = min(fraction, residual[link[i]] / amount[i])
        for i in range(first[k], first[k + 1]):
            residual[link[i]] = max(residual[link[i]] - fraction * amount[i], 0.0)
        admitted += fraction * sent[k]
    return admitted


class OverloadedLinks(NamedTuple):
    """Overloaded links on the routes from each node to each target, as linked lists.

    head  (T, N) first entry of each list, -1 for none
    link, share, after  overloaded link, share of the traffic that takes it, and the next entry
    """

    head: Ints
    link: Ints
    share: Floats
    after: Ints


@njit(cache=True, nogil=True)
def allocate_lists(targets, nodes, links):  # type: ignore[no-untyped-def]
    """Return empty lists."""
    none = np.zeros(4 * links, dtype=np.int64)
    return OverloadedLinks(np.full((targets, nodes), -1), none, np.zeros(4 * links), none.copy())


@njit(cache=True, nogil=True)
def list_overloaded(net, routes, over, lists):  # type: ignore[no-untyped-def]
    """Return the lists of overloaded links, (E,), in the arrays of `lists`, or in longer ones if need be."""
    head, link, shares, after = lists.head, lists.link, lists.share, lists.after
    scratch, touched = np.zeros(len(over)), np.empty(len(over), dtype=np.int64)
    size, max_new = 0, head.shape[1] * over.sum() + 1  # most new entries for a target
    for t in range(len(head)):
        if size + max_new > len(link):
            longer = len(link) + max_new
            link = np.append(link, np.zeros(longer, dtype=np.int64))
            after = np.append(after, np.zeros(longer, dtype=np.int64))
            shares = np.append(shares, np.zeros(longer))
        size = _list_of_target(net, routes, over, t, head[t], link, shares, after, size, scratch, touched)
    return OverloadedLinks(head, link, shares, after)


@njit(cache=True, nogil=True)
def _list_of_target(  # type: ignore[no-untyped-def]
    net, routes, over, t, first_entry, link, shares, after, size, scratch, touched
):
    """Write the lists of one target from place `size` on, nearest nodes first; return the entries in use."""
    tail, head = net.tail, net.head
    hops, share, start = routes.hops, routes.share, routes.start[t]
    first_entry[:] = -1
    last = routes.stop[t] - 1
    while last >= start:
        e = hops[last]
        v, w = tail[e], head[e]
        if share[last] == 1.0:  # one way: the list of the next node, and the link; without a branch
            is_over = over[e]
            link[size], shares[size], after[size] = e, 1.0, first_entry[w]
            first_entry[v] = size if is_over else first_entry[w]
            size += is_over
            last -= 1
            continue
        count = 0
        while last >= start and tail[hops[last]] == v:
            e = hops[last]
            if over[e]:
                if scratch[e] == 0.0:
                    touched[count] = e
                    count += 1
                scratch[e] += share[last]
            entry = first_entry[head[e]]
            while entry >= 0:
                if scratch[link[entry]] == 0.0:
                    touched[count] = link[entry]
                    count += 1
                scratch[link[entry]] += share[last] * shares[entry]
                entry = after[entry]
            last -= 1
        for i in range(count):
            e = touched[i]
            link[size], shares[size], after[size] = e, scratch[e], first_entry[v]
            scratch[e] = 0.0
            first_entry[v] = size
            size += 1
    return size


@njit(cache=True, nogil=True)
def admit_in_order(net, lists, is_reached, residual):  # type: ignore[no-untyped-def]
    """Return the traffic that fits where demands are admitted in order; `residual` (E,) is used up."""
    first_entry, link, shares, after = lists.head, lists.link, lists.share, lists.after
    row, source, rate = net.row, net.source, net.demand_rate
    admitted = 0.0
    for k in net.order:
        t, v = row[k], source[k]
        if not is_reached[t, v]:
            continue
        amount = rate[k]
        first = first_entry[t, v]
        entry = first
        while entry >= 0 and amount > 0:
            share = shares[entry]
            fits = residual[link[entry]]
            amount = min(amount, fits if share == 1.0 else fits / share)
            entry = after[entry]
        if amount <= 0:
            continue
        entry = first
        while entry >= 0:
            e = link[entry]
            residual[e] = max(residual[e] - amount * shares[entry], 0.0)
            entry = after[entry]
        admitted += amount
    return admitted


@njit(cache=True, nogil=True)
def fair_rates(net, lists, is_reached):  # type: ignore[no-untyped-def]
    """Return the max-min fair rate of each demand over the overloaded links, (K,); 0 without a path."""
    first_entry, shares, after, on_link = lists.head, lists.share, lists.after, lists.link
    row, source, rate = net.row, net.source, net.demand_rate
    demands = len(source)
    start = np.zeros(demands + 1, dtype=np.int64)
    for k in range(demands):
        start[k + 1] = start[k]
        if rate[k] > 0 and is_reached[row[k], source[k]]:
            entry = first_entry[row[k], source[k]]
            while entry >= 0:
                start[k + 1] += 1
                entry = after[entry]
    link, share = np.empty(start[demands], dtype=np.int64), np.empty(start[demands])
    cap = np.zeros(demands)
    for k in range(demands):
        if rate[k] > 0 and is_reached[row[k], source[k]]:
            cap[k] = rate[k]
            entry, i = first_entry[row[k], source[k]], start[k]
            while entry >= 0:
                link[i], share[i] = on_link[entry], shares[entry]
                entry = after[entry]
                i += 1
    weight = np.ones(demands)
    return fill_progressively(start, link, share, net.capacity, cap, weight, cap, np.argsort(cap))
