"""Plans in time: their protocol keeps causal order, and the printed reads do not."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.errors import InputError
from planner_models.geostore import Geostore
from planner_models.geostore.problem import generators
from tests.models.geostore.stores import store, with_groups


def breaches(problem: Geostore, design: str, **parameters: Any) -> float:
    """Return the operations of a simulated plan that break causal order."""
    result = planner.simulate(problem, designs=[design], **parameters)
    simulated = result.runs[0].result
    assert simulated is not None
    value = simulated.metrics["breaches"]
    assert value is not None
    return value


def test_plans_with_closure_keep_causal_order() -> None:
    problem = store(2, regions=6, groups=3, users=3, chain=3, limit_ms=None)
    assert breaches(problem, "optimum", histories=10) == 0


def test_reads_as_printed_break_it() -> None:
    problem = generators.vicci()
    assert breaches(problem, "everywhere", histories=20) == 0
    assert breaches(problem, "everywhere", histories=20, printed=True) > 0


def test_a_store_without_causal_groups_is_refused() -> None:
    problem = with_groups(generators.vicci(), **{"class": "eventual"})
    with pytest.raises(InputError, match="no causal groups"):
        planner.simulate(problem, designs=["everywhere"])
