"""Controllers of a running store: placement in minutes, weights in seconds, replicas in milliseconds.

Each decides on what it measures since its last round: placement and weight allocation on requests by tenant,
partition and node, replica selection on the latency of each tenant at each node.

Source: Shue, Freedman, Shaikh 2013 (Pisces), 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np
import pandas as pd

from planner.contract.control_loop import Controller, Round
from planner.contract.design import Decision
from planner_models.fairshare.designs import mechanisms
from planner_models.fairshare.designs.weights import spread_evenly
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Sharing
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import LEAST_KOPS
from planner_models.fairshare.problem.tables import add_up
from planner_models.fairshare.simulation.execution import LEAST_WINDOW, Change, Snapshot
from planner_models.fairshare.simulation.queues import SMOOTHING

Exchange = Literal["swap", "flow"]
SETTLED: Final = 0.01
"""Change of weights, of their mean, from which a round of weight allocation counts as one."""
LARGEST_STEP: Final = 2.0
"""Factor by which a window changes at most in a round, before its step size."""


def measure_demand(problem: SharedStore, now: Snapshot, before: Snapshot | None) -> SharedStore:
    """Return the problem with the demand measured since an earlier snapshot.

    A source that always has requests waiting wants more than it sends: it counts as wanting all nodes.
    """
    sent = (now.sent - (0 if before is None else before.sent)).astype(float)
    seconds = now.now_s - (0.0 if before is None else before.now_s)
    kops = sent / max(seconds, 1e-9) / 1e3
    of_tenant = add_up(problem.tenant, kops, len(problem.tenants))
    more = np.zeros(len(of_tenant), dtype=bool)
    more[problem.tenant[now.is_backlogged]] = True
    total = float(problem.rate_kops.sum())
    factor = np.divide(total, of_tenant, out=np.ones_like(of_tenant), where=more & (of_tenant > 0))
    kops = kops * np.maximum(factor, 1.0)[problem.tenant]
    kops = np.where(kops < LEAST_KOPS, 0.0, kops)
    return problem.with_demand(kops) if kops.any() else problem


def allocate_weights(
    problem: SharedStore,
    *,
    exchange: Exchange,
    swaps: int,
    observe: Callable[[SharedStore], SharedStore],
    period_s: float,
    first_s: float,
) -> Controller[Change]:
    """Return the controller of local weights: swaps between pairs of tenants, or a flow among all."""

    def decide(now: Snapshot, last: Round[Change] | None) -> Change | None:
        before: Snapshot | None = None if last is None else last.observed
        served = (now.served - (0 if before is None else before.served)).astype(float)
        if not served.any():
            return None
        observed = observe(measure_demand(problem, now, before))
        total = served.sum(axis=1, keepdims=True)
        fraction = np.divide(served, total, out=np.zeros_like(served), where=total > 0)
        demand = mechanisms.fit_nodes(observed, fair_share_kops(observed)[:, None] * fraction)
        if exchange == "flow":
            weight = mechanisms.allocate_by_flow(observed, now.replicas, demand)
        else:
            weight = mechanisms.allocate_by_swaps(
                observed, now.replicas, demand, share=now.weight, most=swaps
            )
        floor = mechanisms.LEAST_STEP * spread_evenly(
            mechanisms.contract_kops(problem), mechanisms.find_present(problem, now.replicas)
        )
        weight = np.maximum(weight, floor)
        mean = float(now.weight[now.weight > 0].mean()) if now.weight.any() else 0.0
        return Change(weight=weight) if np.abs(weight - now.weight).max() > SETTLED * mean else None

    return Controller(name="weights", decide=decide, period_s=period_s, first_s=first_s)


def select_replicas(*, step: float, target: float, period_s: float) -> Controller[Change]:
    """Return the controller of windows: each router raises those of nodes with less latency than its mean.

    w <- (1 - a) w + a (w l_base / l_est + target), in units of the tenant's mean window, as in FAST-TCP;
    l_base is its mean latency over its nodes, weighted by its windows. The paper prints the update without
    the factor w and the target, and neither a nor l_base. Without the target, all windows with the same
    latency are at rest, and they drift apart. The step is taken for the part of the estimate that is new
    since the last one: old estimates make windows oscillate.
    """

    def decide(now: Snapshot, last: Round[Change] | None) -> Change | None:
        latency, window = now.latency_s, now.windows
        is_known = latency > 0
        if not is_known.any():
            return None
        weight = np.where(is_known, window, 0.0)
        total = weight.sum(axis=1, keepdims=True)
        base = np.divide(
            (weight * latency).sum(axis=1, keepdims=True), total, out=np.zeros_like(total), where=total > 0
        )
        ratio = np.divide(base, latency, out=np.ones_like(latency), where=is_known & (base > 0))
        ratio = np.clip(ratio, 1 / LARGEST_STEP, LARGEST_STEP)
        answers = now.served - (0 if last is None else last.observed.served)
        steps = step * (1.0 - (1.0 - SMOOTHING) ** answers)
        window = window * ((1 - steps) + steps * ratio) + steps * target
        count = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
        mean = np.where(is_known, window, 0.0).sum(axis=1, keepdims=True) / count
        window = np.where(is_known & (mean > 0), window / np.where(mean > 0, mean, 1.0), window)
        return Change(windows=np.maximum(window, LEAST_WINDOW))

    return Controller(name="replicas", decide=decide, period_s=period_s, first_s=period_s)


def place_again(
    problem: SharedStore,
    decide_plan: Callable[[SharedStore], Decision[Sharing]],
    *,
    keeps_weights: bool,
    period_s: float,
) -> Controller[Change]:
    """Return the controller of placement, which starts from the replicas as they are."""

    def decide(now: Snapshot, last: Round[Change] | None) -> Change | None:
        before: Snapshot | None = None if last is None else last.observed
        observed = measure_demand(problem, now, before)
        placed = pd.DataFrame(
            {
                "tenant": problem.tenant_names[problem.tenant[now.replicas.partition]],
                "partition": problem.partition_names[now.replicas.partition],
                "node": problem.node_names[now.replicas.node],
            }
        )
        plan = decide_plan(observed.with_placed(placed)).plan
        if plan is None:
            return None
        return Change(plan=plan, weight=now.weight if keeps_weights else None)

    return Controller(name="placement", decide=decide, period_s=period_s, first_s=period_s)
