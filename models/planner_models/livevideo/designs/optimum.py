"""Optimal distribution trees: as by `vdn`, then by integer programming, in one time limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options, Service
from planner.search.deadline import Deadline
from planner.search.tolerances import STATED_GAP
from planner_models.livevideo.designs import integer_program, overlay_multicast, vdn
from planner_models.livevideo.designs.decomposition import layered_problem
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.adjustments import pin_everything
from planner_models.livevideo.problem.problem import LiveVideo

GAP: Final = STATED_GAP  # relative gap at which the search stops, unless the options have one
SEARCH_SHARE: Final = 0.5
"""Share of the time limit for the search where streams are pinned, which only a program can refuse."""


def distribute(problem: LiveVideo, *, options: Options = Options()) -> Decision[Trees]:
    """Return optimal trees, or the best that the time limit allows, with a bound on every plan.

    With a time limit it searches as `vdn` does, so that no plan of that is better: large problems by
    decomposition, small ones by the integer program. Without one, or with another backend, the integer
    program is solved at once.

    source  Mukerjee 2018, Fig. 4.8
    """
    is_layered = len(problem.tiers) <= layered_problem.MAX_TIERS
    if options.time_limit_s is None or options.backend != "highs" or not is_layered:
        solution = integer_program.solve(problem, options=options)
        if solution.proof.status in (Status.OPTIMAL, Status.INFEASIBLE) or options.time_limit_s is None:
            return solution
        return _take_better(solution, overlay_multicast.distribute(problem, options=options))
    has_pins = len(problem.pinned_requests) + len(problem.pinned_links) > 0
    share = SEARCH_SHARE if has_pins else 1.0
    gap = GAP if options.gap is None else options.gap
    deadline = Deadline.of(options)
    solution = vdn.distribute(problem, options=replace(options, gap=gap).share_time(share))
    if not has_pins or solution.proof.status is Status.OPTIMAL or deadline.is_over:
        return solution
    return _take_better(integer_program.solve(problem, options=deadline.options(options)), solution)


def _take_better(exact: Decision[Trees], other: Decision[Trees]) -> Decision[Trees]:
    """Return the exact decision, with the other's plan where that is better and keeps the same rules."""
    objective = other.proof.objective
    if other.guarantees is not None and "pinned" not in other.guarantees:
        return exact
    if other.plan is None or objective is None or exact.proof.status is Status.INFEASIBLE:
        return exact
    if exact.proof.objective is not None and exact.proof.objective >= objective:
        return exact
    bounds = [bound for bound in (exact.proof.bound, other.proof.bound) if bound is not None]
    proof = replace(
        exact.proof,
        status=Status.FEASIBLE,
        objective=objective,
        bound=max(objective, min(bounds)) if bounds else None,
        reasons=(),
    )
    return Decision(plan=other.plan, proof=proof)


def build_model(problem: LiveVideo, *, service: Service = "best") -> LinearProgram:
    """Return the integer program that `distribute` solves; with service "all", all requests are served."""
    served = pin_everything(problem) if service == "all" else problem
    about = "the service value of what is delivered, less the cost of links"
    return integer_program.build_program(served).program.describe(about, metric="service_minus_cost")
