"""Traffic that fits where links are overloaded, compiled: admission in order, and max-min fair rates.

Only overloaded links limit anything, so demands are compared with the lists of these on their routes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.traffic.plan.tcp_rates import fill_progressively


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def admit_flows(first, link, amount, sent, residual, order):  # type: ignore[no-untyped-def]
    """Return how much fits of demands whose flows on links are link, amount[first[k]:first[k + 1]].

    sent      (K,) what demands send with these flows
    residual  (E,) capacities, which are used up
    order     (K,) demands in the order of admission
    """
    admitted = 0.0
    for k in order:
        part = 1.0
        for i in range(first[k], first[k + 1]):
            if amount[i] > 0:
                part = min(part, residual[link[i]] / amount[i])
        for i in range(first[k], first[k + 1]):
            residual[link[i]] = max(residual[link[i]] - part * amount[i], 0.0)
        admitted += part * sent[k]
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
    head, link, part, after = lists.head, lists.link, lists.share, lists.after
    scratch, touched = np.zeros(len(over)), np.empty(len(over), dtype=np.int64)
    size, most = 0, head.shape[1] * over.sum() + 1  # most new entries for a target
    for t in range(len(head)):
        if size + most > len(link):
            longer = len(link) + most
            link = np.append(link, np.zeros(longer, dtype=np.int64))
            after = np.append(after, np.zeros(longer, dtype=np.int64))
            part = np.append(part, np.zeros(longer))
        size = _list_of_target(net, routes, over, t, head[t], link, part, after, size, scratch, touched)
    return OverloadedLinks(head, link, part, after)


@njit(cache=True, nogil=True)
def _list_of_target(  # type: ignore[no-untyped-def]
    net, routes, over, t, first_entry, link, part, after, size, scratch, touched
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
            link[size], part[size], after[size] = e, 1.0, first_entry[w]
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
            place = first_entry[head[e]]
            while place >= 0:
                if scratch[link[place]] == 0.0:
                    touched[count] = link[place]
                    count += 1
                scratch[link[place]] += share[last] * part[place]
                place = after[place]
            last -= 1
        for i in range(count):
            e = touched[i]
            link[size], part[size], after[size] = e, scratch[e], first_entry[v]
            scratch[e] = 0.0
            first_entry[v] = size
            size += 1
    return size


@njit(cache=True, nogil=True)
def admit_in_order(net, lists, is_reached, residual):  # type: ignore[no-untyped-def]
    """Return the traffic that fits where demands are admitted in order; `residual` (E,) is used up."""
    first_entry, link, part, after = lists.head, lists.link, lists.share, lists.after
    row, source, rate = net.row, net.source, net.demand_rate
    admitted = 0.0
    for k in net.order:
        t, v = row[k], source[k]
        if not is_reached[t, v]:
            continue
        amount = rate[k]
        first = first_entry[t, v]
        place = first
        while place >= 0 and amount > 0:
            share = part[place]
            fits = residual[link[place]]
            amount = min(amount, fits if share == 1.0 else fits / share)
            place = after[place]
        if amount <= 0:
            continue
        place = first
        while place >= 0:
            e = link[place]
            residual[e] = max(residual[e] - amount * part[place], 0.0)
            place = after[place]
        admitted += amount
    return admitted


@njit(cache=True, nogil=True)
def fair_rates(net, lists, is_reached):  # type: ignore[no-untyped-def]
    """Return the max-min fair rate of each demand over the overloaded links, (K,); 0 without a path."""
    first_entry, part, after, on_link = lists.head, lists.share, lists.after, lists.link
    row, source, rate = net.row, net.source, net.demand_rate
    demands = len(source)
    start = np.zeros(demands + 1, dtype=np.int64)
    for k in range(demands):
        start[k + 1] = start[k]
        if rate[k] > 0 and is_reached[row[k], source[k]]:
            place = first_entry[row[k], source[k]]
            while place >= 0:
                start[k + 1] += 1
                place = after[place]
    link, share = np.empty(start[demands], dtype=np.int64), np.empty(start[demands])
    cap = np.zeros(demands)
    for k in range(demands):
        if rate[k] > 0 and is_reached[row[k], source[k]]:
            cap[k] = rate[k]
            place, i = first_entry[row[k], source[k]], start[k]
            while place >= 0:
                link[i], share[i] = on_link[place], part[place]
                place = after[place]
                i += 1
    weight = np.ones(demands)
    return fill_progressively(start, link, share, net.capacity, cap, weight, cap, np.argsort(cap))
