"""Decisions from links: their routing, the steps of the change, and the proof."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, Final, ParamSpec

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.contract.proof import Proof, RankProof
from planner.contract.ranking import EQUAL as SAME_RANK
from planner.formatting import amount
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.judged import clamp, gap_of, infeasible, judged, undecided
from planner.search.tolerances import OPTIMALITY
from planner_models.topology.designs.joint_program import JointProgram, solve, used_paths
from planner_models.topology.designs.shorter_routes import shorten
from planner_models.topology.plan.balance import Routing, balance, capacity_of
from planner_models.topology.plan.check import derive_scale, evaluate
from planner_models.topology.plan.metrics import say_without_path
from planner_models.topology.plan.plan import Topology, make_plan
from planner_models.topology.problem.problem import Fabric

P = ParamSpec("P")
Plan = Callable[Concatenate[Fabric, P], Decision[Topology]]

EXACT_BLOCKS: Final = 12
"""Blocks up to which the routing over given links is solved to optimality by a linear program."""
KEPT: Final = frozenset({"ports", "moves", "routes"})


def route(
    problem: Fabric, links: Ints, *, start: Floats | None = None, deadline: Deadline = NEVER
) -> Routing:
    """Return the routing over (n, n) links with the largest demand scale, or nearly so for many blocks.

    deadline  after which the routing of many blocks is improved no more
    """
    capacity = capacity_of(links, problem.link_mbps)
    routing = balance(
        problem.demand_mbps, capacity, start=start, deadline=NEVER if len(links) <= EXACT_BLOCKS else deadline
    )
    if len(links) > EXACT_BLOCKS or routing.scale <= 0:
        return routing
    program = JointProgram(problem=problem, links=links)
    exact = solve(program, used_paths(routing.shares), Options())
    if exact.scale is None or exact.scale <= routing.scale:
        return routing
    return Routing(shares=exact.shares, scale=exact.scale)


def route_servable(plan: Plan[P]) -> Plan[P]:
    """Return the function that plans for the demand that some plan has a path for, and serves no other."""

    @functools.wraps(plan)
    def plan_for_servable(problem: Fabric, /, *args: P.args, **parameters: P.kwargs) -> Decision[Topology]:
        servable, options = problem.servable, parameters.get("options")
        if servable is problem:
            return plan(problem, *args, **parameters)
        if isinstance(options, Options) and options.service == "all":
            reason = say_without_path(problem).rstrip(".")
            return Decision(plan=None, proof=infeasible(reason))
        if servable is not None:
            return plan(servable, *args, **parameters)
        count = len(problem.blocks)
        links = np.zeros((count, count), dtype=np.int64) if problem.present is None else problem.present
        proof = judged("max", 0.0, 0.0, metric="demand_scale")
        empty = make_plan(problem, links, np.zeros((count, count, count)))
        return Decision(plan=empty, proof=proof, guarantees=KEPT)

    return plan_for_servable


@dataclass(frozen=True, kw_only=True)
class Proven:
    """Bounds and backend of a decision's proof.

    bound          demand scale that no plan exceeds; None for unknown
    least_transit  the least traffic by transit blocks of plans that reach the bound, Mbit/s; None for unknown
    is_cut         whether a time limit ended the search
    """

    bound: float | None = None
    least_transit: float | None = None
    backend: str | None = None
    is_cut: bool = False


def decide(
    problem: Fabric,
    links: Ints,
    routing: Routing | None = None,
    *,
    options: Options,
    proven: Proven = Proven(),
) -> Decision[Topology]:
    """Return the decision for (n, n) links.

    routing  default: one with the largest demand scale, and less transit
    """
    bound = proven.bound
    if routing is None:
        routing = shorten(problem, links, route(problem, links))
    plan = make_plan(problem, links, routing.shares)
    objective = derive_scale(problem, plan)
    notes: tuple[str, ...] = ()
    if bound is not None:
        bound, notes = clamp("max", objective, bound, metric="demand_scale")
        bound = objective if bound - objective <= SAME_RANK * max(abs(bound), 1e-9) else bound
    if options.service == "all" and objective < 1:
        return Decision(plan=None, proof=_prove_short(problem, objective, bound))
    proof = judged(
        "max",
        objective,
        bound,
        gap=gap_of(options),
        notes=notes,
        metric="demand_scale",
        ranks=_prove_ranks(problem, plan, objective, bound, proven.least_transit),
        backend=proven.backend,
        is_cut=proven.is_cut,
    )
    # a demand without a path at all is a result: its ports have no link, or too few
    return Decision(plan=plan, proof=proof, guarantees=KEPT if objective > 0 else KEPT - {"routes"})


def _prove_short(problem: Fabric, scale: float, bound: float | None) -> Proof:
    """Return the proof that not all demand fits, or that no plan was found that carries it."""
    offered = amount(float(problem.demand_mbps.sum()), "Mbit/s")
    if bound is not None and bound < 1 - OPTIMALITY:
        reason = f"no topology carries more than {bound:.4g} times the demand of {offered}"
        return infeasible(reason)
    reason = f"this topology carries {scale:.4g} times the demand of {offered}; another may carry all"
    return undecided(reason)


def _prove_ranks(
    problem: Fabric, plan: Topology, objective: float, bound: float | None, least_transit: float | None
) -> tuple[RankProof, ...]:
    """Return the proofs of demand scale and stretch; () where that of the stretch is unknown."""
    stretch = evaluate(problem, plan).stretch
    if bound is None or bound > objective or least_transit is None or stretch is None:
        return ()
    lower = min(1 + max(least_transit, 0.0) / float(problem.demand_mbps.sum()), stretch)
    return RankProof("demand_scale", objective, bound), RankProof("stretch", stretch, lower)
