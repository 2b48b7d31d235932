"""Hotspots: max-weight matchings of the demand left, on days of one length."""

from __future__ import annotations

from planner.contract.design import Decision
from planner_models.circuits.designs import matchings
from planner_models.circuits.designs.partial_schedule import DayLength, PartialSchedule, choose_day_us
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits


def schedule(
    problem: Circuits,
    *,
    day_us: DayLength = None,
) -> Decision[Schedule]:
    """Schedule long days of one length, each with the max-weight matching of the demand left.

    source  Wang et al. 2010 (c-Through), Farrington et al. 2010 (Helios)
    """
    partial, length = PartialSchedule(problem), choose_day_us(problem, day_us)
    while not partial.over and partial.left.any():
        partial.add(matchings.find_heaviest(partial.left), length)
    return schedules.make_decision(problem, partial.days)
