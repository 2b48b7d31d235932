"""The formal model: as printed it is not work-conserving; with the level as a variable it has the optimum."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest

from planner.backends.pyomo import solve_model
from planner.options import Options
from planner_models.fairshare import formulation
from planner_models.fairshare.designs import optimum
from planner_models.fairshare.problem import generators
from tests.models.fairshare.stores import make


def test_the_program_as_printed_leaves_capacity_that_a_tenant_wants() -> None:
    """Two equal tenants with demands 2 and 10 on a node of 10: max-min gives 2 and 8, the program 2 and 5."""
    problem = make(
        {"n1": 10.0}, {"A": (1.0, "elastic", {"a": (2.0, "n1")}), "B": (1.0, "elastic", {"b": (10.0, "n1")})}
    )
    plan = optimum.share(problem).plan
    assert plan is not None
    assert plan.rates["kops"].tolist() == pytest.approx([2.0, 8.0])
    # the printed z is the weight's part of all capacity, which others' slack does not raise
    model = formulation(problem, variant="as printed")
    for t in model.T:
        model.fair_share[t].set_value(sum(model.r[t, n] for n in model.N) <= 5.0)
    solve_model(model, Options(threads=1))
    assert [pyo.value(model.x[t]) for t in model.T] == pytest.approx([2.0, 5.0])


@pytest.mark.slow
@pytest.mark.parametrize("mix", ["fixed", "elastic"])
def test_the_model_has_the_optimum(mix: str) -> None:
    for seed in range(3):
        problem = generators.zipf(
            tenants=3, partitions=2, nodes=3, replicas=1, weights="equal", mix=mix, seed=seed
        )
        best = optimum.share(problem)
        solution = solve_model(formulation(problem), Options(threads=1))
        assert solution.objective == pytest.approx(best.proof.objective, rel=1e-4)
