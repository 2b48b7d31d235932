"""A design as the control plane of flows: what it sees of them, and how it steers them.

source  Sen et al. 2013 (LocalFlow): the scheduling loop of section 3.2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.errors import InputError
from planner.loop import Controller, Round
from planner.options import Options
from planner.system import Decision, Design
from planner_models.traffic import routing
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What the switches' counters say: the flows that are there, and what each has sent so far.

    flow       (F,) their numbers, ascending
    demand     (F,) the demand of each
    sent_mbit  (F,) since it started
    """

    at_s: float
    flow: NDArray[np.int64]
    demand: NDArray[np.int64]
    sent_mbit: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Steering:
    """New routes for flows that were seen; those that came since keep theirs.

    flow      (F,) ascending: whom it is for
    share     (K, E) what of each demand's traffic goes over each link
    decided   (K,) the demands that have a new route
    decision  what the design made
    """

    flow: NDArray[np.int64]
    share: sp.csr_array
    decided: NDArray[np.bool_]
    decision: Decision[Routing]


def scheduler(
    problem: Traffic,
    design: Design,
    *,
    interval_s: float,
    computing_s: float = 0.0,
    link_s: float = 0.0,
    parameters: Mapping[str, Any] | None = None,
    sees: Mapping[str, Any] | None = None,
    options: Options = Options(),
) -> Controller[Steering]:
    """A design as the control plane of a network of flows.

    At the start of each interval it takes what each flow that is there has sent since it was last
    measured, over that time, as the flow's rate. The rates of a demand's flows together are the
    demand, the design routes it, and each of the flows takes the demand's splits. What a plan
    leaves out or does not serve keeps its route.

    source  Sen et al. 2013, section 3.2
    """

    def decide(seen: Seen, last: Round[Steering] | None) -> Steering | None:
        before = last.believed if last else Seen(at_s=0.0, flow=_NONE, demand=_NONE, sent_mbit=_NOTHING)
        rate = _measured(problem, seen, before)
        if not rate.any():
            return None
        believed = design.sees(problem.with_rates(rate), **(sees or {}))
        previous = last.decision.decision if last and last.decision else None
        made = design.decide(believed, options=options, previous=previous, **(parameters or {}))
        if made.plan is None:
            return None
        share, decided = shares_of(believed, made.plan)
        return Steering(flow=seen.flow, share=share, decided=decided, decision=made)

    return Controller(
        name=design.name, decide=decide, period_s=interval_s, computing_s=computing_s, link_s=link_s
    )


_NONE: Final = np.zeros(0, dtype=np.int64)
_NOTHING: Final = np.zeros(0)


def _measured(problem: Traffic, seen: Seen, before: Seen) -> NDArray[np.float64]:
    """(K,) Mbit/s of the flows that are there, since they were last measured."""
    passed_s = seen.at_s - before.at_s
    if passed_s <= 0:
        return np.zeros(len(problem.demands))
    earlier = np.zeros(len(seen.flow))
    _, here, there = np.intersect1d(seen.flow, before.flow, assume_unique=True, return_indices=True)
    earlier[here] = before.sent_mbit[there]
    return totals(seen.demand, (seen.sent_mbit - earlier) / passed_s, len(problem.demands))


def shares_of(problem: Traffic, plan: Routing) -> tuple[sp.csr_array, NDArray[np.bool_]]:
    """(K, E) what of each demand goes over each link by the plan, and (K,) whether it serves any.

    InputError where the plan does not tell its demands apart.
    """
    if "source" not in plan.flows:
        raise InputError("the design's plan does not tell its demands apart, so no flow knows its route")
    flow = routing.flow_mbps(problem, plan)
    surplus = flow @ problem.balance.T  # (K, N)
    served = np.asarray(surplus[np.arange(len(problem.demands)), problem.source]).ravel()
    decided = served > 1e-9 * float(problem.rate_mbps.max(initial=0.0))
    scale = np.divide(1.0, served, out=np.zeros(len(served)), where=decided)
    return sp.csr_array(sp.diags_array(scale) @ flow), decided
