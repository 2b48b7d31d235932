"""Time limits of designs in which routers choose replicas."""

from __future__ import annotations

import pytest

from planner.contract.proof import Status
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner.search.deadline import Deadline
from planner_models.fairshare import SYSTEM
from planner_models.fairshare.designs import mechanisms
from planner_models.fairshare.designs.weights import spread_evenly
from planner_models.fairshare.plan import service
from planner_models.fairshare.plan.plan import FAIR_QUEUING, WINDOWS
from planner_models.fairshare.problem.generators import sample

PROBLEM = sample()


@pytest.mark.parametrize("design", ["fq_pp_rs", "pisces"])
def test_a_design_says_that_the_limit_is_too_short(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(label=design, design=SYSTEM.design(design))
    assert evaluate(SYSTEM, PROBLEM, entry, options=Options(time_limit_s=30.0)).plan is not None
    monkeypatch.setattr(mechanisms, "WINDOW_S_PER_PAIR", 10.0)
    late = evaluate(SYSTEM, PROBLEM, entry, options=Options(time_limit_s=30.0))
    assert late.plan is None
    assert late.proof.status is Status.UNDECIDED
    assert "the time limit is 30 s" in late.proof.reasons[0]
    assert evaluate(SYSTEM, PROBLEM, entry).plan is not None  # without a limit


def test_routers_stop_at_the_time_limit_with_the_best_split_so_far() -> None:
    replicas = mechanisms._place(PROBLEM, "auto", mechanisms.MOST_SLACK, 0)
    weight = spread_evenly(mechanisms.contract_kops(PROBLEM), mechanisms.find_present(PROBLEM, replicas))
    even = service.split_evenly(replicas, len(PROBLEM.partitions))
    late = service.serve(
        PROBLEM,
        replicas,
        even,
        weight,
        queueing=FAIR_QUEUING,
        replica_choice=WINDOWS,
        deadline=Deadline.after(0.0),
    )
    assert late.split.tolist() == even.tolist()
    free = service.serve(PROBLEM, replicas, even, weight, queueing=FAIR_QUEUING, replica_choice=WINDOWS)
    assert free.kops.sum() >= late.kops.sum() * (1 - 1e-3)
