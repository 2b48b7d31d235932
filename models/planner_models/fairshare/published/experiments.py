"""Experiments of Pisces in simulated time: the stores of the figures, at a rate that a run can afford.

The paper prints neither the rate of nodes, nor how many requests clients keep outstanding, nor the step and
the base latency of windows. Nodes serve 50,000 requests per second in Fig. 4, else 20,000. Clients keep
`OUTSTANDING` requests for each of their tenant's nodes, which is fitted to Fig. 4a; everything else is as the
paper or the simulation says.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.contract.simulation import SimulationResult
from planner.options import Options
from planner_models.fairshare.designs import mechanisms
from planner_models.fairshare.designs.table import DESIGNS
from planner_models.fairshare.plan.plan import FIRST_COME, WINDOWS, read_plan
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.simulation.study import ratios, run_plan, share_over_time, simulate

NODE_KOPS: Final = 50.0
SLOW_NODE_KOPS: Final = 20.0
OUTSTANDING: Final = 11
"""Requests that a tenant keeps waiting for each of its nodes, fitted to the classes of Fig. 4a."""


class Measured(NamedTuple):
    """Seconds (S,) of a run, and rates and fair shares of tenants in each, (S, T), thousands per second."""

    times: Floats
    kops: Floats
    fair_kops: Floats
    rounds: int

    def between(self, from_s: float, to_s: float) -> tuple[Floats, Floats]:
        """Return mean rates and fair shares in a time, both (T,)."""
        used = (self.times >= from_s - 1e-9) & (self.times < to_s - 1e-9)
        return self.kops[used].mean(axis=0), self.fair_kops[used].mean(axis=0)

    def ratio(self, from_s: float, to_s: float, tenants: Any = slice(None)) -> float:
        """Return the min-max ratio of weighted rates in a time, of all tenants or of some."""
        kops, fair = self.between(from_s, to_s)
        return ratios(kops[tenants], fair[tenants])[1]


def slow_down(store: SharedStore, node_kops: float = NODE_KOPS) -> SharedStore:
    """Return a store with slower nodes, and its demand lowered alike."""
    factor = node_kops / generators.RATE_KOPS
    slower = store.with_nodes(rate_kops=store.nodes["rate_kops"] * factor)
    slower = slower.with_demand(store.demand_kops * factor)
    if store.events is None:
        return slower
    return slower.with_events(store.events.assign(demand_kops=store.events["demand_kops"] * factor))


@cache
def figure_3(*, replicas: int, isolation: bool = False, seed: int = 1) -> SharedStore:
    """Return the store of Fig. 3; in the isolation test, clients of every second tenant are twice as many."""
    store = slow_down(generators.figure_3(replicas=replicas, isolation=isolation, seed=seed), SLOW_NODE_KOPS)
    if not isolation:
        return store
    each = OUTSTANDING * len(store.nodes)
    many = np.where(np.arange(len(store.tenants)) % 2 == 0, 2.0 * each, 1.0 * each)
    return store.with_tenants(outstanding=many)


@cache
def measure(store: SharedStore, design: str, *, until_s: float, weights_from_s: float = 0.0) -> Measured:
    """Return the rates of a run of a design's mechanisms."""
    selected = next(design_ for design_ in DESIGNS if design_.name == design)
    simulated = simulate(
        store, design=selected, information={}, decision_parameters={}, options=Options(), duration_s=until_s,
        measured_from_s=0.0, outstanding=OUTSTANDING, weights_from_s=weights_from_s,
    )  # fmt: skip
    return _read(simulated)


@cache
def measure_first_come(store: SharedStore, *, until_s: float) -> Measured:
    """Return the rates of a feasible placement with replica selection, first come, first served."""
    plan = mechanisms.select_replicas(store).plan
    assert plan is not None
    plan.service.loc[0, ["queueing", "replica_choice"]] = [FIRST_COME, WINDOWS]
    simulated = run_plan(
        store, plan, weight=read_plan(store, plan).weight, controllers=(), duration_s=until_s,
        measured_from_s=0.0, outstanding=OUTSTANDING,
    )  # fmt: skip
    return _read(simulated)


def _read(simulated: SimulationResult) -> Measured:
    times, kops, fair = share_over_time(simulated.tables["rates"])
    return Measured(times, kops, fair, int(simulated.metrics["weight_updates"] or 0))
