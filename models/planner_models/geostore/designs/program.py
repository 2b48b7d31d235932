"""The placement of one component as an integer program of sparse arrays.

The same program as the reference model, with its copies summed over users. Its linear program is nearly
exact, and few of its prices of copies matter: `relaxed_program` solves it with these alone. What it excludes
by reduced costs leaves a small integer program, whose presolve and cuts close what is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Bools
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder, Variables
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.geostore.designs.component import Component
from planner_models.geostore.designs.component_rules import add_attachments, add_replicas, add_rules
from planner_models.geostore.designs.copies import Copies
from planner_models.geostore.designs.local_search import placement_cost
from planner_models.geostore.designs.placement import (
    Placement,
    arrays_of,
    solve_component,
)
from planner_models.geostore.designs.relaxed_program import VIOLATION, Relaxed, relax

NEAR: Final = 1e-3
"""Share of the bound by which replicas may raise it that are in the first integer program."""
MAX_ROUNDINGS: Final = 10


def build_program(data: Component) -> LinearProgram:
    """Return the program of a component with users of one replica each; replicas are its first variables.

    Replicas, (G * N,), attachments of users where they may be, and what copies cost above their lowest price.
    """
    copies = Copies(data, *np.nonzero(np.isfinite(data.attachment)))
    m = ProgramBuilder(name="component")
    opened = add_replicas(m, data, copies.replica_usd, integer=True)
    attached = add_attachments(m, opened, data, data.uses, copies.attached_usd)
    _constrain_copies(m, copies, opened, attached)
    add_rules(m, opened, data)
    return m.build()


def _constrain_copies(m: ProgramBuilder, copies: Copies, opened: Variables, attached: Variables) -> None:
    """Add the variables of sets and of dearer copies, with their constraints."""
    regions = range(copies.regions)
    usd, replica, number = (np.concatenate(part) for part in zip(*map(copies.steps_at, regions), strict=True))
    if not len(usd):
        return
    sets = copies.sets()
    inside = m.variables("inside", sets.shape[0], upper=1.0)
    owner = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
    total = attached[sets.indices].sum_by(owner, sets.shape[0])
    m.constrain("set", total - inside, equal=0.0)
    late = np.isinf(usd)
    if not late.all():
        dearer = m.variables("dearer", int((~late).sum()), upper=1.0, cost=usd[~late])
        m.constrain("copied", dearer + inside[number[~late]] - opened[replica[~late]], lower=0.0)
    if late.any():
        m.constrain("in_time", inside[number[late]] - opened[replica[late]], lower=0.0)


def solve_program(data: Component, *, gap: float, deadline: Deadline = NEVER) -> Placement:
    """Return the placement of least cost within a relative gap, or the best one found within a time limit.

    The linear program and its rounded replicas prove most optima. Otherwise an integer program finds the best
    plan of its replicas. A second one adds those that raise the bound by as much as this plan costs more, by
    0.1% at most: no others are in a better plan. If the gap is larger, the whole program follows.
    """
    relaxed = relax(data, deadline)
    if relaxed is None:
        return _solve_integer(data, gap, deadline)
    best = _round(data, relaxed)
    left_out: Bools = (relaxed.replicas <= VIOLATION) & (data.state == -1)
    limit, has_near = 0.0, False
    while not best.is_cut and (best.opened is None or best.cost - best.bound > gap * abs(best.cost)):
        solved = _solve_integer(_without_replicas(data, left_out), gap, deadline)
        bound = min(solved.bound, relaxed.bound + relaxed.raised[left_out].min(initial=np.inf))
        bound = max(best.bound, bound)
        best = replace(solved if solved.cost < best.cost else best, bound=bound, is_cut=solved.is_cut)
        if not left_out.any() or limit >= best.cost - relaxed.bound:
            break
        limit = np.inf if has_near else min(NEAR * abs(relaxed.bound), best.cost - relaxed.bound)
        left_out, has_near = relaxed.raised > limit, True
    return replace(best, bound=min(best.bound, best.cost)) if best.opened is not None else best


def _round(data: Component, relaxed: Relaxed) -> Placement:
    """Return the best of the replicas above some value in a linear program, with its bound.

    They keep closure at any value.
    """
    best = Placement(opened=None, cost=np.inf, bound=relaxed.bound)
    arrays = arrays_of(data)
    values = np.unique(relaxed.replicas.round(6))
    for least in values[values > 0][:MAX_ROUNDINGS].tolist():
        opened: Bools = relaxed.replicas > least - 1e-6
        violated, cost = placement_cost(arrays, opened)
        if violated == 0 and cost < best.cost:
            best = replace(best, opened=opened, cost=cost)
    return best


def _without_replicas(data: Component, left_out: Bools) -> Component:
    """Return a component in which replicas, (G, N), may not be, nor users where they would need them."""
    state = np.where(left_out & (data.state == -1), 0, data.state)
    blocked = data.uses.T.astype(int) @ (state == 0).astype(int) > 0
    return replace(data, state=state, attachment=np.where(blocked, np.inf, data.attachment))


def _solve_integer(data: Component, gap: float, deadline: Deadline) -> Placement:
    """Return the placement of the integer program, or of the search where a time limit leaves none.

    gap  relative gap of the program
    """
    options = deadline.options(Options(gap=gap, threads=1))
    solution = backends.solve(build_program(data), options)
    if solution.status is Status.INFEASIBLE:
        return Placement(opened=None, cost=np.inf, bound=np.inf)
    groups, regions = data.opening.shape
    bound = -np.inf if solution.bound is None else float(solution.bound)
    if solution.x is not None:
        opened: Bools = (solution.x[: groups * regions] > 0.5).reshape(groups, regions)
        violated, cost = placement_cost(arrays_of(data), opened)
        if violated == 0:
            is_cut = solution.status is not Status.OPTIMAL
            return Placement(opened=opened, cost=cost, bound=min(bound, cost), is_cut=is_cut)
    searched = solve_component(data, gap=gap, max_nodes=0, deadline=deadline)
    return replace(searched, bound=max(searched.bound, min(bound, searched.cost)), is_cut=True)
