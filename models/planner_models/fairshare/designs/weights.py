"""Local weights: the split of each tenant's fair share over its nodes.

The slack of a tenant at a node is its local share less its demand there; its latency falls with the slack.
Shares of a tenant add up to its fair share, shares of a node to its capacity. `swap_weights` exchanges them
between two tenants at two nodes, as Pisces does; `flow_weights` finds the largest least slack by flows.

Source: Shue, Freedman, Shaikh 2013 (Pisces), 3.2.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.compiled import njit, run_small_in_python
from planner.search.tolerances import ROUNDING

UNITS: Final = 2.0**45
FEASIBLE: Final = ROUNDING
BALANCED: Final = ROUNDING
MOST_ROUNDS: Final = 2_000


class Slack(NamedTuple):
    """Shares (T, N) with their least slack, and the steps (swaps or flows) that found them."""

    share: Floats
    least: float
    steps: int


def spread_evenly(fair_kops: Floats, present: Bools) -> Floats:
    """Return each tenant's fair share, divided alike over its nodes, (T, N): uniform local weights."""
    count = np.maximum(present.sum(axis=1), 1)
    return np.where(present, (fair_kops / count)[:, None], 0.0)


def balance_shares(share: Floats, fair_kops: Floats, capacity: Floats) -> Floats:
    """Return shares scaled so that rows add up to fair shares and columns to capacities, (T, N).

    Where no shares on the same nodes do, rows are exact and columns as near as the scaling comes.

    source  Sinkhorn's iterative proportional fitting
    """
    share = share.copy()
    target = capacity * min(1.0, float(fair_kops.sum()) / max(float(capacity.sum()), 1e-300))
    for _ in range(MOST_ROUNDS):
        column = share.sum(axis=0)
        share *= np.divide(target, column, out=np.ones_like(column), where=column > 0)
        row = share.sum(axis=1)
        off = np.abs(row - fair_kops).max(initial=0.0)
        share *= np.divide(fair_kops, row, out=np.ones_like(row), where=row > 0)[:, None]
        if off <= BALANCED * max(float(fair_kops.max(initial=0.0)), 1e-300):
            break
    return share


def swap_step(slack: Floats, t: int, u: int, n: int, m: int) -> float:
    """Return the share that tenants t and u exchange: u gives to t at node n, t gives to u at node m.

    Each side bisects the slacks at its node. The paper prints min(y(t, u, n), y(t, u, m)), where the second
    has the wrong sign: what t gives away at m must be y(u, t, m).
    """
    at_n = (slack[u, n] - slack[t, n]) / 2
    at_m = (slack[t, m] - slack[u, m]) / 2
    return float(min(at_n, at_m))


def swap_weights(
    share: Floats, demand: Floats, present: Bools, *, least_step: float, most: int = 5_000
) -> Slack:
    """Exchange shares between pairs of tenants until no step raises the least slack, (T, N).

    In each step the tenant and node with the least slack gain from the best partner.

    least_step  smaller steps are not taken
    """
    share = share.copy()
    steps = exchange(share, demand, present, least_step, most)
    slack = (share - demand)[present]
    return Slack(share, float(slack.min()) if len(slack) else 0.0, int(steps))


@run_small_in_python(max_elements=500)
@njit(cache=True, nogil=True)
def exchange(  # noqa: C901 - one compiled loop
    share: Floats, demand: Floats, present: Bools, least_step: float, upper: int
) -> int:
    """Take swap steps in place; return their number."""
    tenants, nodes = share.shape
    lowest_of, lowest_at = np.full(tenants, np.inf), np.full(tenants, -1, dtype=np.int64)
    first, last = 0, tenants  # tenants whose least slack is found again, with a stride
    stride = 1
    for step in range(upper):
        for a in range(first, last, stride):
            lowest_of[a], lowest_at[a] = np.inf, -1
            for b in range(nodes):
                if present[a, b] and share[a, b] - demand[a, b] < lowest_of[a]:
                    lowest_of[a], lowest_at[a] = share[a, b] - demand[a, b], b
        t = -1
        lowest = np.inf
        for a in range(tenants):
            if lowest_of[a] < lowest:
                t, lowest = a, lowest_of[a]
        if t < 0:
            return step
        n = lowest_at[t]
        best, partner, other = least_step, -1, -1
        for u in range(tenants):
            if u == t or not present[u, n]:
                continue
            slack_u = share[u, n] - demand[u, n]
            at_n = min((slack_u - lowest) / 2, slack_u)  # latency is a cost only where slack is left
            if at_n <= best:
                continue
            for m in range(nodes):
                if m == n or not present[t, m] or not present[u, m]:
                    continue
                returned = share[t, m] - demand[t, m]
                y = min(at_n, (returned - (share[u, m] - demand[u, m])) / 2, returned)
                if y > best:
                    best, partner, other = y, u, m
        if partner < 0:
            return step
        share[t, n] += best
        share[partner, n] -= best
        share[t, other] -= best
        share[partner, other] += best
        first, last, stride = min(t, partner), max(t, partner) + 1, abs(t - partner)
    return upper


