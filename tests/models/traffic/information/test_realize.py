"""Plans made on an observation, realized in truth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.design import Design
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.information import observe
from tests.models.traffic.networks import problems

BY_REPORTS = [design for design in SYSTEM.designs if design.observe is observe.observe_reports]


@pytest.mark.parametrize("design", BY_REPORTS, ids=lambda design: design.name)
@settings(max_examples=6)
@given(
    problem=problems(max_nodes=5),
    information=st.fixed_dictionaries(
        {
            "age_s": st.sampled_from([0.0, 900.0]),
            "noise": st.sampled_from([0.0, 0.8]),
            "granularity": st.sampled_from([0, 3]),
            "seed": st.integers(0, 3),
        }
    ),
)
def test_a_plan_made_on_an_observation_is_valid_in_truth(
    problem: Traffic, design: Design, information: dict[str, Any]
) -> None:
    """`evaluate` rejects invalid plans; served rates are true rates, or the shares that the plan serves."""
    fast = {"weights": {"evaluations": 50}, "hedera_annealing": {"iterations": 5}}.get(design.name, {})
    entry = Entry(label="observing", design=design, parameters=fast, information=information)
    run = evaluate(SYSTEM, problem, entry)
    assert run.plan is not None
    again = evaluate(SYSTEM, problem, entry)
    assert run.metrics["concurrent_flow"] == again.metrics["concurrent_flow"], "same seed, same result"
    best = evaluate(SYSTEM, problem, Entry(label="best", design=SYSTEM.design("optimum")))
    assert run.metrics["delivered_mbps"] <= best.proof.bound * (1 + 1e-6)
