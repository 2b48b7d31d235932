"""Traffic that passes overloaded links, compiled: shares that they pass, admission in order, and fair rates.

The shares are the fixed point at which no link is overloaded.
Links that are not overloaded pass everything on, so each step only follows traffic from one overloaded link
to the next: `Passages` hold those of each target, with the parts of the traffic that go on to each.

For admission and max-min fair rates only overloaded links limit anything, so demands are compared with the
lists of these on their routes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.flows.fair_rates import Caps, Shares, fill_progressively
from planner_models.traffic.plan.delivery import PRECISION
from planner_models.traffic.plan.verified_flow import TOLERANCE

MOST_STEPS: Final = 5_000  # of the fixed point of the shares that links pass


class Routes(NamedTuple):
    """Hops of the traffic to each target, those that leave the farthest nodes first.

    hops, share  links, and the share of the traffic at their tail that they get
    start, stop  (T,) hops[start[t]:stop[t]] are those of target t
    """

    hops: Ints
    share: Floats
    start: Ints
    stop: Ints


class Passages(NamedTuple):
    """Overloaded links on the routes to each target, P pairs of both, each target's last link first.

    first       (T + 1,) passages of target t: first[t]:first[t + 1]
    link        (P,) overloaded link
    enter       (G, P) traffic of each layer that gets there without an overloaded link before, Mbit/s
    begin, end  (P,) next[begin[p]:end[p]] are the next overloaded links after p, as passages, and
                part[begin[p]:end[p]] the parts of its traffic that go there
    """

    first: Ints
    link: Ints
    enter: Floats
    begin: Ints
    end: Ints
    next: Ints
    part: Floats


@njit(cache=True, nogil=True)
def _share_link(available, demand, weight, first, stop, granted):  # type: ignore[no-untyped-def]  # noqa: C901 - one loop
    """Write the amount of each layer of a level on a link, by weight; unused amounts go to others."""
    remaining = available
    for g in range(first, stop):
        granted[g] = -1.0
    while True:
        heavy = 0.0
        for g in range(first, stop):
            if granted[g] < 0:
                heavy += weight[g]
        if heavy == 0.0:
            return
        is_any = False
        water = remaining / heavy
        for g in range(first, stop):
            if granted[g] < 0 and demand[g] <= weight[g] * water:
                granted[g] = demand[g]
                remaining = max(remaining - demand[g], 0.0)
                is_any = True
        if not is_any:
            for g in range(first, stop):
                if granted[g] < 0:
                    granted[g] = weight[g] * water
            return


@njit(cache=True, nogil=True)
def arriving_load(net, g, routes, passed, amount_at, load):  # type: ignore[no-untyped-def]
    """Add the traffic of a layer that arrives at each link, where links pass these shares of it."""
    tail, head = net.tail, net.head
    hops, share, start, stop = routes.hops, routes.share, routes.start, routes.stop
    for t in range(len(net.targets)):
        amount_at[:] = net.rate[g, t]
        for i in range(start[t], stop[t]):
            e = hops[i]
            amount = amount_at[tail[e]] * share[i]
            load[e] += amount
            amount_at[head[e]] += amount * passed[e]


@njit(cache=True, nogil=True)
def find_passages(net, routes, over, first_layer, stop_layer):  # type: ignore[no-untyped-def]
    """Return the passages over the overloaded links, (E,), and the traffic of layers that enters them."""
    nodes, targets = len(net.first_leaving) - 1, len(net.targets)
    hops, start, stop = routes.hops, routes.start, routes.stop
    first = np.zeros(targets + 1, dtype=np.int64)
    for t in range(targets):
        first[t + 1] = first[t]
        for i in range(start[t], stop[t]):
            first[t + 1] += over[hops[i]]
    size = first[targets] + 1  # the last place takes what is not counted
    link, begin, end = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    enter = np.zeros((stop_layer - first_layer, size))
    following, shares = np.empty(2 * size + nodes, dtype=np.int64), np.empty(2 * size + nodes)
    work = _PassageWork(
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.zeros(size),
        np.empty(size, dtype=np.int64),
    )
    amount_at, used = np.zeros(nodes), 0
    for t in range(targets):
        if first[t] == first[t + 1]:
            continue
        max_new = nodes * (first[t + 1] - first[t]) + 1  # of new entries
        if used + max_new > len(shares):
            longer = 2 * len(shares) + max_new
            following = np.append(following, np.empty(longer, dtype=np.int64))
            shares = np.append(shares, np.empty(longer))
        passages = Passages(first, link, enter, begin, end, following, shares)
        used = _link_passages(net, routes, over, t, passages, used, work)
        for g in range(first_layer, stop_layer):
            amount_at[:] = net.rate[g, t]
            _enter_passages(net, routes, over, t, passages, g - first_layer, amount_at)
    return Passages(first, link, enter, begin, end, following, shares)


class _PassageWork(NamedTuple):
    """Arrays of the search for passages.

    from_node, to_node  (N,) entries with the first overloaded links on the way from each node
    scratch, touched    (P,) sums by passage, and the passages that have one
    """

    from_node: Ints
    to_node: Ints
    scratch: Floats
    touched: Ints


@njit(cache=True, nogil=True)
def _link_passages(net, routes, over, t, passages, used, work):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Write the passages of a target, nearest first; return the entries of `part` in use, `used` before."""
    tail, head, p = net.tail, net.head, passages.first[t]
    link, begin, end, following, shares = (
        passages.link,
        passages.begin,
        passages.end,
        passages.next,
        passages.part,
    )
    from_node, to_node, scratch, touched = work
    hops, share = routes.hops, routes.share
    from_node[:] = 0
    to_node[:] = 0
    start, last = routes.start[t], routes.stop[t] - 1
    while last >= start:
        e = hops[last]
        v, w = tail[e], head[e]
        if share[last] == 1.0:  # one way: without branches, as processors predict them badly here
            is_over = over[e]
            link[p], begin[p], end[p] = e, from_node[w], to_node[w]
            following[used], shares[used] = p, 1.0
            from_node[v] = used if is_over else from_node[w]
            to_node[v] = used + 1 if is_over else to_node[w]
            p += is_over
            used += is_over
            last -= 1
            continue
        passage = p
        first = last
        while first >= start and tail[hops[first]] == v:
            first -= 1
        for i in range(first + 1, last + 1):
            e = hops[i]
            if over[e]:
                link[p], begin[p], end[p] = e, from_node[head[e]], to_node[head[e]]
                scratch[p] = share[i]
                touched[p - passage] = p
                p += 1
        count = p - passage
        for i in range(first + 1, last + 1):
            e = hops[i]
            if over[e]:
                continue
            for j in range(from_node[head[e]], to_node[head[e]]):
                if scratch[following[j]] == 0.0:
                    touched[count] = following[j]
                    count += 1
                scratch[following[j]] += share[i] * shares[j]
        from_node[v] = used
        for j in range(count):
            following[used], shares[used] = touched[j], scratch[touched[j]]
            scratch[touched[j]] = 0.0
            used += 1
        to_node[v] = used
        last = first
    return used


