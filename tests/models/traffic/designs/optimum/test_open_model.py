"""The open model of `optimum`: constraints of users beside the formal model in Pyomo with the same ones."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic import Traffic, formulation
from planner_models.traffic.designs.optimum.open_model import find_separate
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import network, problems

REFERENCE = Options(backend="pyomo:highs")
DIAMOND = network(
    [("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 6.0), ("c", "d", 6.0)],
    [("a", "d", 14.0), ("b", "d", 4.0)],
)


def test_without_changes_it_is_the_optimum() -> None:
    run = planner.model(DIAMOND).solve()
    assert run.metrics["delivered_mbps"] == pytest.approx(16.0)
    assert run.proof.bound == pytest.approx(16.0)
    assert run.proof.bound_scope is None
    assert run.metrics["delivered_mbps"] == pytest.approx(planner.solve(DIAMOND).metrics["delivered_mbps"])


def test_among_optima_the_links_are_least_loaded() -> None:
    problem = network([("a", "b", 10.0), ("a", "b", 10.0)], [("a", "b", 8.0)])
    assert planner.model(problem).solve().metrics["max_utilization"] == pytest.approx(0.4)


def test_a_link_that_one_customer_must_avoid() -> None:
    model = planner.model(DIAMOND, separate=["a->d"])
    flow = model.variables["flow"]
    model.add_constraint("avoid", flow.where(commodity="a->d", link="b->d").sum(), upper=1.0)
    run = model.solve()
    assert run.metrics["delivered_mbps"] == pytest.approx(6.0 + 1.0 + 4.0)
    assert run.price("avoid") == pytest.approx(1.0)
    assert run.proof.bound_scope == "plans of the changed model"
    flows = run.plan.flows
    on_link = flows[(flows["source"] == "a") & (flows["tail"] == "b") & (flows["head"] == "d")]
    assert on_link["rate_mbps"].sum() == pytest.approx(1.0)


def test_at_most_so_many_paths_of_a_demand() -> None:
    problem = network(
        [(a, b, 2.0) for a in ("s",) for b in ("p", "q", "r")] + [(b, "t", 2.0) for b in ("p", "q", "r")],
        [("s", "t", 6.0)],
    )
    model = planner.model(problem, paths=3)
    path = model.variables["path"]
    used = model.add_variables("used", path.shape, upper=1, integer=True)
    model.add_constraint("rate on used paths", path - 6.0 * used, upper=0)
    model.add_constraint("paths", used.sum_by(*_codes(path)), upper=2)
    run = model.solve()
    assert run.metrics["delivered_mbps"] == pytest.approx(4.0)
    assert len(run.plan.routes) == 2
    assert run.price("paths").shape == (1,)


@settings(max_examples=10)
@given(problem=problems(max_nodes=5, max_demands=3, parallel=False))
def test_two_paths_in_two_expressions(problem: Traffic) -> None:
    """The reference reads the nodes of each path, and knows nothing else of ours."""
    model = planner.model(problem, objective="total", paths=4)
    path = _limit_paths(model, problem, 2)
    reference = two_paths_reference(problem, path, integer=True)
    answer = pyomo.solve_model(reference, REFERENCE)
    assert model.solve().objective == pytest.approx(answer.objective, rel=1e-6)


def _limit_paths(model: Any, problem: Traffic, limit: int) -> Any:
    """Add a limit on the paths of each demand, as docs/howto/bring_your_own.md does; return the paths."""
    path = model.variables["path"]
    codes, demands = path.codes("demand")
    rate = dict(zip(problem.demand_labels, problem.rate_mbps, strict=True))
    used = model.add_variables("used", path.shape, upper=1, integer=True)
    rates = np.array([rate[demand] for demand in demands])[codes]
    model.add_constraint("rate on used paths", path - rates * used, upper=0)
    model.add_constraint("paths", used.sum_by(codes, len(demands)), upper=limit)
    return path


def two_paths_reference(problem: Traffic, path: Any, *, integer: bool) -> pyo.ConcreteModel:
    """Return the formal model of at most two paths a demand, or its relaxation where not `integer`."""
    routes = [(row.demand, row.path.split("->")) for row in path.members.itertuples()]
    rate = dict(zip(problem.demand_labels, problem.rate_mbps, strict=True))
    paths_of: dict[str, list[int]] = {}
    paths_on: dict[tuple[str, str], list[int]] = {}
    for p, (demand, nodes) in enumerate(routes):
        paths_of.setdefault(demand, []).append(p)
        for link in itertools.pairwise(nodes):
            paths_on.setdefault(link, []).append(p)
    reference = pyo.ConcreteModel()
    reference.x = pyo.Var(range(len(routes)), domain=pyo.NonNegativeReals)
    reference.y = pyo.Var(
        range(len(routes)), domain=pyo.Binary if integer else pyo.NonNegativeReals, bounds=(0, 1)
    )
    reference.rows = pyo.ConstraintList()
    for p, (demand, _) in enumerate(routes):
        reference.rows.add(reference.x[p] <= rate[demand] * reference.y[p])
    for demand, paths in paths_of.items():
        reference.rows.add(sum(reference.y[p] for p in paths) <= 2)
        reference.rows.add(sum(reference.x[p] for p in paths) <= rate[demand])
    for row in problem.links.itertuples():
        if paths := paths_on.get((row.tail, row.head)):
            reference.rows.add(sum(reference.x[p] for p in paths) <= row.capacity_mbps)
    reference.goal = pyo.Objective(expr=sum(reference.x.values()), sense=pyo.maximize)
    return reference


def _codes(path: Any) -> tuple[Any, int]:
    codes, names = path.codes("demand")
    return codes, len(names)


def test_an_objective_with_the_cost_of_carbon() -> None:
    model = planner.model(DIAMOND)
    flow = model.variables["flow"]
    grams = flow.members["link"].map({"a->b": 0.2, "b->d": 0.2, "a->c": 2.0, "c->d": 2.0}).to_numpy(float)
    model.set_objective(model.objective - (grams * flow).sum())
    run = model.solve()
    assert run.metrics["delivered_mbps"] == pytest.approx(10.0)  # the way over c costs more than it serves
    assert run.objective == pytest.approx(6.0 + 4.0 - 6.0 * 0.4 - 4.0 * 0.2)
    assert run.bound == pytest.approx(run.objective)
    assert run.proof.metric is None


def test_infeasible_changes_are_named() -> None:
    model = planner.model(DIAMOND)
    flow = model.variables["flow"]
    model.add_constraint("much over c", flow.where(link="a->c").sum(), lower=7.0)
    run = model.solve()
    assert run.plan is None
    assert run.exit_code == 3
    assert any("much over c" in reason for reason in run.proof.reasons)
    with pytest.raises(InputError, match="has no solution"):
        run.price("much over c")


def test_unknown_names_are_answered_with_the_nearest() -> None:
    model = planner.model(DIAMOND)
    with pytest.raises(InputError, match="no variables 'flows'; did you mean 'flow'"):
        model.variables["flows"]
    flow = model.variables["flow"]
    with pytest.raises(InputError, match="members have no column 'lnk'; did you mean 'link'"):
        flow.where(lnk="a->b")
    with pytest.raises(InputError, match="link is 'a->bb': no such member; did you mean 'a->b'"):
        flow.where(link="a->bb")
    with pytest.raises(InputError, match="separate: 'a->x' is no demand"):
        planner.model(DIAMOND, separate="a->x")
    with pytest.raises(InputError, match="separate: with paths"):
        planner.model(DIAMOND, paths=2, separate="a->d")
    with pytest.raises(InputError, match="no such parameter of the model of optimum; did you mean 'paths'"):
        planner.model(DIAMOND, path=2)
    with pytest.raises(InputError, match="has no model that can be changed; those that have: optimum"):
        planner.model(DIAMOND, design="ecmp")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda m, f: m.add_constraint("c", f.sum(), upper="10G"), "c.: limit .10G. is no number"),
        (lambda m, f: m.add_constraint("c", f.sum(), upper=float("nan")), "c.: a limit is not a number"),
        (lambda m, f: m.add_constraint("c", f.sum() * float("nan"), upper=1), "a coefficient is no finite"),
        (lambda m, f: m.add_constraint("c", f.sum() * float("inf"), upper=1), "a coefficient is no finite"),
        (lambda m, f: m.set_objective(f.sum() * float("nan")), "objective: a coefficient is no finite"),
        (lambda m, f: m.add_constraint("c", f.sum() <= 1), "a comparison is no constraint: write add_con"),
        (lambda _, f: f**2, "a power of an expression is not linear"),
        (lambda _, f: f * f, "a product of two expressions is not linear"),
        (lambda _, f: abs(f), "the absolute value of an expression is not linear"),
        (lambda _, f: 3 - f.sum(), "3 is no expression of variables"),
        (lambda m, _: m.add_variables("x", -3), "the shape is -3, must have lengths of at least 0"),
        (lambda m, _: m.add_variables("x", 10**12), "at most 100,000,000 members"),
        (lambda m, _: m.add_variables("x", lower=float("nan")), "variables .x.: a limit is not a number"),
    ],
)
def test_what_is_not_linear_or_no_number_is_one_clear_line(change: Any, line: str) -> None:
    model = planner.model("traffic/abilene")
    with pytest.raises(InputError, match=line):
        change(model, model.variables["flow"])


def test_variables_of_another_model_are_refused() -> None:
    model, other = planner.model("traffic/abilene"), planner.model("traffic/abilene")
    mine, theirs = model.variables["flow"].sum(), other.variables["flow"].where(head="HSTNng").sum()
    with pytest.raises(InputError, match="constraint 'c': has variables of another model"):
        model.add_constraint("c", theirs, upper=1)
    with pytest.raises(InputError, match="objective: has variables of another model"):
        model.set_objective(2 * theirs)
    with pytest.raises(InputError, match="the expressions have variables of two models"):
        mine + theirs


@pytest.mark.parametrize("separate", [(), "all"])
@pytest.mark.parametrize("objective", ["total", "concurrent"])
@settings(max_examples=15)
@given(problem=problems(), share=st.sampled_from([0.0, 0.3, 0.7]), data=st.data())
def test_a_cap_on_a_link_in_two_expressions(
    objective: Any, separate: Any, problem: Traffic, share: float, data: st.DataObject
) -> None:
    problem = problem.routable
    if not (problem.rate_mbps > 0).any():
        return
    link = data.draw(st.integers(0, len(problem.links) - 1))
    limit = share * float(problem.capacity_mbps[link])
    reference = formulation(problem, objective=objective, commodity="pair")
    reference.cap = pyo.Constraint(expr=sum(reference.f[i, link] for i in reference.I) <= limit)
    answer = pyomo.solve_model(reference, REFERENCE)
    model = planner.model(problem, objective=objective, separate=separate)
    flow = model.variables["flow"]
    model.add_constraint("cap", flow.where(link=problem.link_labels[link]).sum(), upper=limit)
    run = model.solve()
    assert run.objective == pytest.approx(answer.objective, rel=1e-6, abs=1e-7)
    load = run.plan.links["load_mbps"].to_numpy(float)[link]
    assert load <= limit * (1 + 1e-6) + 1e-9


def test_demands_are_found_by_label_end_and_class() -> None:
    assert find_separate(DIAMOND, ["a"]).tolist() == [0]
    assert find_separate(DIAMOND, ["d"]).tolist() == [0, 1]
    assert find_separate(DIAMOND, "b->d").tolist() == [1]
    assert find_separate(DIAMOND, "all").tolist() == [0, 1]


REGION = ("Koeln", "Duesseldorf", "Essen", "Dortmund", "Wesel", "Aachen", "Bielefeld", "Muenster")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["region", pytest.param("customer", marks=pytest.mark.exhaustive), "carbon"])
def test_constraints_on_germany50_in_two_expressions(kind: str) -> None:
    problem = generators.germany50().scale_demands(1.2)
    names = problem.nodes["node"].tolist()
    region = {names.index(name) for name in REGION if name in names}
    into = [e for e in range(len(problem.links)) if problem.head[e] in region]
    berlin = names.index("Berlin")
    avoided = [e for e in range(len(problem.links)) if names[problem.tail[e]] == "Hannover"]
    model = planner.model(problem, objective="total", separate="Berlin" if kind == "customer" else ())
    flow = model.variables["flow"]
    members = flow.members
    # flows of all demands from Berlin are apart; those to one target are one commodity in the reference too
    reference = formulation(problem, objective="total", commodity="pair" if kind == "customer" else "target")
    if kind == "region":
        model.add_constraint("region", flow.where(head=[names[v] for v in region]).sum(), upper=60_000.0)
        reference.extra = pyo.Constraint(
            expr=sum(reference.f[i, e] for i in reference.I for e in into) <= 60_000
        )
    elif kind == "customer":
        labels = [label for label in problem.demand_labels if label.startswith("Berlin->")]
        model.add_constraint("customer", flow.where(commodity=labels, tail="Hannover").sum(), equal=0.0)
        reference.extra = pyo.Constraint(
            expr=sum(reference.f[i, e] for i in reference.I if i[0] == berlin for e in avoided) == 0
        )
    else:
        latency = dict(zip(problem.link_labels, problem.links["latency_ms"], strict=True))
        grams = members["link"].map(latency).to_numpy(float)
        model.set_objective(model.objective - 0.01 * (grams * flow).sum())
        (goal,) = reference.component_objects(pyo.Objective, active=True)
        lengths = problem.links["latency_ms"].to_numpy(float)
        carbon = sum(0.01 * lengths[e] * reference.f[i, e] for i in reference.I for e in reference.E)
        expression = goal.expr
        goal.deactivate()
        reference.with_carbon = pyo.Objective(expr=expression - carbon, sense=pyo.maximize)
    run = model.solve()
    answer = pyomo.solve_model(reference, REFERENCE)
    assert run.objective == pytest.approx(answer.objective, rel=1e-6)
    if kind == "region":
        # one unit more of the limit: the price is the slope of the optimum
        more = planner.model(problem, objective="total")
        more.add_constraint(
            "region", more.variables["flow"].where(head=[names[v] for v in region]).sum(), upper=60_100.0
        )
        gain = (more.solve().objective or 0.0) - (run.objective or 0.0)
        assert run.price("region") * 100 == pytest.approx(gain, rel=1e-3)


@pytest.mark.exhaustive
def test_two_paths_of_each_demand_on_germany50() -> None:
    """The plan is one of the formal model, and attains the bound that the relaxation of that gives."""
    problem = generators.germany50().scale_demands(1.5)
    model = planner.model(problem, objective="total", paths=3)
    path = _limit_paths(model, problem, 2)
    run = model.solve(gap=1e-4)
    reference = two_paths_reference(problem, path, integer=False)
    bound = pyomo.solve_model(reference, REFERENCE).objective
    assert bound is not None
    assert bound < 0.97 * problem.rate_mbps.sum()
    assert run.objective == pytest.approx(bound, rel=1e-4)
    assert run.bound == pytest.approx(bound, rel=1e-4)
    rates = run.plan.routes.assign(
        demand=lambda frame: frame["source"].astype(str) + "->" + frame["target"].astype(str),
        path=lambda frame: frame["path"].map(json.loads).map("->".join),
    ).set_index(["demand", "path"])["rate_mbps"]
    paths = list(zip(path.members["demand"], path.members["path"], strict=True))
    assert set(rates.index) <= set(paths)
    for p, name in enumerate(paths):
        rate = float(rates.get(name, 0.0))
        reference.x[p].set_value(rate)
        reference.y[p].set_value(float(rate > 0))
    slack = min(row.slack() for row in reference.rows.values())
    assert slack > -1e-5 * problem.links["capacity_mbps"].max()
    assert pyo.value(reference.goal) == pytest.approx(run.objective, rel=1e-6)


UNREACHED = network([("a", "b", 1.0)], [("b", "a", 1.0), ("a", "b", 3.0)])


@pytest.mark.parametrize(
    "parameters",
    [{}, {"paths": 2}, {"separate": "all"}, {"objective": "concurrent"}, {"objective": "utilization"}],
)
def test_demands_without_a_path_are_shed(parameters: dict[str, Any]) -> None:
    run = planner.model(UNREACHED, **parameters).solve()
    same = {name: value for name, value in parameters.items() if name != "separate"}
    design = planner.solve(UNREACHED, design="optimum", **same)
    assert run.status == design.status
    assert run.metrics["delivered_mbps"] == pytest.approx(design.metrics["delivered_mbps"])
    assert run.metrics["max_utilization"] == pytest.approx(design.metrics["max_utilization"])
    assert "b" in run.plan.shed["source"].tolist()


def test_what_cannot_be_modelled_is_said() -> None:
    with pytest.raises(InputError, match="1 demand has no path, such as b->a"):
        planner.model(UNREACHED, service="all")
    with pytest.raises(InputError, match="none has a rate and a path"):
        planner.model(network([("a", "b", 1.0)], [("b", "a", 1.0)]))
