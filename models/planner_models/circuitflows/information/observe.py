"""Observation of the demand in reports that may be old, noisy or coarse.

The network runs as it does; an observed problem differs in the reports that schedulers get of it.
"""

from __future__ import annotations

from dataclasses import replace

from planner.contract.degradation import Noise, Seed
from planner_models.circuitflows.problem.problem import FlowsInTime, Reports
from planner_models.circuits.information.observe import Age, Granularity


def observe_reports(
    problem: FlowsInTime,
    *,
    age_us: Age = 0.0,
    noise: Noise = 0.0,
    granularity_bytes: Granularity = 0.0,
    seed: Seed = 0,
) -> FlowsInTime:
    """Return the network with such reports; the problem itself where they are immediate and exact."""
    reports = Reports(age_us=age_us, noise=noise, granularity_bytes=granularity_bytes, seed=seed)
    return problem if reports.are_exact else replace(problem, reports=reports)