def bound_slack(fair_kops: Floats, capacity: Floats, demand: Floats, present: Bools) -> float:
    """Return a bound on the least slack: by the sums of each tenant and of each node.

    It is the optimum where shares may add up to less than fair shares and capacities, as (12) and (13) of the
    paper say; sums are all that a controller needs then.
    """
    rows, columns = present.sum(axis=1), present.sum(axis=0)
    by_tenant = (fair_kops - demand.sum(axis=1))[rows > 0] / rows[rows > 0]
    by_node = (capacity - demand.sum(axis=0))[columns > 0] / columns[columns > 0]
    return float(min(by_tenant.min(initial=np.inf), by_node.min(initial=np.inf)))


def flow_weights(fair_kops: Floats, capacity: Floats, demand: Floats, present: Bools) -> Slack:
    """Return the shares with the largest least slack, exactly, by Newton's method over cuts of flows, (T, N).

    Rows add up to fair shares; columns to capacities where all fair shares together take all capacity, else
    to at most that. Tenants whose nodes have less than their fair shares get less, in proportion.

    source  Shue, Freedman, Shaikh 2013, 3.2: multilateral exchanges as a maximum bottleneck flow
    """
    from ortools.graph.python import max_flow

    t, n = np.nonzero(present)
    if not len(t):
        return Slack(np.zeros_like(demand), 0.0, 0)
    tenants, nodes = present.shape
    rows, columns = present.sum(axis=1), present.sum(axis=0)
    base = np.where(present, demand, 0.0)
    fair = np.where(rows > 0, fair_kops, 0.0)
    slack = bound_slack(fair, capacity, base, present)
    units = UNITS / max(float(capacity.sum()), float(fair_kops.sum()), 1e-300)
    graph = max_flow.SimpleMaxFlow()
    first = graph.add_arcs_with_capacity(
        np.zeros(tenants, dtype=np.int32),
        2 + np.arange(tenants, dtype=np.int32),
        np.zeros(tenants, dtype=np.int64),
    )
    middle = graph.add_arcs_with_capacity(
        (2 + t).astype(np.int32), (2 + tenants + n).astype(np.int32), np.full(len(t), 1 << 50, dtype=np.int64)
    )
    last = graph.add_arcs_with_capacity(
        (2 + tenants + np.arange(nodes)).astype(np.int32),
        np.ones(nodes, dtype=np.int32),
        np.zeros(nodes, dtype=np.int64),
    )
    flows = 0
    for _ in range(MOST_ROUNDS):
        flows += 1
        supply, remaining = fair - base.sum(axis=1), capacity - base.sum(axis=0)
        sent = np.where(rows > 0, np.maximum(supply - slack * rows, 0.0), 0.0)
        taken = np.maximum(remaining - slack * columns, 0.0)
        graph.set_arcs_capacity(first, np.floor(sent * units).astype(np.int64))
        graph.set_arcs_capacity(last, np.floor(taken * units).astype(np.int64))
        if graph.solve(0, 1) != graph.OPTIMAL:
            raise RuntimeError("maximum flow of weights failed")
        total = float(np.floor(sent * units).sum())
        if total - graph.optimal_flow() <= FEASIBLE * total + 2 * len(t):
            break
        full = np.ones(2 + tenants + nodes, dtype=bool)
        full[np.asarray(graph.get_sink_side_min_cut(), dtype=np.int64)] = False
        s, k = full[2 : 2 + tenants] & (rows > 0), full[2 + tenants :]
        degree = float(columns[k].sum() - rows[s].sum())
        if degree > 0:
            lower = float(remaining[k].sum() - supply[s].sum()) / degree
            if not lower < slack - 1e-12 * max(abs(slack), 1.0):
                break
            slack = lower
        else:  # these tenants are alone on nodes that have less than their fair shares
            ratio = float(capacity[k].sum()) / max(float(fair[s].sum()), 1e-300)
            if ratio >= 1:
                break
            fair = np.where(s, fair * ratio, fair)
    share = base + np.where(present, slack, 0.0)
    share[t, n] += np.asarray(graph.flows(middle), dtype=float) / units
    return Slack(share, slack, flows)
