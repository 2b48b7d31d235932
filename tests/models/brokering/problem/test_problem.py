"""Problems: round trips through tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.brokering import Brokering
from planner_models.brokering.information import observe
from planner_models.brokering.plan.transportation import transportation_problem
from tests.models.brokering.markets import markets


@settings(max_examples=25)
@given(markets())
def test_tables_make_the_same_problem_again(problem: Brokering) -> None:
    again = Brokering.from_tables(problem.to_tables())
    assert again.terms == problem.terms
    assert np.array_equal(again.score, problem.score)
    assert np.array_equal(again.groups.count, problem.groups.count)
    assert np.array_equal(transportation_problem(again).cost, transportation_problem(problem).cost)


@pytest.mark.slow
@settings(max_examples=25)
@given(markets())
def test_an_observation_is_a_problem_like_any(problem: Brokering) -> None:

    observed = observe.multicluster(problem, bids=2)
    again = Brokering.from_tables(observed.to_tables())
    assert np.array_equal(again.offered, observed.offered)
    assert np.array_equal(transportation_problem(again).cost, transportation_problem(observed).cost)
    assert np.array_equal(again.residual_mbps, observed.residual_mbps)
