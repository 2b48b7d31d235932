"""Simulation of a store in time, with the controllers of a design.

Controllers of a running store: placement in minutes, weights in seconds, replicas in milliseconds.

Each decides on what it measures since its last round: placement and weight allocation on requests by tenant,
partition and node, replica selection on the latency of each tenant at each node.

Source: Shue, Freedman, Shaikh 2013 (Pisces), 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract import control_loop
from planner.contract.control_loop import Controller, Round
from planner.contract.design import Decision, Design, Mechanism
from planner.contract.drawing import Curve
from planner.contract.metrics import Headline, less, more
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.contract.tables import row_name
from planner.errors import InputError
from planner.options import Options
from planner_models.fairshare.designs import mechanisms
from planner_models.fairshare.designs.weights import spread_evenly
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import LIMITS, WINDOWS, Sharing, read_plan
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import LEAST_KOPS
from planner_models.fairshare.problem.tables import add_up
from planner_models.fairshare.simulation.execution import (
    LEAST_WINDOW,
    Change,
    Snapshot,
    StoreExecution,
    quantile_s,
)
from planner_models.fairshare.simulation.queues import SMOOTHING

SETTLED: Final = 0.95
"""Part of the final least share from which a store counts as settled."""
MOST_REQUESTS: Final = 2e9
MOST_CURVES: Final = 12
WEIGHTS: Final[Mapping[str, Exchange]] = {"fq_pp_wa": "swap", "fq_pp_wa_flow": "flow", "pisces": "flow"}
"""Designs that allocate weights in seconds, and how; those of others are of the placement's time."""
METRICS: Final = (
    more("min_share", "", "least rate of a tenant over its fair share, in the mean of time"),
    more("min_max_ratio", "", "least over largest rate of a tenant, each over its fair share"),
    more("throughput_kops", "kops", "requests that are served, of all tenants"),
    less("median_latency_ms", "ms", "time from sending to answer that half of the requests do not exceed"),
    less("p99_latency_ms", "ms", "time from sending to answer that 99% of the requests do not exceed"),
    less("weight_updates", "rounds", "rounds of weight allocation that changed weights"),
    less("settled_s", "s", "time until the min-max ratio of each second stays within 5% of that of the end"),
)
Exchange = Literal["swap", "flow"]
SETTLED_WEIGHT: Final = 0.01
"""Change of weights, of their mean, from which a round of weight allocation counts as one."""
LARGEST_STEP: Final = 2.0
"""Factor by which a window changes at most in a round, before its step size."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Time that is simulated, and the requests in it."""

    duration_s: Annotated[float, Field(gt=0, le=86_400, description="time that is simulated, s")] = 60.0
    measured_from_s: Annotated[
        float, Field(ge=0, description="start of the time that figures are about, s")
    ] = 20.0
    outstanding: Annotated[
        int,
        Field(ge=1, le=10_000, description="requests that a tenant keeps waiting for each of its nodes"),
    ] = 18
    quantum: Annotated[
        float,
        Field(
            gt=0, le=1_000, description="requests in a round of a node, of the tenant with the least weight"
        ),
    ] = 1.0


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """Times of placements and of allocations of weights."""

    placement_s: Annotated[float, Field(gt=0, description="time from one placement to the next, s")] = 300.0
    weights_s: Annotated[
        float, Field(gt=0, description="time from one allocation of weights to the next, s")
    ] = 2.0
    weights_from_s: Annotated[
        float, Field(ge=0, description="start of weight allocation, s; before it, local weights are uniform")
    ] = 0.0
    swaps: Annotated[
        int, Field(ge=1, description="swaps between tenants in a round of weight allocation")
    ] = 20


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Rule by which routers choose replicas."""

    routers_s: Annotated[float, Field(gt=0, description="time from one update of windows to the next, s")] = (
        0.05
    )
    window_step: Annotated[
        float, Field(gt=0, le=1, description="step size of windows (alpha of the paper, which prints none)")
    ] = 0.1
    window_target: Annotated[
        float,
        Field(ge=0, le=100, description="requests that a window aims to keep waiting, of the mean window"),
    ] = 1.0


@spread(traffic=Traffic(), weighing=Weighing(), windows=Windows())
def simulate(
    problem: SharedStore,
    *,
    design: Design[SharedStore, Sharing],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    traffic: Traffic,
    weighing: Weighing,
    windows: Windows,
    traffic_seed: Annotated[int, Field(ge=0, description="seed of the partitions that requests are for")] = 0,
) -> SimulationResult:
    """Simulate requests in queues, under the placement, weights and replica selection of a design.

    The design decides on the demand of the start. Placement is then repeated with the demand that is
    measured; `fq_pp_wa`, `fq_pp_wa_flow` and `pisces` allocate weights, `fq_pp_rs` and `pisces` choose
    replicas by latency.

    returns  table `rates` (at_s, tenant, kops, fair_share_kops)
    raises   InputError for wrong times, several resources, or more requests than can be simulated
    """
    _require_times(problem, traffic.duration_s, traffic.measured_from_s)

    def observe(truth: SharedStore) -> SharedStore:
        observed: SharedStore = design.observe(truth, **information)
        return observed

    def decide_plan(observed: SharedStore) -> Decision[Sharing]:
        return design.run(observe(observed), options=options, parameters=decision_parameters)

    plan = decide_plan(problem).plan
    if plan is None:
        raise InputError(f"{design.name}: has no plan to simulate")
    if plan.queueing == LIMITS:
        raise InputError(f"{design.name}: rate limits are not simulated; their rates are in `compare`")
    content = read_plan(problem, plan)
    exchange = WEIGHTS.get(design.name)
    if exchange == "flow" and decision_parameters.get("exchange") == "swap":
        exchange = "swap"
    present = mechanisms.find_present(problem, content.replicas)
    weight = content.weight
    if exchange is not None:
        weight = spread_evenly(mechanisms.contract_kops(problem), present)
    controllers: list[Controller[Change]] = []
    if design.mechanism in (Mechanism.HIERARCHICAL_PARTITIONING, Mechanism.TRANSPARENCY):
        controllers.append(
            place_again(
                problem, decide_plan, keeps_weights=exchange is not None, period_s=weighing.placement_s
            )
        )
    if exchange is not None:
        controllers.append(
            allocate_weights(
                problem,
                exchange=exchange,
                swaps=weighing.swaps,
                observe=observe,
                period_s=weighing.weights_s,
                first_s=weighing.weights_from_s + weighing.weights_s,
            )
        )
    return run_plan(
        problem,
        plan,
        weight=weight,
        controllers=controllers,
        traffic=traffic,
        windows=windows,
        seed=traffic_seed,
    )


def run_plan(
    problem: SharedStore,
    plan: Sharing,
    *,
    weight: Floats,
    controllers: Sequence[Controller[Change]],
    traffic: Traffic,
    windows: Windows = Windows(),
    seed: int = 0,
) -> SimulationResult:
    """Simulate a plan under controllers; routers choose replicas by latency where the plan says so.

    weight  (T, N) local weights at the start
    """
    execution = StoreExecution(
        problem, plan, weight=weight, outstanding=traffic.outstanding, quantum=traffic.quantum, seed=seed,
        measured_from_s=traffic.measured_from_s,
    )  # fmt: skip
    controllers = list(controllers)
    if plan.replica_choice == WINDOWS:
        controllers.append(
            select_replicas(
                step=windows.window_step, target=windows.window_target, period_s=windows.routers_s
            )
        )
    outcome = control_loop.run(execution, controllers, until_s=traffic.duration_s)
    rates, rounds = outcome.tables["rates"], outcome.rounds
    figures = _measure(rates, traffic.measured_from_s)
    applied = (rounds["controller"] == "weights") & (rounds["outcome"] == "applied")
    for name, quantile in (("median_latency_ms", 0.5), ("p99_latency_ms", 0.99)):
        delay = quantile_s(execution.delays, quantile)
        figures[name] = None if delay is None else 1e3 * delay
    figures["weight_updates"] = float(applied.sum())
    return SimulationResult(
        metrics=figures, tables=outcome.tables, rounds=rounds, drawings=(_draw(rates),) if len(rates) else ()
    )


def _require_times(problem: SharedStore, duration_s: float, measured_from_s: float) -> None:
    faults = []
    if measured_from_s > duration_s - 1:
        faults.append(
            f"simulation.measured_from_s is {measured_from_s:g}, must be at most {duration_s - 1:g}: one "
            "second before the end"
        )
    if problem.capacity.shape[1] > 1:
        faults.append("simulation: requests are the only resource that is simulated; leave out resources")
    requests = float(problem.rate_kops.sum()) * 1e3 * duration_s
    if requests > MOST_REQUESTS:
        faults.append(
            f"simulation.duration_s is {duration_s:g}: nodes serve up to {requests:.3g} requests in it, must "
            f"be at most {MOST_REQUESTS:.0e}; lower duration_s, or scale and rate_scale of the problem"
        )
    if problem.events is not None and len(problem.events):
        row = int(problem.events["at_s"].to_numpy(float).argmax())
        last = float(problem.events["at_s"].iloc[row])
        if last >= duration_s:
            faults.append(
                f"{row_name(problem.events, 'events', row)}: at_s is {last:g}, must be before the end of the "
                f"simulation, {duration_s:g} s; raise duration_s"
            )
    if faults:
        raise InputError(*faults)


def share_over_time(rates: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Return the seconds of a run (S,), and rates and fair shares of tenants in them, (S, T)."""
    times = rates["at_s"].unique()
    shape = (len(times), -1)
    return (
        times.astype(float),
        rates["kops"].to_numpy(float).reshape(shape),
        rates["fair_share_kops"].to_numpy(float).reshape(shape),
    )


