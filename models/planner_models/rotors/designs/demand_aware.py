"""Designs that schedule circuits for the demand, by system `circuits`: what rotations are compared to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from planner.backends.linear_program import LinearProgram
from planner.contract import progress
from planner.contract.design import Decision
from planner.options import Options
from planner_models.circuits.designs import eclipse, optimum, solstice
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits, switch_table
from planner_models.rotors.designs.decision import decide
from planner_models.rotors.plan.plan import Paths, Routing
from planner_models.rotors.plan.timetable import SCHEDULE, Timetable
from planner_models.rotors.problem.problem import RotorNetwork

SCHEDULE_SCOPE: Final = "schedules of direct circuits"


def schedule_solstice(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule the circuits of a week for its demand by Solstice; traffic goes direct.

    source  Liu et al. 2015 (Solstice)
    """
    return _decide(problem, solstice.schedule(to_week(problem), options=_best(options)), options)


def schedule_eclipse(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule the circuits of a week for its demand by Eclipse; traffic goes direct.

    source  Venkatakrishnan et al. 2016 (Eclipse)
    """
    return _decide(problem, eclipse.schedule(to_week(problem), options=_best(options)), options)


def schedule_best(problem: RotorNetwork, *, options: Options = Options()) -> Decision[Routing]:
    """Schedule the circuits of a week that serve the most of its demand direct, with a proven bound.

    source  Venkatakrishnan et al. 2016 (Eclipse), the problem itself, by system `circuits`
    """
    found = optimum.solve(
        to_week(problem), options=_best(options), report=partial(progress.report, "delivered_mbps")
    )
    return _decide(problem, found, options, scope=SCHEDULE_SCOPE)


def build_model(problem: RotorNetwork) -> LinearProgram:
    """Return the formal model of `scheduled`: that of system `circuits` for one week."""
    return optimum.build_model(to_week(problem))


def to_week(problem: RotorNetwork) -> Circuits:
    """Return one week of the demand as a problem of system `circuits`, without a packet switch."""
    source, target = np.nonzero(problem.demand_mbps)
    return Circuits(
        racks=problem.racks.assign(packet_mbps=0.0),
        demands=pd.DataFrame(
            {
                **problem.name_pairs(source, target),
                "bits": problem.demand_mbps[source, target] * problem.week_us,
            }
        ),
        switch=switch_table(
            night_us=problem.schedule_night_us,
            window_us=problem.week_us,
            circuit_switches=problem.count,
        ),
    )


def _best(options: Options) -> Options:
    """Return the options for a schedule, which sheds what does not fit."""
    return replace(options, service="best")


def _decide(
    problem: RotorNetwork, decision: Decision[Schedule], options: Options, *, scope: str | None = None
) -> Decision[Routing]:
    """Return the decision that repeats the circuits of a week, with direct traffic over them."""
    plan = decision.plan
    if plan is None:
        return Decision(plan=None, proof=decision.proof)
    timetable = read_week(problem, plan)
    rate = np.minimum(timetable.up_share * problem.link_mbps, problem.demand_mbps)
    return decide(
        problem,
        timetable,
        Paths.direct(rate),
        options=options,
        bound=decision.proof.bound if scope else None,
        scope=scope,
        backend=decision.proof.backend,
    )


def read_week(problem: RotorNetwork, plan: Schedule) -> Timetable:
    """Return the circuits of a week's schedule, which repeats."""
    days = plan.configurations
    source, target = problem.rows_of(days)
    start = days["start_us"].to_numpy(float)
    switch = days["switch"].to_numpy(float) if "switch" in days else np.ones(len(days))
    return Timetable(
        kind=SCHEDULE,
        period_us=problem.week_us,
        racks=len(problem.racks),
        switch=switch.astype(np.int64) - 1,
        start=start,
        end=np.minimum(start + days["duration_us"].to_numpy(float), problem.week_us),
        source=source,
        target=target,
    )
