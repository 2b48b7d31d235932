"""Simulation of designs that decide again as bandwidth and volumes are measured, or once, by forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract import control_loop
from planner.contract.design import Design, Mechanism
from planner.contract.drawing import Curve
from planner.contract.simulation import Simulation, SimulationResult
from planner.options import Options
from planner_models.analytics.designs.rules import list_steps
from planner_models.analytics.plan.answers import find_answers, find_loads, replay_queues
from planner_models.analytics.plan.metrics import HEADLINE, METRICS, find_timely_value, measure_levels
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.simulation.queue_execution import Applied, QueueExecution, vary

Decides = Annotated[
    Literal["again", "once"],
    Field(
        description="again: in each period, on what was measured; once: at the start, on the forecast. "
        "Designs without coordination decide once"
    ),
]
Period = Annotated[
    float, Field(ge=0, description="time from one decision to the next, s; 0: the length of an interval")
]


def simulate_sites(
    problem: Analytics,
    *,
    design: Design[Analytics, Levels],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    decides: Decides = "again",
    period_s: Period = 0.0,
    computing_s: Annotated[float, Field(ge=0, description="time that a decision takes, s")] = 0.0,
    link_s: Annotated[
        float, Field(ge=0, description="one-way delay between sites and their controller, s")
    ] = 0.0,
    bandwidth_variation: Annotated[
        float,
        Field(ge=0, le=2, description="standard deviation of the logarithm of bandwidth about its forecast"),
    ] = 0.2,
    volume_variation: Annotated[
        float,
        Field(ge=0, le=2, description="standard deviation of the logarithm of volumes about their forecast"),
    ] = 0.1,
    headroom: Annotated[
        float, Field(gt=0, le=1, description="part of the measured bandwidth that controllers plan with")
    ] = 1.0,
    variation_seed: Annotated[int, Field(ge=0, description="seed of bandwidth and volumes")] = 0,
) -> SimulationResult:
    """Simulate sites, queues and the controllers of a design; the problem is the forecast.

    Bandwidth and volumes are the forecast times factors with memory, of mean 1. A controller measures the
    last interval that is complete, and how much data waits in queues; it expects the next one to be like it.
    Before its first decision, sites send the coarsest data.
    """
    rng = np.random.default_rng(variation_seed)
    truth = vary(problem, bandwidth_variation=bandwidth_variation, volume_variation=volume_variation, rng=rng)
    steps = list_steps(problem)
    execution = QueueExecution(truth, problem, steps[:, :, -1], headroom=headroom)
    is_once = decides == "once" or design.mechanism is Mechanism.NONE
    rounds = 0

    def observe(measured: Analytics) -> Analytics:
        nonlocal rounds
        rounds += 1
        observed = problem if is_once else measured
        parameters = dict(information)
        if "seed" in parameters:
            parameters["seed"] = int(parameters["seed"]) + rounds  # each measurement has errors of its own
        return design.observe(observed, **parameters) if parameters else design.observe(observed)

    def decide(observed: Analytics, last: control_loop.Round[Applied] | None) -> Applied | None:
        previous = last.decision.decision if last is not None and last.decision is not None else None
        decision = design.run(observed, options=options, previous=previous, parameters=decision_parameters)
        if decision.plan is None:
            return None
        levels = read_levels(observed, decision.plan)
        return Applied(levels if is_once else levels[-1], decision)

    end_s = float(truth.length_s.sum())
    controller = control_loop.Controller[Applied](
        name=design.name,
        decide=decide,
        observe=observe,
        period_s=2 * end_s + link_s if is_once else period_s or float(truth.length_s[0]),
        computing_s=computing_s,
        link_s=link_s,
    )
    outcome = control_loop.run(execution, [controller], until_s=end_s)
    answers = find_answers(truth, execution.chosen)
    delays = replay_queues(truth, find_loads(truth, execution.chosen))
    value, wait_s = find_timely_value(truth, execution.chosen, answers, delays)
    intervals = outcome.tables["queues"].assign(
        value_usd=value.sum(axis=1),
        freshness_s=pd.DataFrame(wait_s).replace(np.inf, np.nan).max(axis=1).to_numpy(),
    )
    curves = [
        Curve(
            title=title,
            frame=intervals[["start_s", column]],
            units={"start_s": "s", column: unit},
        )
        for title, column, unit in (
            ("Value of answers in time", "value_usd", "USD"),
            ("Data that waits at uplinks", "backlog_gb", "GB"),
        )
    ]
    return SimulationResult(
        metrics=measure_levels(truth, execution.chosen),
        tables={"intervals": intervals},
        rounds=outcome.rounds,
        drawings=tuple(curves),
    )


SIMULATION: Final = Simulation(run=simulate_sites, metrics=METRICS, headline=HEADLINE)
