"""The open model of a rotation: constraints of users beside the formal model in time with the same ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.rotors import RotorNetwork, formulation
from tests.models.rotors.networks import networks

REFERENCE = Options(backend="pyomo:highs")


@settings(max_examples=6)
@given(problem=networks(most_racks=4))
def test_without_changes_it_is_the_optimum(problem: RotorNetwork) -> None:
    run = planner.model(problem).solve()
    expected = pyomo.solve_model(formulation(problem), REFERENCE).objective
    assert run.metrics["delivered_mbps"] == pytest.approx(expected, rel=1e-5)
    assert run.proof.bound == pytest.approx(expected, rel=1e-5)
    assert run.proof.bound_scope == "the rotation, direct or by one other rack"


@settings(max_examples=6)
@given(problem=networks(most_racks=4), share=st.sampled_from([0.0, 0.4]))
def test_a_rack_that_relays_for_none_and_a_cap_in_two_expressions(
    problem: RotorNetwork, share: float
) -> None:
    source, target = (int(rows[0]) for rows in (problem.demand_mbps > 0).nonzero())
    limit = share * float(problem.demand_mbps[source, target])
    model = planner.model(problem)
    rate, names = model.variables["rate"], problem.names
    model.add_constraint("cap", rate.where(source=names[source], target=names[target]).sum(), upper=limit)
    model.add_constraint("no relay", rate.where(via=names[-1]).sum(), equal=0)
    last = len(names) - 1

    import pyomo.environ as pyo

    reference = formulation(problem)
    reference.cap = pyo.Constraint(expr=reference.a[source, target] <= limit)
    for key in reference.Y:
        if key[2] == last:
            reference.y[key].fix(0.0)
    expected = pyomo.solve_model(reference, REFERENCE).objective
    run = model.solve()
    assert run.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.metrics["delivered_mbps"] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    routes = run.plan.routes
    assert names[-1] not in set(routes["via"])


@settings(max_examples=4)
@given(problem=networks(most_racks=4))
def test_aims_relay_little(problem: RotorNetwork) -> None:
    aims = ["least_relayed", "least_busiest", f"least_through={problem.names[0]}"]
    result = planner.alternatives(problem, within=0.2, goals=aims)
    optimum = result.optimum.objective
    assert optimum is not None
    for item in result.alternatives:
        assert item.run.metrics["delivered_mbps"] >= 0.8 * optimum * (1 - 1e-6)
        assert item.amount <= item.at_optimum + 1e-6
        assert item.bound == pytest.approx(item.amount, abs=1e-5)
    relayed = result.alternatives[0]
    routes = relayed.run.plan.routes
    is_relayed = routes["via"].fillna("") != ""
    assert relayed.amount == pytest.approx(routes.loc[is_relayed, "rate_mbps"].sum(), abs=1e-4)


@settings(max_examples=3)
@given(problem=networks(most_racks=4))
def test_infeasible_changes_are_named_and_unknown_names_answered(problem: RotorNetwork) -> None:
    model = planner.model(problem)
    rate = model.variables["rate"]
    source, target = (int(rows[0]) for rows in (problem.demand_mbps > 0).nonzero())
    pair = rate.where(source=problem.names[source], target=problem.names[target])
    model.add_constraint("more than there is", pair.sum(), lower=problem.demand_mbps[source, target] + 1)
    run = model.solve()
    assert run.plan is None
    assert any("more than there is" in reason for reason in run.proof.reasons)
    with pytest.raises(InputError, match="no variables 'rates'; did you mean 'rate'"):
        model.variables["rates"]
    with pytest.raises(InputError, match="via is 'nowhere': no such member"):
        rate.where(via="nowhere")
    with pytest.raises(InputError, match="least_through: 'nowhere' is no rack"):
        planner.alternatives(problem, goals="least_through=nowhere")
    with pytest.raises(InputError, match="those that have: two_hop"):
        planner.model(problem, design="direct")
