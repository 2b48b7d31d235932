"""Flow scheduling: a design as the control plane that measures and reroutes flows.

source  Sen et al. 2013 (LocalFlow): the scheduling loop of section 3.2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.control_loop import Controller, Round
from planner.contract.design import Decision, Design
from planner.contract.parameters import spread
from planner.errors import InputError
from planner.options import Options
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowCounters:
    """Counters of the switches: the active flows, and the traffic that each has sent so far.

    flow       (F,) numbers of the flows, ascending
    demand     (F,) the demand of each
    sent_mbit  (F,) since it started
    """

    at_s: float
    flow: Ints
    demand: Ints
    sent_mbit: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class RouteUpdate:
    """New routes for observed flows; flows that started later keep theirs.

    flow      (F,) numbers of the observed flows, ascending
    share     (K, E) share of each demand's traffic on each link
    decided   (K,) the demands that have a new route
    decision  of the design
    """

    flow: Ints
    share: sp.csr_array
    decided: Bools
    decision: Decision[Routing]


def hashes_flows(design: Design) -> bool:
    """Return whether switches hash each flow under a design; its plan hashes each demand like a flow."""
    return design.name == "ecmp_hash"


class FlowUpdate(Protocol):
    """New routes for flows, and the decision that they come from."""

    @property
    def decision(self) -> Decision[Routing]: ...


UpdateT = TypeVar("UpdateT", bound=FlowUpdate)


@dataclass(frozen=True, kw_only=True)
class ControlTiming:
    """Interval of a design's schedules, and delays of measurements and decisions."""

    interval_s: Annotated[float, Field(gt=0, description="scheduling interval of the design, s")] = 0.05
    computing_s: Annotated[float, Field(ge=0, description="time that a decision takes, s")] = 0.0
    link_s: Annotated[float, Field(ge=0, description="one-way delay of measurements and of decisions, s")] = (
        0.0
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Scheduler:
    """A design that schedules flows, with parameters of its observation and its decision.

    design  None: routes stay as at the start
    """

    design: Design | None = None
    information: Mapping[str, Any] = field(default_factory=dict)
    decision_parameters: Mapping[str, Any] = field(default_factory=dict)
    options: Options = Options()


@spread(timing=ControlTiming())
def flow_controller(
    problem: Traffic,
    design: Design,
    *,
    timing: ControlTiming,
    information: Mapping[str, Any] | None = None,
    decision_parameters: Mapping[str, Any] | None = None,
    options: Options = Options(),
) -> Controller[RouteUpdate]:
    """Return the controller that schedules the flows of a network by a design.

    At the start of each interval it measures the rate of each active flow since the last measurement.
    The sum over a demand's flows is the demand, the design routes it, and each of the flows takes the
    demand's split ratios. Demands that a plan does not serve keep their routes.

    source  Sen et al. 2013, section 3.2
    """

    def update(
        counters: FlowCounters, observed: Traffic, decision: Decision[Routing], plan: Routing
    ) -> RouteUpdate:
        share, decided = plan_shares(observed, plan)
        if hashes_flows(design):
            decided = np.zeros(len(decided), bool)  # each flow keeps the path that it began with
        return RouteUpdate(flow=counters.flow, share=share, decided=decided, decision=decision)

    scheduler = Scheduler(
        design=design,
        information=information or {},
        decision_parameters=decision_parameters or {},
        options=options,
    )
    return measuring_controller(lambda _: problem, design, scheduler, timing, update)


def measuring_controller(
    problem_at: Callable[[float], Traffic],
    design: Design,
    scheduler: Scheduler,
    timing: ControlTiming,
    update: Callable[[FlowCounters, Traffic, Decision[Routing], Routing], UpdateT],
) -> Controller[UpdateT]:
    """Return the controller of a design that decides on measured rates at intervals, see `flow_controller`.

    problem_at  the network as it is known at a time, with the same demands
    update      what a decision on an observed problem means for the measured flows, of its plan
    """

    def decide(counters: FlowCounters, last: Round[UpdateT] | None) -> UpdateT | None:
        before = (
            last.observed if last else FlowCounters(at_s=0.0, flow=_NONE, demand=_NONE, sent_mbit=_NOTHING)
        )
        problem = problem_at(counters.at_s)
        rate = _measure_rates(problem, counters, before)
        if not rate.any():
            return None
        observed = design.observe(problem.with_rates(rate), **scheduler.information)
        previous = last.decision.decision if last and last.decision else None
        result = design.run(
            observed,
            options=scheduler.options,
            previous=previous,
            parameters=scheduler.decision_parameters,
        )
        return None if result.plan is None else update(counters, observed, result, result.plan)

    return Controller(
        name=design.name,
        decide=decide,
        period_s=timing.interval_s,
        computing_s=timing.computing_s,
        link_s=timing.link_s,
    )


_NONE: Final = np.zeros(0, dtype=np.int64)
_NOTHING: Final = np.zeros(0)


def _measure_rates(problem: Traffic, now: FlowCounters, before: FlowCounters) -> Floats:
    """Return the rate of each demand's active flows since the last measurement, shape (K,), Mbit/s."""
    passed_s = now.at_s - before.at_s
    if passed_s <= 0:
        return np.zeros(len(problem.demands))
    earlier = np.zeros(len(now.flow))
    _, here, there = np.intersect1d(now.flow, before.flow, assume_unique=True, return_indices=True)
    earlier[here] = before.sent_mbit[there]
    return sum_by_index(now.demand, (now.sent_mbit - earlier) / passed_s, len(problem.demands))


def plan_shares(problem: Traffic, plan: Routing) -> tuple[sp.csr_array, Bools]:
    """Return the share of each demand on each link by the plan (K, E), and whether it is served (K,).

    raises  InputError where the plan has flows per target, not per demand
    """
    if "source" not in plan.flows:
        raise InputError("the design's plan has flows per target, not per demand, so flows have no routes")
    flow = routing.flow_by_demand(problem, plan)
    surplus = flow @ problem.incidence.T  # (K, N)
    served = np.asarray(surplus[np.arange(len(problem.demands)), problem.source]).ravel()
    decided = served > 1e-9 * float(problem.rate_mbps.max(initial=0.0))
    scale = np.divide(1.0, served, out=np.zeros(len(served)), where=decided)
    return sp.csr_array(sp.diags_array(scale) @ flow), decided
