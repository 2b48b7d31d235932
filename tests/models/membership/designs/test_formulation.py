"""The formal model against the search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyomo.environ as pyo
import pytest

import planner
from planner.errors import InputError
from planner_models.membership import formulation
from planner_models.membership.designs import planned
from planner_models.membership.problem.generators import regions, small


@pytest.mark.slow
@pytest.mark.parametrize("witness", ["", "east a"])
def test_the_model_has_the_optimum_of_the_search(witness: str) -> None:
    problem = replace(small(), pauses=None, current=None)
    cells = ["yes" if name == witness else "" for name in problem.site_names]
    problem = replace(problem, sites=problem.sites.assign(witness=cells))
    model = formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(model)
    assert pyo.value(model.proof_objective) == pytest.approx(planned.plan(problem).proof.objective, rel=1e-4)


def test_many_elements_are_refused() -> None:
    with pytest.raises(InputError, match="the formal model has at most 14"):
        formulation(regions())


def test_export_says_that_no_design_has_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="planned: has no formal model; no design of the system has one"):
        planner.export("membership/witness", design="planned", out=tmp_path / "m.lp")