@njit(cache=True, nogil=True)
def _enter_passages(net, routes, over, t, passages, layer, amount_at):  # type: ignore[no-untyped-def]
    """Add the traffic of a layer that gets to each passage of a target first.

    layer      row of `enter`
    amount_at  (N,) traffic of the layer to the target, which is overwritten
    """
    tail, head = net.tail, net.head
    hops, share = routes.hops, routes.share
    enter, p = passages.enter[layer], passages.first[t + 1]  # p follows the last of them
    i, stop = routes.start[t], routes.stop[t]
    while i < stop:
        e = hops[i]
        v = tail[e]
        if share[i] == 1.0:
            is_over = over[e]
            p -= is_over
            enter[p] += amount_at[v] if is_over else 0.0
            amount_at[head[e]] += 0.0 if is_over else amount_at[v]
            i += 1
            continue
        after = i
        while after < stop and tail[hops[after]] == v:
            p -= over[hops[after]]
            after += 1
        passage = p
        for j in range(i, after):
            e = hops[j]
            if over[e]:
                enter[passage] += amount_at[v] * share[j]
                passage += 1
            else:
                amount_at[head[e]] += amount_at[v] * share[j]
        i = after


@njit(cache=True, nogil=True)
def _load_of_passages(passages, g, passed, amount_at, load):  # type: ignore[no-untyped-def]
    """Write the traffic of a layer that arrives at each overloaded link, (E,); at (P,) is overwritten."""
    first, link, begin, end = passages.first, passages.link, passages.begin, passages.end
    following, shares = passages.next, passages.part
    amount_at[:] = passages.enter[g]
    for p in range(first[-1]):
        load[link[p]] = 0.0
    for t in range(len(first) - 1):
        for p in range(first[t + 1] - 1, first[t] - 1, -1):
            e = link[p]
            load[e] += amount_at[p]
            amount = amount_at[p] * passed[e]
            for i in range(begin[p], end[p]):
                amount_at[following[i]] += amount * shares[i]


