"""Queue sizes, and the lead time of enlarging queues, by exhaustive search over trial runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field

from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner_models.circuitflows.designs import operation
from planner_models.circuitflows.plan.metrics import measure
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.problem.problem import FlowsInTime

TRIAL_SHARE: Final = 0.5
"""Share of the time limit for trial runs; the rest is for the run itself."""

Sizes = Annotated[
    tuple[int, ...], Field(min_length=1, description="small queue sizes to try, packets; rising")
]
LargeSizes = Annotated[
    tuple[int, ...], Field(min_length=1, description="large queue sizes to try, packets; rising")
]
Earlies = Annotated[
    tuple[float, ...], Field(min_length=1, description="how early to enlarge queues, to try, us")
]


@dataclass(frozen=True, kw_only=True)
class LatencyBound:
    """The latency that packets may have."""

    latency_us: Annotated[float, Field(gt=0, description="bound on packets' latency, us")] = 200.0
    percentile: Annotated[Literal["median", "p99"], Field(description="of which latency")] = "median"


@dataclass(frozen=True, kw_only=True)
class Trials:
    """The settings of queues that are tried."""

    small: Sizes = (4, 8, 16, 32)
    large: LargeSizes = (16, 32, 64, 128)
    early: Earlies = (0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0, 1_200.0, 1_400.0)
    trial_us: Annotated[float, Field(gt=0, description="length of a trial run, us")] = 100_000.0

    def settings(self) -> list[dict[str, float]]:
        """Return the settings to try, the smallest queues first.

        raises  InputError where no large queue is as large as a small one
        """
        settings = {
            # a queue that never grows is the same however early it does not
            (low, high, 0.0 if low == high else lead)
            for low, high, lead in itertools.product(self.small, self.large, self.early)
            if low <= high
        }
        if not settings:
            raise InputError(f"large: no size is at least the smallest of small, {min(self.small)} packets")
        names = ("queue_packets", "large_packets", "early_us")
        return [dict(zip(names, values, strict=True)) for values in sorted(settings)]


class Trial(NamedTuple):
    """A trial run's figures, the higher the better, and its settings."""

    utilization: float
    negative_latency_us: float
    queues: dict[str, float]


@spread(bound=LatencyBound(), trials=Trials())
def run_tuned_queues(
    problem: FlowsInTime,
    *,
    bound: LatencyBound,
    shifts: Annotated[
        Annotated[tuple[int, ...], Field(min_length=1)] | None,
        Field(description="rings of the fixed week, one a day; default: all there are"),
    ] = None,
    trials: Trials,
    alpha: operation.Alpha = 1.0,
    beta: operation.Beta = 1.0,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run with resize(s, b, tau) of the highest circuit utilization within a bound on latency.

    Every combination is tried on the first part of the run, and the best that keeps the bound there
    is taken for all of it; of equals the one with the least latency. Without one, there is no plan. Under a
    time limit, the combinations that are tried are the first ones, at least one.

    source  Mukerjee 2018, 2.4.2, where the three are set by hand
    """
    rings = tuple(range(1, len(problem.racks))) if shifts is None else shifts
    fixed = {"shifts": rings, "alpha": alpha, "beta": beta}
    deadline = Deadline.of(options)
    finished, is_cut = _run_trials(problem, trials, bound.percentile, fixed, deadline)
    within_bound = [trial for trial in finished if -trial.negative_latency_us <= bound.latency_us]
    if not within_bound:
        lowest = min(-trial.negative_latency_us for trial in finished)
        reason = f"the least {bound.percentile} latency of any setting tried is {lowest:g} us"
        return Decision(plan=None, proof=undecided(reason))
    best = max(within_bound, key=lambda trial: trial[:2])
    remaining_options = deadline.options(options, minimum_s=operation.LEAST_TIME_S)
    decision = operation.run_fixed_schedule(problem, **fixed, **best.queues, options=remaining_options)
    return replace(decision, proof=replace(decision.proof, is_cut=decision.proof.is_cut or is_cut))


def _run_trials(
    problem: FlowsInTime, trials: Trials, percentile: str, fixed: Mapping[str, Any], deadline: Deadline
) -> tuple[list[Trial], bool]:
    """Return the finished trial runs, and whether the time limit cut the last one.

    fixed  parameters of the design that are the same in all
    """
    horizon = min(trials.trial_us, problem.of("horizon_us"))
    first = replace(problem, network=problem.network.assign(horizon_us=horizon))
    finished: list[Trial] = []
    is_cut = False
    for queues in trials.settings():
        remaining_options = deadline.share(TRIAL_SHARE).options(Options(), minimum_s=operation.LEAST_TIME_S)
        trial = operation.run_fixed_schedule(first, **fixed, **queues, options=remaining_options)
        assert trial.plan is not None  # a fixed week always is one
        is_cut = trial.proof.is_cut
        if is_cut and finished:
            break
        figures = measure(first, trial.plan, None)
        latency = figures[f"latency_{percentile}_us"] or 0.0
        finished.append(Trial(figures["circuit_utilization"] or 0.0, -latency, queues))
    return finished, is_cut
