"""Optimal distribution trees of small problems by integer programming."""

from __future__ import annotations

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options, Service
from planner_models.livevideo.designs import formulation as formal
from planner_models.livevideo.designs.integer_program import build_program, trim_branches
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.adjustments import pin_everything
from planner_models.livevideo.problem.problem import LiveVideo


def distribute(problem: LiveVideo, *, options: Options = Options()) -> Decision[Trees]:
    """Solve the integer program of all objects together.

    From some hundred channels on solvers find no plan in a minute, where `decomposition.distribute`
    proves gaps of a percent or less.

    returns  Decision with Trees; its bound holds for every plan
    source   Mukerjee 2018, Fig. 4.8
    """
    if options.backend.startswith("pyomo:"):
        from planner.backends import pyomo

        m = formal.formulation(problem)
        solution = pyomo.solve_model(m, options)
        plan = None if solution.objective is None else trim_branches(problem, formal.read_plan(problem, m))
    else:
        fast = build_program(problem)
        solution = backends.solve(fast.program, options)
        plan = None if solution.x is None else fast.plan(problem, solution.x)
    objective = None if plan is None else measure(problem, plan, None)[OBJECTIVE]
    bound = solution.bound
    if objective is not None and bound is not None and objective > bound:
        bound = objective  # the solver rounds more than the cost of the branches that were trimmed
    return Decision(
        plan=plan,
        proof=Proof(
            status=solution.status if plan is not None or solution.x is None else Status.FEASIBLE,
            objective=objective,
            bound=bound,
            metric=OBJECTIVE,
            backend=solution.backend,
            reasons=solution.reasons,
        ),
    )


def build_model(problem: LiveVideo, *, service: Service = "best") -> LinearProgram:
    """Return the integer program that `distribute` solves; with service "all", all requests are served."""
    return build_program(pin_everything(problem) if service == "all" else problem).program