class Loads(NamedTuple):
    """Loads of links and the shares that they pass, in layers of traffic.

    total    (G, E) loads where no link drops traffic
    used     (E,) what lower levels take of the links
    passed   (G, E) share that each link passes
    load     (G, E) loads where links drop traffic
    granted  (G,) amounts of the layers on one link
    """

    total: Floats
    used: Floats
    passed: Floats
    load: Floats
    granted: Floats


@njit(cache=True, nogil=True)
def solve_drops(net, routes, loads, first, stop_layer):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Write the share that links pass of the traffic of a level's layers; return the error of the last step.

    What the level takes of the links is added to `used`.
    """
    total, used, passed, load, _ = loads
    links, layers, capacity = len(net.tail), stop_layer - first, net.capacity
    over = np.zeros(links, dtype=np.bool_)
    is_any = False
    for e in range(links):
        amount = 0.0
        for g in range(first, stop_layer):
            amount += total[g, e]
        if amount > 0 and used[e] + amount > capacity[e] * (1 + TOLERANCE):
            over[e] = True
            is_any = True
    passed[first:stop_layer] = 1.0
    error = 0.0
    if is_any:
        passages = find_passages(net, routes, over, first, stop_layer)
        amount_at = np.empty(len(passages.link))
        full = np.flatnonzero(over)
        damping, best, stalled = 1.0, np.inf, 0
        for _ in range(MOST_STEPS):
            for g in range(layers):
                _load_of_passages(passages, g, passed[first + g], amount_at, load[first + g])
            error = _update_shares(net, loads, full, first, stop_layer, damping)
            if error <= PRECISION:
                error = 0.0
                break
            if error < 0.99 * best:
                best, stalled = error, 0
            else:  # the map may swing: shorter steps
                stalled += 1
                if stalled >= 8:
                    damping, stalled, best = max(0.5 * damping, 0.05), 0, np.inf
    if stop_layer == net.rate.shape[0]:  # no level comes after this one
        return error
    at_node = np.empty(len(net.first_leaving) - 1)
    for g in range(first, stop_layer):
        load[g] = 0.0
        arriving_load(net, g, routes, passed[g], at_node, load[g])
        used += load[g] * passed[g]
    return error


@njit(cache=True, nogil=True)
def _update_shares(net, loads, full, first, stop_layer, damping):  # type: ignore[no-untyped-def]
    """Update the shares that overloaded links pass by their loads; return the largest relative change."""
    _, used, passed, load, granted = loads
    capacity, error = net.capacity, 0.0
    for i in range(len(full)):
        e = full[i]
        available = max(capacity[e] - used[e], 0.0)
        _share_link(available, load[:, e], net.layer_weight, first, stop_layer, granted)
        for g in range(first, stop_layer):
            new = min(granted[g] / load[g, e], 1.0) if load[g, e] > 0 else 1.0
            old = passed[g, e]
            error = max(error, abs(new - old) / max(new, 1e-300) if new > 0 else old)
            if damping < 1.0 and new > 0 and old > 0:
                new = old * (new / old) ** damping
            passed[g, e] = new
    return error


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
    work = np.zeros(len(over)), np.empty(len(over), dtype=np.int64)
    size, max_new = 0, head.shape[1] * over.sum() + 1  # most new entries for a target
    for t in range(len(head)):
        if size + max_new > len(link):
            longer = len(link) + max_new
            link = np.append(link, np.zeros(longer, dtype=np.int64))
            after = np.append(after, np.zeros(longer, dtype=np.int64))
            shares = np.append(shares, np.zeros(longer))
        lists = OverloadedLinks(head, link, shares, after)
        size = _list_of_target(net, routes, over, t, lists, size, work)
    return OverloadedLinks(head, link, shares, after)


@njit(cache=True, nogil=True)
def _list_of_target(net, routes, over, t, lists, size, work):  # type: ignore[no-untyped-def]
    """Write the lists of one target from place `size` on, nearest nodes first; return the entries in use.

    work  sums by link, zero before and after, and the links that have one
    """
    tail, head = net.tail, net.head
    first_entry, link, shares, after = lists.head[t], lists.link, lists.share, lists.after
    scratch, touched = work
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
    shares, caps = Shares(start, link, share), Caps(cap, weight, cap, np.argsort(cap, kind="mergesort"))
    return fill_progressively(shares, net.capacity, caps)