def ratios(kops: Floats, fair_kops: Floats) -> tuple[float, float]:
    """Return the least share, at most 1, and the min-max ratio of rates over fair shares, both (T,)."""
    due = fair_kops > 0
    share = kops[due] / fair_kops[due]
    if not len(share) or share.max() <= 0:
        return (1.0, 1.0) if not len(share) else (0.0, 0.0)
    return min(float(share.min()), 1.0), float(share.min() / share.max())


def _measure(rates: pd.DataFrame, from_s: float) -> dict[str, float | None]:
    names = ("min_share", "min_max_ratio", "throughput_kops", "settled_s")
    if not len(rates):
        return dict.fromkeys(names)
    times, kops, fair = share_over_time(rates)
    used = times >= from_s - 1e-9
    if not used.any():
        return dict.fromkeys(names)
    lowest, ratio = ratios(kops[used].mean(axis=0), fair[used].mean(axis=0))
    each = np.array([ratios(rate, due)[1] for rate, due in zip(kops, fair, strict=True)])
    tail = max(len(each) // 4, 1)
    low = np.flatnonzero(each < SETTLED * float(np.median(each[-tail:])))
    settled = 0.0 if not len(low) else float(times[low[-1]] + 1.0)
    return {
        "min_share": lowest,
        "min_max_ratio": ratio,
        "throughput_kops": float(kops[used].sum(axis=1).mean()),
        "settled_s": settled if settled <= times[-1] else None,
    }


def _draw(rates: pd.DataFrame) -> Curve:
    wide = rates.pivot_table(index="at_s", columns="tenant", values="kops", sort=False)
    largest = wide.mean().sort_values(ascending=False, kind="stable").index[:MOST_CURVES]
    frame = wide[list(largest)].reset_index()
    units = {"at_s": "s", **dict.fromkeys(map(str, largest), "kops")}
    return Curve(title="Rates of the largest tenants", frame=frame.rename(columns=str), units=units)


SIMULATION: Final = Simulation(
    run=simulate,
    metrics=METRICS,
    headline=Headline(
        metric="min_share",
        verb="gives every tenant at least {} of its fair share",
        then="p99_latency_ms",
        then_words="with a 99th percentile of latency of",
    ),
    designs=(
        "optimum", "unmodified", "per_node_fair", "fq", "fq_pp", "fq_pp_wa", "fq_pp_wa_flow", "fq_pp_rs",
        "pisces", "rebalance",
    ),
)  # fmt: skip


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
        return Change(weight=weight) if np.abs(weight - now.weight).max() > SETTLED_WEIGHT * mean else None

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
