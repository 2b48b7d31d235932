"""The formal model: as printed it is not work-conserving; with the level as a variable it has the optimum."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.backends.pyomo import solve_model
from planner.errors import InputError
from planner.options import Options
from planner_models.fairshare import SharedStore, formulation
from planner_models.fairshare.designs import optimum
from planner_models.fairshare.problem import generators
from tests.models.fairshare.stores import make, stores


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


REFERENCE = Options(backend="pyomo:highs", gap=1e-6)
SMALL = make(
    {"n1": 10.0, "n2": 10.0},
    {
        "A": (1.0, "elastic", {"a1": (8.0, "n1"), "a2": (4.0, "n1")}),
        "B": (1.0, "elastic", {"b1": (6.0, "n1"), "b2": (6.0, "n2")}),
    },
)


def solve_reference(problem: SharedStore, rule: Any = None, goal: Any = None) -> float:
    """Return the optimum of the formal model in Pyomo with a rule, and perhaps another goal to minimize."""
    import pyomo.environ as pyo

    reference = formulation(problem)
    if rule is not None:
        reference.user = pyo.Constraint(expr=rule(reference))
    if goal is not None:
        reference.goal.deactivate()
        reference.other = pyo.Objective(expr=goal(reference), sense=pyo.minimize)
    objective = pyomo.solve_model(reference, REFERENCE).objective
    assert objective is not None
    return objective


@settings(max_examples=6)
@given(problem=stores(tenants=3, nodes=3))
def test_without_changes_it_is_the_optimum(problem: SharedStore) -> None:
    run = planner.model(problem).solve()
    expected = solve_reference(problem)
    assert run.metrics["min_share"] == pytest.approx(expected, rel=2e-4)
    assert run.proof.metric == "min_share"
    assert run.proof.bound_scope is None


@settings(max_examples=6)
@given(problem=stores(tenants=3, nodes=3), limit=st.sampled_from([0.0, 1.0, 4.0]))
def test_a_cap_of_a_tenant_on_a_node_in_two_expressions(problem: SharedStore, limit: float) -> None:
    model = planner.model(problem)
    tenant, node = problem.tenant_names[0], problem.node_names[0]
    model.add_constraint("cap", model.variables["kops"].where(tenant=tenant, node=node).sum(), upper=limit)
    run = model.solve(gap=1e-6)
    rows = [p for p in range(len(problem.partitions)) if problem.tenant[p] == 0]
    expected = solve_reference(problem, lambda m: sum(m.Q[p, 0] for p in rows) <= limit)
    assert run.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.metrics["min_share"] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    served = run.plan.serving
    on_node = served[(served["tenant"] == tenant) & (served["node"] == node)]
    assert on_node["kops"].sum() <= limit + 1e-4


def test_rates_are_those_of_the_model() -> None:
    model = planner.model(SMALL)
    kops = model.variables["kops"]
    model.add_constraint("B on n2", kops.where(tenant="B", node="n2").sum(), upper=3.0)
    model.add_constraint(
        "a2 on n2", model.variables["placed"].where(partition="a2", node="n2").sum(), equal=1
    )
    run = model.solve()
    rates = run.plan.rates.set_index("tenant")["kops"]
    assert rates["A"] == pytest.approx(run.values("rate")[0], rel=1e-5)
    assert rates["B"] == pytest.approx(run.values("rate")[1], rel=1e-5)
    placement = run.plan.placement
    assert placement.loc[placement["partition"] == "a2", "node"].tolist() == ["n2"]


def test_most_requests_are_served_among_plans_of_one_least_share() -> None:
    problem = make(
        {"n1": 4.0, "n2": 20.0},
        {"A": (1.0, "elastic", {"a": (9.0, "n1")}), "B": (1.0, "elastic", {"b": (15.0, "n2")})},
    )
    model = planner.model(problem)
    model.add_constraint("stay", model.variables["placed"].where(partition="a", node="n1").sum(), equal=1)
    run = model.solve()
    assert run.metrics["throughput_kops"] == pytest.approx(4.0 + 15.0, rel=1e-4)


def test_aims_copy_little_and_keep_off_a_node() -> None:
    result = planner.alternatives(
        SMALL, within=0.2, goals=["least_copied", "least_on=n1", "least_busiest", "most_served"]
    )
    copied, least, busiest, served = result.alternatives
    optimum = result.optimum.objective
    assert optimum is not None
    here = set(zip(*(column.tolist() for column in SMALL.placed_replicas), strict=True))
    expected = solve_reference(
        SMALL,
        lambda m: m.s >= 0.8 * optimum,
        lambda m: sum(m.I[p, n] for p in m.P for n in m.N if (p, n) not in here),
    )
    assert copied.amount == pytest.approx(expected, abs=1e-5)
    assert copied.run.metrics["moved_gb"] == pytest.approx(expected, abs=1e-5)
    expected = solve_reference(SMALL, lambda m: m.s >= 0.8 * optimum, lambda m: sum(m.Q[p, 0] for p in m.P))
    assert least.amount == pytest.approx(expected, abs=1e-4)
    assert busiest.amount == pytest.approx(busiest.run.metrics["max_utilization"], rel=1e-4)
    assert served.amount == pytest.approx(served.run.metrics["throughput_kops"], rel=1e-4)
    assert served.amount >= served.at_optimum - 1e-4


def test_infeasible_changes_are_named() -> None:
    model = planner.model(SMALL)
    model.add_constraint("much", model.variables["kops"].where(node="n1").sum(), lower=11.0)
    run = model.solve()
    assert run.plan is None
    assert any("much" in reason for reason in run.proof.reasons)


def test_unknown_names_are_answered_with_the_nearest() -> None:
    model = planner.model(SMALL)
    with pytest.raises(InputError, match="no variables 'rates'; did you mean 'rate'"):
        model.variables["rates"]
    with pytest.raises(InputError, match="node is 'n3': no such member; valid: n1, n2"):
        model.variables["kops"].where(node="n3")
    with pytest.raises(InputError, match="least_on: 'n4' is no node"):
        planner.alternatives(SMALL, goals="least_on=n4")


def test_all_demand_is_served_or_none_of_it() -> None:
    assert planner.model(SMALL, service="all").solve().plan is None  # 24 of 20
    half = SMALL.with_demand(SMALL.demand_kops / 2)
    run = planner.model(half, service="all").solve()
    assert run.metrics["throughput_kops"] == pytest.approx(12.0, rel=1e-4)


def test_tenants_of_fixed_mix_keep_their_proportions_in_every_aim() -> None:
    problem = make(
        {"n1": 7.0, "n2": 11.0, "n3": 5.0},
        {
            "A": (1.0, "fixed", {"a1": (3.1, "n1"), "a2": (0.7, "n2"), "a3": (9.3, "n3")}),
            "B": (2.0, "fixed", {"b1": (6.3, "n1"), "b2": (2.9, "n2")}),
            "C": (1.0, "elastic", {"c1": (8.0, "n3")}),
        },
    )
    result = planner.alternatives(problem, within=0.05)
    for item in result.alternatives:
        assert not len(item.run.violations)
